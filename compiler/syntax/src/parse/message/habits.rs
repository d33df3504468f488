//! Habits of other languages: what stands there, and what it is called here.

use super::super::repair::Fix;
use super::{Failure, Place, is_signature};
use crate::Span;
use crate::diagnostic::{Diagnostic, codes};
use crate::token::Token;

fn habit(span: Span, message: &str, help: &str) -> Diagnostic {
    Diagnostic::new(codes::ZIG_HABIT, message, span).help(help)
}

/// Forms of other languages.
pub(super) fn foreign(place: &Place<'_>, failure: &Failure) -> Option<(Diagnostic, Option<Fix>)> {
    let at = failure.at;
    if let Some(word) = block_word(place, at) {
        return Some(no_such_word(place, word));
    }
    if let Some(found) = bare_list(place, at) {
        return Some(found);
    }
    let here = place.span(at);
    let before = place.before(at);
    let (message, help, fix) = match place.token(at)? {
        Token::Arrow if before == Some(Token::RParen) => (
            "a result type stands without an arrow",
            "write `fn f(x: u16) u16 {`",
            Some(Fix::Delete),
        ),
        Token::Question if before.is_some_and(Token::ends_operand) => {
            ("there is no `?:` operator", "write `if (condition) a else b`", None)
        }
        Token::Question => ("there are no optional types", "use a flag beside the value", None),
        Token::PlusPlus
            if matches!(place.token(at + 1), Some(Token::Semicolon | Token::RParen)) =>
        {
            ("there is no `++` operator", "write `x += 1`", None)
        }
        Token::PlusPlus => (
            "there is no `++` operator",
            "join strings with `@strcat`; write the elements of an array into one that is long enough",
            None,
        ),
        Token::AmpAmp => ("there is no `&&` operator", "write `and`", None),
        Token::BarBar => ("there is no `||` operator", "write `or`", None),
        Token::DotDot => {
            let bracket = place.open_bracket(at).and_then(|open| place.token(open));
            if place.in_switch(at) {
                (
                    "a case takes no range of values",
                    "list the values, `1, 2, 3 => …`, or use `if`",
                    None,
                )
            } else if bracket == Some(Token::LBracket) {
                (
                    "there are no slices of arrays",
                    "make a descriptor with `@get_dsd`, or use a loop",
                    None,
                )
            } else {
                ("there are no `..` ranges", "write `@range(u16, n)`", None)
            }
        }
        token => {
            return foreign_form(place, failure, token)
                .or_else(|| foreign_word(place, at))
                .or_else(|| foreign_declaration(place, at));
        }
    };
    Some((habit(here, message, help), fix))
}

/// Forms of other languages that our words make.
fn foreign_form(
    place: &Place<'_>,
    failure: &Failure,
    token: Token,
) -> Option<(Diagnostic, Option<Fix>)> {
    let at = failure.at;
    let before = place.before(at);
    let (message, help) = match token {
        _ if before == Some(Token::Star)
            && at > 1
            && place.before(at - 1) == Some(Token::Star)
            && failure.may("const") =>
        {
            ("there is no `**` operator", "multiply, or shift with `<<`")
        }
        Token::Bang if is_signature(failure) => (
            "there are no error types",
            "write the type alone; give back a flag or a number for failures",
        ),
        Token::Comma if place.for_head(at) && failure.only_one_of(")") => (
            "a loop walks one array",
            "take the other array's element by the index: `for (a) |x, i| { … b[i] … }`",
        ),
        Token::Var | Token::Const if place.for_head(at) => (
            "there are no loops with three parts",
            "write `for (@range(i16, n)) |i| { … }`, or `while (condition) : (step) { … }`",
        ),
        Token::Ident if before == Some(Token::Dot) && failure.only("{") => (
            "an element of an enum is named with its type",
            "write `Type.element`; options are chosen by a field: `.{ .option = true }`",
        ),
        Token::Ident if before == Some(Token::Fn) && failure.only("(") => {
            ("a function cannot be declared inside another", "declare it at file scope")
        }
        Token::Ident if before == Some(Token::For) => (
            "a loop has its values in parentheses and its variable behind",
            "write `for (@range(i16, n)) |i| { … }`",
        ),
        Token::Ident
            if before.is_some_and(|word| matches!(word, Token::Fn | Token::Task))
                && place.struct_body(at) =>
        {
            ("a struct has no functions", "declare the function at file scope")
        }
        _ => return None,
    };
    Some((habit(place.span(at), message, help), None))
}

/// `int x = 3;` and `void f() {`: the type in front.
fn foreign_declaration(place: &Place<'_>, at: usize) -> Option<(Diagnostic, Option<Fix>)> {
    let (ty, name) = match place.token(at)? {
        // At file scope already the type is no declaration.
        Token::Ident if at == 0 && place.token(1) == Some(Token::Ident) => (0, 1),
        Token::Ident if place.before(at) == Some(Token::Ident) && !place.on_new_line(at) => {
            (at - 1, at)
        }
        _ => return None,
    };
    let before = place.before(ty);
    let (ty, name) = (place.word(ty), place.word(name));
    // `x: i16 y: i16` lacks a comma.
    if before == Some(Token::Colon) || !is_type_word(ty) {
        return None;
    }
    if matches!(before, Some(Token::LParen | Token::Comma)) {
        let open = place.open_bracket(at)?;
        let named = open.checked_sub(2).and_then(|word| place.token(word));
        if !matches!(named, Some(Token::Fn | Token::Task)) {
            return None;
        }
        let help = format!("write `{name}: {}`", our_type(ty));
        return Some((habit(place.span(at), "a type stands behind the name", &help), None));
    }
    let next = place.token(at + if at == 0 { 2 } else { 1 });
    let help = match next {
        Some(Token::LParen) => format!("write `fn {name}() {ty} {{ … }}`"),
        _ => format!("write `var {name}: {} = …;`", our_type(ty)),
    };
    let message = "a declaration begins with `const`, `var`, `fn` or `task`";
    Some((habit(place.span(at), message, &help), None))
}

