//! What happens in a function, in the order in which it is written.

use dflow_ir::program::HostOp;

use crate::typed::{
    Expr, ExprKind, Func, FuncIdx, GlobalIdx, HoldIdx, LocalIdx, Operand, Options, Program, Stmt,
    StmtKind, Vector,
};

/// Something that happens. Its place is its number in the function's list.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event<'a> {
    /// A value is read.
    Hold {
        hold: HoldIdx,
        source: &'a Expr,
    },
    /// A local, an address or a part of a hold, where what is there is read or written, or called with.
    Reach(&'a Expr),
    /// The same where the address itself becomes a value: it may go anywhere.
    Leak(&'a Expr),
    /// A scalar local is written; nothing is known of what a host operation gives.
    Set(LocalIdx, Option<&'a Expr>),
    /// Memory is written, at an address or through a descriptor.
    Write(&'a Expr),
    /// The buffer of a FIFO is written.
    WriteGlobal(GlobalIdx),
    /// Memory is written, nobody knows where.
    WriteAny,
    /// A descriptor goes to an operation that does not end where it is issued.
    Lend(&'a Expr),
    /// A function does what it does with its arguments.
    Call(FuncIdx, &'a [Expr]),
    /// A function whose address somebody has.
    CallAny,
    /// A loop begins, ends.
    Loop,
    EndLoop,
    /// A list of statements begins, ends.
    List,
    EndList,
}

/// What an expression is wanted for.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Address,
    Value,
}

/// What is left to look at.
enum Task<'a> {
    List(&'a [Stmt]),
    Stmt(&'a Stmt),
    Expr(&'a Expr, Role),
    Event(Event<'a>),
}

/// The events of a function. Without recursion: operator chains nest as deep as they are long.
pub(super) fn events<'a>(program: &'a Program, func: &'a Func) -> Vec<Event<'a>> {
    let mut walk = Walk { program, tasks: vec![Task::List(&func.body)] };
    let mut events = Vec::new();
    while let Some(task) = walk.tasks.pop() {
        let from = walk.tasks.len();
        match task {
            Task::List(stmts) => walk.list(stmts),
            Task::Stmt(stmt) => walk.stmt(stmt),
            Task::Expr(expr, role) => walk.expr(expr, role),
            Task::Event(event) => events.push(event),
        }
        // Each step names its tasks in the order in which they come.
        walk.tasks[from..].reverse();
    }
    events
}

struct Walk<'a> {
    program: &'a Program,
    tasks: Vec<Task<'a>>,
}

impl<'a> Walk<'a> {
    fn event(&mut self, event: Event<'a>) {
        self.tasks.push(Task::Event(event));
    }

    fn address(&mut self, expr: &'a Expr) {
        self.tasks.push(Task::Expr(expr, Role::Address));
    }

    fn value(&mut self, expr: &'a Expr) {
        self.tasks.push(Task::Expr(expr, Role::Value));
    }

    fn list(&mut self, stmts: &'a [Stmt]) {
        self.event(Event::List);
        self.tasks.extend(stmts.iter().map(Task::Stmt));
        self.event(Event::EndList);
    }

    fn stmt(&mut self, stmt: &'a Stmt) {
        match &stmt.kind {
            StmtKind::Set(local, value) => {
                self.address(value);
                self.event(Event::Set(*local, Some(value)));
            }
            StmtKind::Store { address, value, .. }
            | StmtKind::Fill { dest: address, value, .. } => {
                self.address(address);
                self.value(value);
                self.event(Event::Write(address));
            }
            StmtKind::Copy { dest, source, .. } => {
                self.address(dest);
                self.address(source);
                self.event(Event::Write(dest));
            }
            StmtKind::Hold { hold, source, .. } => {
                self.address(source);
                self.event(Event::Hold { hold: *hold, source });
            }
            StmtKind::While { cond, .. } => {
                self.event(Event::Loop);
                self.value(cond);
                self.bodies(stmt);
                self.event(Event::EndLoop);
            }
            StmtKind::Host { op, args, dests } => {
                args.iter().for_each(|arg| self.value(arg));
                if receives(op) {
                    self.event(Event::WriteAny);
                }
                dests.iter().for_each(|&dest| self.event(Event::Set(dest, None)));
            }
            StmtKind::LoadDsr { dsd, options, .. } => {
                self.value(dsd);
                self.options(options);
            }
            StmtKind::SetConfig { addr, value } => {
                self.value(addr);
                self.value(value);
            }
            StmtKind::Expr(value)
            | StmtKind::If { cond: value, .. }
            | StmtKind::Switch { value, .. }
            | StmtKind::Return(Some(value))
            | StmtKind::Flag { id: value, .. }
            | StmtKind::SetDsr { value, .. }
            | StmtKind::SetRandom(value)
            | StmtKind::SetFifoLength { length: value, .. }
            | StmtKind::Assert { cond: value, .. } => {
                self.value(value);
                self.bodies(stmt);
            }
            StmtKind::Block { .. } => self.bodies(stmt),
            StmtKind::Break(_)
            | StmtKind::Continue(_)
            | StmtKind::Return(None)
            | StmtKind::Clock(_) => {}
        }
    }

    fn bodies(&mut self, stmt: &'a Stmt) {
        self.tasks.extend(stmt.bodies().into_iter().map(Task::List));
    }

    fn options(&mut self, options: &'a Options) {
        options.index.iter().for_each(|index| self.value(index));
    }

    fn expr(&mut self, expr: &'a Expr, role: Role) {
        let leaf = match role {
            Role::Address => Event::Reach(expr),
            Role::Value => Event::Leak(expr),
        };
        match &*expr.kind {
            ExprKind::Local(_)
            | ExprKind::GlobalAddress { .. }
            | ExprKind::LocalAddress { .. }
            | ExprKind::FuncAddress(_) => self.event(leaf),
            ExprKind::Held { source, .. } => {
                self.event(leaf);
                self.address(source);
            }
            ExprKind::Load { address, .. } => self.address(address),
            ExprKind::Unary(_, part) | ExprKind::Convert(_, part) | ExprKind::GetConfig(part) => {
                self.value(part);
            }
            ExprKind::Binary(_, lhs, rhs) | ExprKind::Bound(_, lhs, rhs) => {
                self.tasks.push(Task::Expr(lhs, role));
                self.value(rhs);
            }
            ExprKind::Call { func, args } => self.call(*func, args),
            ExprKind::CallIndirect { callee, args, .. } => {
                let parts = || std::iter::once(callee).chain(args);
                parts().for_each(|part| self.value(part));
                self.event(Event::CallAny);
                parts().for_each(|part| self.value(part));
            }
            ExprKind::Vector(vector) => self.vector(vector),
            ExprKind::Mem1d { base, extent, stride, .. } => {
                self.descriptor(base, role, &[extent, stride]);
            }
            ExprKind::Ring { base, extent, wrap, .. } => {
                self.descriptor(base, role, &[extent, wrap])
            }
            ExprKind::Mem4d { base, .. } => self.descriptor(base, role, &[]),
            ExprKind::MoveBase { dsd, delta: part }
            | ExprKind::SetExtent { dsd, extent: part }
            | ExprKind::SetStride { dsd, stride: part } => self.descriptor(dsd, role, &[part]),
            ExprKind::SetBase { dsd, base, .. } => self.descriptor(base, role, &[dsd]),
            ExprKind::Fabric { extent, .. } => self.value(extent),
            ExprKind::Const(_)
            | ExprKind::Slot(_)
            | ExprKind::Random
            | ExprKind::ClockRead(_)
            | ExprKind::Queues(_) => {}
        }
    }

    fn descriptor(&mut self, base: &'a Expr, role: Role, parts: &[&'a Expr]) {
        self.tasks.push(Task::Expr(base, role));
        parts.iter().for_each(|part| self.value(part));
    }

    /// A call uses its arguments to its end.
    fn call(&mut self, func: FuncIdx, args: &'a [Expr]) {
        self.args(func, args);
        self.event(Event::Call(func, args));
        self.args(func, args);
    }

    /// Addresses of values and of results go no further than the callee.
    fn args(&mut self, func: FuncIdx, args: &'a [Expr]) {
        let passing = &self.program.funcs[func.0 as usize].passing;
        for (at, arg) in args.iter().enumerate() {
            let stays =
                (at == 0 && passing.result) || passing.values.contains(&LocalIdx(at as u32));
            let role = if stays { Role::Address } else { Role::Value };
            self.tasks.push(Task::Expr(arg, role));
        }
    }

    /// An operation reads its sources while it writes.
    fn vector(&mut self, vector: &'a Vector) {
        let all = || vector.sources.iter().chain([&vector.dest]);
        all().for_each(|operand| self.operand(operand));
        self.options(&vector.options);
        for operand in all().filter(|_| vector.options.asynchronous) {
            if let Operand::Memory(place) = operand {
                self.event(Event::Lend(place));
            }
        }
        match &vector.dest {
            Operand::Memory(place) | Operand::Pointer(place) => self.event(Event::Write(place)),
            Operand::Fifo(fifo) => {
                let buffer = self.program.fifos[*fifo as usize].buffer.as_u32();
                self.event(Event::WriteGlobal(GlobalIdx(buffer)));
            }
            Operand::Dsr(_) => self.event(Event::WriteAny),
            Operand::Fabric(_) | Operand::Scalar(_) => {}
        }
        if clears(&vector.dest) {
            for source in &vector.sources {
                match source {
                    Operand::Memory(place) => self.event(Event::Write(place)),
                    Operand::Dsr(_) => self.event(Event::WriteAny),
                    Operand::Fabric(_)
                    | Operand::Fifo(_)
                    | Operand::Scalar(_)
                    | Operand::Pointer(_) => {}
                }
            }
        }
        all().for_each(|operand| self.operand(operand));
    }

    fn operand(&mut self, operand: &'a Operand) {
        match operand {
            Operand::Memory(place) | Operand::Fabric(place) | Operand::Pointer(place) => {
                self.address(place);
            }
            Operand::Scalar(value) => self.value(value),
            Operand::Dsr(_) | Operand::Fifo(_) => {}
        }
    }
}

/// Whether a host operation writes to memory that it is given.
fn receives(op: &HostOp) -> bool {
    match op {
        HostOp::StreamOut { .. } | HostOp::StreamOutRows { .. } => true,
        HostOp::Input { .. }
        | HostOp::HasInput { .. }
        | HostOp::Output { .. }
        | HostOp::Setting { .. }
        | HostOp::HasSetting { .. }
        | HostOp::CopyIn { .. }
        | HostOp::CopyOut { .. }
        | HostOp::Launch { .. }
        | HostOp::StreamIn { .. }
        | HostOp::Wait
        | HostOp::Alloc
        | HostOp::Print { .. }
        | HostOp::Expect { .. }
        | HostOp::Cycles
        | HostOp::ClockRate
        | HostOp::Wavelets
        | HostOp::Math(_)
        | HostOp::AssumedShare => false,
    }
}

/// Whether a destination may have sources cleared when the operation is complete.
fn clears(dest: &Operand) -> bool {
    match dest {
        Operand::Fabric(dsd) => match &*dsd.kind {
            ExprKind::Fabric { desc, .. } => desc.zero.is_some(),
            _ => true,
        },
        Operand::Dsr(_) => true,
        Operand::Memory(_) | Operand::Fifo(_) | Operand::Scalar(_) | Operand::Pointer(_) => false,
    }
}
