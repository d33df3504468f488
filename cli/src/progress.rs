//! The line that moves while a run takes long. Only on a terminal.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use dflow_runtime::config::{Progress, Pulse};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::report::{duration, group};
use crate::term;

/// Runs shorter than this show no line.
const PATIENCE: Duration = Duration::from_millis(500);

/// Rates are those of the last so much time.
const WINDOW: Duration = Duration::from_secs(2);

/// A line on standard error; nothing if no person watches.
pub(crate) struct Line {
    bar: ProgressBar,
    /// The cycle limit, if there is one.
    end: Option<u64>,
    /// PEs of the mesh.
    pes: u64,
}

impl Line {
    /// A line for runs on a mesh of so many PEs, with the cycle limit as their end if there is one.
    pub(crate) fn new(quiet: bool, end: Option<u64>, pes: u64) -> Line {
        let hidden = quiet || !term::watched();
        let bar = if hidden { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
        bar.set_draw_target(match hidden {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr_with_hz(5),
        });
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        Line { bar, end, pes }
    }

    /// What the engine calls now and then.
    pub(crate) fn callback(&self) -> Option<Progress> {
        if self.bar.is_hidden() {
            return None;
        }
        let (bar, end, pes) = (self.bar.clone(), self.end, self.pes);
        let start = Instant::now();
        let seen = Mutex::new(Rates::new(start));
        Some(Progress(Arc::new(move |pulse| {
            let now = Instant::now();
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            let rates = seen.take(pulse, now);
            if now - start >= PATIENCE {
                bar.set_message(text(pulse, rates, end, pes));
                bar.tick();
            }
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

/// What was told before, for rates.
#[derive(Clone, Copy, Debug)]
struct Rates {
    at: Instant,
    pulse: Pulse,
    /// Since when the host waits for its words.
    waits: Instant,
    last: Rate,
}

/// How fast it goes, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Rate {
    cycles: f64,
    /// Issue slots that cores use per cycle: so many of them are busy.
    busy: f64,
    /// Words that the host waits for.
    words: f64,
}

impl Rates {
    fn new(at: Instant) -> Rates {
        Rates { at, pulse: Pulse::default(), waits: at, last: Rate::default() }
    }

    /// The rates up to now.
    fn take(&mut self, pulse: &Pulse, now: Instant) -> Rate {
        // Each run of the machine counts visits and words from its start.
        if pulse.visits < self.pulse.visits || pulse.cycle < self.pulse.cycle {
            let last = self.last;
            *self = Rates {
                pulse: Pulse { cycle: pulse.cycle, slots: pulse.slots, ..Pulse::default() },
                last,
                ..Rates::new(now)
            };
        }
        let elapsed = (now - self.at).as_secs_f64();
        let cycles = (pulse.cycle - self.pulse.cycle) as f64;
        if elapsed > 0.05 && cycles > 0.0 {
            let waited = (now - self.waits).as_secs_f64();
            let come = pulse.words.map_or(0, |(come, _)| come) as f64;
            self.last = Rate {
                cycles: cycles / elapsed,
                busy: pulse.slots.saturating_sub(self.pulse.slots) as f64 / cycles,
                words: come / waited.max(0.05),
            };
        }
        if now - self.at > WINDOW {
            (self.at, self.pulse) = (now, *pulse);
        }
        self.last
    }
}

/// The line: cycle, rates, activity, and what is left of what is known.
fn text(pulse: &Pulse, rate: Rate, end: Option<u64>, pes: u64) -> String {
    let pe_cycles = rate.cycles * pulse.touched as f64;
    let mut text = format!(
        "cycle {} ({} per second, {} PE-cycles per second), {} of {} PEs in use busy, {} in all",
        group(pulse.cycle),
        scaled(rate.cycles),
        scaled(pe_cycles),
        // Cores that are ahead have used slots of later cycles.
        group((rate.busy.round() as u64).min(pulse.touched)),
        group(pulse.touched),
        group(pes),
    );
    if let Some((come, missing)) = pulse.words {
        text.push_str(&format!(", {} of {} words for the host", group(come), group(missing)));
        if rate.words > 0.0 && come < missing {
            let left = (missing - come) as f64 / rate.words;
            text.push_str(&format!(", the rest in about {}", duration(left)));
        }
    }
    if let Some(end) = end
        && rate.cycles > 0.0
    {
        let left = end.saturating_sub(pulse.cycle) as f64 / rate.cycles;
        text.push_str(&format!(", the cycle limit in about {}", duration(left)));
    }
    text
}

/// `12`, `3.4 k`, `5.6 M`.
fn scaled(number: f64) -> String {
    match number {
        n if n >= 1e9 => format!("{:.1} G", n / 1e9),
        n if n >= 1e6 => format!("{:.1} M", n / 1e6),
        n if n >= 1e4 => format!("{:.1} k", n / 1e3),
        n => format!("{n:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pulse(cycle: u64, visits: u64, slots: u64, words: Option<(u64, u64)>) -> Pulse {
        Pulse { cycle, touched: 100, visits, slots, words }
    }

    #[test]
    fn rates_are_those_of_late_and_begin_anew_with_each_run() {
        let start = Instant::now();
        let mut rates = Rates::new(start);
        let second = |n: u64| start + Duration::from_secs(n);
        let first = rates.take(&pulse(1_000, 5_000, 5_000, None), second(1));
        assert_eq!(first, Rate { cycles: 1_000.0, busy: 5.0, words: 0.0 });
        rates.take(&pulse(3_000, 6_000, 6_000, None), second(3));
        // Nobody looks at cores that are ahead, or in rounds.
        let later = rates.take(&pulse(13_000, 6_000, 906_000, None), second(4));
        assert_eq!(later, Rate { cycles: 10_000.0, busy: 90.0, words: 0.0 });
        // The next run of the machine has just begun.
        let again = rates.take(&pulse(13_000, 0, 906_000, Some((0, 50))), second(5));
        assert_eq!(again, later);
        let rate = rates.take(&pulse(13_500, 1_000, 907_000, Some((10, 50))), second(6));
        assert_eq!(rate, Rate { cycles: 500.0, busy: 2.0, words: 10.0 });
    }

    #[test]
    fn the_line_says_what_is_left_of_what_is_known() {
        let rate = Rate { cycles: 2e6, busy: 12.0, words: 10.0 };
        assert_eq!(
            text(&pulse(1_000_000, 0, 0, Some((10, 50))), rate, Some(5_000_000), 400),
            "cycle 1,000,000 (2.0 M per second, 200.0 M PE-cycles per second), 12 of 100 PEs in use busy, \
             400 in all, 10 of 50 words for the host, the rest in about 4.00 s, the cycle limit in about 2.00 s"
        );
        let plain = text(&pulse(7, 0, 0, None), Rate { busy: 130.0, ..Rate::default() }, None, 400);
        assert!(plain.contains(" 100 of 100 PEs in use busy, "), "{plain}");
        assert!(!plain.contains("about"), "{plain}");
    }
}
