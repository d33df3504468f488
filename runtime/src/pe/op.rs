//! A vector operation as the scheduler sees it: its queues, and what its end does.

use dflow_ir::dsd::Dsd;
use dflow_ir::inst::{OnControl, Priority, Unblock};
use dflow_ir::loc::Loc;
use dflow_ir::mesh::Color;

use super::bind::Bindings;
use super::plan::PePlan;
use super::stretch::Stretch;
use crate::exec::{Stream, VectorStart};
use crate::fabric::ring::NEVER;
use crate::trap::TrapKind;

/// A running operation.
#[derive(Clone, Debug)]
pub(crate) struct Op<O> {
    pub(crate) code: O,
    pub(crate) asynchronous: bool,
    pub(crate) microthread: u8,
    /// Input queue of each source.
    pub(crate) inputs: [Option<u8>; 3],
    /// Their colors.
    pub(crate) colors: [u8; 3],
    pub(crate) output: Option<Output>,
    pub(crate) needs: Needs,
    pub(crate) ends: Ends,
    /// It goes by stretches (`flow`) from this cycle on, and may be in one.
    pub(crate) flows: bool,
    /// It goes element by element, as words stood in its output queue before its own (`flow`).
    pub(crate) held_up: bool,
    /// It goes word by word all the same, as long as microthreads want slots that it comes before.
    pub(crate) by_words: bool,
    pub(crate) from: u64,
    pub(crate) stretch: Stretch,
    /// A stretch begins when so many places are free, or after this cycle if any is.
    pub(super) least: u32,
    pub(super) patience: u64,
    pub(crate) feeds: Feeds,
    pub(crate) has_fifo: bool,
    pub(crate) activate: Option<u8>,
    pub(crate) unblock: Option<Unblock>,
    pub(crate) priority: Priority,
    /// Control wavelets on its inputs are elements.
    pub(crate) transforms: bool,
    pub(crate) on_control: OnControl,
    pub(crate) loc: Loc,
    /// Task that started it.
    pub(crate) task: u16,
    /// All elements are done, or a control wavelet ended it.
    pub(crate) ended: bool,
}

/// The queues of an operation, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Those that it takes words from.
    pub(crate) inputs: u64,
    /// The one that it puts words into.
    pub(crate) output: u64,
}

/// The pipes of an operation's inputs, in their order, as they were found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Feeds {
    pub(crate) pipes: [Option<u32>; 2],
    /// All have been found when so many pipes had been closed.
    pub(crate) known: Option<u32>,
}

/// Where the elements of an operation come from and go.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ends {
    /// Queues that it takes a word each from, in the order of its sources; no more than a step
    /// has words.
    queues: [u8; 2],
    count: u8,
    pub(crate) output: Option<Output>,
}

impl Ends {
    /// It takes a word from one more queue.
    #[inline]
    fn take_from(&mut self, queue: u8) {
        if let Some(slot) = self.queues.get_mut(usize::from(self.count)) {
            *slot = queue;
            self.count += 1;
        }
    }

    /// The queues that it takes words from.
    pub(crate) fn inputs(&self) -> &[u8] {
        &self.queues[..usize::from(self.count)]
    }
}

/// Where results go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) queue: u8,
    pub(crate) color: u8,
    pub(crate) control: bool,
    pub(crate) advance: bool,
    /// Marked elements leave as control wavelets.
    pub(crate) transform: bool,
}

/// What a start says of an operation, but for its elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpPlan {
    pub(crate) asynchronous: bool,
    pub(super) microthread: u8,
    activate: Option<u8>,
    unblock: Option<Unblock>,
    on_control: OnControl,
    loc: Loc,
    inputs: [Option<u8>; 3],
    colors: [u8; 3],
    pub(super) output: Option<Output>,
    pub(super) needs: Needs,
    pub(crate) ends: Ends,
    has_fifo: bool,
    transforms: bool,
    priority: Option<Priority>,
}

impl OpPlan {
    /// Reads a start; the queues it names must exist and carry the color it names.
    pub(crate) fn new(
        program: &PePlan,
        bound: &Bindings,
        start: &VectorStart,
    ) -> Result<OpPlan, TrapKind> {
        let mut op = OpPlan {
            asynchronous: start.asynchronous,
            microthread: start.microthread,
            activate: start.activate,
            unblock: start.unblock,
            on_control: start.on_control,
            loc: start.loc,
            inputs: [None; 3],
            colors: [0; 3],
            output: None,
            needs: Needs::default(),
            ends: Ends::default(),
            has_fifo: false,
            transforms: false,
            priority: start.priority,
        };
        for (at, source) in start.sources.iter().enumerate() {
            match *source {
                Stream::Input { queue, color, transform } => {
                    op.transforms |= transform;
                    op.take_from(program, bound, (at, queue, color))?;
                }
                Stream::Fifo { .. } => op.has_fifo = true,
                Stream::None
                | Stream::Memory(_)
                | Stream::Output { .. }
                | Stream::Scalar(_)
                | Stream::Pointer { .. } => {}
            }
        }
        match start.dest {
            Stream::Output {
                queue, color, control, advance_switch: advance, transform, ..
            } => {
                let color = op.color_of_output(program, bound, (queue, color))?;
                let output = Some(Output { queue, color, control, advance, transform });
                (op.output, op.ends.output) = (output, output);
                op.needs.output = 1 << queue;
            }
            Stream::Fifo { .. } => op.has_fifo = true,
            Stream::None
            | Stream::Memory(_)
            | Stream::Input { .. }
            | Stream::Scalar(_)
            | Stream::Pointer { .. } => {}
        }
        Ok(op)
    }

