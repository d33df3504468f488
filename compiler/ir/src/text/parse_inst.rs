//! Instructions and terminators from text.

use super::lex::{Line, Parsed, Token, entity};
use super::names::Word;
use super::parse_image::element;
use crate::dsd::op::DsdOp;
use crate::dsd::{DsrFile, DsrRef, FabricDsd};
use crate::func::{Block, Func, Local};
use crate::inst::{
    ClockOp, FlagOp, InstData, OnControl, Operand, Priority, Terminator, Unblock, VectorInst,
    VectorOptions,
};
use crate::program::HostOp;
use crate::scalar::{BinaryOp, Convert, UnaryOp};
use crate::ty::Ty;

/// One line of a block.
pub(super) enum Item {
    Inst(InstData),
    Terminator(Terminator),
}

/// An instruction or a terminator, up to its place. `func` holds the locals declared.
pub(super) fn item(line: &mut Line, func: &Func) -> Parsed<Item> {
    let dsts = destinations(line)?;
    let word = line.word("an instruction")?;
    let (name, ty) = match word.split_once('.') {
        Some((name, suffix)) => (name, Some(suffix)),
        None => (&word[..], None),
    };
    let reader = Reader { func, name, ty };
    match dsts[..] {
        [] => reader.without(line),
        [dst] => reader.with(line, dst).map(Item::Inst),
        [_, _, ..] => {
            reader.no_suffix(line)?;
            if name != "host" {
                return line.error("only host operations have several results");
            }
            let (op, args) = host(line)?;
            Ok(Item::Inst(InstData::Host { op, dsts, args }))
        }
    }
}

/// `v1, v2 =`, or nothing.
fn destinations(line: &mut Line) -> Parsed<Vec<Local>> {
    let is_local = |word: &str| entity::<Local>(word, "v").is_some();
    if !line.peek_word().is_some_and(is_local) {
        return Ok(Vec::new());
    }
    line.list('=', |line| line.entity())
}

/// The mnemonic of a line, its type suffix, and the function's declared locals.
struct Reader<'a> {
    func: &'a Func,
    name: &'a str,
    ty: Option<&'a str>,
}

