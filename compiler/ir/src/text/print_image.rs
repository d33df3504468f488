//! Placements and images as text.

use super::lex::quote;
use super::names::Word;
use super::print::{self, PrintOptions, color_config, line};
use super::print_inst::{flag, list};
use crate::image::{
    ElementKind, ElementType, Export, ExportKind, HostStream, Image, MemcpyInfo, MemoryMap,
    Placement, ProgramId, RouterConfig,
};
use crate::mesh::{Color, Rect, RectMap};

/// Numbers per line of slot values.
const VALUES_PER_LINE: usize = 16;

/// A placement as text.
pub fn print_placement(placement: &Placement, options: PrintOptions) -> String {
    let mut out = String::new();
    self::placement(&mut out, placement, options);
    out
}

/// An image as text.
pub fn print_image(image: &Image, options: PrintOptions) -> String {
    let Image {
        target,
        files,
        programs,
        memory,
        placement,
        exports,
        host,
        tests,
        params,
        memcpy,
        streams,
    } = image;
    let mut out = String::new();
    line!(out, "image {} {{", target.name());
    files.iter().for_each(|file| {
        line!(out, "file {}", quote(file));
    });
    params.iter().for_each(|(name, value)| {
        line!(out, "param {} = {}", quote(name), quote(value));
    });
    exports.iter().for_each(|export| {
        line!(out, "export {}", self::export(export, options));
    });
    if let Some(MemcpyInfo { h2d, d2h }) = memcpy {
        line!(out, "memcpy [{}] [{}]", colors(h2d), colors(d2h));
    }
    streams.iter().for_each(|stream| {
        line!(out, "stream {}", self::stream(stream));
    });
    programs.values().for_each(|program| print::program(&mut out, program, options));
    memory.iter().for_each(|(id, map)| {
        line!(out, "memory {id} {}", memory_map(map));
    });
    self::placement(&mut out, placement, options);
    if let Some(host) = host {
        line!(out, "host");
        print::program(&mut out, host, options);
    }
    for (name, program) in tests {
        line!(out, "test {}", quote(name));
        print::program(&mut out, program, options);
    }
    line!(out, "}}");
    out
}

fn stream(stream: &HostStream) -> String {
    let HostStream { name, at, port, color, to_mesh, buffer } = stream;
    let direction = if *to_mesh { "to_mesh" } else { "to_host" };
    let (name, port) = (quote(name), port.word());
    format!("{name} {}, {} {port} {color:?} {direction} buffer={buffer}", at.x, at.y)
}

fn export(export: &Export, options: PrintOptions) -> String {
    let Export { name, kind, loc } = export;
    let kind = match kind {
        ExportKind::Pointer { element, mutable } => {
            format!("pointer {}{}", self::element(*element), flag(*mutable, "mutable"))
        }
        ExportKind::Scalar { element, mutable } => {
            format!("scalar {}{}", self::element(*element), flag(*mutable, "mutable"))
        }
        ExportKind::Function { params } => {
            format!("function ({})", list(params.iter().map(|&param| element(param))))
        }
    };
    format!("{} {kind}{}", quote(name), options.loc(*loc))
}

/// A type with what its values are, unless they are unsigned.
pub(super) fn element(element: ElementType) -> String {
    let ElementType { ty, kind } = element;
    match kind {
        ElementKind::Unsigned => ty.to_string(),
        ElementKind::Signed => format!("{ty} signed"),
        ElementKind::Bool => format!("{ty} bool"),
    }
}

fn colors(colors: &[Color]) -> String {
    list(colors.iter().map(|color| format!("{color:?}")))
}

fn memory_map(map: &MemoryMap) -> String {
    let MemoryMap { globals, data_end, stack, code } = map;
    let globals = list(globals.iter().map(|(global, address)| format!("{global}={address}")));
    format!("data_end={data_end} stack={stack} code={code} [{globals}]")
}

fn rect(rect: Rect) -> String {
    let Rect { x, y, width, height } = rect;
    format!("{x},{y} {width} by {height}")
}

fn placement(out: &mut String, placement: &Placement, options: PrintOptions) {
    let Placement { rect: all, programs, slots, routers, router_map } = placement;
    line!(out, "placement {} {{", rect(*all));
    let RectMap { entries } = programs;
    entries.iter().for_each(|(at, id)| {
        line!(out, "  pes {} = {id}", rect(*at));
    });
    slots.iter().for_each(|(id, values)| self::slots(out, id, values));
    for (index, RouterConfig { colors }) in routers.iter().enumerate() {
        line!(out, "  router {index} {{");
        for (color, config, loc) in colors {
            line!(out, "    {color:?} {}{}", color_config(config), options.loc(*loc));
        }
        line!(out, "  }}");
    }
    let RectMap { entries } = router_map;
    entries.iter().for_each(|(at, index)| {
        line!(out, "  routed {} = {index}", rect(*at));
    });
    line!(out, "}}");
}

/// One line names the program; lines of values follow.
fn slots(out: &mut String, id: ProgramId, values: &[u64]) {
    line!(out, "  slots {id}");
    for chunk in values.chunks(VALUES_PER_LINE) {
        line!(out, "  values {}", list(chunk));
    }
}
