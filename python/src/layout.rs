//! Layouts that a Python program builds.
//!
//! Regions, colors and ports are numbers here; what they look like is the package's affair. A
//! request that cannot be is a `HostError`, a layout that does not compile a `CompileError`.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use dflow_compiler::Options;
use dflow_compiler::builder::{
    Axis, BuildError, ColorId, Edge, Flow, LayoutBuilder, ParamValue, PortId, PortRequest,
    RegionId, RoutingPosition, Symbol,
};
use dflow_ir::mesh::{PortSet, Rect};
use dflow_ir::target::TargetId;
use dflow_ir::ty::Ty;
use pyo3::prelude::*;

use crate::attend::attend;
use crate::errors;
use crate::program::stop;

/// First column, first row, columns, rows.
type Area = (i64, i64, i64, i64);

/// Sets of ports by bits: west, east, south, north, ramp from the lowest on.
type Position = (u8, u8);

/// A layout under construction.
#[pyclass(frozen, module = "dflow._native")]
pub(crate) struct Layout(Mutex<Inner>);

struct Inner {
    builder: LayoutBuilder,
    regions: Vec<RegionId>,
    colors: Vec<ColorId>,
    ports: Vec<PortId>,
}

/// What a request can come to.
type Done<T> = Result<T, String>;

impl Inner {
    fn region(&self, number: usize) -> Done<RegionId> {
        self.regions.get(number).copied().ok_or_else(|| format!("there is no region {number}"))
    }

    fn color(&self, number: usize) -> Done<ColorId> {
        self.colors.get(number).copied().ok_or_else(|| format!("there is no color {number}"))
    }

    fn port(&self, number: usize) -> Done<PortId> {
        self.ports.get(number).copied().ok_or_else(|| format!("there is no port {number}"))
    }

    fn set(&mut self, region: usize, area: Area, name: &str, value: ParamValue) -> Done<()> {
        let (region, area) = (self.region(region)?, rect(area)?);
        self.builder.set_param(region, area, name, value).map_err(said)
    }
}

impl Layout {
    fn with<T>(&self, py: Python<'_>, act: impl FnOnce(&mut Inner) -> Done<T>) -> PyResult<T> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut inner).map_err(|message| errors::host(py, &message))
    }
}

