//! Settings of an operation that have no effect, since a register that holds a fabric descriptor brings its own.

use std::collections::{BTreeMap, BTreeSet};

use cranelift_entity::PrimaryMap;
use dflow_ir::dsd::{DsdKind, DsrRef};
use dflow_ir::image::ProgramId;
use dflow_syntax::{Diagnostic, Span, codes};

use super::Tile;
use super::odd::each;
use crate::session::Session;
use crate::typed::{Expr, ExprKind, Operand, Options, Stmt, StmtKind, Vector};

/// What is known of all the loads of a register.
#[derive(Clone, Copy)]
struct Loads<'t> {
    /// All are of fabric descriptors.
    fabric: bool,
    asynchronous: bool,
    /// Some have an end that only a run knows.
    late: bool,
    /// The first that has a place.
    span: Option<Span>,
    first: &'t Options,
    /// All have the same ids.
    alike: bool,
}

/// Looks at every program.
pub(super) fn check(cx: &mut Session<'_>, tiles: &PrimaryMap<ProgramId, Tile<'_>>) {
    for tile in tiles.values() {
        let loads = loads(tile);
        let mut told = BTreeSet::new();
        let mut unused = Vec::new();
        for func in &tile.typed.funcs {
            each(&func.body, &mut |stmt| unused.extend(idle(stmt, &loads)));
        }
        for Idle { what, span, load, help } in unused {
            // A library knows what it does, and the user cannot change it.
            if cx.in_library(span) || !told.insert((span.file.0, span.start)) {
                continue;
            }
            let message = format!("`.{what}` has no effect: the load of the register decides");
            let diagnostic =
                Diagnostic::new(codes::SETTINGS_UNUSED, message, span).label("has no such effect");
            let diagnostic = match load {
                Some(load) => diagnostic.secondary(load, "loaded here"),
                None => diagnostic,
            };
            cx.emit(diagnostic.help(help).frame(tile.pes.frame(span, tile.span)));
        }
    }
}

/// A setting without effect.
struct Idle {
    what: &'static str,
    span: Span,
    load: Option<Span>,
    help: String,
}

/// Loads by register, those before the start included.
fn loads<'t>(tile: &'t Tile<'_>) -> BTreeMap<DsrRef, Loads<'t>> {
    let mut all: BTreeMap<DsrRef, Loads<'t>> = BTreeMap::new();
    let mut note = |dsr: DsrRef, fabric: bool, options: &'t Options, span: Option<Span>| {
        let loads = all.entry(dsr).or_insert(Loads {
            fabric,
            asynchronous: false,
            late: false,
            span,
            first: options,
            alike: true,
        });
        loads.fabric &= fabric;
        loads.asynchronous |= options.asynchronous;
        loads.late |= options.index.is_some();
        loads.span = loads.span.or(span);
        loads.alike &= ends(options) == ends(loads.first);
    };
    for load in &tile.typed.initial_dsrs {
        let fabric = matches!(load.dsd.kind(), DsdKind::FabIn | DsdKind::FabOut);
        note(load.dsr, fabric, &load.options, None);
    }
    for func in &tile.typed.funcs {
        each(&func.body, &mut |stmt| {
            if let StmtKind::LoadDsr { dsr, dsd, options } = &stmt.kind {
                note(*dsr, is_fabric(dsd), options, Some(stmt.span));
            }
        });
    }
    all
}

/// What an end does.
fn ends(options: &Options) -> (Option<u8>, Option<dflow_ir::inst::Unblock>) {
    (options.activate, options.unblock)
}

/// Whether a descriptor is surely one of the fabric.
fn is_fabric(dsd: &Expr) -> bool {
    match dsd.kind.as_ref() {
        ExprKind::Fabric { .. } => true,
        ExprKind::SetExtent { dsd, .. } | ExprKind::SetBase { dsd, .. } => is_fabric(dsd),
        _ => false,
    }
}

/// Settings of an operation that none of its registers was loaded with.
fn idle(stmt: &Stmt, loads: &BTreeMap<DsrRef, Loads<'_>>) -> Option<Idle> {
    let (StmtKind::Expr(value) | StmtKind::Set(_, value)) = &stmt.kind else { return None };
    let ExprKind::Vector(vector) = value.kind.as_ref() else { return None };
    let Vector { dest, sources, options, .. } = vector.as_ref();
    let mut registers = Vec::new();
    for operand in sources.iter().chain([dest]) {
        if let Operand::Dsr(dsr) = operand {
            // One that is loaded nowhere, or not for certain with what waits, tells nothing.
            registers.push(loads.get(dsr)?);
        }
    }
    let decides = registers.iter().find(|loads| loads.fabric)?;
    if registers.iter().any(|loads| loads.late || !loads.alike) {
        return None;
    }
    let (span, load) = (value.span, decides.span);
    if options.asynchronous && !registers.iter().any(|loads| loads.asynchronous) {
        let help = "load the register with `.async = true`".to_owned();
        return Some(Idle { what: "async", span, load, help });
    }
    let (activate, unblock) = ends(options);
    let kept = registers.iter().any(|loads| ends(loads.first) == (activate, unblock));
    let what = if activate.is_some() { "activate" } else { "unblock" };
    let is_idle = (activate.is_some() || unblock.is_some()) && !kept;
    is_idle.then(|| Idle {
        what,
        span,
        load,
        help: format!("load the register with this `.{what}`"),
    })
}
