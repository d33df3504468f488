use dflow_ir::ty::Ty;

use super::*;
use crate::typed::{Expr, ExprKind, Local, LocalKind};

#[test]
fn globals_lie_in_order_on_their_alignment() {
    let mut pe = program("pe.csl", 0);
    pe.globals = vec![
        global("byte", 1, 1, line(10)),
        global("word", 4, 4, line(11)),
        global("none", 0, 1, line(12)),
        global("table", 10, 16, line(13)),
    ];
    let image = Case::filled(1, 1, pe).image();
    let map = image.memory.values().next().expect("one program");
    let addresses: Vec<u32> = map.globals.iter().map(|&(_, address)| address).collect();
    assert_eq!(addresses, [16, 20, 24, 32]);
    assert_eq!((map.data_end, map.stack), (42, 2048));
    assert!(map.code > 0);
}

#[test]
fn the_stack_yields_to_data() {
    let mut pe = program("pe.csl", 0);
    pe.globals = vec![global("field", 48_000, 4, line(10))];
    let image = Case::filled(1, 1, pe).image();
    let map = image.memory.values().next().expect("one program");
    let total = map.data_end.next_multiple_of(8) + map.stack + map.code;
    assert!((256..2048).contains(&map.stack) && total <= 49_152);
}

#[test]
fn an_overflow_names_the_largest_symbols() {
    let mut pe = program("pe.csl", 0);
    let sizes = [40, 30_000, 6, 20_000, 500, 700, 900];
    let globals = sizes.iter().enumerate();
    pe.globals = globals
        .map(|(index, &size)| global(&format!("g{index}"), size, 4, line(10 + index as u32)))
        .collect();
    insta::assert_snapshot!(Case::filled(3, 1, pe.clone()).refused());
    pe.globals = vec![global("huge", u32::MAX, 4, line(10)), global("more", u32::MAX, 4, line(11))];
    insta::assert_snapshot!("overflow_of_four_gigabytes", Case::filled(1, 1, pe).refused());
}

/// `f0` calls `f1` and so on; each has a buffer.
fn chain(n: u32, buffer: u32, last_calls_first: bool) -> Program {
    let mut pe = program("pe.csl", 0);
    pe.funcs = (0..n)
        .map(|index| {
            let next = if index + 1 < n { Some(index + 1) } else { last_calls_first.then_some(0) };
            let call = |func| ExprKind::Call { func: FuncIdx(func), args: Vec::new() };
            let call = |func| Expr { kind: Box::new(call(func)), ty: None, span: line(10) };
            let kind = LocalKind::Memory { size: buffer, align: 2 };
            let stmt = |func| Stmt { kind: StmtKind::Expr(call(func)), span: line(10) };
            let body = next.map(stmt).into_iter().collect();
            Func { body, locals: vec![Local { name: None, kind }], ..func(&format!("f{index}")) }
        })
        .collect();
    pe
}

#[test]
fn deep_calls_get_a_deep_stack() {
    let stack = |program| {
        let image = Case::filled(1, 1, program).image();
        image.memory.values().next().map(|map| map.stack)
    };
    assert_eq!(stack(chain(100, 100, false)), Some(10_400));
    // A cycle counts once around.
    assert_eq!(stack(chain(100, 100, true)), Some(10_400));
    assert_eq!(stack(chain(2, 8, false)), Some(2048));
}

#[test]
fn an_indirect_call_counts_the_deepest_pointee() {
    let mut pe = chain(3, 4000, false);
    let callee = Expr {
        kind: Box::new(ExprKind::FuncAddress(FuncIdx(1))),
        ty: Some(Ty::I16),
        span: line(10),
    };
    let call = ExprKind::CallIndirect { callee, params: Vec::new(), args: Vec::new() };
    let expr = Expr { kind: Box::new(call), ty: None, span: line(10) };
    let body = vec![Stmt { kind: StmtKind::Expr(expr), span: line(10) }];
    pe.funcs.push(Func { body, ..func("indirect") });
    pe.funcs[0].body.clear();
    let image = Case::filled(1, 1, pe).image();
    assert_eq!(image.memory.values().next().map(|map| map.stack), Some(8000));
}