impl Reader<'_> {
    /// The suffix must be the type of this local, if the local is there.
    fn suffix(&self, line: &Line, local: Local) -> Parsed<()> {
        let declared = self.func.locals.get(local).map(|ty| ty.name());
        match (self.ty, declared) {
            (None, _) => Ok(()),
            (Some(suffix), Some(declared)) if suffix == declared => Ok(()),
            (Some(suffix), Some(declared)) => {
                line.error(format!("the suffix says `{suffix}`, but {local} is {declared}"))
            }
            (Some(_), None) => line.error(format!("there is no local {local}")),
        }
    }

    fn no_suffix(&self, line: &Line) -> Parsed<()> {
        match self.ty {
            None => Ok(()),
            Some(_) => line.error(format!("`{}` takes no type", self.name)),
        }
    }

    fn unknown<T>(&self, line: &Line) -> Parsed<T> {
        line.error(format!("there is no instruction `{}` of this form", self.name))
    }

    /// Without a result.
    fn without(&self, line: &mut Line) -> Parsed<Item> {
        if let Some(terminator) = self.terminator(line)? {
            return Ok(Item::Terminator(terminator));
        }
        let inst = match self.name {
            "store" => {
                let (addr, offset) = address(line, |line| line.entity())?;
                line.sign(',')?;
                let src = line.entity()?;
                self.suffix(line, src)?;
                return Ok(Item::Inst(InstData::Store { addr, offset, src }));
            }
            "fill_memory" => {
                let dst = bracketed(line)?;
                line.sign(',')?;
                let value = line.entity()?;
                self.suffix(line, value)?;
                line.sign(',')?;
                return Ok(Item::Inst(InstData::FillMemory { dst, value, count: line.int()? }));
            }
            "copy_memory" => {
                let dst = bracketed(line)?;
                line.sign(',')?;
                let src = bracketed(line)?;
                line.sign(',')?;
                InstData::CopyMemory { dst, src, bytes: line.int()? }
            }
            "call" | "call_indirect" => call(line, self.name, None)?,
            "vector" => vector(line, None)?,
            "load_dsr" => load_dsr(line)?,
            "fifo_length" => {
                let fifo = line.entity()?;
                let write_side = line.eat("write");
                if !write_side {
                    line.keyword("read")?;
                }
                line.sign(',')?;
                InstData::SetFifoLength { fifo, write_side, length: line.entity()? }
            }
            "set_config" => {
                let (addr, src) = pair(line)?;
                InstData::SetConfig { addr, src }
            }
            "set_dsr" => {
                let (dsr, field) = (dsr(line)?, line.member()?);
                line.sign(',')?;
                InstData::SetDsr { dsr, field, value: line.entity()? }
            }
            "set_random" => InstData::SetRandom { id: line.entity()? },
            "clock" => InstData::Clock { op: line.member::<ClockOp>()?, dst: None },
            "assert" => {
                let cond = line.entity()?;
                line.sign(',')?;
                InstData::Assert { cond, message: line.text()? }
            }
            "bound" => {
                let (what, index) = (line.member()?, line.entity()?);
                line.sign(',')?;
                InstData::Bound { index, len: line.entity()?, what }
            }
            "host" => {
                let (op, args) = host(line)?;
                InstData::Host { op, dsts: Vec::new(), args }
            }
            name => match FlagOp::from_word(name) {
                Some(op) => InstData::Flag { op, id: line.entity()? },
                None => return self.unknown(line),
            },
        };
        self.no_suffix(line)?;
        Ok(Item::Inst(inst))
    }

    fn terminator(&self, line: &mut Line) -> Parsed<Option<Terminator>> {
        let terminator = match self.name {
            "jump" => Terminator::Jump(line.entity()?),
            "branch" => {
                let cond = line.entity()?;
                line.sign(',')?;
                let then = line.entity()?;
                line.sign(',')?;
                Terminator::Branch { cond, then, otherwise: line.entity()? }
            }
            "switch" => return self.switch(line).map(Some),
            "return" if line.peek_word().is_some() => Terminator::Return(Some(line.entity()?)),
            "return" => Terminator::Return(None),
            "unreachable" => Terminator::Unreachable,
            _other => return Ok(None),
        };
        self.no_suffix(line)?;
        Ok(Some(terminator))
    }

    fn switch(&self, line: &mut Line) -> Parsed<Terminator> {
        let value = line.entity()?;
        self.suffix(line, value)?;
        line.sign(',')?;
        line.sign('[')?;
        let cases = line.list(']', |line| {
            let case = line.bits()?;
            line.sign(':')?;
            Ok((case, line.entity::<Block>()?))
        })?;
        line.sign(',')?;
        Ok(Terminator::Switch { value, cases, otherwise: line.entity()? })
    }

    /// With one result.
    fn with(&self, line: &mut Line, dst: Local) -> Parsed<InstData> {
        if let Some(inst) = self.scalar(line, dst)? {
            return Ok(inst);
        }
        self.no_suffix(line)?;
        Ok(match self.name {
            "address" => symbol_address(line, dst)?,
            "call" | "call_indirect" => call(line, self.name, Some(dst))?,
            "vector" => vector(line, Some(dst))?,
            "mem1d" => {
                let (base, extent) = pair(line)?;
                line.sign(',')?;
                let stride = line.entity()?;
                InstData::MakeMem1d { dst, base, extent, stride, indexed: line.eat("indexed") }
            }
            "mem4d" => {
                let base = line.entity()?;
                line.sign(',')?;
                let shape = line.entity()?;
                InstData::MakeMem4d { dst, base, shape, indexed: line.eat("indexed") }
            }
            "fabin" => fabric(line, dst, true)?,
            "fabout" => fabric(line, dst, false)?,
            "move_base" => {
                let (src, delta) = pair(line)?;
                InstData::DsdMoveBase { dst, src, delta }
            }
            "set_base" => {
                let (src, base) = pair(line)?;
                InstData::DsdSetBase { dst, src, base }
            }
            "set_extent" => {
                let (src, extent) = pair(line)?;
                InstData::DsdSetExtent { dst, src, extent }
            }
            "set_stride" => {
                let (src, stride) = pair(line)?;
                InstData::DsdSetStride { dst, src, stride }
            }
            "random" => InstData::Random { dst },
            "get_config" => InstData::GetConfig { dst, addr: line.entity()? },
            "queues" => InstData::Queues { dst, state: line.member()? },
            "ring" => {
                let (base, extent) = pair(line)?;
                line.sign(',')?;
                InstData::MakeRing { dst, base, extent, wrap: line.entity()? }
            }
            "clock" => InstData::Clock { op: line.member::<ClockOp>()?, dst: Some(dst) },
            "host" => {
                let (op, args) = host(line)?;
                InstData::Host { op, dsts: vec![dst], args }
            }
            _other => return self.unknown(line),
        })
    }

    /// Those with a type suffix.
    fn scalar(&self, line: &mut Line, dst: Local) -> Parsed<Option<InstData>> {
        let inst = match self.name {
            "const" => {
                self.suffix(line, dst)?;
                InstData::Const { dst, bits: constant(line, self.func.locals.get(dst))? }
            }
            "slot" => {
                self.suffix(line, dst)?;
                InstData::Slot { dst, slot: line.entity()? }
            }
            "copy" => {
                self.suffix(line, dst)?;
                InstData::Copy { dst, src: line.entity()? }
            }
            "load" => {
                self.suffix(line, dst)?;
                let (addr, offset) = address(line, |line| line.entity())?;
                InstData::Load { dst, addr, offset }
            }
            name => return self.operation(line, name, dst),
        };
        Ok(Some(inst))
    }

    fn operation(&self, line: &mut Line, name: &str, dst: Local) -> Parsed<Option<InstData>> {
        if let Some(op) = UnaryOp::from_word(name) {
            let src = line.entity()?;
            self.suffix(line, src)?;
            return Ok(Some(InstData::Unary { dst, op, src }));
        }
        if let Some(op) = BinaryOp::from_word(name) {
            let (lhs, rhs) = pair(line)?;
            self.suffix(line, lhs)?;
            return Ok(Some(InstData::Binary { dst, op, lhs, rhs }));
        }
        if let Some(kind) = Convert::from_word(name) {
            self.suffix(line, dst)?;
            return Ok(Some(InstData::Convert { dst, kind, src: line.entity()? }));
        }
        Ok(None)
    }
}

