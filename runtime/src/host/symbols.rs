//! What the host can name, and which PEs have it.

use dflow_ir::func::{Func, Local};
use dflow_ir::image::MemoryMap;
use dflow_ir::image::{ElementKind, ElementType, Export, ExportKind, Image, RouterConfig};
use dflow_ir::inst::InstData;
use dflow_ir::loc::Loc;
use dflow_ir::mesh::{Color, ColorConfig, Coord, Port, PortSet, Rect, RectMap, Route, SwitchEntry};
use dflow_ir::operands::Access;
use dflow_ir::program::{Global, GlobalId, Program, Symbol};

use super::wire::{MAX_ARGS, bytes_per_word};
use super::{Elements, HostError, Region};

/// How words of a stream are told apart by column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Switches deal them out, column by column.
    Dealt,
    /// They come from several columns as they please.
    Merged,
    /// They reach the first column; teardowns take them further, since the color has no switches.
    Closed,
    /// One column after the other is heard, when those before it have ended their turns.
    Turns,
    /// The program's own affair: their order is all there is.
    Plain,
}

/// What the host knows of a program.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Per export: what is bound to it.
    bound: Vec<Option<Bound>>,
    /// Variables: name, address, size.
    variables: Vec<(String, u32, u32)>,
}

/// What a program binds to an export.
#[derive(Clone, Copy, Debug)]
struct Bound {
    /// Place of a function.
    loc: Loc,
    /// Bytes behind a pointer that never changes.
    room: Option<u32>,
}

/// Exports of an image, with the PEs that bind them.
#[derive(Clone, Debug)]
pub struct Symbols {
    exports: Vec<Export>,
    programs: Vec<Known>,
    /// Rectangles of programs.
    places: Vec<(Rect, usize)>,
    columns: u16,
    rows: u16,
    routers: Vec<RouterConfig>,
    router_map: RectMap<u32>,
}

impl Symbols {
    /// The symbols of an image.
    pub fn new(image: &Image) -> Symbols {
        let count = image.exports.len();
        let known = image.programs.iter().map(|(id, program)| {
            let memory = image.memory.get(id);
            Known::new(program, memory, count)
        });
        let places = &image.placement.programs.entries;
        Symbols {
            exports: image.exports.clone(),
            programs: known.collect(),
            places: places.iter().map(|&(rect, id)| (rect, id.as_u32() as usize)).collect(),
            columns: image.placement.rect.width,
            rows: image.placement.rect.height,
            routers: image.placement.routers.clone(),
            router_map: image.placement.router_map.clone(),
        }
    }

    /// Columns of the program's rectangle.
    pub fn columns(&self) -> u16 {
        self.columns
    }

    /// Rows of the program's rectangle.
    pub fn rows(&self) -> u16 {
        self.rows
    }

    /// All PEs.
    pub fn all(&self) -> Rect {
        Rect { x: 0, y: 0, width: self.columns, height: self.rows }
    }

    /// The id of a name.
    ///
    /// # Errors
    /// Nothing is exported under that name.
    pub fn find(&self, name: &str) -> Result<u32, HostError> {
        let found = self.exports.iter().position(|export| export.name == name);
        found.map(|index| index as u32).ok_or_else(|| HostError::UnknownSymbol {
            name: name.to_owned(),
            known: self.exports.iter().map(|export| export.name.clone()).collect(),
        })
    }

    /// A region given in numbers.
    ///
    /// # Errors
    /// It is empty or leaves the rectangle.
    pub fn region(&self, x: i64, y: i64, width: i64, height: i64) -> Result<Rect, HostError> {
        let fits = |start: i64, size: i64, limit: u16| {
            start >= 0
                && size >= 1
                && start.checked_add(size).is_some_and(|end| end <= limit.into())
        };
        if fits(x, width, self.columns) && fits(y, height, self.rows) {
            Ok(Rect { x: x as u16, y: y as u16, width: width as u16, height: height as u16 })
        } else {
            let (columns, rows) = (self.columns, self.rows);
            Err(HostError::Region { x, y, width, height, columns, rows })
        }
    }

    /// What is exported, by id.
    pub fn exports(&self) -> &[Export] {
        &self.exports
    }

    /// The name of an export.
    pub fn name(&self, export: u32) -> Option<&str> {
        self.exports.get(export as usize).map(|export| export.name.as_str())
    }

    /// Address and size of a PE's variable.
    pub(super) fn variable(&self, at: Coord, name: &str) -> Option<(u32, u32)> {
        let variables = &self.program(at)?.variables;
        let found = variables.iter().find(|(known, ..)| known == name)?;
        Some((found.1, found.2))
    }

    /// Where a PE's program has an exported function (line 0: not known).
    pub(super) fn function_place(&self, export: u32, at: Coord) -> Loc {
        self.bound(export, at).map(|bound| bound.loc).unwrap_or_default()
    }

