//! Phase 4's entry: runs the layout block, makes a program of each kind of tile, then the host
//! and test blocks.
//!
//! A tile's params may differ on every PE. Their scalars are *leaves*: analysis marks what
//! follows from them, records as guards what they decided, and makes slots of what merely
//! reached code or data. A further PE whose params have the same shape evaluates guards and
//! slots, nothing else; only if a guard fails is a further program made.

mod host;

use dflow_ir::mesh::Coord;
use dflow_ir::program::Profile;
use dflow_syntax::{Diagnostic, Reported, Span, Symbol, codes};
use indexmap::IndexMap;
use rustc_hash::FxHashMap;

use self::host::host_program;
use crate::dialect;
use crate::load::SourceIdx;
use crate::params;
use crate::plan::{Plan, PlanExport, ProgramIdx, TileUse};
use crate::resolve::{DeclKind, nearest};
use crate::sema::ops;
use crate::sema::program::ProgramCx;
use crate::sema::types::{Repr, Type, TypeId};
use crate::sema::value::{Data, ModuleId, Node, Provenance, Scalar, Value};
use crate::sema::{BodyKind, R, Sema, TraceStep};
use crate::session::Session;
use crate::typed;

/// What leaves phase 4.
pub(crate) struct Elaborated {
    pub(crate) plan: Plan,
    /// Index: [`ProgramIdx`].
    pub(crate) programs: Vec<typed::Program>,
    pub(crate) host: Option<typed::Program>,
    pub(crate) tests: Vec<(String, typed::Program)>,
}

/// State of the layout's evaluation.
#[derive(Default)]
pub(crate) struct LayoutState {
    pub(crate) plan: Plan,
    /// Setting the rectangle has failed: what misses it needs no report of its own.
    pub(crate) rectangle_failed: Option<Reported>,
    /// 0 while the layout runs, else the number of the program being analyzed.
    pub(crate) current_owner: u32,
    owners: u32,
    templates: Vec<Template>,
    by_key: FxHashMap<TemplateKey, Vec<usize>>,
    programs: Vec<typed::Program>,
    /// Ids of export names, in order of first mention, and their declarations.
    pub(crate) exports: IndexMap<String, Option<PlanExport>>,
    /// Bindings to check once all declarations are known.
    bound: Vec<Bound>,
    /// Their names.
    bound_names: Vec<String>,
    /// Coordinates of the PE whose program is analyzed, as values with provenance.
    pub(crate) pe_coords: Option<(Value, Value)>,
    /// Numbers that were named or given.
    pub(crate) taken: crate::builtins::allocate::Taken,
    /// Places of the next PE's params, if each has its own.
    pub(crate) param_spans: Vec<Span>,
    /// Modules whose imports are under way.
    pub(crate) importing: Vec<SourceIdx>,
    /// Queue bindings that descriptors implied: (input, queue, position in the program's list).
    pub(crate) implicit_queues: Vec<(bool, u8, usize)>,
}

/// An export binding with what it must agree with.
struct Bound {
    name: String,
    ty: crate::sema::types::TypeId,
    mutable: bool,
    span: Span,
}

/// Code of a tile: a file, or a tile block of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Code {
    pub(crate) source: SourceIdx,
    pub(crate) scope: u32,
    pub(crate) parent: Option<ModuleId>,
}

/// What PEs that may share a program have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct TemplateKey {
    code: Code,
    shape: Shape,
}

/// Params without their leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Shape {
    /// Types of the params and of their parts, depth first, and types that are values; how many parts a struct
    /// has follows from its type.
    types: Vec<TypeId>,
    /// What is no leaf: kinds of values and their numbers.
    rest: Vec<i128>,
    /// What has no number, as text.
    texts: String,
}

/// A program with the conditions under which further PEs may use it.
struct Template {
    provenance: Provenance,
    program: Result<ProgramIdx, Reported>,
}

