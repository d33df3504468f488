//! Requests as text, and where they were made.

use std::collections::BTreeMap;

use dflow_syntax::{FileId, Span};

use crate::session::Session;

/// The name of the text that is made of the requests.
pub(super) const NAME: &str = "layout";

/// A request's line, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark(u32);

/// One line per request.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    lines: Vec<String>,
    /// File and line of each request, if somebody said.
    places: Vec<Option<(u32, u32)>>,
    files: Vec<String>,
    here: Option<(u32, u32)>,
}

impl Notes {
    /// Adds a line: a comment, or a declaration of the language.
    pub(super) fn add(&mut self, line: String) -> Mark {
        let line = line.replace(['\n', '\r'], " ");
        self.lines.push(line);
        self.places.push(self.here);
        Mark((self.lines.len() - 1) as u32)
    }

    pub(super) fn at(&mut self, file: &str, line: u32) {
        let known = self.files.iter().position(|known| known == file);
        let index = known.unwrap_or_else(|| {
            self.files.push(file.to_owned());
            self.files.len() - 1
        });
        self.here = Some((index as u32, line));
    }

    pub(super) fn nowhere(&mut self) {
        self.here = None;
    }

    pub(super) fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// A caller's file, and where its lines begin and end.
type Opened = (FileId, Vec<(u32, u32)>);

/// Places of requests as spans.
pub(super) struct Places {
    spans: Vec<Span>,
}

impl Places {
    /// Looks for the callers' files; `own` is the text of the requests.
    pub(super) fn new(cx: &mut Session<'_>, notes: &Notes, own: FileId) -> Places {
        let own_lines = lines(cx, own);
        let mut files: BTreeMap<u32, Option<Opened>> = BTreeMap::new();
        let mut spans = Vec::with_capacity(notes.lines.len());
        for (index, place) in notes.places.iter().enumerate() {
            let named = place.and_then(|(file, line)| {
                let path = &notes.files[file as usize];
                let known = files.entry(file).or_insert_with(|| open(cx, path)).as_ref()?;
                let &(start, end) = known.1.get(line.checked_sub(1)? as usize)?;
                Some(Span::new(known.0, start, end))
            });
            let (start, end) = own_lines.get(index).copied().unwrap_or_default();
            spans.push(named.unwrap_or_else(|| Span::new(own, start, end)));
        }
        Places { spans }
    }

    /// The place of a request.
    pub(super) fn span(&self, mark: Mark) -> Span {
        self.spans[mark.0 as usize]
    }
}

fn open(cx: &mut Session<'_>, path: &str) -> Option<Opened> {
    let bytes = cx.world.read(path).ok()?;
    std::str::from_utf8(&bytes).ok()?;
    let id = cx.sources.add_bytes(path, &bytes).ok()?;
    Some((id, lines(cx, id)))
}

/// Start and end of what stands on each line.
fn lines(cx: &Session<'_>, file: FileId) -> Vec<(u32, u32)> {
    let mut start = 0;
    let text = cx.sources.shared_text(file);
    let trimmed = |line: &str| {
        let first = start + line.len() - line.trim_start().len();
        let bounds = (first as u32, (first + line.trim().len()) as u32);
        start += line.len();
        bounds
    };
    text.split_inclusive('\n').map(trimmed).collect()
}
