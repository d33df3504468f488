//! Up the ramp: R11.

use super::code::Code;
use super::core::{Core, Outgoing, bits};
use super::visit::Visit;
use crate::fabric::channel::Outlet;
use crate::fabric::ring::{NEVER, Slot};
use crate::fabric::router::RAMP;
use crate::sched::plan::Plan;
use crate::sched::region::Region;
use crate::ways::{Way, Why};

/// Whether it is known what goes up the ramp in a cycle ahead of the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Yes,
    /// There was no place in the cycle before; if there is one now, whoever makes it wakes the core.
    WhenTold,
    /// The region has to be there first.
    No,
}

/// What goes up the ramp in a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Departure {
    /// The head of an output queue.
    Of(usize),
    Nothing,
    /// That is not known.
    Unknown(Known),
}

impl<C: Code> Region<C> {
    /// R11: one word up the ramp, if that is known.
    #[inline]
    pub(super) fn ascend(&mut self, at: &Visit<'_, C>, core: &mut Core<C>) -> Known {
        if core.leaving == 0 {
            return Known::Yes;
        }
        if core.watched.is_some() {
            core.note_waiting(at.t);
        }
        if at.t < core.departs {
            return Known::Yes;
        }
        self.ascend_now(at, core)
    }

    /// Likewise, where it is not known that none does.
    #[inline(never)]
    fn ascend_now(&mut self, at: &Visit<'_, C>, core: &mut Core<C>) -> Known {
        if core.leaving.is_power_of_two()
            && !self.flow
            && let Some(known) = self.ascend_alone(at, core, core.leaving.trailing_zeros() as usize)
        {
            return known;
        }
        match self.first_leaves(at, core) {
            Some((queue, Outlet::Channel(id))) => {
                let word = self.leave_queue(core, queue, at.t);
                self.ways.count(word.color, Way::Channel, 1);
                self.enter_channel(at, id, word);
            }
            Some((queue, _)) => self.ascend_somewhere(at, core, queue),
            None => match self.departure(at, core) {
                Departure::Of(queue) => self.ascend_somewhere(at, core, queue),
                Departure::Nothing => {}
                Departure::Unknown(known) => return known,
            },
        }
        Known::Yes
    }

    /// Likewise, of the only queue that holds words, if these go to the PE's own router (`exact`).
    #[inline]
    fn ascend_alone(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        queue: usize,
    ) -> Option<Known> {
        let Outgoing { ring, held, .. } = &core.outputs[queue];
        let (first, held, color) = (ring.first(), *held, ring.head()?.color);
        let Outlet::Routers(why) = core.outlet(color) else { return None };
        if held >= at.t || first > at.t {
            core.departs = held + 1;
            if held < at.t {
                core.departs = first;
                self.wakes.core(at.pe, first);
            }
            return Some(Known::Yes);
        }
        let free = self.free_in_router(at.pe, color);
        if free <= at.t {
            let word = self.leave_queue(core, queue, at.t);
            self.ways.count(color, Way::Routers(why), 1);
            self.enter_router(at, word);
            return Some(Known::Yes);
        }
        // Its router has been through the region's cycle, and tells of a place that it makes later.
        let known = at.now + at.plan.timing.credit;
        if free != NEVER {
            core.departs = free;
            self.wakes.core(at.pe, free);
        } else if at.t > known {
            return Some(if at.t == known + 1 { Known::WhenTold } else { Known::No });
        } else {
            core.outputs[queue].held = known;
            core.departs = known + 1;
        }
        if let Some(watch) = &mut core.watched {
            watch.note_wait(queue);
        }
        Some(Known::Yes)
    }

    /// The output queue that sends its head, and where that goes, if it is known at a glance: into a
    /// channel or into the PE's own router.
    #[inline]
    fn first_leaves(&self, at: &Visit<'_, C>, core: &Core<C>) -> Option<(usize, Outlet)> {
        let (mut left, mut oldest, mut queue) = (core.leaving, NEVER, 0);
        while left != 0 {
            let one = left.trailing_zeros() as usize;
            left &= left - 1;
            let Outgoing { ring, held, .. } = &core.outputs[one];
            let stamp = ring.first();
            if stamp < oldest && *held < at.t {
                (oldest, queue) = (stamp, one);
            }
        }
        if oldest > at.t {
            return None;
        }
        let color = core.outputs[queue].ring.head()?.color;
        let outlet = core.outlet(color);
        let leaves = match outlet {
            Outlet::Channel(id) => {
                let channel = &self.channels[id as usize];
                channel.free_from() <= at.t && !channel.is_shared()
            }
            Outlet::Routers(_) => self.free_in_router(at.pe, color) <= at.t,
            Outlet::Merged(sender) => self.merges.free_from(sender) <= at.t,
            Outlet::Unknown | Outlet::Pipe(_) | Outlet::Closing(_) | Outlet::Gathered(_) => false,
        };
        leaves.then_some((queue, outlet))
    }

