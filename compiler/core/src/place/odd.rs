//! What is legal and surely not meant: activations of ids without a task, results of asynchronous
//! operations that are read before they can be there, asynchronous operations on variables of the
//! stack.
//!
//! All are warnings, and only where nothing can make the reading harmless: a status that is
//! polled, a call or a loop in between ends the search.

use std::collections::BTreeSet;

use cranelift_entity::PrimaryMap;
use dflow_ir::dsd::DsrRef;
use dflow_ir::image::ProgramId;
use dflow_ir::inst::{FlagOp, Unblock};
use dflow_ir::program::TaskKind;
use dflow_ir::target::Target;
use dflow_syntax::{Diagnostic, Span, codes};

use super::Tile;
use crate::session::Session;
use crate::typed::{
    Expr, ExprKind, GlobalIdx, LocalIdx, Operand, Stmt, StmtKind, TaskBinding, Vector,
};

/// Looks at every program.
pub(super) fn check(
    cx: &mut Session<'_>,
    tiles: &PrimaryMap<ProgramId, Tile<'_>>,
    target: &Target,
) {
    for tile in tiles.values() {
        let (locals, registers) = (BTreeSet::new(), BTreeSet::new());
        let mut odd = Odd { cx, tile, target, locals, registers, seen: BTreeSet::new() };
        odd.initial();
        odd.shared_words();
        for func in &tile.typed.funcs {
            odd.locals.clear();
            odd.registers.clear();
            odd.list(&func.body);
        }
    }
}

struct Odd<'o, 'w, 't> {
    cx: &'o mut Session<'w>,
    tile: &'o Tile<'t>,
    target: &'o Target,
    /// Locals of the function that hold descriptors of its stack, or pointers to it.
    locals: BTreeSet<LocalIdx>,
    /// Registers that the function has loaded with descriptors of its stack.
    registers: BTreeSet<DsrRef>,
    /// Places that were told.
    seen: BTreeSet<(u32, u32)>,
}

/// Bytes of a global that an operation has yet to write.
#[derive(Clone, Copy)]
struct Awaited {
    global: GlobalIdx,
    first: i64,
    end: i64,
    span: Span,
}

