//! Programs from text: the inverse of `print.rs`, line by line.

use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};

use super::lex::{Line, Parsed, entity, lines};
use super::parse_inst::{self, Item};
use super::{TextError, parse_image as image_parser};
use crate::dsd::Dsd;
use crate::func::{BlockData, Func, Local, Signature, StackSlotData};
use crate::image::{Image, Placement};
use crate::mesh::{ColorConfig, Filter, Port, PortSet, Route, Switch, SwitchEntry};
use crate::program::{
    ControlTable, ExportBinding, Fifo, FifoAction, FuncId, Global, HostLink, InitialConfig,
    InitialDsr, InitialFlag, LocalColorConfig, Program, QueueBinding, Reloc, Rotation, Shape,
    Symbol, TaskBinding,
};
use crate::ty::Ty;

/// Most locals of a function in text: a range like `v1..v9` is short, what it makes is not.
const MAX_LOCALS: usize = 1 << 20;

/// The program that a text describes.
pub fn parse_program(text: &str) -> Result<Program, TextError> {
    whole(text, program)
}

/// The placement that a text describes.
pub fn parse_placement(text: &str) -> Result<Placement, TextError> {
    whole(text, image_parser::placement)
}

/// The image that a text describes.
pub fn parse_image(text: &str) -> Result<Image, TextError> {
    whole(text, image_parser::image)
}

/// The lines that are still to be read.
pub(super) struct Lines {
    rest: std::vec::IntoIter<Line>,
    last: u32,
}

impl Lines {
    /// The next line.
    pub(super) fn next(&mut self) -> Parsed<Line> {
        let line = self.rest.next().ok_or_else(|| TextError {
            line: self.last,
            reason: "the text ends too early".to_owned(),
        })?;
        self.last = line.number();
        Ok(line)
    }
}

fn whole<T>(text: &str, read: fn(&mut Lines, Line) -> Parsed<T>) -> Parsed<T> {
    let mut lines = Lines { rest: lines(text)?.into_iter(), last: 1 };
    let first = lines.next()?;
    let value = read(&mut lines, first)?;
    match lines.rest.next() {
        Some(line) => line.expected("the end of the text"),
        None => Ok(value),
    }
}

/// Checks that a declared index is the next of its table.
pub(super) fn next<K, V>(line: &mut Line, table: &PrimaryMap<K, V>) -> Parsed<()>
where
    K: EntityRef + std::fmt::Display,
{
    let id: K = line.entity()?;
    let expected = table.next_key();
    if id == expected { Ok(()) } else { line.error(format!("expected {expected}, found {id}")) }
}

/// A program, its first line read.
pub(super) fn program(lines: &mut Lines, mut head: Line) -> Parsed<Program> {
    head.keyword("program")?;
    let mut program = Program::empty(head.text()?, head.member()?);
    head.sign('{')?;
    head.end()?;
    loop {
        let mut line = lines.next()?;
        if line.eat_sign('}') {
            line.end()?;
            return Ok(program);
        }
        let section = line.word("a declaration or `}`")?;
        if section == "func" {
            let func = func(lines, line, &program.funcs)?;
            program.funcs.push(func);
        } else {
            declaration(&mut line, &section, &mut program)?;
            line.end()?;
        }
    }
}

