//! Expected diagnostics, written where they are expected.
//!
//! `//~ code` stands on the line that causes it; `//~^ code` on the line below, one `^` per line
//! upwards. Several are separated by commas. `warning:` or `note:` may stand before the code.
//! Every error must be annotated and every annotation met; warnings and notes may be left out.

use std::collections::BTreeMap;

use dflow_syntax::{Diagnostic, FileId, Severity, SourceMap};

/// A place as annotations know it: file and line from 1. Line 0 means "no place".
type Place = (u32, u32);

/// Diagnostics of a place: severity and code, sorted.
type Found = BTreeMap<Place, Vec<(Severity, String)>>;

/// Compares expectations with what was emitted.
///
/// # Errors
/// What is missing and what is too much, a line each.
pub fn compare(
    sources: &SourceMap,
    diagnostics: &[Diagnostic],
    placeless: &[String],
) -> Result<(), String> {
    let mut expected = Found::new();
    for index in 0..u32::try_from(sources.len()).unwrap_or(u32::MAX) {
        for (line, severity, code) in parse(sources.text(FileId(index)))? {
            expected.entry((index, line)).or_default().push((severity, code));
        }
    }
    for code in placeless {
        expected.entry((0, 0)).or_default().push((Severity::Error, code.clone()));
    }
    let mut found = Found::new();
    for diagnostic in diagnostics {
        let place = diagnostic
            .span()
            .map_or((0, 0), |span| (span.file.0, sources.position(span.file, span.start).line));
        let entry = (diagnostic.severity(), diagnostic.code().id().to_owned());
        found.entry(place).or_default().push(entry);
    }
    let faults = differences(sources, expected, found);
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

fn differences(sources: &SourceMap, expected: Found, mut found: Found) -> Vec<String> {
    let show = |place: Place| match place {
        (_, 0) => "(no place)".to_owned(),
        (file, line) => format!("{}:{line}", sources.path(FileId(file))),
    };
    let mut faults = Vec::new();
    for (place, wanted) in expected {
        for (severity, code) in wanted {
            let here = found.entry(place).or_default();
            match here.iter().position(|entry| *entry == (severity, code.clone())) {
                Some(at) => drop(here.remove(at)),
                None => {
                    let name = severity.name();
                    faults
                        .push(format!("{}: expected {name} `{code}`, there is none", show(place)));
                }
            }
        }
    }
    for (place, left) in found {
        for (_, code) in left.iter().filter(|(severity, _)| *severity == Severity::Error) {
            faults.push(format!("{}: unexpected error `{code}`", show(place)));
        }
    }
    faults
}

/// Annotations of a text: line, severity, code.
fn parse(text: &str) -> Result<Vec<(u32, Severity, String)>, String> {
    let mut annotations = Vec::new();
    for (number, line) in (1u32..).zip(text.lines()) {
        let Some((_, note)) = line.split_once("//~") else { continue };
        let rest = note.trim_start_matches('^');
        let up = u32::try_from(note.len() - rest.len()).unwrap_or(u32::MAX);
        let target = number.checked_sub(up).filter(|&line| line > 0);
        let target = target.ok_or_else(|| format!("line {number}: points above the file"))?;
        for part in rest.split(',') {
            let (severity, code) = annotation(part.trim());
            if code.is_empty() || code.contains(' ') {
                return Err(format!("line {number}: `{part}` is no annotation"));
            }
            annotations.push((target, severity, code.to_owned()));
        }
    }
    Ok(annotations)
}

fn annotation(text: &str) -> (Severity, &str) {
    let all = [Severity::Error, Severity::Warning, Severity::Note];
    for severity in all {
        let rest = text.strip_prefix(severity.name()).and_then(|rest| rest.strip_prefix(':'));
        if let Some(code) = rest {
            return (severity, code.trim());
        }
    }
    (Severity::Error, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dflow_syntax::{Span, codes};

    fn verdict(text: &str, diagnostics: &[(u32, dflow_syntax::Code)]) -> Result<(), String> {
        let mut sources = SourceMap::new();
        let file = sources.add("a.csl", text);
        let diagnostics: Vec<_> = diagnostics
            .iter()
            .map(|&(line, code)| {
                let at = sources.line_start(file, line - 1);
                Diagnostic::new(code, "x", Span::new(file, at, at))
            })
            .collect();
        compare(&sources, &diagnostics, &[])
    }

    #[test]
    fn annotations_are_met_or_fail() {
        let text = "a //~ unknown-name\nb\n//~^ type-mismatch, warning: unknown-param\nc\n";
        let all = [(1, codes::UNKNOWN_NAME), (2, codes::TYPE_MISMATCH), (2, codes::UNKNOWN_PARAM)];
        assert_eq!(verdict(text, &all), Ok(()));
        assert!(verdict(text, &all[..2]).is_err_and(|fault| fault.contains("warning")));
        assert!(verdict(text, &all[1..]).is_err_and(|fault| fault.contains("a.csl:1")));
        assert!(verdict("x\n", &all[..1]).is_err_and(|fault| fault.contains("unexpected")));
        assert_eq!(verdict("x\n", &[(1, codes::UNKNOWN_PARAM)]), Ok(()));
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(verdict("//~ \n", &[]).is_err());
        assert!(verdict("//~^ a\n", &[]).is_err());
    }
}
