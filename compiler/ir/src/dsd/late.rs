//! Settings of an operation that are known only when it begins.
//!
//! They ride in the local that holds the index: a local of 16 bits is the index alone, one of 64
//! bits with the highest bit set is such a word. What it does not give is as the instruction says.

use crate::inst::{OnControl, Unblock, VectorOptions};

/// What is done with an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// A local task is activated.
    Activate = 1,
    /// A task is unblocked.
    UnblockTask = 2,
    /// A color (wse2) or an input queue (wse3) is unblocked.
    UnblockChannel = 3,
    /// The operation ends, if the id is not 0.
    Terminate = 4,
}

/// The bit that marks a word.
pub const MARK: u64 = 1 << 63;
/// The lowest 16 bits are an index.
pub const HAS_INDEX: u64 = 1 << 48;
/// Where the id of the completion stands, of 16 bits.
pub const COMPLETION: u32 = 16;
/// Where the id of what a control wavelet does stands, of 16 bits.
pub const CONTROL: u32 = 32;
const COMPLETION_KIND: u32 = 49;
const CONTROL_KIND: u32 = 52;

/// Bits that say what is done on completion.
pub fn on_completion(doing: Doing) -> u64 {
    (doing as u64) << COMPLETION_KIND
}

/// Bits that say what a control wavelet does.
pub fn on_control(doing: Doing) -> u64 {
    (doing as u64) << CONTROL_KIND
}

/// The index in a raw local, if there is one.
pub fn index(raw: u64) -> Option<u16> {
    (raw & MARK == 0 || raw & HAS_INDEX != 0).then_some(raw as u16)
}

/// The settings with what a raw local gives; none if an id has more than 6 bits.
#[inline]
pub fn settings(options: VectorOptions, raw: u64) -> Option<VectorOptions> {
    // Most give none.
    if raw & MARK == 0 { Some(options) } else { given(options, raw) }
}

#[inline(never)]
fn given(mut options: VectorOptions, raw: u64) -> Option<VectorOptions> {
    let id = |shift: u32| u8::try_from(raw >> shift & 0xffff).ok().filter(|&id| id < 64);
    match raw >> COMPLETION_KIND & 7 {
        1 => (options.activate, options.unblock) = (Some(id(COMPLETION)?), None),
        2 => (options.activate, options.unblock) = (None, Some(Unblock::Task(id(COMPLETION)?))),
        3 => (options.activate, options.unblock) = (None, Some(Unblock::Channel(id(COMPLETION)?))),
        _ => {}
    }
    match raw >> CONTROL_KIND & 7 {
        1 => options.on_control = OnControl::Activate(id(CONTROL)?),
        2 => options.on_control = OnControl::Unblock(Unblock::Task(id(CONTROL)?)),
        3 => options.on_control = OnControl::Unblock(Unblock::Channel(id(CONTROL)?)),
        4 if raw >> CONTROL & 0xffff != 0 => options.on_control = OnControl::Terminate,
        _ => {}
    }
    Some(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_gives_what_it_names() {
        let base = VectorOptions { activate: Some(3), ..VectorOptions::default() };
        assert_eq!(index(17), Some(17));
        assert_eq!(settings(base, 17), Some(base));
        assert_eq!(index(MARK | 17), None);
        assert_eq!(index(MARK | HAS_INDEX | 17), Some(17));
        let word = MARK | on_completion(Doing::UnblockChannel) | 5 << COMPLETION;
        let got = settings(base, word).unwrap();
        assert_eq!((got.activate, got.unblock), (None, Some(Unblock::Channel(5))));
        let word = MARK | on_control(Doing::Activate) | 9 << CONTROL;
        let got = settings(base, word).unwrap();
        assert_eq!((got.activate, got.on_control), (Some(3), OnControl::Activate(9)));
        assert_eq!(settings(base, MARK | on_control(Doing::Activate) | 64 << CONTROL), None);
        let word = MARK | on_control(Doing::Terminate);
        assert_eq!(settings(base, word).unwrap().on_control, OnControl::Ignore);
        assert_eq!(settings(base, word | 1 << CONTROL).unwrap().on_control, OnControl::Terminate);
    }
}
