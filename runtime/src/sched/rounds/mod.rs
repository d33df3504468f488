//! Rounds: what a machine does again and again is done without times.
//!
//! A machine whose state in time ([`image`]) is what it was some cycles ago does in as many cycles what
//! it did in those, as long as its code comes to the same. When a PE has done the same often enough
//! ([`refrain`]), the machine is stopped, its state is noted, and what all PEs do in the next round is
//! taped ([`tape`]). If the state after it is what it was before, further rounds are done as a network of
//! processes ([`network`]): code runs, operations do their elements, words go from one to the other in
//! their order, and nothing else; each thread does the PEs of some regions ([`part`], [`meeting`]).
//! Where switches turn in a round, a router is such a process too, and which ways words go is found once ([`switched`]).
//! All that happens in a round happens as many cycles later as rounds have passed; counters grow by what
//! they grew in the first.
//!
//! Regions of the `flow` engine know a little later what others have done, so rounds begin in a cycle in which all
//! do. Where operations are ahead of their cycles there the state says so, and what they have done is on the tape.
//!
//! Invariant: cycles, values and counters are those of the engine that runs without rounds.

mod hand;
mod image;
mod meeting;
mod network;
mod outcome;
mod part;
mod refrain;
mod switched;
mod tape;
mod ways;

pub(crate) use image::Noter;
pub(crate) use refrain::Refrain;
pub(crate) use tape::Tape;

use self::image::{Counters, Image};
use self::network::Network;
use super::plan::Plan;
use super::region::Region;
use super::run::{Run, Told};
use crate::pe::code::Code;
use crate::profile::Work;
use crate::stats::Stats;
use crate::ways::Ways;

/// Rounds that a run must have left for them to be looked for: one to compare, one to tape, one to do.
const LEAST: u64 = 3;

/// Cycles of a round in which it is tried to begin one.
const LOOKS: u64 = 1 << 8;

/// The state, what is kept of it and the tapes have such a part each of the memory that a run may have.
const PARTS: u64 = 3;

/// Times the state that the tapes of rounds may take that have not been compared.
const LIGHT: u64 = 2;

/// The counters of a region.
struct Counted {
    stats: Stats,
    ways: Ways,
    odd: u64,
    /// Words of the host's streams that have come to rest.
    rested: u64,
}

impl Counted {
    fn of<C: Code>(region: &Region<C>) -> Counted {
        let odd = region.odd.values().map(|times| times.count).sum();
        let rested = region.watch.rested.values().sum();
        Counted { stats: region.stats, ways: (*region.ways).clone(), odd, rested }
    }
}

/// Whether a round changes nothing but values, seen from its counters.
fn is_plain(before: &Counted, after: &Counted) -> bool {
    let told = |it: &Counted| {
        let Stats { dropped_controls, filtered, entered, to_host, gone, touched, .. } = it.stats;
        (dropped_controls, filtered, entered, to_host, gone, touched, it.odd, it.rested)
    };
    told(before) == told(after)
}

/// Listens for repetitions in all regions.
pub(crate) fn listen<C: Code>(regions: &mut [Region<C>]) {
    for region in regions {
        let count = region.cores.len();
        region.refrain.get_or_insert_with(|| Box::new(Refrain::new(count)));
    }
}

/// The run has stopped since a PE has done the same twice, before cycle [`Run::stop`] as it was; `advance`
/// runs all regions up to a cycle. Does as many rounds as there are, if the whole machine repeats.
pub(crate) fn repeat<C: Code>(
    run: &Run<'_, C>,
    regions: &mut [Region<C>],
    begin: u64,
    threads: usize,
    advance: &mut dyn FnMut(&mut [Region<C>], u64) -> bool,
) {
    let mut refrains: Vec<Refrain> =
        regions.iter_mut().filter_map(|region| region.refrain.take()).map(|it| *it).collect();
    let found = refrains.iter().find_map(Refrain::found);
    let Some(found) = found else { return };
    let Some(begin) = time_to_begin(run.plan, regions, begin, found.cycles, advance) else {
        return;
    };
    let end = begin + found.cycles;
    // What is kept of the state takes as much memory once more.
    let bytes: u64 = regions.iter().map(|region| region.bytes).sum();
    let fits = bytes <= run.limits.memory / PARTS;
    let fits = fits && run.end().checked_sub(end).is_some_and(|left| left >= LEAST * found.cycles);
    let mut span = fits.then_some((begin, end));
    let is_compared = refrains.iter().any(Refrain::doubts);
    if is_compared {
        span = span.and_then(|span| repeats(run, regions, span, advance));
    }
    let taped = run.limits.memory / PARTS / regions.len() as u64;
    // Taping rounds of many tasks takes much of a computer's caches: not before they are known to come again.
    let taped = if is_compared { taped } else { taped.min(LIGHT * bytes / regions.len() as u64) };
    let done = span.map_or(0, |span| rounds(run, regions, span, (threads, taped), advance));
    for (region, mut refrain) in regions.iter_mut().zip(refrains.drain(..)) {
        if done == 0 {
            refrain.was_in_vain(found);
        }
        refrain.forget();
        region.refrain = Some(Box::new(refrain));
    }
}

