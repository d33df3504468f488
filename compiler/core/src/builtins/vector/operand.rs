//! Operands of vector operations: what they are, and where they may stand.

use dflow_ir::dsd::op::{Form, OpRow, OpShape};
use dflow_ir::dsd::{DsrFile, DsrRef, FabricDsd};
use dflow_ir::ty::Ty;
use dflow_syntax::ast::ExprId;
use dflow_syntax::{Diagnostic, Span, codes};

use super::scalar::{float_of, scalar_as};
use crate::builtins::dsd::constant;
use crate::sema::types::{Type, TypeId};
use crate::sema::value::{Data, DsdValue, Value};
use crate::sema::{Operand, R, Sema};
use crate::typed;

/// An operand as it was given.
pub(super) struct Given {
    pub(super) what: What,
    pub(super) span: Span,
}

/// What an operand is.
pub(super) enum What {
    /// A descriptor of a vector in memory.
    Memory(Operand),
    /// A fabric descriptor.
    Fabric {
        input: bool,
        dsd: Operand,
    },
    Dsr(DsrRef),
    Fifo(u32),
    Pointer {
        pointer: Operand,
        constant: bool,
        pointee: TypeId,
    },
    Scalar(Operand),
}

/// Evaluates an operand; `hint` is the type of scalars here.
pub(super) fn read(sema: &mut Sema<'_, '_>, arg: ExprId, hint: Option<TypeId>) -> R<Given> {
    let span = sema.expr_span(arg);
    let operand = sema.expr(arg, hint)?;
    let ty = sema.operand_type(&operand);
    note_queue(sema, &operand, span);
    let what = match *sema.types.get(ty) {
        Type::Mem1dDsd | Type::Mem4dDsd => What::Memory(operand),
        Type::FabinDsd => What::Fabric { input: true, dsd: operand },
        Type::FaboutDsd => What::Fabric { input: false, dsd: operand },
        Type::Pointer { constant, pointee, .. } => {
            What::Pointer { pointer: operand, constant, pointee }
        }
        Type::DsrDest
        | Type::DsrSrc0
        | Type::DsrSrc1
        | Type::DsrFifoDest
        | Type::DsrFifoSrc1
        | Type::Fifo => match sema.need_const(operand, span)?.data {
            Data::Dsr(dsr) => register(sema, dsr, ty, span)?,
            Data::Fifo(fifo) => What::Fifo(fifo),
            _ => return sema.undefined(span),
        },
        _ if sema.types.is_int(ty) || sema.types.is_float(ty) => What::Scalar(operand),
        _ => return no_operand(sema, ty, span),
    };
    Ok(Given { what, span })
}

/// Notes that the queue of a descriptor is used, if it is known.
pub(in crate::builtins) fn note_queue(sema: &mut Sema<'_, '_>, operand: &Operand, span: Span) {
    if let (Some(desc), Some(program)) = (known_fabric(operand), &mut sema.program) {
        program.used_queues.push((desc.input, desc.queue, desc.color, span));
    }
}

/// A register, or the FIFO that was allocated in it.
fn register(sema: &mut Sema<'_, '_>, dsr: DsrRef, ty: TypeId, span: Span) -> R<What> {
    let common = sema.types.common;
    let known = |sema: &Sema<'_, '_>| {
        sema.program.as_ref().and_then(|it| it.fifo_registers.get(&dsr).copied())
    };
    let mut fifo = known(sema);
    if fifo.is_none() && (ty == common.dsr_fifo_dest || ty == common.dsr_fifo_src1) {
        sema.allocate_fifos()?;
        fifo = known(sema);
    }
    match fifo {
        Some(fifo) => Ok(What::Fifo(fifo)),
        None if ty == common.dsr_fifo_dest || ty == common.dsr_fifo_src1 => {
            let message = "no FIFO is allocated in this register";
            Err(sema.report(
                Diagnostic::new(codes::INVALID_OPERANDS, message, span)
                    .label("this register")
                    .help("allocate one: `@allocate_fifo(buffer, .{ .dest = …, .src = …, .xdsr = … })`"),
            ))
        }
        None => Ok(What::Dsr(dsr)),
    }
}