impl LayoutState {
    /// The id of an export's name.
    pub(crate) fn export_id(&mut self, name: &str) -> u32 {
        if let Some(at) = self.exports.get_index_of(name) {
            return at as u32;
        }
        self.exports.insert(name.to_owned(), None);
        (self.exports.len() - 1) as u32
    }

    /// Declares an export; gives the place of an earlier declaration if there is one.
    pub(crate) fn declare_export(&mut self, id: u32, export: PlanExport) -> Result<(), Span> {
        let Some((_, declared)) = self.exports.get_index_mut(id as usize) else { return Ok(()) };
        match declared {
            Some(first) => Err(first.span),
            None => {
                *declared = Some(export);
                Ok(())
            }
        }
    }
}

/// For layouts that are made without a layout block.
impl LayoutState {
    /// The programs so far.
    pub(crate) fn programs(&self) -> &[typed::Program] {
        &self.programs
    }

    /// A program.
    pub(crate) fn program(&self, index: ProgramIdx) -> Option<&typed::Program> {
        self.programs.get(index.0 as usize)
    }

    /// A program, to be completed.
    pub(crate) fn program_mut(&mut self, index: usize) -> &mut typed::Program {
        &mut self.programs[index]
    }

    /// The plan and its programs. Nobody declares exports: what programs export by name is left out.
    pub(crate) fn take_without_exports(&mut self) -> Elaborated {
        let mut programs = std::mem::take(&mut self.programs);
        programs.iter_mut().for_each(|program| program.exports.clear());
        let plan = std::mem::take(&mut self.plan);
        Elaborated { plan, programs, host: None, tests: Vec::new() }
    }
}

/// Runs the layout of a loaded root file.
pub(crate) fn layout(cx: &mut Session<'_>, root: &str) -> Result<Elaborated, Reported> {
    let chosen = dialect::choose(cx, root);
    cx.dialect = chosen.dialect.clone();
    let mut sema = Sema::new(cx);
    let elaborated = elaborated(&mut sema, root);
    sema.files.report_unreached(sema.cx);
    chosen.report(cx, root);
    elaborated
}

fn elaborated(sema: &mut Sema<'_, '_>, root: &str) -> Result<Elaborated, Reported> {
    let source = sema.files.root(sema.cx, root)?;
    let file = sema.files.get(source);
    sema.given = params::find(sema, source);
    let module = sema.instantiate(source, 0, None, String::new(), Vec::new());
    params::check(sema, module);
    let Some(body) = &file.layout else {
        let message = "the program has no layout block";
        let diagnostic = Diagnostic::new(
            codes::LAYOUT_MISSING,
            message,
            Span::new(file.file.id, 0, 0),
        )
        .label("this file")
        .help("a program's top file says `layout { @set_rectangle(w, h); @set_tile_code(…); }`");
        return Err(sema.report(diagnostic));
    };
    sema.run_body(module, body, BodyKind::Layout)?;
    warn_unused_comptime(sema, source);
    sema.cx.sink.ok()?;
    bind_exports(sema)?;
    let host = match &file.host {
        Some(body) => Some(host_program(sema, module, "host", body)?),
        None => None,
    };
    let mut tests = Vec::new();
    if sema.cx.options.tests {
        for (name, body) in &file.tests {
            let program = host_program(sema, module, name, body)?;
            tests.push((name.clone(), program));
        }
    }
    sema.cx.sink.ok()?;
    // Some are asked for by the host block only.
    report_params(sema, module);
    let layout = std::mem::take(&mut sema.layout);
    let mut plan = layout.plan;
    plan.exports = layout.exports.into_values().flatten().collect();
    Ok(Elaborated { plan, programs: layout.programs, host, tests })
}

