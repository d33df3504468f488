//! What the README shows is true: its program compiles, and its picture is that program's.

use dflow_compiler::{MemoryWorld, Options, Stage};
use dflow_syntax::diagnostic::render;

use crate::world::repository;

/// The text of the first fenced block whose contents begin with `start`.
fn block(text: &str, start: &str) -> String {
    let blocks = text.split("\n```").skip(1).filter_map(|block| block.split_once('\n'));
    let found = blocks.map(|(_, inside)| inside).find(|inside| inside.starts_with(start));
    found.unwrap_or_else(|| panic!("README.md has no block that begins with `{start}`")).to_owned()
}

#[test]
fn the_picture_is_that_of_the_program() {
    let text = std::fs::read_to_string(repository().join("README.md")).unwrap_or_default();
    let (source, picture) = (block(&text, "param width"), block(&text, "mesh "));
    let world = MemoryWorld::new().with("adder.dfl", source + "\n");
    let (drawn, compiled) =
        dflow_compiler::dump(&world, "adder.dfl", Options::default(), Stage::Layout);
    let said: Vec<_> =
        compiled.diagnostics.iter().map(|d| render::short(&compiled.sources, d)).collect();
    assert!(said.is_empty(), "{}", said.join("\n"));
    assert!(drawn.starts_with(&picture), "the tool draws now:\n{drawn}");
}
