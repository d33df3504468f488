//! How a command ends.

use std::process::ExitCode;

/// The exit codes, as documented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All well.
    Success,
    /// The program is wrong, a check failed, or an output could not be written.
    Program,
    /// The command was used wrongly: bad arguments, missing files.
    Usage,
    /// The emulated program trapped.
    Trap,
    /// Nothing can move in the emulated program, and the host waits.
    Deadlock,
    /// A limit ended the run.
    Limit,
    /// A fault of ours.
    Internal,
    /// Ctrl-C.
    Interrupted,
}

impl Exit {
    /// The number that the shell sees.
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Success => 0,
            Exit::Program | Exit::Internal => 1,
            Exit::Usage => 2,
            Exit::Trap | Exit::Deadlock => 3,
            Exit::Limit => 4,
            Exit::Interrupted => 130,
        }
    }

    /// The word for it in JSON results.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Exit::Success => "success",
            Exit::Program => "failed",
            Exit::Usage => "usage",
            Exit::Trap => "trap",
            Exit::Deadlock => "deadlock",
            Exit::Limit => "limit",
            Exit::Internal => "internal-error",
            Exit::Interrupted => "interrupted",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// A command that cannot go on, and the one message that says why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The exit code to end with.
    pub(crate) exit: Exit,
    /// One sentence for the user, without the name of the tool.
    pub(crate) message: String,
    /// Standard output takes nothing, or has the result already: nothing more goes there.
    pub(crate) is_told: bool,
}

impl Failure {
    fn new(exit: Exit, message: impl Into<String>) -> Failure {
        Failure { exit, message: message.into(), is_told: false }
    }

    /// The program is wrong, or its result cannot be kept.
    pub(crate) fn program(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Program, message)
    }

    /// The command line is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, message)
    }

    /// A limit ended it.
    pub(crate) fn limit(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Limit, message)
    }

    /// A fault of ours, with what it said.
    pub(crate) fn internal(what: &str) -> Failure {
        let message = format!("internal-error: the tool itself failed: {what}; please report this");
        Failure::new(Exit::Internal, message)
    }

    /// The user gave up.
    pub(crate) fn interrupted() -> Failure {
        Failure::new(Exit::Interrupted, "interrupted; nothing was written")
    }

    /// The same, when the result on standard output says so.
    pub(crate) fn told(self) -> Failure {
        Failure { is_told: true, ..self }
    }

    /// Standard output takes nothing.
    pub(crate) fn deaf(message: impl Into<String>) -> Failure {
        Failure::program(message).told()
    }
}
