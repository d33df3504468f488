//! Words that go from a pipe through the input queue behind it at once, since the task that takes them is
//! known, and when.
//!
//! Invariant: what is left is what as many calls of [`Pipe::queue_one`] and [`Pipe::leave_queue`] leave.

use super::{Packet, Pipe};
use crate::fabric::ring::NEVER;

impl Pipe {
    /// When a word of the first packet is at the last router, by how many stand before it.
    pub(crate) fn arrival_of(&self, before: usize) -> u64 {
        let time = |packet: &Packet| {
            let number = packet.span.base + (packet.taken + before) as u64;
            packet.span.bent(&self.bends, number).max(self.kept_until(number))
        };
        self.packets.front().map_or(0, time)
    }

    /// When all words of the first packet are at the last router: what was believed of the last one when they were
    /// sent may be behind a bend, and before one.
    pub(crate) fn all_arrived(&self) -> u64 {
        let Some(packet) = self.packets.front() else { return NEVER };
        let left = packet.words.len().saturating_sub(packet.taken + 1);
        let first = packet.span.base + packet.taken as u64;
        let bends = self.bends.iter().filter_map(|bend| bend.number.checked_sub(first));
        let bent = bends.filter(|&before| before < left as u64);
        let bent = bent.fold(0, |all, before| all.max(self.arrival_of(before as usize)));
        packet.span.last.max(self.arrival_of(left)).max(bent)
    }

    /// The first `count` words, which are of one packet, go through the input queue: the first in cycle `t`, each of
    /// the others `period` cycles later, at a visit in cycle `now`. The cycle in which the source is to be told, and
    /// the buffer if nothing is left in it.
    pub(crate) fn pass(
        &mut self,
        count: u32,
        (t, period): (u64, u64),
        now: u64,
    ) -> (u64, Option<Vec<u32>>) {
        let told = self.told_with(count);
        let (buffer, others) = (self.leave(count as usize), count - 1);
        self.queued += count;
        self.leave_queue(t, now);
        self.queued -= others;
        self.open = self.open.saturating_sub(others);
        let last = t + u64::from(others) * period;
        self.taken.count += u64::from(others);
        self.taken.last = self.taken.last.max(last);
        (t + u64::from(told - 1) * period, buffer)
    }
}