#[pymethods]
impl Layout {
    #[new]
    fn new(py: Python<'_>, target: &str) -> PyResult<Layout> {
        let Some(target) = TargetId::from_name(target) else {
            return Err(errors::host(py, &format!("`{target}` is no target: wse2 and wse3 are")));
        };
        let builder = LayoutBuilder::new(target);
        let (regions, colors, ports) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Layout(Mutex::new(Inner { builder, regions, colors, ports })))
    }

    /// Name of the target.
    #[getter]
    fn target(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.with(py, |inner| Ok(inner.builder.target().name()))
    }

    /// The requests so far, one per line.
    #[getter]
    fn text(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |inner| Ok(inner.builder.text()))
    }

    /// Requests from now on stand in this line of a file.
    fn at(&self, py: Python<'_>, file: &str, line: u32) -> PyResult<()> {
        self.with(py, |inner| {
            inner.builder.at(file, line);
            Ok(())
        })
    }

    /// Columns and rows of the mesh.
    fn set_size(&self, py: Python<'_>, columns: u16, rows: u16) -> PyResult<()> {
        self.with(py, |inner| {
            inner.builder.set_size(columns, rows);
            Ok(())
        })
    }

    /// A region that runs a file, or a tile of it.
    #[pyo3(signature = (name, source, width, height, tile=None))]
    fn region(
        &self,
        py: Python<'_>,
        name: &str,
        source: &str,
        width: i64,
        height: i64,
        tile: Option<&str>,
    ) -> PyResult<usize> {
        self.with(py, |inner| {
            let side = |side: i64| {
                u32::try_from(side).map_err(|_| {
                    format!("a region of {width} x {height} PEs: {name} cannot have so many")
                })
            };
            let (width, height) = (side(width)?, side(height)?);
            let made = match tile {
                Some(tile) => inner.builder.tile_region(name, source, tile, width, height),
                None => inner.builder.region(name, source, width, height),
            };
            inner.regions.push(made.map_err(said)?);
            Ok(inner.regions.len() - 1)
        })
    }

    /// Puts a region's north-west corner on a PE.
    fn place(&self, py: Python<'_>, region: usize, x: i64, y: i64) -> PyResult<()> {
        self.with(py, |inner| {
            let region = inner.region(region)?;
            inner.builder.place(region, x, y).map_err(said)
        })
    }

    /// Puts regions in a row or a column; gives its extent.
    #[pyo3(signature = (regions, horizontal, origin=None))]
    fn stack(
        &self,
        py: Python<'_>,
        regions: Vec<usize>,
        horizontal: bool,
        origin: Option<(i64, i64)>,
    ) -> PyResult<u32> {
        self.with(py, |inner| {
            let regions: Done<Vec<RegionId>> = regions.iter().map(|&it| inner.region(it)).collect();
            let axis = if horizontal { Axis::Horizontal } else { Axis::Vertical };
            inner.builder.stack(&regions?, axis, origin).map_err(said)
        })
    }

    /// A color by its name, of a region or of the whole layout.
    #[pyo3(signature = (region, name, number=None))]
    fn color(
        &self,
        py: Python<'_>,
        region: Option<usize>,
        name: &str,
        number: Option<i64>,
    ) -> PyResult<usize> {
        self.with(py, |inner| {
            let region = region.map(|region| inner.region(region)).transpose()?;
            let color = inner.builder.color(region, name, number).map_err(said)?;
            let known = inner.colors.iter().position(|&known| known == color);
            Ok(known.unwrap_or_else(|| {
                inner.colors.push(color);
                inner.colors.len() - 1
            }))
        })
    }

    /// Sets a param to an integer.
    fn set_int(
        &self,
        py: Python<'_>,
        region: usize,
        area: Area,
        name: &str,
        value: i128,
    ) -> PyResult<()> {
        self.with(py, |inner| inner.set(region, area, name, ParamValue::Int(value)))
    }

    /// Sets a param to a float.
    fn set_float(
        &self,
        py: Python<'_>,
        region: usize,
        area: Area,
        name: &str,
        value: f64,
    ) -> PyResult<()> {
        self.with(py, |inner| inner.set(region, area, name, ParamValue::Float(value)))
    }

    /// Sets a param to the number of a color.
    fn set_color(
        &self,
        py: Python<'_>,
        region: usize,
        area: Area,
        name: &str,
        color: usize,
    ) -> PyResult<()> {
        self.with(py, |inner| {
            let color = inner.color(color)?;
            inner.set(region, area, name, ParamValue::Color(color))
        })
    }

    /// Sets the route of a color, and the positions of its switch.
    fn paint(
        &self,
        py: Python<'_>,
        region: usize,
        area: Area,
        color: usize,
        positions: Vec<Position>,
    ) -> PyResult<()> {
        self.with(py, |inner| {
            let (region, area, color) = (inner.region(region)?, rect(area)?, inner.color(color)?);
            inner.builder.paint(region, area, color, &routes(&positions)).map_err(said)
        })
    }

    /// Likewise on an edge: top, bottom, left or right, by number.
    fn paint_edge(
        &self,
        py: Python<'_>,
        region: usize,
        edge: usize,
        color: usize,
        positions: Vec<Position>,
    ) -> PyResult<()> {
        self.with(py, |inner| {
            let (region, edge, color) =
                (inner.region(region)?, edge_of(edge)?, inner.color(color)?);
            inner.builder.paint_edge(region, edge, color, &routes(&positions)).map_err(said)
        })
    }

    /// A port over an edge.
    #[expect(clippy::too_many_arguments, reason = "what a port is")]
    fn port(
        &self,
        py: Python<'_>,
        region: usize,
        input: bool,
        color: usize,
        edge: usize,
        positions: Vec<Position>,
        size: u64,
        prefix: &str,
    ) -> PyResult<usize> {
        self.with(py, |inner| {
            let region = inner.region(region)?;
            let positions = routes(&positions);
            let request = PortRequest {
                flow: flow(input),
                color: inner.color(color)?,
                edge: edge_of(edge)?,
                positions: &positions,
                size,
                prefix,
            };
            inner.ports.push(inner.builder.port(region, &request).map_err(said)?);
            Ok(inner.ports.len() - 1)
        })
    }

    /// A port's name.
    fn port_name(&self, py: Python<'_>, port: usize) -> PyResult<String> {
        self.with(py, |inner| Ok(inner.builder.port_name(inner.port(port)?).to_owned()))
    }

    /// Sends what leaves a port into another.
    fn connect(&self, py: Python<'_>, output: usize, input: usize) -> PyResult<()> {
        self.with(py, |inner| {
            let (output, input) = (inner.port(output)?, inner.port(input)?);
            inner.builder.connect(output, input).map_err(said)
        })
    }

    /// Joins a port to the host; gives the stream's name.
    #[pyo3(signature = (port, input, via=None, buffer=1024))]
    fn stream(
        &self,
        py: Python<'_>,
        port: usize,
        input: bool,
        via: Option<(i64, i64)>,
        buffer: u32,
    ) -> PyResult<String> {
        self.with(py, |inner| {
            let port = inner.port(port)?;
            inner.builder.stream(port, flow(input), via, buffer).map_err(said)
        })
    }

    /// Joins a painted color of a PE to the host; gives the stream's name.
    fn stream_at(
        &self,
        py: Python<'_>,
        at: (i64, i64),
        color: usize,
        input: bool,
        prefix: &str,
    ) -> PyResult<String> {
        self.with(py, |inner| {
            let color = inner.color(color)?;
            inner.builder.stream_at(at, color, flow(input), prefix).map_err(said)
        })
    }

    /// Gives an array its values: elements of so many bytes, as a matrix for all PEs.
    #[expect(clippy::too_many_arguments, reason = "what an array is")]
    fn set_symbol(
        &self,
        py: Python<'_>,
        region: usize,
        name: &str,
        element: u32,
        data: &[u8],
        columns: usize,
        rows: usize,
    ) -> PyResult<()> {
        self.with(py, |inner| {
            let region = inner.region(region)?;
            let symbol = Symbol { name, element, data, columns, rows };
            inner.builder.set_symbol(region, &symbol).map_err(said)
        })
    }

    /// Compiles the layout and writes its folder; gives the numbers of all colors, and what was
    /// warned of.
    #[pyo3(signature = (folder, import_paths=Vec::new(), half="f16"))]
    fn compile(
        &self,
        py: Python<'_>,
        folder: PathBuf,
        import_paths: Vec<String>,
        half: &str,
    ) -> PyResult<(Vec<u8>, String)> {
        let (builder, colors) =
            self.with(py, |inner| Ok((inner.builder.clone(), inner.colors.clone())))?;
        let half = Ty::from_name(half).filter(|ty| matches!(ty, Ty::F16 | Ty::Bf16));
        let half = half.ok_or_else(|| errors::host(py, "16-bit floats are f16 or bf16"))?;
        let interrupt = Arc::new(AtomicBool::new(false));
        let stop = Some(stop(&interrupt));
        let options = Options { import_paths, half, stop, ..Options::default() };
        let built = attend(py, &interrupt, || dflow_cli::layout::compile(&builder, options))?;
        let built = built.map_err(|message| errors::host(py, &message))?;
        if built.image.is_none() {
            let message = format!("the layout does not compile\n{}", built.report.trim_end());
            return Err(errors::compile(py, &message, &built.report));
        }
        let number = |color: &ColorId| built.colors.get(color.index()).copied();
        let names = colors
            .iter()
            .filter_map(|color| Some((builder.color_name(*color), number(color)?.to_string())));
        let names: Vec<(String, String)> = names.collect();
        let written = py.detach(|| dflow_cli::layout::write(&folder, &builder, &built, names));
        written.map_err(|error| errors::host(py, &error.to_string()))?;
        Ok((colors.iter().filter_map(number).collect(), built.report))
    }
}

fn said(error: BuildError) -> String {
    error.to_string()
}

fn flow(input: bool) -> Flow {
    if input { Flow::In } else { Flow::Out }
}

fn edge_of(number: usize) -> Done<Edge> {
    let edges = [Edge::Top, Edge::Bottom, Edge::Left, Edge::Right];
    edges.get(number).copied().ok_or_else(|| format!("{number} is no edge"))
}

fn routes(positions: &[Position]) -> Vec<RoutingPosition> {
    let position = |&(input, output): &Position| RoutingPosition {
        input: PortSet(input & 0x1f),
        output: PortSet(output & 0x1f),
    };
    positions.iter().map(position).collect()
}

/// An area; what no region can hold is refused by its numbers.
fn rect((x, y, width, height): Area) -> Done<Rect> {
    let part = |part: i64| {
        u16::try_from(part)
            .map_err(|_| format!("({x}, {y}) with {width} x {height} PEs is in no region"))
    };
    Ok(Rect { x: part(x)?, y: part(y)?, width: part(width)?, height: part(height)? })
}
