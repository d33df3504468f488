//! From a failure of the generated parser to a diagnostic, and to the repair that fits it.

mod habits;

use lalrpop_util::ParseError;

use self::habits::foreign;
use super::repair::Fix;
use crate::diagnostic::{Diagnostic, codes};
use crate::lexer::Lexeme;
use crate::token::Token;
use crate::{FileId, Span};

/// Where the parser stopped and what it could have gone on with.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// Index of the token; the number of tokens at the end of the item.
    pub(crate) at: usize,
    /// Terminals of the grammar, without quotes.
    pub(crate) expected: Vec<String>,
}

impl Failure {
    pub(crate) fn new(error: ParseError<u32, Token, ()>, tokens: &[Lexeme]) -> Self {
        let clean = |names: Vec<String>| {
            let mut names: Vec<_> =
                names.iter().map(|name| name.trim_matches('"').to_owned()).collect();
            names.sort_unstable();
            names.dedup();
            names
        };
        match error {
            ParseError::UnrecognizedToken { token: (start, token, end), expected } => {
                let found = Lexeme { token, start, end };
                let at = tokens.iter().position(|lexeme| *lexeme == found);
                Self { at: at.unwrap_or(tokens.len()), expected: clean(expected) }
            }
            ParseError::UnrecognizedEof { location: _, expected } => {
                Self { at: tokens.len(), expected: clean(expected) }
            }
            ParseError::ExtraToken { token: (start, token, end) } => {
                let found = Lexeme { token, start, end };
                let at = tokens.iter().position(|lexeme| *lexeme == found);
                Self { at: at.unwrap_or(tokens.len()), expected: Vec::new() }
            }
            ParseError::InvalidToken { location } => {
                let at = tokens.partition_point(|lexeme| lexeme.start < location);
                Self { at, expected: Vec::new() }
            }
            ParseError::User { error: () } => Self { at: tokens.len(), expected: Vec::new() },
        }
    }

    fn may(&self, name: &str) -> bool {
        self.expected.iter().any(|expected| expected == name)
    }

    /// Whether all of the names were possible.
    fn all(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.may(name))
    }

    /// Whether the name is the only closing one that was possible.
    fn only_one_of(&self, name: &str) -> bool {
        self.may(name) && !self.may(",")
    }

    fn only(&self, name: &str) -> bool {
        self.expected.len() == 1 && self.expected[0] == name
    }
}

/// The item that could not be read.
#[derive(Clone, Copy)]
pub(crate) struct Place<'t> {
    pub(crate) text: &'t str,
    pub(crate) file: FileId,
    pub(crate) tokens: &'t [Lexeme],
}

impl<'t> Place<'t> {
    /// The place of a token, or behind the last one.
    pub(crate) fn span(&self, at: usize) -> Span {
        match (self.tokens.get(at), self.tokens.last()) {
            (Some(lexeme), _) => Span::new(self.file, lexeme.start, lexeme.end),
            (None, Some(last)) => Span::new(self.file, last.start, last.end).after(),
            (None, None) => Span::new(self.file, 0, 0),
        }
    }

    fn token(&self, at: usize) -> Option<Token> {
        self.tokens.get(at).map(|lexeme| lexeme.token)
    }

    fn before(&self, at: usize) -> Option<Token> {
        at.checked_sub(1).and_then(|index| self.token(index))
    }

