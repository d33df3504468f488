//! Which release of the SDK a program was written for.
//!
//! All spellings of all releases are understood at once; only what the same text means in two ways
//! depends on the [`Dialect`]. It is chosen before anything is analyzed: by the caller, by a comment in the
//! top file, by marks in the files that the program names, else it is 1.4's. `.dfl` files carry no marks: they
//! are of no release.

mod marks;
mod version;

use std::collections::BTreeSet;

use dflow_syntax::{Diagnostic, FileId, SourceMap, Span, codes};

pub use version::SdkVersion;

use crate::session::Session;

/// What the same text means, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The release whose meanings hold: 1.4 stands for all up to it, 2.10 for all from it on.
    pub version: SdkVersion,
    /// Whether 16-bit fabric operations without `.simd_mode` carry two elements per wavelet.
    pub packing: bool,
    /// What a descriptor's color means to an input queue that nothing bound (wse2).
    pub queue_binding: QueueBinding,
    /// Who decided.
    pub origin: Origin,
    /// The version that somebody named, as named.
    pub named: Option<SdkVersion>,
    /// What was found in the sources, in order, one of each kind.
    pub marks: Vec<Mark>,
}

/// How queues of wse2 without `@initialize_queue` get their color.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueBinding {
    /// Each operation binds the queue to its descriptor's color (up to 1.4).
    ByOperation,
    /// Once, from the descriptor, with a warning; a second color is an error (from 2.10 on).
    Once,
}

/// Who chose a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// `--sdk-version`
    Flag,
    /// `DFLOW_SDK_VERSION`
    Environment,
    /// `// dflow: sdk-version=X.Y` in the top file.
    Pragma,
    /// Marks in the sources.
    Marks,
    /// Nobody.
    Default,
}

impl Origin {
    /// As users read it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Origin::Flag => "--sdk-version",
            Origin::Environment => "DFLOW_SDK_VERSION",
            Origin::Pragma => "the comment in the top file",
            Origin::Marks => "marks in the sources",
            Origin::Default => "the default",
        }
    }
}

/// Something that dates a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Written for 2.10 or later; else for 1.4 or earlier.
    pub new: bool,
    /// The compilers of the other era refuse it.
    pub hard: bool,
    /// What it is, in a few words.
    pub what: String,
    /// File and line, as `path:line`; empty if it is in no file.
    pub place: String,
    /// The file and the bytes in it.
    at: Option<(String, u32, u32)>,
}

impl Mark {
    /// A mark that a caller knows of: it is in no source file. Layouts made by host scripts have such.
    #[must_use]
    pub fn of_caller(new: bool, hard: bool, what: &str) -> Mark {
        Mark { new, hard, what: what.to_owned(), place: String::new(), at: None }
    }
}

impl Dialect {
    /// The dialect of a version, without marks.
    #[must_use]
    pub fn of_version(named: SdkVersion, origin: Origin) -> Dialect {
        let new = named >= SdkVersion::NEW;
        Dialect { named: Some(named), ..Dialect::of_era(new, origin) }
    }

    fn of_era(new: bool, origin: Origin) -> Dialect {
        Dialect {
            version: if new { SdkVersion::NEW } else { SdkVersion::OLD },
            packing: new,
            queue_binding: if new { QueueBinding::Once } else { QueueBinding::ByOperation },
            origin,
            named: None,
            marks: Vec::new(),
        }
    }

    /// One line for `--verbose`.
    #[must_use]
    pub fn summary(&self) -> String {
        let marks: Vec<&str> = self.marks.iter().map(|mark| mark.what.as_str()).collect();
        let because =
            if marks.is_empty() { String::new() } else { format!(": {}", marks.join(", ")) };
        format!("SDK {} (by {}{because})", self.version, self.origin.name())
    }

    /// The dialect that marks alone choose, and whether they disagree.
    fn of_marks(marks: &[Mark]) -> (Dialect, Option<(Mark, Mark)>) {
        let first = |new: bool, hard: bool| {
            marks.iter().find(|mark| mark.new == new && mark.hard == hard).cloned()
        };
        let mixed = |hard| first(false, hard).zip(first(true, hard));
        if marks.is_empty() {
            return (Dialect::of_era(false, Origin::Default), None);
        }
        let (old, new) = (first(false, true), first(true, true));
        match (old, new) {
            (Some(_), Some(_)) => (Dialect::of_era(false, Origin::Marks), mixed(true)),
            (Some(_), None) => (Dialect::of_era(false, Origin::Marks), None),
            (None, Some(_)) => (Dialect::of_era(true, Origin::Marks), None),
            (None, None) => {
                let only_new = first(false, false).is_none();
                (Dialect::of_era(only_new, Origin::Marks), mixed(false))
            }
        }
    }
}

impl Default for Dialect {
    fn default() -> Dialect {
        Dialect::of_era(false, Origin::Default)
    }
}

/// Chooses the dialect of a program by its top file.
pub(crate) fn choose(cx: &Session<'_>, root: &str) -> Choice {
    let found = marks::scan(cx, root);
    let mut marks = cx.options.marks.clone();
    marks.extend(found.marks);
    let mut known = BTreeSet::new();
    marks.retain(|mark| known.insert((mark.new, mark.what.clone())));
    let (mut dialect, mut mixed) = Dialect::of_marks(&marks);
    let pragma = found.pragma.map(|version| (version, Origin::Pragma));
    if let Some((version, origin)) = cx.options.sdk_version.or(pragma) {
        dialect = Dialect::of_version(version, origin);
        mixed = None;
    }
    dialect.marks = marks;
    let is_bad = found.pragma.is_none();
    Choice { dialect, mixed, is_bad, pragma_at: found.pragma_at }
}

