//! What a router of the target can hold: each configuration by itself.

use dflow_ir::mesh::{Color, ColorConfig, PortSet, Route, Switch, SwitchEntry};
use dflow_ir::target::Target;
use dflow_syntax::{Diagnostic, Span, codes};

use crate::session::Session;

/// Judges one configuration.
pub(super) fn check(
    cx: &mut Session<'_>,
    color: Color,
    config: &ColorConfig,
    span: Span,
    target: &Target,
) {
    let ColorConfig { route: _, switch, filter: _, teardown: _, swap_x, swap_y } = config;
    if (*swap_x || *swap_y) && !target.color_swap {
        let message = format!("routers of {} have no color swap", target.id.name());
        cx.emit(Diagnostic::new(codes::WRONG_TARGET, message, span).label("asks for one").help(
            "give every second PE the other color of the pair: send on one, receive on the other",
        ));
    }
    if let Some(switch) = switch {
        check_switch(cx, color, switch, span, target);
    }
}

fn invalid(cx: &mut Session<'_>, message: String, help: &str, span: Span) {
    cx.emit(Diagnostic::new(codes::INVALID_ROUTE, message, span).help(help));
}

fn check_switch(cx: &mut Session<'_>, color: Color, switch: &Switch, span: Span, target: &Target) {
    let Switch { positions, initial, ring: _, pop: _ } = switch;
    let name = target.id.name();
    let used = positions.iter().any(Option::is_some);
    if used && target.switch_colors >> color.index() & 1 == 0 {
        let message = format!("color {} of {name} has no switch", color.index());
        let help = format!("use one of the colors {}", color_list(target.switch_colors));
        invalid(cx, message, &help, span);
    }
    let end = positions.iter().position(Option::is_none).unwrap_or(positions.len());
    if let Some(beyond) = positions.iter().skip(end).position(Option::is_some) {
        let (hole, beyond) = (end + 1, end + beyond + 1);
        let message = format!("position {beyond} is never reached: position {hole} is not there");
        invalid(cx, message, "number the positions from 1 without gaps", span);
    } else if usize::from(*initial) > end {
        let message = format!("the switch starts at position {initial}, which is not there");
        invalid(cx, message, "describe the position, or start at another", span);
    }
    for (entry, position) in positions.iter().zip(1..) {
        if let Some(entry) = entry {
            check_entry(cx, position, entry, span, target);
        }
    }
}

fn check_entry(
    cx: &mut Session<'_>,
    position: u8,
    entry: &SwitchEntry,
    span: Span,
    target: &Target,
) {
    let ports = match entry {
        SwitchEntry::Rx(ports) | SwitchEntry::Tx(ports) => *ports,
        SwitchEntry::Both(_) => {
            if !target.switch_both {
                let name = target.id.name();
                let message = format!("position {position} changes both sides: {name} changes one");
                let help = "name `.rx` or `.tx`; the other side stays as in the position before";
                invalid(cx, message, help, span);
            }
            return;
        }
    };
    if ports.is_empty() {
        let message = format!("position {position} names no port");
        invalid(cx, message, "leave the position out, or write `.{ .invalid = true }`", span);
    } else if count(ports) > 1 && target.router_registers {
        // The register of these targets has room for one direction.
        let name = target.id.name();
        let message = format!(
            "position {position} names {}: {name} has room for one port in a switch position",
            port_list(ports)
        );
        invalid(
            cx,
            message,
            "put the larger set into `.routes` and switch to the single port",
            span,
        );
    }
}

/// Judges how many ports a color is taken from at a time.
pub(super) fn check_sources(
    cx: &mut Session<'_>,
    color: Color,
    config: &ColorConfig,
    span: Span,
    target: &Target,
) {
    if !target.single_rx {
        return;
    }
    for (route, position) in config.positions().iter().zip(0..) {
        let Some(Route { rx, tx: _ }) = route else { continue };
        if count(*rx) > 1 {
            let name = target.id.name();
            let message = format!(
                "color {} is received from {} in position {position}: a router of {name} takes a color from one port",
                color.index(),
                port_list(*rx)
            );
            let help =
                "switch between the ports with `.switches`, or give each stream its own color";
            invalid(cx, message, help, span);
            return;
        }
    }
}

fn count(ports: PortSet) -> usize {
    ports.iter().count()
}

fn port_list(ports: PortSet) -> String {
    ports.iter().map(|port| port.name()).collect::<Vec<_>>().join(" and ")
}

fn color_list(colors: u32) -> String {
    let colors = (0..Color::COUNT).filter(|&color| colors >> color & 1 != 0);
    colors.map(|color| color.to_string()).collect::<Vec<_>>().join(", ")
}