fn declaration(line: &mut Line, section: &str, program: &mut Program) -> Parsed<()> {
    match section {
        "slot" => {
            next(line, &program.slots)?;
            line.sign(':')?;
            program.slots.push(line.ty()?);
        }
        "global" => {
            next(line, &program.globals)?;
            program.globals.push(global(line)?);
        }
        "shape" => {
            next(line, &program.shapes)?;
            line.sign(':')?;
            program.shapes.push(shape(line)?);
        }
        "fifo" => {
            next(line, &program.fifos)?;
            line.sign(':')?;
            program.fifos.push(fifo(line)?);
        }
        "sig" => {
            next(line, &program.signatures)?;
            line.sign(':')?;
            line.sign('(')?;
            let params = line.list(')', |line| line.ty())?;
            program.signatures.push(Signature { params, ret: result(line)? });
        }
        "task" => {
            let (kind, id) = (line.member()?, line.int()?);
            line.sign('=')?;
            let func = line.entity()?;
            program.tasks.push(TaskBinding { kind, id, func, loc: line.loc()? });
        }
        "queue" => program.queues.push(queue(line)?),
        "control_table" => {
            let (instructions, stride) = (line.field("instructions")?, line.field("stride")?);
            program.control_table = Some(ControlTable { instructions, stride });
        }
        "rotation" => {
            let (id, other) = (line.int()?, line.field("other")?);
            let (limit, initial) = (line.field("limit")?, line.field("initial")?);
            program.rotations.push(Rotation { id, other, limit, initial });
        }
        "flag" => {
            let (op, id) = (line.member()?, line.int()?);
            program.initial_flags.push(InitialFlag { op, id, loc: line.loc()? });
        }
        "register" => program.initial_dsrs.push(initial_dsr(line)?),
        "config" => {
            let address = line.bits()? as u16;
            line.sign('=')?;
            let value = line.bits()? as u16;
            program.initial_config.push(InitialConfig { address, value, loc: line.loc()? });
        }
        "color" => {
            let (color, config) = (line.color()?, color_config(line)?);
            program.colors.push(LocalColorConfig { color, config, loc: line.loc()? });
        }
        "host_link" => {
            let (port, color) = (line.member()?, line.color()?);
            let to_mesh = line.eat("to_mesh");
            if !to_mesh {
                line.keyword("to_host")?;
            }
            program.host_links.push(HostLink { port, color, to_mesh });
        }
        "export" => {
            let export = line.int()?;
            line.sign('=')?;
            program.exports.push(ExportBinding { export, symbol: symbol(line)? });
        }
        "entry" => program.entry = Some(line.entity()?),
        other => return line.error(format!("there is no declaration `{other}`")),
    }
    Ok(())
}

fn global(line: &mut Line) -> Parsed<Global> {
    let name = line.text()?;
    let (size, align) = (line.field("size")?, line.field("align")?);
    let exported = line.eat("exported");
    let init = if line.eat("init") {
        line.sign('=')?;
        line.value("bytes in hexadecimal behind an `x`", hex)?
    } else {
        Vec::new()
    };
    let mut relocs = Vec::new();
    while line.eat("reloc") {
        let offset = line.int()?;
        line.sign('=')?;
        relocs.push(Reloc { offset, symbol: symbol(line)? });
    }
    let mut slots = Vec::new();
    while line.eat("fill") {
        let offset = line.int()?;
        line.sign('=')?;
        slots.push((offset, line.entity()?));
    }
    Ok(Global { name, size, align, init, relocs, slots, exported, loc: line.loc()? })
}

fn hex(word: &str) -> Option<Vec<u8>> {
    let digits = word.strip_prefix('x')?.as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|&[high, low]| Some((digit(high)? << 4 | digit(low)?) as u8)).collect()
}

fn symbol(line: &mut Line) -> Parsed<Symbol> {
    line.value("a global or a function", |word| {
        let global = entity(word, "g").map(Symbol::Global);
        global.or_else(|| entity(word, "fn").map(Symbol::Func))
    })
}

fn shape(line: &mut Line) -> Parsed<Shape> {
    let mut dims = Vec::new();
    while !line.is_done() {
        if !dims.is_empty() {
            line.sign(',')?;
        }
        let extent = line.int()?;
        line.keyword("by")?;
        dims.push((extent, line.int()?));
    }
    Ok(Shape { dims })
}

