//! What literals say. Pure functions of their text.

use std::ops::Range;

use crate::diagnostic::{Code, codes};

/// A fault of a literal: what kind, in words, and which bytes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) range: Range<usize>,
}

/// A number as read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Int(u128),
    Float(f64),
}

/// How many bytes at the start of `text`, which begins with a digit, belong to one number. Letters count
/// too, so that `12abc` is one bad number and not two words.
pub(crate) fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let hex = matches!(bytes, [b'0', b'x' | b'X', ..]);
    let mut seen_dot = false;
    let mut at = 1;
    while let Some(&byte) = bytes.get(at) {
        let last = bytes[at - 1];
        let exponent = if hex { matches!(last, b'p' | b'P') } else { matches!(last, b'e' | b'E') };
        let next = bytes.get(at + 1).copied().unwrap_or(b' ');
        let goes_on = match byte {
            b'+' | b'-' => exponent && next.is_ascii_digit(),
            b'.' if seen_dot => false,
            b'.' => {
                seen_dot = true;
                dot_is_part(hex, &bytes[at + 1..])
            }
            _ => byte.is_ascii_alphanumeric() || byte == b'_',
        };
        if !goes_on {
            break;
        }
        at += 1;
    }
    at
}

/// Whether a dot inside a number belongs to it: not in `1..2`, `1.*` or `1.name`.
fn dot_is_part(hex: bool, after: &[u8]) -> bool {
    match after {
        [digit, ..] if digit.is_ascii_digit() || (hex && digit.is_ascii_hexdigit()) => true,
        [b'e' | b'E', sign_or_digit, ..] if !hex => {
            sign_or_digit.is_ascii_digit() || matches!(sign_or_digit, b'+' | b'-')
        }
        [b'p' | b'P', ..] => hex,
        [next, ..] => !(next.is_ascii_alphabetic() || b"._*{".contains(next)),
        [] => true,
    }
}

/// Reads a number token.
pub(crate) fn number(text: &str) -> Result<Number, Fault> {
    let whole = 0..text.len();
    let fault = |code, message: &str| Fault { code, message: message.into(), range: whole.clone() };
    if text.ends_with('_') || text.contains("_.") || text.contains("._") {
        return Err(fault(codes::INVALID_NUMBER, "a `_` stands between two digits"));
    }
    let digits = text.replace('_', "");
    let lower = digits.to_ascii_lowercase();
    if let Some(hex) = lower.strip_prefix("0x") {
        if hex.contains(['.', 'p']) {
            return hex_float(hex).map(Number::Float).map_err(|m| fault(codes::INVALID_FLOAT, m));
        }
        return integer(hex, 16, "hexadecimal").map_err(|(code, m)| fault(code, &m));
    }
    for (prefix, radix, name) in [("0b", 2, "binary"), ("0o", 8, "octal")] {
        if let Some(digits) = lower.strip_prefix(prefix) {
            return integer(digits, radix, name).map_err(|(code, m)| fault(code, &m));
        }
    }
    if lower.contains('.')
        || (lower.contains('e') && lower.starts_with(|c: char| c.is_ascii_digit()))
    {
        return decimal_float(&lower)
            .map(Number::Float)
            .map_err(|m| fault(codes::INVALID_FLOAT, m));
    }
    integer(&lower, 10, "decimal").map_err(|(code, m)| fault(code, &m))
}

fn integer(digits: &str, radix: u32, name: &str) -> Result<Number, (Code, String)> {
    if digits.is_empty() {
        return Err((codes::INVALID_NUMBER, format!("this {name} number has no digits")));
    }
    if let Some(bad) = digits.chars().find(|c| !c.is_digit(radix)) {
        return Err((codes::INVALID_NUMBER, format!("`{bad}` is no {name} digit")));
    }
    u128::from_str_radix(digits, radix)
        .map(Number::Int)
        .map_err(|_| (codes::INTEGER_TOO_LARGE, "this integer has more than 128 bits".to_owned()))
}

fn decimal_float(text: &str) -> Result<f64, &'static str> {
    let known = text.bytes().all(|b| b.is_ascii_digit() || b".e+-".contains(&b));
    let value: f64 =
        text.parse().ok().filter(|_| known).ok_or("this is no floating-point number")?;
    finite(value)
}

fn finite(value: f64) -> Result<f64, &'static str> {
    if value.is_finite() { Ok(value) } else { Err("this number is too large for 64 bits") }
}

