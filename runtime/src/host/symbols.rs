//! What the host can name, and which PEs have it.

use dflow_ir::image::{Export, ExportKind, Image, RouterConfig};
use dflow_ir::mesh::{Color, ColorConfig, Coord, Port, PortSet, Rect, RectMap, SwitchEntry};
use dflow_ir::program::Program;
use dflow_ir::ty::Ty;

use super::HostError;
use super::wire::{MAX_ARGS, bytes_per_word};

/// How words of a stream are told apart by column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Switches deal them out, column by column.
    Dealt,
    /// They come from several columns as they please.
    Merged,
    /// The program's own affair: their order is all there is.
    Plain,
}

/// Exports of an image, with the PEs that bind them.
#[derive(Clone, Debug)]
pub struct Symbols {
    exports: Vec<Export>,
    /// Per program: which exports it binds.
    bound: Vec<Vec<bool>>,
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
        let bound = |program: &Program| {
            let mut bound = vec![false; image.exports.len()];
            for binding in &program.exports {
                if let Some(flag) = bound.get_mut(binding.export as usize) {
                    *flag = true;
                }
            }
            bound
        };
        let places = &image.placement.programs.entries;
        Symbols {
            exports: image.exports.clone(),
            bound: image.programs.values().map(bound).collect(),
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

    pub(super) fn check_region(&self, rect: Rect) -> Result<(), HostError> {
        let Rect { x, y, width, height } = rect;
        self.region(x.into(), y.into(), width.into(), height.into()).map(|_| ())
    }

    /// Checks that elements of `ty` can be copied to (`write`) or from the memory behind an
    /// export on all PEs of a region.
    pub(super) fn check_copy(
        &self,
        export: u32,
        rect: Rect,
        ty: Ty,
        write: bool,
    ) -> Result<(), HostError> {
        let Export { name, kind, loc: _ } = self.export(export)?;
        let (element, mutable) = match kind {
            ExportKind::Pointer { element, mutable } => (element, *mutable),
            ExportKind::Scalar { .. } | ExportKind::Function { .. } => {
                return Err(wrong_kind(name, kind, "a pointer to elements"));
            }
        };
        if element.ty != ty {
            return Err(HostError::ElementType {
                name: name.clone(),
                found: element.ty,
                given: ty,
            });
        }
        if write && !mutable {
            return Err(HostError::Constant { name: name.clone() });
        }
        bytes_per_word(ty)?;
        self.check_region(rect)?;
        self.check_bound(export, name, rect)
    }

    /// Checks that a function can be launched with so many arguments.
    pub(super) fn check_launch(&self, export: u32, given: usize) -> Result<(), HostError> {
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
            return Err(HostError::ElementSize(wide.ty));
        }
        self.check_bound(export, name, self.all())
    }

    /// How the words of a color leave or enter the mesh at a PE that is joined to the host.
    pub(super) fn style(&self, at: Coord, color: Color) -> Style {
        let router = self.router_map.get(at).and_then(|&id| self.routers.get(id as usize));
        let config = router.and_then(|router| router.colors.iter().find(|entry| entry.0 == color));
        let Some((_, ColorConfig { route, switch, .. }, _)) = config else { return Style::Plain };
        let further = switch.and_then(|switch| switch.positions[0]);
        let to_ramp = PortSet::one(Port::Ramp);
        match further {
            Some(SwitchEntry::Tx(_)) if route.tx == to_ramp => Style::Dealt,
            None if route.rx.contains(Port::Ramp) && route.rx != to_ramp => Style::Merged,
            Some(_) | None => Style::Plain,
        }
    }

    fn export(&self, id: u32) -> Result<&Export, HostError> {
        let missing = || HostError::UnknownSymbol { name: format!("#{id}"), known: Vec::new() };
        self.exports.get(id as usize).ok_or_else(missing)
    }

    fn check_bound(&self, export: u32, name: &str, rect: Rect) -> Result<(), HostError> {
        for &(place, program) in &self.places {
            let has = self.bound.get(program).and_then(|bound| bound.get(export as usize));
            if has == Some(&true) {
                continue;
            }
            if let Some(at) = first_common(place, rect) {
                return Err(HostError::Missing { name: name.to_owned(), at });
            }
        }
        Ok(())
    }
}

fn wrong_kind(name: &str, kind: &ExportKind, wanted: &'static str) -> HostError {
    let found = match kind {
        ExportKind::Pointer { .. } => "a pointer to elements",
        ExportKind::Scalar { .. } => "a scalar",
        ExportKind::Function { .. } => "a function",
    };
    HostError::Kind { name: name.to_owned(), found, wanted }
}

/// The first PE that two rectangles share.
fn first_common(a: Rect, b: Rect) -> Option<Coord> {
    let at = Coord { x: a.x.max(b.x), y: a.y.max(b.y) };
    (a.contains(at) && b.contains(at)).then_some(at)
}
