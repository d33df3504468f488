//! Links that several pipes use: what is on each, and how it slows stretches down.

use super::Load;
use crate::pe::code::Code;
use crate::pe::share::WHOLE;
use crate::sched::region::Region;

impl<C: Code> Region<C> {
    /// Before which cycle `count` words that leave from cycle `t` on cannot all have passed the
    /// busiest link of a pipe, beside the words of others.
    pub(super) fn slowed(&mut self, id: u32, (t, count): (u64, u64)) -> u64 {
        let mut floor = 0;
        if count == 1 {
            return floor;
        }
        for &link in self.pipes[id as usize].shared() {
            let users = &mut self.loads[link as usize];
            users.retain(|user| user.pipe != id && user.until > t);
            let used = users.iter().map(|user| user.rate).sum::<u64>();
            let last = users.iter().map(|user| user.until).max().unwrap_or(t);
            let share = WHOLE / (users.len() as u64 + 1);
            let free = WHOLE.saturating_sub(used).max(share);
            // Elements that pass beside the others; the rest goes alone.
            let beside = ((last - t) * free / WHOLE).min(count - 1);
            floor = floor.max(t + beside * WHOLE / free + (count - 1 - beside));
        }
        floor
    }

    /// Words of a pipe are on its links until a cycle, at a rate.
    pub(in crate::pe) fn load(&mut self, id: u32, until: u64, rate: u64) {
        for &link in self.pipes[id as usize].shared() {
            let users = &mut self.loads[link as usize];
            users.retain(|user| user.pipe != id);
            users.push(Load { pipe: id, until, rate });
        }
    }
}
