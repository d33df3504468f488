//! The table of options: names, values, what they say, what they set.

use std::fmt::Write as _;

use dflow_ir::target::TargetId;
use dflow_ir::ty::Ty;

use super::given::Given;

/// Whether an option has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// None.
    Nothing,
    /// One, as `--x=v` or `--x v`; the word stands for it in the help.
    Value(&'static str),
    /// One or none; only as `--x=v`.
    Optional(&'static str),
}

/// An option.
pub(super) struct Row {
    /// As written, such as `--arch`.
    pub(super) name: &'static str,
    /// Its value.
    pub(super) takes: Takes,
    /// One line for the help.
    pub(super) about: &'static str,
    /// Takes the value (empty if there is none); a fault is the end of a sentence that begins with
    /// the option.
    pub(super) set: fn(&mut Given, &str) -> Result<(), String>,
}

const fn row(
    name: &'static str,
    takes: Takes,
    about: &'static str,
    set: fn(&mut Given, &str) -> Result<(), String>,
) -> Row {
    Row { name, takes, about, set }
}

use Takes::{Nothing, Optional, Value};

/// All options. `-h` and `--version` are asked for before any other counts.
pub(super) const ROWS: &[Row] = &[
    row("-o", Value("DIR"), "folder to write [default: out]", |g, v| text(v).map(|v| g.output = v)),
    row("--arch", Value("ARCH"), "wse2 or wse3 [default: wse2]", |g, v| {
        let known = TargetId::from_name(v);
        known.map(|target| g.target = target).ok_or_else(|| format!("is wse2 or wse3, not `{v}`"))
    }),
    row("--params", Value("NAME:VALUE,..."), "values of params of the layout", |g, v| {
        pairs(v, &mut g.params, ("--colors", &g.colors))
    }),
    row("--colors", Value("NAME:VALUE,..."), "values of params that are colors", |g, v| {
        colors(v, &mut g.colors, ("--params", &g.params))
    }),
    row("--fabric-dims", Value("W,H"), "extent of the fabric in PEs", |g, v| {
        pair(v).map(|v| g.dims = Some(v))
    }),
    row("--fabric-offsets", Value("X,Y"), "where on the fabric the program begins", |g, v| {
        pair(v).map(|v| g.offsets = Some(v))
    }),
    row("--memcpy", Nothing, "the host reaches the program through memcpy", |g, _| {
        g.memcpy = true;
        Ok(())
    }),
    row("--channels", Value("N"), "channels of memcpy, 1 to 16 [default: 1]", |g, v| {
        number(v, 1, 16).map(|v| g.channels = v as u8)
    }),
    row("--width-west-buf", Value("N"), "columns of buffers in the west [default: 0]", |g, v| {
        number(v, 0, MAX_COLUMNS).map(|v| g.west = v)
    }),
    row("--width-east-buf", Value("N"), "columns of buffers in the east [default: 0]", |g, v| {
        number(v, 0, MAX_COLUMNS).map(|v| g.east = v)
    }),
    row("--import-path", Value("DIR"), "look for imports there too; repeatable", |g, v| {
        text(v).map(|v| g.import_paths.push(v))
    }),
    row(
        "--max-inlined-iterations",
        Value("N"),
        "limit of an inline loop [default: none]",
        |g, v| number(v, 0, u32::MAX).map(|v| g.max_inlined = Some(v)),
    ),
    row("--comptime-func-depth-limit", Value("N"), "limit of nested comptime calls", |g, v| {
        number(v, 1, MAX_DEPTH).map(|v| g.comptime_depth = Some(v))
    }),
    row(
        "--fp16-format",
        Value("FORMAT"),
        "format of 16-bit floats [default: f16]",
        |g, v| match v {
            "f16" => {
                g.half = Ty::F16;
                Ok(())
            }
            "bf16" => {
                g.half = Ty::Bf16;
                Ok(())
            }
            "cb16" => Err("cb16 is not supported: its infinities and NaNs are not public".into()),
            other => Err(format!("is f16, cb16 or bf16, not `{other}`")),
        },
    ),
    row("--max-parallelism", Value("N"), "accepted: compiling takes one thread", |_, v| {
        number(v, 0, u32::MAX).map(drop)
    }),
    row("--warnings-as-errors", Nothing, "a warning ends the compilation", |g, _| {
        g.warnings_as_errors = true;
        Ok(())
    }),
    row("--out-routes", Nothing, "print the routes of all colors", |g, _| {
        g.out_routes = true;
        Ok(())
    }),
    row(
        "--output-json",
        Optional("PATH"),
        "also write out.json there [default: DIR.json]",
        |g, v| {
            g.output_json = Some(v.to_owned());
            Ok(())
        },
    ),
    row("--sdk-version", Value("X.Y"), "read the program as that version does", |g, v| {
        text(v).map(|v| g.sdk_version = Some(v))
    }),
    row("--verbose", Nothing, "say what was compiled", |g, _| {
        g.verbose = true;
        Ok(())
    }),
    row("--llvm-option", Value("OPTION"), "accepted: code is not made by LLVM", |_, v| {
        text(v).map(drop)
    }),
    row("-g0", Nothing, "accepted: places in the source are kept for reports", |_, _| Ok(())),
    row(
        "--link-section-start-address-bytes",
        Value("NAME:ADDR,..."),
        "where sections begin",
        |g, v| sections(v, &mut g.sections),
    ),
    row(
        "--lomem-reservation-end",
        Value("N"),
        "bytes at the start of memory to keep free",
        |g, v| number(v, 0, MAX_ADDRESS).map(|v| g.first_address = v),
    ),
    row("--single-pe", Nothing, "not supported", |_, _| {
        Err("is not supported: write a layout of one PE".into())
    }),
    row("--disable-auto-microthread-id", Nothing, "not supported", |_, _| {
        Err("is not supported: give `.ut_id` where it matters".into())
    }),
    row("--dump-dsr-alloc-graph", Nothing, "not supported", |_, _| {
        Err("is not supported: `dflowc dump FILE --stage ir` shows the registers".into())
    }),
    row("-h", Nothing, "this text; also --help", |_, _| Ok(())),
    row("--version", Nothing, "the version", |_, _| Ok(())),
];

/// No wafer has so many columns.
const MAX_COLUMNS: u32 = 1_000;

/// What the compiler's stack is made for.
const MAX_DEPTH: u32 = 4_096;

/// The last byte address of a PE that a variable may have.
const MAX_ADDRESS: u32 = 48 * 1024 - 1;

/// The text of `-h`.
pub(super) fn help() -> String {
    let mut text = String::from(
        "cslc [options] layout.csl\n\n\
         Compiles a program for the emulated mesh. What it writes is run by the program's host\n\
         script: cs_python run.py --name DIR. Options with a value: --x=value or --x value.\n\n",
    );
    for row in ROWS {
        let shown = match row.takes {
            Takes::Nothing => row.name.to_owned(),
            Takes::Value(value) => format!("{} {value}", row.name),
            Takes::Optional(value) => format!("{}[={value}]", row.name),
        };
        let _ = writeln!(text, "  {shown:<38} {}", row.about);
    }
    text.push_str(
        "\nEnvironment: CSL_IMPORT_PATH (folders, separated by colons), DFLOW_SDK_VERSION (as\n\
         --sdk-version). Exit codes: 0 well, 1 the program is wrong, 2 wrong use,\n\
         130 interrupted.\n",
    );
    text
}

fn text(value: &str) -> Result<String, String> {
    if value.is_empty() { Err("needs a value".into()) } else { Ok(value.to_owned()) }
}

fn number(value: &str, least: u32, most: u32) -> Result<u32, String> {
    match value.trim().parse::<u32>() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        Ok(_) | Err(_) if most == u32::MAX => {
            Err(format!("needs a number from {least} on, not `{value}`"))
        }
        Ok(_) | Err(_) => Err(format!("needs a number from {least} to {most}, not `{value}`")),
    }
}