/// Runs on until all regions know what others have done, within the cycles of a round; where there are switches first until
/// no router holds words either, if there is such a time: it is known then which way each word will go.
fn time_to_begin<C: Code>(
    plan: &Plan,
    regions: &mut [Region<C>],
    mut begin: u64,
    cycles: u64,
    advance: &mut dyn FnMut(&mut [Region<C>], u64) -> bool,
) -> Option<u64> {
    let tries: &[fn(&Region<C>) -> bool] =
        if plan.has_switches() { &[Region::is_still, Region::is_told] } else { &[Region::is_told] };
    for is_fit in tries {
        let over = begin + cycles;
        while begin < over {
            if regions.iter().all(is_fit) {
                return Some(begin);
            }
            begin += cycles.div_ceil(LOOKS);
            if !advance(regions, begin) {
                return None;
            }
        }
    }
    Some(begin)
}

/// Runs on by a round, from a cycle to another; the next round, if the state is what it was then. Taping takes
/// longer than that, and is not done over and over for machines of which one PE repeats but not all.
fn repeats<C: Code>(
    run: &Run<'_, C>,
    regions: &mut [Region<C>],
    (begin, end): (u64, u64),
    advance: &mut dyn FnMut(&mut [Region<C>], u64) -> bool,
) -> Option<(u64, u64)> {
    regions.iter_mut().for_each(|region| region.count_until(begin));
    let (before, _) = Image::of(run.code, regions, begin)?;
    if !advance(regions, end) {
        return None;
    }
    regions.iter_mut().for_each(|region| region.count_until(end));
    let (image, _) = Image::of(run.code, regions, end)?;
    let alike = image.is_like(&before, end - begin);
    #[cfg(test)]
    super::reached::note(match alike {
        true => super::reached::Reached::Compared,
        false => super::reached::Reached::Unlike,
    });
    alike.then_some((end, end + (end - begin)))
}

/// Tapes a round, each region on so many bytes at most, and does as many as there are; how many that were.
fn rounds<C: Code>(
    run: &Run<'_, C>,
    regions: &mut [Region<C>],
    (begin, end): (u64, u64),
    (threads, bytes): (usize, u64),
    advance: &mut dyn FnMut(&mut [Region<C>], u64) -> bool,
) -> u64 {
    regions.iter_mut().for_each(|region| region.count_until(begin));
    let Some((before, first)) = Image::of(run.code, regions, begin) else { return 0 };
    let counted: Vec<Counted> = regions.iter().map(Counted::of).collect();
    for region in regions.iter_mut() {
        region.tape = Some(Box::new(Tape::new(region.cores.len(), bytes)));
    }
    let arrived = advance(regions, end);
    let mut tapes = Vec::new();
    for region in regions.iter_mut() {
        let mut tape = *region.tape.take().unwrap_or_default();
        tape.close();
        tapes.push(tape);
    }
    if !arrived || tapes.iter().any(|tape| tape.is_spoilt) {
        return 0;
    }
    regions.iter_mut().for_each(|region| region.count_until(end));
    let after: Vec<Counted> = regions.iter().map(Counted::of).collect();
    let Some((image, counters)) = Image::of(run.code, regions, end) else { return 0 };
    let plain = counted.iter().zip(&after).all(|(before, after)| is_plain(before, after));
    if !plain || !image.is_like(&before, end - begin) {
        return 0;
    }
    let cycles = end - begin;
    let most = (run.end() - end) / cycles;
    let Some(mut network) = Network::new(run.plan, run.code, regions, tapes, threads) else {
        return 0;
    };
    #[cfg(test)]
    super::reached::note(super::reached::Reached::Rounds);
    let slots = |counted: &[Counted]| counted.iter().map(|it| it.stats.slots).sum::<u64>();
    let (used, each) = (slots(&after), slots(&after) - slots(&counted));
    let rounds = network.play(run, regions, most, &|rounds| {
        run.have_used(used + rounds * each);
        run.check(end + rounds * cycles, Told::default());
        !run.aborted()
    });
    run.at(Work::Cores);
    network.end(regions);
    let by = rounds * cycles;
    let grown: Counters = first.iter().zip(&counters).map(|(a, b)| b.wrapping_sub(*a)).collect();
    let mut grown = grown.into_iter().map(|count| count.wrapping_mul(rounds));
    for ((region, before), after) in regions.iter_mut().zip(&counted).zip(&after) {
        region.put_off(by, &mut grown);
        region.stats.repeat(&before.stats, &after.stats, rounds);
        region.ways.repeat(&before.ways, &after.ways, rounds);
    }
    if let Some(region) = regions.first_mut() {
        region.ways.rounds.count += rounds;
        region.ways.rounds.cycles += by;
    }
    rounds
}

impl<C: Code> Region<C> {
    /// Counts all slots before cycle `t` in which main threads counted while nobody looked.
    fn count_until(&mut self, t: u64) {
        for pe in 0..self.cores.len() {
            let Some(mut core) = self.cores[pe].take() else { continue };
            self.settle_until(&mut core, t);
            self.cores[pe] = Some(core);
        }
    }

    /// All is as it is, so many cycles later; counters are taken in the order in which they were noted.
    fn put_off(&mut self, by: u64, counters: &mut impl Iterator<Item = u64>) {
        self.now += by;
        self.active_until += by;
        self.wakes.put_off(by);
        for (router, core) in self.routers.iter_mut().zip(&mut self.cores) {
            if let Some(router) = router {
                router.put_off(by, counters);
            }
            if let Some(core) = core {
                core.put_off(self.flow, by, counters);
            }
        }
        self.channels.iter_mut().for_each(|channel| channel.put_off(by));
        self.landings.iter_mut().for_each(|landing| landing.put_off(by));
        self.pipes.iter_mut().for_each(|pipe| pipe.put_off(by));
        self.loads.iter_mut().flatten().for_each(|user| user.put_off(by));
        self.leaps.put_off(by);
    }
}