fn fifo(line: &mut Line) -> Parsed<Fifo> {
    let buffer = line.entity()?;
    let (capacity, element) = (line.field("capacity")?, line.field("element")?);
    let activate_pop = if line.eat("activate_pop") { Some(line.assigned()?) } else { None };
    let activate_push = if line.eat("activate_push") { Some(line.assigned()?) } else { None };
    let mut action = |name| match line.eat(name) {
        true => line.sign('=').and_then(|()| line.member()),
        false => Ok(FifoAction::default()),
    };
    let (empty, full) = (action("empty")?, action("full")?);
    let priority = parse_inst::priority(line)?;
    let single = line.eat("single");
    Ok(Fifo {
        buffer,
        capacity,
        element,
        activate_pop,
        activate_push,
        empty,
        full,
        priority,
        single,
    })
}

fn queue(line: &mut Line) -> Parsed<QueueBinding> {
    let input = line.eat("input");
    if !input {
        line.keyword("output")?;
    }
    let queue = line.int()?;
    line.sign('=')?;
    let (color, priority) = (line.color()?, parse_inst::priority(line)?);
    let control_table = if line.eat("table") { line.assigned()? } else { 0 };
    Ok(QueueBinding { input, queue, color, priority, control_table, loc: line.loc()? })
}

fn initial_dsr(line: &mut Line) -> Parsed<InitialDsr> {
    let dsr = parse_inst::dsr(line)?;
    line.sign('=')?;
    let dsd = Dsd(line.bits()?);
    let symbol = if line.eat("base") {
        line.sign('=')?;
        Some(line.entity()?)
    } else {
        None
    };
    let save_address = line.eat("save_address");
    let single_step = line.eat("single_step");
    let xdsr = parse_inst::xdsr(line)?;
    let options = parse_inst::options(line)?;
    Ok(InitialDsr { dsr, dsd, symbol, options, save_address, single_step, xdsr })
}

fn result(line: &mut Line) -> Parsed<Option<Ty>> {
    if !line.eat_sign('-') {
        return Ok(None);
    }
    line.sign('>')?;
    line.ty().map(Some)
}

/// A color's configuration, up to its place.
pub(super) fn color_config(line: &mut Line) -> Parsed<ColorConfig> {
    line.keyword("route")?;
    let route = route(line)?;
    let switch = if line.eat("switch") { Some(switch(line)?) } else { None };
    let filter = filter(line)?;
    let teardown = line.eat("teardown");
    let swap_x = line.eat("swap_x");
    Ok(ColorConfig { route, switch, filter, teardown, swap_x, swap_y: line.eat("swap_y") })
}

fn ports(line: &mut Line) -> Parsed<PortSet> {
    if line.eat("none") {
        return Ok(PortSet::EMPTY);
    }
    let mut set = PortSet::one(line.member::<Port>()?);
    while line.eat_sign('+') {
        set = set.with(line.member::<Port>()?);
    }
    Ok(set)
}

fn route(line: &mut Line) -> Parsed<Route> {
    let rx = ports(line)?;
    line.sign('>')?;
    Ok(Route { rx, tx: ports(line)? })
}

fn switch(line: &mut Line) -> Parsed<Switch> {
    line.sign('[')?;
    let listed = line.list(']', switch_entry)?;
    let Ok(positions) = listed.try_into() else {
        return line.error("a switch has three further positions");
    };
    let initial = line.field("initial")?;
    line.keyword("pop")?;
    line.sign('=')?;
    let pop = line.member()?;
    Ok(Switch { positions, initial, ring: line.eat("ring"), pop })
}

fn switch_entry(line: &mut Line) -> Parsed<Option<SwitchEntry>> {
    if line.eat("invalid") {
        return Ok(None);
    }
    if line.eat("rx") {
        return ports(line).map(|set| Some(SwitchEntry::Rx(set)));
    }
    if line.eat("tx") {
        return ports(line).map(|set| Some(SwitchEntry::Tx(set)));
    }
    line.keyword("both")?;
    route(line).map(|route| Some(SwitchEntry::Both(route)))
}