fn pair(value: &str) -> Result<(u32, u32), String> {
    let numbers = value.split_once(',').and_then(|(first, second)| {
        Some((first.trim().parse().ok()?, second.trim().parse().ok()?))
    });
    numbers.ok_or_else(|| format!("needs two numbers with a comma between them, not `{value}`"))
}

/// Another option that gives values to params, and those that it has given.
type Other<'a> = (&'a str, &'a [(String, String)]);

fn colors(value: &str, known: &mut Vec<(String, String)>, other: Other<'_>) -> Result<(), String> {
    let mut new = Vec::new();
    pairs(value, &mut new, other)?;
    for (name, number) in &new {
        if number.parse::<u32>().is_err() {
            return Err(format!("gives `{name}` the value `{number}`; a color is a number"));
        }
    }
    new.into_iter().for_each(|(name, number)| put(known, name, number));
    Ok(())
}

/// `name:value,...`; a comma at the end is no fault. A name stands there once, and has no value of the other option.
fn pairs(value: &str, known: &mut Vec<(String, String)>, other: Other<'_>) -> Result<(), String> {
    let mut new: Vec<(String, String)> = Vec::new();
    let (option, others) = other;
    for part in value.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let Some((name, value)) = part.split_once(':') else {
            return Err(format!("needs NAME:VALUE, not `{part}`"));
        };
        let (name, value) = (name.trim(), value.trim());
        if !is_name(name) {
            return Err(format!("has `{name}` where a name should be"));
        }
        if value.is_empty() {
            return Err(format!("gives `{name}` no value"));
        }
        if new.iter().any(|(earlier, _)| earlier == name) {
            return Err(format!("gives `{name}` two values"));
        }
        if others.iter().any(|(other, _)| other == name) {
            return Err(format!("gives `{name}` a value, and so does {option}"));
        }
        new.push((name.to_owned(), plain(value)));
    }
    new.into_iter().for_each(|(name, value)| put(known, name, value));
    Ok(())
}