    fn word(&self, at: usize) -> &'t str {
        let span = self.span(at);
        self.text.get(span.range()).unwrap_or_default()
    }

    fn word_before(&self, at: usize) -> &'t str {
        at.checked_sub(1).map_or("", |index| self.word(index))
    }

    /// Whether the token stands on another line than the one before it.
    fn on_new_line(&self, at: usize) -> bool {
        let (Some(before), here) = (at.checked_sub(1).map(|b| self.span(b)), self.span(at)) else {
            return false;
        };
        let between = self.text.get(before.end as usize..here.start as usize);
        between.is_some_and(|blank| blank.contains('\n'))
    }

    /// Whether `at` stands directly in the parentheses behind `for`.
    fn for_head(&self, at: usize) -> bool {
        self.open_bracket(at).is_some_and(|open| {
            self.token(open) == Some(Token::LParen) && self.before(open) == Some(Token::For)
        })
    }

    /// Whether `at` stands directly in the braces of a struct or union type.
    fn struct_body(&self, at: usize) -> bool {
        self.open_bracket(at).is_some_and(|open| {
            self.token(open) == Some(Token::LBrace)
                && matches!(self.before(open), Some(Token::Struct | Token::Union))
        })
    }

    /// Whether `at` stands directly in the braces of a switch.
    fn in_switch(&self, at: usize) -> bool {
        let Some(open) = self.open_bracket(at) else { return false };
        if self.token(open) != Some(Token::LBrace) || self.before(open) != Some(Token::RParen) {
            return false;
        }
        let head = self.open_bracket(open - 1);
        head.is_some_and(|head| self.before(head) == Some(Token::Switch))
    }

    /// The innermost bracket that is open before `at`.
    fn open_bracket(&self, at: usize) -> Option<usize> {
        let mut depth = 0usize;
        for index in (0..at.min(self.tokens.len())).rev() {
            let token = self.tokens[index].token;
            if token.closes().is_some() {
                depth += 1;
            } else if token.opens() {
                if depth == 0 {
                    return Some(index);
                }
                depth -= 1;
            }
        }
        None
    }
}

/// Says what is wrong, and how the tokens may be repaired to go on.
pub(crate) fn explain(place: &Place<'_>, failure: &Failure) -> (Diagnostic, Option<Fix>) {
    foreign(place, failure)
        .or_else(|| special(place, failure))
        .or_else(|| missing_semicolon(place, failure))
        .unwrap_or_else(|| (unexpected(place, failure), None))
}

/// Faults that deserve words of their own.
fn special(place: &Place<'_>, failure: &Failure) -> Option<(Diagnostic, Option<Fix>)> {
    let at = failure.at;
    let here = place.span(at);
    let found = place.token(at);
    let before = place.before(at);
    let make = |message: &str| Diagnostic::new(codes::UNEXPECTED_TOKEN, message, here);
    let diagnostic = match (before, found) {
        (None, Some(Token::Ident)) if block_help(place.word(at)).is_some() => {
            let word = place.word(at);
            make(&format!("this is no `{word}` block")).help(block_help(word).unwrap_or_default())
        }
        (None, Some(_)) => make(&format!("expected a declaration, found {}", name_at(place, at)))
            .help("statements stand in functions, tasks and blocks"),
        (_, Some(Token::LBrace)) if before == Some(Token::RParen) && is_signature(failure) => {
            let fix = Some(Fix::Insert(Token::Poison));
            return Some((
                make("a result type is missing here").help("write `void` for none"),
                fix,
            ));
        }
        (Some(word @ (Token::If | Token::While | Token::For | Token::Switch)), Some(_))
            if failure.only("(") =>
        {
            let word = word.text().unwrap_or_default();
            make(&format!("expected `(` after `{word}`")).help(format!("write `{word} (…)`"))
        }
        (Some(Token::RParen), Some(_)) if failure.only("|") => {
            make("this loop does not name its element").help("write `for (values) |value| { … }`")
        }
        (Some(Token::Builtin), _) => {
            make(&format!("the builtin `{}` can only be called", place.word_before(at)))
        }
        (_, Some(Token::Assign | Token::Colon)) if failure.may("}") && is_literal(place, at) => {
            let name = place.word_before(at);
            make("a field of a struct literal begins with a dot")
                .help(format!("write `.{name} = …`"))
        }
        (_, Some(Token::Assign | Token::Colon | Token::Arrow)) if failure.may("=>") => {
            make("the values of a case are followed by `=>`")
        }
        (_, Some(Token::Assign)) if failure.may("==") && !failure.may("=") => {
            make("an assignment is no expression").help("write `==` to compare")
        }
        (_, None) => return end_of_item(place, failure),
        _ => return None,
    };
    Some((diagnostic, None))
}

