//! Reading inputs.

use std::io::Read as _;
use std::path::Path;

use dflow_ir::ty::ElementType;

use super::{Binding, Dtype, npy};
use crate::exit::Failure;
use crate::memory;

/// The values of one input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Input {
    name: String,
    place: String,
    dtype: Option<Dtype>,
    /// Whether only the file's name says the type.
    by_ending: bool,
    values: Vec<u8>,
}

impl Input {
    /// Reads the file of a binding.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, would take more than `limit` bytes of memory, or is not of the type that the
    /// command line says.
    pub(crate) fn read(binding: &Binding, limit: u64) -> Result<Input, Failure> {
        let place = binding.path.display().to_string();
        let fail =
            |why: String| Failure::usage(format!("input `{}`: {place}: {why}", binding.name));
        let bytes = read_file(&binding.path, limit).map_err(&fail)?;
        let mut by_ending = false;
        let (dtype, values) = if npy::is_npy(&bytes) {
            let header = npy::parse(&bytes).map_err(&fail)?;
            let mut values = bytes;
            values.drain(..header.start);
            (Some(header.dtype), values)
        } else if binding.path.extension().is_some_and(|end| end == "npy") {
            return Err(fail("it is no .npy file".into()));
        } else {
            let named = named(&binding.path).filter(|_| binding.dtype.is_none());
            by_ending = named.is_some();
            (binding.dtype.or(named), bytes)
        };
        if let (Some(asked), Some(found)) = (binding.dtype, dtype)
            && asked != found
        {
            let (asked, found) = (asked.name(), found.name());
            return Err(fail(format!("it holds {found}, the command line says {asked}")));
        }
        let input = Input { name: binding.name.clone(), place, dtype, by_ending, values };
        if let Some(dtype) = dtype {
            input.whole_elements(dtype.bytes(), dtype.name()).map_err(Failure::usage)?;
        }
        Ok(input)
    }

    /// The name that the host block uses.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Type of an element, if the file or the command line says it.
    pub(crate) fn dtype(&self) -> Option<Dtype> {
        self.dtype
    }

    /// Whether the type is what the file's ending says.
    pub(crate) fn by_ending(&self) -> bool {
        self.by_ending
    }

    /// What the elements are, if the file or the command line says it.
    pub(crate) fn element(&self) -> Option<ElementType> {
        self.dtype.map(Dtype::element)
    }

    /// The values, one after the other, little endian.
    pub(crate) fn values(&self) -> &[u8] {
        &self.values
    }

    /// An error of the system as a few words.
    pub(crate) fn reason(error: &std::io::Error) -> String {
        match error.kind() {
            std::io::ErrorKind::NotFound => "no such file".into(),
            std::io::ErrorKind::PermissionDenied => "not permitted".into(),
            std::io::ErrorKind::StorageFull => "the disk is full".into(),
            _ => error.to_string(),
        }
    }

    fn whole_elements(&self, size: u64, type_name: &str) -> Result<(), String> {
        let Input { name, place, values, .. } = self;
        let length = values.len() as u64;
        if length.is_multiple_of(size) {
            return Ok(());
        }
        let ending = if self.by_ending { ", by its ending" } else { "" };
        Err(format!(
            "input `{name}`: {place} has {length} bytes, which is no multiple of {size} ({type_name}{ending})"
        ))
    }
}

/// The type that a file's ending says: `field.f64`.
pub(super) fn named(path: &Path) -> Option<Dtype> {
    path.extension().and_then(|end| end.to_str()).and_then(Dtype::parse)
}

/// How often a run holds an input: as it was read, as it is handed to the host program, and in that one's memory.
const COPIES: u64 = 3;
/// Bytes of what is no plain file, at most: it may be endless.
const MAX_STREAM: u64 = 1 << 30;

fn read_file(path: &Path, limit: u64) -> Result<Vec<u8>, String> {
    let data = std::fs::metadata(path).map_err(|error| Input::reason(&error))?;
    if data.is_dir() {
        return Err("is a folder".into());
    }
    if data.len().saturating_mul(COPIES) > limit {
        let (has, may) = (memory::size(data.len()), memory::size(limit));
        return Err(format!(
            "has {has}, of which a run holds {COPIES} copies: more than the {may} that it may take (--max-memory)"
        ));
    }
    let file = std::fs::File::open(path).map_err(|error| Input::reason(&error))?;
    let mut bytes = Vec::new();
    let most = if data.is_file() { data.len() } else { (limit / COPIES).min(MAX_STREAM) };
    bytes
        .try_reserve(usize::try_from(data.len()).unwrap_or(usize::MAX))
        .map_err(|_| "does not fit into memory".to_owned())?;
    let read = file.take(most.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| Input::reason(&error))?;
    if !data.is_file() && bytes.len() as u64 > most {
        return Err(format!("is no plain file and goes on beyond {}", memory::size(most)));
    }
    Ok(bytes)
}
