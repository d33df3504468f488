//! Wavelets and the commands in a control wavelet's payload.

use serde::{Deserialize, Serialize};

/// What travels: 32 bits and the control bit (the color is where it travels).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct Wavelet {
    /// Payload; the upper half may be an index.
    pub payload: u32,
    /// Carries switch commands and an entry point.
    pub control: bool,
}

/// A switch command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Command {
    /// Nothing.
    Nop,
    /// To the next position.
    Advance,
    /// To position 0.
    Reset,
    /// Suspend the color.
    Teardown,
}