/// A constant of a type: signed values are masked to it.
fn constant(line: &mut Line, ty: Option<&Ty>) -> Parsed<u64> {
    line.value("a constant of the type", |word| {
        if !word.starts_with('-') {
            return match word.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok(),
                None => word.parse().ok(),
            };
        }
        let value: i64 = word.parse().ok()?;
        let ty = *ty?;
        let fits = value >= i64::MIN >> (64 - ty.bits());
        fits.then(|| ty.mask(value.cast_unsigned()))
    })
}

fn pair(line: &mut Line) -> Parsed<(Local, Local)> {
    let first = line.entity()?;
    line.sign(',')?;
    Ok((first, line.entity()?))
}

fn bracketed(line: &mut Line) -> Parsed<Local> {
    line.sign('[')?;
    let local = line.entity()?;
    line.sign(']')?;
    Ok(local)
}

/// `[base]`, `[base+8]` or `[base-8]`.
fn address<T>(line: &mut Line, base: impl FnOnce(&mut Line) -> Parsed<T>) -> Parsed<(T, i32)> {
    line.sign('[')?;
    let base = base(line)?;
    let offset = match line.peek() {
        Some(Token::Sign('+')) => {
            line.sign('+')?;
            line.int()?
        }
        Some(Token::Word(_)) => line.int()?,
        Some(Token::Sign(_) | Token::Text(_)) | None => 0,
    };
    line.sign(']')?;
    Ok((base, offset))
}

