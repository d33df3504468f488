//! What is estimated of loops, beside what engines charge for their rounds.

use dflow_ir::cost;
use dflow_ir::inst::Terminator;
use dflow_ir::program::{FuncId, Profile};
use dflow_ir::target::TargetId;
use dflow_ir::ty::Ty;
use dflow_syntax::{FileId, SourceMap, Span};

use super::*;
use crate::lower::{self, LocTable};
use crate::typed::{Func, LabelIdx, Local, LocalKind};

const SPAN: Span = Span { file: FileId(0), start: 0, end: 1 };
const COUNTER: LocalIdx = LocalIdx(0);

fn expr(kind: ExprKind, ty: Ty) -> Expr {
    Expr { kind: Box::new(kind), ty: Some(ty), span: SPAN }
}

fn int(value: u64) -> Expr {
    expr(ExprKind::Const(value), Ty::I16)
}

fn counter() -> Expr {
    expr(ExprKind::Local(COUNTER), Ty::I16)
}

fn stmt(kind: StmtKind) -> Stmt {
    Stmt { kind, span: SPAN }
}

/// A program whose one function is a loop without a body.
fn program(cond: Expr, step: Vec<Stmt>) -> Program {
    let round = StmtKind::While { label: LabelIdx(0), cond, step, body: Vec::new() };
    of(vec![stmt(StmtKind::Set(COUNTER, int(0))), stmt(round)])
}

/// A program whose one function does this.
fn of(body: Vec<Stmt>) -> Program {
    let locals = vec![Local { name: None, kind: LocalKind::Scalar(Ty::I16) }];
    let func = Func {
        name: "f".into(),
        params: 0,
        ret: None,
        locals,
        labels: 1,
        passing: crate::typed::Passing::default(),
        body,
        span: SPAN,
    };
    Program { funcs: vec![func], ..Program::empty("p".into(), Profile::Pe) }
}

fn endless() -> Program {
    program(expr(ExprKind::Const(1), Ty::I8), Vec::new())
}

/// Ten rounds.
fn counted() -> Program {
    let step = expr(ExprKind::Binary(BinaryOp::Add, counter(), int(1)), Ty::I16);
    let cond = expr(ExprKind::Binary(BinaryOp::LtU, counter(), int(10)), Ty::I8);
    program(cond, vec![stmt(StmtKind::Set(COUNTER, step))])
}

/// Ten rounds, the last of which is known for it ahead of the step.
fn counted_behind() -> Program {
    let step = expr(ExprKind::Binary(BinaryOp::Add, counter(), int(7000)), Ty::I16);
    let goes_on = expr(ExprKind::Binary(BinaryOp::LtU, counter(), int(58_000)), Ty::I8);
    let otherwise = vec![stmt(StmtKind::Break(LabelIdx(0)))];
    let leave = StmtKind::If { cond: goes_on, then: Vec::new(), otherwise };
    let steps = vec![stmt(leave), stmt(StmtKind::Set(COUNTER, step))];
    program(expr(ExprKind::Const(1), Ty::I8), steps)
}

fn target(zero: &[&str]) -> &'static Target {
    let changes: Vec<_> = zero.iter().map(|&name| (name.to_owned(), 0)).collect();
    Target::custom(TargetId::Wse3, &changes).expect("constants that may be 0")
}

/// What engines charge for a round: all blocks of the function but the first, and the one that returns.
fn charged(program: &Program, target: &Target) -> u64 {
    let mut sources = SourceMap::new();
    sources.add("p.csl", "fn f() void {}\n");
    let program = lower::program(program, &LocTable::new(&sources));
    let id = FuncId::from_u32(0);
    let (func, costs) = (&program.funcs[id], &cost::program(&program, target)[id]);
    let rounds = func.blocks.iter().skip(1);
    let rounds = rounds.filter(|(_, data)| !matches!(data.terminator, Terminator::Return(_)));
    let block = |insts: &[_]| insts.iter().map(|&inst| costs.inst[inst].all).sum::<u32>();
    rounds.map(|(at, data)| u64::from(block(&data.insts) + costs.end[at].all)).sum()
}

#[test]
fn a_round_costs_what_engines_charge() {
    let free = ["scalar", "loop_edge", "branch_not_taken", "branch_taken"];
    for (zero, round) in [(&free[..1], 6), (&free[..2], 1), (&free[..], 1)] {
        let target = target(zero);
        assert_eq!(cost(&endless(), FuncIdx(0), target), round, "{zero:?}");
        assert_eq!(charged(&endless(), target), round, "{zero:?}");
    }
    for (zero, round) in [(&["scalar", "branch_taken"][..], 9), (&free[..], 1)] {
        let target = target(zero);
        assert_eq!(cost(&counted(), FuncIdx(0), target), 10 * round, "{zero:?}");
        assert_eq!(charged(&counted(), target), round, "{zero:?}");
    }
}

#[test]
fn rounds_of_a_loop_that_asks_ahead_of_its_step_are_counted() {
    let target = target(&[]);
    let costs = [counted_behind(), counted()].map(|program| cost(&program, FuncIdx(0), target));
    // Ten rounds of ten slots each, the edges back among them, what leaving takes, and the return.
    assert_eq!(costs, [107, 107]);
}
