//! Layouts that host programs build: compiled from disk, and written as the folders that
//! `cslc` writes.

use std::path::Path;

use dflow_compiler::Options;
use dflow_compiler::builder::LayoutBuilder;
use dflow_ir::image::{HostStream, Image};
use dflow_syntax::diagnostic::render::{self, Color};
use serde_json::json;

use crate::artifact::{self, Artifact, ArtifactError, Dialect, Fabric, Meta};
use crate::world::DiskWorld;

/// What a layout was compiled to.
pub struct BuiltLayout {
    /// The image, if there was no error.
    pub image: Option<Image>,
    /// Errors and warnings, as the commands print them, without colors.
    pub report: String,
    /// The number of each color, by its index.
    pub colors: Vec<u8>,
    dialect: Dialect,
}

/// Compiles a layout whose sources are on disk. The release of the SDK is that of the options,
/// else that of the environment.
///
/// # Errors
/// The environment names no release.
pub fn compile(layout: &LayoutBuilder, options: Options) -> Result<BuiltLayout, String> {
    let named = match options.sdk_version {
        Some(version) => Some(version),
        None => crate::cslc::environment_version()?,
    };
    let mut import_paths = options.import_paths.clone();
    import_paths.extend(crate::cslc::environment_paths());
    let check_bounds = options.check_bounds || crate::cslc::environment_bounds();
    let options = Options { sdk_version: named, import_paths, check_bounds, ..options };
    let built = layout.compile(&DiskWorld, options);
    let compiled = &built.compiled;
    let human = |diagnostic| render::human(&compiled.sources, diagnostic, Color::Never);
    Ok(BuiltLayout {
        report: compiled.diagnostics.iter().map(human).collect(),
        colors: built.colors.iter().map(|color| color.index()).collect(),
        dialect: crate::cslc::dialect(compiled),
        image: built.compiled.image,
    })
}

/// Writes the folder of a layout; `colors` are names and numbers.
///
/// # Errors
/// The system does not let us.
pub fn write(
    folder: &Path,
    layout: &LayoutBuilder,
    built: &BuiltLayout,
    colors: Vec<(String, String)>,
) -> Result<(), ArtifactError> {
    let Some(image) = &built.image else { return Ok(()) };
    let rect = image.placement.rect;
    let artifact = Artifact {
        meta: Meta {
            params: Vec::new(),
            colors,
            build: crate::artifact::BUILD.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            target: layout.target(),
            dialect: built.dialect.clone(),
        },
        fabric: Fabric {
            target: layout.target(),
            dims: (rect.width.into(), rect.height.into()),
            offsets: (0, 0),
            channels: 1,
            width_west_buf: 0,
            width_east_buf: 0,
            memcpy: false,
        },
        image: image.clone(),
    };
    artifact::write(folder, &artifact)?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    artifact::write_text(&folder.join(format!("{name}_port_map.json")), &port_map(image))
}

/// The streams of an image, for scripts that look for them.
fn port_map(image: &Image) -> String {
    let bus = |stream: &HostStream| {
        let HostStream { name, at, port, color, to_mesh, buffer } = stream;
        json!({
            "port_name": name,
            "direction": if *to_mesh { "input" } else { "output" },
            "x": at.x,
            "y": at.y,
            "side": port.name(),
            "color": color.index(),
            "buffer": buffer,
        })
    };
    let buses: Vec<_> = image.streams.iter().map(bus).collect();
    format!("{:#}\n", json!({ "buses": buses }))
}
