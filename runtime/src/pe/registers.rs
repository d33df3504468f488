//! Configuration registers of a PE, as its code reads and writes them: those of its router, and
//! those of its core. A bank that `ir::registers` lists is read in [`View::look`] and written in
//! [`Region::write_register`].
//!
//! Invariants: in each cycle a PE's router is visited before its core, so that a read in cycle
//! `t` sees what the router did up to `t`; a write in cycle `t` is seen by the router from
//! `t + 1` on.

use std::cell::Cell;
use std::collections::VecDeque;

use dflow_ir::inst::Priority;
use dflow_ir::registers::{self, BankKind};

use super::bind::Bindings;
use super::clock::Clock;
use super::code::Code;
use super::core::Core;
use super::plan::PePlan;
use crate::exec::{CodeTrapKind, Registers};
use crate::fabric::registers as router;
use crate::fabric::router::Router;
use crate::outcome::ConsoleLine;
use crate::sched::plan::Plan;
use crate::sched::region::Region;
use crate::trap::TrapKind;

/// Characters after which a line is shown without its end.
const LONGEST_LINE: usize = 1024;

/// What the core itself keeps in registers.
#[derive(Clone, Debug, Default)]
pub(crate) struct CoreRegisters {
    /// Colors that entered teardown, and the cycle from which the core knows.
    torn: VecDeque<(u64, u8)>,
    /// Colors of which the core knows and the teardown task does not.
    pending: u32,
    /// Colors that the teardown task was started for.
    seen: u32,
    /// Input queues whose latest asynchronous operation has medium priority.
    medium: u8,
}

impl CoreRegisters {
    /// A color enters teardown; the core knows from cycle `due` on.
    pub(crate) fn tear(&mut self, due: u64, color: u8) {
        self.torn.push_back((due, color));
    }

    /// Whether a color's teardown is to be noticed some time.
    pub(crate) fn tears(&self) -> bool {
        !self.torn.is_empty()
    }

    /// Takes what is due in cycle `t`; whether the teardown task is to be activated.
    pub(crate) fn torn(&mut self, t: u64) -> bool {
        let mut any = false;
        while let Some(&(_, color)) = self.torn.front().filter(|(due, _)| *due <= t) {
            self.torn.pop_front();
            self.pending |= 1 << color;
            any = true;
        }
        any
    }

    /// An asynchronous operation with these input queues begins.
    pub(crate) fn starts(&mut self, inputs: u64, priority: Priority) {
        let inputs = inputs as u8;
        self.medium = match priority {
            Priority::Medium => self.medium | inputs,
            Priority::Low | Priority::High => self.medium & !inputs,
        };
    }

    /// The teardown task begins.
    pub(crate) fn begin_teardown(&mut self) {
        self.seen = std::mem::take(&mut self.pending);
    }
}

/// A PE's registers, to be read.
pub(crate) struct View<'a> {
    plan: &'a Plan,
    /// The PE's number.
    number: usize,
    router: Option<&'a Router>,
    core: &'a CoreRegisters,
    /// The cycle counter, and the cycle in which it is read.
    clock: (Clock, u64),
    program: &'a PePlan,
    bound: &'a Bindings,
    /// Code has looked.
    seen: Cell<bool>,
}

impl<'a> View<'a> {
    /// Those of the PE with a number; `clock`: its cycle counter, and the cycle in which that is read.
    pub(crate) fn new(
        (plan, number): (&'a Plan, usize),
        router: Option<&'a Router>,
        core: &'a CoreRegisters,
        clock: (Clock, u64),
        (program, bound): (&'a PePlan, &'a Bindings),
    ) -> View<'a> {
        View { plan, number, router, core, clock, program, bound, seen: Cell::default() }
    }

    /// Whether code has looked at any of them.
    pub(crate) fn has_been_seen(&self) -> bool {
        self.seen.get()
    }

    /// The register at a word address; none if there is none.
    pub(crate) fn look(&self, address: u16) -> Option<u16> {
        let (bank, index) = registers::find(self.plan.target, address)?;
        match bank.kind {
            BankKind::Route | BankKind::Switch | BankKind::Color | BankKind::Filter => {
                router::read(self.plan, self.number, self.router, bank.kind, index)
            }
            BankKind::Teardown => Some((self.core.seen >> (16 * index)) as u16),
            BankKind::Console => Some(0),
            BankKind::Input => Some(u16::from(self.core.medium >> index & 1) << MEDIUM),
            BankKind::Clock => Some((self.clock.0.counted(self.clock.1) >> (16 * index)) as u16),
            BankKind::ClockControl => Some(if self.clock.0.runs() { RUNS } else { 0 }),
            BankKind::Output => {
                let color = self.bound.output(self.program, index.into())?.color;
                Some(
                    color.map_or(0, |color| {
                        u16::from(color.index()) << registers::OUTPUT_COLOR_SHIFT
                    }),
                )
            }
        }
    }
}

