//! The texts of one compilation and where their lines begin.

use std::sync::Arc;

use crate::diagnostic::{Diagnostic, codes};
use crate::span::Span;

/// The longest text that is read, in bytes. Offsets are 32 bits wide.
pub const MAX_SOURCE_BYTES: usize = 256 << 20;

/// Index of a file in a [`SourceMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// Line and column as people count them, both from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

#[derive(Clone, Debug)]
struct Source {
    path: Arc<str>,
    text: Arc<str>,
    /// Offset of the first byte of each line; never empty.
    lines: Vec<u32>,
}

/// Every text of a compilation. Files are only ever added, so a [`FileId`] stays good.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<Source>,
}

impl SourceMap {
    /// No files.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text under the path that diagnostics will show.
    pub fn add(&mut self, path: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> FileId {
        let id = FileId(u32::try_from(self.files.len()).unwrap_or(u32::MAX));
        let text = text.into();
        let breaks = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let lines = std::iter::once(0)
            .chain(breaks.map(|(at, _)| u32::try_from(at + 1).unwrap_or(u32::MAX)))
            .collect();
        self.files.push(Source { path: path.into(), text, lines });
        id
    }

    /// Adds the bytes of a file.
    ///
    /// # Errors
    /// `source-too-large` or `invalid-utf8`. The file is added then too, as far as it can be read, so
    /// that the diagnostic has a place.
    pub fn add_bytes(
        &mut self,
        path: impl Into<Arc<str>>,
        bytes: &[u8],
    ) -> Result<FileId, Box<Diagnostic>> {
        if bytes.len() > MAX_SOURCE_BYTES {
            let id = self.add(path, "");
            let message =
                format!("this file has {} bytes, more than {MAX_SOURCE_BYTES}", bytes.len());
            return Err(Box::new(Diagnostic::new(
                codes::SOURCE_TOO_LARGE,
                message,
                Span::new(id, 0, 0),
            )));
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(self.add(path, text)),
            Err(error) => {
                let good = error.valid_up_to();
                let text = std::str::from_utf8(&bytes[..good]).unwrap_or_default();
                let id = self.add(path, text);
                let at = u32::try_from(good).unwrap_or(u32::MAX);
                let message = format!("this file is not UTF-8 text: byte {good} cannot be read");
                Err(Box::new(
                    Diagnostic::new(codes::INVALID_UTF8, message, Span::new(id, at, at))
                        .label("the text is good up to here")
                        .help("save the file as UTF-8"),
                ))
            }
        }
    }

    /// How many files there are; ids are `0..len`.
    #[must_use]
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there is no file yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The file's text; empty for an id of another map.
    #[must_use]
    pub fn text(&self, file: FileId) -> &str {
        self.get(file).map_or("", |source| &source.text)
    }

    /// The file's text, shared, for those who change the map while they read.
    #[must_use]
    pub fn shared_text(&self, file: FileId) -> Arc<str> {
        self.get(file).map_or_else(|| Arc::from(""), |source| Arc::clone(&source.text))
    }

    /// The path as it was given; `<unknown>` for an id of another map.
    #[must_use]
    pub fn path(&self, file: FileId) -> &str {
        self.get(file).map_or("<unknown>", |source| &source.path)
    }

    /// The text that a span covers; empty if it does not fit the file.
    #[must_use]
    pub fn slice(&self, span: Span) -> &str {
        self.text(span.file).get(span.range()).unwrap_or("")
    }

    /// Line and column of a byte offset. An offset beyond the end counts as the end.
    #[must_use]
    pub fn position(&self, file: FileId, offset: u32) -> Position {
        let line = self.line_index(file, offset);
        let start = self.line_start(file, line);
        let text = self.text(file).as_bytes();
        let end = (offset as usize).min(text.len());
        // Continuation bytes are no characters of their own.
        let before = text.get(start as usize..end).unwrap_or(&[]);
        let column = before.iter().filter(|&&byte| byte & 0xC0 != 0x80).count() + 1;
        Position { line: line + 1, column: u32::try_from(column).unwrap_or(u32::MAX) }
    }

    /// `path:line:column` of a span's first byte.
    #[must_use]
    pub fn place(&self, span: Span) -> String {
        let Position { line, column } = self.position(span.file, span.start);
        format!("{}:{line}:{column}", self.path(span.file))
    }

    /// Index from 0 of the line that holds `offset`.
    #[must_use]
    pub fn line_index(&self, file: FileId, offset: u32) -> u32 {
        let Some(source) = self.get(file) else { return 0 };
        let after = source.lines.partition_point(|&start| start <= offset);
        u32::try_from(after.saturating_sub(1)).unwrap_or(u32::MAX)
    }

    /// Offset of the first byte of a line, counted from 0; the end of the text beyond the last.
    #[must_use]
    pub fn line_start(&self, file: FileId, line: u32) -> u32 {
        let Some(source) = self.get(file) else { return 0 };
        let end = u32::try_from(source.text.len()).unwrap_or(u32::MAX);
        source.lines.get(line as usize).copied().unwrap_or(end)
    }

    fn get(&self, file: FileId) -> Option<&Source> {
        self.files.get(file.0 as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_from_one() {
        let mut map = SourceMap::new();
        let file = map.add("a.csl", "one\nzw\u{f6}lf x\n");
        assert_eq!(map.position(file, 0), Position { line: 1, column: 1 });
        assert_eq!(map.position(file, 3), Position { line: 1, column: 4 });
        assert_eq!(map.position(file, 11), Position { line: 2, column: 7 });
        assert_eq!(map.position(file, 9999), Position { line: 3, column: 1 });
        assert_eq!(map.place(Span::new(file, 4, 5)), "a.csl:2:1");
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_in_place() {
        let mut map = SourceMap::new();
        let error = map.add_bytes("a.csl", b"const a\n= \xff;").unwrap_err();
        assert_eq!(error.code(), codes::INVALID_UTF8);
        let span = error.span().expect("has a place");
        assert_eq!(map.place(span), "a.csl:2:3");
    }
}
