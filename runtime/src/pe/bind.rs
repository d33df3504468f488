//! Queues bound to other colors while the program runs.
//!
//! Invariants: a binding made in cycle t is in force from t + 1 on, for routers as for the core
//! (R1: nothing acts on a neighbor in the same cycle); a core whose code binds nothing has no
//! state here.

use dflow_ir::mesh::Color;

use super::core::{Core, Input};
use super::plan::{InputPlan, NO_QUEUE, OutputPlan, PePlan};
use crate::pe::code::Code;
use crate::trap::TrapKind;

/// What differs from the program's plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bindings(Option<Box<Changed>>);

#[derive(Clone, Debug)]
struct Changed {
    inputs: Vec<InputPlan>,
    outputs: Vec<OutputPlan>,
    queue_of: [u8; Color::COUNT],
    /// Colors whose filter is passed by, as bits.
    unfiltered: u32,
    /// From which cycle on `queue_of` and `unfiltered` are in force, and what was before.
    from: u64,
    before: ([u8; Color::COUNT], u32),
}

impl Bindings {
    /// The input queues as they are bound now.
    #[inline]
    pub(crate) fn inputs<'a>(&'a self, plan: &'a PePlan) -> &'a [InputPlan] {
        self.0.as_ref().map_or(&plan.inputs, |changed| &changed.inputs)
    }

    /// An input queue as it is bound now.
    pub(crate) fn input(&self, plan: &PePlan, queue: usize) -> Option<InputPlan> {
        self.inputs(plan).get(queue).copied()
    }

    /// The place where the words of a color wait for an operation on a queue: the queue itself,
    /// unless the queue has several colors.
    pub(crate) fn color_of_queue(&self, plan: &PePlan, queue: u8, color: u8) -> usize {
        let inputs = self.0.as_ref().map_or(&plan.inputs, |changed| &changed.inputs);
        let further = inputs.iter().skip(plan.numbered).position(|input| {
            input.queue == Some(queue) && input.color.is_some_and(|it| it.index() == color)
        });
        further.map_or(usize::from(queue), |at| at + plan.numbered)
    }

    /// An output queue as it is bound now.
    pub(crate) fn output(&self, plan: &PePlan, queue: usize) -> Option<OutputPlan> {
        let outputs = self.0.as_ref().map_or(&plan.outputs, |changed| &changed.outputs);
        outputs.get(queue).copied()
    }

    /// The input queue that takes a color's words in cycle `t`.
    pub(crate) fn queue_of(&self, plan: &PePlan, color: u8, t: u64) -> Option<usize> {
        let Some(changed) = &self.0 else { return plan.queue_of(color) };
        let table = if t < changed.from { &changed.before.0 } else { &changed.queue_of };
        let queue = table[usize::from(color)];
        (queue != NO_QUEUE).then_some(usize::from(queue))
    }

    /// Whether a color's words pass by its filter in cycle `t`.
    pub(crate) fn unfiltered(&self, color: u8, t: u64) -> bool {
        self.0.as_ref().is_some_and(|changed| {
            let set = if t < changed.from { changed.before.1 } else { changed.unfiltered };
            set >> color & 1 != 0
        })
    }

    /// Whether the program's plan says all.
    pub(crate) fn are_planned(&self) -> bool {
        self.0.is_none()
    }

    fn change(&mut self, plan: &PePlan, t: u64) -> &mut Changed {
        let changed = self.0.get_or_insert_with(|| {
            Box::new(Changed {
                inputs: plan.inputs.clone(),
                outputs: plan.outputs.clone(),
                queue_of: plan.queue_of,
                unfiltered: 0,
                from: 0,
                before: (plan.queue_of, 0),
            })
        });
        if changed.from <= t {
            changed.before = (changed.queue_of, changed.unfiltered);
            changed.from = t + 1;
        }
        changed
    }
}

impl<C: Code> Core<C> {
    /// An input queue as it is bound now.
    pub(crate) fn input(&self, program: &PePlan, queue: usize) -> InputPlan {
        self.bound.input(program, queue).unwrap_or(program.inputs[queue])
    }

    /// Binds an empty input queue to a color in cycle `t`; `word` as in
    /// [`dflow_ir::inst::FlagOp::BindInput`].
    pub(super) fn bind_input(
        &mut self,
        program: &PePlan,
        word: u16,
        t: u64,
    ) -> Result<(), TrapKind> {
        let (queue, color) = (word & 0xff, (word >> 8 & 0x7f) as u8);
        let index = usize::from(queue);
        let Some(color) = Color::new(color).filter(|_| index < program.numbered) else {
            return Err(TrapKind::BadId { id: queue });
        };
        if !self.input_is_empty(index, t) {
            return Err(TrapKind::QueueNotEmpty { input: true, queue: queue as u8 });
        }
        if self.inputs.len() <= index {
            let mut inputs = std::mem::take(&mut self.inputs).into_vec();
            inputs.resize(index + 1, Input::default());
            self.inputs = inputs.into();
        }
        if self.inputs[index].ring.places() == 0 {
            self.inputs[index] = Input::new(program.inputs[index].places);
        }
        let changed = self.bound.change(program, t);
        changed.queue_of.iter_mut().filter(|of| usize::from(**of) == index).for_each(|of| {
            *of = NO_QUEUE;
        });
        changed.queue_of[usize::from(color.index())] = queue as u8;
        let bit = 1 << color.index();
        changed.unfiltered &= !bit;
        if word >> 15 != 0 {
            changed.unfiltered |= bit;
        }
        let input = &mut changed.inputs[index];
        input.color = Some(color);
        if !program.by_queue {
            input.channel = color.index();
            input.task = program.data_task[usize::from(color.index())];
        }
        self.acted.bound = true;
        Ok(())
    }

    /// Binds an empty output queue to a color in cycle `t`.
    pub(super) fn bind_output(
        &mut self,
        program: &PePlan,
        word: u16,
        t: u64,
    ) -> Result<(), TrapKind> {
        let (queue, color) = (word & 0xff, (word >> 8) as u8);
        let index = usize::from(queue);
        let Some(color) = Color::new(color).filter(|_| index < program.outputs.len()) else {
            return Err(TrapKind::BadId { id: queue });
        };
        if self.outputs.get(index).is_some_and(|output| !output.ring.is_empty()) {
            return Err(TrapKind::QueueNotEmpty { input: false, queue: queue as u8 });
        }
        let changed = self.bound.change(program, t);
        changed.outputs[index].color = Some(color);
        Ok(())
    }

    /// Whether an input queue holds no word that was granted before cycle `t`; of those that are
    /// granted in it nothing may be known.
    pub(super) fn input_is_empty(&self, queue: usize, t: u64) -> bool {
        let head = self.inputs.get(queue).and_then(|input| input.ring.head());
        head.is_none_or(|head| head.stamp >= t + self.ramp_down)
    }
}