/// How an item is written that begins with a contextual word.
fn block_help(word: &str) -> Option<&'static str> {
    Some(match word {
        "layout" => "write `layout { … }`",
        "tile" => "write `tile name { … }`",
        "host" => "write `host { … }`",
        "test" => "write `test \"what it promises\" { … }`",
        _ => return None,
    })
}

fn is_signature(failure: &Failure) -> bool {
    failure.all(&["linkname", "identifier", "struct"]) && !failure.may("{")
}

/// Whether the innermost bracket before `at` is the brace of a literal.
fn is_literal(place: &Place<'_>, at: usize) -> bool {
    place.open_bracket(at).is_some_and(|open| {
        place.token(open) == Some(Token::LBrace)
            && matches!(place.before(open), Some(Token::Dot | Token::Ident | Token::RParen))
            && place.before(at) == Some(Token::Ident)
    })
}

/// The item ends too early: something is not closed, or its semicolon is missing.
fn end_of_item(place: &Place<'_>, failure: &Failure) -> Option<(Diagnostic, Option<Fix>)> {
    let open = place.open_bracket(place.tokens.len())?;
    let bracket = place.word(open);
    let message = format!("this `{bracket}` is never closed");
    let diagnostic = Diagnostic::new(codes::UNCLOSED_BRACKET, message, place.span(open));
    let close = match place.token(open) {
        Some(Token::LBrace) => Token::RBrace,
        Some(Token::LParen) => Token::RParen,
        _ => Token::RBracket,
    };
    let fits = failure.may(close.text().unwrap_or_default());
    Some((diagnostic, fits.then_some(Fix::Insert(close))))
}

fn missing_semicolon(place: &Place<'_>, failure: &Failure) -> Option<(Diagnostic, Option<Fix>)> {
    let at = failure.at;
    let ends = match place.token(at) {
        None | Some(Token::RBrace) => true,
        Some(token) => {
            place.on_new_line(at)
                && (token.is_keyword() || matches!(token, Token::Ident | Token::Builtin))
        }
    };
    if !failure.may(";") || !ends {
        return None;
    }
    let before = at.checked_sub(1)?;
    let what = if place.before(at) == Some(Token::RBrace) { "this" } else { "this expression" };
    let what = if matches!(place.token(0), Some(Token::Const | Token::Var | Token::Param))
        && place.open_bracket(at).is_none()
    {
        "this declaration"
    } else {
        what
    };
    let message = format!("expected `;` after {what}");
    let diagnostic = Diagnostic::new(codes::MISSING_SEMICOLON, message, place.span(before).after())
        .label("a `;` is missing here");
    Some((diagnostic, Some(Fix::Insert(Token::Semicolon))))
}

fn unexpected(place: &Place<'_>, failure: &Failure) -> Diagnostic {
    let found = name_at(place, failure.at);
    let names = expected_names(failure);
    let message = match names.split_last() {
        None => format!("unexpected {found}"),
        Some((only, [])) => format!("expected {only}, found {found}"),
        Some((last, rest)) => format!("expected {} or {last}, found {found}", rest.join(", ")),
    };
    let diagnostic = Diagnostic::new(codes::UNEXPECTED_TOKEN, message, place.span(failure.at));
    let opener = place.open_bracket(failure.at).filter(|&open| {
        // A closing bracket of the wrong kind is understood best with its partner in view.
        place.tokens.get(failure.at).is_none_or(|found| {
            found.token.closes().is_some_and(|partner| partner != place.tokens[open].token)
        })
    });
    match opener {
        Some(open) => diagnostic.secondary(place.span(open), "opened here"),
        None => diagnostic,
    }
}

