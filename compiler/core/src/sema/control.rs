//! Branches, switches, labeled blocks, and the ways out of them.

use dflow_ir::ty::Ty;
use dflow_syntax::ast::{Expr as Ast, ExprId, Prong};
use dflow_syntax::{Diagnostic, Span, codes};

use super::address::{Address, typed};
use super::place::DIRECTIONS;
use super::types::{Repr, Type, TypeId};
use super::value::{Data, Value};
use super::{Flow, Operand, R, ResultPlace, Sema};
use crate::typed::{Expr, ExprKind, LocalKind, Stmt, StmtKind};

/// A branch of a run-time construct: its statements so far and its value (none if control left).
struct Branch {
    stmts: Vec<Stmt>,
    value: Option<Operand>,
    span: Span,
}

/// Which type the value of a construct should have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    /// Needed by the surroundings: all branches become it.
    pub(crate) hint: Option<TypeId>,
    /// Made of the value later, by `@as` or an operator: untyped numbers take it.
    pub(crate) wanted: Option<TypeId>,
}

impl Wish {
    /// For what stands as a statement.
    pub(crate) const NONE: Wish = Wish { hint: None, wanted: None };

    /// The type that untyped numbers take.
    pub(crate) fn for_untyped(self) -> Option<TypeId> {
        self.hint.or(self.wanted)
    }
}

impl Sema<'_, '_> {
    pub(crate) fn if_expr(
        &mut self,
        cond: ExprId,
        then: ExprId,
        otherwise: Option<ExprId>,
        wish: Wish,
        span: Span,
    ) -> R<Operand> {
        match self.condition(cond)? {
            Ok(true) => self.wished(then, wish),
            Ok(false) => match otherwise {
                Some(otherwise) => self.wished(otherwise, wish),
                None => Ok(self.void_operand()),
            },
            Err(cond) => {
                let mut branches = vec![self.branch(then, wish)?];
                match otherwise {
                    Some(otherwise) => branches.push(self.branch(otherwise, wish)?),
                    None => self.no_value_needed(&branches[0])?,
                }
                let (mut lists, result) = self.join(branches, wish, span)?;
                let otherwise = if lists.len() > 1 { lists.remove(1) } else { Vec::new() };
                let then = lists.remove(0);
                self.emit(StmtKind::If { cond, then, otherwise }, span);
                Ok(result)
            }
        }
    }

    /// A branch without an `else` gives no value: the construct would have one only sometimes.
    fn no_value_needed(&mut self, branch: &Branch) -> R<()> {
        let Some(value) = &branch.value else { return Ok(()) };
        let ty = self.operand_type(value);
        if ty == self.types.common.void {
            return Ok(());
        }
        let message =
            format!("this `if` has a value of type `{}` only sometimes", self.type_name(ty));
        Err(self.report(
            Diagnostic::new(codes::TYPE_MISMATCH, message, branch.span)
                .label("its value if the condition holds")
                .help("write the other value behind `else`"),
        ))
    }

    /// An expression as a run-time branch of its own.
    fn branch(&mut self, id: ExprId, wish: Wish) -> R<Branch> {
        let span = self.expr_span(id);
        self.open_list();
        self.frame_mut().depth += 1;
        let value = self.branch_value(id, wish);
        self.frame_mut().depth -= 1;
        let stmts = self.close_list();
        Ok(Branch { stmts, value: value?, span })
    }

    /// The value of a branch; none if control leaves the construct in it.
    fn branch_value(&mut self, id: ExprId, wish: Wish) -> R<Option<Operand>> {
        let file = std::rc::Rc::clone(&self.frame().file);
        match file.file.expr(id) {
            Ast::Block { label: None, block } => {
                let span = self.expr_span(id);
                match self.block(block)? {
                    Flow::Next => Ok(Some(self.void_operand())),
                    Flow::Diverges => Ok(None),
                    Flow::Break(..) | Flow::Continue(_) | Flow::Return(_) => self.fail(
                        codes::MISPLACED_JUMP,
                        "control leaves an expression here",
                        span,
                        "use a statement instead",
                    ),
                }
            }
            _ => self.wished(id, wish).map(Some),
        }
    }

    /// Analyzes an expression of which the surroundings wish a type.
    pub(crate) fn wished(&mut self, id: ExprId, wish: Wish) -> R<Operand> {
        self.wanted = wish.wanted;
        self.expr(id, wish.hint)
    }

