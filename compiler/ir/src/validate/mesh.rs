//! What joins programs: memory maps, placement, routers, exports, host operations on exports.
//!
//! Relies on every program having been checked by itself.

use std::collections::BTreeSet;

use cranelift_entity::EntityRef;

use crate::func::{Func, Local};
use crate::image::{
    Export, ExportKind, HostStream, Image, MemcpyInfo, MemoryMap, Placement, ProgramId,
    RouterConfig,
};
use crate::inst::InstData;
use crate::loc::Loc;
use crate::mesh::{ColorConfig, Filter, Port, PortSet, Rect, RectMap, Route, Switch, SwitchEntry};
use crate::program::{ExportBinding, HostOp, Profile, Program, Symbol};
use crate::target::Target;

/// A broken rule in what joins programs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MeshError {
    /// Tables of different lengths that belong together.
    #[error("{what}: {found} entries, {expected} were expected")]
    Count {
        /// The table.
        what: String,
        /// Its length.
        found: usize,
        /// The other's length.
        expected: usize,
    },
    /// A memory map that does not fit its program or the memory.
    #[error("memory map of {program}: {rule}")]
    Memory {
        /// The program.
        program: ProgramId,
        /// The rule.
        rule: &'static str,
    },
    /// A rectangle that breaks a rule.
    #[error("{what}, {width}x{height} at ({x}, {y}): {rule}", x = rect.x, y = rect.y, width = rect.width, height = rect.height)]
    Rect {
        /// The table it is in.
        what: &'static str,
        /// The rectangle.
        rect: Rect,
        /// The rule.
        rule: &'static str,
    },
    /// Anything else, named.
    #[error("{what}: {rule}")]
    Rule {
        /// What breaks the rule.
        what: String,
        /// The rule.
        rule: &'static str,
    },
}

type Checked = Result<(), MeshError>;

fn ensure(ok: bool, what: impl ToString, rule: &'static str) -> Checked {
    if ok { Ok(()) } else { Err(MeshError::Rule { what: what.to_string(), rule }) }
}

fn count(what: impl ToString, found: usize, expected: usize) -> Checked {
    if found == expected {
        return Ok(());
    }
    Err(MeshError::Count { what: what.to_string(), found, expected })
}

/// Checks an image whose programs are valid.
pub(super) fn check(image: &Image, target: &Target) -> Checked {
    let Image {
        target: _,
        files,
        programs,
        memory,
        placement,
        exports,
        host,
        tests,
        params: _,
        memcpy,
        streams,
    } = image;
    count("memory maps", memory.len(), programs.len())?;
    count("slot tables", placement.slots.len(), programs.len())?;
    for (id, program) in programs {
        ensure(program.profile == Profile::Pe, id, "programs of the mesh are PE programs")?;
        memory_map(id, program, &memory[id], target)?;
        bindings(id, program, exports)?;
    }
    self::placement(image, placement, target)?;
    self::exports(exports)?;
    for host in host.iter().chain(tests.iter().map(|(_, program)| program)) {
        ensure(
            host.profile == Profile::Host,
            &host.name,
            "host and test blocks are host programs",
        )?;
        host_program(host, exports)?;
    }
    memcpy.as_ref().map_or(Ok(()), self::memcpy)?;
    self::streams(streams, placement.rect)?;
    places(image, files.len())
}

/// Globals lie in order of their ids' entries, aligned, apart, below the end; the stack follows.
fn memory_map(id: ProgramId, program: &Program, map: &MemoryMap, target: &Target) -> Checked {
    let MemoryMap { globals, data_end, stack, code: _ } = map;
    let broken = |rule| Err(MeshError::Memory { program: id, rule });
    if !globals.iter().map(|&(global, _)| global).eq(program.globals.keys()) {
        return broken("it does not name each global once, in order");
    }
    let mut ranges = Vec::with_capacity(globals.len());
    for &(global, address) in globals {
        let global = &program.globals[global];
        if address % global.align != 0 {
            return broken("a global is not aligned");
        }
        ranges.push((u64::from(address), u64::from(address) + u64::from(global.size)));
    }
    ranges.sort_unstable();
    if ranges.windows(2).any(|pair| pair[0].1 > pair[1].0) {
        return broken("two globals overlap");
    }
    if ranges.iter().any(|&(_, end)| end > u64::from(*data_end)) {
        return broken("a global lies behind the end of the data");
    }
    if u64::from(*data_end).next_multiple_of(8) + u64::from(*stack) > u64::from(target.memory) {
        return broken("data and stack are larger than the memory");
    }
    Ok(())
}

