//! Text to tokens.
//!
//! Every byte of the text is part of a token, of white space, of a comment, or of a diagnostic. The number of
//! diagnostics is bounded, and so is the nesting of brackets: what comes later may recurse over brackets.

use std::fmt::Write as _;

use logos::Logos as _;

use crate::diagnostic::{Diagnostic, codes};
use crate::token::Token;
use crate::{FileId, Span};

/// How deep brackets may be nested.
pub const MAX_NESTING: usize = 256;
/// How many diagnostics one file gets before the rest of it is left unread.
pub const MAX_DIAGNOSTICS: usize = 100;

/// A token and the bytes it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lexeme {
    pub(crate) token: Token,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// What the lexer makes of a text.
#[derive(Clone, Debug)]
pub(crate) struct Lexed {
    pub(crate) tokens: Vec<Lexeme>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Whether the end of the text was reached.
    pub(crate) complete: bool,
}

/// Splits a text into tokens.
pub(crate) fn lex(file: FileId, text: &str) -> Lexed {
    let mut run = Run { file, text, tokens: Vec::new(), diagnostics: Vec::new(), depth: 0 };
    let complete = run.all();
    Lexed { tokens: run.tokens, diagnostics: run.diagnostics, complete }
}

/// The tokens of a text, one per line: `start..end Kind text`.
#[must_use]
pub fn dump_tokens(text: &str) -> String {
    let mut out = String::new();
    for Lexeme { token, start, end } in lex(FileId(0), text).tokens {
        let word = &text[start as usize..end as usize];
        let _ = writeln!(out, "{start}..{end} {token:?} {word}");
    }
    out
}

struct Run<'t> {
    file: FileId,
    text: &'t str,
    tokens: Vec<Lexeme>,
    diagnostics: Vec<Diagnostic>,
    depth: usize,
}

impl Run<'_> {
    fn all(&mut self) -> bool {
        // A byte order mark is no part of the program.
        let skip = if self.text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let mut lexer = Token::lexer(&self.text[skip..]);
        let mut bad: Option<Span> = None;
        while let Some(result) = lexer.next() {
            let range = lexer.span();
            let at = |offset: usize| u32::try_from(offset + skip).unwrap_or(u32::MAX);
            let span = Span::new(self.file, at(range.start), at(range.end));
            match (result, bad) {
                (Err(()), Some(run)) if run.end == span.start => bad = Some(run.to(span)),
                (Err(()), earlier) => {
                    self.bad_characters(earlier);
                    bad = Some(span);
                }
                (Ok(token), earlier) => {
                    self.bad_characters(earlier);
                    bad = None;
                    if !self.token(token, span) {
                        return false;
                    }
                }
            }
            if self.diagnostics.len() >= MAX_DIAGNOSTICS {
                self.diagnostics.push(too_many(span));
                return false;
            }
        }
        self.bad_characters(bad);
        true
    }

    /// False if nothing more is to be read.
    fn token(&mut self, token: Token, span: Span) -> bool {
        if token.opens() {
            self.depth += 1;
            if self.depth > MAX_NESTING {
                self.diagnostics.push(too_deep(span));
                return false;
            }
        } else if token.closes().is_some() {
            self.depth = self.depth.saturating_sub(1);
        }
        match token {
            Token::String => self.check_closed(span, '"', "string"),
            Token::Char => self.check_closed(span, '\'', "character literal"),
            Token::BlockComment => {
                self.diagnostics.push(
                    Diagnostic::new(codes::ZIG_HABIT, "there are no block comments", span)
                        .help("begin each line of the comment with `//`"),
                );
                return true;
            }
            _ => {}
        }
        self.tokens.push(Lexeme { token, start: span.start, end: span.end });
        true
    }

    fn check_closed(&mut self, span: Span, quote: char, what: &str) {
        let word = &self.text[span.range()];
        if !is_closed(word, quote) {
            let message = format!("this {what} is not closed on its line");
            self.diagnostics.push(
                Diagnostic::new(codes::UNCLOSED_STRING, message, span)
                    .help(format!("close it with `{quote}`")),
            );
        }
    }

    fn bad_characters(&mut self, run: Option<Span>) {
        let Some(span) = run else { return };
        let word = &self.text[span.range()];
        let shown: String = word.chars().take(16).flat_map(char::escape_debug).collect();
        let message = if word.chars().nth(1).is_none() {
            format!("unexpected character `{shown}`")
        } else {
            format!("unexpected characters `{shown}`")
        };
        let diagnostic = Diagnostic::new(codes::UNEXPECTED_CHARACTER, message, span);
        self.diagnostics.push(match word {
            "@" => diagnostic.help("a builtin is `@` and a name, without a space between"),
            "#" => diagnostic.help("comments begin with `//`"),
            "\\" => diagnostic.help("there are no multi-line strings; escape with `\\n`"),
            _ => diagnostic,
        });
    }
}