fn no_operand<T>(sema: &mut Sema<'_, '_>, ty: TypeId, span: Span) -> R<T> {
    let message =
        format!("a value of type `{}` is no operand of a vector operation", sema.type_name(ty));
    let mut diagnostic =
        Diagnostic::new(codes::INVALID_OPERANDS, message, span).label("given here");
    if let Type::Array { .. } = sema.types.get(ty) {
        diagnostic = diagnostic.help(
            "describe the array: `@get_dsd(mem1d_dsd, .{ .tensor_access = |i|{n} -> array[i] })`",
        );
    }
    Err(sema.report(diagnostic))
}

impl Given {
    /// Whether it can stand where a form has a letter.
    fn fits(&self, letter: char) -> bool {
        match self.what {
            What::Memory(_) | What::Fabric { .. } | What::Dsr(_) | What::Fifo(_) => {
                matches!(letter, 'd' | 's')
            }
            What::Pointer { .. } => letter == 'p',
            What::Scalar(_) => matches!(letter, 'k' | 'i'),
        }
    }

    /// Whether words of the fabric come in through it, or may through a register.
    pub(super) fn may_receive(&self) -> bool {
        match self.what {
            What::Fabric { input, .. } => input,
            What::Dsr(dsr) => dsr.file != DsrFile::Dest,
            What::Fifo(_) | What::Memory(_) | What::Pointer { .. } | What::Scalar(_) => false,
        }
    }

    /// Whether it has elements.
    pub(super) fn is_vector(&self) -> bool {
        self.fits('s')
    }

    /// Which vector source it clears, as a known destination: the first (0) or the second (1).
    pub(super) fn clears(&self) -> Option<u8> {
        self.fabric(false)?.zero
    }

    /// The descriptor of a fabric input or output, if it is known.
    fn fabric(&self, input: bool) -> Option<FabricDsd> {
        match &self.what {
            What::Fabric { input: is, dsd } if *is == input => known_fabric(dsd),
            _ => None,
        }
    }

    fn name(&self) -> &'static str {
        match self.what {
            What::Memory(_) | What::Fabric { .. } | What::Dsr(_) | What::Fifo(_) => "vector",
            What::Pointer { .. } => "pointer",
            What::Scalar(_) => "scalar",
        }
    }

    /// Whether an operation with this operand can wait, and so run as a microthread.
    pub(super) fn may_wait(&self) -> bool {
        match self.what {
            What::Fabric { .. } | What::Dsr(_) | What::Fifo(_) => true,
            What::Memory(_) | What::Pointer { .. } | What::Scalar(_) => false,
        }
    }

    /// Whether its queue says which microthread does the operation, or a register's may.
    pub(super) fn may_have_queue(&self) -> bool {
        match self.what {
            What::Fabric { .. } | What::Dsr(_) => true,
            What::Fifo(_) | What::Memory(_) | What::Pointer { .. } | What::Scalar(_) => false,
        }
    }
}

/// The form of the row that the operands match.
pub(super) fn form_of(
    sema: &mut Sema<'_, '_>,
    row: &'static OpRow,
    given: &[Given],
    span: Span,
) -> R<Form> {
    let matches = |form: &&Form| {
        form.letters().len() == given.len()
            && form.letters().chars().zip(given).all(|(letter, given)| given.fits(letter))
    };
    if let Some(&form) = row.forms.iter().find(matches) {
        return Ok(form);
    }
    let got: Vec<&str> = given.iter().map(Given::name).collect();
    let forms: Vec<String> = row.forms.iter().map(|form| in_words(*form)).collect();
    Err(sema.report(
        Diagnostic::new(
            codes::INVALID_OPERANDS,
            format!("`@{}` does not take ({})", row.name, got.join(", ")),
            span,
        )
        .label("this operation")
        .help(format!("it takes {}, the destination first", forms.join(" or "))),
    ))
}

pub(super) fn in_words(form: Form) -> String {
    let words: Vec<&str> = form
        .letters()
        .chars()
        .map(|letter| match letter {
            'p' => "pointer",
            'k' | 'i' => "scalar",
            _ => "vector",
        })
        .collect();
    format!("({})", words.join(", "))
}

