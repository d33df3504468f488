//! Ctrl-C: the first ends the run cleanly, the second at once. After the first, who reads nothing of what is said is
//! not waited for.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::exit::{Exit, Failure};
use crate::term;

/// Signals that come this close together are one wish: a wrapper passes on what the terminal
/// sends to the whole group anyway.
const ONE_PRESS: Duration = Duration::from_millis(200);

/// Who takes nothing for so long does not read.
const DEAF: Duration = Duration::from_secs(1);

/// Time between two looks at who reads.
const LOOK: Duration = Duration::from_millis(50);

/// A flag that Ctrl-C sets, and what to remove when a second one comes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    /// Name of the tool.
    tool: &'static str,
    flag: Arc<AtomicBool>,
    /// Somebody looks at the flag: until then a press ends the process at once.
    heard: Arc<AtomicBool>,
    /// Somebody looks at who reads.
    watched: Arc<AtomicBool>,
    first: Arc<Mutex<Option<Instant>>>,
    files: Arc<Mutex<Vec<PathBuf>>>,
}

impl Interrupt {
    /// Takes over Ctrl-C (and the polite signal to end) for the rest of the process, which is that of a tool.
    ///
    /// # Errors
    /// The system does not let us.
    pub(crate) fn install(tool: &'static str) -> Result<Interrupt, Failure> {
        let interrupt = Interrupt { tool, ..Interrupt::default() };
        let mine = interrupt.clone();
        ctrlc::set_handler(move || mine.pressed())
            .map_err(|error| Failure::program(format!("Ctrl-C cannot be handled: {error}")))?;
        Ok(interrupt)
    }

    fn pressed(&self) {
        match self.ends(Instant::now()) {
            Some(how) => self.leave(how),
            None => self.watch(),
        }
    }

    /// Ends the process at once.
    fn leave(&self, how: &str) -> ! {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        for file in files.iter() {
            let _ = std::fs::remove_file(file);
        }
        term::farewell(format!("{}: {how}", self.tool));
        std::process::exit(i32::from(Exit::Interrupted.code()));
    }

    /// Ends the process when what it still has to say is not taken: the work that looks at the flag is not there to look.
    fn watch(&self) {
        if self.watched.swap(true, Ordering::SeqCst) {
            return;
        }
        let own = self.clone();
        let look = move || {
            while !term::is_stuck(DEAF) {
                std::thread::sleep(LOOK);
            }
            own.leave("interrupted; ended at once, since nobody reads what it says");
        };
        // Without a thread a second press ends it.
        let _ = std::thread::Builder::new().spawn(look);
    }

    /// What a press at this time says, should it end the process.
    fn ends(&self, now: Instant) -> Option<&'static str> {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let since = *first.get_or_insert(now);
        // A press that was heard has its other half, even where nobody looks any more.
        if !self.heard.load(Ordering::SeqCst) && !self.is_set() {
            return Some("interrupted; nothing was written");
        }
        // Only now: who begins to look while the process ends would say so too.
        self.set();
        let is_other_half = now.duration_since(since) < ONE_PRESS;
        (!is_other_half).then_some("interrupted twice; ended at once")
    }

    /// The flag, for those who look at it while they work.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }

    /// As if Ctrl-C had been pressed.
    pub(crate) fn set(&self) {
        self.flag.store(true, Ordering::SeqCst);
    }

    /// The same for work that the first press does not end.
    pub(crate) fn twice(&self) -> Interrupt {
        Interrupt { flag: Arc::default(), ..self.clone() }
    }

    /// From now on the flag is looked at: the first press ends the work that does so cleanly.
    pub(crate) fn listen(&self) {
        self.heard.store(true, Ordering::SeqCst);
    }

    /// Nobody looks at the flag any more, until [`Interrupt::listen`]: a press ends the process at once.
    pub(crate) fn rest(&self) {
        self.heard.store(false, Ordering::SeqCst);
    }

    /// Whether Ctrl-C was pressed.
    pub(crate) fn is_set(&self) -> bool {
        self.flag.load(Ordering::SeqCst)
    }

    /// Removes this temporary file should the process end by a second Ctrl-C.
    pub(crate) fn remove_on_exit(&self, path: &Path) {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_path_buf());
    }
}

#[cfg(test)]
impl Interrupt {
    /// One that is never pressed.
    pub(crate) fn never() -> Interrupt {
        Interrupt::default()
    }

    /// One that is pressed already.
    pub(crate) fn already() -> Interrupt {
        let interrupt = Interrupt::default();
        interrupt.flag.store(true, Ordering::SeqCst);
        interrupt
    }

    /// How many files a second press would remove.
    pub(crate) fn temporary_files(&self) -> usize {
        self.files.lock().map_or(0, |files| files.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_press_that_was_heard_has_its_other_half_where_nobody_looks() {
        let (interrupt, now) = (Interrupt::never(), Instant::now());
        interrupt.listen();
        assert_eq!(interrupt.ends(now), None);
        interrupt.rest();
        assert_eq!(interrupt.ends(now + ONE_PRESS / 2), None);
        assert_eq!(interrupt.ends(now + ONE_PRESS), Some("interrupted twice; ended at once"));
    }

    #[test]
    fn where_nobody_looks_one_press_is_enough() {
        let interrupt = Interrupt::never();
        assert_eq!(interrupt.ends(Instant::now()), Some("interrupted; nothing was written"));
        assert!(!interrupt.is_set());
    }
}
