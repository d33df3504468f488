//! Code that several programs have.

use super::*;

/// Puts what another function makes of its argument into memory.
fn hands_on(callee: u32) -> Func {
    let mut b = function(&[Ty::I32], None);
    let (n, dst) = (b.param(0), b.local(Ty::I32));
    let func = FuncId::from_u32(callee);
    b.inst(InstData::Call { dst: Some(dst), func, args: vec![n] });
    stores(&mut b, 64, dst);
    b.terminate(Terminator::Return(None));
    b.finish()
}

fn adds(amount: u64) -> Func {
    let mut b = function(&[Ty::I32], Some(Ty::I32));
    let (n, amount) = (b.param(0), b.constant(Ty::I32, amount));
    b.inst(InstData::Binary { dst: n, op: BinaryOp::Add, lhs: n, rhs: amount });
    b.terminate(Terminator::Return(Some(n)));
    b.finish()
}

/// Runs function 0 of each program on both engines; how many functions each had compiled.
fn compiled(programs: Vec<Vec<Func>>) -> Vec<usize> {
    let mut shared = Shared::default();
    let mut pairs: Vec<Pair> =
        programs.into_iter().map(|funcs| Pair::sharing(funcs, &mut shared)).collect();
    for pair in &mut pairs {
        assert_eq!(pair.start(0, &[7]).stop, Stop::Return);
    }
    pairs.iter().map(|pair| pair.jit.compiled()).collect()
}

#[test]
fn a_function_is_compiled_once_whomever_it_calls() {
    let programs = vec![
        vec![hands_on(1), adds(1)],
        vec![hands_on(2), adds(1), adds(10)],
        vec![hands_on(1), adds(1), adds(10)],
        // A function knows its number, which faults name.
        vec![hands_on(1), adds(10)],
    ];
    assert_eq!(compiled(programs), [2, 1, 0, 1]);
}

#[test]
fn functions_that_differ_in_a_number_have_code_of_their_own() {
    let of = |amount| vec![hands_on(1), adds(amount)];
    assert_eq!(compiled(vec![of(1), of(2), of(1)]), [2, 1, 0]);
}

/// A function that is left and entered again knows by its number where it was.
#[test]
fn functions_that_wait_go_on_where_they_were() {
    let waits = |amount: u64| {
        let mut b = function(&[Ty::I32], Some(Ty::I32));
        let time = b.local(Ty::I64);
        b.inst(InstData::Clock { op: ClockOp::Read, dst: Some(time) });
        let (n, amount) = (b.param(0), b.constant(Ty::I32, amount));
        b.inst(InstData::Binary { dst: n, op: BinaryOp::Add, lhs: n, rhs: amount });
        b.terminate(Terminator::Return(Some(n)));
        b.finish()
    };
    let mut shared = Shared::default();
    for programs in [vec![hands_on(1), waits(3)], vec![hands_on(2), waits(5), waits(3)]] {
        let mut pair = Pair::sharing(programs, &mut shared);
        assert_eq!(pair.finish(0, &[7]).len(), 2);
    }
}