/// `1.8p3` without the prefix, lower case. Rounded once, to the nearest, ties to even.
fn hex_float(text: &str) -> Result<f64, &'static str> {
    const BAD: &str = "this is no hexadecimal floating-point number";
    let (mantissa, exponent) = text.split_once('p').unwrap_or((text, "0"));
    let exponent: i64 = exponent.parse().map_err(|_| BAD)?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return Err(BAD);
    }
    let mut bits: u128 = 0;
    let mut scale = exponent.clamp(-1_000_000, 1_000_000);
    let mut sticky = false;
    for (at, digit) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = digit.to_digit(16).ok_or(BAD)?;
        let in_fraction = at >= whole.len();
        if bits >> 120 == 0 {
            bits = bits << 4 | u128::from(digit);
            scale -= if in_fraction { 4 } else { 0 };
        } else {
            sticky |= digit != 0;
            scale += if in_fraction { 0 } else { 4 };
        }
    }
    finite(scaled(bits | u128::from(sticky), scale))
}

/// `bits * 2^scale`, rounded once. The lowest bit may stand for everything below it.
fn scaled(bits: u128, scale: i64) -> f64 {
    if bits == 0 {
        return 0.0;
    }
    let length = i64::from(128 - bits.leading_zeros());
    // The value of the result's last place: 53 bits of precision, no finer than 2^-1074.
    let last = (scale + length - 53).max(-1074);
    let shift = last - scale;
    if shift > 127 {
        // Less than half of the last place: zero, or one unit if it is above the half.
        return if shift == length && bits > 1 << (length - 1) { f64::from_bits(1) } else { 0.0 };
    }
    let kept = if shift <= 0 {
        bits << (-shift).min(127)
    } else {
        let kept = bits >> shift;
        let rest = bits & ((1 << shift) - 1);
        let half = 1u128 << (shift - 1);
        kept + u128::from(rest > half || (rest == half && kept & 1 == 1))
    };
    // At most 2^53, hence exact; the scaling is by powers of two and exact, or overflows.
    let mut value = kept as f64;
    let mut left = last.min(2000);
    while left != 0 {
        let step = left.clamp(-1000, 1000);
        value *= f64::from_bits(u64::try_from(step + 1023).unwrap_or(0) << 52);
        left -= step;
    }
    value
}

/// What a string token says. Faulty escapes are left out of the bytes.
pub(crate) fn string(token: &str) -> (Vec<u8>, Vec<Fault>) {
    let inner = token.strip_prefix('"').unwrap_or(token);
    // An unclosed string has been reported by the lexer.
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    unescape(inner, 1)
}

/// The value of a character token.
pub(crate) fn character(token: &str) -> Result<u128, Fault> {
    let inner = token.strip_prefix('\'').unwrap_or(token);
    let closed = inner.len() > 1 || !token.ends_with('\'') || token.len() > 1;
    let inner = inner.strip_suffix('\'').filter(|_| closed).unwrap_or(inner);
    let (bytes, mut faults) = unescape(inner, 1);
    if !faults.is_empty() {
        return Err(faults.swap_remove(0));
    }
    if let [byte] = bytes[..] {
        return Ok(u128::from(byte));
    }
    let text = String::from_utf8_lossy(&bytes);
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(one), None) => Ok(u128::from(u32::from(one))),
        _ => Err(Fault {
            code: codes::INVALID_CHARACTER_LITERAL,
            message: "a character literal holds exactly one character".into(),
            range: 0..token.len(),
        }),
    }
}