fn symbol_address(line: &mut Line, dst: Local) -> Parsed<InstData> {
    let (word, offset) = address(line, |line| line.word("a global, stack slot or function"))?;
    if let Some(global) = entity(&word, "g") {
        return Ok(InstData::GlobalAddress { dst, global, offset });
    }
    if let Some(slot) = entity(&word, "ss") {
        return Ok(InstData::StackAddress { dst, slot, offset });
    }
    match entity(&word, "fn") {
        Some(func) if offset == 0 => Ok(InstData::FuncAddress { dst, func }),
        Some(_) => line.error("a function's address has no offset"),
        None => line.error(format!("`{word}` has no address")),
    }
}

fn call(line: &mut Line, name: &str, dst: Option<Local>) -> Parsed<InstData> {
    if name == "call" {
        let func = line.entity()?;
        line.sign('(')?;
        return Ok(InstData::Call { dst, func, args: line.list(')', |line| line.entity())? });
    }
    let callee = line.entity()?;
    let sig = line.entity()?;
    line.sign('(')?;
    Ok(InstData::CallIndirect { dst, callee, sig, args: line.list(')', |line| line.entity())? })
}

fn fabric(line: &mut Line, dst: Local, input: bool) -> Parsed<InstData> {
    let queue = line.field("queue")?;
    let named = line.peek_word().is_some_and(|word| word.starts_with("color"));
    let color = if named { Some(line.color()?) } else { None };
    let control = line.eat("control");
    let indexed = line.eat("indexed");
    let advance_switch = line.eat("advance_switch");
    let (packed, transform) = (line.eat("packed"), line.eat("transform"));
    let priority = priority(line)?;
    let zero = if line.eat("zero") { Some(line.assigned()?) } else { None };
    line.keyword("extent")?;
    let desc = FabricDsd {
        input,
        queue,
        color,
        control,
        indexed,
        advance_switch,
        packed,
        transform,
        priority,
        zero,
    };
    Ok(InstData::MakeFabric { dst, desc, extent: line.entity()? })
}

/// A register: file and number.
pub(super) fn dsr(line: &mut Line) -> Parsed<DsrRef> {
    let file = |word: &str| DsrFile::ALL.into_iter().find(|file| file.name() == word);
    let file = line.value("a register file", file)?;
    Ok(DsrRef { file, index: line.int()? })
}

fn operand(line: &mut Line) -> Parsed<Operand> {
    let Some(word) = line.peek_word() else { return line.expected("an operand") };
    if word.starts_with("fifo") {
        return Ok(Operand::Fifo(line.entity()?));
    }
    if line.eat("memory") {
        return Ok(Operand::Memory(line.entity()?));
    }
    if line.eat("fabric") {
        return Ok(Operand::Fabric(line.entity()?));
    }
    if line.eat("scalar") {
        return Ok(Operand::Scalar(line.entity()?));
    }
    if line.eat("pointer") {
        return Ok(Operand::Pointer(line.entity()?));
    }
    dsr(line).map(Operand::Dsr)
}

fn vector(line: &mut Line, result: Option<Local>) -> Parsed<InstData> {
    let op = line.value("a vector operation", DsdOp::from_text)?;
    let dest = operand(line)?;
    let mut sources = Vec::new();
    while line.eat_sign(',') {
        sources.push(operand(line)?);
    }
    let options = options(line)?;
    Ok(InstData::Vector(Box::new(VectorInst { op, dest, sources, options, result })))
}

fn load_dsr(line: &mut Line) -> Parsed<InstData> {
    let dsr = dsr(line)?;
    line.sign(',')?;
    let dsd = line.entity()?;
    let save_address = line.eat("save_address");
    let single_step = line.eat("single_step");
    let xdsr = xdsr(line)?;
    let options = options(line)?;
    Ok(InstData::LoadDsr { dsr, dsd, options, save_address, single_step, xdsr })
}

