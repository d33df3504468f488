//! A vector operation as the scheduler sees it: its queues, and what its end does.

use dflow_ir::dsd::Dsd;
use dflow_ir::inst::{OnControl, Priority, Unblock};
use dflow_ir::loc::Loc;
use dflow_ir::mesh::Color;

use super::bind::Bindings;
use super::plan::PePlan;
use super::stretch::Stretch;
use crate::exec::{SharedStart, Stream};
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
    fn new(inputs: &[Option<u8>; 3], output: Option<Output>) -> Ends {
        let mut ends = Ends { output, ..Ends::default() };
        for (slot, &queue) in ends.queues.iter_mut().zip(inputs.iter().flatten()) {
            *slot = queue;
            ends.count += 1;
        }
        ends
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

impl<O> Op<O> {
    /// Reads a start, of which `begin` then makes what runs; the queues it names must exist and carry
    /// the color it names. If they do not it is given back.
    pub(crate) fn new(
        plan: &PePlan,
        bound: &Bindings,
        start: SharedStart,
        task: u16,
        begin: impl FnOnce(SharedStart) -> O,
    ) -> Result<Op<O>, (TrapKind, SharedStart)> {
        let (mut inputs, mut colors) = ([None; 3], [0; 3]);
        let (mut transforms, mut priority) = (false, start.priority);
        let slots = inputs.iter_mut().zip(&mut colors);
        for ((slot, of), source) in slots.zip(&start.sources) {
            if let Stream::Input { queue, color, transform } = *source {
                let index = bound.color_of_queue(plan, queue, color);
                let known = bound.input(plan, index);
                transforms |= transform;
                priority = priority.or(known.and_then(|known| known.priority));
                let known = known.and_then(|input| input.color);
                let fits = |known: &Color| color == Dsd::COLOR_OF_QUEUE || known.index() == color;
                let Some(known) = known.filter(fits) else {
                    return Err((TrapKind::BadQueue { input: true, queue }, start));
                };
                (*slot, *of) = (Some(index as u8), known.index());
            }
        }
        let output = match start.dest {
            Stream::Output {
                queue, color, control, advance_switch: advance, transform, ..
            } => {
                let known = bound.output(plan, queue.into());
                priority = priority.or(known.and_then(|known| known.priority));
                let color = known.and_then(|known| match known.color {
                    None => Color::new(color),
                    Some(known) if color == Dsd::COLOR_OF_QUEUE => Some(known),
                    Some(known) => (known.index() == color).then_some(known),
                });
                let Some(color) = color else {
                    return Err((TrapKind::BadQueue { input: false, queue }, start));
                };
                Some(Output { queue, color: color.index(), control, advance, transform })
            }
            Stream::None
            | Stream::Memory(_)
            | Stream::Input { .. }
            | Stream::Fifo { .. }
            | Stream::Scalar(_)
            | Stream::Pointer { .. } => None,
        };
        let is_fifo = |stream: &Stream| matches!(stream, Stream::Fifo { .. });
        let has_fifo = is_fifo(&start.dest) || start.sources.iter().any(is_fifo);
        let needs = Needs {
            inputs: inputs.iter().flatten().fold(0, |mask, &queue| mask | 1 << queue),
            output: output.map_or(0, |output: Output| 1 << output.queue),
        };
        let ends = Ends::new(&inputs, output);
        Ok(Op {
            asynchronous: start.asynchronous,
            microthread: start.microthread,
            inputs,
            colors,
            output,
            needs,
            ends,
            flows: false,
            by_words: false,
            from: 0,
            stretch: Stretch::default(),
            least: 1,
            patience: NEVER,
            feeds: Feeds::default(),
            has_fifo,
            activate: start.activate,
            unblock: start.unblock,
            priority: priority.unwrap_or_default(),
            transforms,
            on_control: start.on_control,
            loc: start.loc,
            task,
            ended: false,
            code: begin(start),
        })
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
