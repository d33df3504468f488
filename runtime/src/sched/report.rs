//! Why a machine stands still: who waits for what, and where the words are.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dflow_ir::loc::Loc;
use dflow_ir::mesh::{Color, Coord, Port};
use dflow_ir::target::Target;

use super::doing::computes;
use super::plan::Plan;
use super::region::Region;
use crate::fabric::channel::Outlet;
use crate::fabric::plan::ColorPlan;
use crate::fabric::router::{Lane, RAMP, Router};
use crate::fabric::stand::Shut;
use crate::outcome::{Chain, Deadlock, NumberFrom, StuckPlace, StuckWords, Wait, Waiter};
use crate::pe::code::Code;
use crate::pe::core::{Core, Outgoing, Sent, bits};
use crate::pe::main::Main;
use crate::pe::op::Op;
use crate::pe::plan::{NO_TASK, PePlan};
use crate::trap::{Sender, Trap, TrapKind};

/// Most senders that are named.
const SENDERS: usize = 4;

/// What an operation waits for, as a key for folding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Receive {
        color: u8,
        queue: u8,
    },
    Send {
        color: u8,
        queue: u8,
    },
    /// Which one, whether it is full, and whether the operation is without end.
    Fifo(Option<(u16, bool, bool)>),
    Microthread(u8),
    BlockedMicrothread(u8),
    /// A task that is blocked; the color of the words that wait for it, if it is a data task.
    Blocked(Option<u8>),
}

/// Names of program and task, place, kind: equal to a user, in whatever program of the mesh.
type Key<'a> = (&'a str, Option<&'a str>, Loc, Kind);

/// Operations that wait alike: how many PEs have one, and the first and the last of those.
type Groups<'a> = BTreeMap<Key<'a>, (usize, usize, usize)>;

/// Words that stand somewhere, by color and kind of place: how many, in how many places, and the first PE.
#[derive(Default)]
struct Stuck(BTreeMap<(Color, StuckPlace), (u64, usize, usize)>);

impl Stuck {
    /// Adds words that stand at a PE.
    fn add(&mut self, color: u8, place: StuckPlace, number: usize, words: u64) {
        let Some(color) = Color::new(color) else { return };
        let entry = self.0.entry((color, place)).or_insert((0, 0, number));
        *entry = (entry.0 + words, entry.1 + 1, entry.2.min(number));
    }

    /// Adds words of a region that are in no router and no queue: on their way when a run was ended from outside.
    fn add_moving<C: Code>(&mut self, plan: &Plan, regions: &[Region<C>], region: &Region<C>) {
        let ramp = StuckPlace::Router(Port::Ramp);
        // Those of cores that were ahead.
        for &(_, pe, word) in &region.late {
            self.add(word.color, ramp, region.number(plan, pe), 1);
        }
        for (source, color) in region.gathers.words() {
            self.add(color, ramp, region.number(plan, source), 1);
        }
        for (pe, port, color, words) in region.under_way() {
            self.add(color, StuckPlace::Router(port), region.number(plan, pe), words);
        }
        for (from, route, words) in region.in_pipes(regions) {
            self.add(route.color, ramp, from.number(plan, route.source), words);
        }
    }

    /// What is told of them: first what nothing else explains, then the most words.
    fn told(self, plan: &Plan) -> Vec<StuckWords> {
        let told = self.0.into_iter().map(|((color, place), (words, count, first))| StuckWords {
            color,
            place,
            words,
            count,
            first: plan.coord(first),
        });
        let mut told: Vec<StuckWords> = told.collect();
        told.sort_by_key(|stuck| (!stuck.place.is_explained(), std::cmp::Reverse(stuck.words)));
        told
    }
}

