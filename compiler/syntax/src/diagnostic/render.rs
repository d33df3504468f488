//! Diagnostics as text: for people, one line each, and as JSON. The only user of codespan-reporting.

use std::fmt::Write as _;
use std::ops::Range;

use codespan_reporting::diagnostic as cs;
use codespan_reporting::files::{Error, Files};
use codespan_reporting::term;
use serde_json::{Value, json};

use super::{Diagnostic, Frame, Label, Severity};
use crate::{FileId, SourceMap, Span};

/// A longer line would fill the screen: places in it are named, not shown.
const MAX_SNIPPET_LINE: u32 = 400;
/// Of a longer trace the middle is left out.
const MAX_FRAMES: usize = 12;

/// Whether terminal colors are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// Plain text.
    Never,
    /// ANSI escape sequences.
    Always,
}

/// The full form, with source snippets, help and trace. Ends with an empty line.
#[must_use]
pub fn human(sources: &SourceMap, diagnostic: &Diagnostic, color: Color) -> String {
    let config = term::Config { tab_width: 2, ..term::Config::default() };
    let report = to_codespan(sources, diagnostic);
    let files = Map(sources);
    let mut text = match color {
        Color::Never => term::emit_into_string(&config, &files, &report).ok(),
        Color::Always => {
            let styles = term::Styles::default();
            let mut buffer = term::termcolor::Buffer::ansi();
            let mut writer = term::StylesWriter::new(&mut buffer, &styles);
            term::emit_to_write_style(&mut writer, &config, &files, &report)
                .ok()
                .map(|()| String::from_utf8_lossy(buffer.as_slice()).into_owned())
        }
    }
    // Rendering fails only for places outside their file; the message must still be seen.
    .unwrap_or_else(|| short(sources, diagnostic) + "\n");
    let trace = trace_lines(sources, diagnostic.trace());
    if !trace.is_empty() {
        text.truncate(text.trim_end_matches('\n').len());
        text.push('\n');
        text.push_str(&trace);
        text.push('\n');
    }
    text
}

/// One line: `path:line:column: error[code]: message`, without a line break.
#[must_use]
pub fn short(sources: &SourceMap, diagnostic: &Diagnostic) -> String {
    let place = diagnostic.span().map_or_else(String::new, |span| sources.place(span) + ": ");
    format!(
        "{place}{}[{}]: {}",
        diagnostic.severity().name(),
        diagnostic.code().id(),
        diagnostic.message()
    )
}

/// Every field, with lines and columns from 1 and byte offsets from 0.
#[must_use]
pub fn json(sources: &SourceMap, diagnostic: &Diagnostic) -> Value {
    let secondary: Vec<_> =
        diagnostic.secondary_labels().iter().map(|label| label_json(sources, label)).collect();
    let trace: Vec<_> = diagnostic.trace().iter().map(|frame| frame_json(sources, frame)).collect();
    json!({
        "code": diagnostic.code().id(),
        "severity": diagnostic.severity().name(),
        "message": diagnostic.message(),
        "primary": diagnostic.primary().map(|label| label_json(sources, label)),
        "secondary": secondary,
        "help": diagnostic.help_texts(),
        "trace": trace,
    })
}

fn to_codespan(sources: &SourceMap, diagnostic: &Diagnostic) -> cs::Diagnostic<FileId> {
    let severity = match diagnostic.severity() {
        Severity::Error => cs::Severity::Error,
        Severity::Warning => cs::Severity::Warning,
        Severity::Note => cs::Severity::Note,
    };
    let mut notes = Vec::new();
    let mut labels = Vec::new();
    let primary = diagnostic.primary().map(|label| (cs::LabelStyle::Primary, label));
    let secondary =
        diagnostic.secondary_labels().iter().map(|label| (cs::LabelStyle::Secondary, label));
    for (style, label) in primary.into_iter().chain(secondary) {
        if can_show(sources, label.span) {
            let shown = cs::Label::new(style, label.span.file, label.span.range());
            labels.push(shown.with_message(&label.message));
        } else {
            let place = sources.place(label.span);
            let words = if label.message.is_empty() { "here" } else { &label.message };
            notes.push(format!("at {place}: {words} (the line cannot be shown)"));
        }
    }
    notes.extend(diagnostic.help_texts().iter().map(|help| format!("help: {help}")));
    cs::Diagnostic::new(severity)
        .with_code(diagnostic.code().id())
        .with_message(diagnostic.message())
        .with_labels(labels)
        .with_notes(notes)
}

fn can_show(sources: &SourceMap, span: Span) -> bool {
    let text = sources.text(span.file);
    let fits = |offset: u32| {
        let line = sources.line_index(span.file, offset);
        let start = sources.line_start(span.file, line);
        let end = sources.line_start(span.file, line + 1);
        // Control characters would reach the terminal as they are.
        let plain = |byte: &u8| !byte.is_ascii_control() || matches!(byte, b'\t' | b'\r' | b'\n');
        end - start <= MAX_SNIPPET_LINE
            && text.as_bytes()[start as usize..end as usize].iter().all(plain)
    };
    text.get(span.range()).is_some() && fits(span.start) && fits(span.end)
}

