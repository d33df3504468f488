//! The static cost of a function in issue slots: what `@cycle_estimate` gives.
//!
//! Costs are those of the timing model (`spec/time-costs.md`) with the choices that a static number needs: of
//! branches the dearer one counts; a loop counts as often as its counter says if start, end and step are
//! constants, else once; a vector operation of unknown length has one element; an indirect call costs the
//! call; nothing waits.

use std::collections::BTreeMap;

use dflow_ir::scalar::{BinaryOp, Convert, UnaryOp};
use dflow_ir::target::{Target, Timing};

use crate::typed::{Expr, ExprKind, FuncIdx, LocalIdx, Program, Stmt, StmtKind};

#[cfg(test)]
mod tests;
mod vector;

/// Issue slots of a function and what it calls.
pub(crate) fn cost(program: &Program, func: FuncIdx, target: &Target) -> u64 {
    let mut walk = Walk { program, target, known: BTreeMap::new() };
    walk.func(func)
}

struct Walk<'a> {
    program: &'a Program,
    target: &'a Target,
    /// Costs of functions; a function under way costs nothing more.
    known: BTreeMap<u32, u64>,
}

/// Constants that locals hold where the walk stands.
type Constants = BTreeMap<u32, Constant>;

impl Walk<'_> {
    fn func(&mut self, func: FuncIdx) -> u64 {
        if let Some(&cost) = self.known.get(&func.0) {
            return cost;
        }
        self.known.insert(func.0, 0);
        let program = self.program;
        let Some(body) = program.funcs.get(func.0 as usize).map(|func| &func.body) else {
            return 0;
        };
        let timing = &self.target.timing;
        let cost = sum([u64::from(timing.scalar), self.list(body, &mut Constants::new())]);
        self.known.insert(func.0, cost);
        cost
    }

    fn list(&mut self, stmts: &[Stmt], constants: &mut Constants) -> u64 {
        stmts.iter().fold(0, |cost: u64, stmt| cost.saturating_add(self.stmt(stmt, constants)))
    }

    fn stmt(&mut self, stmt: &Stmt, constants: &mut Constants) -> u64 {
        let scalar = self.scalar();
        let timing = self.target.timing;
        let [branch, jump] = [timing.branch_not_taken, timing.branch_taken].map(u64::from);
        match &stmt.kind {
            StmtKind::Expr(expr) => self.expr(expr),
            StmtKind::Set(local, value) => {
                match constant(value) {
                    Some(value) => constants.insert(local.0, value),
                    None => constants.remove(&local.0),
                };
                self.expr(value)
            }
            StmtKind::Store { address, value, .. } => {
                sum([scalar, self.expr(address), self.expr(value)])
            }
            StmtKind::Copy { dest, source, bytes } => {
                let words = u64::from(bytes.div_ceil(4)) * 2 * scalar;
                sum([words, self.expr(dest), self.expr(source)])
            }
            StmtKind::Fill { dest, value, count } => {
                sum([u64::from(*count) * scalar, self.expr(dest), self.expr(value)])
            }
            StmtKind::If { cond, then, otherwise } => {
                let then = self.list(then, &mut constants.clone());
                let otherwise = self.list(otherwise, &mut constants.clone());
                constants.clear();
                // One of them is jumped to, the other jumps behind it.
                sum([self.test(cond), branch, jump, then.max(otherwise)])
            }
            StmtKind::While { cond, step, body, .. } => {
                let trips = trips(cond, step, constants).unwrap_or(1);
                constants.clear();
                let inner = self.list(body, &mut Constants::new());
                // A loop whose condition holds always has no branch at its head, but may have one behind its body.
                let always = constant(cond).is_some_and(|held| held.raw != 0);
                let behind = asked_behind(step).filter(|_| always);
                let [test, leave] = match (always, behind) {
                    (true, None) => [0; 2],
                    (true, Some((goes_on, _))) => [sum([self.test(goes_on), branch]), jump],
                    (false, _) => [branch, jump].map(|slots| sum([self.test(cond), slots])),
                };
                let step =
                    self.list(behind.map_or(&step[..], |(_, step)| step), &mut Constants::new());
                let round = sum([test, jump_back(&timing), inner, step]);
                sum([trips.saturating_mul(round), leave])
            }
            StmtKind::Block { body, .. } => self.list(body, constants),
            StmtKind::Switch { value, cases, otherwise } => {
                let costs = cases.iter().map(|(_, stmts)| stmts).chain([otherwise]);
                let most = costs.map(|stmts| self.list(stmts, &mut constants.clone())).max();
                constants.clear();
                sum([self.expr(value), jump, most.unwrap_or(0)])
            }
            StmtKind::Break(_) | StmtKind::Continue(_) => jump,
            StmtKind::Return(value) => value.as_ref().map_or(0, |value| self.expr(value)),
            StmtKind::Assert { .. } => 0,
            _ => self.rest(&stmt.kind),
        }
    }

    /// Statements of one slot and their operands.
    fn rest(&mut self, kind: &StmtKind) -> u64 {
        let operand = match kind {
            StmtKind::Flag { id, .. } => Some(id),
            StmtKind::LoadDsr { dsd, .. } => Some(dsd),
            StmtKind::SetFifoLength { length, .. } => Some(length),
            _ => None,
        };
        sum([self.scalar(), operand.map_or(0, |operand| self.expr(operand))])
    }

    /// A condition: the comparison just before a branch is a part of it.
    fn test(&mut self, cond: &Expr) -> u64 {
        match &*cond.kind {
            ExprKind::Binary(op, lhs, rhs) if op.is_comparison() => {
                sum([self.expr(lhs), self.expr(rhs)])
            }
            _ => self.expr(cond),
        }
    }

    fn expr(&mut self, expr: &Expr) -> u64 {
        let timing = &self.target.timing;
        let (scalar, divide, call) =
            (u64::from(timing.scalar), u64::from(timing.divide), u64::from(timing.call));
        match &*expr.kind {
            ExprKind::Const(_)
            | ExprKind::Slot(_)
            | ExprKind::Local(_)
            | ExprKind::GlobalAddress { .. }
            | ExprKind::LocalAddress { .. }
            | ExprKind::FuncAddress(_) => 0,
            ExprKind::Load { address, .. } => sum([scalar, self.expr(address)]),
            ExprKind::Unary(UnaryOp::Sqrt, arg) => sum([divide, self.expr(arg)]),
            ExprKind::Convert(Convert::Truncate, arg) => self.expr(arg),
            ExprKind::Bound(_, index, len) => sum([self.expr(index), self.expr(len)]),
            ExprKind::Unary(_, arg) | ExprKind::Convert(_, arg) => sum([scalar, self.expr(arg)]),
            ExprKind::Binary(op, lhs, rhs) => {
                let own = if divides(*op) { divide } else { scalar };
                sum([own, self.expr(lhs), self.expr(rhs)])
            }
            ExprKind::Call { func, args } => sum([self.all(args), scalar, call, self.func(*func)]),
            ExprKind::CallIndirect { callee, args, .. } => {
                sum([scalar, call, self.expr(callee), self.all(args)])
            }
            ExprKind::Vector(vector) => self.vector(vector),
            _ => self.built(expr),
        }
    }

    /// Descriptors, random words and the clock: one slot each, and none for a descriptor of which all is known.
    fn built(&mut self, expr: &Expr) -> u64 {
        let (whole, parts): (bool, Vec<&Expr>) = match &*expr.kind {
            ExprKind::Mem1d { base, extent, stride, .. } => (true, vec![base, extent, stride]),
            ExprKind::Mem4d { base, .. } => (true, vec![base]),
            ExprKind::Fabric { extent, .. } => (true, vec![extent]),
            ExprKind::Ring { base, extent, wrap, .. } => (true, vec![base, extent, wrap]),
            ExprKind::MoveBase { dsd, delta } => (false, vec![dsd, delta]),
            ExprKind::SetBase { dsd, base, .. } => (false, vec![dsd, base]),
            ExprKind::SetExtent { dsd, extent } => (false, vec![dsd, extent]),
            ExprKind::SetStride { dsd, stride } => (false, vec![dsd, stride]),
            _ => (false, Vec::new()),
        };
        let known = |part: &&Expr| {
            matches!(
                &*part.kind,
                ExprKind::Const(_) | ExprKind::Slot(_) | ExprKind::GlobalAddress { .. }
            )
        };
        let own = if whole && parts.iter().all(known) { 0 } else { self.scalar() };
        parts.into_iter().fold(own, |cost, part| cost.saturating_add(self.expr(part)))
    }

    fn all(&mut self, exprs: &[Expr]) -> u64 {
        exprs.iter().fold(0, |cost, expr| cost.saturating_add(self.expr(expr)))
    }

    fn scalar(&self) -> u64 {
        u64::from(self.target.timing.scalar)
    }
}

