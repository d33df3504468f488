//! What PEs do in a round, without times.
//!
//! Invariants: the acts of a PE are in an order in which they come to the same as they did; what
//! cannot be told without times, or has to do with the host, is not on a tape but spoils it.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use dflow_ir::inst::FlagOp;
use rustc_hash::{FxHashMap, FxHasher};

use crate::exec::{ActKind, Segment, SlotAct, Stop, Stream, VectorStart};
use crate::pe::code::{Code, Pe};
use crate::pe::core::Core;
use crate::pe::main::{Main, Next};
use crate::pe::op::Op;
use crate::pe::threads::COUNT;
use crate::pe::visit::Visit;
use crate::sched::region::Region;

/// Operations that a PE may have at once: those of microthreads, and the main thread's.
pub(super) const OPERATIONS: usize = COUNT + 1;
/// The main thread's operation among them.
pub(super) const OF_MAIN: usize = COUNT;

/// Acts and pieces of code per PE, on average: as much memory as a PE has of its own.
const MOST: usize = 1 << 12;

/// Acts in one go after which a track is held against others.
const LONG: usize = 64;
/// Tracks, or pieces of code, that something is held against first.
const RECENT: usize = 4;

/// What a PE does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Act {
    /// Code runs; what came of it are so many pieces from one on.
    Code { entry: Enters, first: u32, count: u32 },
    /// A word of an input queue starts the next task.
    Word { queue: u8 },
    /// The asynchronous operation that code stopped for begins.
    Launch { thread: u8 },
    /// Elements of an operation; `beside`: they need not wait for those of the acts before; `last`: it ends in
    /// this round without another one.
    Elements { operation: u8, beside: bool, last: bool, count: u32 },
    /// An operation ends.
    Finish { operation: u8, whole: bool },
}

/// Where code enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Enters {
    /// At the start of a task.
    Start { task: u16 },
    /// It runs on, with a value for what it waited for.
    Resume { value: u32 },
}

/// What came of a piece of code: the number of an outcome. If it ended with an asynchronous operation that
/// began at once and the next piece followed at once, that operation's microthread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Piece {
    pub(super) outcome: u32,
    pub(super) passes: Option<u8>,
}

/// What a PE does in a round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Script {
    pub(super) acts: Vec<Act>,
    pub(super) pieces: Vec<Piece>,
    /// The last act in which code runs.
    pub(super) last_code: Option<usize>,
}

impl Script {
    /// Number of acts and pieces. Where code goes on past an operation there is a piece instead of an act.
    fn len(&self) -> usize {
        self.acts.len() + self.pieces.len()
    }

    /// Elements of operations in a round.
    pub(super) fn elements(&self) -> u64 {
        let count =
            |act: &Act| if let Act::Elements { count, .. } = act { u64::from(*count) } else { 0 };
        self.acts.iter().map(count).sum()
    }

    /// Tells the last elements of operations.
    fn find_last(&mut self) {
        let mut ends = [false; OPERATIONS];
        for act in self.acts.iter_mut().rev() {
            match act {
                Act::Finish { operation, whole } => ends[usize::from(*operation)] = *whole,
                Act::Elements { operation, last, .. } => {
                    *last = std::mem::take(&mut ends[usize::from(*operation)]);
                }
                Act::Code { .. } | Act::Word { .. } | Act::Launch { .. } => {}
            }
        }
    }
}

/// What PEs of all regions do, each once: most do what others do.
#[derive(Debug, Default)]
pub(super) struct Scripts {
    scripts: Vec<Script>,
    numbers: FxHashMap<Script, u32>,
    outcomes: Outcomes,
}

impl Scripts {
    /// Those of a region's PEs: their numbers.
    pub(super) fn add_all(&mut self, tape: &Tape) -> Vec<u32> {
        let Tape { tracks, outcomes, .. } = tape;
        let outcomes = outcomes.all.iter().map(|(of, segment)| self.outcomes.number(*of, segment));
        let outcomes: Vec<u32> = outcomes.collect();
        let mut known: FxHashMap<*const Script, u32> = FxHashMap::default();
        let number = |track: &Track| {
            let script = &track.script;
            *known.entry(Arc::as_ptr(script)).or_insert_with(|| self.add(script, &outcomes))
        };
        tracks.iter().map(number).collect()
    }

