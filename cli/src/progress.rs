//! The line that moves while a run takes long. Only on a terminal.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dflow_runtime::config::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::report::group;
use crate::term;

/// Runs shorter than this show no line.
const PATIENCE: Duration = Duration::from_millis(500);

/// A line on standard error; nothing if no person watches.
pub(crate) struct Line {
    bar: ProgressBar,
}

impl Line {
    /// A line for a run, with the cycle limit as its end if there is one.
    pub(crate) fn new(quiet: bool, max_cycles: Option<u64>) -> Line {
        let bar = match (quiet || !term::watched(), max_cycles) {
            (true, _) => ProgressBar::hidden(),
            (false, Some(cycles)) => ProgressBar::new(cycles),
            (false, None) => ProgressBar::new_spinner(),
        };
        bar.set_draw_target(match quiet || !term::watched() {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr_with_hz(5),
        });
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        Line { bar }
    }

    /// What the engine calls now and then.
    pub(crate) fn callback(&self) -> Option<Progress> {
        if self.bar.is_hidden() {
            return None;
        }
        let bar = self.bar.clone();
        let start = Instant::now();
        Some(Progress(Arc::new(move |cycle| {
            let elapsed = start.elapsed();
            if elapsed < PATIENCE {
                return;
            }
            let rate = cycle as f64 / elapsed.as_secs_f64();
            bar.set_position(cycle);
            bar.set_message(format!("cycle {} ({rate:.0} per second)", group(cycle)));
            bar.tick();
        })))
    }

    /// Prints around the line.
    pub(crate) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