/// The extended register of a load.
pub(super) fn xdsr(line: &mut Line) -> Parsed<Option<u8>> {
    if line.eat("xdsr") { line.assigned().map(Some) } else { Ok(None) }
}

/// `priority=high`, if it is there.
pub(super) fn priority(line: &mut Line) -> Parsed<Option<Priority>> {
    if !line.eat("priority") {
        return Ok(None);
    }
    line.sign('=')?;
    line.member().map(Some)
}

/// Options in the order they are printed; those that are not there have their default.
pub(super) fn options(line: &mut Line) -> Parsed<VectorOptions> {
    let mut options = VectorOptions { asynchronous: line.eat("async"), ..Default::default() };
    if line.eat("activate") {
        options.activate = Some(line.assigned()?);
    }
    if line.eat("unblock") {
        line.sign('=')?;
        options.unblock = Some(unblock(line)?);
    }
    if line.eat("microthread") {
        options.microthread = Some(line.assigned()?);
    }
    options.priority = priority(line)?;
    if line.eat("index") {
        line.sign('=')?;
        options.index = Some(line.entity()?);
    }
    if line.eat("on_control") {
        line.sign('=')?;
        options.on_control = on_control(line)?;
    }
    Ok(options)
}

fn on_control(line: &mut Line) -> Parsed<OnControl> {
    if line.eat("terminate") {
        return Ok(OnControl::Terminate);
    }
    if line.eat("count") {
        return Ok(OnControl::Count);
    }
    if line.eat("activate") {
        return Ok(OnControl::Activate(line.int()?));
    }
    line.keyword("unblock")?;
    Ok(OnControl::Unblock(unblock(line)?))
}

fn unblock(line: &mut Line) -> Parsed<Unblock> {
    if line.eat("task") {
        return Ok(Unblock::Task(line.int()?));
    }
    line.keyword("channel")?;
    Ok(Unblock::Channel(line.int()?))
}

/// A host operation and its arguments.
fn host(line: &mut Line) -> Parsed<(HostOp, Vec<Local>)> {
    let word = line.word("a host operation")?;
    let op = host_op(line, &word)?;
    line.sign('(')?;
    Ok((op, line.list(')', |line| line.entity())?))
}

fn host_op(line: &mut Line, word: &str) -> Parsed<HostOp> {
    Ok(match word {
        "input" => HostOp::Input { name: line.text()?, ty: element(line)? },
        "has_input" => HostOp::HasInput { name: line.text()? },
        "output" => HostOp::Output { name: line.text()?, ty: element(line)? },
        "setting" => HostOp::Setting { name: line.text()?, ty: element(line)? },
        "has_setting" => HostOp::HasSetting { name: line.text()? },
        "copy_in" => HostOp::CopyIn { export: line.int()?, ty: line.ty()? },
        "copy_out" => HostOp::CopyOut { export: line.int()?, ty: line.ty()? },
        "launch" => HostOp::Launch { export: line.int()? },
        "stream_in" => HostOp::StreamIn { color: line.color()?, ty: line.ty()? },
        "stream_out" => HostOp::StreamOut { color: line.color()?, ty: line.ty()? },
        "stream_out_rows" => HostOp::StreamOutRows { color: line.color()?, ty: line.ty()? },
        "wait" => HostOp::Wait,
        "alloc" => HostOp::Alloc,
        "print" | "expect" => {
            line.sign('[')?;
            let pieces = line.list(']', |line| line.text())?;
            line.sign('[')?;
            let args = line.list(']', |line| line.member())?;
            match word {
                "print" => HostOp::Print { pieces, args },
                _expect => HostOp::Expect { pieces, args },
            }
        }
        "cycles" => HostOp::Cycles,
        "clock_rate" => HostOp::ClockRate,
        "assumed_share" => HostOp::AssumedShare,
        "wavelets" => HostOp::Wavelets,
        "math" => HostOp::Math(line.member()?),
        other => return line.error(format!("there is no host operation `{other}`")),
    })
}
