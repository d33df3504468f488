//! A resolved operation that may be started again and again.
//!
//! A program issues the same instruction with the same descriptors on many PEs. What it resolves to,
//! and how its elements begin, is found out once and shared ([`known`](super::known)).
//!
//! Invariant: nothing here depends on a PE's state.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use dflow_ir::inst::VectorInst;

use super::VectorArgs;
use super::element::PlainElement;
use super::running::reduction;
use super::walk::Walk;
use crate::exec::odd;
use crate::exec::program::LoadedProgram;
use crate::exec::{Stream, VectorStart};

/// An operation ready to go, shared by all that start it.
#[derive(Clone, Debug)]
pub struct SharedStart(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    start: VectorStart,
    /// The address of the instruction that starts it with these arguments, if they say it all.
    issue: Option<(usize, VectorArgs)>,
    fresh: OnceLock<Fresh>,
}

/// How the elements of an operation begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fresh {
    /// Destination, then sources.
    pub(super) walks: [Walk; 4],
    /// The accumulator of a reduction.
    pub(super) value: u32,
    pub(super) reduces: bool,
    /// An operand would leave its variable if all elements were done.
    pub(super) may_leave: bool,
    /// How its elements are done, if it is plain.
    pub(super) plain: Option<PlainElement>,
    /// In how many bytes of memory these lie, if any number of them may be done in chunks.
    pub(super) chunks_in: Option<u32>,
    /// It leaves nothing behind that its elements have not: no value, no register that moves on.
    pub(super) leaves_nothing: bool,
}

impl Fresh {
    fn new(program: &LoadedProgram, start: &VectorStart) -> Fresh {
        let walk = |stream: &Stream| match stream {
            Stream::Memory(memory) => Walk::of(program, memory),
            Stream::None
            | Stream::Input { .. }
            | Stream::Output { .. }
            | Stream::Fifo { .. }
            | Stream::Scalar(_)
            | Stream::Pointer { .. } => Walk::default(),
        };
        let [first, second, third] = &start.sources;
        let walks = [walk(&start.dest), walk(first), walk(second), walk(third)];
        let (value, reduces) = match reduction(start) {
            Some(seed) => (seed, true),
            None => (0, false),
        };
        let may_leave = odd::leaves(program, start).is_some();
        let stays = !reduces && !may_leave;
        let plain = if stays { PlainElement::new(start, &walks) } else { None };
        let chunks_in = plain.as_ref().zip(start.length).and_then(|(it, all)| it.chunks_in(all));
        let leaves_nothing = leaves_nothing(start);
        Fresh { walks, value, reduces, may_leave, plain, chunks_in, leaves_nothing }
    }
}

/// Whether an operation that has done all its elements has nothing to write back.
fn leaves_nothing(start: &VectorStart) -> bool {
    let bare = |stream: &Stream| match stream {
        Stream::Memory(memory) => memory.save.is_none(),
        Stream::None
        | Stream::Input { .. }
        | Stream::Output { .. }
        | Stream::Fifo { .. }
        | Stream::Scalar(_) => true,
        Stream::Pointer { .. } => false,
    };
    start.zero.is_none() && bare(&start.dest) && start.sources.iter().all(bare)
}

impl SharedStart {
    /// What an instruction starts with arguments that say it all, in whatever state.
    pub(super) fn of(start: VectorStart, inst: &VectorInst, args: &VectorArgs) -> SharedStart {
        let issue = Some((std::ptr::from_ref(inst).addr(), *args));
        SharedStart(Arc::new(Shared { start, issue, fresh: OnceLock::new() }))
    }

    /// Whether this is what an instruction starts with these arguments, as far as they say it all; always asked with
    /// an instruction of its own program.
    #[inline]
    pub(crate) fn is_of(&self, inst: &VectorInst, args: &VectorArgs) -> bool {
        let address = std::ptr::from_ref(inst).addr();
        self.0.issue.as_ref().is_some_and(|(of, with)| *of == address && with == args)
    }

    /// Whether both are the same one: then they are equal.
    pub(crate) fn is(&self, other: &SharedStart) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// How its elements begin, if it has begun somewhere.
    pub(super) fn known_fresh(&self) -> Option<&Fresh> {
        self.0.fresh.get()
    }

    /// How its elements begin; always asked with the program that it is of.
    pub(super) fn fresh(&self, program: &LoadedProgram) -> &Fresh {
        self.0.fresh.get_or_init(|| Fresh::new(program, &self.0.start))
    }
}

impl Deref for SharedStart {
    type Target = VectorStart;

    fn deref(&self) -> &VectorStart {
        &self.0.start
    }
}

impl From<VectorStart> for SharedStart {
    fn from(start: VectorStart) -> SharedStart {
        SharedStart(Arc::new(Shared { start, issue: None, fresh: OnceLock::new() }))
    }
}

impl PartialEq for SharedStart {
    fn eq(&self, other: &SharedStart) -> bool {
        self.is(other) || **self == **other
    }
}