    /// The number of a script, whose acts have other numbers for what came of code.
    fn add(&mut self, script: &Script, numbers: &[u32]) -> u32 {
        let mut script = script.clone();
        for piece in &mut script.pieces {
            piece.outcome = numbers[piece.outcome as usize];
        }
        script.find_last();
        script.last_code = script.acts.iter().rposition(|act| matches!(act, Act::Code { .. }));
        let next = self.scripts.len() as u32;
        *self.numbers.entry(script).or_insert_with_key(|script| {
            self.scripts.push(script.clone());
            next
        })
    }

    /// A script.
    pub(super) fn get(&self, number: u32) -> &Script {
        &self.scripts[number as usize]
    }

    /// What came of code, with whose.
    pub(super) fn outcomes(&self) -> &[(u16, Segment)] {
        &self.outcomes.all
    }

    /// Whether any of it has switches turn.
    pub(super) fn turn_switches(&self) -> bool {
        self.outcomes.all.iter().any(|(_, segment)| match &segment.stop {
            Stop::Vector(start) => match start.dest {
                Stream::Output { control, advance_switch, .. } => control || advance_switch,
                _ => false,
            },
            _ => false,
        })
    }

    /// The scripts, and what came of code in them.
    pub(super) fn into_parts(self) -> (Vec<Script>, Vec<Segment>) {
        let segments = self.outcomes.all.into_iter().map(|(_, segment)| segment);
        (self.scripts, segments.collect())
    }
}

/// What came of code, and of which program's, each once.
#[derive(Debug, Default)]
pub(super) struct Outcomes {
    all: Vec<(u16, Segment)>,
    known: FxHashMap<(u16, u32, usize, u64), Vec<u32>>,
    /// Those that came last, which are tried first.
    recent: [u32; RECENT],
}

impl Outcomes {
    /// The number of one.
    fn number(&mut self, program: u16, segment: &Segment) -> u32 {
        let is_it = |number: &u32| {
            let known = self.all.get(*number as usize);
            known.is_some_and(|(of, known)| *of == program && is_like(known, segment))
        };
        if let Some(&number) = self.recent.iter().find(|number| is_it(number)) {
            return number;
        }
        let number = self.find(program, segment);
        self.recent.rotate_right(1);
        self.recent[0] = number;
        number
    }

    /// Likewise, wherever it is.
    fn find(&mut self, program: u16, segment: &Segment) -> u32 {
        let known = (program, segment.cycles, segment.acts.len(), shape(segment));
        let known = self.known.entry(known).or_default();
        let same = |at: &&u32| is_like(&self.all[**at as usize].1, segment);
        if let Some(&same) = known.iter().find(same) {
            return same;
        }
        let number = self.all.len() as u32;
        known.push(number);
        self.all.push((program, segment.clone()));
        number
    }
}

/// What the PEs of a region do.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    tracks: Vec<Track>,
    /// What PEs have done in one go, each once, the last ones first.
    recent: [Arc<Script>; RECENT],
    /// Who did something last, and how many acts it had before that.
    writer: (u32, usize),
    outcomes: Outcomes,
    /// Acts that there is room for.
    room: usize,
    pub(super) is_spoilt: bool,
}

/// What one PE does.
#[derive(Debug)]
struct Track {
    /// It may be that of others too, until it gets longer.
    script: Arc<Script>,
    /// Elements that are not among the acts yet, by operation: in whatever order.
    open: [u32; OPERATIONS],
    /// Operations have nothing to do with each other.
    are_apart: bool,
}

impl Track {
    /// Its script, which is that of nobody else where something is added.
    #[inline]
    fn script(&mut self) -> &mut Script {
        Arc::make_mut(&mut self.script)
    }

    fn close(&mut self) {
        let mut beside = false;
        for operation in 0..OPERATIONS {
            let count = std::mem::take(&mut self.open[operation]);
            if count != 0 {
                let operation = operation as u8;
                self.script().acts.push(Act::Elements { operation, beside, last: false, count });
                beside = true;
            }
        }
    }

    fn push(&mut self, act: Act) {
        self.close();
        self.script().acts.push(act);
    }

