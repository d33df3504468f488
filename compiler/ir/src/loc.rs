//! Places in the user's source, as the runtime knows them.

use serde::{Deserialize, Serialize};

/// A place: index into [`crate::image::Image::files`], line and column, both from 1.
/// Line 0 means "no place" (synthesized code).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct Loc {
    /// Index of the file.
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}