/// Top-level comptime blocks belong to the code of PEs: those of a file that no PE runs, and no code imports, do nothing.
fn warn_unused_comptime(sema: &mut Sema<'_, '_>, root: SourceIdx) {
    if sema.modules.iter().skip(1).any(|module| module.source == root && module.scope == 0) {
        return;
    }
    for body in &sema.files.get(root).scopes[0].comptime {
        let message = "a comptime block that is never run: no PE runs the code of this file";
        let help = "checks of a layout stand in its layout block, what is to be done on PEs in the code that they run";
        let diagnostic = Diagnostic::new(codes::UNUSED_COMPTIME, message, body.block.span);
        sema.cx.emit(diagnostic.label("not run").help(help));
    }
}

/// Values of the layout's params that can be given as text, for reports; those never asked for are left out.
fn report_params(sema: &mut Sema<'_, '_>, module: ModuleId) {
    let own = &sema.modules[module.0 as usize];
    let file = sema.files.get(own.source);
    let mut shown = Vec::new();
    for (decl, state) in file.scopes[0].decls.iter().zip(&own.decls) {
        let DeclKind::Var(var) = &decl.kind else { continue };
        if var.kind != dflow_syntax::ast::VarKind::Param {
            continue;
        }
        if let crate::sema::module::DeclState::Const(value) = state {
            let text = match &value.data {
                Data::Int(int) => params::text_of(sema, value.ty, *int),
                Data::Float(float) => float.to_string(),
                Data::Str(text) => String::from_utf8_lossy(text).into_owned(),
                Data::Type(ty) => sema.type_name(*ty),
                _ => continue,
            };
            shown.push((sema.spell(decl.name.name), text));
        }
    }
    sema.layout.plan.params = shown;
}

/// Where a PE was given its code, if it was.
pub(crate) fn tile_span(sema: &Sema<'_, '_>, at: Coord) -> Option<Span> {
    let plan = &sema.layout.plan;
    let tile = plan.tiles.get(plan.index(at) as usize)?.as_ref()?;
    plan.tile_uses.get_index(tile.tile as usize).map(|(_, span)| *span)
}

/// Gives a PE its code.
pub(crate) fn place_tile(
    sema: &mut Sema<'_, '_>,
    at: Coord,
    code: Code,
    params: Option<Value>,
    params_span: Span,
    span: Span,
) -> R<()> {
    let mut leaves = vec![Scalar::Int(i128::from(at.x)), Scalar::Int(i128::from(at.y))];
    let mut shape = Shape::default();
    if let Some(params) = &params {
        flatten(sema, params, &mut leaves, &mut shape);
    }
    let key = TemplateKey { code, shape };
    let (program, slots) = match fitting(sema, &key, &leaves) {
        Some((program, slots)) => (program?, slots),
        None => {
            let template = build(sema, at, code, params, params_span, span);
            let known = sema.layout.templates.len();
            sema.layout.templates.push(template);
            sema.layout.by_key.entry(key).or_default().push(known);
            let slots = slots_of(sema, known, &leaves).unwrap_or_default();
            (sema.layout.templates[known].program?, slots)
        }
    };
    let plan = &mut sema.layout.plan;
    let per_pe = slots.len() as u32;
    let values = &mut plan.slots[program.0 as usize];
    let slot_block = (values.len() as u32).checked_div(per_pe).unwrap_or(0);
    values.extend(slots);
    let (tile, _) = plan.tile_uses.insert_full((program, span));
    let index = plan.index(at) as usize;
    plan.tiles[index] = Some(TileUse { tile: tile as u32, slot_block });
    Ok(())
}

/// Splits params into leaves and the rest.
fn flatten(sema: &Sema<'_, '_>, value: &Value, leaves: &mut Vec<Scalar>, shape: &mut Shape) {
    use std::fmt::Write as _;
    shape.types.push(value.ty);
    match &value.data {
        Data::Int(int) if is_leaf(sema, value) => leaves.push(Scalar::Int(*int)),
        Data::Float(float) => leaves.push(Scalar::Float(*float)),
        Data::Fields(fields) => {
            fields.iter().for_each(|field| flatten(sema, field, leaves, shape));
        }
        Data::Undef => shape.rest.push(0),
        Data::Void => shape.rest.push(1),
        Data::Int(int) => shape.rest.extend([2, *int]),
        Data::Type(id) => shape.types.push(*id),
        Data::Func(func) => shape.rest.extend([4, func.module.0.into(), func.decl.into()]),
        Data::Module(module) => shape.rest.extend([5, module.0.into()]),
        data => {
            shape.rest.push(6);
            let _ = write!(shape.texts, "{data:?},");
        }
    }
}