impl Odd<'_, '_, '_> {
    fn initial(&mut self) {
        for &(op, id, span) in &self.tile.typed.initial_flags {
            if op == FlagOp::Activate {
                self.activated(id, span);
            }
        }
    }

    /// Data tasks that are never held back, of colors that operations receive from too.
    fn shared_words(&mut self) {
        let by_queue = self.target.data_task_by_queue;
        let tile = self.tile;
        let blocks = |op: FlagOp| matches!(op, FlagOp::BlockChannel);
        let before = tile.typed.initial_flags.iter().filter(|&&(op, ..)| blocks(op));
        let mut held: BTreeSet<u8> = before.map(|&(_, id, _)| id).collect();
        let mut receives = Vec::new();
        let mut any = false;
        for func in &tile.typed.funcs {
            each(&func.body, &mut |stmt| {
                let value = match &stmt.kind {
                    StmtKind::Flag { op, id } if blocks(*op) => {
                        match *id.kind {
                            ExprKind::Const(id) => _ = held.insert(id as u8),
                            _ => any = true,
                        }
                        return;
                    }
                    StmtKind::Expr(value) | StmtKind::Set(_, value) => value,
                    _ => return,
                };
                let ExprKind::Vector(vector) = value.kind.as_ref() else { return };
                receives.extend(vector.sources.iter().filter_map(|source| {
                    let Operand::Fabric(dsd) = source else { return None };
                    let ExprKind::Fabric { desc, .. } = dsd.kind.as_ref() else { return None };
                    let bound = tile.typed.queues.iter();
                    let of_queue = bound.filter(|it| it.input && it.queue == desc.queue);
                    let color = desc.color.or(of_queue.map(|it| it.color).next())?;
                    let channel = if by_queue { desc.queue } else { color.index() };
                    Some((channel, value.span))
                }));
            });
        }
        for (channel, span) in receives {
            let mut tasks = tile.typed.tasks.iter();
            let task = tasks.find(|task| task.kind == TaskKind::Data && task.id == channel);
            if let Some(task) = task.filter(|_| !any && !held.contains(&channel)) {
                self.shared(channel, task, span);
            }
        }
    }

    /// Words of a channel start a task, and an operation there receives them.
    fn shared(&mut self, channel: u8, task: &TaskBinding, span: Span) {
        let what = if self.target.data_task_by_queue { "input queue" } else { "color" };
        let func = self.tile.typed.funcs.get(task.func.0 as usize);
        let name = func.map_or("", |func| func.name.as_str());
        let started = format!("words of {what} {channel} start the data task `{name}`");
        if self.cx.in_library(span) {
            let library = self.cx.file_name(span.file);
            let message = format!("{started}, and the library {library} receives them");
            let diagnostic = Diagnostic::new(codes::SHARED_WORDS, message, task.span)
                .label("whichever comes first takes a word")
                .help(format!("bind the task to a {what} that no library uses"));
            self.tell(task.span, diagnostic);
            return;
        }
        let message = format!("{started}, and this operation receives them too");
        let diagnostic = Diagnostic::new(codes::SHARED_WORDS, message, span)
            .label("whichever comes first takes a word")
            .secondary(task.span, "the data task is bound here")
            .help(format!(
                "receive in one way, or `@block` the {what} while the operation receives"
            ));
        self.tell(span, diagnostic);
    }

    fn tell(&mut self, span: Span, diagnostic: Diagnostic) {
        // A library knows what it does, and the user cannot change it.
        if !self.cx.in_library(span) && self.seen.insert((span.file.0, span.start)) {
            self.cx.emit(diagnostic.frame(self.tile.pes.frame(span, self.tile.span)));
        }
    }

    /// Only local tasks are activated, whatever else has the id.
    fn activated(&mut self, id: u8, span: Span) {
        let mut tasks = self.tile.typed.tasks.iter();
        if tasks.any(|task| task.kind == TaskKind::Local && task.id == id) {
            return;
        }
        let message = format!("task id {id} is activated, and no local task is bound to it");
        let diagnostic = Diagnostic::new(codes::UNBOUND_TASK, message, span)
            .label("this ends the run when it is executed")
            .help(format!("bind a task: `@bind_local_task(task, @get_local_task_id({id}));`"));
        self.tell(span, diagnostic);
    }

    fn list(&mut self, stmts: &[Stmt]) {
        let mut awaited: Vec<Awaited> = Vec::new();
        for stmt in stmts {
            if let Some(values) = values_of(stmt) {
                if let Some((early, read)) = early_read(&awaited, &values) {
                    self.read_early(early, read);
                    awaited.retain(|known| known.global != early.global);
                }
            } else {
                awaited.clear();
            }
            self.stmt(stmt, &mut awaited);
        }
    }

    fn read_early(&mut self, early: Awaited, read: Span) {
        let global = self.tile.typed.globals.get(early.global.0 as usize);
        let name = global.map_or("the array", |global| global.name.as_str());
        let message = format!("`{name}` is read before the asynchronous operation has written it");
        let diagnostic = Diagnostic::new(codes::ASYNC_RESULT, message, read)
            .label("read here")
            .secondary(early.span, "this goes on while the task does")
            .help("read it in a task that `.activate` names, or leave out `.async`");
        self.tell(read, diagnostic);
    }

    fn stmt(&mut self, stmt: &Stmt, awaited: &mut Vec<Awaited>) {
        match &stmt.kind {
            StmtKind::Flag { op: FlagOp::Activate, id } => {
                if let ExprKind::Const(id) = *id.kind {
                    self.activated(id as u8, stmt.span);
                }
            }
            StmtKind::Set(local, expr) if self.is_local(expr) => {
                self.locals.insert(*local);
            }
            StmtKind::LoadDsr { dsr, dsd, options } => {
                self.follows(options, stmt.span);
                if self.is_local(dsd) {
                    self.registers.insert(*dsr);
                } else {
                    self.registers.remove(dsr);
                }
            }
            StmtKind::Expr(expr) | StmtKind::Set(_, expr) => {
                if let StmtKind::Set(local, _) = &stmt.kind {
                    // What it was before is gone.
                    self.locals.remove(local);
                }
                if let ExprKind::Vector(vector) = expr.kind.as_ref() {
                    awaited.extend(self.vector(vector, expr.span));
                }
            }
            StmtKind::If { .. }
            | StmtKind::While { .. }
            | StmtKind::Block { .. }
            | StmtKind::Switch { .. }
            | StmtKind::Store { .. }
            | StmtKind::Copy { .. }
            | StmtKind::Hold { .. }
            | StmtKind::Fill { .. }
            | StmtKind::Break(_)
            | StmtKind::Continue(_)
            | StmtKind::Return(_)
            | StmtKind::Flag { .. }
            | StmtKind::SetDsr { .. }
            | StmtKind::SetRandom(_)
            | StmtKind::SetFifoLength { .. }
            | StmtKind::Clock(_)
            | StmtKind::SetConfig { .. }
            | StmtKind::Assert { .. }
            | StmtKind::Host { .. } => {}
        }
        stmt.bodies().into_iter().for_each(|body| self.list(body));
    }

    /// What an operation activates must be there.
    fn follows(&mut self, options: &crate::typed::Options, span: Span) {
        if let Some(id) = options.activate {
            self.activated(id, span);
        }
        if let Some(Unblock::Task(id)) = options.unblock
            && !self.tile.typed.tasks.iter().any(|task| task.id == id)
        {
            let message = format!("task id {id} is unblocked, and no task is bound to it");
            let diagnostic = Diagnostic::new(codes::UNBOUND_TASK, message, span)
                .label("nothing will run")
                .help(format!("bind a task: `@bind_local_task(task, @get_local_task_id({id}));`"));
            self.tell(span, diagnostic);
        }
    }

    /// The bytes that an operation writes later, if nothing tells when.
    fn vector(&mut self, vector: &Vector, span: Span) -> Option<Awaited> {
        self.follows(&vector.options, span);
        if !vector.options.asynchronous {
            return None;
        }
        let operands = std::iter::once(&vector.dest).chain(&vector.sources);
        for operand in operands {
            let is_local = match operand {
                Operand::Memory(base) | Operand::Pointer(base) => self.is_local(base),
                Operand::Dsr(dsr) => self.registers.contains(dsr),
                Operand::Fabric(_) | Operand::Fifo(_) | Operand::Scalar(_) => false,
            };
            if is_local {
                self.local(span);
            }
        }
        let silent = vector.options.activate.is_none() && vector.options.unblock.is_none();
        let Operand::Memory(dsd) = &vector.dest else { return None };
        let (global, first, end) = extent(dsd, vector.op.row().dest.bytes())?;
        silent.then_some(Awaited { global, first, end, span })
    }

    /// Whether a descriptor's memory is on the stack, or what a pointer points to.
    fn is_local(&self, dsd: &Expr) -> bool {
        match dsd.kind.as_ref() {
            ExprKind::LocalAddress { .. } => true,
            ExprKind::Mem1d { base, .. }
            | ExprKind::Mem4d { base, .. }
            | ExprKind::SetBase { base, .. } => self.is_local(base),
            ExprKind::MoveBase { dsd, .. }
            | ExprKind::SetExtent { dsd, .. }
            | ExprKind::SetStride { dsd, .. } => self.is_local(dsd),
            ExprKind::Local(local) => self.locals.contains(local),
            ExprKind::Const(_)
            | ExprKind::Slot(_)
            | ExprKind::GlobalAddress { .. }
            | ExprKind::Held { .. }
            | ExprKind::FuncAddress(_)
            | ExprKind::Load { .. }
            | ExprKind::Unary(..)
            | ExprKind::Convert(..)
            | ExprKind::Binary(..)
            | ExprKind::Bound(..)
            | ExprKind::Vector(_)
            | ExprKind::Call { .. }
            | ExprKind::CallIndirect { .. }
            | ExprKind::Fabric { .. }
            | ExprKind::Ring { .. }
            | ExprKind::Random
            | ExprKind::ClockRead(_)
            | ExprKind::GetConfig(_)
            | ExprKind::Queues(_) => false,
        }
    }

    fn local(&mut self, span: Span) {
        let message =
            "an asynchronous operation uses a local variable, which is gone when the function ends";
        let diagnostic = Diagnostic::new(codes::ASYNC_LOCAL, message, span)
            .label("this goes on while the function does")
            .help("declare the variable outside of functions, or leave out `.async`");
        self.tell(span, diagnostic);
    }
}

