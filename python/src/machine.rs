//! A machine and its host, from loading to the end.
//!
//! Invariants: calls of several Python threads go one after the other, and nobody holds the
//! interpreter while it waits for its turn; after a trap, a deadlock or a limit only the state can
//! be read.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use dflow_cli::artifact::{self, State};
use dflow_cli::{limit, memory};
use dflow_ir::image::{Image, ProgramId};
use dflow_ir::mesh::{Color, Coord};
use dflow_ir::target::Target;
use dflow_ir::ty::Ty;
use dflow_runtime::account::Account;
use dflow_runtime::config::{CodeKind, Config, EngineKind, Limits};
use dflow_runtime::doing::Doing;
use dflow_runtime::host::{Elements, HostError, Region, Request, Session, Spread, StreamId};
use dflow_runtime::load::LoadError;
use dflow_runtime::machine::{Machine as Mesh, Running};
use dflow_runtime::stats::{Charges, Stats};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::attend::attend;
use crate::errors;
use crate::life::{ARGUMENTS, ENVIRONMENT, Fault, Inner, Life};
use crate::program::Program;

/// First column, first row, columns, rows, steps from column to column and from row to row.
type Area = (i64, i64, i64, i64, u16, u16);

/// A machine that runs a program.
#[pyclass(frozen, module = "dflow._native")]
pub(crate) struct Machine {
    image: Arc<Image>,
    offsets: (u32, u32),
    interrupt: Arc<AtomicBool>,
    inner: Mutex<Inner>,
}

impl Machine {
    /// Does something with the machine: without the interpreter, watching for signals.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Inner) -> Result<T, Fault> + Send,
    ) -> PyResult<T> {
        let done = attend(py, &self.interrupt, || {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            let done = work(&mut inner);
            // What was odd may be why it failed.
            let mut more = String::new();
            if let Err(Fault::Failure(failure)) = &done {
                more = inner.note(failure, &self.image);
            }
            (done, more)
        })?;
        let (done, more) = done;
        done.map_err(|fault| match fault {
            Fault::Failure(failure) => errors::failure(py, &self.image, &failure, &more),
            Fault::Text(text) => errors::host(py, &text),
        })
    }

    /// As [`Machine::with`], for what takes no time.
    fn glance<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Inner) -> Result<T, Fault> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            work(&mut inner)
        });
        done.map_err(|fault| self.raise(py, &fault))
    }

    /// Makes a request that concerns a region; gives its number.
    fn submit(
        &self,
        py: Python<'_>,
        area: Area,
        request: impl FnOnce(Region) -> Result<Request, Fault> + Send,
    ) -> PyResult<usize> {
        self.glance(py, |inner| {
            let region = place(inner.session()?, area)?;
            inner.submit(request(region)?)
        })
    }

    fn counters(&self, py: Python<'_>) -> PyResult<Stats> {
        self.glance(py, |inner| match &inner.life {
            Life::Running(session) => Ok(session.mesh().stats()),
            Life::Stopped { mesh, .. } => Ok(mesh.stats()),
            Life::Gone => Err(Fault::Text("the machine is stopped".into())),
        })
    }

    fn raise(&self, py: Python<'_>, fault: &Fault) -> PyErr {
        match fault {
            Fault::Failure(failure) => errors::failure(py, &self.image, failure, ""),
            Fault::Text(text) => errors::host(py, text),
        }
    }
}

#[pymethods]
impl Machine {
    #[new]
    #[pyo3(signature = (program, *, threads=0, engine="exact", code="jit", max_cycles=None, max_memory=None, seconds=None, strict=false, finite=false))]
    #[expect(clippy::too_many_arguments, reason = "keywords on the Python side")]
    fn new(
        py: Python<'_>,
        program: &Program,
        threads: usize,
        engine: &str,
        code: &str,
        max_cycles: Option<u64>,
        max_memory: Option<u64>,
        seconds: Option<f64>,
        strict: bool,
        finite: bool,
    ) -> PyResult<Machine> {
        let config = config(threads, engine, code).map_err(|text| errors::host(py, &text))?;
        let config = Config { strict, ..config };
        let interrupt = Arc::new(AtomicBool::new(false));
        let limits = Limits {
            cycle: max_cycles.unwrap_or(u64::MAX),
            memory: max_memory.unwrap_or_else(memory::default_limit),
            deadline: deadline(seconds).map_err(|text| errors::host(py, &text))?,
            interrupt: Some(Arc::clone(&interrupt)),
            progress: None,
            exhausted: Some(memory::probe()),
        };
        let image = Arc::clone(&program.image);
        let settings = if finite { ENVIRONMENT } else { ARGUMENTS };
        let mesh = attend(py, &interrupt, || Mesh::load_within(&image, &config, &limits))?;
        let mesh = mesh.map_err(|error| match error {
            LoadError::Limit(limit) => {
                let set = limit::Set { limits: &limits, by: settings, own_memory: false };
                errors::limit(py, &set.reached(&image, limit, &Doing::default()))
            }
            error => errors::host(py, &error.to_string()),
        })?;
        let make = if finite { Session::finite } else { Session::new };
        let session = make(mesh.start(), &image, limits);
        let inner = Inner {
            life: Life::Running(Box::new(session)),
            limits: (settings, max_memory.is_some()),
            ended: None,
            cut: false,
            busy: false,
            tickets: Vec::new(),
        };
        let offsets = program.offsets;
        Ok(Machine { image, offsets, interrupt, inner: Mutex::new(inner) })
    }

