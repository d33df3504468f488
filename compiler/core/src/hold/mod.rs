//! Values of several words: read where they lie, or from a copy.
//!
//! Analysis notes where an array or struct is read as a value ([`StmtKind::Hold`]) and leaves open where that value
//! is while it is in use: as an argument, as a parameter of an inline function, as what a loop captures, as part of
//! a literal. Here it is decided. A value stays where it is if nothing can write there before its last use, else it
//! is copied where it was read.
//!
//! What a function may write is what its statements write, and those of all that it calls. Stores go to a variable
//! if the way from it to the address is seen; all others may go to any variable whose address somebody got hold of.
//! An operation writes when it is issued: one that is under way already is the program's own business
//! (`spec/language.md`, section 2). Indices stay within their variable.
//!
//! [`StmtKind::Hold`]: crate::typed::StmtKind::Hold

mod effects;
mod events;
mod region;
mod rewrite;
mod roots;
mod share;

use crate::typed::{Func, Program};
use effects::World;

/// Decides for all values of a program, and leaves none open.
pub(crate) fn settle(program: &mut Program) {
    if program.funcs.iter().any(|func| func.passing.holds > 0) {
        let copied = of_each(program, |world, func, _| region::copied(world, func));
        let funcs = program.funcs.iter_mut().zip(copied);
        funcs.for_each(|(func, copied)| rewrite::apply(func, &copied));
    }
    if program.funcs.iter().any(share::may_share) {
        let shared = of_each(program, share::shared);
        let funcs = program.funcs.iter_mut().zip(shared);
        funcs.for_each(|(func, shared)| share::apply(func, &shared));
    }
}

/// What is decided of each function, which depends on the whole program.
fn of_each<T>(program: &Program, decide: impl Fn(&World<'_>, usize, &Func) -> T) -> Vec<T> {
    let world = World::of(program);
    program.funcs.iter().enumerate().map(|(at, func)| decide(&world, at, func)).collect()
}
