//! Cuts the tokens of a file into items, so that each can be read, and fail, alone.
//!
//! An item ends at its `;` or at the brace that closes its body. Where brackets do not match, the next
//! word that can only begin an item begins one. Contextual words are made keywords here, because only here
//! it is known where an item begins.

use crate::lexer::Lexeme;
use crate::token::Token;

/// A part of a file. Numbers are indices of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// The tokens `start..end` of one item, at least one.
    Item { start: usize, end: usize },
    /// `tile name {`; the items of the tile follow, then its end.
    Tile { start: usize, name: usize },
    /// The brace that closes a tile.
    TileEnd { at: usize },
    /// A bracket whose partner is missing.
    Unclosed { open: usize },
    /// A closing bracket without a partner.
    Stray { at: usize },
}

pub(crate) fn split(text: &str, tokens: &mut [Lexeme]) -> Vec<Piece> {
    let balanced = is_balanced(tokens);
    let mut cutter = Cutter { text, tokens, pieces: Vec::new(), balanced };
    cutter.run();
    cutter.pieces
}

/// Whether every brace has its partner. Other brackets do not matter: they never hold an item.
fn is_balanced(tokens: &[Lexeme]) -> bool {
    let mut depth = 0usize;
    for Lexeme { token, .. } in tokens {
        match (token, depth) {
            (Token::LBrace, _) => depth += 1,
            (Token::RBrace, 0) => return false,
            (Token::RBrace, _) => depth -= 1,
            _ => {}
        }
    }
    depth == 0
}

struct Cutter<'t> {
    text: &'t str,
    tokens: &'t mut [Lexeme],
    pieces: Vec<Piece>,
    balanced: bool,
}

impl Cutter<'_> {
    fn run(&mut self) {
        let mut at = 0;
        let mut tile = None;
        while let Some(&Lexeme { token, .. }) = self.tokens.get(at) {
            if token == Token::Semicolon {
                at += 1;
            } else if token == Token::RBrace && tile.is_some() {
                self.pieces.push(Piece::TileEnd { at });
                tile = None;
                at += 1;
            } else if token.closes().is_some() {
                self.pieces.push(Piece::Stray { at });
                at += 1;
            } else if tile.is_none() && self.promote(at) == Some(Token::Tile) {
                self.pieces.push(Piece::Tile { start: at, name: at + 1 });
                tile = Some(at + 2);
                at += 3;
            } else {
                self.promote(at);
                let end = self.item_end(at);
                self.pieces.push(Piece::Item { start: at, end });
                at = end;
            }
        }
        if let Some(open) = tile {
            self.pieces.push(Piece::Unclosed { open });
        }
    }

    fn token(&self, at: usize) -> Option<Token> {
        self.tokens.get(at).map(|lexeme| lexeme.token)
    }

    /// What a contextual word at `at` would mean if an item began there.
    fn contextual(&self, at: usize) -> Option<Token> {
        let Lexeme { token: Token::Ident, start, end } = *self.tokens.get(at)? else {
            return None;
        };
        let next = self.token(at + 1)?;
        match (&self.text[start as usize..end as usize], next) {
            ("layout", Token::LBrace) => Some(Token::Layout),
            ("host", Token::LBrace) => Some(Token::Host),
            ("test", Token::String) => Some(Token::Test),
            ("tile", Token::Ident) if self.token(at + 2) == Some(Token::LBrace) => {
                Some(Token::Tile)
            }
            _ => None,
        }
    }

    fn promote(&mut self, at: usize) -> Option<Token> {
        let token = self.contextual(at)?;
        self.tokens[at].token = token;
        Some(token)
    }

    /// One past the last token of the item that begins at `start`.
    fn item_end(&mut self, start: usize) -> usize {
        let word = self.leading_word(start);
        let ends_at_brace =
            !matches!(self.token(word), Some(Token::Const | Token::Var | Token::Param));
        let mut open: Vec<usize> = Vec::new();
        let mut at = word + 1;
        if self.token(word).is_some_and(Token::opens) {
            open.push(word);
        }
        while let Some(token) = self.token(at) {
            if self.begins_item(at, open.len()) {
                break;
            }
            if token == Token::Semicolon {
                // It does not stand inside of parentheses: those were never closed.
                let brace = open.iter().rposition(|&o| self.tokens[o].token == Token::LBrace);
                open.truncate(brace.map_or(0, |depth| depth + 1));
                if open.is_empty() {
                    return at + 1;
                }
            } else if token.opens() {
                open.push(at);
            } else if let Some(partner) = token.closes() {
                if open.is_empty() {
                    // A closing brace may be the end of a tile; others are left to the parser.
                    if token == Token::RBrace {
                        return at;
                    }
                } else if let Some(depth) =
                    open.iter().rposition(|&index| self.tokens[index].token == partner)
                {
                    open.truncate(depth);
                    let done = depth == 0 && token == Token::RBrace && ends_at_brace;
                    if done && self.token(at + 1) != Some(Token::LBrace) {
                        return at + 1;
                    }
                }
            }
            at += 1;
        }
        at
    }

    /// Index of the word that says what kind of item begins at `start`.
    fn leading_word(&self, start: usize) -> usize {
        let mut at = start;
        while matches!(
            self.token(at),
            Some(Token::Export | Token::Extern | Token::Inline | Token::Noinline)
        ) || (self.token(at) == Some(Token::Comptime)
            && self.token(at + 1) != Some(Token::LBrace))
        {
            at += 1;
        }
        at.min(self.tokens.len() - 1)
    }

    /// Whether the word at `at`, inside an item and `depth` brackets, can only be the start of the next
    /// item.
    fn begins_item(&self, at: usize, depth: usize) -> bool {
        let Some(token) = self.token(at) else { return false };
        let next = self.token(at + 1);
        let before = self.token(at - 1);
        let named = next == Some(Token::Ident);
        if depth > 0 {
            if self.balanced {
                return false;
            }
            let statement =
                matches!(before, Some(Token::Semicolon | Token::RBrace | Token::LBrace));
            return match token {
                Token::Fn | Token::Task => named && before != Some(Token::Inline),
                Token::Export => matches!(next, Some(Token::Fn | Token::Var | Token::Const)),
                Token::Inline => matches!(next, Some(Token::Fn)),
                Token::Ident => statement && self.contextual(at).is_some(),
                _ => false,
            };
        }
        let after_operand = before.is_some_and(Token::ends_operand);
        match token {
            Token::Fn | Token::Task => named && after_operand,
            Token::Export | Token::Param | Token::Var => after_operand,
            Token::Const => named && after_operand && !self.ends_pointer(at),
            Token::Inline => next == Some(Token::Fn) && after_operand,
            Token::Extern => after_operand && !matches!(next, Some(Token::Struct | Token::Union)),
            Token::Comptime => after_operand && before != Some(Token::RParen),
            Token::Ident => after_operand && self.contextual(at).is_some(),
            _ => false,
        }
    }

    /// Whether `[*]` or `[]` stands before `at`: a `const` there belongs to a type.
    fn ends_pointer(&self, at: usize) -> bool {
        let before = |distance: usize| at.checked_sub(distance).and_then(|index| self.token(index));
        before(1) == Some(Token::RBracket)
            && matches!(before(2), Some(Token::Star | Token::LBracket))
    }
}