/// A dialect, and what to say of it.
pub(crate) struct Choice {
    pub(crate) dialect: Dialect,
    mixed: Option<(Mark, Mark)>,
    /// Nobody can read the version that the top file names.
    is_bad: bool,
    /// The bytes of the comment in the top file that names one.
    pragma_at: Option<(u32, u32)>,
}

impl Choice {
    /// Says what is odd, once the files are loaded.
    pub(crate) fn report(&self, cx: &mut Session<'_>, root: &str) {
        let pragma = self.pragma_at.and_then(|(start, end)| span_in(&cx.sources, root, start, end));
        if let (true, Some(span)) = (self.is_bad, pragma) {
            let message = "this comment names no version of the SDK";
            let help = "write two numbers: `// dflow: sdk-version=1.4`";
            cx.emit(
                Diagnostic::new(codes::SDK_VERSION, message, span).label("not read").help(help),
            );
        }
        if let Some(named) = self.dialect.named.filter(|named| named.is_gap()) {
            let origin = self.dialect.origin;
            no_release(cx, named, pragma.filter(|_| origin == Origin::Pragma), origin);
        }
        if self.dialect.named.is_some_and(|named| named < SdkVersion::NEW) {
            self.report_newer(cx);
        }
        let Some((old, new)) = &self.mixed else { return };
        let message = format!(
            "{} is of SDK 1.4 or earlier, and {} is of SDK 2.10 or later: what differs is read as in 1.4",
            old.what, new.what
        );
        let spans = (old.span(&cx.sources), new.span(&cx.sources));
        let diagnostic = match spans {
            (Some(old), Some(new)) => Diagnostic::new(codes::SDK_VERSION, message, old)
                .label("of 1.4 or earlier")
                .secondary(new, "of 2.10 or later"),
            _ => Diagnostic::without_place(codes::SDK_VERSION, message),
        };
        let help = "say which: `// dflow: sdk-version=1.4` (or 2.10) in the top file, or DFLOW_SDK_VERSION=1.4";
        cx.emit(diagnostic.help(help));
    }
}

/// Warns of a version that is named and never was.
fn no_release(cx: &mut Session<'_>, named: SdkVersion, span: Option<Span>, origin: Origin) {
    let message = format!("there is no SDK {named}, named by {}: read as in 1.4", origin.name());
    let diagnostic = match span {
        Some(span) => Diagnostic::new(codes::SDK_VERSION, message, span).label("not a release"),
        None => Diagnostic::without_place(codes::SDK_VERSION, message),
    };
    cx.emit(diagnostic.help("1.4 is followed by 2.10: name one of them"));
}

impl Choice {
    /// What the named version does not have.
    fn report_newer(&self, cx: &mut Session<'_>) {
        let Some(named) = self.dialect.named else { return };
        for mark in self.dialect.marks.iter().filter(|mark| mark.new && mark.hard) {
            let message = format!("{} is newer than SDK {named}", mark.what);
            let diagnostic = match mark.span(&cx.sources) {
                Some(span) => Diagnostic::new(codes::SDK_VERSION, message, span).label("used here"),
                None => Diagnostic::without_place(codes::SDK_VERSION, message),
            };
            cx.emit(diagnostic.help("name a later version, or none"));
        }
    }
}

impl Mark {
    fn span(&self, sources: &SourceMap) -> Option<Span> {
        let (path, start, end) = self.at.as_ref()?;
        span_in(sources, path, *start, *end)
    }
}

/// Bytes of a loaded file.
fn span_in(sources: &SourceMap, path: &str, start: u32, end: u32) -> Option<Span> {
    let ids = (0..).map(FileId).take(sources.len());
    let id = ids.into_iter().find(|&id| sources.path(id) == path)?;
    Some(Span::new(id, start, end))
}

impl Session<'_> {
    /// Tells of a spelling that a release replaced, once: by default of those that 1.4 no longer had, and of
    /// later ones if a version is named that has them no longer. Of those in our library nobody is told.
    pub(crate) fn old_spelling(
        &mut self,
        what: &'static str,
        replaced: SdkVersion,
        instead: &str,
        span: Span,
    ) {
        if self.is_news(what, replaced, span) {
            let message = format!("{what} is an old spelling, replaced in SDK {replaced}");
            self.tell_old(&message, instead, span);
        }
    }

    /// The same in words of one's own; `what` is the key.
    pub(crate) fn old_note(
        &mut self,
        what: &'static str,
        replaced: SdkVersion,
        message: &str,
        instead: &str,
        span: Span,
    ) {
        if self.is_news(what, replaced, span) {
            self.tell_old(message, instead, span);
        }
    }

    /// Whether an old spelling is to be told of, for the first time.
    fn is_news(&mut self, what: &'static str, replaced: SdkVersion, span: Span) -> bool {
        let known = self.dialect.named.unwrap_or(SdkVersion::OLD);
        known >= replaced && !self.in_library(span) && self.old_spellings.insert(what)
    }

    fn tell_old(&mut self, message: &str, instead: &str, span: Span) {
        self.emit(
            Diagnostic::new(codes::DEPRECATED, message, span)
                .label("still understood")
                .help(instead),
        );
    }
}
