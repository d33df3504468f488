use dflow_ir::inst::{InstData, Terminator};
use dflow_ir::program::Profile;
use dflow_ir::scalar::{BinaryOp, UnaryOp};
use dflow_ir::target::TargetId;
use dflow_ir::text::{PrintOptions, print_func};
use dflow_ir::ty::Ty;
use dflow_ir::validate;
use dflow_syntax::{FileId, SourceMap, Span};

use super::{LocTable, program};
use crate::typed::{
    Expr, ExprKind, Func, FuncIdx, LabelIdx, Local, LocalIdx, LocalKind, Passing, Program, Stmt,
    StmtKind,
};

const SPAN: Span = Span { file: FileId(0), start: 0, end: 1 };
const X: LocalIdx = LocalIdx(0);

fn expr(kind: ExprKind, ty: Ty) -> Expr {
    Expr { kind: Box::new(kind), ty: Some(ty), span: SPAN }
}

fn int(value: u64) -> Expr {
    expr(ExprKind::Const(value), Ty::I16)
}

fn local(local: LocalIdx) -> Expr {
    expr(ExprKind::Local(local), Ty::I16)
}

fn binary(op: BinaryOp, lhs: Expr, rhs: Expr) -> Expr {
    let ty = if op.is_comparison() { Ty::I8 } else { Ty::I16 };
    expr(ExprKind::Binary(op, lhs, rhs), ty)
}

fn stmt(kind: StmtKind) -> Stmt {
    Stmt { kind, span: SPAN }
}

fn set(to: LocalIdx, value: Expr) -> Stmt {
    stmt(StmtKind::Set(to, value))
}

fn give(value: Expr) -> Stmt {
    stmt(StmtKind::Return(Some(value)))
}

/// A function of one `i16` and a second local of that type.
fn func(labels: u32, body: Vec<Stmt>) -> Func {
    let local = |name: &str| Local { name: Some(name.into()), kind: LocalKind::Scalar(Ty::I16) };
    let ret = Some(Ty::I16);
    let locals = vec![local("x"), local("y")];
    let passing = Passing::default();
    Func { name: "f".into(), params: 1, ret, locals, labels, passing, body, span: SPAN }
}

fn typed(funcs: Vec<Func>) -> Program {
    Program {
        name: "p".into(),
        profile: Profile::Pe,
        slots: Vec::new(),
        globals: Vec::new(),
        shapes: Vec::new(),
        fifos: Vec::new(),
        funcs,
        tasks: Vec::new(),
        queues: Vec::new(),
        control_table: None,
        rotations: Vec::new(),
        initial_flags: Vec::new(),
        initial_dsrs: Vec::new(),
        initial_config: Vec::new(),
        filter_uses: Vec::new(),
        colors: Vec::new(),
        host_links: Vec::new(),
        exports: Vec::new(),
        entry: None,
    }
}

fn lower(typed: &Program) -> dflow_ir::program::Program {
    let mut sources = SourceMap::new();
    sources.add("p.csl", "fn f() void {}\n");
    program(typed, &LocTable::new(&sources))
}

fn lowered(labels: u32, body: Vec<Stmt>) -> String {
    let program = lower(&typed(vec![func(labels, body)]));
    assert_eq!(validate::check_program(&program, TargetId::Wse2), Ok(()));
    let funcs = program.funcs.iter();
    funcs.map(|(id, func)| print_func(id, func, PrintOptions::default())).collect()
}

#[test]
fn values_are_computed_where_they_are_wanted() {
    let sum = binary(BinaryOp::Add, local(X), int(1));
    let product = binary(BinaryOp::Mul, sum, local(X));
    insta::assert_snapshot!(lowered(0, vec![set(X, product), give(local(X))]));
}

#[test]
fn an_if_whose_branches_both_end_leaves_no_open_block() {
    let cond = binary(BinaryOp::Eq, local(X), int(0));
    let (then, otherwise) = (vec![give(int(1))], vec![give(int(2))]);
    let body = vec![stmt(StmtKind::If { cond, then, otherwise })];
    insta::assert_snapshot!(lowered(0, body));
}