    /// Makes a request: elements for the memory behind an exported pointer. Gives its number.
    fn copy_in(
        &self,
        py: Python<'_>,
        symbol: u32,
        region: Area,
        spread: &str,
        data: Vec<u8>,
    ) -> PyResult<usize> {
        let elements = Elements::Type(element(&self.image, symbol));
        let spread = shared(spread).map_err(|fault| self.raise(py, &fault))?;
        self.submit(py, region, |region| {
            Ok(Request::CopyIn { export: symbol, region, elements, spread, data })
        })
    }

    /// Makes a request: `count` elements of each PE of a region.
    fn copy_out(&self, py: Python<'_>, symbol: u32, region: Area, count: u64) -> PyResult<usize> {
        let elements = Elements::Type(element(&self.image, symbol));
        self.submit(py, region, |region| {
            Ok(Request::CopyOut { export: symbol, region, elements, count })
        })
    }

    /// Why a copy of `count` elements of each PE reads more than the array behind the pointer;
    /// nothing if it does not, as far as one can tell.
    fn excess(
        &self,
        py: Python<'_>,
        symbol: u32,
        region: Area,
        count: u64,
    ) -> PyResult<Option<String>> {
        let elements = Elements::Type(element(&self.image, symbol));
        self.glance(py, |inner| {
            let session = inner.session()?;
            let region = place(session, region)?;
            let error = session.excess(symbol, region, elements, count);
            Ok(error.map(|error| error.to_string()))
        })
    }

    /// Makes a request: a call of an exported function on all PEs, with raw argument values.
    fn launch(&self, py: Python<'_>, symbol: u32, args: Vec<u64>) -> PyResult<usize> {
        self.glance(py, |inner| inner.submit(Request::Launch { export: symbol, args }))
    }

    /// Makes a request: words on a streaming color, `bits` (16 or 32) of each used.
    fn stream_in(
        &self,
        py: Python<'_>,
        color: u8,
        region: Area,
        bits: u32,
        spread: &str,
        data: Vec<u8>,
    ) -> PyResult<usize> {
        let spread = shared(spread).map_err(|fault| self.raise(py, &fault))?;
        self.submit(py, region, |region| {
            let (color, elements) = (stream_color(color)?, stream_type(bits)?.into());
            Ok(Request::StreamIn { color, region, elements, spread, data })
        })
    }

    /// Makes a request: `count` words of each PE of a region on a streaming color.
    fn stream_out(
        &self,
        py: Python<'_>,
        color: u8,
        region: Area,
        bits: u32,
        count: u64,
    ) -> PyResult<usize> {
        self.submit(py, region, |region| {
            let (color, elements) = (stream_color(color)?, stream_type(bits)?.into());
            Ok(Request::StreamOut { color, region, elements, count })
        })
    }

