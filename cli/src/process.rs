//! A command's process: room for deep recursion, and an exit code for whatever happens.

use std::any::Any;
use std::io::{ErrorKind, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::exit::{Exit, Failure};
use crate::term;

/// Parsing and comptime evaluation recurse as deep as their limits allow: far less than this,
/// more than a platform's smallest main thread.
const STACK: usize = 256 << 20;

/// Runs a command called `name` on a thread of its own; says what went wrong.
pub(crate) fn run(
    name: &'static str,
    command: impl FnOnce() -> Result<Exit, Failure> + Send + 'static,
) -> u8 {
    std::panic::set_hook(Box::new(move |info| {
        term::complain(&format!("{name}: internal error: {info}\nplease report this"));
    }));
    let worker = std::thread::Builder::new().stack_size(STACK);
    let result = worker
        .spawn(|| guarded(command))
        .map_err(|error| Failure::program(format!("no thread can be started: {error}")))
        .and_then(|thread| {
            thread.join().unwrap_or_else(|what| Err(Failure::internal(said(&*what))))
        });
    match result {
        Ok(exit) => exit.code(),
        Err(failure) => {
            term::complain(&format!("{name}: {}", failure.message));
            failure.exit.code()
        }
    }
}

/// Does what a command does; a fault of ours that unwinds it is a failure with a message and an exit code, too.
pub(crate) fn guarded(command: impl FnOnce() -> Result<Exit, Failure>) -> Result<Exit, Failure> {
    catch_unwind(AssertUnwindSafe(command))
        .unwrap_or_else(|what| Err(Failure::internal(said(&*what))))
}

/// What was said by who panicked.
fn said(what: &(dyn Any + Send)) -> &str {
    let text = what.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| what.downcast_ref::<&str>().copied()).unwrap_or("a thread panicked")
}

/// What clap has to say about a command line that is not taken: help, version or a fault.
pub(crate) fn refuse(name: &str, error: &clap::Error) -> u8 {
    let printed = error.print().and_then(|()| std::io::stdout().flush());
    let code = u8::try_from(error.exit_code()).unwrap_or(Exit::Usage.code());
    match printed {
        // A closed pipe is nobody's fault.
        Err(fault) if code == 0 && fault.kind() != ErrorKind::BrokenPipe => {
            let failure = term::unsaid(&fault);
            term::complain(&format!("{name}: {}", failure.message));
            failure.exit.code()
        }
        Ok(()) | Err(_) => code,
    }
}
