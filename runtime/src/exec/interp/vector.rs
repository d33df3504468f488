//! Vector operations: issued, gone past or stopped for.

use dflow_ir::cost::Slots;
use dflow_ir::func::Inst;
use dflow_ir::inst::VectorInst;

use super::{Flow, Run};
use crate::exec::vector::{self, Issued, VectorArgs};
use crate::exec::{ActKind, CodeTrapKind, Passing, SlotAct, Stop};

impl Run<'_> {
    pub(super) fn vector(&mut self, inst: Inst) -> Result<Flow, CodeTrapKind> {
        let number = self.plan.vectors[inst];
        let site = self.program.vectors().get(self.at.func.as_u32(), number);
        let Some(site) = site else { return Err(CodeTrapKind::Unreachable) };
        let vector = &site.inst;
        let args = VectorArgs::read(vector, |local| self.local(local));
        if site.is_asynchronous() && self.around.registers.pass_again(vector, &args, self.since()) {
            return Ok(self.pass(vector));
        }
        let (issued, odd) = vector::issue(self.program, self.state, site, &args)?;
        if let Some(odd) = odd {
            let slot = self.out.cycles.saturating_sub(1);
            self.out.acts.push(SlotAct { slot, what: ActKind::Odd(odd), loc: site.loc });
        }
        match issued {
            Issued::Done { slots, complete, end } => {
                self.spend(slots);
                if let Some(what) = end {
                    let slot = self.out.cycles.saturating_sub(1);
                    self.out.acts.push(SlotAct { slot, what, loc: site.loc });
                }
                if let Some(result) = vector.result {
                    self.set(result, complete.into());
                }
                Ok(Flow::Next)
            }
            Issued::Starts(start) if self.around.registers.pass(&start, self.since()) => {
                Ok(self.pass(vector))
            }
            Issued::Starts(start) => {
                let index = self.plan.resume_inst[inst];
                Ok(self.suspend(index, Stop::Vector(start)))
            }
        }
    }

    /// What code has done before an operation.
    fn since(&self) -> Passing<'_> {
        let slots = Slots { all: self.out.cycles, assumed: self.out.assumed };
        Passing { slots, acts: &self.out.acts }
    }

    /// Code goes on past a vector operation.
    fn pass(&mut self, vector: &VectorInst) -> Flow {
        (self.out.cycles, self.out.assumed) = (0, 0);
        if let Some(result) = vector.result {
            self.set(result, 1);
        }
        Flow::Next
    }
}
