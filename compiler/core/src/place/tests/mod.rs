//! Plans made by hand, placed, and looked at.

mod faults;
mod memory;
mod picture;
mod unfold;

use cranelift_entity::PrimaryMap;
use dflow_ir::image::Image;
use dflow_ir::mesh::{Color, ColorConfig, Coord, Port, PortSet, Rect, Route};
use dflow_ir::target::TargetId;
use dflow_ir::ty::Ty;
use dflow_ir::validate;
use dflow_syntax::diagnostic::render;
use dflow_syntax::{FileId, Interner, Sink, SourceMap, Span};

use super::wafer::without_code;
use crate::lower::{self, LocTable};
use crate::plan::{ColorUse, Plan, ProgramIdx, TileUse};
use crate::session::{Options, Session};
use crate::typed::{Func, FuncIdx, Global, Program, Stmt, StmtKind};
use crate::world::MemoryWorld;

const LINES: u32 = 40;

/// The whole line `number` of the test's source, from 1.
fn line(number: u32) -> Span {
    debug_assert!((1..=LINES).contains(&number));
    // Each line is `line NN`, eight bytes with its end.
    Span::new(FileId(0), (number - 1) * 8, (number - 1) * 8 + 7)
}

fn color(number: u8) -> Color {
    Color::new(number).expect("a color")
}

fn config(rx: &[Port], tx: &[Port]) -> ColorConfig {
    let set = |ports: &[Port]| ports.iter().fold(PortSet::EMPTY, |set, &port| set.with(port));
    ColorConfig { route: Route { rx: set(rx), tx: set(tx) }, ..ColorConfig::default() }
}

fn func(name: &str) -> Func {
    let body = vec![Stmt { kind: StmtKind::Return(None), span: line(1) }];
    let locals = Vec::new();
    Func {
        name: name.into(),
        params: 0,
        ret: None,
        locals,
        labels: 0,
        passing: crate::typed::Passing::default(),
        body,
        span: line(1),
    }
}

fn global(name: &str, size: u32, align: u32, span: Span) -> Global {
    Global {
        name: name.into(),
        size,
        align,
        init: Vec::new(),
        relocs: Vec::new(),
        slots: Vec::new(),
        exported: false,
        section: None,
        span,
    }
}

/// A program with one function and as many slots.
fn program(name: &str, n_slots: usize) -> Program {
    Program { funcs: vec![func("run")], slots: vec![Ty::I16; n_slots], ..without_code(name) }
}

/// A plan and its programs.
struct Case {
    target: TargetId,
    plan: Plan,
    programs: Vec<Program>,
}

impl Case {
    /// A rectangle that runs one program.
    fn filled(width: u16, height: u16, program: Program) -> Case {
        let mut case = Case::empty(width, height, vec![program]);
        case.plan.rect.coords().for_each(|at| case.tile(at, 0, &[]));
        case
    }

    /// A rectangle without code.
    fn empty(width: u16, height: u16, programs: Vec<Program>) -> Case {
        let plan = Plan {
            rect: Rect { x: 0, y: 0, width, height },
            rect_span: Some(line(2)),
            tiles: vec![None; usize::from(width) * usize::from(height)],
            slots: vec![Vec::new(); programs.len()],
            ..Plan::default()
        };
        Case { target: TargetId::Wse2, plan, programs }
    }

    fn tile(&mut self, at: Coord, program: u32, slots: &[u64]) {
        let tile = self.plan.tile_uses.insert_full((ProgramIdx(program), line(3 + program))).0;
        let values = &mut self.plan.slots[program as usize];
        let slot_block = values.len().checked_div(slots.len()).unwrap_or(0) as u32;
        values.extend_from_slice(slots);
        let pe = self.plan.index(at) as usize;
        self.plan.tiles[pe] = Some(TileUse { tile: tile as u32, slot_block });
    }

    fn route(&mut self, at: Coord, number: u8, config: ColorConfig, span: Span) {
        let index = self.plan.color_uses.insert_full((color(number), config, span)).0;
        self.plan.colors.push((self.plan.index(at), ColorUse(index as u32)));
    }

    /// The image, or what the user is told; notes and warnings in either case.
    fn link(&self) -> (Option<Image>, String) {
        let world = MemoryWorld::new();
        let mut cx = Session {
            world: &world,
            sources: SourceMap::new(),
            names: Interner::new(),
            sink: Sink::new(),
            options: Options { target: self.target, ..Options::default() },
            dialect: crate::dialect::Dialect::default(),
            libraries: std::collections::BTreeMap::new(),
            old_spellings: std::collections::BTreeSet::new(),
        };
        let text: String = (1..=LINES).map(|line| format!("line {line:02}\n")).collect();
        cx.sources.add("layout.csl", text);
        let programs: PrimaryMap<_, _> = {
            let locs = LocTable::new(&cx.sources);
            self.programs.iter().map(|program| lower::program(program, &locs)).collect()
        };
        let placed = super::place(&mut cx, &self.plan, &self.programs, &programs);
        let told = cx.sink.diagnostics().iter();
        let told = told.map(|fault| render::human(&cx.sources, fault, render::Color::Never));
        let told = told.collect::<Vec<_>>().join("\n");
        let placed = placed.ok();
        let image =
            placed.map(|placed| crate::link::link(&cx, &self.plan, placed, None, Vec::new()));
        (image, told)
    }

    /// The image of a plan without faults.
    fn image(&self) -> Image {
        let (image, told) = self.link();
        let image = image.unwrap_or_else(|| panic!("the plan has faults:\n{told}"));
        assert_eq!(validate::check_image(&image), Ok(()));
        image
    }

    /// What the user is told about a plan that is refused.
    fn refused(&self) -> String {
        let (image, told) = self.link();
        assert!(image.is_none(), "the plan was accepted:\n{told}");
        told
    }
}

fn at(x: u16, y: u16) -> Coord {
    Coord { x, y }
}

/// The first function of a program.
const RUN: FuncIdx = FuncIdx(0);