/// Issue slots of the jump back to a loop's head, which with the branch there is the loop's edge: one at least, whatever
/// the constants, as engines take it.
fn jump_back(timing: &Timing) -> u64 {
    timing.loop_edge.saturating_sub(timing.branch_not_taken).max(1).into()
}

fn divides(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Div | BinaryOp::DivS | BinaryOp::DivU | BinaryOp::RemS | BinaryOp::RemU)
}

/// A constant of an integer type.
#[derive(Clone, Copy)]
struct Constant {
    raw: u64,
    bits: u32,
}

impl Constant {
    /// The number that the bits stand for.
    fn read(self, signed: bool) -> i128 {
        let number = i128::from(self.raw) & self.mask();
        let negative = signed && number >> (self.bits - 1) != 0;
        if negative { number - self.mask() - 1 } else { number }
    }

    /// What is left of a number in as many bits.
    fn wrap(self, number: i128) -> Constant {
        Constant { raw: (number & self.mask()) as u64, bits: self.bits }
    }

    fn mask(self) -> i128 {
        (1 << self.bits) - 1
    }
}

fn constant(expr: &Expr) -> Option<Constant> {
    let (ExprKind::Const(raw), Some(ty)) = (&*expr.kind, expr.ty) else { return None };
    (!ty.is_float()).then(|| Constant { raw: *raw, bits: ty.bits() })
}