fn bindings(id: ProgramId, program: &Program, exports: &[Export]) -> Checked {
    for &ExportBinding { export, symbol } in &program.exports {
        let what = format!("{id}, export {export}");
        let Some(Export { name: _, kind, loc: _ }) = exports.get(export as usize) else {
            return ensure(false, what, "there is no such export");
        };
        let fits = match (kind, symbol) {
            (ExportKind::Pointer { element: _, mutable: _ }, Symbol::Global(global)) => {
                program.globals[global].size >= program.profile.pointer().bytes()
            }
            (ExportKind::Scalar { element, mutable: _ }, Symbol::Global(global)) => {
                program.globals[global].size >= element.ty.bytes()
            }
            (ExportKind::Function { params }, Symbol::Func(func)) => {
                let signature = program.funcs[func].signature();
                signature.params.iter().eq(params.iter().map(|param| &param.ty))
            }
            (ExportKind::Pointer { .. } | ExportKind::Scalar { .. }, Symbol::Func(_))
            | (ExportKind::Function { .. }, Symbol::Global(_)) => false,
        };
        ensure(fits, what, "bound to a symbol of another kind")?;
    }
    Ok(())
}

fn placement(image: &Image, placement: &Placement, target: &Target) -> Checked {
    let Placement { rect, programs, slots, routers, router_map } = placement;
    let (width, height) = target.max_rect;
    let fits = u32::from(rect.x) + u32::from(rect.width) <= u32::from(width)
        && u32::from(rect.y) + u32::from(rect.height) <= u32::from(height);
    if !fits {
        let rule = "it does not fit the fabric";
        return Err(MeshError::Rect { what: "the program's rectangle", rect: *rect, rule });
    }
    rects("programs", programs, *rect, |id| image.programs.is_valid(*id))?;
    rects("routers", router_map, *rect, |&index| (index as usize) < routers.len())?;
    routers.iter().enumerate().try_for_each(|(index, config)| router(index, config))?;
    let mut pes = vec![0; image.programs.len()];
    for &(rect, id) in &programs.entries {
        pes[id.index()] += rect.area();
    }
    for (id, values) in slots {
        let types = &image.programs[id].slots;
        count(format!("slot values of {id}"), values.len(), pes[id.index()] * types.len())?;
        let mut typed = values.iter().zip(types.values().cycle());
        let canonical = typed.all(|(&value, ty)| ty.mask(value) == value);
        ensure(canonical, id, "a slot's value is wider than its type")?;
    }
    Ok(())
}

/// Rectangles lie inside, in order, apart; values are known.
fn rects<T>(
    what: &'static str,
    map: &RectMap<T>,
    all: Rect,
    known: impl Fn(&T) -> bool,
) -> Checked {
    let RectMap { entries } = map;
    let mut taken = vec![0_u64; all.area().div_ceil(64)];
    let mut last = None;
    for (rect, value) in entries {
        let fault = |rule| Err(MeshError::Rect { what, rect: *rect, rule });
        let Rect { x, y, width, height } = *rect;
        if width == 0 || height == 0 {
            return fault("it is empty");
        }
        if u32::from(x) + u32::from(width) > u32::from(all.width)
            || u32::from(y) + u32::from(height) > u32::from(all.height)
        {
            return fault("it leaves the program's rectangle");
        }
        if last >= Some((y, x)) {
            return fault("it is out of order");
        }
        last = Some((y, x));
        if !known(value) {
            return fault("its value points at nothing");
        }
        for at in rect.coords() {
            let index = usize::from(at.y) * usize::from(all.width) + usize::from(at.x);
            let (word, bit) = (&mut taken[index / 64], 1 << (index % 64));
            if *word & bit != 0 {
                return fault("it overlaps another");
            }
            *word |= bit;
        }
    }
    Ok(())
}

