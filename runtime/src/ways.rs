//! By which ways words went, and why not by a shorter one: what `dflowc run --profile` tells.
//!
//! Invariants: each word that a core sends up its ramp, and each of the host's that enters, counts
//! once; unlike `Stats`, the counts depend on the engine, and on threads where regions meet.

use dflow_ir::mesh::Color;

/// Why words of a color go through routers one by one: the first thing on their way that is more
/// than handing on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Why {
    /// The engine knows nothing else.
    Engine,
    /// Links of the target hold more words than a channel remembers, or their places come back late.
    Links,
    /// The host sent them.
    Host,
    /// The way ends at the host, or the host sends words of the color into a router on it.
    HostLink,
    /// The program of a PE on the way may write registers of the color.
    RunTime,
    /// They are, or came behind, control wavelets or words that move a switch.
    Commands,
    /// The color has switch positions.
    Switch,
    /// The color is, or starts, in teardown.
    Teardown,
    /// A filter judges them.
    Filter,
    /// A router swaps colors.
    Swap,
    /// A route branches.
    FanOut,
    /// A router takes the color from several sides, or not from theirs.
    Senders,
    /// Another color may use a link of the way.
    SharedLink,
    /// The way leads into the region of another thread.
    Region,
    /// The way leads out of the rectangle, or to a PE that has no program.
    Outside,
    /// A router on the way does not know the color.
    Unknown,
    /// Words before them were still in routers.
    Behind,
}

impl Why {
    /// All reasons.
    pub const ALL: [Why; 17] = [
        Why::Engine,
        Why::Links,
        Why::Host,
        Why::HostLink,
        Why::RunTime,
        Why::Commands,
        Why::Switch,
        Why::Teardown,
        Why::Filter,
        Why::Swap,
        Why::FanOut,
        Why::Senders,
        Why::SharedLink,
        Why::Region,
        Why::Outside,
        Why::Unknown,
        Why::Behind,
    ];

    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Why::Engine => "engine",
            Why::Links => "long links",
            Why::Host => "from the host",
            Why::HostLink => "host link",
            Why::RunTime => "configured at run time",
            Why::Commands => "commands",
            Why::Switch => "switch",
            Why::Teardown => "teardown",
            Why::Filter => "filter",
            Why::Swap => "color swap",
            Why::FanOut => "fan-out",
            Why::Senders => "several senders",
            Why::SharedLink => "shared link",
            Why::Region => "crosses a region",
            Why::Outside => "ends outside",
            Why::Unknown => "not configured",
            Why::Behind => "behind others",
        }
    }
}

/// A way that a word went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A channel: the routers between the cores as one buffer.
    Channel,
    /// A pipe, as part of a stretch.
    Stretch,
    /// A pipe, alone.
    Single,
    /// A line to the host.
    Line,
    /// Router by router.
    Routers(Why),
}

/// Ways that are told apart.
const WAYS: usize = 4 + Why::ALL.len();

impl Way {
    fn index(self) -> usize {
        match self {
            Way::Channel => 0,
            Way::Stretch => 1,
            Way::Single => 2,
            Way::Line => 3,
            Way::Routers(why) => 4 + why as usize,
        }
    }

    /// All ways, in the order in which they are shown.
    pub fn all() -> impl Iterator<Item = Way> {
        let plain = [Way::Channel, Way::Stretch, Way::Single, Way::Line];
        plain.into_iter().chain(Why::ALL.into_iter().map(Way::Routers))
    }

    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Way::Channel => "channel",
            Way::Stretch => "pipe, in stretches",
            Way::Single => "pipe, one by one",
            Way::Line => "line",
            Way::Routers(_) => "routers",
        }
    }

    /// Why it was through routers, if it was.
    pub fn why(self) -> Option<Why> {
        match self {
            Way::Routers(why) => Some(why),
            Way::Channel | Way::Stretch | Way::Single | Way::Line => None,
        }
    }
}

/// Words by color and way, and what the `flow` engine approximated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    words: [[u64; WAYS]; Color::COUNT],
    /// The approximation.
    pub stretches: Stretches,
    /// What was done again without times.
    pub rounds: Rounds,
}

