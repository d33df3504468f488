//! `dflowc test`: test blocks, each on a fresh machine.

use serde_json::{Value, json};

use super::names::check_settings;
use super::{compile, options, refused, say_json};
use crate::account::Told;
use crate::args::TestArgs;
use crate::data::Outputs;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::machine::{self, Around, Env};
use crate::progress::Line;
use crate::source::Root;
use crate::term;

/// What became of one test.
struct Verdict {
    name: String,
    exit: Exit,
    message: String,
    printed: Vec<String>,
    cycles: u64,
    account: Option<Told>,
}

impl Verdict {
    fn text(&self) -> String {
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

/// Runs the tests of a program in the order in which they are written.
///
/// # Errors
/// The source cannot be found, or the user gave up.
pub(crate) fn execute(args: &TestArgs) -> Result<Exit, Failure> {
    let root = Root::find(&args.file)?;
    let interrupt = Interrupt::install()?;
    let mut options = options(&args.compile);
    options.tests = true;
    let json = args.compile.json;
    let compiled = compile(root, options, json);
    let Some(image) = &compiled.image else { return refused(&compiled, json) };
    check_settings(image, &args.compile.settings)?;
    interrupt.listen();
    let line = Line::new(json, args.machine.max_cycles, image.placement.rect.area() as u64);
    let config = machine::config(&args.machine);
    let wanted = args.filter.as_deref().unwrap_or_default();
    let mut verdicts = Vec::new();
    for (name, program) in image.tests.iter().filter(|(name, _)| name.contains(wanted)) {
        let env =
            Env::new(Vec::new(), Outputs::default(), args.compile.settings.clone(), &line, true);
        let around = Around { interrupt: &interrupt, line: &line, rest: drop };
        let (ended, env) = machine::run(image, program, &args.machine, &config, env, &around)?;
        if ended.exit == Exit::Interrupted {
            return Err(Failure::interrupted());
        }
        let verdict = Verdict {
            name: name.clone(),
            exit: ended.exit,
            message: ended.message,
            printed: env.printed().to_vec(),
            cycles: ended.report.map_or(0, |report| report.cycles),
            account: ended.account,
        };
        if !json {
            line.suspend(|| term::say(&verdict.text()))?;
        }
        verdicts.push(verdict);
    }
    line.clear();
    conclude(&verdicts, json)
}

fn conclude(verdicts: &[Verdict], json: bool) -> Result<Exit, Failure> {
    let failed = verdicts.iter().filter(|verdict| verdict.exit != Exit::Success).count();
    let passed = verdicts.len() - failed;
    let exit = if failed == 0 { Exit::Success } else { Exit::Program };
    if json {
        let tests: Vec<_> = verdicts.iter().map(Verdict::json).collect();
        say_json(
            &json!({ "status": exit.word(), "passed": passed, "failed": failed, "tests": tests }),
        )?;
    } else {
        term::say(&format!("{passed} passed, {failed} failed\n"))?;
    }
    Ok(exit)
}