/// How often a loop runs whose counter starts, ends and changes by constants.
fn trips(cond: &Expr, step: &[Stmt], constants: &Constants) -> Option<u64> {
    // What is asked behind the rounds alone lets one more pass.
    if let (Some(_), Some((goes_on, step))) =
        (constant(cond).filter(|cond| cond.raw != 0), asked_behind(step))
    {
        return trips(goes_on, step, constants)?.checked_add(1);
    }
    let ExprKind::Binary(op, lhs, rhs) = &*cond.kind else { return None };
    let (counter, end, up) = match (local(lhs), local(rhs)) {
        (Some(counter), _) => (counter, constant(rhs)?, true),
        (None, Some(counter)) => (counter, constant(lhs)?, false),
        (None, None) => return None,
    };
    let start = *constants.get(&counter.0)?;
    let by = step.iter().find_map(|stmt| change(stmt, counter))?;
    if *op == BinaryOp::Ne {
        return until_equal(start, end, by);
    }
    let (signed, inclusive) = match op {
        BinaryOp::LtS => (true, 0),
        BinaryOp::LtU => (false, 0),
        BinaryOp::LeS => (true, 1),
        BinaryOp::LeU => (false, 1),
        _ => return None,
    };
    let (start, end) = (start.read(signed), end.read(signed));
    let (way, by) = match up {
        true => (end - start, by.read(signed)),
        // What is taken away from a signed counter may be more than it holds.
        false if signed => (start - end, -by.read(true)),
        false => (start - end, by.wrap(-by.read(false)).read(false)),
    };
    quotient((way + inclusive).max(0), by)
}

/// The condition that a loop asks ahead of its step, and the step.
fn asked_behind(step: &[Stmt]) -> Option<(&Expr, &[Stmt])> {
    let (first, rest) = step.split_first()?;
    let StmtKind::If { cond, then, otherwise } = &first.kind else { return None };
    let leaves = matches!(otherwise.as_slice(), [Stmt { kind: StmtKind::Break(_), .. }]);
    (then.is_empty() && leaves).then_some((cond, rest))
}

/// How often a counter changes until it is its end; it may come around.
fn until_equal(start: Constant, end: Constant, by: Constant) -> Option<u64> {
    let (way, by) = (end.read(false) - start.read(false), by.read(true));
    let way = if by < 0 { start.wrap(-way) } else { start.wrap(way) }.read(false);
    if by != 0 && way % by == 0 { quotient(way, by.abs()) } else { None }
}

/// How many steps a way takes.
fn quotient(way: i128, by: i128) -> Option<u64> {
    (by > 0).then(|| u64::try_from((way + by - 1) / by).unwrap_or(u64::MAX))
}

/// By how much a statement changes a counter.
fn change(stmt: &Stmt, counter: LocalIdx) -> Option<Constant> {
    let StmtKind::Set(target, value) = &stmt.kind else { return None };
    let ExprKind::Binary(op, lhs, by) = &*value.kind else { return None };
    let by = constant(by).filter(|_| *target == counter && local(lhs) == Some(counter))?;
    match op {
        BinaryOp::Add => Some(by),
        BinaryOp::Sub => Some(by.wrap(-by.read(true))),
        _ => None,
    }
}

/// A sum that ends at the greatest number.
fn sum<const N: usize>(parts: [u64; N]) -> u64 {
    parts.into_iter().fold(0, u64::saturating_add)
}

fn local(expr: &Expr) -> Option<LocalIdx> {
    match *expr.kind {
        ExprKind::Local(local) => Some(local),
        _ => None,
    }
}