/// Whether a scalar may differ between PEs of one program: numbers and bools. Ids, colors and
/// directions nearly always decide something, so they are part of the shape.
fn is_leaf(sema: &Sema<'_, '_>, value: &Value) -> bool {
    matches!(sema.types.get(value.ty), Type::Int { .. } | Type::ComptimeInt | Type::Bool)
}

/// The same params with their leaves marked.
fn marked(sema: &Sema<'_, '_>, value: &Value, next: &mut u32) -> Value {
    match &value.data {
        Data::Int(_) if !is_leaf(sema, value) => value.clone(),
        Data::Int(_) | Data::Float(_) => {
            *next += 1;
            Value { prov: *next, ..value.clone() }
        }
        Data::Fields(fields) => {
            let fields = fields.iter().map(|field| marked(sema, field, next)).collect();
            Value { data: Data::Fields(std::rc::Rc::new(fields)), ..value.clone() }
        }
        _ => value.clone(),
    }
}

/// A template whose guards hold for these leaves, and its slots there. At most one does (the analysis of
/// another PE with these leaves would have taken its way), so the one that held last is tried first:
/// neighbors are alike.
fn fitting(
    sema: &mut Sema<'_, '_>,
    key: &TemplateKey,
    leaves: &[Scalar],
) -> Option<(Result<ProgramIdx, Reported>, Vec<u64>)> {
    let candidates = sema.layout.by_key.get(key)?;
    let tried = candidates.iter().map(|&at| slots_of(sema, at, leaves));
    let (at, slots) = tried.enumerate().find_map(|(at, slots)| Some((at, slots?)))?;
    let candidates = sema.layout.by_key.get_mut(key)?;
    candidates[..=at].rotate_right(1);
    let template = candidates[0];
    Some((sema.layout.templates[template].program, slots))
}

/// Slot values of a template for these leaves, if its guards hold and all slots have values.
fn slots_of(sema: &Sema<'_, '_>, at: usize, leaves: &[Scalar]) -> Option<Vec<u64>> {
    let provenance = &sema.layout.templates[at].provenance;
    let machine = |ty| match sema.types.repr(ty, Profile::Pe) {
        Repr::Scalar(machine) => Some(machine),
        Repr::Void | Repr::Memory { .. } | Repr::Comptime => None,
    };
    let values = provenance.evaluate(&sema.types, leaves, &machine);
    for &(node, expected) in &provenance.guards {
        if !values[node as usize]?.same(expected) {
            return None;
        }
    }
    let mut slots = Vec::with_capacity(provenance.slots.len());
    for (&(node, _), &machine) in provenance.slots.iter().zip(&provenance.slot_types) {
        slots.push(ops::raw_bits(machine, values[node as usize]?));
    }
    Some(slots)
}

/// Makes the program of a PE, to be shared.
fn build(
    sema: &mut Sema<'_, '_>,
    at: Coord,
    code: Code,
    params: Option<Value>,
    params_span: Span,
    span: Span,
) -> Template {
    let file = sema.files.get(code.source);
    sema.layout.owners += 1;
    let owner = sema.layout.owners;
    let outer_owner = std::mem::replace(&mut sema.layout.current_owner, owner);
    let outer_program = sema.program.take();
    let outer_coords = sema.layout.pe_coords.take();
    let outer_queues = std::mem::take(&mut sema.layout.implicit_queues);
    let pe = Some((at.x, at.y));
    sema.trace.push(TraceStep::Instance { file: file.file.id, span, pe });
    let result = build_inner(sema, at, code, params, params_span);
    sema.trace.pop();
    let built = std::mem::replace(&mut sema.program, outer_program);
    sema.layout.current_owner = outer_owner;
    sema.layout.pe_coords = outer_coords;
    sema.layout.implicit_queues = outer_queues;
    let Some(built) = built else { unreachable!("the program was put in place") };
    let mut provenance = built.provenance;
    provenance.slot_types = built.typed.slots.clone();
    let program = result.map(|()| finish(sema, built.typed, built.exports));
    Template { provenance, program }
}

