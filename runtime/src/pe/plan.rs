//! What a core knows from its program: immutable, one per program.

use std::collections::BTreeSet;

use dflow_ir::inst::{FlagOp, InstData, Priority};
use dflow_ir::loc::Loc;
use dflow_ir::mesh::Color;
use dflow_ir::program::{FuncId, Program, TaskKind};
use dflow_ir::registers::{self, BankKind};
use dflow_ir::target::{Target, TargetId};
use dflow_ir::ty::Ty;
use dflow_ir::written::written_registers;

use super::super::sched::plan::Latencies;
use super::core::bits;
use super::looks::{looks, reads_times};
use super::queues::TEARDOWN_TASK;
use crate::fabric::registers::color_word;
use crate::load::LoadError;

/// "No task" in the tables.
pub(crate) const NO_TASK: u16 = u16::MAX;

/// "No queue" in the tables.
pub(crate) const NO_QUEUE: u8 = u8::MAX;

/// Ids of tasks, channels and microthreads are below this.
pub(crate) const IDS: usize = 64;

/// A program's tasks and queues.
#[derive(Clone, Debug)]
pub(crate) struct PePlan {
    pub(crate) name: String,
    pub(crate) inputs: Vec<InputPlan>,
    /// Input queues with a number of the target; the rest belong to data tasks alone.
    pub(crate) numbered: usize,
    /// Cycles down the ramp.
    pub(crate) ramp_down: u64,
    /// Depths of these.
    pub(crate) depths: Vec<u8>,
    pub(crate) outputs: Vec<OutputPlan>,
    pub(crate) queue_of: [u8; Color::COUNT],
    /// Input queues that have data tasks, as bits.
    pub(crate) heard: u64,
    pub(crate) tasks: Vec<TaskPlan>,
    /// Input queues, as bits, of which nothing but operations on them can tell how many words are
    /// in them.
    pub(crate) quiet: u64,
    /// Input queues, as bits, that have data tasks and of which nothing else can tell how many words are in them.
    pub(crate) pulls: u64,
    /// Whether words start tasks, and whether none but data tasks.
    pub(crate) hears: bool,
    pub(crate) hears_data_only: bool,
    /// Local ids that FIFOs activate, as bits.
    pub(crate) fifo_events: u64,
    /// Task by local id.
    pub(crate) local: [u16; IDS],
    /// Task by control id.
    pub(crate) control: [u16; IDS],
    /// Channel that a data task id stands for, where a data task is bound.
    pub(crate) data: u64,
    /// Ids of local tasks that are colors too: what blocks the color blocks the task.
    pub(crate) shared: u64,
    /// Data task by id.
    pub(crate) data_task: [u16; IDS],
    /// Data tasks that take turns: their counters' first values.
    pub(crate) rotations: Vec<Rotation>,
    /// Whether input queues are channels.
    pub(crate) by_queue: bool,
    /// Flag operations before the start.
    pub(crate) initial: Vec<(FlagOp, u8)>,
    /// Whether anything can happen on a PE before a word comes.
    pub(crate) starts: bool,
    /// Configuration registers written before the start: word address and value.
    pub(crate) config: Vec<(u16, u16)>,
    /// Whether it writes configuration registers but the console (other than through pointers), before the start or later.
    pub(crate) configures: bool,
    /// Colors of which it may write registers, likewise, and their partners, as bits.
    pub(crate) written: u32,
    pub(crate) microthreads: u8,
    /// Names of the FIFOs' buffers.
    pub(crate) fifos: Vec<String>,
    /// Names and sizes of its variables.
    pub(crate) globals: Vec<(String, u32)>,
}

/// An input queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InputPlan {
    /// Color it takes, if it is bound.
    pub(crate) color: Option<Color>,
    /// Places (R2).
    pub(crate) places: u32,
    /// The queue it is part of; those of data tasks alone have none.
    pub(crate) queue: Option<u8>,
    /// Its channel: color or queue, by target.
    pub(crate) channel: u8,
    /// Its data task.
    pub(crate) task: u16,
    /// Number added to the entry points of its control wavelets.
    pub(crate) control_base: u8,
    /// Issue priority of asynchronous operations on it.
    pub(crate) priority: Option<Priority>,
    /// Its data task's turns: index into [`PePlan::rotations`].
    pub(crate) rotation: Option<u8>,
}

