//! The image: everything a run needs, on disk as a `.dfi` file.
//!
//! A file is sealed ([`crate::sealed`]) with the magic `DFLI`. Reading never panics; what is read is validated before
//! use.

use cranelift_entity::{PrimaryMap, entity_impl};
use serde::{Deserialize, Serialize};

use crate::loc::Loc;
use crate::mesh::{Color, ColorConfig, Coord, Port, Rect, RectMap};
use crate::program::{GlobalId, Program};
use crate::sealed::{Format, Unsealed};
use crate::target::TargetId;
pub use crate::ty::{ElementKind, ElementType};
use crate::validate::{self, Validated};

/// Version of the format; images of another version are refused.
pub const VERSION: u32 = 10;

/// A program of an image.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProgramId(u32);
entity_impl!(ProgramId, "program");

/// A linked set of programs with their placement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Image {
    /// Target it was made for.
    pub target: TargetId,
    /// Source paths that [`Loc`] indexes.
    pub files: Vec<String>,
    /// PE programs.
    pub programs: PrimaryMap<ProgramId, Program>,
    /// Memory map of each program.
    pub memory: PrimaryMap<ProgramId, MemoryMap>,
    /// Where programs run and what routers do.
    pub placement: Placement,
    /// What the host can name; the index is the id that travels.
    pub exports: Vec<Export>,
    /// The host block, if the source has one.
    pub host: Option<Program>,
    /// Test blocks: name and program.
    pub tests: Vec<(String, Program)>,
    /// Values of the layout's params, for reports and `out.json`.
    pub params: Vec<(String, String)>,
    /// Input and output queues, reserved ids and the like that memcpy uses; absent without it.
    pub memcpy: Option<MemcpyInfo>,
    /// Streams that the host knows by name.
    pub streams: Vec<HostStream>,
}

/// A stream of words between the host and one router, known by its name. It is a link of its
/// own: the PE need not have a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStream {
    /// The name, unique among streams.
    pub name: String,
    /// The PE whose router is joined to the host.
    pub at: Coord,
    /// Through which of its sides.
    pub port: Port,
    /// The color.
    pub color: Color,
    /// Whether the host sends (true) or receives (false).
    pub to_mesh: bool,
    /// Words that the host's end holds (spec/time.md, section 8).
    pub buffer: u32,
}

/// Where everything is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// The program's rectangle (its `x`, `y` are offsets on the fabric).
    pub rect: Rect,
    /// Program of each PE.
    pub programs: RectMap<ProgramId>,
    /// Slot values, per program: the PEs in row-major order over the rectangle, each with all
    /// slots of the program.
    pub slots: PrimaryMap<ProgramId, Vec<u64>>,
    /// Distinct router configurations.
    pub routers: Vec<RouterConfig>,
    /// Which of `routers` each PE has.
    pub router_map: RectMap<u32>,
}

/// All colors of one router, ordered by color.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RouterConfig {
    /// Configured colors and where they were configured.
    pub colors: Vec<(Color, ColorConfig, Loc)>,
}

/// Addresses of a linked program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryMap {
    /// Address of each global, in id order.
    pub globals: Vec<(GlobalId, u32)>,
    /// End of the globals.
    pub data_end: u32,
    /// Stack: from `data_end` (aligned to 8) on, in bytes.
    pub stack: u32,
    /// Estimated code size in bytes (an assumption of the target's data file).
    pub code: u32,
}

/// A name the host can use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    /// The name.
    pub name: String,
    /// What it is.
    pub kind: ExportKind,
    /// Where it was declared.
    pub loc: Loc,
}

/// Kinds of exports.
#[expect(missing_docs, reason = "the line above each form explains its fields")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExportKind {
    /// A pointer to elements of a type, as `[*]T`.
    Pointer { element: ElementType, mutable: bool },
    /// A scalar.
    Scalar { element: ElementType, mutable: bool },
    /// A function.
    Function { params: Vec<ElementType> },
}

/// The colors memcpy was given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemcpyInfo {
    /// Host-to-mesh streaming colors.
    pub h2d: Vec<Color>,
    /// Mesh-to-host streaming colors.
    pub d2h: Vec<Color>,
}

/// Why bytes are no image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// The magic is missing.
    #[error("not a dflow image")]
    NotAnImage,
    /// Made by another version of the tool.
    #[error(
        "the image has format version {found}, this build reads version {VERSION}: build it again from its sources"
    )]
    Version {
        /// The version found.
        found: u32,
    },
    /// Bytes are missing, or changed.
    #[error("the image is damaged ({0})")]
    Damaged(String),
    /// It decodes but breaks a rule.
    #[error("the image is not valid: {0}")]
    Invalid(String),
}

const FORMAT: Format = Format { magic: *b"DFLI", version: VERSION };

impl From<Unsealed> for ImageError {
    fn from(unsealed: Unsealed) -> ImageError {
        match unsealed {
            Unsealed::Foreign => ImageError::NotAnImage,
            Unsealed::Version(found) => ImageError::Version { found },
            Unsealed::Damaged(how) => ImageError::Damaged(how),
        }
    }
}

