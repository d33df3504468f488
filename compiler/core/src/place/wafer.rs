//! A wafer-sized plan, for the bench of placing.

use cranelift_entity::PrimaryMap;
use dflow_ir::image::ProgramId;
use dflow_ir::mesh::{Color, ColorConfig, Coord, Port, PortSet, Rect, Route};
use dflow_ir::program::{Profile, Program};
use dflow_syntax::{Interner, Sink, SourceMap, Span};

use crate::dialect::Dialect;
use crate::plan::{ColorUse, Plan, ProgramIdx, TileUse};
use crate::session::{Options, Session};
use crate::typed;
use crate::world::MemoryWorld;

/// A plan of two programs in columns, with colors on every PE.
pub struct Wafer {
    sources: SourceMap,
    plan: Plan,
    typed: Vec<typed::Program>,
    programs: PrimaryMap<ProgramId, Program>,
}

impl Wafer {
    /// `width` x `height` PEs; each PE has `n_colors` colors, up to 24, in two kinds of routes.
    #[must_use]
    pub fn new(width: u16, height: u16, n_colors: u8) -> Wafer {
        let mut sources = SourceMap::new();
        let file = sources.add("layout.csl", "layout {}\n");
        let span = Span::new(file, 0, 6);
        let mut plan = Plan {
            rect: Rect { x: 0, y: 0, width, height },
            rect_span: Some(span),
            ..Plan::default()
        };
        for at in plan.rect.coords() {
            let program = ProgramIdx(u32::from(at.x == 0));
            let tile = plan.tile_uses.insert_full((program, span)).0 as u32;
            plan.tiles.push(Some(TileUse { tile, slot_block: 0 }));
            let pe = plan.index(at);
            for color in (0..n_colors).filter_map(Color::new) {
                let request = (color, config(at, width), span);
                let index = plan.color_uses.insert_full(request).0 as u32;
                plan.colors.push((pe, ColorUse(index)));
            }
        }
        let names = ["inner", "first"];
        let programs = names.map(|name| Program::empty(name.to_owned(), Profile::Pe));
        plan.slots = vec![Vec::new(); names.len()];
        let typed = names.map(without_code);
        Wafer { sources, plan, typed: typed.into(), programs: programs.into_iter().collect() }
    }

    /// Places the plan.
    ///
    /// # Errors
    /// The plan has faults.
    pub fn place(&self) -> Result<usize, Vec<String>> {
        let world = MemoryWorld::new();
        let mut cx = Session {
            world: &world,
            sources: self.sources.clone(),
            names: Interner::default(),
            sink: Sink::new(),
            options: Options::default(),
            dialect: Dialect::default(),
            libraries: std::collections::BTreeMap::new(),
            old_spellings: std::collections::BTreeSet::new(),
        };
        let placed = super::place(&mut cx, &self.plan, &self.typed, &self.programs);
        let faults = cx.sink.diagnostics().iter().map(|fault| fault.message().to_owned());
        placed.map(|placed| placed.placement.routers.len()).map_err(|_| faults.collect())
    }
}

/// Eastwards, and into the ramp at the end.
fn config(at: Coord, width: u16) -> ColorConfig {
    let rx = PortSet::one(if at.x == 0 { Port::Ramp } else { Port::West });
    let tx = PortSet::one(if at.x + 1 == width { Port::Ramp } else { Port::East });
    ColorConfig { route: Route { rx, tx }, ..ColorConfig::default() }
}

/// A typed program that holds nothing.
pub(super) fn without_code(name: &str) -> typed::Program {
    typed::Program::empty(name.to_owned(), Profile::Pe)
}