    /// From which cycle the router of a PE has a place for a word of a color that goes up the ramp.
    #[inline]
    fn free_in_router(&self, pe: u32, color: u8) -> u64 {
        let router = self.routers[pe as usize].as_deref();
        router.map_or(0, |router| router.free_from(color, RAMP))
    }

    /// A word goes up the ramp into a channel that has a place.
    #[inline]
    fn enter_channel(&mut self, at: &Visit<'_, C>, id: u32, word: Slot) {
        let channel = &mut self.channels[id as usize];
        let is_first = channel.push(word, at.t);
        if channel.rhythm.is_some() {
            self.hold(id, at.t);
        } else if is_first {
            self.announce(at.plan, id, at.pe);
        }
    }

    /// The head of an output queue leaves it.
    #[inline]
    pub(crate) fn leave_queue(&mut self, core: &mut Core<C>, queue: usize, t: u64) -> Slot {
        core.acted.acted = true;
        if let Some(watch) = &mut core.watched {
            watch.up(t, queue);
        }
        self.stats.sent += 1;
        let Outgoing { ring, sent, .. } = &mut core.outputs[queue];
        let word = ring.pop(t + 1);
        if let Some(sent) = sent {
            sent.words += u64::from(sent.color == word.color);
        }
        core.leaving &= !(u64::from(ring.is_empty()) << queue);
        core.full &= !(1 << queue);
        word
    }

    /// A queue's head goes up the ramp, wherever its way leads.
    #[inline(never)]
    fn ascend_somewhere(&mut self, at: &Visit<'_, C>, core: &mut Core<C>, queue: usize) {
        let (plan, t) = (at.plan, at.t);
        let word = self.leave_queue(core, queue, t);
        let outlet = core.outlet(word.color);
        self.ways.count(word.color, way(outlet), 1);
        match outlet {
            Outlet::Channel(id) => self.enter_channel(at, id, word),
            Outlet::Pipe(id) => {
                let mut words = self.buffers.pop().unwrap_or_default();
                words.push(word.payload);
                self.send_words(plan, id, (t - 1, t - 1), words);
            }
            Outlet::Gathered(sender) => self.send_gathered(&plan.timing, sender, word, t),
            Outlet::Merged(sender) => self.send_merged(&plan.timing, sender, word, t),
            Outlet::Unknown | Outlet::Routers(_) | Outlet::Closing(_) => {
                self.enter_router(at, word);
            }
        }
    }

    /// A word that has left its queue goes to the PE's own router.
    #[inline]
    fn enter_router(&mut self, at: &Visit<'_, C>, word: Slot) {
        let (plan, pe) = (at.plan, at.pe);
        let word = Slot { stamp: at.t + plan.timing.ramp_up, ..word };
        let places = plan.timing.ramp_places;
        if self.router(plan, pe).push(plan, word.color, RAMP, places, word) {
            self.wakes.router(pe, word.stamp);
        }
        self.trespass(plan, pe, word.color);
    }

    /// What goes up the ramp in the visit's cycle; a look is arranged for when a word could, if
    /// none can now.
    fn departure(&mut self, at: &Visit<'_, C>, core: &mut Core<C>) -> Departure {
        let (mut left, mut later) = (core.leaving, NEVER);
        while left != 0 {
            // The oldest head of those of which it is not known that they find no place.
            let (mut oldest, mut queue) = (NEVER, 0);
            for one in bits(left) {
                let Outgoing { ring, held, .. } = &core.outputs[one];
                if ring.first() < oldest && *held < at.t {
                    (oldest, queue) = (ring.first(), one);
                }
            }
            if oldest > at.t {
                later = later.min(oldest);
                break;
            }
            let Some((free, known)) = self.free_ramp(at, core, queue) else {
                return Departure::Unknown(Known::No);
            };
            if free <= at.t {
                return Departure::Of(queue);
            }
            if free == NEVER {
                if at.t > known {
                    let tells = at.t == known + 1 && core.waits_with(queue, at.t) && !self.flow;
                    return Departure::Unknown(if tells { Known::WhenTold } else { Known::No });
                }
                // Whoever makes a place tells.
                core.outputs[queue].held = known;
            }
            if let Some(watch) = &mut core.watched {
                watch.note_wait(queue);
            }
            left &= !(1 << queue);
            later = later.min(free);
        }
        if later != NEVER {
            self.wakes.core(at.pe, later);
        }
        if !self.flow {
            core.departs = later.min(core.held_until(at.t) + 1);
        }
        Departure::Nothing
    }