/// What was done again as it had been done, without looking at cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rounds {
    /// Rounds.
    pub count: u64,
    /// Their cycles.
    pub cycles: u64,
}

/// What went by stretches in the `flow` engine; nothing in others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stretches {
    /// Operations on queues that began.
    pub operations: u64,
    /// Of these: operations that go by stretches where they can.
    pub flowing: u64,
    /// Stretches.
    pub stretches: u64,
    /// Elements in them.
    pub elements: u64,
    /// Words that stretches took from pipes.
    pub taken: u64,
}

impl Ways {
    /// So many words of a color take a way.
    #[inline]
    pub(crate) fn count(&mut self, color: u8, way: Way, words: u64) {
        if let Some(row) = self.words.get_mut(usize::from(color)) {
            row[way.index()] += words;
        }
    }

    /// So many words of a pipe are back in their output queue.
    pub(crate) fn take_back(&mut self, color: u8, words: u64) {
        let Some(row) = self.words.get_mut(usize::from(color)) else { return };
        let single = words.min(row[Way::Single.index()]);
        row[Way::Single.index()] -= single;
        row[Way::Stretch.index()] -= words - single;
    }

    /// Counts so many times more what was counted between two looks.
    pub(crate) fn repeat(&mut self, before: &Ways, after: &Ways, times: u64) {
        // Words that are taken back were counted before.
        let again = |sum: &mut u64, before: u64, after: u64| {
            *sum = sum.wrapping_add(after.wrapping_sub(before).wrapping_mul(times));
        };
        let counts = before.words.iter().flatten().zip(after.words.iter().flatten());
        for (sum, (before, after)) in self.words.iter_mut().flatten().zip(counts) {
            again(sum, *before, *after);
        }
        let Stretches { operations, flowing, stretches, elements, taken } = &mut self.stretches;
        let (before, after) = (&before.stretches, &after.stretches);
        again(operations, before.operations, after.operations);
        again(flowing, before.flowing, after.flowing);
        again(stretches, before.stretches, after.stretches);
        again(elements, before.elements, after.elements);
        again(taken, before.taken, after.taken);
    }

    /// Adds the counts of another part of the machine.
    pub(crate) fn add(&mut self, other: &Ways) {
        let Ways {
            words,
            stretches: Stretches { operations, flowing, stretches, elements, taken },
            rounds: Rounds { count, cycles },
        } = other;
        self.rounds.count += count;
        self.rounds.cycles += cycles;
        for (sum, part) in self.words.iter_mut().flatten().zip(words.iter().flatten()) {
            *sum += part;
        }
        self.stretches.operations += operations;
        self.stretches.flowing += flowing;
        self.stretches.stretches += stretches;
        self.stretches.elements += elements;
        self.stretches.taken += taken;
    }

    /// Colors, ways and words, without those that no word took.
    pub fn rows(&self) -> impl Iterator<Item = (usize, Way, u64)> {
        let row = |(color, words): (usize, &[u64; WAYS])| {
            let counts = *words;
            Way::all().map(move |way| (color, way, counts[way.index()]))
        };
        self.words.iter().enumerate().flat_map(row).filter(|&(.., words)| words != 0)
    }

    /// All words that are counted.
    pub fn total(&self) -> u64 {
        self.rows().map(|(.., words)| words).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_has_a_place_of_its_own() {
        let mut places: Vec<usize> = Way::all().map(Way::index).collect();
        places.sort_unstable();
        assert_eq!(places, (0..WAYS).collect::<Vec<_>>());
    }

    #[test]
    fn parts_add_up_and_words_come_back() {
        let (mut one, mut other) = (Ways::default(), Ways::default());
        one.count(3, Way::Stretch, 5);
        one.count(3, Way::Single, 2);
        other.count(3, Way::Single, 1);
        other.count(7, Way::Routers(Why::FanOut), 4);
        one.add(&other);
        one.take_back(3, 4);
        let rows: Vec<_> = one.rows().collect();
        assert_eq!(rows, [(3, Way::Stretch, 4), (7, Way::Routers(Why::FanOut), 4)]);
        assert_eq!(one.total(), 8);
    }
}
