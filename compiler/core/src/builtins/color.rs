//! Color configurations: routes and switches, filters; links to the host.

use dflow_ir::mesh::{
    Color, ColorConfig, Coord, PopMode, Port, PortSet, Route, Switch, SwitchEntry,
};
use dflow_ir::program::HostLink;
use dflow_syntax::ast::ExprId;
use dflow_syntax::{Diagnostic, Span, codes};

use super::args::{Options, in_range, wrong_type};
use super::filter::filter_of;
use super::queue::color_value;
use super::vector::settings::choice;
use super::{Call, old};
use crate::sema::types::Type;
use crate::sema::value::Value;
use crate::sema::{Operand, R, Sema};

pub(super) fn set_color_config(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let at = super::layout::coordinates(sema, call.args[0], call.args[1])?;
    let (color, config) = color_and_config(sema, call.args[2], call.args[3])?;
    add(sema, at, color, config, call.span);
    Ok(sema.void_operand())
}

fn add(sema: &mut Sema<'_, '_>, at: Coord, color: Color, config: ColorConfig, span: Span) {
    let plan = &mut sema.layout.plan;
    let at = plan.index(at);
    let (used, _) = plan.color_uses.insert_full((color, config, span));
    plan.colors.push((at, crate::plan::ColorUse(used as u32)));
}

pub(super) fn set_local_color_config(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (color, config) = color_and_config(sema, call.args[0], call.args[1])?;
    sema.program_mut().typed.colors.push((color, config, call.span));
    Ok(sema.void_operand())
}

fn color_and_config(
    sema: &mut Sema<'_, '_>,
    color: ExprId,
    config: ExprId,
) -> R<(Color, ColorConfig)> {
    let (value, span) = sema.arg_value(color, None)?;
    let color = color_value(sema, &value, span)?;
    let reads = match sema.known_config(config) {
        Ok(known) => return Ok((color, known)),
        Err(reads) => reads,
    };
    let read = config_of(sema, config)?;
    if let Some(reads) = reads {
        sema.keep_config(config, reads, read.clone());
    }
    Ok((color, read))
}

fn config_of(sema: &mut Sema<'_, '_>, arg: ExprId) -> R<ColorConfig> {
    let allowed = ["routes", "switches", "filter", "teardown"];
    let options = old::color_options(sema, arg, &allowed)?;
    let Some((routes, span)) = options.value(sema, "routes")? else {
        let message = "a color configuration needs `.routes`";
        return sema.fail(codes::MISSING_FIELD, message, options.span, "not given here");
    };
    let (mut config, pop) = routes_of(sema, &routes, span)?;
    config.teardown = options.flag(sema, "teardown")?;
    if let Some((switches, span)) = options.value(sema, "switches")? {
        config.switch = Some(switch_of(sema, &switches, span)?);
    }
    if let Some(pop) = pop.filter(|&pop| config.switch.is_some() || pop != PopMode::None) {
        let switch = config.switch.get_or_insert_default();
        if switch.pop != PopMode::None && switch.pop != pop {
            let message = "`.pop_mode` stands in `.routes` and in `.switches`, and they differ";
            return sema.fail(codes::INVALID_ROUTE, message, options.span, "this configuration");
        }
        switch.pop = pop;
    }
    if let Some((filter, span)) = options.value(sema, "filter")? {
        config.filter = Some(filter_of(sema, &filter, span)?);
    }
    Ok(config)
}