/// `.name:address,...`, addresses in any base.
fn sections(value: &str, known: &mut Vec<(String, u32)>) -> Result<(), String> {
    for part in value.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let Some((name, address)) = part.rsplit_once(':').filter(|(name, _)| !name.is_empty())
        else {
            return Err(format!("needs NAME:ADDRESS, not `{part}`"));
        };
        let address = number(&plain(address), 0, MAX_ADDRESS).map_err(|_| {
            format!("gives `{name}` the address `{address}`; up to {MAX_ADDRESS} there are")
        })?;
        known.retain(|(other, _)| other != name);
        known.push((name.to_owned(), address));
    }
    Ok(())
}

/// Of a name given twice the last counts.
fn put(known: &mut Vec<(String, String)>, name: String, value: String) {
    match known.iter_mut().find(|(other, _)| *other == name) {
        Some(entry) => entry.1 = value,
        None => known.push((name, value)),
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Integers of all bases as decimal text, which host scripts can read; anything else as it is.
fn plain(value: &str) -> String {
    let (sign, digits) = match value.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", value.strip_prefix('+').unwrap_or(value)),
    };
    let (digits, radix) = match digits.get(..2) {
        Some("0x" | "0X") => (&digits[2..], 16),
        Some("0b" | "0B") => (&digits[2..], 2),
        Some("0o" | "0O") => (&digits[2..], 8),
        Some(_) | None => (digits, 10),
    };
    let digits = digits.replace('_', "");
    let number = digits.starts_with(|c: char| c.is_ascii_hexdigit());
    match u128::from_str_radix(&digits, radix) {
        Ok(0) if number => "0".to_owned(),
        Ok(magnitude) if number => format!("{sign}{magnitude}"),
        Ok(_) | Err(_) => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_params_become_decimal() {
        let shown = |value| plain(value);
        assert_eq!(shown("0x10"), "16");
        assert_eq!(shown("-0b101"), "-5");
        assert_eq!(shown("1_000"), "1000");
        assert_eq!(shown("007"), "7");
        assert_eq!(shown("-0"), "0");
        assert_eq!(shown("1.5"), "1.5");
        assert_eq!(shown("true"), "true");
        assert_eq!(shown("0x"), "0x");
        assert_eq!(shown("-"), "-");
    }

    #[test]
    fn names_of_options_are_unique() {
        for (at, row) in ROWS.iter().enumerate() {
            assert!(ROWS[..at].iter().all(|other| other.name != row.name), "{}", row.name);
        }
    }
}
