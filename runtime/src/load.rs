//! From an image to a machine: what a run needs beside the image, made once.
//!
//! Invariant: a feature that the engines do not model is refused here, by name.

use std::sync::Arc;
use std::time::Instant;

use dflow_ir::image::{HostStream, Image, ProgramId};
use dflow_ir::mesh::{Color, Coord, RectMap};
use dflow_ir::program::HostLink;
use dflow_ir::target::{OverrideError, Target};
use dflow_ir::validate;

use crate::config::{CodeKind, Config, Limit, Limits};
use crate::exec::interp::Interpreter;
use crate::exec::{CodeEngine, LoadedProgram};
use crate::fabric::plan::RouterPlan;
use crate::jit::{Jit, Shared};
use crate::machine::HostLinkInfo;
use crate::pe::exec::Programs;
use crate::pe::plan::PePlan;
use crate::profile::Work;
use crate::sched::borders;
use crate::sched::plan::{Latencies, Plan};

/// Why an image cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// Two input queues of a program take the same color.
    #[error("program `{program}` binds color {} to input queues {first} and {second}", color.index())]
    TwoQueues {
        /// The program.
        program: String,
        /// The color.
        color: Color,
        /// First queue.
        first: u8,
        /// Second queue.
        second: u8,
    },
    /// More programs than PEs can name.
    #[error(
        "the image has {0} different programs, more than the {MAX_PROGRAMS} that are supported: give what differs from PE to PE as params"
    )]
    TooManyPrograms(usize),
    /// There is no native code for this computer.
    #[error("{0}; the interpreter needs none")]
    Code(String),
    /// A constant cannot have the value that it is given.
    #[error("{0}")]
    Timing(#[from] OverrideError),
    /// The image contradicts itself or its target.
    #[error("the image is not valid: {0}")]
    Invalid(String),
    /// The time was up, or somebody outside wanted no machine any more.
    #[error("{0}")]
    Limit(Limit),
}

/// Most programs of an image: a PE names its own in 16 bits, of which one value means "none".
const MAX_PROGRAMS: usize = u16::MAX as usize;

/// What loads an image, and makes code of it, relies on.
///
/// # Errors
/// The image is not valid.
pub(crate) fn check(image: &Image, config: &Config) -> Result<(), LoadError> {
    if let Some(phases) = &config.profile {
        phases.set(Work::Load);
    }
    validate::check_image(image).map_err(|error| LoadError::Invalid(error.to_string()))
}

/// Whether a machine is still wanted.
///
/// # Errors
/// It is not.
pub(crate) fn go_on(limits: &Limits) -> Result<(), LoadError> {
    limits.outside().map_or(Ok(()), |limit| Err(LoadError::Limit(limit)))
}

/// An image that has been checked made ready: what runs, and the code of its programs.
pub(crate) fn load(
    image: &Image,
    config: &Config,
    limits: &Limits,
) -> Result<(Plan, Programs), LoadError> {
    if image.programs.len() > MAX_PROGRAMS {
        return Err(LoadError::TooManyPrograms(image.programs.len()));
    }
    let target = Target::custom(image.target, &config.timing)?;
    let timing = Latencies::new(&target.timing);
    let (width, height) =
        (u32::from(image.placement.rect.width), u32::from(image.placement.rect.height));
    let program_of =
        grid(width, height, &image.placement.programs, |id| id.as_u32() as u16, u16::MAX);
    // A router that the image says nothing of has a plan without colors, the last one.
    let mut routers = routers(image)?;
    let empty = routers.len() as u32;
    routers.push(RouterPlan::without_colors());
    let router_of = grid(width, height, &image.placement.router_map, |&index| index, empty);
    let mut plan = Plan {
        width,
        height,
        target: image.target,
        extent: (width, height),
        crossing: 0,
        timing,
        programs: Vec::new(),
        routers,
        links: links(image, &program_of, width)?,
        rooms: Vec::new(),
        record: config.record,
        strict: config.strict,
        track: config.track,
        router_of,
        program_of,
    };
    plan.rooms = rooms(image, &plan);
    let mut programs = Programs {
        loaded: Vec::new(),
        slots: image.placement.slots.values().cloned().collect(),
        rank: ranks(&plan.program_of, image.programs.len()),
        phases: config.profile.clone(),
    };
    let ramp = plan.routers.iter().fold(0, |all, router| all | router.ramp());
    let mut shared = Shared::default();
    for (id, program) in &image.programs {
        go_on(limits)?;
        plan.programs.push(PePlan::new(program, target, &timing, ramp)?);
        let loaded = LoadedProgram::new(program.clone(), &image.memory[id], target);
        let loaded = loaded.tracked(config.track).with_phases(config.profile.clone());
        let engine = compile(&loaded, config, &mut shared, false)?;
        programs.loaded.push((Arc::new(loaded), engine));
    }
    plan.note_written();
    go_on(limits)?;
    borders::divide(&mut plan, config);
    Ok((plan, programs))
}

