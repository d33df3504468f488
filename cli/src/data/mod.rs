//! Inputs and outputs of host blocks as files: raw little-endian values and `.npy`.

mod dtype;
mod input;
mod npy;
mod output;
mod whole;

use std::path::PathBuf;

pub(crate) use dtype::Dtype;
pub(crate) use input::Input;
pub(crate) use output::{Outputs, check_not_read, check_place, same_place, write_file};
pub(crate) use whole::{Unwritten, write_all};

/// `NAME=PATH[:DTYPE]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Binding {
    /// The name that the host block uses.
    pub(crate) name: String,
    /// The file.
    pub(crate) path: PathBuf,
    /// Element type, if given.
    pub(crate) dtype: Option<Dtype>,
}

/// Reads `NAME=PATH[:DTYPE]`. A colon that is not followed by the name of a type belongs to the
/// path.
pub(crate) fn parse_binding(text: &str) -> Result<Binding, String> {
    let (name, rest) = text.split_once('=').ok_or("expected NAME=PATH")?;
    if name.is_empty() || rest.is_empty() {
        return Err("expected NAME=PATH".into());
    }
    let (path, dtype) = match rest.rsplit_once(':') {
        Some((path, word)) if !path.is_empty() => match Dtype::parse(word) {
            Some(dtype) => (path, Some(dtype)),
            None => (rest, None),
        },
        Some(_) | None => (rest, None),
    };
    Ok(Binding { name: name.to_owned(), path: PathBuf::from(path), dtype })
}

/// `NAME` or `NAME:DTYPE`, as programs ask for inputs.
pub(crate) fn split_type(text: &str) -> (&str, Option<Dtype>) {
    match text.rsplit_once(':').map(|(name, word)| (name, Dtype::parse(word))) {
        Some((name, Some(dtype))) => (name, Some(dtype)),
        _ => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_may_ask_for_a_type() {
        assert_eq!(split_type("field:f64"), ("field", Some(Dtype::F64)));
        assert_eq!(split_type("field"), ("field", None));
        assert_eq!(split_type("a:b"), ("a:b", None));
    }

    #[test]
    fn a_type_may_follow_the_path() {
        let binding = |text| parse_binding(text).unwrap_or_else(|error| panic!("{error}"));
        let plain = binding("field=a.bin");
        assert_eq!((plain.name.as_str(), plain.dtype), ("field", None));
        let typed = binding("field=C:data/a:b.bin:f32");
        assert_eq!(typed.path, PathBuf::from("C:data/a:b.bin"));
        assert_eq!(typed.dtype, Some(Dtype::F32));
        assert_eq!(binding("a=x:y").path, PathBuf::from("x:y"));
        assert!(parse_binding("a").is_err());
        assert!(parse_binding("=a").is_err());
    }
}
