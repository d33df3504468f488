//! Writing outputs: all of them or none ([`super::whole`]).

use std::path::Path;

use dflow_ir::ty::ElementType;

use super::whole::{destination, folder_of, is_special, temporary, write_all};
use super::{Binding, Dtype, Input, npy};
use crate::exit::Failure;
use crate::interrupt::Interrupt;

impl Binding {
    /// Whether elements of a type may go into the file of an output.
    ///
    /// # Errors
    /// It is not the type that the command line says, or the ending of the file, by which it would be read again; or
    /// `.npy` has no such type.
    pub(crate) fn check_type(&self, ty: ElementType) -> Result<(), String> {
        let (own, is_other) = (ty.name(), |dtype: &Dtype| !dtype.element().is_same(ty));
        if let Some(asked) = self.dtype.filter(is_other) {
            let asked = asked.name();
            return Err(format!("its elements are {own}, the command line says {asked}"));
        }
        let ending = super::input::named(&self.path).filter(|_| self.dtype.is_none());
        if let Some(ending) = ending.filter(is_other) {
            let (ending, known) = (ending.name(), Dtype::of(ty).is_some());
            let help = if known {
                format!(": `:{own}` behind the path says otherwise")
            } else {
                String::new()
            };
            return Err(format!(
                "its elements are {own}, the ending of the file says {ending}{help}"
            ));
        }
        if self.is_npy() && Dtype::of(ty).is_none() {
            return Err(format!(
                "its elements are {own}, which NumPy does not have: write them raw, to a .bin"
            ));
        }
        Ok(())
    }

    /// Whether the file has a header that says the type.
    fn is_npy(&self) -> bool {
        self.path.extension().is_some_and(|end| end == "npy")
    }
}

/// The outputs that the command line asks for, and what the program has given so far.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    wanted: Vec<Binding>,
    given: Vec<(usize, ElementType, Vec<u8>)>,
}

impl Outputs {
    /// Checks every place before anything runs.
    ///
    /// # Errors
    /// A folder does not exist or cannot be written to, or a name or place is given twice.
    pub(crate) fn new(wanted: &[Binding]) -> Result<Outputs, Failure> {
        for (index, binding) in wanted.iter().enumerate() {
            let earlier = &wanted[..index];
            if earlier.iter().any(|other| other.name == binding.name) {
                return Err(Failure::usage(format!("output `{}` is given twice", binding.name)));
            }
            if earlier.iter().any(|other| same_place(&other.path, &binding.path)) {
                let place = binding.path.display();
                return Err(Failure::usage(format!("two outputs would go to {place}")));
            }
            check_place(&binding.path)?;
        }
        Ok(Outputs { wanted: wanted.to_vec(), given: Vec::new() })
    }

    /// Whether none are asked for.
    pub(crate) fn are_none(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Takes an output of the program; one that nobody asked for is dropped. A second one of the
    /// same name replaces the first.
    ///
    /// # Errors
    /// [`Binding::check_type`] refuses its type.
    pub(crate) fn give(
        &mut self,
        name: &str,
        ty: ElementType,
        bytes: Vec<u8>,
    ) -> Result<(), String> {
        let Some(index) = self.wanted.iter().position(|binding| binding.name == name) else {
            return Ok(());
        };
        self.wanted[index].check_type(ty)?;
        self.given.retain(|(other, _, _)| *other != index);
        self.given.push((index, ty, bytes));
        Ok(())
    }

    /// Writes all outputs, or none.
    ///
    /// # Errors
    /// One cannot be written, an asked one was never given, or the user gave up.
    pub(crate) fn write(&self, interrupt: &Interrupt) -> Result<(), Failure> {
        for (index, binding) in self.wanted.iter().enumerate() {
            if !self.given.iter().any(|(given, _, _)| *given == index) {
                let name = &binding.name;
                return Err(Failure::program(format!("the program gave no output `{name}`")));
            }
        }
        let headers = self.given.iter().map(|(index, ty, bytes)| self.header(*index, *ty, bytes));
        let headers: Vec<Vec<u8>> = headers.collect();
        let parts: Vec<[&[u8]; 2]> = std::iter::zip(&headers, &self.given)
            .map(|(header, (.., bytes))| [header.as_slice(), bytes.as_slice()])
            .collect();
        let files: Vec<(&Path, &[&[u8]])> = std::iter::zip(&self.given, &parts)
            .map(|((index, ..), parts)| (self.wanted[*index].path.as_path(), parts.as_slice()))
            .collect();
        Ok(write_all(&files, interrupt)?)
    }

    /// What stands in the file of an output before its bytes.
    fn header(&self, index: usize, ty: ElementType, bytes: &[u8]) -> Vec<u8> {
        let binding = &self.wanted[index];
        let Some(dtype) = Dtype::of(ty).filter(|_| binding.is_npy()) else { return Vec::new() };
        npy::write_header(dtype, &[bytes.len() as u64 / dtype.bytes()])
    }
}

/// Writes one file, whole or not at all.
///
/// # Errors
/// It cannot be written, or the user gave up.
pub(crate) fn write_file(path: &Path, bytes: &[u8], interrupt: &Interrupt) -> Result<(), Failure> {
    Ok(write_all(&[(path, &[bytes])], interrupt)?)
}

/// Whether two paths lead to the same file, which may not be there yet.
pub(crate) fn same_place(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| destination(path).unwrap_or_else(|_| path.to_owned());
    place(one) == place(other)
}

/// Refuses a place that something was read from: a source would be gone.
///
/// # Errors
/// It is one of the files.
pub(crate) fn check_not_read<'p>(
    path: &Path,
    read: impl IntoIterator<Item = &'p str>,
) -> Result<(), Failure> {
    match read.into_iter().find(|file| same_place(Path::new(file), path)) {
        Some(file) => {
            let message = format!("cannot write {}: the program was read from it", path.display());
            Err(Failure::usage(if Path::new(file) == path {
                message
            } else {
                format!("{message} as {file}")
            }))
        }
        None => Ok(()),
    }
}