fn router(index: usize, config: &RouterConfig) -> Checked {
    let RouterConfig { colors } = config;
    let ordered = colors.windows(2).all(|pair| pair[0].0 < pair[1].0);
    ensure(ordered, format!("router {index}"), "its colors are not in order, each once")?;
    for (color, config, _) in colors {
        color_config(config)
            .or_else(|rule| ensure(false, format!("router {index}, {color:?}"), rule))?;
    }
    Ok(())
}

/// Checks one color's configuration by itself.
pub(super) fn color_config(config: &ColorConfig) -> Result<(), &'static str> {
    let ColorConfig { route, switch, filter, teardown: _, swap_x: _, swap_y: _ } = config;
    self::route(*route)?;
    switch.map_or(Ok(()), |switch| self::switch(config, switch))?;
    match filter {
        None
        | Some(
            Filter::Range { min: _, max: _ }
            | Filter::Counter {
                data: _,
                control: _,
                initial: _,
                limit: _,
                max: _,
                filter_control: _,
            }
            | Filter::Sparse {
                data: _,
                control: _,
                initial: _,
                limit: _,
                limit2: _,
                max: _,
                filter_control: _,
            },
        ) => Ok(()),
    }
}

fn switch(config: &ColorConfig, switch: Switch) -> Result<(), &'static str> {
    let Switch { positions, initial, ring: _, pop: _ } = switch;
    for entry in positions.into_iter().flatten() {
        match entry {
            SwitchEntry::Rx(set) | SwitchEntry::Tx(set) => ports(set)?,
            SwitchEntry::Both(route) => self::route(route)?,
        }
    }
    let valid = config.positions().get(usize::from(initial)).is_some_and(Option::is_some);
    if valid { Ok(()) } else { Err("the switch starts at a position that is not there") }
}

fn route(route: Route) -> Result<(), &'static str> {
    let Route { rx, tx } = route;
    ports(rx)?;
    ports(tx)
}

fn ports(set: PortSet) -> Result<(), &'static str> {
    if set.0 >> Port::ALL.len() == 0 { Ok(()) } else { Err("a port that does not exist") }
}

fn exports(exports: &[Export]) -> Checked {
    let mut names = BTreeSet::new();
    exports.iter().try_for_each(|Export { name, kind, loc: _ }| {
        let types = match kind {
            ExportKind::Pointer { element, mutable: _ }
            | ExportKind::Scalar { element, mutable: _ } => std::slice::from_ref(element),
            ExportKind::Function { params } => params.as_slice(),
        };
        let valid = types.iter().all(|ty| ty.is_valid());
        ensure(valid, format!("export `{name}`"), "a bool is an i8")?;
        ensure(names.insert(name), format!("export `{name}`"), "the name is taken")
    })
}

fn memcpy(info: &MemcpyInfo) -> Checked {
    let MemcpyInfo { h2d, d2h } = info;
    let mut colors = BTreeSet::new();
    h2d.iter().chain(d2h).try_for_each(|color| {
        ensure(colors.insert(*color), format!("memcpy, {color:?}"), "streams in two ways")
    })
}

fn streams(streams: &[HostStream], rect: Rect) -> Checked {
    let (mut names, mut links) = (BTreeSet::new(), BTreeSet::new());
    streams.iter().try_for_each(|stream| {
        let HostStream { name, at, port, color, to_mesh: _, buffer: _ } = stream;
        let what = || format!("stream `{name}`");
        let inside = at.x < rect.width && at.y < rect.height;
        ensure(inside, what(), "it is outside the program's rectangle")?;
        ensure(*port != Port::Ramp, what(), "the ramp leads to no host")?;
        ensure(names.insert(name), what(), "the name is taken")?;
        ensure(links.insert((*at, *port, *color)), what(), "another stream has its link")
    })
}

