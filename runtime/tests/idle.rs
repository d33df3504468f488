//! What PEs cost on which nothing happens. The only test of its process, so that the memory of the process is that of
//! the machine.

#![forbid(unsafe_code)]

use dflow_ir::target::TargetId;
use dflow_runtime::config::{Config, EngineKind, Limits};
use dflow_runtime::machine::Machine;
use dflow_runtime::outcome::RunEnd;

#[path = "../src/sched/tests/chain.rs"]
#[expect(dead_code, reason = "what a sum comes to is for the tests that run it")]
mod chain;

/// Bytes that an idle PE may cost.
const MOST: u64 = 512;

/// Bytes of this process that are in memory; `None` where nobody says.
#[expect(
    clippy::disallowed_methods,
    reason = "what the process takes stands in a file of the system"
)]
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// Each PE has a program with 16 KB of data and a number of its own, and nothing starts it. What the machine accounts
/// for is within the bound, and so is what the process has grown by: image, code and engine included.
#[test]
fn idle_pes_cost_few_bytes() {
    let before = resident();
    let (width, height) = (500, 400);
    let pes = u64::from(width) * u64::from(height);
    let mut image = chain::image(TargetId::Wse2, width, height, 4000, 1);
    image.programs.values_mut().for_each(|program| program.initial_flags.clear());
    for engine in [EngineKind::Exact, EngineKind::Flow, EngineKind::Step] {
        let config = Config { engine, ..Config::default() };
        let mut machine = Machine::load(&image, &config).expect("it is valid").start();
        assert!(matches!(machine.run(&[], &Limits::default()), RunEnd::Idle { .. }));
        let bytes = machine.table_bytes() + machine.state_bytes();
        assert!(bytes <= MOST * pes, "{engine:?}: {bytes} bytes accounted for {pes} PEs");
        if let (Some(before), Some(now)) = (before, resident()) {
            let grown = now.saturating_sub(before);
            assert!(grown <= MOST * pes, "{engine:?}: grown by {grown} bytes for {pes} PEs");
        }
    }
}
