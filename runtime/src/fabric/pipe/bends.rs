//! Words of a stretch whose times change while it lasts.

use super::{Bend, NEVER, Pipe};

impl Pipe {
    /// The stretch that ended before word `number` ends in cycle `end`.
    pub(crate) fn retime(&mut self, number: u64, end: u64) {
        if self.sent.end() != number {
            return;
        }
        self.first.set(NEVER);
        self.sent.last = (end + self.transit).max(self.sent.first);
        if let Some(packet) = self.packets.back_mut().filter(|it| it.span.end() == number) {
            // That a single word that has joined others waits for a place is not modeled.
            let joined = self.sent.count == 1 && packet.span.count > 1;
            packet.span.last = if joined { self.sent.first } else { self.sent.last };
        }
    }

    /// The stretch that ends before word `number` has not begun, and does not before cycle `begin`.
    fn begin_later(&mut self, number: u64, begin: u64) {
        if self.sent.end() != number {
            return;
        }
        self.first.set(NEVER);
        self.sent.first = self.sent.first.max(begin + self.transit);
        self.sent.last = self.sent.last.max(self.sent.first);
        let Some(packet) = self.packets.back_mut().filter(|it| it.span.end() == number) else {
            return;
        };
        if packet.span.base == self.sent.base {
            packet.span = self.sent;
        } else if self.sent.count == 1 {
            packet.span.last = self.sent.first;
        }
    }

    /// Of the words before `number`, which an operation sends, all but `left` have left it by cycle
    /// `t`, and it does not go on as before: it stands still up to cycle `then`.
    pub(crate) fn bend(&mut self, number: u64, left: u64, t: u64, then: u64) {
        if left != 0 && number == self.sent.base + left {
            return self.begin_later(number, then + 1);
        }
        self.first.set(NEVER);
        let last = number.saturating_sub(left + 1);
        if self.sent.end() != number || last < self.sent.base || left == 0 {
            return;
        }
        // What was believed of words that have not left.
        while self.bends.last().is_some_and(|bend| bend.number > last) {
            self.bends.pop();
        }
        let known = self.bends.last().map_or(self.sent.base, |bend| bend.number);
        let stood = known == last || last == self.sent.base;
        if !stood {
            self.bends.push(Bend { number: last, time: t + self.transit });
        }
        if left > 1 && (stood || then > t) {
            self.bends.push(Bend { number: last + 1, time: then + 1 + self.transit });
        }
    }
}
