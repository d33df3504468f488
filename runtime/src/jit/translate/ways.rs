//! Ways between blocks, and out of a function.

use super::*;

impl Translator<'_> {
    /// The end of a block: yield if it is time, then the terminator.
    pub(super) fn end(&mut self, block: Block) {
        let data = &self.func.blocks[block];
        let point = self.plan.resume_end[block];
        if point != 0 {
            self.yield_point(point);
        }
        self.pending += self.plan.end_cost[block].packed();
        self.flush();
        match &data.terminator {
            Terminator::Jump(to) => {
                let to = self.blocks[*to];
                self.b.ins().jump(to, &[]);
            }
            Terminator::Branch { cond, then, otherwise } => {
                let cond = self.get(*cond);
                let ways = [*then, *otherwise].map(|to| (to, self.way(block, to)));
                self.b.ins().brif(cond, ways[0].1, &[], ways[1].1, &[]);
                self.taken(&ways);
            }
            Terminator::Switch { value, cases, otherwise } => {
                let ty = self.ty(*value);
                let value = self.get(*value);
                self.switch(value, ty, cases, *otherwise);
            }
            Terminator::Return(value) => {
                let value = value.map(|value| self.get(value));
                self.leave(value);
            }
            Terminator::Unreachable => {
                let at = block.as_u32();
                self.trap(TrapCode::Unreachable, at);
            }
        }
    }

    /// Where a branch at the end of `from` goes: to a block of its own if that costs more.
    pub(super) fn way(&mut self, from: Block, to: Block) -> ir::Block {
        if to.as_u32() == from.as_u32() + 1 || self.plan.taken.all == 0 {
            self.blocks[to]
        } else {
            self.b.create_block()
        }
    }

    /// Fills the blocks of ways that cost more.
    pub(super) fn taken(&mut self, ways: &[(Block, ir::Block)]) {
        for &(to, way) in ways {
            if way != self.blocks[to] {
                self.b.switch_to_block(way);
                self.pending = self.plan.taken.packed();
                self.flush();
                self.b.ins().jump(self.blocks[to], &[]);
            }
        }
    }

    pub(super) fn switch(
        &mut self,
        value: Value,
        ty: Ty,
        cases: &[(u64, Block)],
        otherwise: Block,
    ) {
        let raw = to_raw(&mut self.b, value, ty);
        let mut switch = Switch::new();
        let mut seen = Vec::with_capacity(cases.len());
        for &(case, block) in cases {
            seen.push((case, block));
        }
        // The first of equal cases counts.
        seen.sort_by_key(|&(case, _)| case);
        seen.dedup_by_key(|&mut (case, _)| case);
        for (case, block) in seen {
            switch.set_entry(u128::from(case), self.blocks[block]);
        }
        switch.emit(&mut self.b, raw, self.blocks[otherwise]);
    }

    pub(super) fn yield_point(&mut self, point: u32) {
        self.flush();
        let pause = self.b.create_block();
        let go_on = self.b.create_block();
        let cycles = self.b.use_var(self.cycles);
        let cycles = self.b.ins().ireduce(types::I32, cycles);
        let budget = i64::from(SEGMENT_BUDGET);
        let spent = self.b.ins().icmp_imm_s(IntCC::UnsignedGreaterThanOrEqual, cycles, budget);
        self.b.set_cold_block(pause);
        self.b.ins().brif(spent, pause, &[], go_on, &[]);
        self.b.switch_to_block(pause);
        self.store_cycles();
        let func = self.int(self.id.as_u32());
        self.call_helper(Helper::Yield, &[func, self.frame]);
        self.save_and_stop(point);
        self.resume_at(point, &[]);
        self.b.ins().jump(go_on, &[]);
        self.b.switch_to_block(go_on);
    }

    /// Returns from the function.
    pub(super) fn leave(&mut self, value: Option<Value>) {
        if self.plan.stack_bytes > 0 {
            let previous = self.b.use_var(self.stack_previous);
            self.store_field(previous, field!(sp));
        }
        self.store_cycles();
        let status = self.int(DONE);
        let value = match (value, self.func.ret) {
            (Some(value), Some(_)) => Some(value),
            (None, Some(ty)) => Some(self.zero(ty)),
            (_, None) => None,
        };
        let mut results = vec![status];
        results.extend(value);
        self.b.ins().return_(&results);
    }

    pub(super) fn return_status(&mut self, status: u32) {
        let mut results = vec![self.int(status)];
        if let Some(ty) = self.func.ret {
            results.push(self.zero(ty));
        }
        self.b.ins().return_(&results);
    }

    // ---- small things ----
}
