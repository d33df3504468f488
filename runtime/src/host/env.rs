//! What a host program sees of the world outside: inputs, outputs, settings, a place to print.

use dflow_ir::ty::ElementType;

use crate::outcome::ConsoleLine;

/// A named input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Elements, little endian, one after the other.
    pub bytes: Vec<u8>,
    /// Type of an element, if the source of the bytes says so; otherwise the program decides.
    pub ty: Option<ElementType>,
}

/// A named output of a run that ended well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The name given by the program.
    pub name: String,
    /// Elements, little endian, one after the other.
    pub bytes: Vec<u8>,
    /// Type of an element.
    pub ty: ElementType,
}

/// The world outside, as the caller provides it.
pub trait HostEnv {
    /// Whether an input of this name was given.
    fn has_input(&self, name: &str) -> bool;

    /// The input of this name.
    ///
    /// # Errors
    /// A sentence that says why it cannot be had.
    fn input(&mut self, name: &str) -> Result<Input, String>;

    /// Where an input has its type from and how to say another one, for who reads it as `wanted`.
    fn type_hint(&self, _name: &str, _wanted: ElementType) -> Option<String> {
        None
    }

    /// The text of a setting (`--set name=text`), if it was given.
    fn setting(&self, name: &str) -> Option<String>;

    /// Takes an output. Called only after the whole program has ended well.
    ///
    /// # Errors
    /// A sentence that says why it could not be kept.
    fn output(&mut self, output: Output) -> Result<(), String>;

    /// Bytes that it keeps of what was printed: the memory limit holds for them too.
    fn kept(&self) -> u64 {
        0
    }

    /// Shows a line to the user.
    fn print(&mut self, line: &str);

    /// Shows a line that a PE has printed: its cycle first.
    fn printed(&mut self, line: &ConsoleLine) {
        self.print(&format!("@{} {}", line.cycle, line.text));
    }
}
