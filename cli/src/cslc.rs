//! The command `cslc`.

use std::ffi::OsString;

use crate::exit::Failure;
use crate::process;

/// Runs `cslc`. The first of `args` is the name of the tool. Gives the exit code; Ctrl-C and
/// panics are handled from here on, so it is for a process that does nothing else.
pub fn main(args: impl IntoIterator<Item = OsString>) -> u8 {
    let args: Vec<OsString> = args.into_iter().skip(1).collect();
    process::run("cslc", move || {
        Err(Failure::usage(format!("{} options are not understood yet", args.len())))
    })
}
