//! Writing to the terminal: quiet when a pipe is closed, colored when a person looks.

use std::io::{ErrorKind, IsTerminal as _, Write as _};

use dflow_syntax::diagnostic::render::Color;

use crate::exit::Failure;

/// Whether anyone still reads standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// Text was taken.
    Listening,
    /// The pipe is closed: not a fault, but no use in going on.
    Gone,
}

/// Writes text to standard output, as it is.
///
/// # Errors
/// The text cannot be written for another reason than a closed pipe.
pub(crate) fn say(text: &str) -> Result<Reader, Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(Reader::Listening),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => {
            let why = crate::data::Input::reason(&error);
            Err(Failure::deaf(format!("cannot write to standard output: {why}")))
        }
    }
}

/// Writes a line to standard error; who closed it does not want to hear.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Whether messages on standard error get colors: a terminal, and the user has not set NO_COLOR.
pub(crate) fn color() -> Color {
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if wanted && std::io::stderr().is_terminal() { Color::Always } else { Color::Never }
}

/// Whether a person watches standard error.
pub(crate) fn watched() -> bool {
    std::io::stderr().is_terminal()
}