fn build_inner(
    sema: &mut Sema<'_, '_>,
    at: Coord,
    code: Code,
    params: Option<Value>,
    params_span: Span,
) -> R<()> {
    let file = sema.files.get(code.source);
    let path = sema.cx.sources.path(file.file.id).to_owned();
    let name = match file.scopes[code.scope as usize].name {
        Some(name) => sema.spell(name.name),
        None => path.rsplit('/').next().unwrap_or(&path).to_owned(),
    };
    let mut provenance = Provenance::default();
    let mut next = 0;
    let u16_ty = sema.types.common.u16;
    let mut coordinate = |int: u16| {
        next += 1;
        Value { prov: next, ..Value::int(u16_ty, i128::from(int)) }
    };
    let coords = (coordinate(at.x), coordinate(at.y));
    let params = params.map(|params| marked(sema, &params, &mut next));
    provenance.nodes = (0..next).map(Node::Leaf).collect();
    let given = match &params {
        Some(params) => named(sema, params, params_span),
        None => Vec::new(),
    };
    let given = with_own_params(sema, code, given);
    warn_unknown(sema, code, &given);
    let module = sema.instantiate(code.source, code.scope, code.parent, String::new(), given);
    let mut program = ProgramCx::new(name, Profile::Pe);
    program.provenance = provenance;
    sema.program = Some(program);
    sema.layout.pe_coords = Some(coords);
    sema.run_top_level(module)?;
    sema.link_symbols()?;
    sema.analyze_pending()?;
    sema.finish_queues();
    sema.check_queues();
    sema.check_steps();
    sema.check_registers();
    sema.finish_teardown();
    crate::builtins::finish_early(sema)?;
    sema.close_channels();
    Ok(())
}

/// The layout file used as tile code keeps the params that it was given itself.
fn with_own_params(
    sema: &Sema<'_, '_>,
    code: Code,
    mut given: Vec<(Symbol, Value, Span)>,
) -> Vec<(Symbol, Value, Span)> {
    let root = &sema.modules[0];
    if code.parent.is_none() && code.scope == 0 && code.source == root.source {
        for param in &root.params {
            if !given.iter().any(|(name, _, _)| *name == param.0) {
                given.push(param.clone());
            }
        }
    }
    given
}

fn named(sema: &Sema<'_, '_>, params: &Value, span: Span) -> Vec<(Symbol, Value, Span)> {
    let Type::Struct(info) = sema.types.get(params.ty) else { return Vec::new() };
    let span = |at: usize| sema.layout.param_spans.get(at).copied().unwrap_or(span);
    let fields = info.fields.iter().enumerate();
    fields.filter_map(|(at, &(name, _))| Some((name, params.element(at)?, span(at)))).collect()
}

fn warn_unknown(sema: &mut Sema<'_, '_>, code: Code, given: &[(Symbol, Value, Span)]) {
    let file = sema.files.get(code.source);
    for &(name, _, span) in given {
        if !file.scopes[code.scope as usize].by_name.contains_key(&name) {
            let text = sema.spell(name);
            let message = format!("the code has no param `{text}`");
            let help = crate::params::help(sema, &file, code.scope, &text);
            let diagnostic = Diagnostic::new(codes::UNKNOWN_PARAM, message, span);
            sema.report(diagnostic.label("given here").help(help));
        }
    }
}

