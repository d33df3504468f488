//! `dflowc build`: sources to an image.

use std::path::PathBuf;

use serde_json::json;

use super::{compile, options, refused, say_json};
use crate::args::BuildArgs;
use crate::data::{check_not_read, check_place, write_file};
use crate::dflowc::TOOL;
use crate::diagnostics;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::patience::Patience;
use crate::source::Root;

/// Builds an image, whole or not at all.
///
/// # Errors
/// The source cannot be found or the image cannot be written.
pub(crate) fn execute(args: &BuildArgs) -> Result<Exit, Failure> {
    let root = Root::source(&args.file)?;
    let default = PathBuf::from(format!("{}.dfi", root.stem()));
    let output = args.output.as_ref().unwrap_or(&default);
    check_place(output)?;
    let mut options = options(&args.compile.given)?;
    options.tests = true;
    let json = args.compile.json;
    let interrupt = Interrupt::install(TOOL)?;
    let compiled = compile(root, options, json, &Patience::new(&interrupt))?;
    let Some(image) = &compiled.image else { return refused(&compiled, json) };
    super::names::check_settings(image, &args.compile.given.settings)?;
    check_not_read(output, diagnostics::files(&compiled.sources))?;
    let bytes = image.encode();
    interrupt.listen();
    write_file(output, &bytes, &interrupt)?;
    if json {
        say_json(&json!({
            "status": Exit::Success.word(),
            "image": output.display().to_string(),
            "bytes": bytes.len(),
            "diagnostics": diagnostics::json(&compiled.sources, &compiled.diagnostics),
        }))?;
    }
    Ok(Exit::Success)
}
