//! The command line of `cslc`: `--x=v` and `--x v`, options before and behind the file.

use std::ffi::OsString;

use super::given::Given;
use super::options::{ROWS, Row, Takes};
use crate::exit::Failure;
use crate::near;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// `-h`
    Help,
    /// `--version`
    Version,
    /// A compilation.
    Compile(Box<Given>),
}

/// Reads the words behind the tool's name.
///
/// # Errors
/// Wrong use, with the option named.
pub(super) fn parse(args: &[OsString]) -> Result<Request, Failure> {
    let mut words = Vec::new();
    for arg in args {
        let text = arg.to_str();
        words.push(text.ok_or_else(|| Failure::usage(format!("{arg:?} is not UTF-8 text")))?);
    }
    if words.iter().any(|word| matches!(*word, "-h" | "--help" | "-help")) {
        return Ok(Request::Help);
    }
    if words.contains(&"--version") {
        return Ok(Request::Version);
    }
    let mut given = Given::default();
    let mut words = words.into_iter().peekable();
    let mut only_files = false;
    while let Some(word) = words.next() {
        if only_files || !word.starts_with('-') || word == "-" {
            file(&mut given, word)?;
            continue;
        }
        if word == "--" {
            only_files = true;
            continue;
        }
        let (row, inline) = find(word)?;
        let value = match (row.takes, inline) {
            (Takes::Nothing, Some(value)) => {
                let name = row.name;
                return Err(Failure::usage(format!(
                    "{name} takes no value, and `{value}` is given"
                )));
            }
            (Takes::Nothing | Takes::Optional(_), None) => "",
            (Takes::Value(_) | Takes::Optional(_), Some(value)) => value,
            (Takes::Value(what), None) => match words.next() {
                Some(value) => value,
                None => return Err(Failure::usage(format!("{} needs a value: {what}", row.name))),
            },
        };
        (row.set)(&mut given, value)
            .map_err(|fault| Failure::usage(format!("{} {fault}", row.name)))?;
    }
    Ok(Request::Compile(Box::new(given)))
}

fn file(given: &mut Given, word: &str) -> Result<(), Failure> {
    if !given.file.is_empty() {
        let first = &given.file;
        return Err(Failure::usage(format!("two layout files are given: {first} and {word}")));
    }
    word.clone_into(&mut given.file);
    Ok(())
}

/// The option that a word names, and the value behind its `=`.
fn find(word: &str) -> Result<(&'static Row, Option<&str>), Failure> {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    if let Some(row) = ROWS.iter().find(|row| row.name == name) {
        return Ok((row, value));
    }
    // `-oDIR`
    if let Some(folder) = word.strip_prefix("-o").filter(|rest| !rest.starts_with(['-', '='])) {
        return Ok((&ROWS[0], Some(folder)));
    }
    let hint = near::nearest(name, ROWS.iter().map(|row| row.name), 4)
        .map_or_else(|| "`cslc -h` lists all".to_owned(), |near| format!("did you mean {near}?"));
    Err(Failure::usage(format!("there is no option {name}; {hint}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(words: &[&str]) -> Result<Given, String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        match parse(&words) {
            Ok(Request::Compile(given)) => Ok(*given),
            Ok(other) => Err(format!("{other:?}")),
            Err(failure) => Err(failure.message),
        }
    }

    #[test]
    fn values_stand_behind_a_sign_or_a_blank() {
        let equal = given(&["--arch=wse3", "-o=a b", "--fabric-dims=8,3", "x.csl"]);
        let blank = given(&["x.csl", "--arch", "wse3", "-o", "a b", "--fabric-dims", "8,3"]);
        assert_eq!(equal, blank);
        assert_eq!(equal.map(|given| given.output), Ok("a b".into()));
        assert_eq!(given(&["-oout_x", "x.csl"]).map(|given| given.output), Ok("out_x".into()));
        assert_eq!(given(&["--", "-x.csl"]).map(|given| given.file), Ok("-x.csl".into()));
    }

    #[test]
    fn params_accumulate() {
        let words = ["--params=a:1,b:-2", "--params", "c:0x10,a:3,", "x.csl"];
        let pairs = [("a", "3"), ("b", "-2"), ("c", "16")];
        let pairs: Vec<_> = pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        assert_eq!(given(&words).map(|given| given.params), Ok(pairs));
    }

    #[test]
    fn faults_name_the_option() {
        let said = |words: &[&str]| given(words).unwrap_err();
        assert_eq!(said(&["--parms=a:1"]), "there is no option --parms; did you mean --params?");
        assert_eq!(
            said(&["--zzzzzzzzzzz"]),
            "there is no option --zzzzzzzzzzz; `cslc -h` lists all"
        );
        assert_eq!(said(&["--arch"]), "--arch needs a value: ARCH");
        assert_eq!(said(&["--memcpy=1"]), "--memcpy takes no value, and `1` is given");
        assert_eq!(said(&["a.csl", "b.csl"]), "two layout files are given: a.csl and b.csl");
        assert_eq!(said(&["--params=a"]), "--params needs NAME:VALUE, not `a`");
        assert_eq!(said(&["--params=a:"]), "--params gives `a` no value");
        assert_eq!(said(&["--params=W:3,H:2,W:4"]), "--params gives `W` two values");
        assert_eq!(
            said(&["--params=W:3", "--colors=W:2"]),
            "--colors gives `W` a value, and so does --params"
        );
        assert_eq!(
            said(&["--colors=c:1", "--params=W:3,c:2"]),
            "--params gives `c` a value, and so does --colors"
        );
        assert_eq!(said(&["--params=1a:2"]), "--params has `1a` where a name should be");
    }
}
