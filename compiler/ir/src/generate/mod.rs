//! Random valid programs and images, for property tests here and elsewhere (feature `generate`).
//!
//! Everything is made from a list of numbers: the same list gives the same program, a shorter
//! one a simpler program, so that proptest shrinks well (`vec(any::<u32>(), 0..300)`) and fuzz
//! targets can use their bytes. Invariants: what comes out is valid for every target
//! ([`crate::validate`]); [`program`] ends, keeps to its globals and stack, and seldom traps
//! (now and then it divides by zero); [`exhibit`] holds every form of instruction and declaration
//! and is not meant to run.

mod body;
mod exhibit;

pub use exhibit::{exhibit, host_exhibit, image};

use crate::func::Func;
use crate::inst::FlagOp;
use crate::loc::Loc;
use crate::program::{FuncId, Global, InitialFlag, Profile, Program, TaskBinding, TaskKind};
use crate::ty::Ty;

/// Local task that runs the last function of a generated program; active at the start.
pub const MAIN_TASK: u8 = 8;
/// Bytes of each of the two globals that a generated program works on.
pub const GLOBAL_BYTES: u32 = 512;

/// Numbers to choose by, in order; zeros when they run out.
pub struct Choices<'a> {
    numbers: std::slice::Iter<'a, u32>,
}

impl<'a> Choices<'a> {
    /// Chooses by these numbers.
    pub fn new(numbers: &'a [u32]) -> Choices<'a> {
        Choices { numbers: numbers.iter() }
    }

    /// The next number.
    pub fn number(&mut self) -> u32 {
        self.numbers.next().copied().unwrap_or(0)
    }

    /// A number below `count`.
    pub fn below(&mut self, count: u32) -> u32 {
        self.number() % count.max(1)
    }

    /// One of some things.
    pub fn one<T: Copy>(&mut self, things: &[T]) -> T {
        things[self.below(things.len() as u32) as usize]
    }

    /// Yes or no.
    pub fn yes(&mut self) -> bool {
        self.below(2) == 1
    }

    /// Whether numbers are left.
    pub fn is_exhausted(&self) -> bool {
        self.numbers.len() == 0
    }

    /// A value of a type: small, or an edge, or anything.
    pub fn value(&mut self, ty: Ty) -> u64 {
        let edges = [0, 1, u64::MAX, 1 << (ty.bits() - 1), (1 << (ty.bits() - 1)) - 1];
        let bits = match self.below(4) {
            0 => self.one(&edges),
            1 => u64::from(self.below(64)),
            2 => u64::from(self.number()) << 32 | u64::from(self.number()),
            _float_or_index => body::plain_float(ty, self.below(1000)),
        };
        ty.mask(bits)
    }

    /// The numbers left.
    fn rest(&self) -> &'a [u32] {
        self.numbers.as_slice()
    }

    fn loc(&mut self) -> Loc {
        match self.below(3) {
            0 => Loc::default(),
            _some => Loc { file: 0, line: 1 + self.below(99), column: 1 + self.below(80) },
        }
    }
}

/// A program for a PE that ends: functions that only call earlier ones, loops that count down.
/// The last function is bound to [`MAIN_TASK`] and leaves what it computed in the first global.
pub fn program(numbers: &[u32]) -> Program {
    let mut choices = Choices::new(numbers);
    let mut program = Program::empty("generated".to_owned(), Profile::Pe);
    for name in ["first", "second"] {
        let filled = choices.below(GLOBAL_BYTES + 1) as usize;
        let seed = choices.number();
        let init = (0..filled).map(|at| (seed.wrapping_mul(at as u32 + 1) >> 13) as u8).collect();
        let loc = choices.loc();
        program.globals.push(Global {
            name: name.to_owned(),
            size: GLOBAL_BYTES,
            align: 8,
            init,
            relocs: Vec::new(),
            slots: Vec::new(),
            exported: true,
            loc,
        });
    }
    let count = choices.below(4);
    // A share of the numbers for each function: none is left without.
    let rest = choices.rest();
    let mut shares = rest.chunks(rest.len().div_ceil(count as usize + 1).max(1));
    for index in 0..count {
        let mut choices = Choices::new(shares.next().unwrap_or_default());
        let params: Vec<Ty> = (0..choices.below(4)).map(|_| choices.one(&Ty::ALL)).collect();
        let ret = choices.yes().then(|| choices.one(&Ty::ALL));
        push(&mut program, &mut choices, &format!("helper{index}"), &params, ret);
    }
    let mut choices = Choices::new(shares.next().unwrap_or_default());
    let func = push(&mut program, &mut choices, "main", &[], None);
    program.tasks.push(TaskBinding {
        kind: TaskKind::Local,
        id: MAIN_TASK,
        func,
        loc: Loc::default(),
    });
    let flag = InitialFlag { op: FlagOp::Activate, id: MAIN_TASK, loc: Loc::default() };
    program.initial_flags.push(flag);
    program
}

fn push(
    program: &mut Program,
    choices: &mut Choices<'_>,
    name: &str,
    params: &[Ty],
    ret: Option<Ty>,
) -> FuncId {
    let func: Func = body::func(program, choices, name, params, ret);
    program.funcs.push(func)
}