#[test]
fn continue_goes_to_the_step_and_break_behind_the_loop() {
    let label = LabelIdx(0);
    let body = vec![stmt(StmtKind::If {
        cond: binary(BinaryOp::Eq, local(X), int(3)),
        then: vec![stmt(StmtKind::Continue(label)), set(X, int(9))],
        otherwise: vec![stmt(StmtKind::Break(label))],
    })];
    let cond = binary(BinaryOp::LtU, local(X), int(10));
    let step = vec![set(X, binary(BinaryOp::Add, local(X), int(1)))];
    let body = vec![stmt(StmtKind::While { label, cond, step, body }), give(local(X))];
    insta::assert_snapshot!(lowered(1, body));
}

#[test]
fn an_endless_loop_ends_the_function() {
    let label = LabelIdx(0);
    let cond = expr(ExprKind::Const(1), Ty::I8);
    let body = vec![stmt(StmtKind::While { label, cond, step: Vec::new(), body: Vec::new() })];
    insta::assert_snapshot!(lowered(1, body));
}

#[test]
fn a_switch_masks_its_cases_and_goes_on_behind() {
    let cases = vec![(vec![0xffff_ffff, 2], vec![set(X, int(1))]), (vec![3], Vec::new())];
    let switch = StmtKind::Switch { value: local(X), cases, otherwise: Vec::new() };
    insta::assert_snapshot!(lowered(0, vec![stmt(switch), give(local(X))]));
}

#[test]
fn equal_signatures_of_indirect_calls_are_one() {
    let call = |n: usize| {
        let callee = expr(ExprKind::FuncAddress(FuncIdx(0)), Ty::I16);
        let kind = ExprKind::CallIndirect {
            callee,
            params: vec![Ty::I16; n],
            args: (0..n).map(|_| local(X)).collect(),
        };
        stmt(StmtKind::Expr(expr(kind, Ty::I16)))
    };
    let body = vec![call(1), call(1), call(2), give(int(0))];
    let program = lower(&typed(vec![func(0, body)]));
    assert_eq!(program.signatures.len(), 2);
    let insts = program.funcs.values().flat_map(|func| func.insts.values());
    let sigs = insts.filter_map(|inst| match inst {
        InstData::CallIndirect { sig, .. } => Some(sig.as_u32()),
        _ => None,
    });
    assert_eq!(sigs.collect::<Vec<_>>(), [0, 0, 1]);
}

#[test]
fn long_chains_and_ladders_need_no_stack() {
    let n = 100_000;
    let sum = (0..n).fold(local(X), |sum, _| binary(BinaryOp::Add, sum, int(1)));
    let nots =
        (0..n).fold(local(X), |value, _| expr(ExprKind::Unary(UnaryOp::BitNot, value), Ty::I16));
    let ladder = (0..n).fold(Vec::new(), |otherwise, k| {
        let cond = binary(BinaryOp::Eq, local(X), int(k));
        vec![stmt(StmtKind::If { cond, then: vec![set(X, int(1))], otherwise })]
    });
    let mut body = vec![set(X, sum), set(X, nots)];
    body.extend(ladder);
    body.push(give(local(X)));
    let program = typed(vec![func(0, body)]);
    let lowered = lower(&program);
    let func = lowered.funcs.values().next().expect("one function");
    let n = n as usize;
    // Two per term, one per negation, three per rung.
    assert_eq!(func.insts.len(), 2 * n + n + 3 * n);
    let unreachable = func.blocks.values().filter(|b| b.terminator == Terminator::Unreachable);
    assert_eq!(unreachable.count(), 0);
    assert!(crate::dump::typed(&program).len() > 10 * n);
    // Dropping such a tree recurses; the front end never drops one on a small stack.
    std::mem::forget(program);
}