/// The first operand as the destination of a row.
pub(super) fn destination(
    sema: &mut Sema<'_, '_>,
    row: &'static OpRow,
    given: Given,
) -> R<typed::Operand> {
    let span = given.span;
    match given.what {
        What::Memory(dsd) => {
            constant::check(sema, &dsd, span, "the destination")?;
            sema.scalar_of(dsd, span).map(typed::Operand::Memory)
        }
        What::Fabric { input: false, dsd } => sema.scalar_of(dsd, span).map(typed::Operand::Fabric),
        What::Fabric { input: true, .. } => {
            let message = "a `fabin_dsd` is read from: it cannot be a destination";
            Err(sema.report(
                Diagnostic::new(codes::INVALID_OPERANDS, message, span)
                    .label("the destination")
                    .help("to send, write to a `fabout_dsd`; to receive, the destination in memory comes first"),
            ))
        }
        What::Dsr(dsr @ DsrRef { file: DsrFile::Dest | DsrFile::Src0, .. }) => {
            constant::written(sema, dsr, span);
            Ok(typed::Operand::Dsr(dsr))
        }
        What::Dsr(DsrRef { file: DsrFile::Src1, .. }) => {
            let message = "a `dsr_src1` is a source: destinations are in `dsr_dest` or `dsr_src0`";
            sema.fail(codes::INVALID_OPERANDS, message, span, "the destination")
        }
        What::Fifo(fifo) => {
            check_width(sema, fifo, row.dest, span)?;
            Ok(typed::Operand::Fifo(fifo))
        }
        What::Pointer { pointer, constant, pointee } => {
            check_pointee(sema, row, constant, pointee, span)?;
            sema.scalar_of(pointer, span).map(typed::Operand::Pointer)
        }
        What::Scalar(_) => {
            let message = "a number cannot be a destination";
            sema.fail(codes::INVALID_OPERANDS, message, span, "the destination")
        }
    }
}

/// A later operand as a source of an element type.
pub(super) fn source(
    sema: &mut Sema<'_, '_>,
    row: &'static OpRow,
    given: Given,
    ty: Ty,
) -> R<typed::Operand> {
    let span = given.span;
    match given.what {
        What::Memory(dsd) => sema.scalar_of(dsd, span).map(typed::Operand::Memory),
        What::Fabric { input: true, dsd } => sema.scalar_of(dsd, span).map(typed::Operand::Fabric),
        What::Fabric { input: false, .. } => {
            let message = "a `fabout_dsd` is written to: it cannot be a source";
            Err(sema.report(
                Diagnostic::new(codes::INVALID_OPERANDS, message, span).label("a source").help(
                    "to receive, read from a `fabin_dsd`; to send, the `fabout_dsd` comes first",
                ),
            ))
        }
        What::Dsr(dsr @ DsrRef { file: DsrFile::Src0 | DsrFile::Src1, .. }) => {
            Ok(typed::Operand::Dsr(dsr))
        }
        What::Dsr(DsrRef { file: DsrFile::Dest, .. }) => {
            let message = "a `dsr_dest` is a destination: sources are in `dsr_src0` or `dsr_src1`";
            sema.fail(codes::INVALID_OPERANDS, message, span, "a source")
        }
        What::Fifo(fifo) => {
            check_width(sema, fifo, ty, span)?;
            Ok(typed::Operand::Fifo(fifo))
        }
        What::Scalar(operand) => {
            let by_bits = row.shape == OpShape::Move;
            scalar_as(sema, operand, ty, by_bits, span).map(typed::Operand::Scalar)
        }
        What::Pointer { .. } => {
            let message = "a pointer cannot be a source: read the element with `.*`";
            sema.fail(codes::INVALID_OPERANDS, message, span, "a source")
        }
    }
}

/// A FIFO keeps elements of one width.
fn check_width(sema: &mut Sema<'_, '_>, fifo: u32, ty: Ty, span: Span) -> R<()> {
    let fifos = sema.program.as_ref().map(|program| &program.typed.fifos);
    let element = fifos.and_then(|fifos| fifos.get(fifo as usize)).map(|fifo| fifo.element);
    let Some(bits) = element.map(|bytes| u32::from(bytes) * 8).filter(|&bits| bits != ty.bits())
    else {
        return Ok(());
    };
    let message = format!("the FIFO has elements of {bits} bits, the operation of {}", ty.bits());
    sema.fail(codes::INVALID_OPERANDS, message, span, "this FIFO")
}

