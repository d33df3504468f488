//! From text to tree.
//!
//! The text is cut into items first, then each item is read by the generated parser. Where an item cannot be
//! read, the fault is reported, the tokens are repaired (a semicolon put in, a statement taken out) and the
//! item is read again, until it goes through. So a tree always comes out, and one fault hides neither the
//! next statement nor the next item. The number of faults and the work spent on repairs are bounded.

pub(crate) mod build;
mod build_expr;
mod message;
mod repair;
mod split;

lalrpop_util::lalrpop_mod!(
    #[allow(
        clippy::all,
        clippy::pedantic,
        clippy::allow_attributes_without_reason,
        clippy::too_many_lines,
        clippy::uninlined_format_args,
        clippy::match_wildcard_for_single_variants,
        unused,
        unreachable_pub,
        elided_lifetimes_in_paths,
        reason = "generated"
    )]
    grammar
);

use crate::ast::{File, Ident, Item, ItemKind, TileDecl};
use crate::diagnostic::{Diagnostic, codes};
use crate::lexer::{self, Lexeme, MAX_DIAGNOSTICS};
use crate::token::Token;
use crate::{Dialect, FileId, Interner, Span};
use build::Builder;
use split::Piece;

/// How many tokens are read again, at most, after repairs: this bounds the time that a hostile text takes.
const MAX_REREAD: usize = 10_000_000;

/// What came out of a text: always a tree, and what was wrong with the text.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The tree, with `Error` nodes where the text could not be read.
    pub file: File,
    /// In order of place; empty if the text was good.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads the text of a file. Identifiers go into `interner`; `file` only marks the places.
pub fn parse(file: FileId, text: &str, dialect: Dialect, interner: &mut Interner) -> Parsed {
    let lexed = lexer::lex(file, text);
    let mut diagnostics = lexed.diagnostics;
    if !lexed.complete {
        return Parsed { file: File::new(file), diagnostics };
    }
    let mut tokens = lexed.tokens;
    let pieces = split::split(text, &mut tokens);
    let bad_words = diagnostics.iter().filter_map(|d| d.span()).map(|span| span.start).collect();
    let builder = Builder::new(file, text, dialect, interner);
    let mut reader =
        Reader { text, tokens: &tokens, bad_words, dialect, builder, reread: 0, stopped: false };
    let mut pieces = pieces.into_iter();
    let items = reader.items(&mut pieces, false);
    let (mut tree, found) = reader.builder.finish();
    tree.items = items;
    diagnostics.extend(found);
    diagnostics.sort_by_key(|diagnostic| diagnostic.span().map_or(0, |span| span.start));
    Parsed { file: tree, diagnostics }
}

struct Reader<'t> {
    text: &'t str,
    tokens: &'t [Lexeme],
    /// Where the lexer has found faults, in order.
    bad_words: Vec<u32>,
    dialect: Dialect,
    builder: Builder<'t>,
    reread: usize,
    stopped: bool,
}

