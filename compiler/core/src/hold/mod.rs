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

use crate::typed::Program;
use effects::World;

/// Decides for all values of a program, and leaves none open.
pub(crate) fn settle(program: &mut Program) {
    if program.funcs.iter().any(|func| func.passing.holds > 0) {
        let plans = {
            let world = World::of(program);
            (0..program.funcs.len()).map(|func| region::copied(&world, func)).collect::<Vec<_>>()
        };
        for (func, copied) in program.funcs.iter_mut().zip(plans) {
            rewrite::apply(func, &copied);
        }
    }
    if program.funcs.iter().any(share::may_share) {
        let plans = {
            let world = World::of(program);
            let funcs = program.funcs.iter().enumerate();
            funcs.map(|(at, func)| share::shared(&world, at, func)).collect::<Vec<_>>()
        };
        for (func, shared) in program.funcs.iter_mut().zip(plans) {
            share::apply(func, &shared);
        }
    }
}