fn unescape(inner: &str, offset: usize) -> (Vec<u8>, Vec<Fault>) {
    let mut bytes = Vec::with_capacity(inner.len());
    let mut faults = Vec::new();
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let start = inner.len() - rest.len() + at;
        let (length, result) = escape(&rest[at + 1..]);
        match result {
            Ok(()) => push_escape(&rest[at + 1..at + 1 + length], &mut bytes),
            Err(message) => faults.push(Fault {
                code: codes::INVALID_ESCAPE,
                message: message.into(),
                range: offset + start..offset + start + 1 + length,
            }),
        }
        rest = &rest[at + 1 + length..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    (bytes, faults)
}

/// Length of the escape that stands behind a backslash, and whether it is good.
fn escape(text: &str) -> (usize, Result<(), &'static str>) {
    let Some(kind) = text.chars().next() else { return (0, Err("nothing is escaped here")) };
    let digits = match kind {
        'n' | 'r' | 't' | '\\' | '\'' | '"' => return (1, Ok(())),
        'x' => 2,
        'u' => 4,
        'U' => 6,
        _ => return (kind.len_utf8(), Err("there is no such escape sequence")),
    };
    let found = text[1..].bytes().take(digits).take_while(u8::is_ascii_hexdigit).count();
    let valid = u32::from_str_radix(&text[1..1 + found], 16)
        .is_ok_and(|code| found == digits && (kind == 'x' || char::from_u32(code).is_some()));
    let message = match kind {
        'x' => "`\\x` needs two hexadecimal digits",
        'u' => "`\\u` needs four hexadecimal digits of a character",
        _ => "`\\U` needs six hexadecimal digits of a character",
    };
    (1 + found, if valid { Ok(()) } else { Err(message) })
}

/// Adds what a good escape stands for.
fn push_escape(text: &str, bytes: &mut Vec<u8>) {
    let code = || u32::from_str_radix(&text[1..], 16).unwrap_or(0);
    match text.as_bytes()[0] {
        b'n' => bytes.push(b'\n'),
        b'r' => bytes.push(b'\r'),
        b't' => bytes.push(b'\t'),
        b'x' => bytes.push(u8::try_from(code()).unwrap_or(0)),
        b'u' | b'U' => {
            let character = char::from_u32(code()).unwrap_or('\u{fffd}');
            bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        other => bytes.push(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> &'static str {
        number(text).unwrap_err().code.id()
    }

    #[test]
    fn numbers_end_where_they_should() {
        for (text, word) in [
            ("0..n", "0"),
            ("1.5.x", "1.5"),
            ("1.*", "1"),
            ("1.e-5+x", "1.e-5"),
            ("1.;", "1."),
            ("1e3-2", "1e3"),
            ("0x1e-3", "0x1e"),
            ("0x1p-3", "0x1p-3"),
            ("12abc", "12abc"),
            ("1_000,", "1_000"),
        ] {
            assert_eq!(&text[..number_length(text)], word, "{text}");
        }
    }

    #[test]
    fn integers() {
        assert_eq!(number("1_000"), Ok(Number::Int(1000)));
        assert_eq!(number("0xBEef"), Ok(Number::Int(0xbeef)));
        assert_eq!(number("0b0101"), Ok(Number::Int(5)));
        assert_eq!(number("0o17"), Ok(Number::Int(15)));
        assert_eq!(number(&u128::MAX.to_string()), Ok(Number::Int(u128::MAX)));
        assert_eq!(fault(&format!("{}0", u128::MAX)), "integer-too-large");
        assert_eq!(fault("0b012"), "invalid-number");
        assert_eq!(fault("0x"), "invalid-number");
        assert_eq!(fault("12abc"), "invalid-number");
        assert_eq!(fault("1_"), "invalid-number");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "powers of two are exact everywhere")]
    fn floats() {
        assert_eq!(number("1.5"), Ok(Number::Float(1.5)));
        assert_eq!(number("1."), Ok(Number::Float(1.0)));
        assert_eq!(number("1.e-5"), Ok(Number::Float(1e-5)));
        assert_eq!(number("2e10"), Ok(Number::Float(2e10)));
        assert_eq!(number("0x1.8p3"), Ok(Number::Float(12.0)));
        assert_eq!(number("0x1p-1074"), Ok(Number::Float(f64::from_bits(1))));
        assert_eq!(number("0x1.8p-1075"), Ok(Number::Float(f64::from_bits(1))));
        assert_eq!(number("0x1p-1075"), Ok(Number::Float(0.0)));
        assert_eq!(number("0x1p-9999"), Ok(Number::Float(0.0)));
        assert_eq!(number("0x1.fffffffffffffp1023"), Ok(Number::Float(f64::MAX)));
        assert_eq!(number("0x10000000000000000000000000000000000000000p0").ok(), {
            Some(Number::Float(160f64.exp2()))
        });
        assert_eq!(fault("1e999"), "invalid-float");
        assert_eq!(fault("0x1p9999"), "invalid-float");
        assert_eq!(fault("1.5f"), "invalid-float");
    }

    #[test]
    fn strings_and_characters() {
        assert_eq!(string(r#""a\n\x41\u00e9\"""#).0, "a\nA\u{e9}\"".as_bytes());
        let (bytes, faults) = string(r#""a\qb\x4""#);
        assert_eq!(bytes, b"ab");
        assert_eq!(faults.iter().map(|f| f.range.clone()).collect::<Vec<_>>(), [2..4, 5..8]);
        assert_eq!(character("'a'"), Ok(97));
        assert_eq!(character(r"'\''"), Ok(39));
        assert_eq!(character("'\u{e9}'"), Ok(0xe9));
        assert_eq!(character("''").unwrap_err().code.id(), "invalid-character-literal");
        assert_eq!(character("'ab'").unwrap_err().code.id(), "invalid-character-literal");
    }
}
