//! What became of tests, as text and as JSON.

use serde_json::{Value, json};

use crate::account::Told;
use crate::exit::Exit;

/// What became of one test.
pub(super) struct Verdict {
    pub(super) name: String,
    pub(super) exit: Exit,
    pub(super) message: String,
    pub(super) printed: Vec<String>,
    pub(super) cycles: u64,
    pub(super) account: Option<Told>,
}

impl Verdict {
    pub(super) fn text(&self) -> String {
        let Verdict { name, exit, message, printed, cycles, account } = self;
        let told = account.as_ref().map(Told::lines).unwrap_or_default();
        let (mut text, printed, message) = match *exit == Exit::Success {
            true => (format!("test {name} ... ok ({cycles} cycles)\n"), &[][..], None),
            false => (format!("test {name} ... FAILED\n"), &printed[..], Some(message)),
        };
        for line in printed.iter().chain(message).chain(&told) {
            text.push_str(&format!("  {}\n", line.replace('\n', "\n  ")));
        }
        text
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "status": self.exit.word(),
            "message": self.message,
            "printed": self.printed,
            "cycles": self.cycles,
            "account": self.account.as_ref().map(Told::json),
        })
    }
}

/// How many tests passed and failed, and whether the user gave up before the last one ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Score {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) interrupted: bool,
}

impl Score {
    pub(super) fn of(verdicts: &[Verdict]) -> Score {
        let mut score = Score::default();
        for verdict in verdicts {
            match verdict.exit {
                Exit::Success => score.passed += 1,
                Exit::Interrupted => score.interrupted = true,
                Exit::Program
                | Exit::Usage
                | Exit::Trap
                | Exit::Deadlock
                | Exit::Limit
                | Exit::Internal => score.failed += 1,
            }
        }
        score
    }

    pub(super) fn add(&mut self, other: Score) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.interrupted |= other.interrupted;
    }

    pub(super) fn exit(self) -> Exit {
        match self {
            Score { interrupted: true, .. } => Exit::Interrupted,
            Score { failed: 0, .. } => Exit::Success,
            Score { .. } => Exit::Program,
        }
    }

    pub(super) fn text(self) -> String {
        format!("{} passed, {} failed", self.passed, self.failed)
    }
}

/// The verdicts on one program.
pub(super) fn json(verdicts: &[Verdict]) -> Value {
    let score = Score::of(verdicts);
    let tests: Vec<_> = verdicts.iter().map(Verdict::json).collect();
    json!({
        "status": score.exit().word(),
        "passed": score.passed,
        "failed": score.failed,
        "tests": tests,
    })
}