    /// Code runs.
    fn segment(&mut self, entry: Enters, outcome: u32) {
        self.close();
        let Script { acts, pieces, .. } = self.script();
        let first = pieces.len() as u32;
        match (entry, &mut acts[..], pieces.last_mut()) {
            (
                Enters::Resume { value: 1 },
                [.., Act::Code { count, .. }, Act::Launch { thread }],
                Some(Piece { passes, .. }),
            ) => {
                (*passes, *count) = (Some(*thread), *count + 1);
                acts.pop();
            }
            _ => acts.push(Act::Code { entry, first, count: 1 }),
        }
        pieces.push(Piece { outcome, passes: None });
    }
}

/// The number of an operation among those of its PE.
pub(super) fn place<O>(op: &Op<O>) -> usize {
    if op.asynchronous { usize::from(op.microthread) } else { OF_MAIN }
}

/// A number that pieces of code have in common that came to the same but for values.
fn shape(segment: &Segment) -> u64 {
    let mut hasher = FxHasher::default();
    segment.acts.first().map(|act| act.slot).hash(&mut hasher);
    if let Stop::Vector(start) = &segment.stop {
        (start.length, start.loc.line, start.loc.column).hash(&mut hasher);
        for stream in std::iter::once(&start.dest).chain(&start.sources) {
            if let Stream::Memory(memory) = stream {
                memory.dsd.0.hash(&mut hasher);
            }
        }
    }
    hasher.finish()
}

/// Whether two pieces of code came to the same, but for values.
fn is_like(one: &Segment, other: &Segment) -> bool {
    let stops = match (&one.stop, &other.stop) {
        (Stop::Vector(one), Stop::Vector(other)) => one.is(other) || starts_like(one, other),
        (one, other) => one == other,
    };
    stops && (one.cycles, one.assumed, &one.acts) == (other.cycles, other.assumed, &other.acts)
}

/// Whether an operation sends control wavelets: what they say is no value, but says which ways words go.
pub(super) fn commands(start: &VectorStart) -> bool {
    matches!(start.dest, Stream::Output { control: true, .. })
}

/// Whether two operations take the same time and their words the same ways, whatever their values.
pub(super) fn starts_like(one: &VectorStart, other: &VectorStart) -> bool {
    let is_scalar = |stream: &Stream| matches!(stream, Stream::Scalar(_)) && !commands(one);
    let sources = one.sources.iter().zip(&other.sources);
    let mut same = sources.map(|(one, other)| one == other || is_scalar(one) && is_scalar(other));
    same.all(|same| same) && one == &VectorStart { sources: one.sources, ..other.clone() }
}

/// Whether all that an operation does is to compute with words of queues, memory and scalars, or to send a command
/// that stands in the code.
fn is_simple(start: &VectorStart) -> bool {
    if let Stream::Output { control: true, transform, .. } = start.dest {
        let known = |stream: &Stream| matches!(stream, Stream::None | Stream::Scalar(_));
        return !transform && start.sources.iter().all(known);
    }
    let simple = |stream: &Stream| match *stream {
        Stream::Fifo { .. } => false,
        Stream::Input { transform, .. } => !transform,
        Stream::Output { transform, .. } => !transform,
        Stream::None | Stream::Memory(_) | Stream::Scalar(_) | Stream::Pointer { .. } => true,
    };
    simple(&start.dest) && start.sources.iter().all(simple)
}

/// Whether an act says no more than which tasks and microthreads may go on.
fn is_simple_act(act: &SlotAct) -> bool {
    use FlagOp::{
        Activate, BlockChannel, BlockMicrothread, BlockTask, UnblockChannel, UnblockMicrothread,
        UnblockTask,
    };
    let ActKind::Flag { op, .. } = act.what else { return false };
    matches!(
        op,
        Activate
            | BlockChannel
            | BlockMicrothread
            | BlockTask
            | UnblockChannel
            | UnblockMicrothread
            | UnblockTask
    )
}

/// Whether what came of code can be told without times.
fn is_timeless(segment: &Segment) -> bool {
    segment.acts.iter().all(is_simple_act)
        && match &segment.stop {
            Stop::Return | Stop::Yield => true,
            Stop::Vector(start) => is_simple(start),
            Stop::Clock(_) | Stop::Config(_) | Stop::Queues(_) | Stop::Host(_) | Stop::Trap(_) => {
                false
            }
        }
}