/// The report. Where waits lead, from sender to sender, is looked for if the machine is still: where something moves the
/// word that is waited for may be under way, and in `flow` cores do not stand at one cycle.
pub(crate) fn deadlock<C: Code>(
    plan: &Plan,
    code: &C,
    regions: &[Region<C>],
    (cycle, is_still): (u64, bool),
) -> Deadlock {
    let mut groups = Groups::new();
    let mut stuck = Stuck::default();
    let mut host_waiting = Vec::new();
    for region in regions {
        for pe in 0..region.cores.len() as u32 {
            region.fetch_standing(pe);
            add_waits(&mut groups, (plan, code), region, pe);
            for (color, place, words) in standing(plan, region, pe, cycle) {
                stuck.add(color.index(), place, region.number(plan, pe), words);
            }
            host_waiting.extend(waiting_at_host(plan, region, pe));
        }
        stuck.add_moving(plan, regions, region);
    }
    let waiter = |(key, group)| waiter((plan, code, regions), key, group, is_still);
    let mut waiters: Vec<Waiter> = groups.into_iter().map(waiter).collect();
    waiters.sort_by_key(|waiter| (std::cmp::Reverse(waiter.count), waiter.first.y, waiter.first.x));
    host_waiting.sort_by_key(|(at, color, _)| (at.y, at.x, *color));
    let stuck = stuck.told(plan);
    Deadlock { cycle, waiters, stuck, host_waiting, host: Loc::default(), host_wait: None }
}

/// Adds what the core of a PE waits for; if nothing, which of its tasks are blocked.
fn add_waits<'a, C: Code>(
    groups: &mut Groups<'a>,
    (plan, code): (&'a Plan, &C),
    region: &Region<C>,
    pe: u32,
) {
    let Some(core) = &region.cores[pe as usize] else { return };
    let number = region.number(plan, pe);
    let program = &plan.programs[usize::from(core.at.program)];
    let mut keys = waits(program, code, (region, core));
    if keys.is_empty() {
        keys = blocked(program, core);
    }
    for key in keys {
        let group = groups.entry(key).or_insert((0, number, number));
        *group = (group.0 + 1, group.1.min(number), group.2.max(number));
    }
}

/// Words that the host has for links of a PE.
fn waiting_at_host<C: Code>(
    plan: &Plan,
    region: &Region<C>,
    pe: u32,
) -> impl Iterator<Item = (Coord, Color, u64)> {
    let sources = region.routers[pe as usize].iter().flat_map(|router| &router.sources);
    sources.filter(|source| !source.words.is_empty()).map(|source| {
        let link = plan.links[source.link as usize];
        (link.at, link.color, source.words.len() as u64)
    })
}

fn key(program: &PePlan, task: u16, loc: Loc, kind: Kind) -> Key<'_> {
    let task = program.tasks.get(usize::from(task)).map(|task| task.name.as_str());
    (&program.name, task, loc, kind)
}

/// What a core's operations wait for.
fn waits<'a, C: Code>(
    program: &'a PePlan,
    code: &C,
    (region, core): (&Region<C>, &Core<C>),
) -> Vec<Key<'a>> {
    // When a run is ended from outside, an operation may be in the middle of its work.
    let of = |op: &Op<C::Op>| {
        let kind = kind(code, (region, core), op);
        let works = op.stretch.is_on() || kind == Kind::Fifo(None);
        (!works).then(|| key(program, op.task, op.loc, kind))
    };
    let live = core.threads.iter().filter(|op| !op.ended);
    let mut all: Vec<Key<'_>> = live.filter_map(of).collect();
    match &core.main {
        Main::Vector(op) => all.extend(of(op)),
        Main::Launch(op) => {
            all.push(key(program, op.task, op.loc, Kind::Microthread(op.microthread)));
        }
        Main::Idle | Main::Ready { .. } | Main::Counting { .. } => {}
    }
    all
}

