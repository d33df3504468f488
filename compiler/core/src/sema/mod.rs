//! Analysis: one walk over bodies that evaluates what is known at compile time and emits typed
//! code for the rest.
//!
//! Comptime evaluation and checking are one thing here, as a body mixes both in every
//! expression; two walks would be two definitions of the language. A [`Frame`] says whether
//! run-time code may be emitted; an [`Operand`] says on which side a value is.
//!
//! Invariants: analysis is lazy (untaken comptime branches and unreached functions are never
//! looked at); nothing is emitted in a comptime frame; a failed part is reported once and poisons
//! what it touches; values that differ between PEs decide nothing unless a guard is recorded.

pub(crate) mod address;
mod advice;
mod block;
mod call;
mod coerce;
pub(crate) mod control;
mod counting;
mod expr;
mod func;
mod index;
mod jump;
mod known;
mod literal;
mod load;
mod loops;
mod materialize;
pub(crate) mod module;
pub(crate) mod ops;
mod packed;
pub(crate) mod peek;
pub(crate) mod place;
pub(crate) mod program;
mod store;
mod symbols;
mod type_expr;
pub(crate) mod types;
mod unroll;
pub(crate) mod value;
mod vars;

use std::rc::Rc;

use dflow_ir::program::Profile;
use dflow_ir::target::Target;
use dflow_syntax::ast::ExprId;
use dflow_syntax::{Code, Diagnostic, FileId, Frame as Step, Reported, Span, Symbol, codes};

use crate::elaborate::LayoutState;
use crate::load::Files;
use crate::resolve::ResolvedFile;
use crate::session::Session;
use crate::typed::{Expr, LabelIdx, LocalIdx};
use address::Address;
use control::Wish;
use module::Module;
use program::ProgramCx;
use rustc_hash::FxHashMap;
use types::{TypeId, TypePool};
use value::{Data, ModuleId, Pointer, Scalar, Value};
use vars::{Behind, Vars};

/// A result whose failure the user knows of.
pub(crate) type R<T> = Result<T, Reported>;

/// The analysis of one compilation.
pub(crate) struct Sema<'a, 'w> {
    pub(crate) cx: &'a mut Session<'w>,
    pub(crate) files: Files,
    pub(crate) types: TypePool,
    pub(crate) target: &'static Target,
    pub(crate) modules: Vec<Module>,
    pub(crate) layout: LayoutState,
    /// The tile, host or test program being built.
    pub(crate) program: Option<ProgramCx>,
    pub(crate) frames: Vec<Frame>,
    /// How we got here, outermost first.
    pub(crate) trace: Vec<TraceStep>,
    /// Comptime steps taken, and how many there may be.
    pub(crate) steps: u64,
    pub(crate) step_limit: u64,
    /// The step at which the caller is asked next whether to go on.
    next_look: u64,
    /// Params of the layout that the caller gave as text.
    pub(crate) given: Vec<crate::params::Given>,
    /// What `@as` or an operator makes of the branches of the expression about to be read.
    pub(crate) wanted: Option<TypeId>,
    /// Bodies in which code is analyzed for its type and thrown away, one within the other.
    pub(crate) peeking: u32,
    /// What is read now is kept, for what comes after it in the statement.
    pub(crate) early: bool,
    /// Pointer types around the type being read: there a struct may name itself.
    pub(crate) behind_pointer: u32,
    /// Declarations being evaluated, outermost first, and who needed them.
    pub(crate) busy: Vec<(ModuleId, u32, Span)>,
    /// What stands for structs that name themselves, by the place of their declaration.
    pub(crate) pending: FxHashMap<(u32, u32, u32), TypeId>,
    /// What became of these.
    pub(crate) completed: FxHashMap<(u32, u32, u32), TypeId>,
    /// Builtins by name, as far as they were asked for.
    pub(crate) builtins: FxHashMap<Symbol, crate::builtins::Builtin>,
    /// Configurations of colors that were read before.
    pub(crate) configs: known::Known<dflow_ir::mesh::ColorConfig>,
}

/// Steps between two questions whether to go on: a fraction of a millisecond.
const STEPS_PER_LOOK: u64 = 1 << 10;

/// Steps that a report shows.
pub(crate) const MAX_FRAMES: usize = 8;

/// A step of the way to what is analyzed, kept cheap: spelled out only in reports.
#[derive(Clone, Debug)]
pub(crate) enum TraceStep {
    Call { name: Symbol, span: Span },
    Instance { file: FileId, span: Span, pe: Option<(u16, u16)> },
    Loop { slot: u32, value: i128, span: Span },
}

