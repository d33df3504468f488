//! The state of a machine that has stopped: its memory, with the names to find things in it.
//!
//! A file is sealed ([`dflow_ir::sealed`]) with the magic `DFLS`. What is read is checked before use.

use cranelift_entity::EntityRef as _;
use dflow_ir::image::Image;
use dflow_ir::mesh::{Coord, Rect};
use dflow_ir::sealed::{Format, Unsealed};
use dflow_ir::target::TargetId;
use serde::{Deserialize, Serialize};

/// Version of the format; states of another version are refused.
const VERSION: u32 = 1;
const FORMAT: Format = Format { magic: *b"DFLS", version: VERSION };

/// The memory of all PEs of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Hardware generation.
    pub target: TargetId,
    /// Extent of the program's rectangle in PEs: width and height.
    pub size: (u16, u16),
    /// Where on the fabric the rectangle's north-west corner is.
    pub offsets: (u32, u32),
    /// Cycles that the run took.
    pub cycles: u64,
    /// Names of each program, by the index that `pes` uses.
    pub programs: Vec<ProgramSymbols>,
    /// The PEs in row-major order: the program of each, if it has one, and its memory from
    /// address 0 on. Zeros at the end of a memory are not kept.
    pub pes: Vec<(Option<u32>, Vec<u8>)>,
}

/// The names of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramSymbols {
    /// Name of the program.
    pub name: String,
    /// Its global variables, in order of declaration.
    pub symbols: Vec<Symbol>,
}

/// A global variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Symbol {
    /// `name`, or `module.name` for one of an imported module.
    pub name: String,
    /// Byte address.
    pub address: u32,
    /// Size in bytes.
    pub size: u32,
    /// Declared with `export`.
    pub exported: bool,
}

/// Why bytes are no state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// The magic is missing.
    #[error("not a state of a dflow machine")]
    NotAState,
    /// Made by another version of the tool.
    #[error(
        "the state has format version {found}, this build reads version {VERSION}: run the program again"
    )]
    Version {
        /// The version found.
        found: u32,
    },
    /// Bytes are missing, or changed.
    #[error("the state is damaged ({0})")]
    Damaged(String),
}

impl From<Unsealed> for StateError {
    fn from(unsealed: Unsealed) -> StateError {
        match unsealed {
            Unsealed::Foreign => StateError::NotAState,
            Unsealed::Version(found) => StateError::Version { found },
            Unsealed::Damaged(how) => StateError::Damaged(how),
        }
    }
}

impl State {
    /// A state of an image's machine; `memory` gives the bytes of a PE from address 0 on.
    pub fn new(
        image: &Image,
        offsets: (u32, u32),
        cycles: u64,
        mut memory: impl FnMut(Coord) -> Vec<u8>,
    ) -> State {
        let Rect { x: _, y: _, width, height } = image.placement.rect;
        let coords = (0..height).flat_map(|y| (0..width).map(move |x| Coord { x, y }));
        let pes = coords.map(|at| {
            let program = image.program_at(at).map(|program| program.index() as u32);
            let mut bytes = memory(at);
            let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            bytes.truncate(used);
            (program, bytes)
        });
        State {
            target: image.target,
            size: (width, height),
            offsets,
            cycles,
            pes: pes.collect(),
            programs: symbols(image),
        }
    }

    /// The PE at a place of the fabric (absolute coordinates), if the program's rectangle covers
    /// it.
    pub fn on_fabric(&self, x: u32, y: u32) -> Option<Coord> {
        let x = u16::try_from(x.checked_sub(self.offsets.0)?).ok()?;
        let y = u16::try_from(y.checked_sub(self.offsets.1)?).ok()?;
        (x < self.size.0 && y < self.size.1).then_some(Coord { x, y })
    }

    /// The variable of this name on a PE, if it is the only one ([`only`]).
    pub fn symbol(&self, at: Coord, name: &str) -> Option<&Symbol> {
        let (program, _) = self.pe(at)?;
        let symbols = &self.programs.get((*program)? as usize)?.symbols;
        only(symbols.iter().map(|symbol| (symbol, &*symbol.name)), name)
    }

    /// Bytes of a PE's memory. What the file does not keep is zero.
    pub fn memory(&self, at: Coord, address: u32, bytes: u32) -> Option<Vec<u8>> {
        let (_, memory) = self.pe(at)?;
        let from = (address as usize).min(memory.len());
        let to = (address as usize + bytes as usize).min(memory.len());
        let mut found = memory[from..to].to_vec();
        found.resize(bytes as usize, 0);
        Some(found)
    }

    fn pe(&self, at: Coord) -> Option<&(Option<u32>, Vec<u8>)> {
        let inside = at.x < self.size.0 && at.y < self.size.1;
        let index = usize::from(at.y) * usize::from(self.size.0) + usize::from(at.x);
        self.pes.get(index).filter(|_| inside)
    }

    /// As bytes of a file.
    pub fn encode(&self) -> Vec<u8> {
        FORMAT.write(self)
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// They are no state, of another version, or damaged.
    pub fn decode(bytes: &[u8]) -> Result<State, StateError> {
        let state: State = FORMAT.read(bytes)?;
        state.check().map_err(|how| StateError::Damaged(how.to_owned()))?;
        Ok(state)
    }

    fn check(&self) -> Result<(), &'static str> {
        if self.pes.len() != usize::from(self.size.0) * usize::from(self.size.1) {
            return Err("it has more or fewer PEs than its rectangle");
        }
        let programs = self.programs.len();
        let known = |program: &Option<u32>| program.is_none_or(|at| (at as usize) < programs);
        if !self.pes.iter().all(|(program, _)| known(program)) {
            return Err("a PE has a program that is not there");
        }
        Ok(())
    }
}

/// What a name means among variables and their names: a variable of an imported module has its own name too, if no
/// other has it. Nothing if several are meant, as instances of a module may have variables of the same name.
pub fn only<'n, T>(all: impl Iterator<Item = (T, &'n str)>, name: &str) -> Option<T> {
    let own = |full: &str| full.rsplit('.').next() == Some(name);
    let fitting = all.filter(|(_, full)| *full == name || own(full));
    let (whole, inner): (Vec<_>, Vec<_>) = fitting.partition(|(_, full)| *full == name);
    let fitting = if whole.is_empty() { inner } else { whole };
    <[_; 1]>::try_from(fitting).ok().map(|[(one, _)]| one)
}

fn symbols(image: &Image) -> Vec<ProgramSymbols> {
    let maps = image.programs.iter().map(|(id, program)| {
        let globals = image.memory.get(id).into_iter().flat_map(|map| &map.globals);
        let symbols = globals.filter_map(|&(global, address)| {
            let global = program.globals.get(global)?;
            Some(Symbol {
                name: global.name.clone(),
                address,
                size: global.size,
                exported: global.exported,
            })
        });
        ProgramSymbols { name: program.name.clone(), symbols: symbols.collect() }
    });
    maps.collect()
}