/// Tasks of an idle core that would run if they were not blocked.
fn blocked<'a, C: Code>(program: &'a PePlan, core: &Core<C>) -> Vec<Key<'a>> {
    let mut all = Vec::new();
    let mut note = |task: u16, color| {
        if let Some(plan) = program.tasks.get(usize::from(task)) {
            all.push(key(program, task, plan.loc, Kind::Blocked(color)));
        }
    };
    for id in bits(core.activated & core.task_blocked) {
        note(program.local[id], None);
    }
    for queue in bits(core.arrived) {
        let input = core.input(program, queue);
        if core.channel_blocked >> input.channel & 1 != 0 && input.task != NO_TASK {
            note(input.task, core.inputs[queue].ring.head().map(|head| head.color));
        }
    }
    all
}

fn kind<C: Code>(code: &C, (region, core): (&Region<C>, &Core<C>), op: &Op<C::Op>) -> Kind {
    if op.asynchronous && core.thread_blocked >> op.microthread & 1 != 0 {
        return Kind::BlockedMicrothread(op.microthread);
    }
    if let Some(output) = op.output {
        let ring = core.outputs.get(usize::from(output.queue)).map(|output| &output.ring);
        let is_full = ring.is_some_and(|ring| ring.places() != 0 && ring.is_full());
        // Not all pipes have words that can be put where they stand.
        let waiting = ring.map_or(0, |ring| ring.len());
        let way_is_full = match core.outlet(output.color) {
            Outlet::Pipe(id) | Outlet::Closing(id) => region.room_of(id) as usize <= waiting,
            Outlet::Unknown
            | Outlet::Routers(_)
            | Outlet::Channel(_)
            | Outlet::Gathered(_)
            | Outlet::Merged(_) => false,
        };
        if is_full || way_is_full {
            return Kind::Send { color: output.color, queue: output.queue };
        }
    }
    for (&queue, &color) in op.inputs.iter().zip(&op.colors) {
        let Some(queue) = queue else { continue };
        let head = core.inputs[usize::from(queue)].ring.head();
        if head.is_none_or(|head| head.control) {
            return Kind::Receive { color, queue };
        }
    }
    let endless = code.progress(&op.code).1.is_none();
    let waits = code.fifo_wait(core.at, &core.state, &op.code);
    Kind::Fifo(waits.map(|(fifo, full)| (fifo, full, endless)))
}

/// Words that stand on a PE.
fn standing<C: Code>(
    plan: &Plan,
    region: &Region<C>,
    pe: u32,
    cycle: u64,
) -> Vec<(Color, StuckPlace, u64)> {
    let mut all = Vec::new();
    let mut note = |color: u8, place, words: usize| {
        if let (Some(color), 1..) = (Color::new(color), words) {
            all.push((color, place, words as u64));
        }
    };
    let core = region.cores[pe as usize].as_ref();
    let takes = |color: u8| match core {
        Some(core) => {
            let program = &plan.programs[usize::from(core.at.program)];
            core.bound.queue_of(program, color, cycle).is_some()
        }
        None => {
            let program = plan.program(region.number(plan, pe));
            program.is_some_and(|program| program.queue_of(color).is_some())
        }
    };
    if let Some(router) = &region.routers[pe as usize] {
        for lane in &router.lanes {
            let port = Port::ALL[usize::from(lane.port)];
            let untaken = || router.feeds_core(plan, lane.color) && !takes(lane.color);
            let place = match router.shut(plan, lane.color, lane.port) {
                _ if router.is_torn(lane.color) => StuckPlace::Torn(port),
                Some(Shut::Now(position)) => StuckPlace::Switched(port, position),
                Some(Shut::Always) => StuckPlace::NotReceived(port),
                None if untaken() => StuckPlace::NoQueue(port),
                None => StuckPlace::Router(port),
            };
            note(lane.color, place, lane.ring.len());
        }
    }
    if let Some(core) = core {
        let program = &plan.programs[usize::from(core.at.program)];
        for (queue, input) in core.inputs.iter().enumerate() {
            let color = input.ring.head().map_or(0, |head| head.color);
            // One that waits for a microthread will read it.
            let asked =
                matches!(&core.main, Main::Launch(op) if op.inputs.contains(&Some(queue as u8)));
            let owned = core.owned_in >> queue & 1 != 0 || asked;
            let bound = core.input(program, queue);
            let waits = input.ring.head().is_some_and(|head| head.control)
                && core.channel_blocked >> bound.channel & 1 != 0;
            let place = match owned || bound.task != NO_TASK {
                true => StuckPlace::Input,
                false if waits => StuckPlace::Blocked,
                false => StuckPlace::Unread,
            };
            note(color, place, input.ring.len());
        }
        for (_, Outgoing { ring, .. }) in core.outputs.iter() {
            note(ring.head().map_or(0, |head| head.color), StuckPlace::Output, ring.len());
        }
    }
    all
}