    /// Carries out the requests up to one of them; gives the elements that it brought, PEs row by
    /// row. They can be taken once.
    fn wait_for<'py>(&self, py: Python<'py>, request: usize) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.with(py, |inner| {
            let ticket = inner.tickets.get(request).copied();
            let ticket =
                ticket.ok_or_else(|| Fault::Text(format!("there is no request {request}")))?;
            Ok(inner.session()?.wait_for(ticket)?)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Whether a request has been carried out.
    fn is_done(&self, py: Python<'_>, request: usize) -> PyResult<bool> {
        self.glance(py, |inner| {
            let Some(ticket) = inner.tickets.get(request).copied() else { return Ok(false) };
            Ok(inner.session()?.is_done(ticket))
        })
    }

    /// Waits until a queued reception is complete and gives its words; nothing if they have been
    /// given before.
    fn complete<'py>(&self, py: Python<'py>, number: u32) -> PyResult<Bound<'py, PyBytes>> {
        let id = StreamId::numbered(number);
        let rows = self.with(py, |inner| Ok(inner.session()?.complete(id)?))?;
        Ok(PyBytes::new(py, &rows.concat()))
    }

    /// Queues 32-bit words for a stream, by its place in `Program.streams`.
    fn send_words(&self, py: Python<'_>, stream: usize, words: &[u8]) -> PyResult<()> {
        let (words, _) = words.as_chunks();
        let words: Vec<u32> = words.iter().copied().map(u32::from_le_bytes).collect();
        self.with(py, |inner| Ok(inner.session()?.send_words(stream, &words)?))
    }

    /// Waits until the words of a stream have gone, but for what its buffer holds.
    fn wait_sent(&self, py: Python<'_>, stream: usize) -> PyResult<()> {
        self.with(py, |inner| Ok(inner.session()?.wait_sent(stream)?))
    }

    /// Queues the reception of words from a stream; `complete` hands them over.
    fn receive_words(&self, py: Python<'_>, stream: usize, count: u64) -> PyResult<u32> {
        self.with(py, |inner| Ok(inner.session()?.receive_words(stream, count)?.number()))
    }

    /// Cycle of the last event that the host waited for.
    #[getter]
    fn cycles(&self, py: Python<'_>) -> PyResult<u64> {
        self.glance(py, |inner| Ok(inner.cycles()))
    }

    /// Counters: words delivered, hops, issue slots, tasks, PEs touched; cycles charged to cores, and what of these rests
    /// on assumed constants.
    fn stats(&self, py: Python<'_>) -> PyResult<Vec<(&'static str, u64)>> {
        let stats = self.counters(py)?;
        let charges = Charges::new(Target::get(self.image.target), &stats);
        Ok(vec![
            ("wavelets", stats.delivered),
            ("hops", stats.hops),
            ("slots", stats.slots),
            ("charged_cycles", charges.charged),
            ("assumed_cycles", charges.assumed),
            ("tasks", stats.tasks),
            ("dropped_controls", stats.dropped_controls),
            ("touched", stats.touched),
        ])
    }

    /// Part of the cycles charged so far that rests on constants that nobody has published.
    #[getter]
    fn assumed_share(&self, py: Python<'_>) -> PyResult<f64> {
        let stats = self.counters(py)?;
        Ok(Charges::new(Target::get(self.image.target), &stats).assumed_share())
    }

    /// Who waits for what now; where PEs compute, or would, who does what.
    fn waiting(&self, py: Python<'_>) -> PyResult<String> {
        let files = &self.image.files;
        self.glance(py, |inner| {
            let Some(doing) = inner.doing() else { return Ok(String::new()) };
            if inner.cut || !doing.busy.is_empty() {
                let what = format!("the mesh still worked at cycle {}", doing.cycle);
                return Ok(limit::with_doing(&what, &doing, files));
            }
            let waiting = match &inner.life {
                Life::Running(session) => session.mesh().waiting(),
                Life::Stopped { mesh, .. } => mesh.waiting(),
                Life::Gone => return Ok(String::new()),
            };
            Ok(waiting.text(files))
        })
    }

    /// Takes the lines that PEs have printed: cycle, column, row, text.
    fn printed(&self, py: Python<'_>) -> PyResult<Vec<(u64, u16, u16, String)>> {
        let lines = self.glance(py, |inner| match &mut inner.life {
            Life::Running(session) => Ok(session.printed()),
            Life::Stopped { mesh, .. } => Ok(mesh.printed()),
            Life::Gone => Ok(Vec::new()),
        })?;
        let parts = lines.into_iter().map(|line| (line.cycle, line.at.x, line.at.y, line.text));
        Ok(parts.collect())
    }

    /// What was odd, and what was not as expected at the end. Of a run that has failed nothing:
    /// that was told.
    fn account(&self, py: Python<'_>) -> PyResult<(Vec<String>, Vec<String>)> {
        let files = &self.image.files;
        self.glance(py, |inner| {
            let account = match &inner.life {
                Life::Running(session) => session.mesh().account(),
                Life::Stopped { mesh, .. } => mesh.account(),
                Life::Gone => Account::default(),
            };
            if inner.ended.is_some() {
                return Ok((Vec::new(), Vec::new()));
            }
            let account = Account { busy: inner.busy, ..account };
            let warnings = account.remarks.iter().map(|remark| remark.line(files)).collect();
            Ok((warnings, account.notes(files)))
        })
    }

    /// Stops the machine, after it has come to rest or has been given a while for it.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Inner::stop)
    }

    /// Bytes of a variable of a PE of the program's rectangle; nothing if there is none, or
    /// if several have the name.
    fn read<'py>(
        &self,
        py: Python<'py>,
        x: u16,
        y: u16,
        name: &str,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let at = Coord { x, y };
        let Some((address, size)) = self.find(at, name) else { return Ok(None) };
        let bytes = self.glance(py, |inner| Ok(inner.mesh()?.read_memory(at, address, size)))?;
        Ok(bytes.map(|bytes| PyBytes::new(py, &bytes)))
    }

    /// Names of the variables of a PE of the program's rectangle.
    fn names(&self, x: u16, y: u16) -> Vec<String> {
        let program = self.image.program_at(Coord { x, y });
        let globals = program.map(|id| self.image.programs[id].globals.values());
        globals.into_iter().flatten().map(|global| global.name.clone()).collect()
    }

    /// Bytes that a state would hold at most.
    fn state_size(&self) -> u64 {
        let pes = self.image.placement.programs.iter_pes();
        pes.map(|(_, &id)| u64::from(self.image.memory[id].data_end)).sum()
    }

    /// Writes the memory of all PEs of a stopped machine to a file, or to its place in the folder
    /// of its program.
    fn write_state(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let image = &self.image;
        let state = self.with(py, |inner| {
            let cycles = inner.cycles();
            let mesh = inner.mesh()?;
            Ok(State::new(image, self.offsets, cycles, |at| {
                let end = image.program_at(at).map_or(0, |id| image.memory[id].data_end);
                mesh.read_memory(at, 0, end).unwrap_or_default()
            }))
        })?;
        let written = py.detach(|| match path.is_dir() {
            true => artifact::keep_state(&path, &state),
            false => artifact::write_state(&path, &state),
        });
        written.map_err(|error| errors::host(py, &error.to_string()))
    }
}