/// Enters a finished program; its exports are checked when all are declared.
fn finish(
    sema: &mut Sema<'_, '_>,
    mut program: typed::Program,
    exports: Vec<crate::sema::program::BoundExport>,
) -> ProgramIdx {
    let idx = sema.layout.programs.len();
    for export in exports {
        let id = sema.layout.export_id(&export.name);
        sema.layout.bound.push(Bound {
            name: export.name,
            ty: export.ty,
            mutable: export.mutable,
            span: export.span,
        });
        let (symbol, span) = (export.symbol, export.span);
        program.exports.push(typed::ExportBinding { export: id, symbol, span });
    }
    crate::hold::settle(&mut program);
    sema.layout.programs.push(program);
    sema.layout.plan.slots.push(Vec::new());
    ProgramIdx(idx as u32)
}

/// An export that the layout does not declare: under another name perhaps.
fn undeclared_export(sema: &mut Sema<'_, '_>, bound: &Bound) -> Reported {
    let (name, ty) = (&bound.name, sema.type_name(bound.ty));
    let taken = |known: &str| sema.layout.bound_names.iter().any(|other| other == known);
    let declared = sema.layout.exports.iter().filter(|(_, export)| export.is_some());
    let free = declared.map(|(known, _)| known.as_str()).filter(|known| !taken(known));
    let near = nearest(name, free).map(str::to_owned);
    let message = format!("`{name}` is exported and the layout does not declare it");
    let diagnostic =
        Diagnostic::new(codes::UNRESOLVED_EXPORT, message, bound.span).label("exported here");
    let mutable = match sema.types.get(bound.ty) {
        Type::Fn { .. } => "",
        _ if bound.mutable => ", true",
        _ => ", false",
    };
    let write = format!("write `@export_name(\"{name}\", {ty}{mutable});` in the layout block");
    sema.report(match near {
        Some(near) => diagnostic.help(format!("the layout declares `{near}`: is this the same?")),
        None => diagnostic.help(write),
    })
}

/// Holds every binding against its declaration; names that nobody declared are errors. The ids
/// are renumbered so that declared exports are dense.
fn bind_exports(sema: &mut Sema<'_, '_>) -> R<()> {
    let bound = std::mem::take(&mut sema.layout.bound);
    sema.layout.bound_names = bound.iter().map(|bound| bound.name.clone()).collect();
    let mut result = Ok(());
    for bound in &bound {
        let declared = sema.layout.exports.get(&bound.name).and_then(Option::as_ref).cloned();
        let Some(declared) = declared else {
            result = Err(undeclared_export(sema, bound));
            continue;
        };
        let type_name = sema.type_name(bound.ty);
        let mutable = match declared.kind {
            dflow_ir::image::ExportKind::Pointer { mutable, .. }
            | dflow_ir::image::ExportKind::Scalar { mutable, .. } => mutable,
            dflow_ir::image::ExportKind::Function { .. } => bound.mutable,
        };
        if type_name != declared.type_name {
            let message = format!(
                "`{}` is exported as `{type_name}` and declared as `{}`",
                bound.name, declared.type_name
            );
            result = Err(sema.report(
                Diagnostic::new(codes::EXPORT_MISMATCH, message, bound.span)
                    .label("exported here")
                    .secondary(declared.span, "declared here")
                    .help("the host reads what the layout declares: write the same type in both"),
            ));
        } else if mutable && !bound.mutable {
            let message = format!("`{}` is a constant and declared as mutable", bound.name);
            result = Err(sema.report(
                Diagnostic::new(codes::EXPORT_MISMATCH, message, bound.span)
                    .label("exported here")
                    .secondary(declared.span, "declared here")
                    .help("declare it with `var`, or give `@export_name` `false`"),
            ));
        } else if bound.mutable && !mutable {
            let message = format!("`{}` is a variable and declared as a constant", bound.name);
            result = Err(sema.report(
                Diagnostic::new(codes::EXPORT_MISMATCH, message, bound.span)
                    .label("exported here")
                    .secondary(declared.span, "declared here")
                    .help("declare it with `const`, or give `@export_name` `true`"),
            ));
        }
    }
    result
}