fn waiter<C: Code>(
    (plan, code, regions): (&Plan, &C, &[Region<C>]),
    key: Key<'_>,
    (count, first, last): (usize, usize, usize),
    is_still: bool,
) -> Waiter {
    let (program, task, loc, kind) = key;
    let wait = match kind {
        Kind::Receive { color, queue } => {
            receive((plan, code, regions), first, (color, queue), is_still)
        }
        Kind::Send { color, queue } => match Color::new(color) {
            Some(color) => Wait::Send { color, queue },
            None => UNKNOWN,
        },
        Kind::Fifo(None) => UNKNOWN,
        Kind::Fifo(Some((fifo, full, endless))) => {
            let plan = core_at(plan, regions, first)
                .and_then(|core| plan.programs.get(usize::from(core.at.program)));
            let name = plan.and_then(|plan| plan.fifos.get(usize::from(fifo)).cloned());
            Wait::Fifo { name, full, endless }
        }
        Kind::BlockedMicrothread(id) => Wait::BlockedMicrothread(id),
        Kind::Microthread(id) => microthread((plan, core_at(plan, regions, first)), id),
        Kind::Blocked(color) => Wait::Blocked { color: color.and_then(Color::new) },
    };
    Waiter {
        count,
        first: plan.coord(first),
        last: plan.coord(last),
        program: program.to_owned(),
        task: task.map(str::to_owned),
        loc,
        wait,
    }
}

/// What a core knows of the microthread that its main thread waits for.
fn microthread<C: Code>((plan, core): (&Plan, Option<&Core<C>>), id: u8) -> Wait {
    let has = |op: &&Op<C::Op>| op.asynchronous && op.microthread == id && !op.ended;
    let holder = core.and_then(|core| core.threads.iter().find(has));
    let waiting = core.and_then(|core| match &core.main {
        Main::Launch(op) => Some(op),
        Main::Idle | Main::Ready { .. } | Main::Counting { .. } | Main::Vector(_) => None,
    });
    let numbered = |op: &Op<C::Op>| {
        op.inputs.contains(&Some(id)) || op.output.is_some_and(|output| output.queue == id)
    };
    // Of two on one queue the second waits for the queue anyway.
    let is_apart = |one: &Op<C::Op>, other: &Op<C::Op>| {
        one.needs.inputs & other.needs.inputs == 0 && one.needs.output & other.needs.output == 0
    };
    let both = holder.zip(waiting).filter(|(holder, waiting)| {
        numbered(holder) && numbered(waiting) && is_apart(holder, waiting)
    });
    let from = both.map(|_| match Target::get(plan.target).microthread_choice {
        true => NumberFrom::QueueUnlessNamed,
        false => NumberFrom::Queue,
    });
    Wait::Microthread { id, holder: holder.map(|op| op.loc), from }
}

/// A wait of which nothing is known.
const UNKNOWN: Wait = Wait::Fifo { name: None, full: false, endless: false };