/// Whether a literal that begins with `quote` also ends with one that is not escaped.
fn is_closed(word: &str, quote: char) -> bool {
    let inner = &word[1..];
    let mut escaped = false;
    for (at, character) in inner.char_indices() {
        if !escaped && character == quote {
            return at + character.len_utf8() == inner.len();
        }
        escaped = !escaped && character == '\\';
    }
    false
}

pub(crate) fn too_many(span: Span) -> Diagnostic {
    let message = "too many errors in this file, the rest of it is not read";
    Diagnostic::new(codes::TOO_MANY_ERRORS, message, span)
}

fn too_deep(span: Span) -> Diagnostic {
    let message = format!("brackets are nested more than {MAX_NESTING} deep");
    Diagnostic::new(codes::NESTING_TOO_DEEP, message, span)
        .label("one bracket too many")
        .help("name a part of it with `const`, or move it into a function")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn codes_of(text: &str) -> Vec<&'static str> {
        lex(FileId(0), text).diagnostics.iter().map(|d| d.code().id()).collect()
    }

    #[test]
    fn words_are_told_apart() {
        insta::assert_snapshot!(dump_tokens(
            "var x: [*]f32 = .{ 0x1F, 1.5e-3, 'a', \"b\\\"c\" }; // end\np.*[0] <<= @f(1..2);"
        ));
    }

    #[test]
    fn lexical_faults() {
        assert_eq!(codes_of("const a = \"x\n;"), ["unclosed-string"]);
        assert_eq!(codes_of("'a"), ["unclosed-string"]);
        assert_eq!(codes_of("\"\\\""), ["unclosed-string"]);
        assert_eq!(codes_of("a $$$ b $"), ["unexpected-character"; 2]);
        assert_eq!(codes_of("a /* b \n */ c"), ["zig-habit"]);
        assert_eq!(codes_of("/* b"), ["zig-habit"]);
        assert_eq!(codes_of("\u{feff}a"), [""; 0]);
    }

    #[test]
    fn nesting_is_one_error() {
        assert_eq!(codes_of(&"(".repeat(100_000)), ["nesting-too-deep"]);
        assert_eq!(codes_of(&"()".repeat(100_000)), [""; 0]);
    }

    #[test]
    fn errors_are_bounded() {
        assert_eq!(codes_of(&"$ ".repeat(100_000)).len(), MAX_DIAGNOSTICS + 1);
    }

    proptest! {
        #[test]
        fn the_input_is_covered(text in "([a-z0-9@\"'/*\\\\ \n.(){}é$#x]|//|\\PC){0,60}") {
            let lexed = lex(FileId(0), &text);
            prop_assume!(lexed.complete);
            let mut covered: Vec<(u32, u32)> =
                lexed.tokens.iter().map(|t| (t.start, t.end)).collect();
            covered.extend(lexed.diagnostics.iter().filter_map(|d| {
                let span = d.span()?;
                Some((span.start, span.end))
            }));
            covered.sort_unstable();
            let mut at = 0;
            for (start, end) in covered {
                prop_assert!(start >= at || end <= at, "tokens overlap");
                if start >= at {
                    prop_assert!(is_trivia(&text[at as usize..start as usize]));
                }
                at = at.max(end);
            }
            prop_assert!(is_trivia(&text[at as usize..]));
        }
    }

    fn is_trivia(text: &str) -> bool {
        text.trim_start_matches('\u{feff}').lines().all(|line| {
            let line = line.trim_matches([' ', '\t', '\r', '\x0C']);
            line.is_empty() || line.starts_with("//")
        })
    }
}
