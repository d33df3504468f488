//! Everything a run needs, in one piece.
//!
//! Relocations stay as they are: the runtime adds addresses when it loads a program.

use dflow_ir::image::Image;
use dflow_ir::program::Program;
use dflow_syntax::FileId;

use crate::place::Placed;
use crate::plan::Plan;
use crate::session::Session;

/// Puts the image together. `host` and `tests` are the lowered host and test blocks.
pub(crate) fn link(
    cx: &Session<'_>,
    plan: &Plan,
    placed: Placed,
    host: Option<Program>,
    tests: Vec<(String, Program)>,
) -> Image {
    let Placed { programs, memory, placement, exports, streams } = placed;
    let files = (0..cx.sources.len() as u32).map(|file| cx.sources.path(FileId(file)).to_owned());
    Image {
        target: cx.options.target,
        files: files.collect(),
        programs,
        memory,
        placement,
        exports,
        host,
        tests,
        params: plan.params.clone(),
        memcpy: plan.memcpy.clone(),
        streams,
    }
}