/// What a wait for a word knows of it.
fn receive<C: Code>(
    (plan, code, regions): (&Plan, &C, &[Region<C>]),
    pe: usize,
    (color, queue): (u8, u8),
    is_still: bool,
) -> Wait {
    let Some(named) = Color::new(color) else { return UNKNOWN };
    let core = core_at(plan, regions, pe);
    let (senders, stands) = trace(plan, regions, pe, color);
    let last = core.and_then(|core| core.inputs[usize::from(queue)].last);
    let reads = |op: &&Op<C::Op>| op.inputs.contains(&Some(queue)) && !op.ended;
    let op = core.and_then(|core| core.operations().find(reads));
    let (done, length) = op.map_or((0, None), |op| code.progress(&op.code));
    let sent = senders
        .first()
        .and_then(|&sender| core_at(plan, regions, sender))
        .map(|core| core.sent().filter(|sent| sent.color == color).map(|sent| sent.words).sum());
    let chain = match is_still {
        true => chain(plan, code, regions, pe, &senders),
        false => Chain::Open,
    };
    let filtered = router_at(plan, regions, pe).and_then(|router| router.filter(color));
    let filtered = filtered.map_or(0, |filter| filter.kept);
    let senders = senders.into_iter().map(|pe| plan.coord(pe)).collect();
    Wait::Receive {
        color: named,
        queue,
        last,
        senders,
        stands,
        sent,
        done,
        length,
        filtered,
        chain,
    }
}

/// Follows a color's routes back from a core: the PEs that inject it, nearest first, and the
/// nearest router where a word of it stands.
fn trace<C: Code>(
    plan: &Plan,
    regions: &[Region<C>],
    pe: usize,
    color: u8,
) -> (Vec<usize>, Option<(Coord, Port)>) {
    let (mut senders, mut stands) = (Vec::new(), None);
    let mut seen = BTreeSet::from([pe]);
    let mut open = VecDeque::from([pe]);
    while let Some(pe) = open.pop_front() {
        let at = plan.coord(pe);
        if stands.is_none() {
            stands = words_at(plan, regions, at, color).map(|port| (at, port));
        }
        let Some(row) = row_at(plan, regions, pe, color) else { continue };
        let rx = row.rx[..usize::from(row.positions)].iter().fold(0, |all, rx| all | rx);
        for port in Port::ALL.into_iter().filter(|&port| rx >> port as u8 & 1 != 0) {
            if port as u8 == RAMP {
                if senders.len() < SENDERS {
                    senders.push(pe);
                }
            } else if let Some((x, y)) = plan.neighbor(at.x.into(), at.y.into(), port)
                && seen.insert(plan.number(x, y))
            {
                open.push_back(plan.number(x, y));
            }
        }
    }
    (senders, stands)
}

/// Who sent the word that a router could not pass on (see [`Sender`]). All PEs have run up to the
/// same cycle, so that the answer does not depend on the engine.
pub(crate) fn sender<C: Code>(plan: &Plan, regions: &[Region<C>], trap: &Trap) -> Option<Sender> {
    let at = (u32::from(trap.pe.x), u32::from(trap.pe.y));
    let (x, y) = match trap.kind {
        TrapKind::NoRoute { from: Port::Ramp } => at,
        TrapKind::NoRoute { from } => plan.neighbor(at.0, at.1, from)?,
        TrapKind::Code(_)
        | TrapKind::QueueBusy { .. }
        | TrapKind::BadQueue { .. }
        | TrapKind::QueueTwice { .. }
        | TrapKind::UnboundTask { .. }
        | TrapKind::BadId { .. }
        | TrapKind::FifoFault
        | TrapKind::QueueNotEmpty { .. }
        | TrapKind::Odd(_) => return None,
    };
    let (color, start) = (trap.color?.index(), plan.number(x, y));
    let senders = match trap.kind {
        TrapKind::NoRoute { from: Port::Ramp } => vec![start],
        _ => trace(plan, regions, start, color).0,
    };
    senders.into_iter().find_map(|pe| {
        let core = core_at(plan, regions, pe)?;
        let mut sent = core.sent().filter(|sent| sent.color == color);
        let &Sent { task, loc, .. } = sent.next()?;
        let program = &plan.programs[usize::from(core.at.program)];
        let task = program.tasks.get(usize::from(task)).map(|task| task.name.clone());
        Some(Sender { pe: plan.coord(pe), task, loc })
    })
}

