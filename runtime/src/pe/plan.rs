//! What a core knows from its program: immutable, one per program.

use dflow_ir::inst::{FlagOp, InstData};
use dflow_ir::loc::Loc;
use dflow_ir::mesh::Color;
use dflow_ir::program::{FuncId, Program, TaskKind};
use dflow_ir::target::Target;
use dflow_ir::ty::Ty;

use super::super::sched::plan::Latencies;
use crate::load::LoadError;

/// "No task" in the tables.
pub(crate) const NO_TASK: u16 = u16::MAX;

const NO_QUEUE: u8 = u8::MAX;

/// Ids of tasks, channels and microthreads are below this.
pub(crate) const IDS: usize = 64;

/// A program's tasks and queues.
#[derive(Clone, Debug)]
pub(crate) struct PePlan {
    pub(crate) name: String,
    pub(crate) inputs: Vec<InputPlan>,
    /// Input queues with a number of the target; the rest belong to data tasks alone.
    pub(crate) numbered: usize,
    pub(crate) outputs: Vec<OutputPlan>,
    queue_of: [u8; Color::COUNT],
    pub(crate) tasks: Vec<TaskPlan>,
    /// Task by local id.
    pub(crate) local: [u16; IDS],
    /// Task by control id.
    pub(crate) control: [u16; IDS],
    /// Channel that a data task id stands for, where a data task is bound.
    pub(crate) data: u64,
    /// Flag operations before the start.
    pub(crate) initial: Vec<(FlagOp, u8)>,
    /// Whether anything can happen on a PE before a word comes.
    pub(crate) starts: bool,
    /// Configuration registers written before the start: word address and value.
    pub(crate) config: Vec<(u16, u16)>,
    /// Whether it writes configuration registers at all (other than through pointers).
    pub(crate) configures: bool,
    pub(crate) microthreads: u8,
}

/// An input queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InputPlan {
    /// Color it takes, if it is bound.
    pub(crate) color: Option<Color>,
    /// Places (R2).
    pub(crate) places: u32,
    /// Its channel: color or queue, by target.
    pub(crate) channel: u8,
    /// Its data task.
    pub(crate) task: u16,
}

/// An output queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputPlan {
    /// Places.
    pub(crate) places: u32,
    /// The color it is bound to, if it is.
    pub(crate) color: Option<Color>,
}

/// A task.
#[derive(Clone, Debug)]
pub(crate) struct TaskPlan {
    pub(crate) func: FuncId,
    pub(crate) name: String,
    pub(crate) params: Vec<Ty>,
    pub(crate) loc: Loc,
}

impl PePlan {
    /// Reads a validated program.
    pub(crate) fn new(
        program: &Program,
        target: &Target,
        timing: &Latencies,
    ) -> Result<PePlan, LoadError> {
        let round_trip = (timing.ramp_down + timing.credit - 1) as u32;
        let inputs = target.input_queues.iter().zip(0u8..).map(|(&depth, queue)| InputPlan {
            color: None,
            places: u32::from(depth) + round_trip,
            channel: queue,
            task: NO_TASK,
        });
        let outputs = target
            .output_queues
            .iter()
            .map(|&depth| OutputPlan { places: u32::from(depth.max(1)), color: None });
        let mut plan = PePlan {
            name: program.name.clone(),
            inputs: inputs.collect(),
            numbered: target.input_queues.len(),
            outputs: outputs.collect(),
            queue_of: [NO_QUEUE; Color::COUNT],
            tasks: Vec::new(),
            local: [NO_TASK; IDS],
            control: [NO_TASK; IDS],
            data: 0,
            initial: Vec::new(),
            starts: false,
            config: program.initial_config.iter().map(|set| (set.address, set.value)).collect(),
            configures: configures(program),
            microthreads: target.microthreads.min(8),
        };
        plan.bind_queues(program, target)?;
        plan.bind_tasks(program, target)?;
        plan.open_channels(program, target)?;
        for flag in &program.initial_flags {
            plan.initial.push((flag.op, flag.id));
            if flag.op == FlagOp::Activate {
                plan.starts = true;
                if plan.local.get(usize::from(flag.id)).is_none_or(|&task| task == NO_TASK) {
                    let (name, id) = (&plan.name, flag.id);
                    let message = format!("`{name}` activates task id {id}, which is not bound");
                    return Err(LoadError::Invalid(message));
                }
            }
        }
        Ok(plan)
    }

