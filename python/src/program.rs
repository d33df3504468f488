//! Images, with what surrounds them on the fabric.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dflow_cli::artifact;
use dflow_compiler::{Options, Origin, ParamsFrom, Stop};
use dflow_ir::image::{ElementType, Export, ExportKind, Image};
use dflow_ir::target::{Target, TargetId};
use pyo3::prelude::*;

use crate::attend::attend;
use crate::errors;

/// A compiled program.
#[pyclass(frozen, module = "dflow._native")]
pub(crate) struct Program {
    pub(crate) image: Arc<Image>,
    pub(crate) offsets: (u32, u32),
    params: Vec<(String, String)>,
    colors: Vec<(String, String)>,
    memcpy: bool,
    warnings: String,
    /// Files that it was compiled from.
    files: Vec<PathBuf>,
}

impl Program {
    fn plain(image: Image, warnings: String, files: Vec<PathBuf>) -> Program {
        let rect = image.placement.rect;
        Program {
            offsets: (rect.x.into(), rect.y.into()),
            params: image.params.clone(),
            colors: Vec::new(),
            memcpy: image.memcpy.is_some(),
            image: Arc::new(image),
            warnings,
            files,
        }
    }
}

/// Name, kind (`pointer`, `scalar` or `function`), types of elements or parameters, whether the
/// host may write it.
type Symbol = (String, &'static str, Vec<String>, bool);

/// Name, direction (into the mesh), color, column, row, buffer.
type Stream = (String, bool, u8, u32, u32, u32);

#[pymethods]
impl Program {
    /// Name of the target.
    #[getter]
    fn target(&self) -> &'static str {
        self.image.target.name()
    }

    /// Cycles per second of the target.
    #[getter]
    fn clock_hz(&self) -> u64 {
        Target::get(self.image.target).clock_hz
    }

    /// Whether nobody has published that clock.
    #[getter]
    fn clock_assumed(&self) -> bool {
        Target::get(self.image.target).assumed.clock
    }

    /// Columns and rows of PEs.
    #[getter]
    fn size(&self) -> (u16, u16) {
        (self.image.placement.rect.width, self.image.placement.rect.height)
    }

    /// Where on the fabric the first PE is.
    #[getter]
    fn offsets(&self) -> (u32, u32) {
        self.offsets
    }

    /// Params and their values, as text.
    #[getter]
    fn params(&self) -> Vec<(String, String)> {
        self.params.clone()
    }

    /// Colors and their numbers, as text.
    #[getter]
    fn colors(&self) -> Vec<(String, String)> {
        self.colors.clone()
    }

    /// Whether the host reaches the program by copies and launches.
    #[getter]
    fn memcpy(&self) -> bool {
        self.memcpy
    }

    /// What the compiler warned of.
    #[getter]
    fn warnings(&self) -> &str {
        &self.warnings
    }

    /// What the host can name; the index is its id.
    #[getter]
    fn symbols(&self) -> Vec<Symbol> {
        self.image.exports.iter().map(symbol).collect()
    }

    /// The streams that have names: name, whether it leads into the mesh, color, column and row
    /// of its router, words that the host's side holds.
    #[getter]
    fn streams(&self) -> Vec<Stream> {
        let streams = self.image.streams.iter();
        let offset = |at: u16, by: u32| u32::from(at) + by;
        let (x, y) = self.offsets;
        streams
            .map(|stream| {
                let at = (offset(stream.at.x, x), offset(stream.at.y, y));
                let color = stream.color.index();
                (stream.name.clone(), stream.to_mesh, color, at.0, at.1, stream.buffer)
            })
            .collect()
    }

    /// Writes a `.dfi` file, not over what the program was compiled from.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let saved = py.detach(|| dflow_cli::save(&path, &self.image, &self.files));
        saved.map_err(|message| errors::host(py, &message))
    }
}

fn symbol(export: &Export) -> Symbol {
    let Export { name, kind, loc: _ } = export;
    let (kind, types, mutable) = match kind {
        ExportKind::Pointer { element, mutable } => ("pointer", vec![element.name()], *mutable),
        ExportKind::Scalar { element, mutable } => ("scalar", vec![element.name()], *mutable),
        ExportKind::Function { params } => {
            ("function", params.iter().copied().map(ElementType::name).collect(), false)
        }
    };
    (name.clone(), kind, types, mutable)
}

/// Ends a compilation as soon as the flag is set.
pub(crate) fn stop(interrupt: &Arc<AtomicBool>) -> Stop {
    let interrupt = Arc::clone(interrupt);
    Stop(Arc::new(move || interrupt.load(Ordering::SeqCst)))
}

/// Compiles a source file, or a program of the library.
///
/// # Errors
/// It cannot be read, or does not compile.
#[pyfunction]
#[pyo3(signature = (
    path, params, target=None, sdk_version=None, import_paths=Vec::new(), check_bounds=false
))]
pub(crate) fn compile(
    py: Python<'_>,
    path: &str,
    params: Vec<(String, String)>,
    target: Option<&str>,
    sdk_version: Option<&str>,
    import_paths: Vec<String>,
    check_bounds: bool,
) -> PyResult<Program> {
    let params_from = ParamsFrom::Script;
    let mut options =
        Options { params, params_from, import_paths, check_bounds, ..Options::default() };
    if let Some(name) = target {
        options.target = TargetId::from_name(name).ok_or_else(|| {
            errors::host(py, &format!("`{name}` is no target: wse2 and wse3 are"))
        })?;
    }
    if let Some(text) = sdk_version {
        let version = text.parse().map_err(|fault: String| errors::host(py, &fault))?;
        options.sdk_version = Some((version, Origin::Flag));
    }
    let interrupt = Arc::new(AtomicBool::new(false));
    options.stop = Some(stop(&interrupt));
    let built = attend(py, &interrupt, || dflow_cli::compile(path, options))?;
    let built = built.map_err(|reason| errors::compile(py, &reason, ""))?;
    match built.image {
        Some(image) => Ok(Program::plain(image, built.report, built.files)),
        None => {
            let message = format!("{path} does not compile\n{}", built.report.trim_end());
            Err(errors::compile(py, &message, &built.report))
        }
    }
}

/// An image from the bytes of a `.dfi` file.
///
/// # Errors
/// They are none.
#[pyfunction]
pub(crate) fn read_image(py: Python<'_>, origin: &str, bytes: &[u8]) -> PyResult<Program> {
    let image = py.detach(|| Image::decode(bytes));
    let image = image.map_err(|error| errors::host(py, &format!("{origin}: {error}")))?;
    Ok(Program::plain(image, String::new(), Vec::new()))
}

/// The program of a folder that `cslc` wrote.
///
/// # Errors
/// It is not there, not ours, or damaged.
#[pyfunction]
pub(crate) fn read_artifact(py: Python<'_>, folder: PathBuf) -> PyResult<Program> {
    let read = py.detach(|| artifact::read(&folder));
    let artifact::Artifact { meta, fabric, image } =
        read.map_err(|error| errors::host(py, &error.to_string()))?;
    Ok(Program {
        image: Arc::new(image),
        offsets: fabric.offsets,
        params: meta.params,
        colors: meta.colors,
        memcpy: fabric.memcpy,
        warnings: String::new(),
        files: Vec::new(),
    })
}