/// A data task that gives way to another at times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rotation {
    /// The other task.
    pub(crate) other: u16,
    /// Starts of the data task before the other runs.
    pub(crate) limit: u16,
    /// Starts counted before the first.
    pub(crate) initial: u16,
}

/// An output queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputPlan {
    /// Places.
    pub(crate) places: u32,
    /// The color it is bound to, if it is.
    pub(crate) color: Option<Color>,
    /// Issue priority of asynchronous operations on it.
    pub(crate) priority: Option<Priority>,
}

/// A task.
#[derive(Clone, Debug)]
pub(crate) struct TaskPlan {
    pub(crate) func: FuncId,
    pub(crate) name: String,
    pub(crate) params: Vec<Ty>,
    /// Whether its code may look at registers in the middle of a segment.
    pub(crate) looks: bool,
    /// Whether it reads the clock or asks about queues.
    pub(crate) reads_times: bool,
    /// Place of its function; of its binding, if it is not known.
    pub(crate) loc: Loc,
}

impl InputPlan {
    /// A queue without color, places and tasks.
    fn unbound(channel: u8) -> InputPlan {
        InputPlan {
            color: None,
            places: 0,
            queue: None,
            channel,
            task: NO_TASK,
            control_base: 0,
            priority: None,
            rotation: None,
        }
    }
}

impl PePlan {
    /// Reads a validated program; `ramp` are the colors, as bits, that some router sends to its
    /// core.
    pub(crate) fn new(
        program: &Program,
        target: &Target,
        timing: &Latencies,
        ramp: u32,
    ) -> Result<PePlan, LoadError> {
        let mut plan = PePlan::unbound(program, target, timing);
        plan.bind_queues(program, target, ramp)?;
        plan.bind_tasks(program, target)?;
        plan.share_ids();
        plan.open_channels(program, target, ramp)?;
        plan.take_turns(program, target)?;
        plan.find_listeners(program);
        plan.set_initial_flags(program)?;
        Ok(plan)
    }

    /// The plan of a program before queues are bound to colors, and tasks to ids.
    fn unbound(program: &Program, target: &Target, timing: &Latencies) -> PePlan {
        let mut registers = written_registers(program);
        if let Some(registers) = &mut registers {
            registers.extend(program.initial_config.iter().map(|set| set.address));
        }
        let round_trip = (timing.ramp_down + timing.credit - 1) as u32;
        let inputs = target.input_queues.iter().zip(0u8..).map(|(&depth, queue)| InputPlan {
            places: u32::from(depth) + round_trip,
            queue: Some(queue),
            ..InputPlan::unbound(queue)
        });
        let outputs = target
            .output_queues
            .iter()
            .map(|&depth| u32::from(depth.max(1)))
            .map(|places| OutputPlan { places, color: None, priority: None });
        PePlan {
            name: program.name.clone(),
            inputs: inputs.collect(),
            numbered: target.input_queues.len(),
            ramp_down: timing.ramp_down,
            depths: target.input_queues.clone(),
            outputs: outputs.collect(),
            queue_of: [NO_QUEUE; Color::COUNT],
            heard: 0,
            tasks: Vec::new(),
            local: [NO_TASK; IDS],
            control: [NO_TASK; IDS],
            data: 0,
            shared: 0,
            data_task: [NO_TASK; IDS],
            rotations: Vec::new(),
            by_queue: target.data_task_by_queue,
            initial: Vec::new(),
            starts: false,
            quiet: 0,
            pulls: 0,
            hears: program.tasks.iter().any(|binding| binding.kind != TaskKind::Local),
            fifo_events: fifo_events(program),
            hears_data_only: program.tasks.iter().all(|binding| binding.kind != TaskKind::Control),
            config: program.initial_config.iter().map(|set| (set.address, set.value)).collect(),
            configures: registers.as_ref().is_none_or(|written| {
                written.iter().any(|&address| !is_console(target.id, address))
            }),
            written: registers.map_or(u32::MAX, |written| colors_of(&written, target.id)),
            microthreads: target.microthreads.min(8),
            fifos: program
                .fifos
                .values()
                .map(|it| program.globals[it.buffer].name.clone())
                .collect(),
            globals: program.globals.values().map(|it| (it.name.clone(), it.size)).collect(),
        }
    }