/// All statements of a list, inner ones too.
pub(super) fn each<'s>(stmts: &'s [Stmt], look: &mut impl FnMut(&'s Stmt)) {
    for stmt in stmts {
        look(stmt);
        stmt.bodies().into_iter().for_each(|body| each(body, look));
    }
}

/// Global and byte range of a known vector whose elements lie side by side.
fn extent(dsd: &Expr, bytes: u32) -> Option<(GlobalIdx, i64, i64)> {
    let ExprKind::Mem1d { base, extent, stride, .. } = dsd.kind.as_ref() else { return None };
    let (ExprKind::GlobalAddress { global, offset }, ExprKind::Const(extent), ExprKind::Const(1)) =
        (base.kind.as_ref(), extent.kind.as_ref(), stride.kind.as_ref())
    else {
        return None;
    };
    let first = i64::from(*offset);
    Some((*global, first, first + *extent as i64 * i64::from(bytes)))
}

/// What a statement computes, if it surely ends before any time to speak of has passed.
fn values_of(stmt: &Stmt) -> Option<Vec<&Expr>> {
    let values = match &stmt.kind {
        StmtKind::Set(_, value) | StmtKind::Expr(value) => vec![value],
        StmtKind::Store { address, value, .. } => vec![address, value],
        StmtKind::Flag { .. } => Vec::new(),
        StmtKind::Copy { .. }
        | StmtKind::Hold { .. }
        | StmtKind::Fill { .. }
        | StmtKind::If { .. }
        | StmtKind::While { .. }
        | StmtKind::Block { .. }
        | StmtKind::Switch { .. }
        | StmtKind::Break(_)
        | StmtKind::Continue(_)
        | StmtKind::Return(_)
        | StmtKind::LoadDsr { .. }
        | StmtKind::SetDsr { .. }
        | StmtKind::SetRandom(_)
        | StmtKind::SetFifoLength { .. }
        | StmtKind::Clock(_)
        | StmtKind::SetConfig { .. }
        | StmtKind::Assert { .. }
        | StmtKind::Host { .. } => return None,
    };
    values.iter().all(|value| plain(value)).then_some(values)
}

