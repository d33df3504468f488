//! Compiling for another program: the same as the commands do, with the text they would print.

use dflow_compiler::Options;
use dflow_ir::image::Image;
use dflow_syntax::diagnostic::render::{self, Color};

use crate::source::Root;

/// What a compilation gave.
pub struct Built {
    /// The image, if there was no error.
    pub image: Option<Image>,
    /// Errors and warnings, as the commands print them, without colors.
    pub report: String,
}

/// Compiles a source file, or a program of the library, with its test blocks.
///
/// # Errors
/// There is no such file; a sentence that says so.
pub fn compile(name: &str, options: Options) -> Result<Built, String> {
    let root = Root::find(name).map_err(|failure| failure.message)?;
    let params = options.params.clone();
    let options = Options { tests: true, ..options };
    let compiled = dflow_compiler::compile(&root, root.path(), options);
    if let Some(image) = &compiled.image {
        crate::commands::check_settings(image, &params).map_err(|failure| failure.message)?;
    }
    let human = |diagnostic| render::human(&compiled.sources, diagnostic, Color::Never);
    let report = compiled.diagnostics.iter().map(human).collect();
    Ok(Built { image: compiled.image, report })
}