fn check_pointee(
    sema: &mut Sema<'_, '_>,
    row: &'static OpRow,
    constant: bool,
    pointee: TypeId,
    span: Span,
) -> R<()> {
    if constant {
        let message = "the result is written through a pointer to constants";
        return sema.fail(codes::NOT_ASSIGNABLE, message, span, "the destination");
    }
    let machine = match sema.types.get(pointee) {
        Type::Int { bits: 16, .. } => Some(Ty::I16),
        Type::Int { bits: 32, .. } => Some(Ty::I32),
        Type::Float(float) => Some(float.ty()),
        _ => None,
    };
    let by_bits = row.shape == OpShape::Move
        && !row.dest.is_float()
        && pointee == float_of(sema, row.dest.bits());
    if machine == Some(row.dest) || by_bits {
        return Ok(());
    }
    let (name, want) = (sema.type_name(pointee), element_name(row.dest));
    let message = format!("`@{}` writes {want}, the pointer is to `{name}`", row.name);
    sema.fail(codes::TYPE_MISMATCH, message, span, "the destination")
}

/// An element type as the user names it.
pub(super) fn element_name(ty: Ty) -> &'static str {
    match ty {
        Ty::I8 => "`i8` or `u8`",
        Ty::I16 => "`i16` or `u16`",
        Ty::I32 => "`i32` or `u32`",
        Ty::I64 => "`i64` or `u64`",
        Ty::F16 => "`f16`",
        Ty::Bf16 => "`bf16`",
        Ty::F32 => "`f32`",
        Ty::F64 => "`f64`",
    }
}

/// Rules about several sources: one FIFO, not as the first of two; as many fabric inputs as the
/// target has ports for them.
pub(super) fn check_sources(sema: &mut Sema<'_, '_>, sources: &[Given], span: Span) -> R<()> {
    let is_fifo = |given: &Given| matches!(given.what, What::Fifo(_));
    let vectors = sources.iter().filter(|given| given.fits('s')).count();
    if vectors > 1 && sources.first().is_some_and(is_fifo) {
        let message = "a FIFO cannot be the first of two source vectors";
        return sema.fail(codes::INVALID_OPERANDS, message, sources[0].span, "this FIFO");
    }
    let inputs = sources.iter().filter(|given| matches!(given.what, What::Fabric { .. })).count();
    check_ports(sema, inputs, span)?;
    let known = sources.iter().filter_map(|given| Some((given.span, given.fabric(true)?)));
    match known.collect::<Vec<(Span, FabricDsd)>>()[..] {
        [first, second] => check_queues(sema, first, second),
        _ => Ok(()),
    }
}

/// As many fabric inputs as the target has ports for them.
pub(in crate::builtins) fn check_ports(
    sema: &mut Sema<'_, '_>,
    inputs: usize,
    span: Span,
) -> R<()> {
    if inputs <= usize::from(sema.target.fabric_inputs) {
        return Ok(());
    }
    let message = format!(
        "{} takes {} fabric input per operation, {inputs} are given",
        sema.target.id.name(),
        sema.target.fabric_inputs
    );
    Err(sema.report(
        Diagnostic::new(codes::WRONG_TARGET, message, span)
            .label("this operation")
            .help("receive one of them into memory first"),
    ))
}

/// An element has one word of a queue: two sources do not share one.
pub(in crate::builtins) fn check_queues(
    sema: &mut Sema<'_, '_>,
    (first, one): (Span, FabricDsd),
    (second, other): (Span, FabricDsd),
) -> R<()> {
    if (one.queue, one.color) != (other.queue, other.color) {
        return Ok(());
    }
    let message = format!("both sources read input queue {}", other.queue);
    Err(sema.report(
        Diagnostic::new(codes::INVALID_OPERANDS, message, second)
            .label("an element takes one word of a queue")
            .secondary(first, "the first source")
            .help("receive one of them into memory first, or from a queue of its own"),
    ))
}

/// What is known of a fabric descriptor.
fn known_fabric(operand: &Operand) -> Option<FabricDsd> {
    let Operand::Const(Value { data: Data::Dsd(dsd), .. }) = operand else { return None };
    if let DsdValue::Fabric { desc, .. } = &**dsd { Some(*desc) } else { None }
}

/// Whether a known operand was never given a value.
pub(super) fn check_defined(sema: &mut Sema<'_, '_>, given: &Given) -> R<()> {
    match &given.what {
        What::Memory(operand)
        | What::Fabric { dsd: operand, .. }
        | What::Pointer { pointer: operand, .. }
        | What::Scalar(operand) => match operand {
            Operand::Const(Value { data: Data::Undef, .. }) => sema.undefined(given.span),
            _ => Ok(()),
        },
        What::Dsr(_) | What::Fifo(_) => Ok(()),
    }
}