    fn program(&self, at: Coord) -> Option<&Known> {
        let (_, program) = self.places.iter().find(|(place, _)| place.contains(at))?;
        self.programs.get(*program)
    }

    fn bound(&self, export: u32, at: Coord) -> Option<Bound> {
        self.program(at)?.bound.get(export as usize).copied().flatten()
    }

    pub(super) fn check_region(&self, region: Region) -> Result<(), HostError> {
        region.check()?;
        self.check_rect(region.rect)
    }

    fn check_rect(&self, rect: Rect) -> Result<(), HostError> {
        let Rect { x, y, width, height } = rect;
        self.region(x.into(), y.into(), width.into(), height.into()).map(|_| ())
    }

    /// Checks that elements of `ty` can be copied to (`write`) or from the memory behind an
    /// export on all PEs of a region.
    pub(super) fn check_copy(
        &self,
        export: u32,
        region: Region,
        elements: Elements,
        write: bool,
    ) -> Result<(), HostError> {
        let Export { name, kind, loc: _ } = self.export(export)?;
        let (element, mutable) = match kind {
            ExportKind::Pointer { element, mutable } => (element, *mutable),
            ExportKind::Scalar { .. } | ExportKind::Function { .. } => {
                return Err(wrong_kind(name, kind, "a pointer to elements"));
            }
        };
        if !elements.fit(element.ty) {
            let (name, found, given) = (name.clone(), element.ty, elements);
            return Err(HostError::ElementType { name, found, given });
        }
        if write && !mutable {
            return Err(HostError::Constant { name: name.clone() });
        }
        bytes_per_word(elements)?;
        self.check_region(region)?;
        self.check_bound(export, name, region)
    }

    /// Checks that so many elements fit behind an exported pointer on all PEs of a region, as far
    /// as it is known where the pointer leads.
    pub(super) fn check_room(
        &self,
        export: u32,
        region: Region,
        elements: Elements,
        count: u64,
    ) -> Result<(), HostError> {
        let bytes = count.saturating_mul(elements.bytes().into());
        for &(place, program) in &self.places {
            let bound =
                self.programs.get(program).and_then(|known| known.bound.get(export as usize));
            let Some(room) = bound.and_then(|bound| bound.as_ref()?.room) else { continue };
            if u64::from(room) >= bytes {
                continue;
            }
            if let Some(at) = first_common(place, region) {
                let name = self.name(export).unwrap_or_default().to_owned();
                let room = u64::from(room / elements.bytes().max(1));
                return Err(HostError::Room { name, at, room, elements: count });
            }
        }
        Ok(())
    }

    /// Checks that a function can be launched with these arguments.
    pub(super) fn check_launch(&self, export: u32, args: &[u64]) -> Result<(), HostError> {
        let given = args.len();
        let Export { name, kind, loc: _ } = self.export(export)?;
        let params = match kind {
            ExportKind::Function { params } => params,
            ExportKind::Pointer { .. } | ExportKind::Scalar { .. } => {
                return Err(wrong_kind(name, kind, "a function"));
            }
        };
        if params.len() != given || given > MAX_ARGS {
            return Err(HostError::Arguments { name: name.clone(), wanted: params.len(), given });
        }
        if let Some(wide) = params.iter().find(|param| param.ty.bytes() > 4) {
            return Err(HostError::ElementSize(wide.ty.into()));
        }
        for ((number, &param), &value) in (1..).zip(params).zip(args) {
            check_argument(name, number, param, value)?;
        }
        self.check_bound(export, name, self.all().into())
    }

    /// How the words of a color leave or enter the mesh at a PE that is joined to the host.
    pub(super) fn style(&self, at: Coord, color: Color) -> Style {
        let Some(ColorConfig { route, switch, .. }) = self.config(at, color) else {
            return Style::Plain;
        };
        let further = switch.and_then(|switch| switch.positions[0]);
        let to_ramp = PortSet::one(Port::Ramp);
        match further {
            Some(SwitchEntry::Tx(_)) if route.tx == to_ramp => Style::Dealt,
            Some(SwitchEntry::Rx(_)) if route.rx == to_ramp => Style::Turns,
            None if route.rx.contains(Port::Ramp) && route.rx != to_ramp => Style::Merged,
            None if self.ends_here(at, color, *route) => Style::Closed,
            Some(_) | None => Style::Plain,
        }
    }

    fn config(&self, at: Coord, color: Color) -> Option<&ColorConfig> {
        let router = self.routers.get(*self.router_map.get(at)? as usize)?;
        router.colors.iter().find(|entry| entry.0 == color).map(|(_, config, _)| config)
    }

    /// Whether words from the west end at a core, and likewise at the next column.
    fn ends_here(&self, at: Coord, color: Color, route: Route) -> bool {
        let only = Route { rx: PortSet::one(Port::West), tx: PortSet::one(Port::Ramp) };
        let next = self.config(Coord { x: at.x + 1, ..at }, color).map(|config| config.route);
        route == only && next == Some(only)
    }

