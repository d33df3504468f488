//! A command's process: room for deep recursion, and an exit code for whatever happens.

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
        .spawn(command)
        .map_err(|error| Failure::program(format!("no thread can be started: {error}")))
        .and_then(|thread| thread.join().unwrap_or(Ok(Exit::Program)));
    match result {
        Ok(exit) => exit.code(),
        Err(failure) => {
            term::complain(&format!("{name}: {}", failure.message));
            failure.exit.code()
        }
    }
}

/// What clap has to say about a command line that is not taken: help, version or a fault.
pub(crate) fn refuse(error: &clap::Error) -> u8 {
    // A closed pipe is nobody's fault.
    let _ = error.print();
    u8::try_from(error.exit_code()).unwrap_or(Exit::Usage.code())
}