/// Most PEs of a cycle that are named.
const AROUND: usize = 8;

/// Follows waits for words from sender to sender.
fn chain<C: Code>(
    plan: &Plan,
    code: &C,
    regions: &[Region<C>],
    pe: usize,
    senders: &[usize],
) -> Chain {
    let mut way = vec![pe];
    let mut seen = BTreeSet::from([pe]);
    let mut next = senders.first().copied();
    while let Some(pe) = next {
        if !seen.insert(pe) {
            let from = way.iter().position(|&other| other == pe).unwrap_or(0);
            let around: Vec<Coord> = way[from..].iter().map(|&pe| plan.coord(pe)).collect();
            let count = around.len();
            return match count {
                // It waits for a word of its own.
                1 => Chain::Open,
                _ => Chain::Cycle(around.into_iter().take(AROUND).collect(), count),
            };
        }
        way.push(pe);
        let Some(core) = core_at(plan, regions, pe) else { return Chain::Idle(plan.coord(pe)) };
        let region = &regions[locate(plan, plan.coord(pe)).0];
        let waits = waits(&plan.programs[usize::from(core.at.program)], code, (region, core));
        if waits.is_empty() {
            let works = computes(core).is_some() || core.operations().next().is_some();
            return if works { Chain::Open } else { Chain::Idle(plan.coord(pe)) };
        }
        let color = waits.iter().find_map(|(.., kind)| match *kind {
            Kind::Receive { color, .. } => Some(color),
            Kind::Send { .. }
            | Kind::Fifo(_)
            | Kind::Microthread(_)
            | Kind::BlockedMicrothread(_)
            | Kind::Blocked(_) => None,
        });
        next = color.and_then(|color| trace(plan, regions, pe, color).0.first().copied());
    }
    Chain::Open
}

fn router_at<'r, C: Code>(plan: &Plan, regions: &'r [Region<C>], pe: usize) -> Option<&'r Router> {
    let (region, local) = locate(plan, plan.coord(pe));
    regions[region].routers[local].as_deref()
}

fn core_at<'r, C: Code>(plan: &Plan, regions: &'r [Region<C>], pe: usize) -> Option<&'r Core<C>> {
    let (region, local) = locate(plan, plan.coord(pe));
    regions[region].cores[local].as_deref()
}

/// The configuration of a color at a PE's router, as it is now.
fn row_at<'r, C: Code>(
    plan: &'r Plan,
    regions: &'r [Region<C>],
    pe: usize,
    color: u8,
) -> Option<&'r ColorPlan> {
    let (region, local) = locate(plan, plan.coord(pe));
    let table = match regions[region].routers[local].as_deref() {
        Some(router) => Some(router.table(plan)),
        None => plan.routers.get(*plan.router_of.get(pe)? as usize),
    };
    table?.row(color).filter(|row| row.known)
}

fn words_at<C: Code>(plan: &Plan, regions: &[Region<C>], at: Coord, color: u8) -> Option<Port> {
    let (region, local) = locate(plan, at);
    let router = regions[region].routers[local].as_deref()?;
    let holds = |lane: &&Lane| lane.color == color && !lane.ring.is_empty();
    let lane = router.lanes.iter().filter(holds).min_by_key(|lane| lane.port)?;
    Some(Port::ALL[usize::from(lane.port)])
}

fn locate(plan: &Plan, at: Coord) -> (usize, usize) {
    let (region, pe) = plan.locate(at.x.into(), at.y.into());
    (region as usize, pe as usize)
}
