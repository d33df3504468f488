//! The words of the language.
//!
//! Tokens carry no text: what an identifier or literal says is read from the source by its place.
//! `tile`, `host`, `test` and `layout` are ordinary identifiers here; the parser promotes them where an item
//! begins.

use logos::{FilterResult, Lexer, Logos};

use crate::literal;

macro_rules! tokens {
    (
        keywords { $($keyword:ident $keyword_text:literal)* }
        symbols { $($symbol:ident $symbol_text:literal)* }
    ) => {
        /// A word of the language.
        #[derive(Logos, Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[logos(skip r"[ \t\r\n\x0C]+")]
        #[logos(skip(r"//[^\n]*", allow_greedy = true))]
        pub(crate) enum Token {
            $(#[token($keyword_text)] $keyword,)*
            $(#[token($symbol_text)] $symbol,)*
            #[regex("[A-Za-z_][A-Za-z0-9_]*")]
            Ident,
            #[regex("@[A-Za-z_][A-Za-z0-9_]*")]
            Builtin,
            #[regex("[0-9]", number)]
            Number,
            #[token("\"", |lex| quoted(lex, b'"'))]
            String,
            #[token("'", |lex| quoted(lex, b'\''))]
            Char,
            #[token("/*", block_comment)]
            BlockComment,
            // Made by the parser, never by the lexer.
            Layout,
            Tile,
            Host,
            Test,
            /// Stands for something that could not be read.
            Poison,
        }

        impl Token {
            /// The fixed text of a keyword or symbol.
            pub(crate) fn text(self) -> Option<&'static str> {
                match self {
                    $(Self::$keyword => Some($keyword_text),)*
                    $(Self::$symbol => Some($symbol_text),)*
                    Self::Layout => Some("layout"),
                    Self::Tile => Some("tile"),
                    Self::Host => Some("host"),
                    Self::Test => Some("test"),
                    Self::Ident | Self::Builtin | Self::Number | Self::String | Self::Char
                    | Self::BlockComment | Self::Poison => None,
                }
            }

            pub(crate) fn is_keyword(self) -> bool {
                matches!(self, $(Self::$keyword)|*)
            }
        }
    };
}

tokens! {
    keywords {
        Align "align" And "and" Anytype "anytype" Asm "asm" Break "break" Comptime "comptime"
        Const "const" Continue "continue" Else "else" Enum "enum" Export "export"
        Extern "extern" False "false" Fn "fn" For "for" If "if" Inline "inline"
        Linkname "linkname" Linksection "linksection" Noinline "noinline" Or "or"
        Packed "packed" Param "param" Return "return" Struct "struct" Switch "switch"
        Task "task" True "true" Union "union" Var "var" Volatile "volatile" While "while"
    }
    symbols {
        LBrace "{" RBrace "}" LParen "(" RParen ")" LBracket "[" RBracket "]"
        Comma "," Semicolon ";" Colon ":" Dot "." DotStar ".*" Arrow "->" FatArrow "=>"
        Assign "=" AddAssign "+=" SubAssign "-=" MulAssign "*=" DivAssign "/=" RemAssign "%="
        ShlAssign "<<=" ShrAssign ">>=" AndAssign "&=" OrAssign "|=" XorAssign "^="
        Eq "==" Ne "!=" Lt "<" Le "<=" Gt ">" Ge ">="
        Plus "+" Minus "-" Star "*" Slash "/" Percent "%" Shl "<<" Shr ">>"
        Amp "&" Bar "|" Caret "^" Tilde "~" Bang "!"
        // Words of other languages, known only to say what to write instead.
        PlusPlus "++" AmpAmp "&&" BarBar "||" DotDot ".." Question "?"
    }
}

impl Token {
    /// Whether it opens a bracket.
    pub(crate) fn opens(self) -> bool {
        matches!(self, Self::LBrace | Self::LParen | Self::LBracket)
    }

    /// Whether a name that it declares stands behind it.
    pub(crate) fn declares(self) -> bool {
        matches!(self, Self::Const | Self::Var | Self::Param | Self::Fn | Self::Task)
    }

    /// The bracket that it closes.
    pub(crate) fn closes(self) -> Option<Self> {
        match self {
            Self::RBrace => Some(Self::LBrace),
            Self::RParen => Some(Self::LParen),
            Self::RBracket => Some(Self::LBracket),
            _ => None,
        }
    }

    /// Whether an expression or type can end with it.
    pub(crate) fn ends_operand(self) -> bool {
        matches!(
            self,
            Self::Ident
                | Self::Number
                | Self::String
                | Self::Char
                | Self::True
                | Self::False
                | Self::RParen
                | Self::RBracket
                | Self::RBrace
                | Self::DotStar
        )
    }
}

fn number(lex: &mut Lexer<'_, Token>) {
    let start = lex.span().start;
    let length = literal::number_length(&lex.source()[start..]);
    lex.bump(length - lex.span().len());
}

/// Up to the closing quote, or to the end of the line if there is none; the lexer reports that.
fn quoted(lex: &mut Lexer<'_, Token>, quote: u8) {
    let rest = lex.remainder().as_bytes();
    let mut at = 0;
    while at < rest.len() && rest[at] != b'\n' {
        match rest[at] {
            byte if byte == quote => {
                at += 1;
                break;
            }
            b'\\' if rest.get(at + 1).is_some_and(|&next| next != b'\n') => at += 2,
            _ => at += 1,
        }
    }
    // A backslash before a character of several bytes must not end inside it.
    while !lex.remainder().is_char_boundary(at) {
        at += 1;
    }
    lex.bump(at);
}

fn block_comment(lex: &mut Lexer<'_, Token>) -> FilterResult<(), ()> {
    let rest = lex.remainder();
    let length = rest.find("*/").map_or(rest.len(), |at| at + 2);
    lex.bump(length);
    FilterResult::Emit(())
}
