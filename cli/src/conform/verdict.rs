//! What a script's end means. The patterns are those of `spec/conform.md`.

use super::run::{End, Ran};

/// What became of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    /// It ended with 0 and printed no failure.
    Pass,
    /// Its own check failed, or it ended otherwise for no reason below.
    Fail,
    /// The emulated program cannot go on.
    Hang,
    /// It did not end in time.
    Timeout,
    /// The compiler refused the program.
    CompileError,
    /// It uses what is not supported here.
    Unsupported,
    /// Something is missing on this computer.
    Environment,
}

impl Verdict {
    /// All, in the order of the totals.
    pub(super) const ALL: [Verdict; 7] = [
        Verdict::Pass,
        Verdict::Fail,
        Verdict::Hang,
        Verdict::Timeout,
        Verdict::CompileError,
        Verdict::Unsupported,
        Verdict::Environment,
    ];

    /// As the table has it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "fail",
            Verdict::Hang => "hang",
            Verdict::Timeout => "timeout",
            Verdict::CompileError => "compile-error",
            Verdict::Unsupported => "unsupported",
            Verdict::Environment => "environment",
        }
    }
}

/// Longest reason that is shown.
const MAX_REASON: usize = 160;

/// Judges a script; the reason is one line, empty for a pass.
pub(super) fn judge(ran: &Ran) -> (Verdict, String) {
    let (verdict, reason) = match ran.end {
        End::Interrupted => (Verdict::Fail, "interrupted".to_owned()),
        End::Timeout => (Verdict::Timeout, format!("not done after {:.0} s", ran.seconds)),
        End::Flood => (Verdict::Fail, "it prints without end".to_owned()),
        End::Code(0) => match ran.output.lines().find(|line| says_failure(line)) {
            // What Python said on the way may tell more than that it said something.
            Some(line) if is_traceback(line) => failed(ran, 0),
            Some(line) => (Verdict::Fail, format!("it printed `{}`", line.trim())),
            None => (Verdict::Pass, String::new()),
        },
        End::Code(code) => failed(ran, code),
    };
    (verdict, reason.chars().take(MAX_REASON).collect())
}

/// A script that ended with another code than 0, or printed a traceback.
fn failed(ran: &Ran, code: i32) -> (Verdict, String) {
    let lines = || ran.output.lines();
    let found = |has: &dyn Fn(&str) -> bool| lines().find(|line| has(line)).map(str::trim);
    if let Some(module) = lines().rev().find_map(missing_module) {
        return (Verdict::Environment, format!("the Python module {module} is missing"));
    }
    if let Some(line) = lines().find(|line| line.ends_with(": command not found")) {
        let line = line.trim_end_matches(": command not found");
        let command = line.rsplit(": ").next().unwrap_or(line);
        return (Verdict::Environment, format!("the command {command} is missing"));
    }
    if code == 127 {
        let reason = "a command that it calls is missing (exit code 127)";
        return (Verdict::Environment, reason.to_owned());
    }
    if let Some(line) = found(&|line| exception(line, "Deadlock")) {
        return (Verdict::Hang, line.to_owned());
    }
    if let Some(line) = found(&|line| line.starts_with("error[not-supported]"))
        .or_else(|| found(&|line| exception(line, "NotSupported")))
        .or_else(|| found(&|line| exception(line, "NotImplementedError")))
        .or_else(|| found(&|line| line.starts_with("ImportError: cerebras.")))
        .or_else(|| found(&|line| line.starts_with("cslc: ") && line.contains("is not supported")))
    {
        return (Verdict::Unsupported, line.to_owned());
    }
    let refused = ran.compiler.iter().any(|code| *code != 0);
    if refused || found(&|line| exception(line, "CompileError")).is_some() {
        let line = found(&|line| line.starts_with("error[") || line.starts_with("cslc: "));
        let line = line.or_else(|| found(&|line| exception(line, "CompileError")));
        return (Verdict::CompileError, line.unwrap_or("the compiler failed").to_owned());
    }
    let line = last_exception(&ran.output).or_else(|| found(&says_failure).map(str::to_owned));
    (Verdict::Fail, line.unwrap_or_else(|| format!("exit code {code}")))
}

/// The line of the last Python exception; with the next one, if it says nothing by itself.
fn last_exception(output: &str) -> Option<String> {
    let lines: Vec<&str> = output.lines().collect();
    let at = lines.iter().rposition(|line| is_exception(line))?;
    let line = lines[at].trim();
    let rest = lines[at + 1..].iter().map(|line| line.trim()).find(|line| !line.is_empty());
    Some(match rest {
        Some(rest) if line.ends_with(':') => format!("{line} {rest}"),
        Some(_) | None => line.to_owned(),
    })
}

