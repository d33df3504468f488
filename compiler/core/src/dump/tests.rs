use dflow_ir::dsd::FabricDsd;
use dflow_ir::dsd::op::DsdOp;
use dflow_ir::inst::FlagOp;
use dflow_ir::mesh::Color;
use dflow_ir::program::{Profile, TaskKind};
use dflow_ir::scalar::BinaryOp;
use dflow_ir::ty::Ty;
use dflow_syntax::{FileId, Span};

use crate::typed::{
    Expr, ExprKind, Func, FuncIdx, Global, GlobalIdx, LabelIdx, Local, LocalIdx, LocalKind,
    Operand, Options, Passing, Program, QueueBinding, SlotIdx, Stmt, StmtKind, Symbol, TaskBinding,
    Vector,
};

const SPAN: Span = Span { file: FileId(0), start: 0, end: 1 };
const I: LocalIdx = LocalIdx(0);

fn expr(kind: ExprKind, ty: Ty) -> Expr {
    Expr { kind: Box::new(kind), ty: Some(ty), span: SPAN }
}

fn int(value: u64) -> Expr {
    expr(ExprKind::Const(value), Ty::I16)
}

fn stmt(kind: StmtKind) -> Stmt {
    Stmt { kind, span: SPAN }
}

fn body() -> Vec<Stmt> {
    let a = || expr(ExprKind::GlobalAddress { global: GlobalIdx(0), offset: 4 }, Ty::I16);
    let memory = ExprKind::Mem1d {
        base: a(),
        extent: int(8),
        stride: int(1),
        indexed: false,
        constant: false,
    };
    let color = Color::new(3).expect("a color");
    let desc = FabricDsd {
        input: false,
        queue: 2,
        color: Some(color),
        control: false,
        indexed: false,
        advance_switch: false,
        ..FabricDsd::default()
    };
    let fabric = ExprKind::Fabric { desc, extent: expr(ExprKind::Slot(SlotIdx(0)), Ty::I16) };
    let send = Vector {
        op: DsdOp::by_name("fmovs").expect("a row"),
        dest: Operand::Fabric(expr(fabric, Ty::I64)),
        sources: vec![Operand::Memory(expr(memory, Ty::I64))],
        options: Options { asynchronous: true, activate: Some(8), ..Options::default() },
    };
    let i = || expr(ExprKind::Local(I), Ty::I16);
    let load = expr(ExprKind::Load { address: a(), offset: 2 }, Ty::F32);
    let value = expr(ExprKind::Const(1.5_f32.to_bits().into()), Ty::F32);
    let next = expr(ExprKind::Binary(BinaryOp::Add, i(), int(1)), Ty::I16);
    let less = |n| expr(ExprKind::Binary(BinaryOp::LtU, i(), int(n)), Ty::I8);
    let rung = StmtKind::If {
        cond: less(2),
        then: vec![stmt(StmtKind::Break(LabelIdx(0)))],
        otherwise: vec![stmt(StmtKind::If {
            cond: less(3),
            then: vec![stmt(StmtKind::Continue(LabelIdx(0)))],
            otherwise: vec![stmt(StmtKind::Store {
                address: a(),
                offset: 0,
                value: expr(ExprKind::Binary(BinaryOp::Mul, load, value), Ty::F32),
            })],
        })],
    };
    let step = vec![stmt(StmtKind::Set(I, next))];
    vec![
        stmt(StmtKind::While { label: LabelIdx(0), cond: less(9), step, body: vec![stmt(rung)] }),
        stmt(StmtKind::Expr(expr(ExprKind::Vector(Box::new(send)), Ty::I8))),
        stmt(StmtKind::Flag { op: FlagOp::Activate, id: int(9) }),
    ]
}

#[test]
fn a_typed_program_reads_like_code() {
    let local = |name: &str| Local { name: Some(name.into()), kind: LocalKind::Scalar(Ty::I16) };
    let buffer = Local { name: None, kind: LocalKind::Memory { size: 8, align: 4 } };
    let run = Func {
        name: "run".into(),
        params: 0,
        ret: None,
        locals: vec![local("i"), local("i"), buffer],
        labels: 1,
        passing: Passing::default(),
        body: body(),
        span: SPAN,
    };
    let a = Global {
        name: "a".into(),
        size: 40,
        align: 4,
        init: vec![1, 2, 255],
        relocs: vec![(4, Symbol::Func(FuncIdx(0)))],
        slots: vec![(8, SlotIdx(0))],
        exported: true,
        section: Some(".fast".into()),
        span: SPAN,
    };
    let color = Color::new(3).expect("a color");
    let program = Program {
        name: "pe.csl".into(),
        profile: Profile::Pe,
        slots: vec![Ty::I16],
        globals: vec![a],
        shapes: Vec::new(),
        fifos: Vec::new(),
        funcs: vec![run],
        tasks: vec![TaskBinding { kind: TaskKind::Local, id: 8, func: FuncIdx(0), span: SPAN }],
        queues: vec![QueueBinding {
            input: false,
            queue: 2,
            color,
            priority: None,
            control_table: 0,
            further: false,
            span: SPAN,
            import: None,
        }],
        control_table: None,
        rotations: Vec::new(),
        initial_flags: vec![(FlagOp::Activate, 8, SPAN)],
        initial_dsrs: Vec::new(),
        initial_config: Vec::new(),
        filter_uses: Vec::new(),
        colors: Vec::new(),
        host_links: Vec::new(),
        exports: Vec::new(),
        entry: None,
    };
    insta::assert_snapshot!(super::typed(&program));
}

#[test]
fn numbers_are_grouped() {
    let cases = [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")];
    for (number, text) in cases {
        assert_eq!(super::grouped(number), text);
    }
}