impl TraceStep {
    pub(crate) fn span(&self) -> Span {
        match self {
            TraceStep::Call { span, .. }
            | TraceStep::Instance { span, .. }
            | TraceStep::Loop { span, .. } => *span,
        }
    }
}

/// One body under analysis.
pub(crate) struct Frame {
    pub(crate) module: ModuleId,
    pub(crate) file: Rc<ResolvedFile>,
    pub(crate) slots: Vec<Cell>,
    /// What is known of comptime variables among them.
    pub(crate) vars: Vars,
    /// Types of operands that were looked ahead at.
    pub(crate) looks: peek::Looks,
    /// Everything must be known; nothing is emitted.
    pub(crate) comptime: bool,
    /// What the body is.
    pub(crate) kind: BodyKind,
    /// Declared result type, if there is one.
    pub(crate) ret: Option<TypeId>,
    pub(crate) labels: Vec<Label>,
    /// Run-time branches and loops open within this frame.
    pub(crate) depth: u32,
    /// Slots of variables declared as `comptime_struct`.
    pub(crate) any_struct: Vec<u32>,
    /// Where constants with an alignment are, by slot.
    pub(crate) homes: Vec<(u32, Pointer)>,
}

/// What a frame runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BodyKind {
    /// The layout block, and functions called from it.
    Layout,
    /// A top-level comptime block of a tile or module, and functions called from it.
    TopLevel,
    /// An initializer, type or any other comptime expression.
    Value,
    /// Code that the PE (or host) runs; aggregates return through this address.
    Code { result: Option<LocalIdx> },
    /// An inline function inside such code.
    Inline(Inlined),
}

/// Where an inline function's early returns go.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Inlined {
    /// Block that is left, once one early return needs it.
    pub(crate) label: Option<LabelIdx>,
    /// Result of early returns.
    pub(crate) result: Option<ResultPlace>,
}

/// A place that several ends of a construct write their value to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ResultPlace {
    pub(crate) local: LocalIdx,
    pub(crate) ty: TypeId,
}

/// A local variable or constant.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    Empty,
    /// A comptime-known constant.
    Const(Value),
    /// A comptime variable.
    Var(Value),
    /// A run-time scalar.
    Scalar {
        local: LocalIdx,
        ty: TypeId,
        mutable: bool,
    },
    /// Something in memory.
    Memory {
        address: Address,
        ty: TypeId,
        mutable: bool,
    },
    /// An induction variable of a tensor access: its number.
    Induction(u32),
    /// Its declaration has failed.
    Failed(Reported),
}

/// A loop or labeled block that can be left.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    pub(crate) name: Option<Symbol>,
    pub(crate) is_loop: bool,
    /// Run-time label of `break`, once needed (always there for run-time loops).
    pub(crate) on_break: Option<LabelIdx>,
    /// Run-time label of `continue`: a loop's own, or a block around an unrolled iteration.
    pub(crate) on_continue: Option<LabelIdx>,
    /// Whether `on_continue` is a loop (`continue`) or a block (`break`).
    pub(crate) loop_continue: bool,
    pub(crate) result: Option<ResultPlace>,
    pub(crate) wish: Wish,
    /// Values that breaks give, each where the marker is set to its number: see [`jump`].
    pub(crate) given: Vec<(Operand, Span)>,
    pub(crate) marker: Option<LocalIdx>,
    /// What run-time jumps out of it skip, and those to the next round.
    pub(crate) behind_break: Behind,
    pub(crate) behind_continue: Behind,
    /// Run-time depth of the construct: jumps from the same depth are decided now.
    pub(crate) depth: u32,
}

/// What an expression gave.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    /// Known now.
    Const(Value),
    /// A run-time scalar.
    Scalar { ty: TypeId, expr: Expr },
    /// A run-time aggregate in memory.
    Memory { ty: TypeId, address: Address },
    /// A call without result, and the like.
    Void,
}

/// How a statement ended.
#[derive(Clone, Debug)]
pub(crate) enum Flow {
    Next,
    /// Leaves the label of this index, with a value and where that stands.
    Break(usize, Option<(Operand, Span)>),
    Continue(usize),
    Return(Option<Operand>),
    /// Control left through emitted code.
    Diverges,
}