impl Image {
    /// The image as bytes of a `.dfi` file.
    pub fn encode(&self) -> Vec<u8> {
        FORMAT.write(self)
    }

    /// Reads the bytes of a `.dfi` file and validates what they say.
    pub fn decode(bytes: &[u8]) -> Result<Image, ImageError> {
        Image::decode_validated(bytes).map(Validated::into_inner)
    }

    /// Reads the bytes of a `.dfi` file; the result is the proof that it is valid.
    pub fn decode_validated(bytes: &[u8]) -> Result<Validated<Image>, ImageError> {
        let image = FORMAT.read(bytes)?;
        validate::image(image).map_err(|error| ImageError::Invalid(error.to_string()))
    }

    /// The program of a PE of the rectangle.
    pub fn program_at(&self, at: Coord) -> Option<ProgramId> {
        self.placement.programs.get(at).copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::dsd::op::DsdOp;
    use crate::generate;
    use crate::sealed::{HEADER, seal};

    /// Operations are told by their place in the table, and all else by what it looks like in bytes: files of before
    /// would be something else.
    #[test]
    fn what_images_look_like_is_that_of_the_version() {
        let names: Vec<&str> =
            DsdOp::all().chain(DsdOp::all_on_bf16()).map(|op| op.row().name).collect();
        let random =
            |seed: u32| (0..300).map(move |at: u32| (at ^ seed).wrapping_mul(2_654_435_761));
        let images =
            (0..40).map(|seed| generate::image(&random(seed).collect::<Vec<_>>()).encode());
        let bytes: Vec<u8> = images.flatten().chain(names.concat().into_bytes()).collect();
        let sealed = FORMAT.write(&bytes);
        let sum: [u8; 8] = *sealed[..HEADER].last_chunk().expect("a header has a checksum");
        let all = (VERSION, u64::from_le_bytes(sum));
        assert_eq!(
            all,
            (10, 9_602_103_106_154_822_288),
            "the format has changed: it has a new version, and this checksum"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn reading_what_was_written_gives_the_image(numbers in vec(any::<u32>(), 0..300)) {
            let image = generate::image(&numbers);
            prop_assert_eq!(Image::decode(&image.encode()), Ok(image));
        }

        #[test]
        fn a_changed_file_is_refused(
            numbers in vec(any::<u32>(), 0..200),
            at in any::<prop::sample::Index>(),
            bit in 0..8,
        ) {
            let mut bytes = generate::image(&numbers).encode();
            let at = at.index(bytes.len());
            bytes[at] ^= 1_u8 << bit;
            prop_assert!(Image::decode(&bytes).is_err());
            bytes.truncate(at);
            prop_assert!(Image::decode(&bytes).is_err());
        }

        /// What the checksum does not catch: a body made by somebody else.
        #[test]
        fn a_changed_body_is_valid_or_refused(
            numbers in vec(any::<u32>(), 0..200),
            changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        ) {
            let mut bytes = generate::image(&numbers).encode();
            for (at, byte) in changes {
                let at = HEADER + at.index(bytes.len() - HEADER);
                bytes[at] = byte;
            }
            seal(&mut bytes);
            if let Ok(image) = Image::decode(&bytes) {
                for program in image.programs.values() {
                    crate::suspend::Suspension::analyze(program);
                }
            }
        }
    }

    #[test]
    fn the_manual_names_the_version() {
        let manual = include_str!("../../../spec/image.md");
        assert!(manual.contains(&format!("format version, now {VERSION} |")), "it is {VERSION}");
    }

    #[test]
    fn each_fault_has_its_error() {
        let bytes = generate::image(&[]).encode();
        assert_eq!(Image::decode(b""), Err(ImageError::NotAnImage));
        assert_eq!(Image::decode(b"\x7fELF"), Err(ImageError::NotAnImage));
        let mut other = bytes.clone();
        other[4] = 99;
        assert_eq!(Image::decode(&other), Err(ImageError::Version { found: 99 }));
        let cut = Image::decode(&bytes[..bytes.len() - 1]);
        assert!(matches!(cut, Err(ImageError::Damaged(_))), "{cut:?}");
        let mut invalid = generate::image(&[]);
        invalid.placement.slots[ProgramId::from_u32(0)].push(0);
        let invalid = Image::decode(&invalid.encode());
        assert!(matches!(invalid, Err(ImageError::Invalid(_))), "{invalid:?}");
    }

    #[test]
    fn a_pe_has_the_program_of_its_rectangle() {
        let image = generate::image(&[]);
        assert_eq!(image.program_at(Coord { x: 0, y: 0 }), Some(ProgramId::from_u32(0)));
        assert_eq!(image.program_at(Coord { x: 1, y: 0 }), Some(ProgramId::from_u32(1)));
        assert_eq!(image.program_at(Coord { x: 9, y: 0 }), None);
    }
}