fn trace_lines(sources: &SourceMap, trace: &[Frame]) -> String {
    let mut text = String::new();
    let left_out = trace.len().saturating_sub(MAX_FRAMES);
    for (at, frame) in trace.iter().enumerate() {
        let hidden = left_out > 0 && (MAX_FRAMES / 2..MAX_FRAMES / 2 + left_out).contains(&at);
        if hidden && at == MAX_FRAMES / 2 {
            let _ = writeln!(text, "  ... {left_out} more");
        } else if !hidden {
            let _ = writeln!(text, "  {}", frame_line(sources, frame));
        }
    }
    text
}

fn frame_line(sources: &SourceMap, frame: &Frame) -> String {
    match frame {
        Frame::Call { name, span } => format!("in `{name}`, called at {}", sources.place(*span)),
        Frame::Instance { file, span, first_pe, count } => {
            let on = match first_pe {
                Some((x, y)) if *count > 1 => format!(" on {count} PEs, first ({x}, {y})"),
                Some((x, y)) => format!(" on PE ({x}, {y})"),
                None => String::new(),
            };
            let place = sources.place(*span);
            format!("in the instance of {} made at {place}{on}", sources.path(*file))
        }
        Frame::Loop { variable, value, span } => {
            format!("in the loop at {} with {variable} = {value}", sources.place(*span))
        }
    }
}

fn label_json(sources: &SourceMap, label: &Label) -> Value {
    let mut value = span_json(sources, label.span);
    value["message"] = json!(label.message);
    value
}

fn span_json(sources: &SourceMap, span: Span) -> Value {
    let start = sources.position(span.file, span.start);
    let end = sources.position(span.file, span.end);
    json!({
        "file": sources.path(span.file),
        "start": { "offset": span.start, "line": start.line, "column": start.column },
        "end": { "offset": span.end, "line": end.line, "column": end.column },
    })
}

fn frame_json(sources: &SourceMap, frame: &Frame) -> Value {
    match frame {
        Frame::Call { name, span } => {
            json!({ "kind": "call", "name": name, "at": span_json(sources, *span) })
        }
        Frame::Instance { file, span, first_pe, count } => json!({
            "kind": "instance",
            "file": sources.path(*file),
            "at": span_json(sources, *span),
            "first_pe": first_pe.map(|(x, y)| json!([x, y])),
            "count": count,
        }),
        Frame::Loop { variable, value, span } => json!({
            "kind": "loop",
            "variable": variable,
            "value": value,
            "at": span_json(sources, *span),
        }),
    }
}

/// The source map as codespan-reporting wants to see it.
struct Map<'a>(&'a SourceMap);

impl<'a> Files<'a> for Map<'a> {
    type FileId = FileId;
    type Name = &'a str;
    type Source = &'a str;

    fn name(&'a self, id: FileId) -> Result<&'a str, Error> {
        Ok(self.0.path(id))
    }

    fn source(&'a self, id: FileId) -> Result<&'a str, Error> {
        Ok(self.0.text(id))
    }

    fn line_index(&'a self, id: FileId, byte_index: usize) -> Result<usize, Error> {
        let offset = u32::try_from(byte_index).unwrap_or(u32::MAX);
        Ok(self.0.line_index(id, offset) as usize)
    }

    fn line_range(&'a self, id: FileId, line_index: usize) -> Result<Range<usize>, Error> {
        let line = u32::try_from(line_index).unwrap_or(u32::MAX);
        let start = self.0.line_start(id, line) as usize;
        let end = self.0.line_start(id, line.saturating_add(1)) as usize;
        Ok(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes;

    fn example() -> (SourceMap, Diagnostic) {
        let mut sources = SourceMap::new();
        let file = sources.add("layout.csl", "layout {\n  route(a);\n  route(b);\n}\n");
        let diagnostic = Diagnostic::new(
            codes::ROUTE_CONFLICT,
            "color 3 is routed twice on PE (1, 0)",
            Span::new(file, 23, 31),
        )
        .label("second route")
        .secondary(Span::new(file, 11, 19), "first route")
        .help("give the second stream its own color")
        .frame(Frame::Loop {
            variable: "x".into(),
            value: "1".into(),
            span: Span::new(file, 0, 6),
        });
        (sources, diagnostic)
    }

    #[test]
    fn a_conflict_shows_both_places() {
        let (sources, diagnostic) = example();
        insta::assert_snapshot!(human(&sources, &diagnostic, Color::Never));
        insta::assert_snapshot!(short(&sources, &diagnostic), @"layout.csl:3:3: error[route-conflict]: color 3 is routed twice on PE (1, 0)");
    }

    #[test]
    fn endless_lines_are_named_not_shown() {
        let mut sources = SourceMap::new();
        let file = sources.add("a.csl", "x".repeat(10_000));
        let diagnostic =
            Diagnostic::new(codes::UNEXPECTED_CHARACTER, "no", Span::new(file, 5000, 5001));
        assert!(human(&sources, &diagnostic, Color::Never).len() < 300);
    }
}
