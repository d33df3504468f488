//! Code of regions: programs, params, and what they say about the age of the layout.

use dflow_ir::mesh::{Color, Coord, Rect};
use dflow_ir::program::TaskKind;
use dflow_syntax::ast::{Expr, ItemKind, VarDecl, VarKind};
use dflow_syntax::{Diagnostic, Interner, SourceMap, Span, codes};

use super::LayoutBuilder;
use super::geometry::Ground;
use super::notes::{Mark, Places};
use super::requests::{ParamValue, Region};
use super::wires::Routed;
use crate::dialect;
use crate::elaborate::{self, Code};
use crate::load::SourceIdx;
use crate::resolve::{DeclKind, ResolvedFile, edit_distance};
use crate::sema::value::{Data, Value};
use crate::sema::{R, Sema};
use crate::session::Session;
use crate::typed;

/// Gives every PE of every region its code.
///
/// # Errors
/// A source cannot be read, a param does not exist, or a program has faults: all are reported.
pub(super) fn place(
    sema: &mut Sema<'_, '_>,
    builder: &LayoutBuilder,
    root: SourceIdx,
    ground: &Ground,
    colors: &[Color],
    places: &Places,
) -> R<()> {
    let mut result = Ok(());
    for (index, region) in builder.regions.iter().enumerate() {
        let placed = code_of(sema, region, root, places).and_then(|code| {
            check_params(sema, region, code, places)?;
            place_region(sema, region, code, ground.areas[index], colors, places)
        });
        sema.layout.param_spans.clear();
        result = result.and(placed);
    }
    result
}

/// The file or tile block that a region runs.
fn code_of(sema: &mut Sema<'_, '_>, region: &Region, root: SourceIdx, places: &Places) -> R<Code> {
    let span = places.span(region.mark);
    let Sema { files, cx, .. } = sema;
    let source = files.import(cx, root, &region.source, span)?;
    let Some(tile) = &region.tile else { return Ok(Code { source, scope: 0, parent: None }) };
    let file = sema.files.get(source);
    let scopes = file.scopes.iter().enumerate();
    let mut named = scopes.filter_map(|(scope, own)| Some((scope, own.name.as_ref()?.name)));
    let found = named.find(|&(_, name)| sema.cx.names.resolve(name) == tile);
    let Some((scope, _)) = found else {
        let message = format!("`{}` has no tile `{tile}`", region.source);
        return Err(sema.cx.emit(Diagnostic::new(codes::UNKNOWN_TILE, message, span)));
    };
    let parent = Some(sema.instantiate(source, 0, None, String::new(), Vec::new()));
    Ok(Code { source, scope: scope as u32, parent })
}

