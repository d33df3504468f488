//! Checks the rules of the crate documentation that can be broken (`spec/ir.md`, section 2).
//!
//! [`Validated`] is the proof: engines and later phases take it, so that nobody can skip the
//! check. What is validated never makes an engine index out of range, allocate without bound or
//! meet a type it does not expect. Indices come first, alone; everything after
//! relies on them. Invariants: every struct is taken apart in full and every enum matched in
//! full; nothing here panics, whatever the input; the first fault is reported, named as in the
//! text form.

mod body;
mod host;
mod index;
mod mesh;
mod program;
mod vector;

pub use body::BodyError;
pub use index::IndexError;
pub use mesh::MeshError;
pub use program::{LimitError, ProgramError};

use std::ops::Deref;

use cranelift_entity::PrimaryMap;

use crate::func::{Block, Inst};
use crate::image::{Image, ProgramId};
use crate::program::{FuncId, Program};
use crate::target::{Target, TargetId};

/// Something that keeps the rules of the IR. Only this module makes one.
#[derive(Clone, Debug, PartialEq)]
pub struct Validated<T>(T);

impl<T> Validated<T> {
    /// Gives the value back, and the proof up.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Validated<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// A broken rule, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// In a program.
    #[error("program `{program}`: {source}")]
    Program {
        /// The program's name.
        program: String,
        /// What is wrong.
        source: Box<ProgramError>,
    },
    /// In the placement, the memory maps or the exports.
    #[error("{0}")]
    Mesh(#[from] MeshError),
}

/// A place in a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The block.
    pub block: Block,
    /// The instruction; `None` is the terminator.
    pub inst: Option<Inst>,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.inst {
            Some(inst) => write!(f, "{}, {inst}", self.block),
            None => write!(f, "{}, terminator", self.block),
        }
    }
}

/// A fault in a function, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{func} (`{name}`){}: {source}", display_place(*at))]
pub struct FuncError<E: std::error::Error + 'static> {
    /// The function.
    pub func: FuncId,
    /// Its name.
    pub name: String,
    /// Where in it; `None` is the function's head.
    pub at: Option<Place>,
    /// What is wrong.
    pub source: E,
}

fn display_place(at: Option<Place>) -> String {
    at.map(|place| format!(", {place}")).unwrap_or_default()
}

/// Checks one program by itself, for a target.
pub fn check_program(program: &Program, target: TargetId) -> Result<(), Error> {
    let target = Target::get(target);
    program::check(program, target).map_err(|source| Error::Program {
        program: program.name.clone(),
        source: Box::new(source),
    })
}

/// Checks one program by itself, for a target.
pub fn program(program: Program, target: TargetId) -> Result<Validated<Program>, Error> {
    check_program(&program, target)?;
    Ok(Validated(program))
}

/// Checks programs, each by itself, for a target.
pub fn programs(
    programs: PrimaryMap<ProgramId, Program>,
    target: TargetId,
) -> Result<Validated<PrimaryMap<ProgramId, Program>>, Error> {
    programs.values().try_for_each(|program| check_program(program, target))?;
    Ok(Validated(programs))
}

/// Checks an image: its programs, then what joins them.
pub fn check_image(image: &Image) -> Result<(), Error> {
    let pe_programs = image.programs.values();
    let host_programs = image.host.iter().chain(image.tests.iter().map(|(_, program)| program));
    pe_programs
        .chain(host_programs)
        .try_for_each(|program| check_program(program, image.target))?;
    mesh::check(image, Target::get(image.target))?;
    Ok(())
}

/// Checks an image: its programs, then what joins them.
pub fn image(image: Image) -> Result<Validated<Image>, Error> {
    check_image(&image)?;
    Ok(Validated(image))
}

#[cfg(test)]
mod tests;