impl Reader<'_> {
    /// Items up to the end of the file, or of the tile block that was opened.
    fn items(&mut self, pieces: &mut impl Iterator<Item = Piece>, in_tile: bool) -> Vec<Item> {
        let mut items = Vec::new();
        while let Some(piece) = pieces.next() {
            match piece {
                Piece::Item { start, end } => {
                    let item = self.item(&self.tokens[start..end], in_tile);
                    items.push(item);
                }
                Piece::Tile { start, name } => {
                    let word = self.tokens[start];
                    self.additions_only(word);
                    let name = self.tokens[name];
                    let name = self.builder.ident(name.start, name.end);
                    items.push(self.tile(word, name, pieces));
                }
                Piece::TileEnd { .. } => break,
                Piece::Unclosed { open } => self.unclosed(open),
                Piece::Stray { at } => self.stray(at),
            }
            if self.stopped {
                break;
            }
        }
        items
    }

    fn tile(
        &mut self,
        word: Lexeme,
        name: Ident,
        pieces: &mut impl Iterator<Item = Piece>,
    ) -> Item {
        let mut end = name.span.end;
        let mut inner = Vec::new();
        let items = {
            let mut until_end = pieces.by_ref().take_while(|piece| {
                if let Piece::TileEnd { at } = piece {
                    end = self.tokens[*at].end;
                }
                !matches!(piece, Piece::TileEnd { .. })
            });
            inner.extend(&mut until_end);
            self.items(&mut inner.into_iter(), true)
        };
        let span = self.builder.span(word.start, end);
        Item { kind: ItemKind::Tile(TileDecl { name, items }), span }
    }

    fn item(&mut self, all: &[Lexeme], in_tile: bool) -> Item {
        let mut tokens = all.to_vec();
        let (first, last) = (tokens[0], tokens[tokens.len() - 1]);
        self.additions_only(first);
        if in_tile && matches!(first.token, Token::Layout | Token::Host | Token::Test) {
            let word = &self.text[first.start as usize..first.end as usize];
            let span = self.builder.span(first.start, first.end);
            let message = format!("`{word}` stands only outside of tile blocks");
            self.builder.diagnostics.push(Diagnostic::new(codes::UNEXPECTED_TOKEN, message, span));
        }
        let mark = self.builder.mark();
        let mut faults = Vec::new();
        loop {
            let failure = match self.attempt(&tokens) {
                Ok(item) => {
                    self.builder.diagnostics.extend(faults);
                    for lexeme in tokens.iter().filter(|lexeme| lexeme.token == Token::Poison) {
                        self.unread(all, lexeme.start, lexeme.end);
                    }
                    return item;
                }
                Err(failure) => failure,
            };
            self.builder.reset(mark);
            self.reread += tokens.len();
            let place =
                message::Place { text: self.text, file: self.builder.tree.id, tokens: &tokens };
            let cascade = tokens.get(failure.at).is_some_and(|t| t.token == Token::Poison);
            let fix = if cascade {
                None
            } else {
                let (diagnostic, fix) = message::explain(&place, &failure);
                if !self.is_explained(&tokens, failure.at) {
                    faults.push(diagnostic);
                }
                fix
            };
            let full = self.builder.diagnostics.len() + faults.len() >= MAX_DIAGNOSTICS;
            if full || self.reread > MAX_REREAD {
                faults.push(lexer::too_many(place.span(failure.at)));
                self.stopped = true;
            } else if repair::apply(self.text, &mut tokens, failure.at, fix) {
                continue;
            }
            self.builder.diagnostics.extend(faults);
            self.unread(all, first.start, last.end);
            return Item { kind: ItemKind::Error, span: self.builder.span(first.start, last.end) };
        }
    }

    /// Notes the names that the tokens between two places would have declared.
    fn unread(&mut self, tokens: &[Lexeme], start: u32, end: u32) {
        let within = |lexeme: &Lexeme| start <= lexeme.start && lexeme.end <= end;
        for pair in tokens.windows(2).filter(|pair| pair.iter().all(within)) {
            if pair[0].token.declares() && pair[1].token == Token::Ident {
                let name = self.builder.ident(pair[1].start, pair[1].end).name;
                self.builder.tree.unread.insert(name);
            }
        }
    }

    /// Whether a fault of the lexer just before a token is the reason that it stands wrong.
    fn is_explained(&self, tokens: &[Lexeme], at: usize) -> bool {
        let start = at.checked_sub(1).map_or(0, |before| tokens[before].start);
        let last = tokens.last().map_or(0, |lexeme| lexeme.end);
        let end = tokens.get(at).map_or(last, |lexeme| lexeme.start);
        let next = self.bad_words.partition_point(|&word| word < start);
        self.bad_words.get(next).is_some_and(|&word| word <= end && at > 0)
    }

    fn attempt(&mut self, tokens: &[Lexeme]) -> Result<Item, message::Failure> {
        let triples = tokens.iter().map(|t| Ok((t.start, t.token, t.end)));
        let result = grammar::ItemParser::new().parse(&mut self.builder, triples);
        result.map_err(|error| message::Failure::new(error, tokens))
    }

    fn additions_only(&mut self, word: Lexeme) {
        if self.dialect == Dialect::Dfl
            || !matches!(word.token, Token::Tile | Token::Host | Token::Test)
        {
            return;
        }
        let name = word.token.text().unwrap_or_default();
        let span = self.builder.span(word.start, word.end);
        let message = format!("`{name}` blocks are understood only in `.dfl` files");
        self.builder.diagnostics.push(
            Diagnostic::new(codes::DFL_ONLY, message, span)
                .help("rename the file to end in `.dfl`"),
        );
    }

    fn unclosed(&mut self, open: usize) {
        let Lexeme { token, start, end } = self.tokens[open];
        let bracket = token.text().unwrap_or_default();
        let message = format!("this `{bracket}` is never closed");
        let span = self.builder.span(start, end);
        self.builder.diagnostics.push(Diagnostic::new(codes::UNCLOSED_BRACKET, message, span));
    }

    fn stray(&mut self, at: usize) {
        let Lexeme { token, start, end } = self.tokens[at];
        let bracket = token.text().unwrap_or_default();
        let message = format!("this `{bracket}` closes nothing");
        let span: Span = self.builder.span(start, end);
        self.builder.diagnostics.push(Diagnostic::new(codes::UNCLOSED_BRACKET, message, span));
    }
}
