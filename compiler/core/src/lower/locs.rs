//! Places of the source as the runtime knows them.

use std::cell::Cell;

use dflow_ir::loc::Loc;
use dflow_syntax::{SourceMap, Span};

/// Turns spans into lines and columns.
///
/// Remembers the last answer, since neighboring questions are about neighboring places and a
/// line may be megabytes long.
pub(crate) struct LocTable<'s> {
    sources: &'s SourceMap,
    last: Cell<Option<(Loc, u32)>>,
}

impl<'s> LocTable<'s> {
    /// Over the texts of a compilation.
    pub(crate) fn new(sources: &'s SourceMap) -> LocTable<'s> {
        LocTable { sources, last: Cell::new(None) }
    }

    /// Line and column of a span's first byte.
    pub(crate) fn loc(&self, span: Span) -> Loc {
        let file = span.file;
        let line = self.sources.line_index(file, span.start) + 1;
        let column = match self.last.get() {
            Some((known, offset)) if known.file == file.0 && known.line == line => {
                self.column_from(known, offset, span)
            }
            Some(_) | None => self.sources.position(file, span.start).column,
        };
        let loc = Loc { file: file.0, line, column };
        self.last.set(Some((loc, span.start)));
        loc
    }

    /// Column of a place on the line of a known one.
    fn column_from(&self, known: Loc, offset: u32, span: Span) -> u32 {
        let text = self.sources.text(span.file).as_bytes();
        let (first, last) = (offset.min(span.start), offset.max(span.start));
        let between = text.get(first as usize..last as usize).unwrap_or(&[]);
        // Continuation bytes are no characters of their own.
        let distance = between.iter().filter(|&&byte| byte & 0xC0 != 0x80).count() as u32;
        if span.start >= offset { known.column + distance } else { known.column - distance }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_agree_with_the_source_map_in_any_order() {
        let mut sources = SourceMap::new();
        let file = sources.add("a.csl", "one\nzw\u{f6}lf x y z\nthree\n");
        let locs = LocTable::new(&sources);
        for start in [4, 11, 13, 5, 8, 0, 12, 4, 17, 2] {
            let position = sources.position(file, start);
            let expected = Loc { file: 0, line: position.line, column: position.column };
            assert_eq!(locs.loc(Span::new(file, start, start + 1)), expected);
        }
    }
}