fn is_type_word(word: &str) -> bool {
    let sized = word.strip_prefix(['i', 'u', 'f']).is_some_and(|bits| bits.parse::<u16>().is_ok());
    sized || matches!(word, "void" | "bool" | "color") || our_type(word) != word
}

/// Our name for a type of C.
fn our_type(word: &str) -> &str {
    match word {
        "char" | "int8_t" => "i8",
        "short" | "int16_t" => "i16",
        "int" | "long" | "int32_t" => "i32",
        "uint8_t" | "byte" => "u8",
        "uint16_t" => "u16",
        "unsigned" | "uint" | "uint32_t" | "size_t" => "u32",
        "half" => "f16",
        "float" | "double" => "f32",
        other => other,
    }
}

/// Keywords of other languages: identifiers here, and what follows them makes no sense.
fn foreign_word(place: &Place<'_>, at: usize) -> Option<(Diagnostic, Option<Fix>)> {
    let help_for = |index: usize| match place.token(index)? {
        Token::Ident => foreign_help(place.word(index)),
        _ => None,
    };
    // Such a word is taken for an operator or keyword only if it stands where one would.
    let beside = !place.on_new_line(at);
    let (index, help) = match help_for(at) {
        Some(help) if at == 0 || beside => (at, help),
        _ if beside && begins_operand(place.token(at)?) => (at.checked_sub(1)?, help_for(at - 1)?),
        _ => return None,
    };
    let message = format!("there is no `{}`", place.word(index));
    Some((habit(place.span(index), &message, help), None))
}

/// The word in front of the braces around a token, as in `do { … }` and `elif (…) { … }`: alone it would be a name, and
/// what follows it a value of that type.
fn block_word(place: &Place<'_>, at: usize) -> Option<usize> {
    let open = place.open_bracket(at).filter(|&open| place.token(open) == Some(Token::LBrace))?;
    let word = match place.before(open)? {
        Token::RParen => place.open_bracket(open - 1)?.checked_sub(1)?,
        _ => open - 1,
    };
    let is_word = place.token(word) == Some(Token::Ident)
        && matches!(place.word(word), "elif" | "elseif" | "do" | "loop" | "until");
    is_word.then_some(word)
}

fn no_such_word(place: &Place<'_>, word: usize) -> (Diagnostic, Option<Fix>) {
    let message = format!("there is no `{}`", place.word(word));
    let help = foreign_help(place.word(word)).unwrap_or_default();
    (habit(place.span(word), &message, help), None)
}

/// `[1, 2, 3]`, which nothing follows: a type without its elements' type.
fn bare_list(place: &Place<'_>, at: usize) -> Option<(Diagnostic, Option<Fix>)> {
    let close = at.checked_sub(1).filter(|&close| place.token(close) == Some(Token::RBracket))?;
    let open = place.open_bracket(close)?;
    let begins = !place.before(open)?.ends_operand();
    let ends = matches!(
        place.token(at),
        None | Some(Token::Semicolon | Token::Comma | Token::RParen | Token::RBrace)
    );
    let message = "the elements of an array stand in braces, behind its type";
    let found = habit(
        Span::new(place.file, place.span(open).start, place.span(close).end),
        message,
        "write `[3]i16{ 1, 2, 3 }`",
    );
    (begins && ends).then_some((found, None))
}

fn begins_operand(token: Token) -> bool {
    token.is_keyword()
        || matches!(
            token,
            Token::Ident
                | Token::Builtin
                | Token::Number
                | Token::String
                | Token::Char
                | Token::LBrace
                | Token::Dot
                | Token::Bang
        )
}

fn foreign_help(word: &str) -> Option<&'static str> {
    Some(match word {
        "defer" | "errdefer" => "write the statement where it is to run",
        "try" | "catch" | "orelse" => "there are no error values; test a flag with `if`",
        "pub" => "every declaration of a module is visible; leave the word out",
        "async" | "await" | "suspend" | "resume" => {
            "tasks and asynchronous operations wait; see `.async` of the vector operations"
        }
        "let" | "auto" => "write `const` or `var`",
        "func" | "function" | "def" | "proc" => "write `fn`",
        "elif" | "elseif" => "write `else if`",
        "do" | "until" | "loop" => "write `while (condition) { … }`",
        "case" | "default" => "write `value => …` and `else => …` inside of `switch`",
        "usingnamespace" | "import" | "include" | "use" => {
            "write `const name = @import_module(\"path\");`"
        }
        "not" => "write `!`",
        "unreachable" => "leave it out",
        _ => return None,
    })
}