/// The code engine that a configuration asks for, ready to run a program; `beside`: another thread makes the machine.
///
/// # Errors
/// There is no native code for this computer.
pub(crate) fn compile(
    program: &LoadedProgram,
    config: &Config,
    shared: &mut Shared,
    beside: bool,
) -> Result<Arc<dyn CodeEngine>, LoadError> {
    let begun = Instant::now();
    let made = engine(program, config.code, shared);
    config.profile.iter().for_each(|phases| phases.compiled(begun, beside));
    made
}

fn engine(
    program: &LoadedProgram,
    code: CodeKind,
    shared: &mut Shared,
) -> Result<Arc<dyn CodeEngine>, LoadError> {
    match code {
        // Only the interpreter tells of reads of what nothing has written.
        CodeKind::Jit if program.is_tracked() => Ok(Arc::new(Interpreter)),
        CodeKind::Interpreter => Ok(Arc::new(Interpreter)),
        CodeKind::Jit => match Jit::compile(program, shared) {
            Ok(code) => Ok(Arc::new(code)),
            Err(error) => Err(LoadError::Code(error.to_string())),
        },
    }
}

/// A value per PE, row by row.
fn grid<T, V: Clone>(
    width: u32,
    height: u32,
    map: &RectMap<T>,
    value: impl Fn(&T) -> V,
    none: V,
) -> Vec<V> {
    let mut grid = vec![none; (width * height) as usize];
    for (at, entry) in map.iter_pes() {
        let index = (u32::from(at.y) * width + u32::from(at.x)) as usize;
        if u32::from(at.x) < width
            && let Some(cell) = grid.get_mut(index)
        {
            *cell = value(entry);
        }
    }
    grid
}

fn routers(image: &Image) -> Result<Vec<RouterPlan>, LoadError> {
    let placement = &image.placement;
    let mut firsts = vec![Coord::default(); placement.routers.len()];
    for (rect, index) in placement.router_map.entries.iter().rev() {
        if let Some(first) = firsts.get_mut(*index as usize) {
            *first = Coord { x: rect.x, y: rect.y };
        }
    }
    let plans = placement.routers.iter().zip(firsts);
    plans.map(|(config, at)| RouterPlan::new(config, at)).collect()
}

/// Links to the host, ordered by PE, color and port.
fn links(image: &Image, program_of: &[u16], width: u32) -> Result<Vec<HostLinkInfo>, LoadError> {
    let mut links = Vec::new();
    let place = |number: usize| {
        let number = number as u32;
        Coord { x: (number % width) as u16, y: (number / width) as u16 }
    };
    let mut streams: Vec<&HostStream> = image.streams.iter().collect();
    streams.sort_by_key(|stream| (stream.at.y, stream.at.x));
    let mut streams = streams.into_iter().peekable();
    for (number, &id) in program_of.iter().enumerate() {
        let first = links.len();
        let streamed = streams.peek().is_some_and(|next| next.at == place(number));
        if id == u16::MAX && !streamed {
            continue;
        }
        let at = place(number);
        let program = image.programs.get(ProgramId::from_u32(id.into()));
        for link in program.map_or(&[][..], |program| &program.host_links) {
            let HostLink { port, color, to_mesh } = *link;
            links.push(HostLinkInfo { at, port, color, to_mesh });
        }
        while let Some(stream) = streams.next_if(|stream| stream.at == at) {
            let HostStream { port, color, to_mesh, .. } = *stream;
            links.push(HostLinkInfo { at, port, color, to_mesh });
        }
        let own: &mut [HostLinkInfo] = &mut links[first..];
        own.sort_by_key(|link| (link.color, link.port));
        let key = |link: &HostLinkInfo| (link.color, link.port);
        if own.windows(2).any(|pair| key(&pair[0]) == key(&pair[1])) {
            let message =
                format!("PE ({}, {}) is joined to the host twice by one link", at.x, at.y);
            return Err(LoadError::Invalid(message));
        }
    }
    Ok(links)
}

/// Words that the host's end holds, per link that is a stream.
fn rooms(image: &Image, plan: &Plan) -> Vec<Option<u64>> {
    let mut rooms = vec![None; plan.links.len()];
    for stream in &image.streams {
        let pe = plan.number(stream.at.x.into(), stream.at.y.into());
        let link = plan.link(pe, stream.port, stream.color.index());
        if let Some(room) = link.and_then(|link| rooms.get_mut(link as usize)) {
            *room = Some(u64::from(stream.buffer));
        }
    }
    rooms
}

/// Number of each PE among those of its program, row by row.
fn ranks(program_of: &[u16], programs: usize) -> Vec<u32> {
    let mut next = vec![0; programs];
    let rank = |&program: &u16| match next.get_mut(usize::from(program)) {
        Some(next) => std::mem::replace(next, *next + 1),
        None => 0,
    };
    program_of.iter().map(rank).collect()
}