/// What stands at `at`, in words.
fn name_at(place: &Place<'_>, at: usize) -> String {
    let Some(token) = place.token(at) else { return "the end".to_owned() };
    let word = place.word(at);
    match token {
        Token::String => "a string".to_owned(),
        Token::Char => "a character literal".to_owned(),
        Token::Poison => "something that could not be read".to_owned(),
        _ if word.chars().count() > 40 => "this word".to_owned(),
        _ if token.is_keyword() => format!("the keyword `{word}`"),
        _ => format!("`{word}`"),
    }
}

const OPERATORS: [&str; 18] = [
    "+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^", "==", "!=", "<", "<=", ">", ">=", "and",
    "or",
];
const ASSIGNMENTS: [&str; 11] = ["=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "|=", "^="];
const OPERAND_STARTS: [&str; 26] = [
    "identifier",
    "builtin",
    "number",
    "string",
    "character",
    "true",
    "false",
    "(",
    "[",
    "*",
    "-",
    "!",
    "~",
    "&",
    ".",
    "|",
    "{",
    "if",
    "switch",
    "comptime",
    "fn",
    "task",
    "asm",
    "extern",
    "packed",
    "enum",
];
const STATEMENT_STARTS: [&str; 11] = [
    "const", "var", "param", "return", "break", "continue", "for", "while", "inline", "export", ";",
];
const TYPE_STARTS: [&str; 12] = [
    "identifier",
    "builtin",
    "[",
    "*",
    "(",
    "fn",
    "task",
    "struct",
    "union",
    "enum",
    "extern",
    "packed",
];

/// What could have stood there: at most four names, the helpful ones first.
fn expected_names(failure: &Failure) -> Vec<String> {
    if failure.all(&["identifier", "while", "else", "align"]) {
        return vec!["a name".to_owned()];
    }
    let mut left: Vec<&str> = failure.expected.iter().map(String::as_str).collect();
    left.retain(|name| *name != "poison");
    let mut names: Vec<String> = Vec::new();
    let mut group = |name: &str, members: &[&[&str]], left: &mut Vec<&str>| {
        left.retain(|word| !members.iter().any(|list| list.contains(word)));
        names.push(name.to_owned());
    };
    let structs = ["struct", "union"];
    if failure.all(&["const", "return", "identifier"]) {
        group("a statement", &[&STATEMENT_STARTS, &OPERAND_STARTS, &structs], &mut left);
    } else if failure.all(&["number", "identifier"]) {
        group("an expression", &[&OPERAND_STARTS, &structs], &mut left);
    } else if failure.all(&["identifier", "struct"]) {
        group("a type", &[&TYPE_STARTS], &mut left);
    }
    let after_operand = failure.all(&["+", "=="]);
    if after_operand {
        left.retain(|word| !OPERATORS.contains(word) && !ASSIGNMENTS.contains(word));
        left.retain(|word| *word != ":");
    }
    if failure.all(&[".", "(", "["]) {
        // What may follow a name always.
        left.retain(|word| ![".", ".*", "(", "[", "{"].contains(word));
    }
    let rank = |word: &str| [";", ",", ")", "]", "}", ":", "="].iter().position(|w| *w == word);
    left.sort_by_key(|word| rank(word).unwrap_or(usize::MAX));
    let room = if after_operand { 3 } else { 4 };
    for word in left {
        if names.len() < room {
            names.push(human(word));
        }
    }
    if after_operand {
        names.push("an operator".to_owned());
    }
    names
}

fn human(terminal: &str) -> String {
    match terminal {
        "identifier" => "a name".to_owned(),
        "builtin" => "a builtin".to_owned(),
        "number" => "a number".to_owned(),
        "string" => "a string".to_owned(),
        "character" => "a character literal".to_owned(),
        word => format!("`{word}`"),
    }
}
