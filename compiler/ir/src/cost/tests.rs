//! Costs with changed constants.

use super::*;
use crate::builder::FuncBuilder;
use crate::loc::Loc;
use crate::program::Profile;
use crate::target::TargetId;
use crate::ty::Ty;

/// Of a loop that a jump closes, and one that a branch does: what the end of each block costs, how much of that is
/// assumed, and what a branch elsewhere costs in addition.
fn ends(zero: &[&str]) -> (Vec<u32>, Vec<u32>, u32) {
    let mut b = FuncBuilder::new("f".to_owned(), &[Ty::I8], None, Loc::default());
    let cond = b.param(0);
    let [head, body, next, end] = [(); 4].map(|()| b.block());
    b.terminate(Terminator::Jump(head));
    b.switch_to(head);
    b.terminate(Terminator::Branch { cond, then: body, otherwise: next });
    b.switch_to(body);
    b.terminate(Terminator::Jump(head));
    b.switch_to(next);
    b.terminate(Terminator::Branch { cond, then: next, otherwise: end });
    b.switch_to(end);
    b.terminate(Terminator::Return(None));
    let mut program = Program::empty("test".to_owned(), Profile::Pe);
    program.funcs = [b.finish()].into_iter().collect();
    let changes: Vec<_> = zero.iter().map(|&name| (name.to_owned(), 0)).collect();
    let target = Target::custom(TargetId::Wse3, &changes).expect("constants that may be 0");
    let costs = &super::program(&program, target)[FuncId::from_u32(0)];
    let of = |slots: fn(&Slots) -> u32| {
        (0..5).map(|at| slots(&costs.end[Block::from_u32(at)])).collect()
    };
    (of(|slots| slots.all), of(|slots| slots.assumed), costs.taken.all)
}

#[test]
fn a_back_edge_takes_a_slot_whatever_the_constants() {
    let none = vec![0; 5];
    assert_eq!(ends(&[]), (vec![0, 3, 6, 3, 0], none.clone(), 3));
    // One slot for each round, which rests on no constant.
    let free = ends(&["scalar", "loop_edge", "branch_not_taken", "branch_taken"]);
    assert_eq!(free, (vec![0, 0, 1, 1, 0], none.clone(), 0));
    let elsewhere = ends(&["scalar", "loop_edge", "branch_not_taken"]);
    assert_eq!(elsewhere, (vec![0, 0, 1, 0, 0], none, 6));
}
