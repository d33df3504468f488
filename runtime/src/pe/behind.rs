//! Operations behind words that stand in their output queue, in the `flow` engine.
//!
//! Places of a pipe are those of the output queue, too. So where a stretch has filled the others its last words stand in
//! that queue, and are in the way of what goes there element by element; and what goes there so stands before a stretch.

use super::code::Code;
use super::core::{Core, Outgoing, bits};
use super::main::Main;
use super::op::{Op, Output};
use super::visit::Visit;
use crate::fabric::channel::Outlet;
use crate::sched::region::Region;

impl<C: Code> Region<C> {
    /// Operations that wait for words which stand before theirs, and for which there is no place and nobody is known to
    /// make one, go element by element as long as these stand there: there may be places left in the queue.
    pub(super) fn flow_behind(&mut self, at: &Visit<'_, C>, core: &mut Core<C>) {
        for queue in bits(core.leaving & core.flowing_out & !core.full) {
            let Outgoing { ring, held, .. } = &core.outputs[queue];
            let outlet = ring.head().map_or(Outlet::Unknown, |head| core.outlet(head.color));
            let stands = match outlet {
                Outlet::Pipe(id) => self.climbs_from(id).is_none(),
                Outlet::Unknown
                | Outlet::Routers(_)
                | Outlet::Channel(_)
                | Outlet::Closing(_)
                | Outlet::Gathered(_)
                | Outlet::Merged(_) => *held >= at.t,
            };
            if !stands {
                continue;
            }
            let stops = |op: &Op<C::Op>| {
                let is_its = op.needs.output >> queue & 1 != 0;
                op.flows && is_its && !op.stretch.is_on() && op.from <= at.t
            };
            self.change(core, stops, |region, core, op| {
                region.flow_no_more(at, core, op);
                op.held_up = true;
            });
        }
    }

    /// Those before whose words none stand any more go by stretches again.
    fn flow_again(&mut self, at: &Visit<'_, C>, core: &mut Core<C>) {
        let leaving = core.leaving;
        let goes_on =
            |op: &Op<C::Op>| op.held_up && !op.flows && !op.ended && op.needs.output & leaving == 0;
        let flow = |region: &mut Region<C>, core: &mut Core<C>, op: &mut Op<C::Op>| {
            op.held_up = false;
            // It has been counted.
            region.ways.stretches.flowing -= 1;
            region.go_by_stretches(at, core, op);
            region.ways.stretches.flowing += u64::from(!op.flows);
        };
        while self.change(core, goes_on, flow) {}
    }

    /// Changes an operation, if there is such a one: a microthread's, or that of the main thread; whether there is.
    fn change(
        &mut self,
        core: &mut Core<C>,
        is_one: impl Fn(&Op<C::Op>) -> bool,
        change: impl FnOnce(&mut Region<C>, &mut Core<C>, &mut Op<C::Op>),
    ) -> bool {
        let thread = core.threads.iter().find(|op| is_one(op)).map(|op| op.microthread);
        if let Some(mut op) = thread.and_then(|id| core.threads.take(id)) {
            change(self, core, &mut op);
            core.threads.put(op);
            true
        } else if matches!(&core.main, Main::Vector(op) if is_one(op))
            && let Main::Vector(mut op) = std::mem::replace(&mut core.main, Main::Idle)
        {
            change(self, core, &mut op);
            core.main = Main::Vector(op);
            true
        } else {
            false
        }
    }

    /// What operations that go element by element see of the pipes behind their output queues.
    pub(super) fn look_before_pipes(&mut self, at: &Visit<'_, C>, core: &mut Core<C>) {
        let (mut full, mut held_up) = (0, false);
        let main = core.main.operation().filter(|_| matches!(core.main, Main::Vector(_)));
        for op in core.threads.iter().chain(main).filter(|op| !op.flows && !op.ended) {
            let Some(Output { color, queue, .. }) = op.output else { continue };
            held_up |= op.held_up;
            let id = match core.outlet(color) {
                Outlet::Pipe(id) => id,
                Outlet::Closing(id) if self.is_way_used(id) => id,
                Outlet::Closing(_)
                | Outlet::Unknown
                | Outlet::Routers(_)
                | Outlet::Channel(_)
                | Outlet::Gathered(_)
                | Outlet::Merged(_) => continue,
            };
            let waiting = core.outputs.get(queue.into()).map_or(0, |output| output.ring.len());
            let number = self.pipes[id as usize].sent_before() + waiting as u64 + 1;
            match self.place_in(id, number) {
                Some(from) if from <= at.t => continue,
                Some(from) => self.wakes.core(at.pe, from),
                None => self.each_pipe(id, |pipe| pipe.want(0)),
            }
            full |= 1 << queue;
        }
        core.sight.full |= full;
        if held_up {
            self.flow_again(at, core);
        }
    }
}