    /// The input queue that takes a color.
    pub(crate) fn queue_of(&self, color: u8) -> Option<usize> {
        let queue = self.queue_of[usize::from(color)];
        (queue != NO_QUEUE).then_some(usize::from(queue))
    }

    fn bind_queues(&mut self, program: &Program, target: &Target) -> Result<(), LoadError> {
        for binding in &program.queues {
            let (queue, color) = (usize::from(binding.queue), binding.color);
            let bad = || {
                LoadError::Invalid(format!(
                    "`{}` binds queue {queue}, which does not exist",
                    self.name
                ))
            };
            if !binding.input {
                self.outputs.get_mut(queue).ok_or_else(bad)?.color = Some(color);
                continue;
            }
            if queue >= self.numbered {
                return Err(bad());
            }
            let of_color = &mut self.queue_of[usize::from(color.index())];
            if *of_color != NO_QUEUE && *of_color != binding.queue {
                let (first, second) = (*of_color, binding.queue);
                return Err(LoadError::TwoQueues {
                    program: self.name.clone(),
                    color,
                    first,
                    second,
                });
            }
            *of_color = binding.queue;
            let input = &mut self.inputs[queue];
            input.color = Some(color);
            if !target.data_task_by_queue {
                input.channel = color.index();
            }
        }
        Ok(())
    }

    fn bind_tasks(&mut self, program: &Program, target: &Target) -> Result<(), LoadError> {
        for binding in &program.tasks {
            let number = self.tasks.len() as u16;
            let func = &program.funcs[binding.func];
            self.tasks.push(TaskPlan {
                func: binding.func,
                name: func.name.clone(),
                params: func.signature().params,
                loc: binding.loc,
            });
            let id = usize::from(binding.id);
            let bad = || {
                LoadError::Invalid(format!(
                    "`{}` binds a task to id {id}, which does not exist",
                    self.name
                ))
            };
            match binding.kind {
                TaskKind::Local => *self.local.get_mut(id).ok_or_else(bad)? = number,
                TaskKind::Control => *self.control.get_mut(id).ok_or_else(bad)? = number,
                TaskKind::Data => {
                    let limit =
                        if target.data_task_by_queue { self.numbered } else { Color::COUNT };
                    if id >= limit {
                        return Err(bad());
                    }
                    self.data |= 1 << id;
                    let queue = self.data_queue(binding.id, target);
                    self.inputs[queue].task = number;
                }
            }
        }
        Ok(())
    }

    /// A color that is open from the start has a queue, if only for control wavelets.
    fn open_channels(&mut self, program: &Program, target: &Target) -> Result<(), LoadError> {
        if target.data_task_by_queue {
            return Ok(());
        }
        for flag in program.initial_flags.iter().filter(|flag| flag.op == FlagOp::UnblockChannel) {
            if usize::from(flag.id) >= Color::COUNT {
                let message = format!("`{}` unblocks color {}", self.name, flag.id);
                return Err(LoadError::Invalid(message));
            }
            self.data_queue(flag.id, target);
        }
        Ok(())
    }

    /// The queue of a data task; a color without one gets its own.
    fn data_queue(&mut self, id: u8, target: &Target) -> usize {
        if target.data_task_by_queue {
            return usize::from(id);
        }
        if let Some(queue) = self.queue_of(id) {
            return queue;
        }
        let queue = self.inputs.len();
        let places = self.inputs.first().map_or(1, |first| first.places);
        self.inputs.push(InputPlan { color: Color::new(id), places, channel: id, task: NO_TASK });
        self.queue_of[usize::from(id)] = queue as u8;
        queue
    }
}

/// Whether a program has an instruction that writes configuration registers.
fn configures(program: &Program) -> bool {
    let writes = |inst: &InstData| matches!(inst, InstData::SetConfig { .. });
    let mut funcs = program.funcs.values();
    !program.initial_config.is_empty() || funcs.any(|func| func.insts.values().any(writes))
}