impl Tape {
    /// An empty one for so many PEs, of so many bytes at most.
    pub(super) fn new(count: usize, bytes: u64) -> Tape {
        let none = Arc::new(Script::default());
        let track = || Track { script: Arc::clone(&none), open: [0; OPERATIONS], are_apart: false };
        let tracks = std::iter::repeat_with(track).take(count).collect();
        // Lists may have twice the room that they need.
        let room = bytes / (2 * size_of::<Act>().max(size_of::<Piece>()) as u64);
        let room = (MOST * (count + RECENT)).min(usize::try_from(room).unwrap_or(usize::MAX));
        Tape { tracks, room, ..Tape::default() }
    }

    /// All that was done is among the acts.
    pub(super) fn close(&mut self) {
        for pe in 0..self.tracks.len() {
            if self.tracks[pe].open != [0; OPERATIONS] {
                self.track(pe as u32).close();
            }
        }
    }

    /// The track of a PE that does something, whose script is that of nobody else.
    #[inline]
    fn track(&mut self, pe: u32) -> &mut Track {
        if self.writer.0 != pe {
            self.turn_to(pe);
        }
        &mut self.tracks[pe as usize]
    }

    /// Another PE does something. Where the one before has done much in one go, as main threads do that run ahead,
    /// others have most likely done the same.
    #[inline(never)]
    fn turn_to(&mut self, pe: u32) {
        let (before, acts) = self.writer;
        let script = &mut self.tracks[before as usize].script;
        let length = script.len();
        // What is shared is copied when it gets longer: no more often than it grows by a part of itself.
        if length - acts >= LONG.max(length / 4) {
            if let Some(same) = self.recent.iter().find(|recent| *recent == script) {
                *script = Arc::clone(same);
                self.room += length;
            } else {
                self.recent.rotate_right(1);
                let old = std::mem::replace(&mut self.recent[0], Arc::clone(script));
                // It may have been that of nobody any more.
                self.room += Arc::into_inner(old).map_or(0, |old| old.len());
            }
        }
        let script = &mut self.tracks[pe as usize].script;
        let length = script.len();
        if Arc::get_mut(script).is_none() {
            Arc::make_mut(script);
            self.take_room(length);
        }
        self.writer = (pe, length);
    }

    /// There are so many acts more.
    #[inline]
    fn take_room(&mut self, acts: usize) {
        self.is_spoilt |= self.room < acts;
        self.room = self.room.saturating_sub(acts);
    }

    /// A PE does something more, if there is room for it; if not there is no use in going on.
    #[inline]
    fn push(&mut self, pe: u32, act: Act) {
        self.write(pe, |track| track.push(act));
    }

    #[inline]
    fn write(&mut self, pe: u32, write: impl FnOnce(&mut Track)) {
        let track = self.track(pe);
        let before = track.script.len();
        write(track);
        let more = track.script.len() - before;
        self.take_room(more);
    }

    /// Code of a PE has run.
    pub(crate) fn segment(&mut self, pe: u32, at: Pe, task: u16, next: Next, segment: &Segment) {
        self.is_spoilt |= !is_timeless(segment);
        if self.is_spoilt {
            return;
        }
        let outcome = self.outcomes.number(at.program, segment);
        let entry = match next {
            Next::Start { .. } => Enters::Start { task },
            Next::Resume { value } => Enters::Resume { value: value as u32 },
        };
        self.write(pe, |track| track.segment(entry, outcome));
        if let Stop::Vector(start) = &segment.stop {
            self.track(pe).are_apart &= start.asynchronous;
        }
    }

    /// A word of an input queue starts the next task.
    pub(crate) fn word(&mut self, pe: u32, queue: usize) {
        if !self.is_spoilt {
            self.push(pe, Act::Word { queue: queue as u8 });
        }
    }

    /// Elements of an operation are done.
    #[inline(never)]
    pub(crate) fn elements<O>(&mut self, pe: u32, op: &Op<O>, count: u32) {
        if self.is_spoilt {
            return;
        }
        let (track, operation) = (self.track(pe), place(op));
        if track.are_apart {
            track.open[operation] += count;
            return;
        }
        let operation = operation as u8;
        match track.script().acts.last_mut() {
            Some(Act::Elements { operation: before, beside: false, count: all, .. })
                if *before == operation =>
            {
                *all += count;
            }
            _ => self.push(pe, Act::Elements { operation, beside: false, last: false, count }),
        }
    }

