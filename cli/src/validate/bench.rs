//! Running a program of the validation and reading its counters.

use std::cell::Cell;

use dflow_compiler::{Options, World};
use dflow_ir::mesh::Coord;
use dflow_ir::target::{Override, TargetId};
use dflow_runtime::config::{Config, Limits};
use dflow_runtime::host::Session;
use dflow_runtime::machine::{Event, Machine, Running};

use crate::exit::Failure;
use crate::interrupt::Interrupt;
use crate::patience::Patience;

/// A program of the validation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    /// Its file's name.
    pub(crate) name: &'static str,
    /// Its text.
    pub(crate) text: &'static str,
}

impl World for Program {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        match path == self.name {
            true => Ok(self.text.as_bytes().to_vec()),
            false => Err("no such program".into()),
        }
    }
}

/// Runs programs.
pub(crate) struct Bench {
    /// Small meshes and few rows.
    pub(crate) quick: bool,
    /// Constants that the user changed.
    pub(crate) changes: Vec<Override>,
    interrupt: Interrupt,
    config: Config,
    runs: Cell<u32>,
}

/// The main thread, among the threads that have slots.
const MAIN: u8 = u8::MAX;

/// Words of the counter as a program keeps them.
const COUNTER_BYTES: usize = 6;

impl Bench {
    /// With the machine's settings.
    pub(crate) fn new(
        quick: bool,
        changes: Vec<Override>,
        config: Config,
        interrupt: &Interrupt,
    ) -> Bench {
        Bench { quick, changes, interrupt: interrupt.clone(), config, runs: Cell::new(0) }
    }

    /// Programs that have run.
    pub(crate) fn runs(&self) -> u32 {
        self.runs.get()
    }

    /// Runs a program until nothing moves.
    ///
    /// # Errors
    /// It does not compile or does not end well, which is a fault of ours.
    pub(crate) fn run(
        &self,
        program: Program,
        target: TargetId,
        params: &[(&str, u32)],
    ) -> Result<Counters, Failure> {
        self.run_with(program, target, params, &[])
    }

    /// Runs a program with constants changed, and keeps what every core does.
    ///
    /// # Errors
    /// It does not compile or does not end well.
    pub(crate) fn run_watched(
        &self,
        program: Program,
        target: TargetId,
        params: &[(&str, u32)],
        changes: &[Override],
    ) -> Result<Counters, Failure> {
        self.execute(program, target, params, changes, true)
    }

    /// Runs a program with constants changed.
    ///
    /// # Errors
    /// It does not compile or does not end well.
    pub(crate) fn run_with(
        &self,
        program: Program,
        target: TargetId,
        params: &[(&str, u32)],
        changes: &[Override],
    ) -> Result<Counters, Failure> {
        self.execute(program, target, params, changes, false)
    }

    fn execute(
        &self,
        program: Program,
        target: TargetId,
        params: &[(&str, u32)],
        changes: &[Override],
        record: bool,
    ) -> Result<Counters, Failure> {
        let fault = |what: &dyn std::fmt::Display| {
            Failure::program(format!("{} with {params:?}: {what}", program.name))
        };
        let named = |&(name, value): &(&str, u32)| (name.to_owned(), value.to_string());
        let params = params.iter().map(named).collect();
        let options = Options { params, target, ..Options::default() };
        let patience = Patience::new(&self.interrupt);
        let compiled = patience.compile_from(&program, program.name, options)?;
        let Some(image) = compiled.image else {
            crate::diagnostics::show(&compiled.sources, &compiled.diagnostics);
            return Err(fault(&"does not compile"));
        };
        // The last one holds: a row has what it says, whatever the user gave.
        let mut timing = self.changes.clone();
        timing.extend_from_slice(changes);
        let config = Config { timing, record, ..self.config.clone() };
        self.interrupt.listen();
        let machine = Machine::load(&image, &config).map_err(|error| fault(&error))?.start();
        let interrupt = Some(self.interrupt.flag());
        let limits = Limits { interrupt, ..Limits::default() };
        let mut session = Session::new(machine, &image, limits);
        let ended = session.finish();
        if self.interrupt.is_set() {
            return Err(Failure::interrupted());
        }
        ended.map_err(|error| fault(&error))?;
        self.runs.set(self.runs.get() + 1);
        Ok(Counters { session, name: program.name })
    }
}

/// A machine at rest after a run, whose counters can be read.
pub(crate) struct Counters {
    session: Session<Machine<Running>>,
    name: &'static str,
}

impl Counters {
    /// The counter that PE (x, y) has kept in `name`.
    ///
    /// # Errors
    /// It keeps none.
    pub(crate) fn at(&mut self, x: u16, y: u16, name: &str) -> Result<f64, Failure> {
        let bytes = self.session.read_variable(Coord { x, y }, name);
        let bytes = bytes.map_err(|error| Failure::program(format!("{}: {error}", self.name)))?;
        let words = bytes.iter().take(COUNTER_BYTES).rev();
        Ok(words.fold(0.0, |sum, &byte| sum * 256.0 + f64::from(byte)))
    }

    /// Issue slots of a watched PE, by its number: first cycle, thread, how many in a row.
    fn runs_of_slots(&self, number: u32) -> impl Iterator<Item = (u64, u8, u64)> {
        let slots = move |event| match event {
            Event::Slots { cycle, pe, thread, count } if pe == number => {
                Some((cycle, thread, count))
            }
            Event::Slots { .. } | Event::Arrival { .. } | Event::Task { .. } => None,
        };
        self.session.mesh().events().into_iter().filter_map(slots)
    }

    /// Issue slots that a watched PE has used.
    pub(crate) fn slots(&self, number: u32) -> f64 {
        self.runs_of_slots(number).map(|(_, _, count)| count).sum::<u64>() as f64
    }

    /// When a microthread of a watched PE has its first issue slot.
    pub(crate) fn first_microthread_slot(&self, number: u32) -> f64 {
        let slots = self.runs_of_slots(number).filter(|&(_, thread, _)| thread != MAIN);
        slots.map(|(cycle, ..)| cycle).min().map_or(f64::NAN, |cycle| cycle as f64)
    }

    /// When the last task of a watched PE has its first issue slot.
    pub(crate) fn last_task_slot(&self, number: u32) -> f64 {
        let pick = |event| match event {
            Event::Task { cycle, pe, .. } if pe == number => Some(cycle),
            Event::Slots { .. } | Event::Arrival { .. } | Event::Task { .. } => None,
        };
        let picked = self.session.mesh().events().into_iter().filter_map(pick).max();
        let slots = self.runs_of_slots(number).filter(|&(_, thread, _)| thread == MAIN);
        let slots = slots.map(|(cycle, ..)| cycle).filter(|&cycle| Some(cycle) >= picked);
        slots.min().map_or(f64::NAN, |cycle| cycle as f64)
    }

    /// Cycles from `start` to `end` of PE (x, y).
    ///
    /// # Errors
    /// It does not keep both.
    pub(crate) fn span(&mut self, x: u16, y: u16) -> Result<f64, Failure> {
        Ok(self.at(x, y, "end")? - self.at(x, y, "start")?)
    }
}