    /// Gives the branches of a construct one value: each writes a common temporary.
    fn join(
        &mut self,
        branches: Vec<Branch>,
        wish: Wish,
        span: Span,
    ) -> R<(Vec<Vec<Stmt>>, Operand)> {
        let types: Vec<(TypeId, Span)> = branches
            .iter()
            .filter_map(|branch| Some((self.operand_type(branch.value.as_ref()?), branch.span)))
            .collect();
        let ty = self.peer_type(&types, wish, span)?;
        let Some(ty) = ty else {
            return Ok((branches.into_iter().map(|branch| branch.stmts).collect(), Operand::Void));
        };
        let result = self.result_place(ty, span)?;
        let mut lists = Vec::with_capacity(branches.len());
        for branch in branches {
            self.open_list();
            self.append(branch.stmts);
            let written = match branch.value {
                Some(value) => self.write_result(result, value, branch.span),
                None => Ok(()),
            };
            lists.push(self.close_list());
            written?;
        }
        let operand = self.read_result(result, span)?;
        Ok((lists, operand))
    }

    /// The type among those of the values of all branches that the others can take; `None` if they have
    /// no values.
    pub(crate) fn peer_type(
        &mut self,
        types: &[(TypeId, Span)],
        wish: Wish,
        span: Span,
    ) -> R<Option<TypeId>> {
        let void = self.types.common.void;
        if types.is_empty() || types.iter().all(|&(ty, _)| ty == void) {
            return Ok(None);
        }
        if let Some(hint) = wish.hint {
            return Ok(Some(hint));
        }
        let untyped = |ty: &TypeId| {
            *ty == self.types.common.comptime_int || *ty == self.types.common.comptime_float
        };
        let mut typed: Vec<(TypeId, Span)> = Vec::new();
        for &(ty, span) in types.iter().filter(|(ty, _)| !untyped(ty)) {
            if !typed.iter().any(|&(known, _)| known == ty) {
                typed.push((ty, span));
            }
        }
        let all = |to: &TypeId| typed.iter().all(|&(from, _)| self.becomes(from, *to));
        let chosen = match (typed.iter().map(|&(ty, _)| ty).find(all), typed.is_empty()) {
            (None, false) => return self.no_peer(&typed),
            (chosen, _) => chosen,
        };
        let floats = types.iter().any(|&(ty, _)| ty == self.types.common.comptime_float);
        let wanted = match wish.wanted {
            Some(ty) if self.types.is_int(ty) && floats => Some(self.types.common.f32),
            other => other,
        };
        match chosen.or(wanted) {
            Some(ty) => Ok(Some(ty)),
            None => Err(self.report(
                Diagnostic::new(
                    codes::MISSING_TYPE,
                    "the branches give untyped numbers and the choice is made at run time",
                    span,
                )
                .label("of which type is this?")
                .help("give one of them a type with `@as`, or declare the type of the result"),
            )),
        }
    }

    /// Reports the first type that does not go with those before it.
    fn no_peer<T>(&mut self, types: &[(TypeId, Span)]) -> R<T> {
        let (mut known, _) = types[0];
        for &(ty, span) in &types[1..] {
            if self.becomes(known, ty) {
                known = ty;
            } else if !self.becomes(ty, known) {
                return self.mismatch(ty, known, span);
            }
        }
        let (last, span) = types[types.len() - 1];
        self.mismatch(last, known, span)
    }

    /// A temporary for a value of a type.
    pub(crate) fn result_place(&mut self, ty: TypeId, span: Span) -> R<ResultPlace> {
        let local = match self.types.repr(ty, self.profile()) {
            Repr::Scalar(_) => {
                let machine = self.machine_ty(ty, span)?;
                self.new_local(None, LocalKind::Scalar(machine))
            }
            Repr::Void | Repr::Memory { .. } | Repr::Comptime => self.new_memory(None, ty, span)?,
        };
        Ok(ResultPlace { local, ty })
    }

    pub(crate) fn write_result(
        &mut self,
        result: ResultPlace,
        value: Operand,
        span: Span,
    ) -> R<()> {
        let value = self.coerce(value, result.ty, span)?;
        match self.types.repr(result.ty, self.profile()) {
            Repr::Scalar(_) => {
                let value = self.scalar_of(value, span)?;
                self.emit(StmtKind::Set(result.local, value), span);
                Ok(())
            }
            Repr::Void | Repr::Memory { .. } | Repr::Comptime => {
                self.store_memory(&Address::of_local(result.local), result.ty, value, span)
            }
        }
    }

    pub(crate) fn read_result(&mut self, result: ResultPlace, span: Span) -> R<Operand> {
        match self.types.repr(result.ty, self.profile()) {
            Repr::Scalar(_) => {
                let machine = self.machine_ty(result.ty, span)?;
                let expr = typed(ExprKind::Local(result.local), machine, span);
                Ok(Operand::Scalar { ty: result.ty, expr })
            }
            Repr::Void => Ok(Operand::Void),
            Repr::Memory { .. } | Repr::Comptime => {
                Ok(Operand::Memory { ty: result.ty, address: Address::of_local(result.local) })
            }
        }
    }