/// Every param that is set must be declared.
fn check_params(sema: &mut Sema<'_, '_>, region: &Region, code: Code, places: &Places) -> R<()> {
    let file = sema.files.get(code.source);
    let names: Vec<String> = params(&file, code.scope)
        .map(|var| sema.cx.names.resolve(var.name.name).to_owned())
        .collect();
    let mut result = Ok(());
    for param in region.params.iter().filter(|param| !names.contains(&param.name)) {
        let message = format!("`{}` has no param `{}`", region.source, param.name);
        let diagnostic = Diagnostic::new(codes::UNKNOWN_NAME, message, places.span(param.mark))
            .label(format!("set on region `{}`", region.name));
        let near = names.iter().map(|name| (edit_distance(name, &param.name), name)).min();
        let near = near.filter(|&(distance, name)| distance <= name.len().max(3) / 3);
        result = Err(sema.cx.emit(match near {
            Some((_, name)) => diagnostic.help(format!("did you mean `{name}`?")),
            None if names.is_empty() => diagnostic.help("it has no params at all"),
            None => diagnostic.help(format!("it has {}", quoted(&names))),
        }));
    }
    result
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn params(file: &ResolvedFile, scope: u32) -> impl Iterator<Item = &VarDecl> {
    file.scopes[scope as usize].decls.iter().filter_map(|decl| match &decl.kind {
        DeclKind::Var(var) if var.kind == VarKind::Param => Some(var),
        DeclKind::Var(_) | DeclKind::Fn(_) | DeclKind::Tile(_) => None,
    })
}

fn place_region(
    sema: &mut Sema<'_, '_>,
    region: &Region,
    code: Code,
    area: Rect,
    colors: &[Color],
    places: &Places,
) -> R<()> {
    let span = places.span(region.mark);
    let bools = bools(sema, code);
    let local = Rect { x: 0, y: 0, ..area };
    for at in local.coords() {
        let (values, marks) = values(sema, region, at, colors, &bools);
        sema.layout.param_spans = marks.into_iter().map(|mark| places.span(mark)).collect();
        let at = Coord { x: area.x + at.x, y: area.y + at.y };
        elaborate::place_tile(sema, at, code, Some(values), span, span)?;
    }
    Ok(())
}

/// Params declared as `bool`: host programs give them as 0 and 1.
fn bools(sema: &Sema<'_, '_>, code: Code) -> Vec<String> {
    let file = sema.files.get(code.source);
    let is_bool = |var: &&VarDecl| {
        var.ty.is_some_and(|ty| match file.file.expr(ty) {
            Expr::Name(name) => sema.cx.names.resolve(*name) == "bool",
            _ => false,
        })
    };
    let declared = params(&file, code.scope).filter(is_bool);
    declared.map(|var| sema.cx.names.resolve(var.name.name).to_owned()).collect()
}

/// The params of a PE as a struct, and the request of each.
fn values(
    sema: &mut Sema<'_, '_>,
    region: &Region,
    at: Coord,
    colors: &[Color],
    bools: &[String],
) -> (Value, Vec<Mark>) {
    let mut values: Vec<(&str, Value, Mark)> = Vec::new();
    for param in region.params.iter().filter(|param| param.area.contains(at)) {
        let common = sema.types.common;
        let value = match param.value {
            ParamValue::Int(int @ (0 | 1)) if bools.contains(&param.name) => {
                sema.bool_value(int == 1)
            }
            ParamValue::Int(int) => Value::int(common.comptime_int, int),
            ParamValue::Float(float) => Value::new(common.comptime_float, Data::Float(float)),
            ParamValue::Color(color) => {
                Value::int(common.comptime_int, colors[color.index()].index().into())
            }
        };
        match values.iter_mut().find(|(name, ..)| *name == param.name) {
            Some((_, old, mark)) => (*old, *mark) = (value, param.mark),
            None => values.push((&param.name, value, param.mark)),
        }
    }
    let fields = values.iter().map(|(name, value, _)| (sema.cx.names.intern(name), value.ty));
    let fields = fields.collect();
    let ty = sema.types.anonymous(fields, false);
    let (values, marks) = values.into_iter().map(|(_, value, mark)| (value, mark)).unzip();
    (Value::new(ty, Data::Fields(std::rc::Rc::new(values))), marks)
}

/// What the params that colors are given to say about the layout's age.
pub(super) fn marks(cx: &Session<'_>, builder: &LayoutBuilder) -> Vec<dialect::Mark> {
    let mut marks = Vec::new();
    for region in &builder.regions {
        let colors =
            region.params.iter().filter(|param| matches!(param.value, ParamValue::Color(_)));
        let colors: Vec<&str> = colors.map(|param| param.name.as_str()).collect();
        let Ok(bytes) = cx.world.read(&crate::world::fold(&region.source)) else { continue };
        let mut sources = SourceMap::new();
        let Ok(id) = sources.add_bytes(region.source.as_str(), &bytes) else { continue };
        let kind = dflow_syntax::Dialect::of_path(&region.source);
        if colors.is_empty() || kind == dflow_syntax::Dialect::Dfl {
            continue;
        }
        let mut names = Interner::new();
        let file = dflow_syntax::parse(id, sources.text(id), kind, &mut names).file;
        for item in &file.items {
            let ItemKind::Var(VarDecl { kind: VarKind::Param, name, ty: Some(ty), .. }) =
                &item.kind
            else {
                continue;
            };
            let Expr::Name(ty) = file.expr(*ty) else { continue };
            if !colors.contains(&names.resolve(name.name)) {
                continue;
            }
            match names.resolve(*ty) {
                "color" => marks.push(dialect::Mark::of_caller(
                    false,
                    false,
                    "a color for a param of type `color`",
                )),
                "u8" | "u16" | "u32" | "i16" | "i32" => {
                    marks.push(dialect::Mark::of_caller(
                        true,
                        true,
                        "a color for a param that is an integer",
                    ));
                }
                _ => {}
            }
        }
    }
    marks
}

/// A number that was chosen for a net, and that code of a PE uses by itself.
pub(super) struct Taken {
    pub(super) net: usize,
    pub(super) color: Color,
    at: Coord,
    /// The request that brings the net there, if it is a way.
    way: Option<Mark>,
    used: Span,
}

/// Numbers that cannot stay: a way goes through a PE whose code binds or routes its number, or (where
/// colors are data task ids) code has a local task of the number of its data task.
pub(super) fn taken(sema: &Sema<'_, '_>, ground: &Ground, routed: &Routed) -> Vec<Taken> {
    let mut taken = Vec::new();
    for &(at, color, net, way) in &routed.crossed {
        let Some(program) = program_at(sema, at) else { continue };
        let queue = program.queues.iter().find(|queue| queue.color == color);
        let own = program.colors.iter().find(|own| own.0 == color);
        if let Some(used) = queue.map(|queue| queue.span).or(own.map(|own| own.2)) {
            taken.push(Taken { net, color, at, way: Some(way), used });
        }
    }
    if sema.target.data_task_by_queue {
        return taken;
    }
    for at in ground.areas.iter().flat_map(|area| area.coords()) {
        let Some(program) = program_at(sema, at) else { continue };
        let of = |kind: TaskKind| program.tasks.iter().filter(move |task| task.kind == kind);
        for data in of(TaskKind::Data) {
            let local = of(TaskKind::Local).find(|local| local.id == data.id);
            let (Some(local), Some(color)) = (local, Color::new(data.id)) else { continue };
            let mut nets = routed.nets.iter().enumerate();
            let net = nets.find(|(net, (_, cells))| {
                let mut colors = routed.net_of.iter().zip(&routed.colors);
                cells.contains(at) && colors.any(|(of, number)| of == net && *number == color)
            });
            if let Some((net, _)) = net {
                taken.push(Taken { net, color, at, way: None, used: local.span });
            }
        }
    }
    taken
}

fn program_at<'s>(sema: &'s Sema<'_, '_>, at: Coord) -> Option<&'s typed::Program> {
    let plan = &sema.layout.plan;
    let tile = plan.tiles[plan.index(at) as usize]?;
    let (program, _) = plan.tile_uses.get_index(tile.tile as usize)?;
    sema.layout.program(*program)
}

/// Says that a number which somebody gave cannot stay. Clashing tasks are told of by placing.
pub(super) fn report_taken(
    sema: &mut Sema<'_, '_>,
    builder: &LayoutBuilder,
    ground: &Ground,
    places: &Places,
    taken: &Taken,
) -> R<()> {
    let Some(way) = taken.way else { return Ok(()) };
    let region = ground.region_at(taken.at).map_or("", |region| &builder.get(region).name);
    let message = format!(
        "a way goes through PE ({}, {}) of region `{region}` by color {}, which its code uses",
        taken.at.x,
        taken.at.y,
        taken.color.index()
    );
    Err(sema.cx.emit(
        Diagnostic::new(codes::ROUTE_CONFLICT, message, places.span(way))
            .label("the way")
            .secondary(taken.used, "the code")
            .help("leave the number of this way out, or give the code its colors as params"),
    ))
}
