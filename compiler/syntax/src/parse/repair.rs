//! Changes the tokens of an item that could not be read, so that the rest of it can.
//!
//! A repair either puts in one token or turns tokens into [`Token::Poison`], which the grammar takes for a
//! statement or a type. Poison that stands wrong is widened to the next outer statement, so every item goes
//! through or is given up as a whole.

use crate::lexer::Lexeme;
use crate::token::Token;

/// A change of tokens that the explanation of a fault suggests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fix {
    /// Put a token in before the faulty one.
    Insert(Token),
    /// Leave the faulty token out.
    Delete,
}

/// Repairs the tokens around the fault at index `at`. False if nothing but the whole item would be left out.
pub(crate) fn apply(text: &str, tokens: &mut Vec<Lexeme>, at: usize, fix: Option<Fix>) -> bool {
    match fix {
        Some(Fix::Insert(token)) if !already_inserted(tokens, at) => {
            let place = tokens.get(at.wrapping_sub(1)).map_or(0, |before| before.end);
            tokens.insert(at, Lexeme { token, start: place, end: place });
            return true;
        }
        Some(Fix::Delete) if at < tokens.len() => {
            tokens.remove(at);
            return true;
        }
        Some(_) | None => {}
    }
    let poisoned = tokens.get(at).is_some_and(|lexeme| lexeme.token == Token::Poison);
    let Some(range) = statement_around(text, tokens, at, poisoned) else { return false };
    let start = tokens[range.start].start;
    let end = tokens[range.end - 1].end;
    tokens.splice(range, [Lexeme { token: Token::Poison, start, end }]);
    true
}

/// Whether the token before the fault was put in for an earlier fault: once is enough.
fn already_inserted(tokens: &[Lexeme], at: usize) -> bool {
    at.checked_sub(1)
        .and_then(|before| tokens.get(before))
        .is_none_or(|before| before.start == before.end)
}

/// The tokens of the innermost statement around `at`; of one further out, if `outer`, than the statement
/// that `at` itself is.
fn statement_around(
    text: &str,
    tokens: &[Lexeme],
    at: usize,
    outer: bool,
) -> Option<std::ops::Range<usize>> {
    let mut open = Vec::new();
    for (index, lexeme) in tokens.iter().enumerate().take(at) {
        if lexeme.token.opens() {
            open.push(index);
        } else if let Some(partner) = lexeme.token.closes()
            && let Some(depth) = open.iter().rposition(|&o| tokens[o].token == partner)
        {
            open.truncate(depth);
        }
    }
    let blocks = (0..open.len()).rev().filter(|&depth| {
        tokens[open[depth]].token == Token::LBrace && holds_statements(tokens, &open[..=depth])
    });
    for depth in blocks {
        let range = statement_in_block(text, tokens, open[depth], at);
        // Turning one poison into itself would change nothing.
        let changes = match range.len() {
            0 => false,
            1 => !outer && tokens[range.start].token != Token::Poison,
            _ => true,
        };
        if changes {
            return Some(range);
        }
    }
    None
}

/// Whether the last of the open braces is one around statements, judged by what stands before it.
fn holds_statements(tokens: &[Lexeme], open: &[usize]) -> bool {
    let Some(&brace) = open.last() else { return false };
    let Some(before) = brace.checked_sub(1).map(|at| tokens[at].token) else { return false };
    if open.len() == 1 && !is_variable(tokens) {
        // The body of a function, or of a layout block; not the fields in a result type.
        return !matches!(before, Token::Struct | Token::Union | Token::Enum);
    }
    match before {
        Token::Semicolon
        | Token::LBrace
        | Token::RBrace
        | Token::Else
        | Token::Comptime
        | Token::Colon
        | Token::FatArrow
        | Token::Assign
        | Token::Poison => true,
        Token::Bar => !is_tensor_bar(tokens, brace - 1),
        Token::RParen => {
            !matches!(word_before_parens(tokens, brace - 1), Some(Token::Switch | Token::Enum))
        }
        _ => false,
    }
}

fn is_variable(tokens: &[Lexeme]) -> bool {
    tokens
        .iter()
        .find(|lexeme| !matches!(lexeme.token, Token::Export | Token::Extern | Token::Comptime))
        .is_some_and(|lexeme| matches!(lexeme.token, Token::Const | Token::Var | Token::Param))
}

/// Whether the bar at `close` ends the variables of a tensor access rather than the captures of a loop.
fn is_tensor_bar(tokens: &[Lexeme], close: usize) -> bool {
    let opening = tokens[..close].iter().rposition(|lexeme| lexeme.token == Token::Bar);
    let before = opening.and_then(|bar| bar.checked_sub(1)).map(|at| tokens[at].token);
    before != Some(Token::RParen)
}

/// The word before the parentheses that close at `close`.
fn word_before_parens(tokens: &[Lexeme], close: usize) -> Option<Token> {
    let mut depth = 0usize;
    for index in (0..=close).rev() {
        match tokens[index].token {
            Token::RParen => depth += 1,
            Token::LParen => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return index.checked_sub(1).map(|before| tokens[before].token);
        }
    }
    None
}

/// The statement at `at` among those of the block that opens at `brace`.
fn statement_in_block(
    text: &str,
    tokens: &[Lexeme],
    brace: usize,
    at: usize,
) -> std::ops::Range<usize> {
    let mut start = brace + 1;
    let mut open: Vec<Token> = Vec::new();
    for (index, lexeme) in tokens.iter().enumerate().skip(brace + 1) {
        let token = lexeme.token;
        if token.opens() {
            open.push(token);
            continue;
        }
        if matches!(token, Token::Semicolon | Token::RBrace) {
            // Neither stands inside of parentheses: those were never closed.
            let kept = open.iter().rposition(|o| *o == Token::LBrace).map_or(0, |at| at + 1);
            open.truncate(kept);
        }
        if token.closes().is_some() && open.pop().is_none() && token == Token::RBrace {
            return start..index;
        }
        let ends = open.is_empty()
            && match token {
                Token::Semicolon | Token::Poison => true,
                Token::RBrace => statement_may_begin(text, tokens, index),
                _ => false,
            };
        if ends && index < at {
            start = index + 1;
        } else if ends {
            return start..index + 1;
        }
    }
    start..tokens.len()
}

/// Whether a new statement may begin behind the brace at `brace`: a new line does, and no `else`.
fn statement_may_begin(text: &str, tokens: &[Lexeme], brace: usize) -> bool {
    let Some(next) = tokens.get(brace + 1) else { return true };
    match next.token {
        Token::Else => false,
        Token::RBrace => true,
        _ => {
            let between = text.get(tokens[brace].end as usize..next.start as usize);
            between.is_some_and(|blank| blank.contains('\n'))
        }
    }
}
