//! Lines of words, strings and signs, and a cursor over one line.

use std::str::FromStr;

use cranelift_entity::EntityRef;

use super::TextError;
use super::names::Word;
use crate::loc::Loc;
use crate::mesh::Color;
use crate::ty::Ty;

/// A piece of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// Letters, digits, `_` and `.`; a `-` before a digit belongs to it.
    Word(String),
    /// Between double quotes, unescaped.
    Text(String),
    /// Any other character.
    Sign(char),
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Token::Word(word) => write!(f, "`{word}`"),
            Token::Text(text) => write!(f, "{text:?}"),
            Token::Sign(sign) => write!(f, "`{sign}`"),
        }
    }
}

pub(super) type Parsed<T> = Result<T, TextError>;

/// A line that is not empty, being read from left to right.
#[derive(Clone, Debug)]
pub(super) struct Line {
    number: u32,
    tokens: Vec<Token>,
    next: usize,
}

/// Cuts a text into its lines; empty ones and comments (`;` to the end of the line) are dropped.
pub(super) fn lines(text: &str) -> Parsed<Vec<Line>> {
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let tokens = tokens(line).map_err(|reason| TextError { line: number, reason })?;
        if !tokens.is_empty() {
            lines.push(Line { number, tokens, next: 0 });
        }
    }
    Ok(lines)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '.'
}

fn tokens(line: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\r' => {}
            ';' => break,
            '"' => tokens.push(Token::Text(string(&mut chars)?)),
            c if is_word(c) || c == '-' && chars.peek().is_some_and(char::is_ascii_digit) => {
                let mut word = String::from(c);
                while let Some(c) = chars.next_if(|&c| is_word(c)) {
                    word.push(c);
                }
                tokens.push(Token::Word(word));
            }
            other => tokens.push(Token::Sign(other)),
        }
    }
    Ok(tokens)
}

