//! Writing to the terminal: quiet when a pipe is closed, colored when a person looks.

use std::io::{self, ErrorKind, IsTerminal as _, Write};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use dflow_syntax::diagnostic::render::Color;

use crate::exit::Failure;

/// Since when a part of a text waits to be taken from standard output, and from standard error.
static WAITING: [Waiting; 2] = [const { Waiting(Mutex::new(None)) }; 2];

/// Bytes that are written at once: who takes them has not stopped to read. A pipe has room for so many or for none.
const CHUNK: usize = 1 << 12;

/// How long the last line of a process may take.
const MOMENT: Duration = Duration::from_millis(200);

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
    match WAITING[0].write(&mut io::stdout().lock(), text.as_bytes()) {
        Ok(()) => Ok(Reader::Listening),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(unsaid(&error)),
    }
}

/// Standard output takes nothing.
pub(crate) fn unsaid(error: &io::Error) -> Failure {
    let why = crate::data::Input::reason(error);
    Failure::deaf(format!("cannot write to standard output: {why}"))
}

/// Writes a line to standard error; who closed it does not want to hear.
pub(crate) fn complain(line: &str) {
    let _ = WAITING[1].write(&mut io::stderr().lock(), format!("{line}\n").as_bytes());
}

/// The last line of a process that ends at once: it does not wait for who reads nothing.
pub(crate) fn farewell(line: String) {
    let (said, is_said) = mpsc::channel();
    let say = move || {
        complain(&line);
        let _ = said.send(());
    };
    // Without a thread there is nobody to wait for.
    let _ = std::thread::Builder::new().spawn(say);
    let _ = is_said.recv_timeout(MOMENT);
}

/// Whether something is being said of which nothing has been taken for so long.
pub(crate) fn is_stuck(patience: Duration) -> bool {
    WAITING.iter().any(|waiting| waiting.since().is_some_and(|since| since.elapsed() >= patience))
}

/// Since when a part of a text waits to be taken.
struct Waiting(Mutex<Option<Instant>>);

impl Waiting {
    fn since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, out: &mut impl Write, text: &[u8]) -> io::Result<()> {
        let mut chunks = text.chunks(CHUNK);
        let written = chunks.try_for_each(|chunk| {
            *self.since() = Some(Instant::now());
            out.write_all(chunk)
        });
        let written = written.and_then(|()| out.flush());
        *self.since() = None;
        written
    }
}

/// Whether messages on standard error get colors: a terminal, and the user has not set NO_COLOR.
pub(crate) fn color() -> Color {
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if wanted && io::stderr().is_terminal() { Color::Always } else { Color::Never }
}

/// Whether a person watches standard error.
pub(crate) fn watched() -> bool {
    io::stderr().is_terminal()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks at what is known of a text while it takes it.
    struct Reader<'a> {
        waiting: &'a Waiting,
        seen: Vec<Option<Instant>>,
    }

    impl Write for Reader<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.seen.push(*self.waiting.since());
            std::thread::sleep(Duration::from_millis(1));
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_text_waits_since_its_last_part_was_taken() {
        let waiting = Waiting(Mutex::new(None));
        let mut reader = Reader { waiting: &waiting, seen: Vec::new() };
        assert!(waiting.write(&mut reader, &[0; 2 * CHUNK]).is_ok());
        assert!(matches!(reader.seen[..], [Some(first), Some(second)] if first < second));
        assert_eq!(*waiting.since(), None);
    }
}