    /// Which input queues have data tasks, and of which nothing but operations can tell how many words are in them.
    fn find_listeners(&mut self, program: &Program) {
        let heard = self.inputs.iter().enumerate().filter(|(_, input)| input.task != NO_TASK);
        self.heard = heard.fold(0, |all, (queue, _)| all | 1 << queue);
        if !asks(program) {
            // No word comes to a queue without a color, and cores do not keep the last of those.
            let colored = |queue: usize| self.inputs[queue].color.is_some();
            self.pulls = bits(self.heard)
                .filter(|&queue| colored(queue))
                .fold(0, |all, queue| all | 1 << queue);
            let quiet = |(_, input): &(usize, &InputPlan)| input.task == NO_TASK;
            let numbered = self.inputs.iter().enumerate().filter(quiet);
            self.quiet = numbered.fold(0, |quiet, (queue, _)| quiet | 1 << queue);
        }
    }

    /// Notes flag operations before the start.
    fn set_initial_flags(&mut self, program: &Program) -> Result<(), LoadError> {
        for flag in &program.initial_flags {
            self.initial.push((flag.op, flag.id));
            if flag.op == FlagOp::Activate {
                self.starts = true;
                if self.local.get(usize::from(flag.id)).is_none_or(|&task| task == NO_TASK) {
                    let (name, id) = (&self.name, flag.id);
                    let message = format!("`{name}` activates task id {id}, which is not bound");
                    return Err(LoadError::Invalid(message));
                }
            }
        }
        Ok(())
    }

    /// The input queue that takes a color.
    pub(crate) fn queue_of(&self, color: u8) -> Option<usize> {
        let queue = self.queue_of[usize::from(color)];
        (queue != NO_QUEUE).then_some(usize::from(queue))
    }

    /// A color that no router sends to the core may stand at several queues: nothing tells them
    /// apart, as no word comes.
    fn bind_queues(
        &mut self,
        program: &Program,
        target: &Target,
        ramp: u32,
    ) -> Result<(), LoadError> {
        let stride = program.control_table.map_or(0, |table| table.stride);
        for binding in &program.queues {
            let (queue, color) = (usize::from(binding.queue), binding.color);
            let bad = || {
                LoadError::Invalid(format!(
                    "`{}` binds queue {queue}, which does not exist",
                    self.name
                ))
            };
            if !binding.input {
                let output = self.outputs.get_mut(queue).ok_or_else(bad)?;
                (output.color, output.priority) = (Some(color), binding.priority);
                continue;
            }
            if queue >= self.numbered {
                return Err(bad());
            }
            let of_color = &mut self.queue_of[usize::from(color.index())];
            let comes = ramp >> color.index() & 1 != 0;
            if comes && *of_color != NO_QUEUE && *of_color != binding.queue {
                let (first, second) = (*of_color, binding.queue);
                return Err(LoadError::TwoQueues {
                    program: self.name.clone(),
                    color,
                    first,
                    second,
                });
            }
            let mut index = queue;
            if self.inputs[queue].color.is_some_and(|first| first != color) {
                // A further color of the queue waits in a place of its own (spec/time.md, 5).
                index = self.inputs.len();
                let (places, queue) = (self.inputs[queue].places, Some(binding.queue));
                self.inputs.push(InputPlan { places, queue, ..InputPlan::unbound(binding.queue) });
            }
            self.queue_of[usize::from(color.index())] = index as u8;
            let input = &mut self.inputs[index];
            input.color = Some(color);
            input.priority = binding.priority;
            input.control_base = binding.control_table.saturating_mul(stride);
            if !target.data_task_by_queue {
                input.channel = color.index();
            }
        }
        Ok(())
    }

    fn bind_tasks(&mut self, program: &Program, target: &Target) -> Result<(), LoadError> {
        let (looks, times) = (looks(program), reads_times(program));
        for binding in &program.tasks {
            let number = self.tasks.len() as u16;
            let func = &program.funcs[binding.func];
            self.tasks.push(TaskPlan {
                func: binding.func,
                name: func.name.clone(),
                params: func.signature().params,
                looks: looks[binding.func],
                reads_times: times[binding.func],
                loc: if func.loc.line == 0 { binding.loc } else { func.loc },
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
                    self.data_task[id] = number;
                    let queue = self.data_queue(binding.id, target);
                    self.inputs[queue].task = number;
                }
            }
        }
        Ok(())
    }