/// A line that says FAIL or FAILED: alone but for signs, at its end, or at its start before a colon
/// or mark; or the start of a Python traceback. A count of 0 says no such thing.
fn says_failure(line: &str) -> bool {
    let line = line.trim();
    if is_traceback(line) {
        return true;
    }
    let is_word = |word: &str| matches!(word, "FAIL" | "FAILED" | "FAILURE");
    let sign = |c: char| !c.is_ascii_alphanumeric();
    let words = line.split_whitespace().filter(|word| !word.trim_matches(sign).is_empty());
    let words: Vec<&str> = words.collect();
    let (Some(first), Some(last)) = (words.first(), words.last()) else { return false };
    let none = words.len() >= 2 && matches!(words[words.len() - 2].trim_matches(sign), "0" | "no");
    if is_word(last.trim_matches(sign)) && !none {
        return true;
    }
    let marked = first.ends_with([':', '!']) && is_word(first.trim_matches(sign));
    marked && words.get(1).is_none_or(|next| next.trim_matches(sign) != "0")
}

fn is_traceback(line: &str) -> bool {
    line.trim().starts_with("Traceback (most recent call last)")
}

/// `ModuleNotFoundError: No module named 'x'`, if `x` is none of the modules that we bring.
fn missing_module(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix("ModuleNotFoundError: No module named '")?;
    let name = rest.split('\'').next()?;
    let ours = ["dflow", "cerebras"].contains(&name.split('.').next().unwrap_or_default());
    (!ours).then_some(name)
}

/// The line of a Python exception of this class, with or without its module.
fn exception(line: &str, class: &str) -> bool {
    let name = line.split([':', ' ']).next().unwrap_or_default();
    name.rsplit('.').next() == Some(class) && !line.starts_with(' ')
}

/// The line of any Python exception.
fn is_exception(line: &str) -> bool {
    let name = line.split([':', ' ']).next().unwrap_or_default();
    let class = name.rsplit('.').next().unwrap_or_default();
    let ends = ["Error", "Exception", "Interrupt", "Exit", "Trap", "LimitReached"];
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
    plain
        && class.starts_with(|c: char| c.is_ascii_uppercase())
        && ends.iter().any(|end| class.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(end: End, output: &str) -> Ran {
        Ran { end, seconds: 2.0, output: output.into(), compiler: Vec::new(), cycles: None }
    }

    #[test]
    fn printed_failures_count() {
        for line in [
            "FAIL",
            "FAILED",
            "  ** FAILED **",
            "Test FAILED!",
            "result: FAIL",
            "FAIL: 3 differ",
            "FAILED!",
            "Traceback (most recent call last):",
            "10 FAILED",
        ] {
            assert_eq!(judge(&ran(End::Code(0), line)).0, Verdict::Fail, "{line}");
        }
        for line in [
            "SUCCESS!",
            "0 FAILED",
            "FAILED: 0",
            "no FAIL",
            "the failed attempt",
            "FAIL_COUNT = 3",
            "FAILSAFE",
            "",
            "fails to FAIL gracefully",
        ] {
            assert_eq!(judge(&ran(End::Code(0), line)).0, Verdict::Pass, "{line}");
        }
    }

    #[test]
    fn reasons_are_the_line_that_says_it() {
        let judged = |output: &str| judge(&ran(End::Code(1), output));
        let (verdict, reason) = judged("a\nModuleNotFoundError: No module named 'pandas'\n");
        assert_eq!(
            (verdict, reason.as_str()),
            (Verdict::Environment, "the Python module pandas is missing")
        );
        let (verdict, _) = judged("ModuleNotFoundError: No module named 'cerebras.other'");
        assert_eq!(verdict, Verdict::Fail);
        let (verdict, reason) = judged("commands.sh: line 3: gmake: command not found");
        assert_eq!(
            (verdict, reason.as_str()),
            (Verdict::Environment, "the command gmake is missing")
        );
        let (verdict, reason) =
            judged("Traceback\ndflow.errors.Deadlock: nothing can move\n  PE (0, 0)");
        assert_eq!(
            (verdict, reason.as_str()),
            (Verdict::Hang, "dflow.errors.Deadlock: nothing can move")
        );
        let (verdict, reason) = judged("x\nAssertionError: 3 differ\n");
        assert_eq!((verdict, reason.as_str()), (Verdict::Fail, "AssertionError: 3 differ"));
        assert_eq!(judged("nothing").1, "exit code 1");
        assert_eq!(judged("AssertionError: \n\nNot equal\n").1, "AssertionError: Not equal");
        let client = "ImportError: cerebras.sdk.client is for clusters";
        assert_eq!(judged(client), (Verdict::Unsupported, client.to_owned()));
        let missing =
            "Traceback (most recent call last):\nModuleNotFoundError: No module named 'pandas'";
        assert_eq!(judge(&ran(End::Code(0), missing)).0, Verdict::Environment);
        assert_eq!(judge(&ran(End::Code(127), "")).0, Verdict::Environment);
        assert_eq!(judged("error[not-supported]: no such").0, Verdict::Unsupported);
    }

    #[test]
    fn the_compilers_code_tells_its_errors() {
        let mut bad = ran(End::Code(1), "error[unknown-name]: `x` is not declared\n  a.csl\n");
        assert_eq!(judge(&bad).0, Verdict::Fail);
        bad.compiler = vec![0, 1];
        let said = "error[unknown-name]: `x` is not declared".to_owned();
        assert_eq!(judge(&bad), (Verdict::CompileError, said));
        assert_eq!(judge(&ran(End::Timeout, "")).0, Verdict::Timeout);
    }
}