fn filter(line: &mut Line) -> Parsed<Option<Filter>> {
    if line.eat("range") {
        return Ok(Some(Filter::Range { min: line.field("min")?, max: line.field("max")? }));
    }
    let sparse = line.eat("sparse");
    if !sparse && !line.eat("counter") {
        return Ok(None);
    }
    let (initial, limit, max) = (line.field("initial")?, line.field("limit")?, line.field("max")?);
    let limit2 = if sparse && line.eat("limit2") { Some(line.assigned()?) } else { None };
    let (data, control) = (line.eat("data"), line.eat("control"));
    let filter_control = line.eat("filter_control");
    Ok(Some(match sparse {
        true => Filter::Sparse { data, control, initial, limit, limit2, max, filter_control },
        false => Filter::Counter { data, control, initial, limit, max, filter_control },
    }))
}

/// `v0: i16` or `v1..v3: i32`, the next locals of the function.
fn locals(line: &mut Line, all: &mut PrimaryMap<Local, Ty>) -> Parsed<()> {
    let expected = all.len();
    let word = line.word("a local")?;
    let (first, last) = word.split_once("..").unwrap_or((&word, &word));
    let (Some(first), Some(last)) = (entity::<Local>(first, "v"), entity::<Local>(last, "v"))
    else {
        return line.error(format!("expected locals, found `{word}`"));
    };
    if first.index() != expected || last < first || last.index() >= MAX_LOCALS {
        return line.error(format!("expected v{expected} or a range from it, found `{word}`"));
    }
    line.sign(':')?;
    let ty = line.ty()?;
    (first.index()..=last.index()).for_each(|_| {
        all.push(ty);
    });
    Ok(())
}

/// A function, its first word read.
fn func(lines: &mut Lines, mut head: Line, funcs: &PrimaryMap<FuncId, Func>) -> Parsed<Func> {
    next(&mut head, funcs)?;
    let name = head.text()?;
    let mut all = PrimaryMap::new();
    head.sign('(')?;
    head.list(')', |line| locals(line, &mut all))?;
    let ret = result(&mut head)?;
    head.sign('{')?;
    let mut func = Func {
        name,
        params: all.len() as u32,
        ret,
        locals: all,
        stack_slots: PrimaryMap::new(),
        blocks: PrimaryMap::new(),
        insts: PrimaryMap::new(),
        locs: SecondaryMap::new(),
        loc: head.loc_end()?,
    };
    let mut line = lines.next()?;
    while line.eat("locals") {
        loop {
            locals(&mut line, &mut func.locals)?;
            if !line.eat_sign(',') {
                break;
            }
        }
        line.end()?;
        line = lines.next()?;
    }
    while line.eat("stack") {
        next(&mut line, &func.stack_slots)?;
        line.sign(':')?;
        let (size, align) = (line.field("size")?, line.field("align")?);
        func.stack_slots.push(StackSlotData { size, align });
        line.end()?;
        line = lines.next()?;
    }
    while !line.eat_sign('}') {
        next(&mut line, &func.blocks)?;
        line.sign(':')?;
        line.end()?;
        block(lines, &mut func)?;
        line = lines.next()?;
    }
    line.end()?;
    Ok(func)
}

/// The lines of a block, up to its terminator.
fn block(lines: &mut Lines, func: &mut Func) -> Parsed<()> {
    let mut insts = Vec::new();
    loop {
        let mut line = lines.next()?;
        let item = parse_inst::item(&mut line, func)?;
        let loc = line.loc_end()?;
        match item {
            Item::Inst(data) => {
                let inst = func.insts.push(data);
                func.locs[inst] = loc;
                insts.push(inst);
            }
            Item::Terminator(terminator) => {
                func.blocks.push(BlockData { insts, terminator, loc });
                return Ok(());
            }
        }
    }
}