    /// Where colors are channels, there is one table of ids: they share the switches of local
    /// tasks, and entry points of control wavelets reach data tasks.
    fn share_ids(&mut self) {
        if self.by_queue {
            return;
        }
        for id in 0..Color::COUNT {
            if self.control[id] == NO_TASK && self.data >> id & 1 != 0 {
                self.control[id] = self.data_task[id];
            }
            if self.local[id] != NO_TASK {
                self.shared |= 1 << id;
            }
        }
    }

    /// A color that is open from the start has a queue, if only for control wavelets: one that
    /// is unblocked, and one that shares its number with a local task.
    fn open_channels(
        &mut self,
        program: &Program,
        target: &Target,
        ramp: u32,
    ) -> Result<(), LoadError> {
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
        for task in program.tasks.iter().filter(|task| task.kind == TaskKind::Local) {
            if usize::from(task.id) < Color::COUNT && ramp >> task.id & 1 != 0 {
                self.data_queue(task.id, target);
            }
        }
        Ok(())
    }

    /// Data tasks that take turns with others.
    fn take_turns(&mut self, program: &Program, target: &Target) -> Result<(), LoadError> {
        for (number, rotation) in program.rotations.iter().enumerate() {
            let bad = || {
                let id = rotation.id;
                let message = format!("`{}` rotates task id {id}, which is not bound", self.name);
                LoadError::Invalid(message)
            };
            let other = self.control.get(usize::from(rotation.other)).copied().unwrap_or(NO_TASK);
            let bound = self.data_task.get(usize::from(rotation.id)).copied().unwrap_or(NO_TASK);
            if other == NO_TASK || bound == NO_TASK {
                return Err(bad());
            }
            let (limit, initial) = (rotation.limit, rotation.initial);
            self.rotations.push(Rotation { other, limit, initial });
            let queue = self.data_queue(rotation.id, target);
            self.inputs[queue].rotation = Some(number as u8);
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
        let color = Color::new(id);
        self.inputs.push(InputPlan { color, places, ..InputPlan::unbound(id) });
        self.queue_of[usize::from(id)] = queue as u8;
        queue
    }
}

/// Whether a program can ask about its queues, or change what they take.
fn asks(program: &Program) -> bool {
    let asks = |inst: &InstData| {
        let flushes =
            |op: FlagOp| matches!(op, FlagOp::FlushInput | FlagOp::FlushOutput | FlagOp::BindInput);
        matches!(inst, InstData::Queues { .. } | InstData::GetConfig { .. })
            || matches!(inst, InstData::Flag { op, .. } if flushes(*op))
    };
    program.funcs.values().any(|func| func.insts.values().any(asks))
}

/// Whether a register is the console, which has no say in routes.
fn is_console(target: TargetId, address: u16) -> bool {
    registers::find(target, address).is_some_and(|(bank, _)| bank.kind == BankKind::Console)
}

/// Colors that registers are of, as bits. Their partners are among them: a color that is given a swap takes its
/// partner's words.
fn colors_of(addresses: &BTreeSet<u16>, target: TargetId) -> u32 {
    let colors = addresses.iter().filter_map(|&address| {
        let (bank, index) = registers::find(target, address)?;
        Some(color_word(bank.kind, index)?.0)
    });
    colors.fold(0, |all, color| all | 1 << color | 1 << (color ^ 1))
}

impl PePlan {
    /// Whether teardowns and flushes start a task.
    pub(crate) fn may_tear(&self) -> bool {
        self.local[TEARDOWN_TASK] != NO_TASK
    }
}

/// Local ids that FIFOs activate, as bits.
fn fifo_events(program: &Program) -> u64 {
    let ids = program.fifos.values().flat_map(|fifo| [fifo.activate_pop, fifo.activate_push]);
    ids.flatten().fold(0, |all, id| all | 1u64.checked_shl(id.into()).unwrap_or(0))
}
