//! For tests: how often the engines have used each of its shortcuts on this thread.

use std::cell::Cell;

/// A shortcut, or a way out of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    /// A core did a cycle ahead of its region.
    Ahead,
    /// It could not, as only the region's next cycle knows what goes up its ramp.
    Unknown,
    /// It could not either, and is woken if anything does.
    Told,
    /// Cycles that a core did many ahead of its region.
    Alone,
    /// A control wavelet or a teardown came to such a core in a cycle that it had been through.
    Behind,
    /// A calm cycle.
    Calm,
    /// In one a word waited whose channel is blocked; after one that did nothing those followed in
    /// which no word was to be seen.
    Closed,
    Leapt,
    /// A core that counts was not woken by words.
    Deaf,
    /// A word of a channel went down the ramp in a cycle before the region's.
    Past,
    /// A source waited for a place in a channel.
    Wanted,
    /// A channel took links that other colors may use.
    Claimed,
    /// A channel without words gave its links up.
    GivenUp,
    /// A word came for which a channel was cut.
    Trespass,
    /// A cut found words that go up the ramp later.
    Late,
    /// A router passed words over for which nothing had changed.
    PassedOver,
    /// A visit to a router was a usual one, of one word or several; a filter had a say; a word went
    /// over several links.
    Usual,
    Ordered,
    Judged,
    Split,
    /// A core became steady, and one whose words a steady one sends.
    Steady,
    Joined,
    /// Words of a steady sender went to a core that was not.
    Fed,
    /// A steady core took words whose sender was not steady any more.
    Drained,
    /// One that was steady was woken before its end.
    Disturbed,
    /// A core took turns; whole periods of a channel were skipped; something came in another cycle than was
    /// foreseen, or an end of its turns.
    Turns,
    Skipped,
    Held,
    /// Buffers of routers that merge words came to stand side by side, and went back; a core waited for a place
    /// in one of them.
    Merged,
    Unmerged,
    MergeWaits,
    /// A word of the host flew over routers; some were put into routers on their way.
    Flown,
    Landed,
    /// A machine did again what it had done; a round of that; one came to something else; PEs waited for each
    /// other, and handed on what they had; a pipe of `flow` led into another region; code went on past an
    /// operation; words stood where a way forks later.
    Rounds,
    Round,
    Apart,
    ByWords,
    RoundAbroad,
    RoundPast,
    /// An operation did all its elements at once; words were made behind others that wait in the queue; an operation
    /// started as when the round was taped.
    AtOnce,
    MadeBehind,
    RoundSame,
    RoundForked,
    /// Words of several senders came to a queue in the order of switches; a sender's went to several queues in turn.
    RoundJoined,
    RoundInTurn,
    /// Words were in a channel when rounds began.
    RoundInChannel,
    /// A machine was compared before it was taped: it did again what it had done, or not.
    Compared,
    Unlike,
    /// `flow`, which random machines do not reach: words of an operation leapt to the host as a packet; some
    /// stood before them.
    Onward,
    Before,
    /// A word that waits for its turn on a line began ahead; words of the host went to a core as a packet; the host was
    /// told of words ahead.
    Waiting,
    Packet,
    ToldAhead,
    /// Words started tasks one after the other; some together; one of these came to something else.
    Heard,
    HeardAlike,
    HeardOther,
    /// `flow`: words went into another region by a pipe, their times changed, or the pace of them, and
    /// the sender was told what was taken.
    Abroad,
    Retimed,
    Bent,
    Taken,
    /// Words of such a pipe were put where they stand.
    Settled,
    /// An operation waited for more places than there were, and in vain.
    Patient,
    InVain,
    /// One waited beside others until its words have places.
    Placeless,
    /// Words for several cores went by pipes; some were put where they stand.
    Multicast,
    MulticastSettled,
    /// Words of a pipe were put into routers, as commands follow them.
    Spilled,
}

/// All of them.
pub(crate) const ALL: [Reached; 67] = [
    Reached::Ahead,
    Reached::Unknown,
    Reached::Told,
    Reached::Alone,
    Reached::Behind,
    Reached::Calm,
    Reached::Closed,
    Reached::Leapt,
    Reached::Deaf,
    Reached::Past,
    Reached::Wanted,
    Reached::Claimed,
    Reached::GivenUp,
    Reached::Trespass,
    Reached::Late,
    Reached::PassedOver,
    Reached::Usual,
    Reached::Ordered,
    Reached::Judged,
    Reached::Split,
    Reached::Steady,
    Reached::Joined,
    Reached::Fed,
    Reached::Drained,
    Reached::Disturbed,
    Reached::Turns,
    Reached::Skipped,
    Reached::Held,
    Reached::Merged,
    Reached::Unmerged,
    Reached::MergeWaits,
    Reached::Flown,
    Reached::Landed,
    Reached::Rounds,
    Reached::Round,
    Reached::Apart,
    Reached::ByWords,
    Reached::RoundAbroad,
    Reached::RoundPast,
    Reached::AtOnce,
    Reached::MadeBehind,
    Reached::RoundSame,
    Reached::RoundForked,
    Reached::RoundJoined,
    Reached::RoundInTurn,
    Reached::RoundInChannel,
    Reached::Compared,
    Reached::Unlike,
    Reached::Onward,
    Reached::Before,
    Reached::Waiting,
    Reached::Packet,
    Reached::ToldAhead,
    Reached::Heard,
    Reached::HeardAlike,
    Reached::HeardOther,
    Reached::Abroad,
    Reached::Retimed,
    Reached::Bent,
    Reached::Taken,
    Reached::Settled,
    Reached::Patient,
    Reached::InVain,
    Reached::Placeless,
    Reached::Multicast,
    Reached::MulticastSettled,
    Reached::Spilled,
];

/// Those of rounds.
pub(crate) const OF_ROUNDS: &[Reached] = {
    const LIST: &[Reached] = &ALL;
    let to = LIST.split_at(Reached::Onward as usize).0;
    to.split_at(Reached::Rounds as usize).1
};

/// Those of `flow`, the last ones.
pub(crate) const OF_FLOW: &[Reached] = {
    const LIST: &[Reached] = &ALL;
    LIST.split_at(Reached::Abroad as usize).1
};

thread_local! {
    static COUNTS: Cell<[u64; ALL.len()]> = const { Cell::new([0; ALL.len()]) };
}

/// A shortcut is used.
pub(crate) fn note(what: Reached) {
    let mut counts = COUNTS.get();
    counts[what as usize] += 1;
    COUNTS.set(counts);
}

/// How often it was.
pub(crate) fn count(what: Reached) -> u64 {
    COUNTS.get()[what as usize]
}