    /// Where a color's words lead that leave by a queue.
    #[inline]
    pub(super) fn known_outlet(
        &mut self,
        plan: &Plan,
        core: &mut Core<C>,
        pe: u32,
        color: u8,
        queue: usize,
    ) -> Outlet {
        match core.outlet(color) {
            Outlet::Unknown => self.find_outlet(plan, core, pe, (color, queue)),
            outlet => outlet,
        }
    }

    #[inline(never)]
    fn find_outlet(
        &mut self,
        plan: &Plan,
        core: &mut Core<C>,
        pe: u32,
        (color, queue): (u8, usize),
    ) -> Outlet {
        let program = &plan.programs[usize::from(core.at.program)];
        let depth = program.outputs[queue].places;
        let outlet = self.outlet(plan, core, pe, (color, depth));
        *core.outlets.entry(color.into()) = outlet;
        outlet
    }

    /// From which cycle the head of an output queue may go up the ramp, and up to which cycle that
    /// is sure; none if its way is not known yet.
    fn free_ramp(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        queue: usize,
    ) -> Option<(u64, u64)> {
        let color = core.outputs[queue].ring.head()?.color;
        let mut outlet = core.outlet(color);
        let to_routers = matches!(outlet, Outlet::Routers(_));
        if at.t > at.now && (outlet == Outlet::Unknown || self.flow && !to_routers) {
            return None;
        }
        if outlet == Outlet::Unknown {
            outlet = self.known_outlet(at.plan, core, at.pe, color, queue);
        }
        if let Outlet::Gathered(sender) = outlet {
            if let Some(free) = self.gathers_from(&at.plan.timing, sender) {
                return Some((free, at.t));
            }
            // What went by the line is out of it.
            outlet = Outlet::Routers(Why::Commands);
            *core.outlets.entry(color.into()) = outlet;
        }
        if let Outlet::Closing(id) = outlet
            && self.is_way_used(id)
            && let Err(again) = self.spill(at, core, (queue, id))
        {
            self.each_pipe(id, |pipe| pipe.want(0));
            return Some((again, at.t));
        }
        // Its own router has been through the region's cycle, that at the end of a channel may not.
        let next = at.now + at.plan.timing.credit;
        Some(match outlet {
            Outlet::Pipe(id) => match self.climbs_from(id) {
                Some(free) => (free, at.t),
                None => {
                    self.each_pipe(id, |pipe| pipe.want(0));
                    (NEVER, at.t)
                }
            },
            Outlet::Channel(id) => {
                let mut known = NEVER;
                if self.channels[id as usize].free_from() == NEVER {
                    known = self.want(at.plan, at.code, id);
                }
                let channel = &self.channels[id as usize];
                let free = channel.free_from();
                if free != NEVER && at.t > next && channel.may_be_held(&at.plan.timing) {
                    return None;
                }
                (free, known)
            }
            Outlet::Merged(sender) => (self.free_to_merge(at.plan, sender), next),
            Outlet::Routers(_) | Outlet::Unknown | Outlet::Closing(_) | Outlet::Gathered(_) => {
                (self.free_in_router(at.pe, color), next)
            }
        })
    }
}

impl<C: Code> Core<C> {
    /// Other places than before are those that its words wait for.
    pub(crate) fn look_for_places(&mut self) {
        self.departs = 0;
        for queue in bits(self.leaving) {
            self.outputs[queue].held = 0;
        }
    }

    /// Heads of which it is known before a cycle that they find no place in it are among those that wait.
    fn note_waiting(&mut self, t: u64) {
        let Some(watch) = &mut self.watched else { return };
        for queue in bits(self.leaving) {
            let Outgoing { ring, held, .. } = &self.outputs[queue];
            if ring.first() <= t && (*held >= t || t < self.departs) {
                watch.note_wait(queue);
            }
        }
    }

    /// Whether whoever makes a place tells for all other heads too.
    fn waits_with(&self, queue: usize, t: u64) -> bool {
        bits(self.leaving & !(1 << queue)).all(|other| self.outputs[other].held >= t)
    }

    /// Up to which cycle the heads find no place of which that is known in cycle `t`.
    fn held_until(&self, t: u64) -> u64 {
        let held = bits(self.leaving).map(|queue| self.outputs[queue].held);
        held.filter(|&held| held >= t).min().unwrap_or(NEVER - 1)
    }
}

/// The way that a single word takes.
pub(super) fn way(outlet: Outlet) -> Way {
    match outlet {
        Outlet::Channel(_) => Way::Channel,
        Outlet::Pipe(_) => Way::Single,
        Outlet::Gathered(_) | Outlet::Merged(_) => Way::Line,
        Outlet::Routers(why) => Way::Routers(why),
        Outlet::Closing(_) => Way::Routers(Why::Commands),
        Outlet::Unknown => Way::Routers(Why::Behind),
    }
}