fn string(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<String, String> {
    let mut text = String::new();
    loop {
        match chars.next().ok_or("a string has no end")? {
            '"' => return Ok(text),
            '\\' => text.push(escape(chars)?),
            other => text.push(other),
        }
    }
}

fn escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<char, String> {
    match chars.next() {
        Some('n') => Ok('\n'),
        Some('"') => Ok('"'),
        Some('\\') => Ok('\\'),
        Some('u') => {
            let digits: String = chars.by_ref().skip(1).take_while(|&c| c != '}').collect();
            let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
            code.ok_or_else(|| format!("no character has the code `{digits}`"))
        }
        Some(_) | None => Err("an unknown escape in a string".to_owned()),
    }
}

/// A string as [`lines`] reads it back: one line, whatever is in it.
pub(super) fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            c if c.is_control() => quoted.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

impl Line {
    pub(super) fn error<T>(&self, reason: impl ToString) -> Parsed<T> {
        Err(TextError { line: self.number, reason: reason.to_string() })
    }

    /// What was expected here, against what is.
    pub(super) fn expected<T>(&self, what: &str) -> Parsed<T> {
        match self.tokens.get(self.next) {
            Some(token) => self.error(format!("expected {what}, found {token}")),
            None => self.error(format!("expected {what}, found the end of the line")),
        }
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn is_done(&self) -> bool {
        self.next == self.tokens.len()
    }

    pub(super) fn end(&self) -> Parsed<()> {
        if self.is_done() { Ok(()) } else { self.expected("the end of the line") }
    }

    pub(super) fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next)
    }

    pub(super) fn peek_word(&self) -> Option<&str> {
        match self.peek() {
            Some(Token::Word(word)) => Some(word),
            Some(Token::Text(_) | Token::Sign(_)) | None => None,
        }
    }

    pub(super) fn word(&mut self, what: &str) -> Parsed<String> {
        match self.peek_word() {
            Some(word) => {
                let word = word.to_owned();
                self.next += 1;
                Ok(word)
            }
            None => self.expected(what),
        }
    }

    /// Reads the word if it is the next.
    pub(super) fn eat(&mut self, word: &str) -> bool {
        let found = self.peek_word() == Some(word);
        self.next += usize::from(found);
        found
    }

    pub(super) fn keyword(&mut self, word: &str) -> Parsed<()> {
        if self.eat(word) { Ok(()) } else { self.expected(&format!("`{word}`")) }
    }

    pub(super) fn eat_sign(&mut self, sign: char) -> bool {
        let found = self.peek() == Some(&Token::Sign(sign));
        self.next += usize::from(found);
        found
    }

    pub(super) fn sign(&mut self, sign: char) -> Parsed<()> {
        if self.eat_sign(sign) { Ok(()) } else { self.expected(&format!("`{sign}`")) }
    }

    pub(super) fn text(&mut self) -> Parsed<String> {
        match self.peek() {
            Some(Token::Text(text)) => {
                let text = text.clone();
                self.next += 1;
                Ok(text)
            }
            Some(Token::Word(_) | Token::Sign(_)) | None => self.expected("a string"),
        }
    }

    /// Reads a word and turns it into a value; the word stays if it is none.
    pub(super) fn value<T>(&mut self, what: &str, read: impl Fn(&str) -> Option<T>) -> Parsed<T> {
        match self.peek_word().and_then(read) {
            Some(value) => {
                self.next += 1;
                Ok(value)
            }
            None => self.expected(what),
        }
    }

    /// A decimal number that fits `T`.
    pub(super) fn int<T: FromStr>(&mut self) -> Parsed<T> {
        self.value("a number", |word| word.parse().ok())
    }

    /// A number, decimal or `0x` hexadecimal.
    pub(super) fn bits(&mut self) -> Parsed<u64> {
        self.value("a number", parse_bits)
    }

    /// `key=number`, the key already read.
    pub(super) fn assigned<T: FromStr>(&mut self) -> Parsed<T> {
        self.sign('=')?;
        self.int()
    }

    /// `key = number`.
    pub(super) fn field<T: FromStr>(&mut self, key: &str) -> Parsed<T> {
        self.keyword(key)?;
        self.assigned()
    }

    /// An index, as its type prints it.
    pub(super) fn entity<K: EntityRef + std::fmt::Display>(&mut self) -> Parsed<K> {
        let prefix = entity_prefix::<K>();
        self.value(&format!("`{prefix}0` or the like"), |word| entity(word, &prefix))
    }

    pub(super) fn ty(&mut self) -> Parsed<Ty> {
        self.value("a type", Ty::from_name)
    }

    pub(super) fn color(&mut self) -> Parsed<Color> {
        self.value("a color", |word| Color::new(word.strip_prefix("color")?.parse().ok()?))
    }

    pub(super) fn member<T: Word>(&mut self) -> Parsed<T> {
        self.value(&format!("a {}", T::WHAT), T::from_word)
    }

    /// `@file:line:column`, or nothing.
    pub(super) fn loc(&mut self) -> Parsed<Loc> {
        if !self.eat_sign('@') {
            return Ok(Loc::default());
        }
        let file = self.int()?;
        self.sign(':')?;
        let line = self.int()?;
        self.sign(':')?;
        Ok(Loc { file, line, column: self.int()? })
    }

    /// `@file:line:column`, or nothing, and the end of the line.
    pub(super) fn loc_end(&mut self) -> Parsed<Loc> {
        let loc = self.loc()?;
        self.end()?;
        Ok(loc)
    }

    /// Items between commas, up to the sign that closes them.
    pub(super) fn list<T>(
        &mut self,
        close: char,
        mut item: impl FnMut(&mut Line) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        while !self.eat_sign(close) {
            if !items.is_empty() {
                self.sign(',')?;
            }
            items.push(item(self)?);
        }
        Ok(items)
    }
}

fn parse_bits(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

pub(super) fn entity_prefix<K: EntityRef + std::fmt::Display>() -> String {
    K::new(0).to_string().trim_end_matches('0').to_owned()
}

pub(super) fn entity<K: EntityRef>(word: &str, prefix: &str) -> Option<K> {
    let index: u32 = word.strip_prefix(prefix)?.parse().ok()?;
    (index != u32::MAX).then(|| K::new(index as usize))
}