    fn export(&self, id: u32) -> Result<&Export, HostError> {
        let missing = || HostError::UnknownSymbol { name: format!("#{id}"), known: Vec::new() };
        self.exports.get(id as usize).ok_or_else(missing)
    }

    fn check_bound(&self, export: u32, name: &str, region: Region) -> Result<(), HostError> {
        for &(place, program) in &self.places {
            let known = self.programs.get(program);
            let has = known.and_then(|known| known.bound.get(export as usize));
            if has.is_some_and(Option::is_some) {
                continue;
            }
            if let Some(at) = first_common(place, region) {
                return Err(HostError::Missing { name: name.to_owned(), at });
            }
        }
        Ok(())
    }
}

impl Known {
    fn new(program: &Program, memory: Option<&MemoryMap>, exports: usize) -> Known {
        let mut bound = vec![None; exports];
        for binding in &program.exports {
            if let Some(entry) = bound.get_mut(binding.export as usize) {
                *entry = Some(Bound::new(program, binding.symbol));
            }
        }
        let addresses = memory.map(|memory| memory.globals.as_slice()).unwrap_or_default();
        let variables = addresses.iter().filter_map(|&(id, address)| {
            let global = program.globals.get(id)?;
            Some((global.name.clone(), address, global.size))
        });
        Known { bound, variables: variables.collect() }
    }
}

impl Bound {
    fn new(program: &Program, symbol: Symbol) -> Bound {
        match symbol {
            Symbol::Func(func) => {
                let loc = program.funcs.get(func).map(|func| func.loc).unwrap_or_default();
                Bound { loc, room: None }
            }
            Symbol::Global(pointer) => Bound { loc: Loc::default(), room: room(program, pointer) },
        }
    }
}

/// Checks that a raw value is one of its parameter's type: the word on the link has room for more.
fn check_argument(
    name: &str,
    number: usize,
    param: ElementType,
    value: u64,
) -> Result<(), HostError> {
    let ElementType { ty, kind } = param;
    if kind == ElementKind::Bool && value > 1 {
        return Err(HostError::Bool { name: name.to_owned(), number, value });
    }
    if ty.mask(value) != value {
        let (name, bits) = (name.to_owned(), ty.bits());
        return Err(HostError::Range { name, number, ty: param.name(), bits, value });
    }
    Ok(())
}

/// Bytes from where a pointer variable leads to the end of that variable, if no code can change
/// the pointer.
fn room(program: &Program, pointer: GlobalId) -> Option<u32> {
    let global = program.globals.get(pointer)?;
    let [reloc] = global.relocs.as_slice() else { return None };
    let Symbol::Global(target) = reloc.symbol else { return None };
    let field = global.init.get(reloc.offset as usize..reloc.offset as usize + 2)?;
    let offset = u32::from(u16::from_le_bytes([field[0], field[1]]));
    let known = !may_change(program, pointer);
    program.globals.get(target).filter(|_| known)?.size.checked_sub(offset)
}

fn wrong_kind(name: &str, kind: &ExportKind, wanted: &'static str) -> HostError {
    let found = match kind {
        ExportKind::Pointer { .. } => "a pointer to elements",
        ExportKind::Scalar { .. } => "a scalar",
        ExportKind::Function { .. } => "a function",
    };
    HostError::Kind { name: name.to_owned(), found, wanted }
}

/// Whether code may write a pointer variable: its address is used for anything but a load.
fn may_change(program: &Program, pointer: GlobalId) -> bool {
    let named =
        |global: &Global| global.relocs.iter().any(|reloc| reloc.symbol == Symbol::Global(pointer));
    program.globals.values().any(named) || program.funcs.values().any(|func| writes(func, pointer))
}

fn writes(func: &Func, pointer: GlobalId) -> bool {
    let address = |inst: &InstData| match inst {
        InstData::GlobalAddress { dst, global, offset: _ } if *global == pointer => Some(*dst),
        _ => None,
    };
    let addresses: Vec<Local> = func.insts.values().filter_map(address).collect();
    let uses = |inst: &InstData| {
        let mut any = false;
        inst.visit_locals(|local, access| {
            any |= access == Access::Read && addresses.contains(&local);
        });
        any && !matches!(inst, InstData::Load { .. })
    };
    !addresses.is_empty() && func.insts.values().any(uses)
}

/// The first PE of a region that lies in a rectangle.
fn first_common(place: Rect, region: Region) -> Option<Coord> {
    let Region { rect, column_step, row_step } = region;
    let first = |from: u16, start: u16, step: u16| {
        let step = step.max(1);
        start + from.saturating_sub(start).div_ceil(step) * step
    };
    let at = Coord { x: first(place.x, rect.x, column_step), y: first(place.y, rect.y, row_step) };
    (place.contains(at) && rect.contains(at)).then_some(at)
}