/// Bit of an input queue's register: its microthread goes before those of low priority.
const MEDIUM: u32 = 8;

/// Bits of the switch of the cycle counter, when it runs.
const RUNS: u16 = 7;

impl Registers for View<'_> {
    fn read(&self, address: u16) -> Option<u16> {
        self.seen.set(true);
        self.look(address)
    }
}

impl<C: Code> Region<C> {
    /// Writes the register at a word address in cycle `t`.
    pub(crate) fn write_register(
        &mut self,
        plan: &Plan,
        pe: u32,
        t: u64,
        address: u16,
        value: u16,
    ) -> Result<(), TrapKind> {
        let fail = |why| TrapKind::Code(CodeTrapKind::BadRegister { address, why });
        let found = registers::find(plan.target, address);
        let (bank, index) = found.ok_or(TrapKind::Code(CodeTrapKind::NoRegister { address }))?;
        match bank.kind {
            BankKind::Route | BankKind::Switch | BankKind::Color | BankKind::Filter => {
                if let Some((color, _)) = router::color_word(bank.kind, index) {
                    self.cut_through(plan, pe, color);
                }
                let router = self.router(plan, pe);
                router::write(plan, router, bank.kind, index, value).map_err(fail)?;
                self.unblock(pe, t + 1);
                Ok(())
            }
            // Before the start nothing knows of cores yet; afterwards they take it themselves.
            BankKind::Output => Err(fail("is bound by `@initialize_queue` before the start")),
            BankKind::Teardown => Err(fail("can only be read")),
            // The core's own: see `Core::write_own`.
            BankKind::Input | BankKind::Clock | BankKind::ClockControl => {
                Err(fail("is set up when the program starts"))
            }
            BankKind::Console => {
                self.print(plan, pe, t, value as u8);
                Ok(())
            }
        }
    }

    /// A character for the user: lines are kept until the host takes them.
    fn print(&mut self, plan: &Plan, pe: u32, t: u64, character: u8) {
        let at = self.number(plan, pe);
        let line = self.unfinished.entry(at).or_default();
        if character != b'\n' {
            line.push(character);
        }
        if character == b'\n' || line.len() >= LONGEST_LINE {
            let text = String::from_utf8_lossy(line).into_owned();
            self.unfinished.remove(&at);
            self.bytes += (size_of::<ConsoleLine>() + text.len()) as u64;
            self.printed.push(ConsoleLine { cycle: t, at: plan.coord(at), text });
        }
    }

    /// Writes what the program has written before the start.
    pub(crate) fn configure(&mut self, plan: &Plan, pe: u32) {
        let Some(program) = plan.program(self.number(plan, pe)) else { return };
        for &(address, value) in &program.config {
            if let Err(kind) = self.write_register(plan, pe, 0, address, value) {
                self.trap(plan, pe, 0, kind, None);
            }
        }
    }
}

impl<C: Code> Core<C> {
    /// Writes a register of the core itself in cycle `t`; none if the address is of no such one.
    pub(crate) fn write_own(
        &mut self,
        plan: &Plan,
        program: &PePlan,
        address: u16,
        value: u16,
        t: u64,
    ) -> Option<Result<(), TrapKind>> {
        let (bank, index) = registers::find(plan.target, address)?;
        match bank.kind {
            BankKind::Input => self.write_input(index, value),
            BankKind::Clock => self.clock.write(t, index, value),
            BankKind::ClockControl => self.clock.switch(t, value != 0),
            BankKind::Output => {
                let color = value >> registers::OUTPUT_COLOR_SHIFT & 0x1f;
                return Some(self.bind_output(program, index | color << 8, t));
            }
            BankKind::Route
            | BankKind::Switch
            | BankKind::Color
            | BankKind::Filter
            | BankKind::Console
            | BankKind::Teardown => return None,
        }
        Some(Ok(()))
    }

    /// The priority of the operation that reads a queue.
    fn write_input(&mut self, queue: u16, value: u16) {
        let medium = value >> MEDIUM & 1 != 0;
        let priority = if medium { Priority::Medium } else { Priority::Low };
        let bit = 1u64 << queue;
        self.registers.starts(bit, priority);
        self.threads.set_priority(bit, priority);
    }
}

/// The registers of a PE whose core is at hand.
pub(crate) fn view<'a, C: Code>(
    plan: &'a Plan,
    core: &'a Core<C>,
    router: Option<&'a Router>,
    t: u64,
) -> View<'a> {
    let clock = (core.clock, t);
    let program = &plan.programs[usize::from(core.at.program)];
    let number = core.at.number as usize;
    View::new((plan, number), router, &core.registers, clock, (program, &core.bound))
}