    pub(crate) fn if_stmt(
        &mut self,
        cond: ExprId,
        then: ExprId,
        otherwise: Option<ExprId>,
        span: Span,
    ) -> R<Flow> {
        match self.condition(cond)? {
            Ok(true) => self.expr_stmt(then, span),
            Ok(false) => match otherwise {
                Some(otherwise) => self.expr_stmt(otherwise, span),
                None => Ok(Flow::Next),
            },
            Err(cond) => {
                let (then, left) = self.arm(then);
                let (otherwise, right) = match otherwise {
                    Some(otherwise) => self.arm(otherwise),
                    None => (Vec::new(), Ok(Flow::Next)),
                };
                self.emit(StmtKind::If { cond, then, otherwise }, span);
                Ok(both(left?, right?))
            }
        }
    }

    /// A statement-like expression as a run-time arm: its statements and how it ended.
    fn arm(&mut self, id: ExprId) -> (Vec<Stmt>, R<Flow>) {
        let span = self.expr_span(id);
        self.open_list();
        self.frame_mut().depth += 1;
        let flow = self.expr_stmt(id, span);
        self.frame_mut().depth -= 1;
        (self.close_list(), flow)
    }

    /// The case values of a prong, coerced to the subject's type and fixed.
    fn case_values(&mut self, prong: &Prong, ty: TypeId) -> R<Vec<i128>> {
        let mut values = Vec::with_capacity(prong.cases.len());
        for &case in &prong.cases {
            let span = self.expr_span(case);
            let operand = self.at_comptime(|sema| sema.expr(case, Some(ty)))?;
            let value = self.need_const(operand, span)?;
            let value = self.coerce_value(value, ty, span)?;
            match self.case_key(&value) {
                Some(int) => values.push(int),
                None => {
                    let message = "a case is an integer, an enum element, a bool, an id or a type";
                    return self.fail(codes::TYPE_MISMATCH, message, span, "this case");
                }
            }
        }
        Ok(values)
    }

    /// What tells one case from another: numbers, or types by their identity.
    fn case_key(&mut self, value: &Value) -> Option<i128> {
        match value.data {
            Data::Type(ty) => Some(ty.number()),
            _ => self.fix_int(value),
        }
    }

    /// All case values of a switch, checked to be different and to cover everything.
    fn cases(&mut self, prongs: &[Prong], ty: TypeId, span: Span) -> R<Vec<Vec<i128>>> {
        let mut seen: Vec<i128> = Vec::new();
        let mut spans: Vec<Span> = Vec::new();
        let mut all = Vec::with_capacity(prongs.len());
        for prong in prongs {
            let values = self.case_values(prong, ty)?;
            for value in &values {
                if let Some(first) = seen.iter().position(|known| known == value) {
                    let message = format!("the value {} has two cases", self.case_name(*value, ty));
                    return Err(self.report(
                        Diagnostic::new(codes::DUPLICATE_CASE, message, prong.span)
                            .label("second case")
                            .secondary(spans[first], "first case"),
                    ));
                }
                seen.push(*value);
                spans.push(prong.span);
            }
            all.push(values);
        }
        if prongs.iter().any(|prong| prong.cases.is_empty()) || self.covers(&seen, ty) {
            return Ok(all);
        }
        let missing = match self.missing_cases(&seen, ty).as_slice() {
            [] => "some values have no case".to_owned(),
            names => format!("no case for {}", names.join(", ")),
        };
        Err(self.report(
            Diagnostic::new(codes::MISSING_CASE, "the switch does not cover every value", span)
                .label(missing)
                .help("add the missing cases, or `else => …`"),
        ))
    }

    /// Spelling of a case value.
    fn case_name(&self, value: i128, ty: TypeId) -> String {
        match self.types.get(ty) {
            Type::Enum(info) => {
                let found = info.elems.iter().find(|&&(_, known)| known == value);
                found.map_or(value.to_string(), |&(name, _)| format!("`{}`", self.spell(name)))
            }
            Type::Bool => format!("`{}`", value != 0),
            Type::Direction => {
                let name = DIRECTIONS.get(value as usize).copied().unwrap_or("?");
                format!("`{name}`")
            }
            Type::Meta => "of this type".to_owned(),
            _ => value.to_string(),
        }
    }

    /// The first few values without a case, if they have names.
    fn missing_cases(&self, seen: &[i128], ty: TypeId) -> Vec<String> {
        let all: Vec<i128> = match self.types.get(ty) {
            Type::Enum(info) => info.elems.iter().map(|&(_, value)| value).collect(),
            Type::Bool => vec![0, 1],
            Type::Direction => (0..5).collect(),
            _ => Vec::new(),
        };
        let missing = all.into_iter().filter(|value| !seen.contains(value)).take(4);
        missing.map(|value| self.case_name(value, ty)).collect()
    }

