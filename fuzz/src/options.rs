//! The command line of a fuzz target.

use std::path::PathBuf;

/// What a run was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long to run.
    pub seconds: u64,
    /// What random numbers start from.
    pub seed: u64,
    /// Where to keep the input that is running, for those that end the whole process.
    pub keep: Option<PathBuf>,
    /// Run this one input instead.
    pub file: Option<PathBuf>,
}

const USAGE: &str = "usage: <target> [--seconds N] [--seed N] [--keep FILE] [FILE]";

impl Options {
    /// Reads arguments (without the program's name).
    ///
    /// # Errors
    /// What is wrong, for the user.
    pub fn parse(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options { seconds: 60, seed: 1, keep: None, file: None };
        while let Some(arg) = args.next() {
            let mut number = || {
                let text = args.next().ok_or_else(|| format!("{arg} needs a number\n{USAGE}"))?;
                text.parse().map_err(|_| format!("`{text}` is no number\n{USAGE}"))
            };
            match arg.as_str() {
                "--seconds" => options.seconds = number()?,
                "--seed" => options.seed = number()?,
                "--keep" => {
                    let path = args.next().ok_or_else(|| format!("{arg} needs a file\n{USAGE}"))?;
                    options.keep = Some(PathBuf::from(path));
                }
                other if other.starts_with('-') => {
                    return Err(format!("unknown option `{other}`\n{USAGE}"));
                }
                other => options.file = Some(PathBuf::from(other)),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let parse = |text: &str| Options::parse(text.split_whitespace().map(str::to_owned));
        assert_eq!(parse("--seed 7").map(|options| options.seed), Ok(7));
        assert!(parse("--sed 7").is_err());
        assert!(parse("--seed x").is_err());
    }
}
