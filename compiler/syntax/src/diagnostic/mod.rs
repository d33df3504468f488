//! What the compiler says to people who write programs.
//!
//! A [`Diagnostic`] is data: one file, `render.rs`, turns it into text, and nothing here prints.
//! Messages are one sentence in lower case without a full stop, names quoted with backticks; labels
//! are short and do not repeat the message; help says what to write instead and stands there only
//! when we are sure.

pub mod codes;
pub mod render;
mod sink;

pub use codes::{Code, Severity};
pub use sink::{Reported, Sink};

use crate::{FileId, Span};

/// A place and a few words about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// Short text, may be empty.
    pub message: String,
}

/// One step of how we got to the place of a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A comptime call.
    Call {
        /// The function's name.
        name: String,
        /// The call.
        span: Span,
    },
    /// `@set_tile_code` or `@import_module` made an instance of a file.
    Instance {
        /// The file that was instantiated.
        file: FileId,
        /// The builtin call.
        span: Span,
        /// The first PE that this happened on; none for an imported module.
        first_pe: Option<(u32, u32)>,
        /// On how many PEs.
        count: u32,
    },
    /// One iteration of a comptime loop.
    Loop {
        /// The capture's name.
        variable: String,
        /// Its value, as text.
        value: String,
        /// The loop.
        span: Span,
    },
}

/// One fault, oddity or remark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    code: Code,
    message: String,
    primary: Option<Label>,
    secondary: Vec<Label>,
    help: Vec<String>,
    trace: Vec<Frame>,
}

impl Diagnostic {
    /// A diagnostic at a place. Severity comes from the code.
    pub fn new(code: Code, message: impl Into<String>, span: Span) -> Self {
        Self {
            primary: Some(Label { span, message: String::new() }),
            ..Self::without_place(code, message)
        }
    }

    /// A diagnostic about something that stands in no source text, such as a command line.
    pub fn without_place(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            primary: None,
            secondary: Vec::new(),
            help: Vec::new(),
            trace: Vec::new(),
        }
    }

    /// Puts a few words under the primary place.
    #[must_use]
    pub fn label(mut self, message: impl Into<String>) -> Self {
        if let Some(primary) = &mut self.primary {
            primary.message = message.into();
        }
        self
    }

    /// Adds another place: the first definition, the other route.
    #[must_use]
    pub fn secondary(mut self, span: Span, message: impl Into<String>) -> Self {
        self.secondary.push(Label { span, message: message.into() });
        self
    }

    /// Moves to another place, with a few words there; the first place remains as another one.
    #[must_use]
    pub fn seen_from(mut self, span: Span, message: impl Into<String>) -> Self {
        let place = Label { span, message: message.into() };
        self.secondary.extend(self.primary.replace(place));
        self
    }

    /// Adds what to write instead.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }

    /// Adds the next outer step of how we got here.
    #[must_use]
    pub fn frame(mut self, frame: Frame) -> Self {
        self.trace.push(frame);
        self
    }

    /// Adds several steps, innermost first.
    #[must_use]
    pub fn frames(mut self, frames: impl IntoIterator<Item = Frame>) -> Self {
        self.trace.extend(frames);
        self
    }

    /// Its row in the table of codes.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// Error, warning or note, as the code says.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }

    /// The sentence.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The place, if it has one.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        self.primary.as_ref().map(|label| label.span)
    }

    /// The place with its words.
    #[must_use]
    pub fn primary(&self) -> Option<&Label> {
        self.primary.as_ref()
    }

    /// The other places.
    #[must_use]
    pub fn secondary_labels(&self) -> &[Label] {
        &self.secondary
    }

    /// What to write instead.
    #[must_use]
    pub fn help_texts(&self) -> &[String] {
        &self.help
    }

    /// How we got here, innermost first.
    #[must_use]
    pub fn trace(&self) -> &[Frame] {
        &self.trace
    }

    /// Adds the PEs of `other`, which says the same, to the instances of this one.
    fn absorb(&mut self, other: &Self) {
        for (mine, theirs) in self.trace.iter_mut().zip(&other.trace) {
            if let (
                Frame::Instance { file, span, first_pe, count },
                Frame::Instance { file: file2, span: span2, first_pe: first2, count: count2 },
            ) = (mine, theirs)
                && file == file2
                && span == span2
                && first_pe.is_some()
                && first_pe != first2
            {
                *count = count.saturating_add(*count2);
            }
        }
    }
}