    fn covers(&self, seen: &[i128], ty: TypeId) -> bool {
        match self.types.get(ty) {
            Type::Enum(info) => info.elems.iter().all(|(_, value)| seen.contains(value)),
            Type::Direction => seen.len() == 5,
            _ => match super::ops::int_range(&self.types, ty) {
                Some((low, high)) => high - low < seen.len() as i128,
                None => false,
            },
        }
    }

    /// The prong that a known subject takes.
    fn chosen<'p>(
        &mut self,
        value: &Value,
        prongs: &'p [Prong],
        span: Span,
    ) -> R<Option<&'p Prong>> {
        let all = self.cases(prongs, value.ty, span)?;
        let Some(int) = self.case_key(value) else {
            let name = self.type_name(value.ty);
            let message = format!("a value of type `{name}` cannot be switched on");
            return self.fail(codes::TYPE_MISMATCH, message, span, "this switch");
        };
        let at = all.iter().position(|values| values.contains(&int));
        let fallback = || prongs.iter().find(|prong| prong.cases.is_empty());
        Ok(at.map(|at| &prongs[at]).or_else(fallback))
    }

    pub(crate) fn switch_stmt(&mut self, subject: ExprId, prongs: &[Prong], span: Span) -> R<Flow> {
        let operand = self.expr(subject, None)?;
        if let Operand::Const(value) = &operand {
            return match self.chosen(value, prongs, span)? {
                Some(prong) => self.expr_stmt(prong.body, prong.span),
                None => Ok(Flow::Next),
            };
        }
        let (value, machine, all) = self.switch_parts(operand, prongs, span)?;
        let (mut cases, mut otherwise) = (Vec::new(), Vec::new());
        let mut flow: Option<R<Flow>> = None;
        for (prong, values) in prongs.iter().zip(all) {
            let (stmts, ended) = self.arm(prong.body);
            flow = Some(match (flow, ended) {
                (None, ended) => ended,
                (Some(Err(reported)), _) | (Some(Ok(_)), Err(reported)) => Err(reported),
                (Some(Ok(a)), Ok(b)) => Ok(both(a, b)),
            });
            match prong.cases.is_empty() {
                true => otherwise = stmts,
                false => cases.push((raw_values(machine, &values), stmts)),
            }
        }
        self.emit(StmtKind::Switch { value, cases, otherwise }, span);
        flow.unwrap_or(Ok(Flow::Next))
    }

    fn switch_parts(
        &mut self,
        operand: Operand,
        prongs: &[Prong],
        span: Span,
    ) -> R<(Expr, Ty, Vec<Vec<i128>>)> {
        let ty = self.operand_type(&operand);
        if !matches!(self.types.get(ty), Type::Int { .. } | Type::Enum(_) | Type::Bool)
            && !self.types.is_id(ty)
        {
            let name = self.type_name(ty);
            let message = format!("a value of type `{name}` cannot be switched on");
            return self.fail(codes::TYPE_MISMATCH, message, span, "this switch");
        }
        let machine = self.machine_ty(ty, span)?;
        let value = self.scalar_of(operand, span)?;
        let all = self.cases(prongs, ty, span)?;
        Ok((value, machine, all))
    }

    pub(crate) fn switch_expr(
        &mut self,
        subject: ExprId,
        prongs: &[Prong],
        wish: Wish,
        span: Span,
    ) -> R<Operand> {
        let operand = self.expr(subject, None)?;
        if let Operand::Const(value) = &operand {
            return match self.chosen(value, prongs, span)? {
                Some(prong) => self.wished(prong.body, wish),
                None => Ok(self.void_operand()),
            };
        }
        let (value, machine, all) = self.switch_parts(operand, prongs, span)?;
        let mut branches = Vec::with_capacity(prongs.len());
        for prong in prongs {
            branches.push(self.branch(prong.body, wish)?);
        }
        let (lists, result) = self.join(branches, wish, span)?;
        let (mut cases, mut otherwise) = (Vec::new(), Vec::new());
        for ((prong, values), list) in prongs.iter().zip(all).zip(lists) {
            match prong.cases.is_empty() {
                true => otherwise = list,
                false => cases.push((raw_values(machine, &values), list)),
            }
        }
        self.emit(StmtKind::Switch { value, cases, otherwise }, span);
        Ok(result)
    }
}

/// How control goes on after one of two run-time arms.
fn both(a: Flow, b: Flow) -> Flow {
    match (a, b) {
        (Flow::Diverges, Flow::Diverges) => Flow::Diverges,
        _ => Flow::Next,
    }
}

fn raw_values(machine: Ty, values: &[i128]) -> Vec<u64> {
    values.iter().map(|&value| machine.mask(value as u64)).collect()
}