/// `.routes`: a struct, or a set of bits; and the pop mode, where older programs have it.
fn routes_of(
    sema: &mut Sema<'_, '_>,
    routes: &Value,
    span: Span,
) -> R<(ColorConfig, Option<PopMode>)> {
    if sema.types.is_int(routes.ty) {
        let route = route_bits(sema, routes, span)?;
        return Ok((ColorConfig { route, ..ColorConfig::default() }, None));
    }
    let allowed = ["rx", "tx", "color_swap_x", "color_swap_y", "pop_mode"];
    let routes = Options::of_value(sema, routes, span, &allowed, "a route")?;
    let config = ColorConfig {
        route: Route { rx: ports_of(sema, &routes, "rx")?, tx: ports_of(sema, &routes, "tx")? },
        swap_x: routes.flag(sema, "color_swap_x")?,
        swap_y: routes.flag(sema, "color_swap_y")?,
        ..ColorConfig::default()
    };
    let pop = match routes.value(sema, "pop_mode")? {
        Some((mode, span)) => Some(pop_mode(sema, &mode, span)?),
        None => None,
    };
    Ok((config, pop))
}

/// A route as bits, as `<directions>` makes them: the ways out in the five lowest (west, east,
/// south, north, ramp), the ways in above them.
fn route_bits(sema: &mut Sema<'_, '_>, value: &Value, span: Span) -> R<Route> {
    let bits = in_range(sema, value, 0, 0x3ff, "a route's set of bits", span)?;
    let set = |shift: usize| {
        let ports = Port::ALL.into_iter().enumerate();
        let used = ports.filter(|&(at, _)| bits >> (shift + at) & 1 != 0);
        used.fold(PortSet::EMPTY, |set, (_, port)| set.with(port))
    };
    Ok(Route { rx: set(5), tx: set(0) })
}

/// A direction, or a tuple or array of them.
fn ports_of(sema: &mut Sema<'_, '_>, options: &Options, name: &str) -> R<PortSet> {
    match options.value(sema, name)? {
        Some((value, span)) => ports(sema, &value, span),
        None => Ok(PortSet::EMPTY),
    }
}

fn ports(sema: &mut Sema<'_, '_>, value: &Value, span: Span) -> R<PortSet> {
    if value.ty == sema.types.common.direction {
        return port(sema, value, span).map(PortSet::one);
    }
    let count = match sema.types.get(value.ty) {
        Type::Struct(info) if info.tuple => info.fields.len(),
        Type::Array { .. } => sema.types.element_count(value.ty) as usize,
        _ => return wrong_type(sema, value, "a direction, or `.{ A, B }` of directions", span),
    };
    let mut set = PortSet::EMPTY;
    for index in 0..count {
        let Some(element) = value.element(index) else { return sema.undefined(span) };
        let port = port(sema, &element, span)?;
        if set.contains(port) {
            let message = format!("the direction `{}` stands twice", port.name());
            return sema.fail(codes::INVALID_ROUTE, message, span, "in this route");
        }
        set = set.with(port);
    }
    Ok(set)
}

fn port(sema: &mut Sema<'_, '_>, value: &Value, span: Span) -> R<Port> {
    if value.ty != sema.types.common.direction {
        return wrong_type(sema, value, "a direction", span);
    }
    let code = sema.fix_int(value).unwrap_or(0) as usize;
    Ok(Port::ALL[code.min(4)])
}

fn switch_of(sema: &mut Sema<'_, '_>, value: &Value, span: Span) -> R<Switch> {
    let allowed = ["pos1", "pos2", "pos3", "current_switch_pos", "ring_mode", "pop_mode"];
    let options = Options::of_value(sema, value, span, &allowed, "a switch")?;
    let mut switch = Switch::default();
    for (slot, name) in switch.positions.iter_mut().zip(["pos1", "pos2", "pos3"]) {
        if let Some((value, span)) = options.value(sema, name)? {
            *slot = position(sema, &value, span)?;
        }
    }
    switch.initial = options.int(sema, "current_switch_pos", 0, 3)?.unwrap_or(0) as u8;
    switch.ring = options.flag(sema, "ring_mode")?;
    if let Some((mode, span)) = options.value(sema, "pop_mode")? {
        switch.pop = pop_mode(sema, &mode, span)?;
    }
    Ok(switch)
}