impl<'a, 'w> Sema<'a, 'w> {
    pub(crate) fn new(cx: &'a mut Session<'w>) -> Sema<'a, 'w> {
        let target = Target::get(cx.options.target);
        let step_limit = cx.options.comptime_steps;
        Sema {
            cx,
            files: Files::default(),
            types: TypePool::new(),
            target,
            modules: Vec::new(),
            layout: LayoutState::default(),
            program: None,
            frames: Vec::new(),
            trace: Vec::new(),
            steps: 0,
            step_limit,
            next_look: 0,
            given: Vec::new(),
            wanted: None,
            peeking: 0,
            early: false,
            behind_pointer: 0,
            busy: Vec::new(),
            pending: FxHashMap::default(),
            completed: FxHashMap::default(),
            builtins: FxHashMap::default(),
            configs: known::Known::default(),
        }
    }

    pub(crate) fn frame(&self) -> &Frame {
        self.frames.last().unwrap_or_else(|| unreachable!("analysis runs in a frame"))
    }

    pub(crate) fn frame_mut(&mut self) -> &mut Frame {
        self.frames.last_mut().unwrap_or_else(|| unreachable!("analysis runs in a frame"))
    }

    /// Whether run-time code may be emitted here.
    pub(crate) fn is_runtime(&self) -> bool {
        !self.frame().comptime
    }

    /// Pointers and numbers of the program being built; the layout counts as a PE.
    pub(crate) fn profile(&self) -> Profile {
        self.program.as_ref().map_or(Profile::Pe, |program| program.typed.profile)
    }

    /// Whether a 16-bit fabric operation written here carries two elements per wavelet when it does
    /// not say: libraries are written for one.
    pub(crate) fn packs_by_default(&self, span: Span) -> bool {
        self.cx.dialect.packing && !self.cx.in_library(span)
    }

    /// The 16-bit float type that a PE computes in.
    pub(crate) fn half(&self) -> TypeId {
        match self.cx.options.half {
            dflow_ir::ty::Ty::Bf16 => self.types.common.bf16,
            _ => self.types.common.f16,
        }
    }

    /// Whether host code is being analyzed.
    pub(crate) fn is_host(&self) -> bool {
        self.profile() == Profile::Host
    }

    pub(crate) fn type_name(&self, ty: TypeId) -> String {
        self.types.name(ty, &self.cx.names)
    }

    pub(crate) fn spell(&self, name: Symbol) -> String {
        self.cx.names.resolve(name).to_owned()
    }

    pub(crate) fn expr_span(&self, expr: ExprId) -> Span {
        self.frame().file.file.expr_span(expr)
    }

    /// Reports an error with the way that led here. What is wrong inside a library because of how
    /// it is used is reported where it is used.
    pub(crate) fn report(&mut self, diagnostic: Diagnostic) -> Reported {
        let user = self.trace.iter().rev().find(|step| !self.cx.in_library(step.span()));
        let diagnostic = match (diagnostic.span(), user) {
            (Some(span), Some(TraceStep::Call { span: call, .. })) if self.cx.in_library(span) => {
                diagnostic.seen_from(*call, "called here")
            }
            _ => diagnostic,
        };
        let place = diagnostic.span();
        // A call that the place is a part of shows nothing more.
        let farther = |step: &&TraceStep| match (*step, place) {
            (TraceStep::Call { span, .. }, Some(place)) => !span.contains(place),
            (TraceStep::Call { .. } | TraceStep::Instance { .. } | TraceStep::Loop { .. }, _) => {
                true
            }
        };
        let steps = self.trace.iter().rev().filter(farther).take(MAX_FRAMES);
        let mut steps: Vec<Step> = steps.map(|step| self.spelled(step)).collect();
        steps.dedup();
        self.cx.emit(diagnostic.frames(steps))
    }

    fn spelled(&self, step: &TraceStep) -> Step {
        match step {
            TraceStep::Call { name, span } => Step::Call { name: self.spell(*name), span: *span },
            TraceStep::Instance { file, span, pe } => {
                let first_pe = pe.map(|(x, y)| (u32::from(x), u32::from(y)));
                Step::Instance { file: *file, span: *span, first_pe, count: 1 }
            }
            TraceStep::Loop { slot, value, span } => {
                let name = self.capture_name(*slot, *span);
                Step::Loop { variable: name, value: value.to_string(), span: *span }
            }
        }
    }

