//! `dflow-reference FIELD rel|abs BOUND OUT`: compresses a raw field of f32 with the plain codec,
//! so that streams can be compared from the command line.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool")]

use std::env;
use std::fs;
use std::process::ExitCode;

use dflow_reference::ceresz::{Bound, HEADER, encode};

fn main() -> ExitCode {
    match run(&env::args().skip(1).collect::<Vec<_>>()) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("dflow-reference: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<String, String> {
    let [input, kind, bound, output] = args else {
        return Err("expected: FIELD rel|abs BOUND OUT".to_owned());
    };
    let bytes = fs::read(input).map_err(|error| format!("{input}: {error}"))?;
    let (words, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(format!("{input}: not a whole number of values"));
    }
    let field: Vec<f32> = words.iter().map(|&word| f32::from_le_bytes(word)).collect();
    let bound: f64 = bound.parse().map_err(|error| format!("{bound}: {error}"))?;
    let bound = match kind.as_str() {
        "rel" => Bound::relative(bound, &field),
        "abs" => Bound::absolute(bound),
        other => return Err(format!("`{other}` is neither rel nor abs")),
    };
    let words = encode(&field, &bound);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    fs::write(output, &bytes).map_err(|error| format!("{output}: {error}"))?;
    let stream = words.len() - HEADER;
    Ok(format!(
        "{} values, {stream} words, ratio {}",
        field.len(),
        field.len() as f64 / stream as f64
    ))
}