impl Machine {
    /// Address and size of the only variable of a name, which may be `module.name`.
    fn find(&self, at: Coord, name: &str) -> Option<(u32, u32)> {
        let id: ProgramId = self.image.program_at(at)?;
        let program = &self.image.programs[id];
        let named = program.globals.iter().map(|one| (one, &*one.1.name));
        let (global, found) = artifact::only(named, name)?;
        let map = &self.image.memory[id].globals;
        let (_, address) = map.iter().find(|(other, _)| *other == global)?;
        Some((*address, found.size))
    }
}

fn config(threads: usize, engine: &str, code: &str) -> Result<Config, String> {
    let engine = match engine {
        "exact" => EngineKind::Exact,
        "step" => EngineKind::Step,
        "flow" => EngineKind::Flow,
        other => return Err(format!("`{other}` is no engine: exact, flow and step are")),
    };
    let code = match code {
        "jit" => CodeKind::Jit,
        "interpreter" => CodeKind::Interpreter,
        other => return Err(format!("`{other}` runs no code: jit and interpreter do")),
    };
    Ok(Config { engine, code, threads, ..Config::default() })
}

fn deadline(seconds: Option<f64>) -> Result<Option<Instant>, String> {
    let Some(seconds) = seconds else { return Ok(None) };
    let limit = Duration::try_from_secs_f64(seconds);
    let limit = limit.map_err(|_| format!("{seconds} is no number of seconds"))?;
    Ok(Instant::now().checked_add(limit))
}

/// The type of the elements behind an export. Of what is no pointer any: it is refused anyway.
fn element(image: &Image, symbol: u32) -> Ty {
    use dflow_ir::image::ExportKind;
    match image.exports.get(symbol as usize).map(|export| &export.kind) {
        Some(ExportKind::Pointer { element, .. }) => element.ty,
        Some(ExportKind::Scalar { .. } | ExportKind::Function { .. }) | None => Ty::I32,
    }
}

fn place(session: &Session<Mesh<Running>>, area: Area) -> Result<Region, HostError> {
    let (x, y, width, height, column_step, row_step) = area;
    let rect = session.symbols().region(x, y, width, height)?;
    Ok(Region { rect, column_step, row_step })
}

fn shared(spread: &str) -> Result<Spread, Fault> {
    match spread {
        "each" => Ok(Spread::Each),
        "rows" => Ok(Spread::Rows),
        "columns" => Ok(Spread::Columns),
        other => {
            Err(Fault::Text(format!("`{other}` is no way to share: each, rows and columns are")))
        }
    }
}

fn stream_color(number: u8) -> Result<Color, Fault> {
    Color::new(number).ok_or_else(|| {
        Fault::Text(format!("{number} is no color: colors are 0 to {}", Color::COUNT - 1))
    })
}

fn stream_type(bits: u32) -> Result<Ty, Fault> {
    match bits {
        16 => Ok(Ty::I16),
        32 => Ok(Ty::I32),
        other => Err(Fault::Text(format!("{other} bits cannot be streamed: 16 and 32 can"))),
    }
}
