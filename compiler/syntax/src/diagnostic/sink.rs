//! Where diagnostics are gathered.

use std::collections::HashMap;

use super::{Code, Diagnostic, Severity};
use crate::Span;

/// Proof that the user has been told, or wants to hear no more. Only [`Sink::emit`] and [`Sink::give_up`] make it, so
/// whoever holds one need not, and must not, report again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported(());

/// Notes that are kept: a program prints as many as it likes.
const MAX_NOTES: usize = 10_000;

/// Gathers diagnostics in the order they came, each (code, place, message) once.
#[derive(Clone, Debug, Default)]
pub struct Sink {
    diagnostics: Vec<Diagnostic>,
    known: HashMap<(Code, Option<Span>, String), usize>,
    errors: usize,
    notes: usize,
    given_up: bool,
}

impl Sink {
    /// Empty.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps a diagnostic. One that says the same at the same place as an earlier one only adds its PEs
    /// to the earlier one's count.
    pub fn emit(&mut self, diagnostic: Diagnostic) -> Reported {
        if self.given_up {
            return Reported(());
        }
        let key = (diagnostic.code, diagnostic.span(), diagnostic.message.clone());
        if let Some(&at) = self.known.get(&key) {
            self.diagnostics[at].absorb(&diagnostic);
            return Reported(());
        }
        match diagnostic.severity() {
            Severity::Error => self.errors += 1,
            Severity::Warning => {}
            Severity::Note => {
                self.notes += 1;
                if self.notes > MAX_NOTES {
                    return self.last_note(&diagnostic);
                }
            }
        }
        self.known.insert(key, self.diagnostics.len());
        self.diagnostics.push(diagnostic);
        Reported(())
    }

    /// Says, once, that there are more notes.
    fn last_note(&mut self, first: &Diagnostic) -> Reported {
        if self.notes == MAX_NOTES + 1 {
            let message =
                format!("more than {MAX_NOTES} notes: this one and later ones are not shown");
            let last = match first.span() {
                Some(span) => Diagnostic::new(first.code, message, span),
                None => Diagnostic::without_place(first.code, message),
            };
            self.diagnostics.push(last);
        }
        Reported(())
    }

    /// Keeps several.
    pub fn extend(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        for diagnostic in diagnostics {
            self.emit(diagnostic);
        }
    }

    /// The work is not wanted any more: nothing that is said from now on is kept.
    pub fn give_up(&mut self) -> Reported {
        self.given_up = true;
        Reported(())
    }

    /// Whether the work was given up.
    #[must_use]
    pub fn has_given_up(&self) -> bool {
        self.given_up
    }

    /// What was emitted, in order.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// How many different errors there are.
    #[must_use]
    pub fn error_count(&self) -> usize {
        self.errors
    }

    /// The proof, if an error has been emitted.
    ///
    /// # Errors
    /// [`Reported`], if there is at least one error, or the work was given up.
    pub fn ok(&self) -> Result<(), Reported> {
        if self.errors == 0 && !self.given_up { Ok(()) } else { Err(Reported(())) }
    }

    /// Hands over what was gathered.
    #[must_use]
    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.diagnostics
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileId, Frame, codes};

    #[test]
    fn the_same_fault_on_many_pes_is_one_report() {
        let place = Span::new(FileId(0), 3, 4);
        let mut sink = Sink::new();
        for x in 0..12 {
            sink.emit(Diagnostic::new(codes::NOT_COMPTIME, "no", place).frame(Frame::Instance {
                file: FileId(1),
                span: place,
                first_pe: Some((x, 1)),
                count: 1,
            }));
        }
        assert_eq!(sink.error_count(), 1);
        let Frame::Instance { first_pe, count, .. } = sink.diagnostics()[0].trace()[0] else {
            panic!("an instance frame was put in");
        };
        assert_eq!((first_pe, count), (Some((0, 1)), 12));
    }

    #[test]
    fn who_gives_up_hears_no_more() {
        let place = Span::new(FileId(0), 3, 4);
        let mut sink = Sink::new();
        assert!(sink.ok().is_ok() && !sink.has_given_up());
        sink.give_up();
        sink.emit(Diagnostic::new(codes::NOT_COMPTIME, "no", place));
        assert!(sink.ok().is_err() && sink.has_given_up());
        assert!(sink.diagnostics().is_empty());
    }

    #[test]
    fn notes_without_end_are_cut() {
        let place = Span::new(FileId(0), 3, 4);
        let mut sink = Sink::new();
        for round in 0..MAX_NOTES + 5 {
            sink.emit(Diagnostic::new(codes::COMPTIME_OUTPUT, format!("{round}"), place));
        }
        sink.emit(Diagnostic::new(codes::COMPTIME_OUTPUT, "0", place));
        sink.emit(Diagnostic::new(codes::NOT_COMPTIME, "no", place));
        let said = sink.diagnostics();
        assert_eq!(said.len(), MAX_NOTES + 2);
        assert!(said[MAX_NOTES].message().contains("not shown"), "{:?}", said[MAX_NOTES]);
        assert_eq!(sink.error_count(), 1);
    }
}
