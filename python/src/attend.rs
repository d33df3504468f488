//! Long work: on a thread of its own, while this one frees the interpreter and looks at signals.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::errors;

/// How long a signal may go unseen.
const PATIENCE: Duration = Duration::from_millis(50);

/// Does `work` without the interpreter. If a signal handler raises (Ctrl-C), `interrupt` is set,
/// which ends the work soon, and the handler's exception is the result.
///
/// # Errors
/// What the handler raised; or the work panicked, which is a fault of this package.
pub(crate) fn attend<T: Send>(
    py: Python<'_>,
    interrupt: &AtomicBool,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let (result, raised) = py.detach(|| watch(interrupt, work));
    interrupt.store(false, Ordering::SeqCst);
    match (raised, result) {
        (Some(error), _) => Err(error),
        (None, Some(result)) => Ok(result),
        (None, None) => Err(errors::internal(py)),
    }
}

fn watch<T: Send>(
    interrupt: &AtomicBool,
    work: impl FnOnce() -> T + Send,
) -> (Option<T>, Option<PyErr>) {
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        // Its end is seen through the channel: a worker that panics drops the sender.
        let worker = scope.spawn(move || drop(sender.send(work())));
        let mut raised = None;
        let result = loop {
            match receiver.recv_timeout(PATIENCE) {
                Ok(result) => break Some(result),
                Err(RecvTimeoutError::Disconnected) => break None,
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(error) = Python::attach(|py| py.check_signals()) {
                        interrupt.store(true, Ordering::SeqCst);
                        raised.get_or_insert(error);
                    }
                }
            }
        };
        let _ = worker.join();
        (result, raised)
    })
}