/// Checks that a file can be made here.
///
/// # Errors
/// It is a folder, or its folder does not exist or cannot be written to.
pub(crate) fn check_place(path: &Path) -> Result<(), Failure> {
    let fail = |why: &str| Failure::usage(format!("cannot write {}: {why}", path.display()));
    if path.is_dir() {
        return Err(fail("it is a folder"));
    }
    if is_special(path) {
        return Ok(());
    }
    let folder = folder_of(&destination(path).map_err(|error| fail(&Input::reason(&error)))?);
    if !folder.is_dir() {
        return Err(fail("its folder does not exist"));
    }
    // The only question that the system answers truthfully is an attempt.
    temporary(&folder).map(drop).map_err(|error| fail(&Input::reason(&error)))
}

#[cfg(test)]
mod tests {
    use dflow_ir::ty::Ty;

    use super::*;

    fn binding(name: &str, path: &Path, dtype: Option<Dtype>) -> Binding {
        Binding { name: name.into(), path: path.to_path_buf(), dtype }
    }

    #[test]
    fn all_outputs_or_none() -> Result<(), Failure> {
        let folder = tempfile::tempdir().map_err(|e| Failure::program(e.to_string()))?;
        let number = ElementType::number;
        let (a, b) = (folder.path().join("a.npy"), folder.path().join("b.bin"));
        let mut outputs =
            Outputs::new(&[binding("a", &a, Some(Dtype::U16)), binding("b", &b, None)])?;
        assert!(outputs.give("a", number(Ty::F32, true), vec![0; 4]).is_err());
        assert!(outputs.give("a", number(Ty::I16, true), vec![1, 0]).is_err());
        assert_eq!(outputs.give("a", number(Ty::I16, false), vec![1, 0, 2, 0]), Ok(()));
        assert_eq!(outputs.write(&Interrupt::never()).map_err(|f| f.exit.code()), Err(1));
        assert!(!a.exists() && !b.exists());
        assert_eq!(outputs.give("b", number(Ty::I8, false), vec![7]), Ok(()));
        outputs.write(&Interrupt::never())?;
        let header = npy::parse(&std::fs::read(&a).unwrap_or_default());
        assert_eq!(header.map(|header| (header.dtype, header.shape)), Ok((Dtype::U16, vec![2])));
        assert_eq!(std::fs::read(&b).unwrap_or_default(), [7]);
        let left = std::fs::read_dir(folder.path()).map_or(0, Iterator::count);
        assert_eq!(left, 2, "no temporary file is left");
        Ok(())
    }

    #[test]
    fn bad_places_are_known_before_the_run() {
        let missing = Path::new("/nowhere/at/all/x.bin");
        assert_eq!(Outputs::new(&[binding("a", missing, None)]).unwrap_err().exit.code(), 2);
        assert!(check_place(Path::new("/")).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_one_message() {
        let full = Path::new("/dev/full");
        let failure = write_file(full, &[1, 2, 3], &Interrupt::never()).unwrap_err();
        assert_eq!(failure.exit.code(), 1);
        assert!(failure.message.contains("the disk is full"), "{}", failure.message);
    }

    #[test]
    fn an_interrupt_leaves_nothing() {
        let Ok(folder) = tempfile::tempdir() else { return };
        let path = folder.path().join("a.bin");
        let failure = write_file(&path, &[0; 10], &Interrupt::already()).unwrap_err();
        assert_eq!(failure.exit.code(), 130);
        assert_eq!(std::fs::read_dir(folder.path()).map_or(9, Iterator::count), 0);
    }
}
