//! A world without inputs, for host programs that nobody wrote.

use std::time::{Duration, Instant};

use dflow_ir::ty::ElementType;
use dflow_runtime::config::Limits;
use dflow_runtime::host::{HostEnv, Input, Output};

/// Lines kept of what a program prints.
const LINES: usize = 100;
/// Bytes that a run may take.
const MEMORY: u64 = 256 << 20;
/// A run that takes longer ends by itself: host code can loop without end. Targets run an input a
/// few times, which together must stay below what counts as a slow input.
const PATIENCE: Duration = Duration::from_secs(1);

/// Remembers what a program prints and gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nobody {
    printed: Vec<String>,
    outputs: Vec<(String, ElementType, Vec<u8>)>,
}

impl HostEnv for Nobody {
    fn has_input(&self, _name: &str) -> bool {
        false
    }

    fn input(&mut self, _name: &str) -> Result<Input, String> {
        // Not a whole number of most elements: the runtime must check.
        Ok(Input { bytes: vec![0x40; 36], ty: None })
    }

    fn setting(&self, _name: &str) -> Option<String> {
        None
    }

    fn output(&mut self, output: Output) -> Result<(), String> {
        let Output { name, bytes, ty } = output;
        self.outputs.push((name, ty, bytes));
        Ok(())
    }

    fn print(&mut self, line: &str) {
        if self.printed.len() < LINES {
            self.printed.push(line.to_owned());
        }
    }
}

/// Limits of a run of so many cycles.
pub fn limits(cycles: u64) -> Limits {
    Limits {
        cycle: cycles,
        memory: MEMORY,
        deadline: Some(Instant::now() + PATIENCE),
        ..Limits::default()
    }
}