    /// A source is an input queue, by number and color.
    #[inline]
    fn take_from(
        &mut self,
        program: &PePlan,
        bound: &Bindings,
        (at, queue, color): (usize, u8, u8),
    ) -> Result<(), TrapKind> {
        let index = bound.color_of_queue(program, queue, color);
        let known = bound.inputs(program).get(index);
        self.priority = self.priority.or(known.and_then(|known| known.priority));
        let known = known.and_then(|input| input.color);
        let fits = |known: &Color| color == Dsd::COLOR_OF_QUEUE || known.index() == color;
        let Some(known) = known.filter(fits) else {
            return Err(TrapKind::BadQueue { input: true, queue });
        };
        if self.needs.inputs >> index & 1 != 0 {
            return Err(TrapKind::QueueTwice { queue });
        }
        (self.inputs[at], self.colors[at]) = (Some(index as u8), known.index());
        self.needs.inputs |= 1 << index;
        self.ends.take_from(index as u8);
        Ok(())
    }

    /// The color of an output queue that is named, and perhaps its color.
    #[inline]
    fn color_of_output(
        &mut self,
        program: &PePlan,
        bound: &Bindings,
        (queue, color): (u8, u8),
    ) -> Result<u8, TrapKind> {
        let known = bound.output(program, queue.into());
        self.priority = self.priority.or(known.and_then(|known| known.priority));
        let color = known.and_then(|known| match known.color {
            None => Color::new(color),
            Some(known) if color == Dsd::COLOR_OF_QUEUE => Some(known),
            Some(known) => (known.index() == color).then_some(known),
        });
        color.map(Color::index).ok_or(TrapKind::BadQueue { input: false, queue })
    }
}

impl<O> Op<O> {
    /// An operation before its first element, as it was started by a task.
    #[inline(always)]
    pub(crate) fn new(code: O, plan: OpPlan, task: u16) -> Op<O> {
        let OpPlan { asynchronous, microthread, activate, unblock, on_control, loc, .. } = plan;
        let OpPlan { inputs, colors, output, needs, ends, has_fifo, transforms, .. } = plan;
        Op {
            code,
            asynchronous,
            microthread,
            inputs,
            colors,
            output,
            needs,
            ends,
            flows: false,
            held_up: false,
            by_words: false,
            from: 0,
            stretch: Stretch::default(),
            least: 1,
            patience: NEVER,
            feeds: Feeds::default(),
            has_fifo,
            activate,
            unblock,
            priority: plan.priority.unwrap_or_default(),
            transforms,
            on_control,
            loc,
            task,
            ended: false,
        }
    }

    /// Whether its end starts or unblocks something.
    pub(super) fn tells(&self) -> bool {
        let by_control = matches!(self.on_control, OnControl::Activate(_) | OnControl::Unblock(_));
        self.activate.is_some() || self.unblock.is_some() || by_control
    }

    /// Its next stretch begins with as many places as there are.
    pub(super) fn takes_any_room(&mut self) {
        self.patience = 0;
    }

    /// Its input queues, as bits.
    pub(crate) fn input_mask(&self) -> u64 {
        self.needs.inputs
    }

    /// Its output queue, as a bit.
    pub(crate) fn output_mask(&self) -> u64 {
        self.needs.output
    }

    /// Whether what it sends may do more to routers than pass them.
    pub(crate) fn commands(&self) -> bool {
        self.output.is_some_and(|output| output.control || output.advance || output.transform)
    }

    /// Whether words and places are all that it waits for, and each word is an element.
    pub(crate) fn is_plain(&self) -> bool {
        !self.has_fifo && !self.transforms && !self.counts_control()
    }

    /// The color that it names for one of its queues.
    pub(crate) fn color(&self, queue: u8, input: bool) -> Option<u8> {
        if !input {
            return self.output.filter(|output| output.queue == queue).map(|output| output.color);
        }
        let mut inputs = self.inputs.iter().zip(&self.colors);
        inputs.find(|(own, _)| **own == Some(queue)).map(|(_, color)| *color)
    }

    /// Whether control wavelets are its elements.
    pub(crate) fn counts_control(&self) -> bool {
        matches!(self.on_control, OnControl::Count)
    }

    /// Whether control wavelets pass it by.
    pub(crate) fn ignores_control(&self) -> bool {
        matches!(self.on_control, OnControl::Ignore) && !self.transforms
    }
}