fn host_program(program: &Program, exports: &[Export]) -> Checked {
    for func in program.funcs.values() {
        for inst in func.insts.values() {
            if let InstData::Host { op, dsts: _, args } = inst {
                host_op(op, args, func, exports)?;
            }
        }
    }
    Ok(())
}

fn host_op(op: &HostOp, args: &[Local], func: &Func, exports: &[Export]) -> Checked {
    let find = |export: u32| {
        let missing = || MeshError::Rule {
            what: format!("{}, export {export}", func.name),
            rule: "there is no such export",
        };
        exports.get(export as usize).ok_or_else(missing)
    };
    match op {
        HostOp::CopyIn { export, ty } | HostOp::CopyOut { export, ty } => {
            let Export { name, kind, loc: _ } = find(*export)?;
            let fits = match kind {
                ExportKind::Pointer { element, mutable: _ }
                | ExportKind::Scalar { element, mutable: _ } => element.ty.bytes() == ty.bytes(),
                ExportKind::Function { params: _ } => false,
            };
            ensure(fits, format!("copy of `{name}`"), "the export has no elements of that size")
        }
        HostOp::Launch { export } => {
            let Export { name, kind, loc: _ } = find(*export)?;
            let fits = match kind {
                ExportKind::Function { params } => {
                    let types = args.iter().map(|&arg| func.locals[arg]);
                    types.eq(params.iter().map(|param| param.ty))
                }
                ExportKind::Pointer { .. } | ExportKind::Scalar { .. } => false,
            };
            ensure(fits, format!("launch of `{name}`"), "the export is no function of these types")
        }
        HostOp::Input { .. }
        | HostOp::HasInput { .. }
        | HostOp::Output { .. }
        | HostOp::Setting { .. }
        | HostOp::HasSetting { .. }
        | HostOp::StreamIn { .. }
        | HostOp::StreamOut { .. }
        | HostOp::StreamOutRows { .. }
        | HostOp::Wait
        | HostOp::Alloc
        | HostOp::Print { .. }
        | HostOp::Expect { .. }
        | HostOp::Cycles
        | HostOp::ClockRate
        | HostOp::AssumedShare
        | HostOp::Wavelets
        | HostOp::Math(_) => Ok(()),
    }
}

/// Every place names a file of the table, or none.
fn places(image: &Image, files: usize) -> Checked {
    let ok = |loc: Loc| loc.line == 0 || (loc.file as usize) < files;
    let hosts = image.host.iter().chain(image.tests.iter().map(|(_, program)| program));
    let programs = image.programs.values().chain(hosts);
    let mut places = programs.flat_map(program_places);
    ensure(places.all(ok), "places", "a file that is not in the table")?;
    let routers = image.placement.routers.iter().flat_map(|router| &router.colors);
    let mut others =
        routers.map(|&(_, _, loc)| loc).chain(image.exports.iter().map(|export| export.loc));
    ensure(others.all(ok), "places", "a file that is not in the table")
}

fn program_places(program: &Program) -> impl Iterator<Item = Loc> + '_ {
    let globals = program.globals.values().map(|global| global.loc);
    let funcs = program.funcs.values().flat_map(|func| {
        let insts = func.insts.keys().map(|inst| func.locs[inst]);
        insts.chain(func.blocks.values().map(|block| block.loc)).chain([func.loc])
    });
    let tasks = program.tasks.iter().map(|task| task.loc);
    let queues = program.queues.iter().map(|queue| queue.loc);
    let flags = program.initial_flags.iter().map(|flag| flag.loc);
    let colors = program.colors.iter().map(|color| color.loc);
    globals.chain(funcs).chain(tasks).chain(queues).chain(flags).chain(colors)
}