/// An expression without calls and without operations that can wait.
fn plain(expr: &Expr) -> bool {
    match expr.kind.as_ref() {
        ExprKind::Const(_)
        | ExprKind::Slot(_)
        | ExprKind::Local(_)
        | ExprKind::GlobalAddress { .. }
        | ExprKind::LocalAddress { .. }
        | ExprKind::FuncAddress(_) => true,
        ExprKind::Load { address, .. } => plain(address),
        ExprKind::Unary(_, a) | ExprKind::Convert(_, a) => plain(a),
        ExprKind::Binary(_, a, b) | ExprKind::Bound(_, a, b) => plain(a) && plain(b),
        ExprKind::Vector(vector) => {
            let memory = |operand: &Operand| match operand {
                Operand::Memory(_) | Operand::Scalar(_) | Operand::Pointer(_) => true,
                Operand::Fabric(_) => vector.options.asynchronous,
                Operand::Dsr(_) | Operand::Fifo(_) => false,
            };
            memory(&vector.dest) && vector.sources.iter().all(memory)
        }
        ExprKind::Held { .. }
        | ExprKind::Call { .. }
        | ExprKind::CallIndirect { .. }
        | ExprKind::Mem1d { .. }
        | ExprKind::Mem4d { .. }
        | ExprKind::Fabric { .. }
        | ExprKind::Ring { .. }
        | ExprKind::MoveBase { .. }
        | ExprKind::SetBase { .. }
        | ExprKind::SetExtent { .. }
        | ExprKind::SetStride { .. }
        | ExprKind::Random
        | ExprKind::ClockRead(_)
        | ExprKind::GetConfig(_)
        | ExprKind::Queues(_) => false,
    }
}