fn position(sema: &mut Sema<'_, '_>, value: &Value, span: Span) -> R<Option<SwitchEntry>> {
    if sema.types.is_int(value.ty) {
        return position_bits(sema, value, span);
    }
    let options = Options::of_value(sema, value, span, &["rx", "tx", "invalid"], "a position")?;
    let given = options.fields().count();
    let both = given == 2 && options.get("rx").is_some() && options.get("tx").is_some();
    if given != 1 && !(both && sema.target.switch_both) {
        let message = "a switch position has exactly one of `.rx`, `.tx` and `.invalid`";
        return sema.fail(codes::INVALID_ROUTE, message, span, "this position");
    }
    if options.flag(sema, "invalid")? {
        return Ok(None);
    }
    let rx = ports_of(sema, &options, "rx")?;
    let tx = ports_of(sema, &options, "tx")?;
    Ok(Some(if both {
        SwitchEntry::Both(Route { rx, tx })
    } else if options.get("rx").is_some() {
        SwitchEntry::Rx(rx)
    } else {
        SwitchEntry::Tx(tx)
    }))
}

/// A switch position as bits; none of them: no position.
fn position_bits(sema: &mut Sema<'_, '_>, value: &Value, span: Span) -> R<Option<SwitchEntry>> {
    let route = route_bits(sema, value, span)?;
    match (route.rx.is_empty(), route.tx.is_empty()) {
        (true, true) => Ok(None),
        (false, true) => Ok(Some(SwitchEntry::Rx(route.rx))),
        (true, false) => Ok(Some(SwitchEntry::Tx(route.tx))),
        (false, false) if sema.target.switch_both => Ok(Some(SwitchEntry::Both(route))),
        (false, false) => {
            let message = "a switch position has either ways in or ways out";
            sema.fail(codes::INVALID_ROUTE, message, span, "this position has both")
        }
    }
}

fn pop_mode(sema: &mut Sema<'_, '_>, value: &Value, span: Span) -> R<PopMode> {
    let names = ["no_pop", "always_pop", "pop_on_advance", "pop_on_advance_nop"];
    Ok(match choice(sema, value, span, &names, "`.pop_mode`")? {
        "always_pop" => PopMode::Always,
        "pop_on_advance" => PopMode::OnAdvance,
        "pop_on_advance_nop" => PopMode::OnAdvanceOrNop,
        _ => PopMode::None,
    })
}

pub(super) fn set_host_link(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (value, span) = sema.arg_value(call.args[0], None)?;
    let color = color_value(sema, &value, span)?;
    let (value, span) = sema.arg_value(call.args[1], None)?;
    let port = port(sema, &value, span)?;
    let options = Options::read(sema, call.args[2], &["to_mesh", "to_host"], "a host link")?;
    let (to_mesh, to_host) = (options.flag(sema, "to_mesh")?, options.flag(sema, "to_host")?);
    if to_mesh == to_host {
        let message = "a host link is either `.{ .to_mesh = true }` or `.{ .to_host = true }`";
        return sema.fail(codes::INVALID_ARGUMENT, message, options.span, "this link");
    }
    if port == Port::Ramp {
        let message = "the host is beyond an edge, not at the ramp";
        return sema.fail(codes::INVALID_ARGUMENT, message, span, "this direction");
    }
    let links = &mut sema.program_mut().typed.host_links;
    let known = links.iter().find(|(link, _)| (link.port, link.color) == (port, color));
    if let Some(&(_, first)) = known {
        return link_twice(sema, port, color, [first, call.span]);
    }
    links.push((HostLink { port, color, to_mesh }, call.span));
    Ok(sema.void_operand())
}

/// One side of a PE is joined to the host twice by one color.
fn link_twice(
    sema: &mut Sema<'_, '_>,
    port: Port,
    color: Color,
    [first, second]: [Span; 2],
) -> R<Operand> {
    let (color, side) = (color.index(), port.name());
    let message = format!("color {color} is joined to the host at {side} already");
    Err(sema.report(
        Diagnostic::new(codes::INVALID_ARGUMENT, message, second)
            .label("second link")
            .secondary(first, "first link")
            .help("leave one of them out, or give it another color or side"),
    ))
}
