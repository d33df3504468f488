//! How long a command waits for the compiler: until Ctrl-C, or until its time is up.
//!
//! The compiler asks again and again whether it is to go on. What it cannot ask in is the reading of a file, which may
//! be a pipe that nobody writes to: meanwhile Ctrl-C ends the process at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dflow_compiler::{Compiled, Options, Stage, Stop, World};

use crate::exit::Failure;
use crate::interrupt::Interrupt;
use crate::limit;
use crate::source::Root;

/// What ends a compilation before its end.
#[derive(Clone, Debug)]
pub(crate) struct Patience {
    interrupt: Interrupt,
    deadline: Option<Instant>,
}

impl Patience {
    /// Until Ctrl-C.
    pub(crate) fn new(interrupt: &Interrupt) -> Patience {
        Patience { interrupt: interrupt.clone(), deadline: None }
    }

    /// Likewise, or until so many seconds after `begun`, if there is such a limit.
    pub(crate) fn until(self, begun: Instant, seconds: Option<f64>) -> Patience {
        let deadline = seconds.map(|seconds| begun + Duration::from_secs_f64(seconds));
        Patience { deadline, ..self }
    }

    /// Compiles a program; Ctrl-C is heard meanwhile.
    ///
    /// # Errors
    /// Patience is at its end.
    pub(crate) fn compile(&self, root: Root<'_>, options: Options) -> Result<Compiled, Failure> {
        self.compile_from(&root, root.path(), options)
    }

    /// Likewise, from a world of its own.
    ///
    /// # Errors
    /// Patience is at its end.
    pub(crate) fn compile_from(
        &self,
        world: &dyn World,
        path: &str,
        options: Options,
    ) -> Result<Compiled, Failure> {
        let work = |world: &dyn World, options| ((), dflow_compiler::compile(world, path, options));
        self.work(world, options, work).map(|((), compiled)| compiled)
    }

    /// The text of a stage, likewise.
    ///
    /// # Errors
    /// Patience is at its end.
    pub(crate) fn dump(
        &self,
        root: Root<'_>,
        options: Options,
        stage: Stage,
    ) -> Result<(String, Compiled), Failure> {
        self.work(&root, options, |world, options| {
            dflow_compiler::dump(world, root.path(), options, stage)
        })
    }

    fn work<T>(
        &self,
        world: &dyn World,
        options: Options,
        work: impl FnOnce(&dyn World, Options) -> (T, Compiled),
    ) -> Result<(T, Compiled), Failure> {
        let own = self.clone();
        let stop = Stop(Arc::new(move || own.interrupt.is_set() || own.is_late()));
        self.interrupt.listen();
        let world = Reading { world, interrupt: &self.interrupt };
        let (made, compiled) = work(&world, Options { stop: Some(stop), ..options });
        // What comes next may be a pipe that nobody reads: who looks at the flag listens again.
        self.interrupt.rest();
        if self.interrupt.is_set() {
            return Err(Failure::interrupted());
        }
        if compiled.given_up {
            return Err(Failure::limit(limit::late_compiler(limit::OPTIONS)));
        }
        Ok((made, compiled))
    }

    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// A world that may be waited for without end.
struct Reading<'a> {
    world: &'a dyn World,
    interrupt: &'a Interrupt,
}

impl World for Reading<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        self.interrupt.rest();
        let bytes = self.world.read(path);
        self.interrupt.listen();
        bytes
    }

    fn locate(&self, path: &str) -> Option<String> {
        self.world.locate(path)
    }
}