    /// Spelling of a loop's element capture.
    fn capture_name(&self, slot: u32, span: Span) -> String {
        let files = self.frames.iter().rev().map(|frame| &frame.file);
        for file in files.filter(|file| file.file.id == span.file) {
            for at in 0..file.file.stmt_count() {
                let id = dflow_syntax::ast::StmtId(at as u32);
                if let dflow_syntax::ast::Stmt::For { elem, .. } = file.file.stmt(id)
                    && file.file.stmt_span(id) == span
                    && file.stmt_slots[at][0] == slot
                {
                    return elem.name.map_or("_".to_owned(), |name| self.spell(name.name));
                }
            }
        }
        "iteration".to_owned()
    }

    /// Reports an error with a message and a short label.
    pub(crate) fn fail<T>(
        &mut self,
        code: Code,
        message: impl Into<String>,
        span: Span,
        label: &str,
    ) -> R<T> {
        Err(self.report(Diagnostic::new(code, message, span).label(label)))
    }

    /// Counts a step of comptime work; ends loops that do not.
    pub(crate) fn step(&mut self, span: Span) -> R<()> {
        self.charge(1, span)
    }

    /// Counts work that grows with a value's size: what a step copies is not free.
    pub(crate) fn charge(&mut self, steps: u64, span: Span) -> R<()> {
        self.steps += steps;
        if self.steps >= self.next_look {
            self.cx.go_on()?;
            self.next_look = self.steps + STEPS_PER_LOOK;
        }
        if self.steps <= self.step_limit {
            return Ok(());
        }
        let limit = self.step_limit;
        // What is looked at afterwards gets little more, so that errors do not take their time
        // one after the other.
        (self.steps, self.next_look) = (0, 0);
        self.step_limit = 10_000;
        let message = format!("compile-time evaluation took more than {limit} steps");
        Err(self.report(
            Diagnostic::new(codes::COMPTIME_LIMIT, message, span)
                .label("still running here")
                .help("does anything end this loop?"),
        ))
    }

    /// The scalar in a value that decides something: on other PEs it must be the same.
    pub(crate) fn fix(&mut self, value: &Value) -> Option<Scalar> {
        let scalar = match value.data {
            Data::Int(int) => Scalar::Int(int),
            Data::Float(float) => Scalar::Float(float),
            _ => return None,
        };
        if value.prov != 0
            && let Some(program) = &mut self.program
        {
            program.provenance.guard(value.prov - 1, scalar);
        }
        Some(scalar)
    }

    /// A fixed integer, whatever its type.
    pub(crate) fn fix_int(&mut self, value: &Value) -> Option<i128> {
        match self.fix(value) {
            Some(Scalar::Int(int)) => Some(int),
            Some(Scalar::Float(_)) | None => None,
        }
    }

    /// A fixed truth value.
    pub(crate) fn fix_bool(&mut self, value: &Value) -> Option<bool> {
        if value.ty != self.types.common.bool {
            return None;
        }
        self.fix_int(value).map(|int| int != 0)
    }

    /// A value with all its scalars fixed, for keys.
    pub(crate) fn fix_deep(&mut self, value: &Value) -> Value {
        self.fix(value);
        let data = match &value.data {
            Data::Fields(fields) => {
                let fields: Vec<Value> = fields.iter().map(|field| self.fix_deep(field)).collect();
                Data::Fields(Rc::new(fields))
            }
            Data::Union(active) => Data::Union(Rc::new((active.0, self.fix_deep(&active.1)))),
            other => other.clone(),
        };
        Value { ty: value.ty, data, prov: 0 }
    }

    pub(crate) fn void_value(&self) -> Value {
        Value::new(self.types.common.void, Data::Void)
    }

    pub(crate) fn bool_value(&self, value: bool) -> Value {
        Value::int(self.types.common.bool, i128::from(value))
    }

    pub(crate) fn operand_type(&self, operand: &Operand) -> TypeId {
        match operand {
            Operand::Const(value) => value.ty,
            Operand::Scalar { ty, .. } | Operand::Memory { ty, .. } => *ty,
            Operand::Void => self.types.common.void,
        }
    }

    /// Runs `work` in a comptime frame that shares the current one's variables.
    pub(crate) fn at_comptime<T>(&mut self, work: impl FnOnce(&mut Self) -> R<T>) -> R<T> {
        let before = std::mem::replace(&mut self.frame_mut().comptime, true);
        let result = work(self);
        self.frame_mut().comptime = before;
        result
    }
}
