//! What the host can name, and which PEs have it.

use dflow_ir::image::{Export, ExportKind, Image};
use dflow_ir::mesh::{Color, Coord, Rect};
use dflow_ir::program::Program;
use dflow_ir::ty::Ty;

use super::HostError;
use super::wire::{MAX_ARGS, bytes_per_word};

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
    streams_in: Vec<Color>,
    streams_out: Vec<Color>,
    /// Streams to the host whose columns take turns.
    turns: Vec<Color>,
}

impl Symbols {
    /// The symbols of an image.
    pub fn new(image: &Image) -> Symbols {
        let memcpy = image.memcpy.clone().unwrap_or_default();
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
        let switched = |color: &Color| {
            let configs = image.placement.routers.iter().flat_map(|router| &router.colors);
            configs.into_iter().any(|(c, config, _)| c == color && config.switch.is_some())
        };
        Symbols {
            exports: image.exports.clone(),
            bound: image.programs.values().map(bound).collect(),
            places: places.iter().map(|&(rect, id)| (rect, id.as_u32() as usize)).collect(),
            columns: image.placement.rect.width,
            rows: image.placement.rect.height,
            turns: memcpy.d2h.iter().copied().filter(switched).collect(),
            streams_in: memcpy.h2d,
            streams_out: memcpy.d2h,
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

    pub(super) fn check_stream(&self, color: Color, to_mesh: bool) -> Result<(), HostError> {
        let streams = if to_mesh { &self.streams_in } else { &self.streams_out };
        if streams.contains(&color) { Ok(()) } else { Err(HostError::NoStream { color, to_mesh }) }
    }

    /// Whether words of several columns come in the order of the columns.
    pub(super) fn takes_turns(&self, color: Color) -> bool {
        self.turns.contains(&color)
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