/// The first awaited bytes that plain expressions read, and where.
fn early_read(awaited: &[Awaited], values: &[&Expr]) -> Option<(Awaited, Span)> {
    let mut reads = Vec::new();
    values.iter().for_each(|value| reads_of(value, &mut reads));
    reads.into_iter().find_map(|(global, first, end, span)| {
        let meets =
            |known: &&Awaited| known.global == global && first < known.end && end > known.first;
        awaited.iter().find(meets).map(|known| (*known, span))
    })
}

/// Known bytes of globals that a plain expression reads.
fn reads_of(expr: &Expr, reads: &mut Vec<(GlobalIdx, i64, i64, Span)>) {
    match expr.kind.as_ref() {
        ExprKind::Load { address, offset } => {
            if let (ExprKind::GlobalAddress { global, offset: base }, Some(ty)) =
                (address.kind.as_ref(), expr.ty)
            {
                let first = i64::from(*base) + i64::from(*offset);
                reads.push((*global, first, first + i64::from(ty.bytes()), expr.span));
            }
            reads_of(address, reads);
        }
        ExprKind::Unary(_, a) | ExprKind::Convert(_, a) => reads_of(a, reads),
        ExprKind::Binary(_, a, b) | ExprKind::Bound(_, a, b) => {
            reads_of(a, reads);
            reads_of(b, reads);
        }
        ExprKind::Vector(vector) if !vector.options.asynchronous => {
            let types = vector.op.row().source_types();
            for (at, source) in vector.sources.iter().enumerate() {
                let bytes = types.get(at).or(types.last()).map_or(2, |ty| ty.bytes());
                if let Operand::Memory(dsd) = source
                    && let Some((global, first, end)) = extent(dsd, bytes)
                {
                    reads.push((global, first, end, expr.span));
                }
            }
        }
        ExprKind::Const(_)
        | ExprKind::Slot(_)
        | ExprKind::Local(_)
        | ExprKind::GlobalAddress { .. }
        | ExprKind::LocalAddress { .. }
        | ExprKind::Held { .. }
        | ExprKind::FuncAddress(_)
        | ExprKind::Vector(_)
        | ExprKind::Call { .. }
        | ExprKind::CallIndirect { .. }
        | ExprKind::Mem1d { .. }
        | ExprKind::Mem4d { .. }
        | ExprKind::Fabric { .. }
        | ExprKind::Ring { .. }
        | ExprKind::MoveBase { .. }
        | ExprKind::SetBase { .. }
        | ExprKind::SetExtent { .. }
        | ExprKind::SetStride { .. }
        | ExprKind::Random
        | ExprKind::ClockRead(_)
        | ExprKind::GetConfig(_)
        | ExprKind::Queues(_) => {}
    }
}
