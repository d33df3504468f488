//! Placements and images from text: the inverse of `print_image.rs`.

use cranelift_entity::PrimaryMap;

use super::lex::{Line, Parsed};
use super::parse::{self, Lines, color_config, next};
use crate::image::{
    ElementKind, ElementType, Export, ExportKind, HostStream, Image, MemcpyInfo, MemoryMap,
    Placement, ProgramId, RouterConfig,
};
use crate::mesh::{Coord, Rect};
use crate::target::TargetId;

/// An image, its first line read.
pub(super) fn image(lines: &mut Lines, mut head: Line) -> Parsed<Image> {
    head.keyword("image")?;
    let mut image = Image {
        target: head.value("a target", TargetId::from_name)?,
        files: Vec::new(),
        programs: PrimaryMap::new(),
        memory: PrimaryMap::new(),
        placement: Placement::default(),
        exports: Vec::new(),
        host: None,
        tests: Vec::new(),
        params: Vec::new(),
        memcpy: None,
        streams: Vec::new(),
    };
    head.sign('{')?;
    head.end()?;
    loop {
        let mut line = lines.next()?;
        if line.eat_sign('}') {
            line.end()?;
            return Ok(image);
        }
        match line.peek_word() {
            Some("program") => {
                image.programs.push(parse::program(lines, line)?);
            }
            Some("placement") => image.placement = placement(lines, line)?,
            Some(_) | None => section(lines, line, &mut image)?,
        }
    }
}

fn section(lines: &mut Lines, mut line: Line, image: &mut Image) -> Parsed<()> {
    let section = line.word("a section or `}`")?;
    match &section[..] {
        "file" => image.files.push(line.text()?),
        "param" => {
            let name = line.text()?;
            line.sign('=')?;
            image.params.push((name, line.text()?));
        }
        "export" => image.exports.push(export(&mut line)?),
        "stream" => image.streams.push(stream(&mut line)?),
        "memcpy" => {
            line.sign('[')?;
            let h2d = line.list(']', Line::color)?;
            line.sign('[')?;
            image.memcpy = Some(MemcpyInfo { h2d, d2h: line.list(']', Line::color)? });
        }
        "memory" => {
            next(&mut line, &image.memory)?;
            image.memory.push(memory_map(&mut line)?);
        }
        "host" => {
            line.end()?;
            let head = lines.next()?;
            image.host = Some(parse::program(lines, head)?);
            return Ok(());
        }
        "test" => {
            let name = line.text()?;
            line.end()?;
            let head = lines.next()?;
            image.tests.push((name, parse::program(lines, head)?));
            return Ok(());
        }
        other => return line.error(format!("there is no section `{other}`")),
    }
    line.end()
}

fn stream(line: &mut Line) -> Parsed<HostStream> {
    let name = line.text()?;
    let x = line.int()?;
    line.sign(',')?;
    let at = Coord { x, y: line.int()? };
    let (port, color) = (line.member()?, line.color()?);
    let to_mesh = line.eat("to_mesh");
    if !to_mesh {
        line.keyword("to_host")?;
    }
    Ok(HostStream { name, at, port, color, to_mesh, buffer: line.field("buffer")? })
}

fn export(line: &mut Line) -> Parsed<Export> {
    let name = line.text()?;
    let kind = if line.eat("pointer") {
        ExportKind::Pointer { element: element(line)?, mutable: line.eat("mutable") }
    } else if line.eat("scalar") {
        ExportKind::Scalar { element: element(line)?, mutable: line.eat("mutable") }
    } else {
        line.keyword("function")?;
        line.sign('(')?;
        ExportKind::Function { params: line.list(')', element)? }
    };
    Ok(Export { name, kind, loc: line.loc()? })
}

/// A type with what its values are.
pub(super) fn element(line: &mut Line) -> Parsed<ElementType> {
    let ty = line.ty()?;
    let kind = if line.eat("signed") {
        ElementKind::Signed
    } else if line.eat("bool") {
        ElementKind::Bool
    } else {
        ElementKind::Unsigned
    };
    Ok(ElementType { ty, kind })
}

fn memory_map(line: &mut Line) -> Parsed<MemoryMap> {
    let (data_end, stack, code) =
        (line.field("data_end")?, line.field("stack")?, line.field("code")?);
    line.sign('[')?;
    let globals = line.list(']', |line| {
        let global = line.entity()?;
        Ok((global, line.assigned()?))
    })?;
    Ok(MemoryMap { globals, data_end, stack, code })
}

fn rect(line: &mut Line) -> Parsed<Rect> {
    let x = line.int()?;
    line.sign(',')?;
    let (y, width) = (line.int()?, line.int()?);
    line.keyword("by")?;
    Ok(Rect { x, y, width, height: line.int()? })
}

/// A placement, its first line read.
pub(super) fn placement(lines: &mut Lines, mut head: Line) -> Parsed<Placement> {
    head.keyword("placement")?;
    let mut placement = Placement { rect: rect(&mut head)?, ..Placement::default() };
    head.sign('{')?;
    head.end()?;
    loop {
        let mut line = lines.next()?;
        if line.eat_sign('}') {
            line.end()?;
            return Ok(placement);
        }
        let part = line.word("a part of the placement or `}`")?;
        match &part[..] {
            "pes" => {
                let at = rect(&mut line)?;
                line.sign('=')?;
                placement.programs.entries.push((at, line.entity::<ProgramId>()?));
            }
            "routed" => {
                let at = rect(&mut line)?;
                line.sign('=')?;
                placement.router_map.entries.push((at, line.int()?));
            }
            "slots" => {
                next(&mut line, &placement.slots)?;
                placement.slots.push(Vec::new());
            }
            "values" => values(&mut line, &mut placement)?,
            "router" => {
                router(lines, line, &mut placement)?;
                continue;
            }
            other => return line.error(format!("there is no part `{other}` of a placement")),
        }
        line.end()?;
    }
}

fn values(line: &mut Line, placement: &mut Placement) -> Parsed<()> {
    let Some((_, values)) = placement.slots.iter_mut().next_back() else {
        return line.error("values need a program: `slots program0`");
    };
    values.push(line.bits()?);
    while line.eat_sign(',') {
        values.push(line.bits()?);
    }
    Ok(())
}

fn router(lines: &mut Lines, mut line: Line, placement: &mut Placement) -> Parsed<()> {
    let index: usize = line.int()?;
    if index != placement.routers.len() {
        return line.error(format!("expected router {}", placement.routers.len()));
    }
    line.sign('{')?;
    line.end()?;
    let mut colors = Vec::new();
    loop {
        let mut line = lines.next()?;
        if line.eat_sign('}') {
            line.end()?;
            placement.routers.push(RouterConfig { colors });
            return Ok(());
        }
        let (color, config) = (line.color()?, color_config(&mut line)?);
        colors.push((color, config, line.loc_end()?));
    }
}