    /// An operation has ended.
    pub(crate) fn finish<O>(&mut self, pe: u32, op: &Op<O>, whole: bool) {
        let operation = place(op) as u8;
        if !self.is_spoilt {
            self.push(pe, Act::Finish { operation, whole });
        }
    }
}

impl<C: Code> Region<C> {
    /// Something happens that is on no tape.
    #[inline]
    pub(crate) fn spoil_tape(&mut self) {
        if let Some(tape) = &mut self.tape {
            tape.is_spoilt = true;
        }
    }

    /// An asynchronous operation of a core begins.
    #[inline]
    pub(crate) fn tape_launch(&mut self, at: &Visit<'_, C>, core: &Core<C>, op: &Op<C::Op>) {
        if let Some(tape) = &mut self.tape {
            tape.launch(at.code, at.pe, core, op);
        }
    }
}

impl Tape {
    #[inline(never)]
    fn launch<C: Code>(&mut self, code: &C, pe: u32, core: &Core<C>, op: &Op<C::Op>) {
        if self.is_spoilt {
            return;
        }
        self.push(pe, Act::Launch { thread: op.microthread });
        let track = self.track(pe);
        let plain = |op: &Op<C::Op>| op.is_plain() && code.is_plain(&op.code);
        let running = || core.threads.iter().filter(|op| !op.ended).chain([op]);
        let alone = !matches!(core.main, Main::Vector(_)) && running().all(plain);
        let ops: Vec<&C::Op> = running().map(|op| &op.code).collect();
        // Words of a color go in the order in which they were made, whichever queues they leave by.
        let mut colors: Vec<u8> =
            running().filter_map(|op| op.output.map(|output| output.color)).collect();
        colors.sort_unstable();
        let differ = colors.windows(2).all(|pair| pair[0] != pair[1]);
        track.are_apart = alone && differ && code.are_apart(&ops);
    }
}

#[cfg(test)]
mod tests {
    use super::{Act, LONG, RECENT, Scripts, Tape};

    #[test]
    fn what_pes_do_in_one_go_is_kept_once() {
        let mut tape = Tape::new(3, 1 << 20);
        let room = tape.room;
        for pe in [0, 1, 2, 0, 1, 2] {
            (0..LONG).for_each(|_| tape.push(pe, Act::Word { queue: 1 }));
        }
        tape.push(1, Act::Word { queue: 2 });
        tape.close();
        // Once by all, twice by all, and what one does beyond that.
        assert_eq!(room - tape.room, LONG + 2 * LONG + (2 * LONG + 1));
        let mut scripts = Scripts::default();
        let numbers = scripts.add_all(&tape);
        assert_eq!(numbers[0], numbers[2]);
        let acts = numbers.iter().map(|&of| scripts.scripts[of as usize].acts.len());
        assert_eq!(acts.collect::<Vec<_>>(), [2 * LONG, 2 * LONG + 1, 2 * LONG]);
    }

    #[test]
    fn no_room_is_taken_by_what_nobody_does_any_more() {
        let count = 2 * RECENT;
        let mut tape = Tape::new(count, 1 << 20);
        let room = tape.room;
        let mut go = |pes: std::ops::Range<usize>, queue: usize, acts: usize| {
            for pe in pes {
                let queue = (queue + pe) as u8;
                (0..acts).for_each(|_| tape.push(pe as u32, Act::Word { queue }));
            }
            room - tape.room
        };
        // Each does something else, and then something more.
        assert_eq!(go(0..count, 0, LONG), count * LONG);
        let kept = go(0..count, 0, 2 * LONG) - count * 3 * LONG;
        assert!(kept <= RECENT * LONG, "{kept}");
        // Where there is no room to go on alone the tape is of no use.
        let mut tape = Tape::new(2, 0);
        tape.room = 3 * LONG;
        for pe in [0, 1, 0, 1] {
            assert!(!tape.is_spoilt);
            (0..LONG).for_each(|_| tape.push(pe, Act::Word { queue: 1 }));
        }
        assert!(tape.is_spoilt);
    }
}
