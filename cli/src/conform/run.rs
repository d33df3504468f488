//! Running one script: its own process group, a time limit, everything it prints in one file.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::tools::Tools;
use crate::data::Input;
use crate::exit::Failure;

/// Between two looks at a running script.
const GLANCE: Duration = Duration::from_millis(10);

/// A script that prints more than this is ended.
const MAX_PRINTED: u64 = 256 << 20;

/// How much of what a script printed is read: the start and the end.
const MAX_READ: u64 = 4 << 20;

/// What ends a script.
pub(super) struct Limits {
    pub(super) time: Duration,
    pub(super) interrupt: Arc<AtomicBool>,
}

/// How a script ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// By itself, with this code; one that a signal ended has 128 and its number.
    Code(i32),
    /// By the limit of time.
    Timeout,
    /// By the limit of what it may print.
    Flood,
    /// By Ctrl-C.
    Interrupted,
}

/// A script that has run.
#[derive(Clone, Debug)]
pub(super) struct Ran {
    pub(super) end: End,
    pub(super) seconds: f64,
    /// Everything it printed; if that is very much, start and end.
    pub(super) output: String,
    /// Exit codes of the compiler's calls.
    pub(super) compiler: Vec<i32>,
    /// Sum over all machines that told.
    pub(super) cycles: Option<u64>,
}

/// Runs a script in its folder.
///
/// # Errors
/// It cannot be started, or what it printed cannot be kept.
pub(super) fn script(
    folder: &Path,
    file: &str,
    tools: &Tools,
    log: &Path,
    limits: &Limits,
) -> Result<Ran, Failure> {
    let fault = |path: &Path, error: &std::io::Error| {
        Failure::program(format!("{}: {}", path.display(), Input::reason(error)))
    };
    let (codes, stats) = (log.with_extension("codes"), log.with_extension("stats"));
    for path in [&codes, &stats] {
        std::fs::write(path, "").map_err(|error| fault(path, &error))?;
    }
    let out = File::create(log).map_err(|error| fault(log, &error))?;
    let both = out.try_clone().map_err(|error| fault(log, &error))?;
    let start = Instant::now();
    let mut command = interpreter(folder, file);
    command
        .current_dir(folder)
        .envs(tools.environment(&codes, &stats))
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(both);
    apart(&mut command);
    let mut child = command.spawn().map_err(|error| fault(&folder.join(file), &error))?;
    let end = wait(&mut child, start, log, limits);
    // What the script left running goes with it.
    end_group(&child);
    let _ = child.wait();
    let text = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    Ok(Ran {
        end,
        seconds: start.elapsed().as_secs_f64(),
        output: printed(log).map_err(|error| fault(log, &error))?,
        compiler: text(&codes).lines().filter_map(|line| line.trim().parse().ok()).collect(),
        cycles: cycles(&text(&stats)),
    })
}

/// `bash` for shell scripts of any kind; what names another interpreter runs on that.
fn interpreter(folder: &Path, file: &str) -> Command {
    let text = std::fs::read(folder.join(file)).unwrap_or_default();
    let first = String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_owned();
    let name = first.strip_prefix("#!").map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let word = match words.first() {
            Some(env) if env.ends_with("/env") => words.get(1),
            other => other,
        };
        word.map_or("", |word| word.rsplit('/').next().unwrap_or("")).to_owned()
    });
    let program = match name.as_deref() {
        None | Some("sh" | "bash" | "dash" | "") => "bash".to_owned(),
        Some(other) => other.to_owned(),
    };
    let mut command = Command::new(program);
    command.arg(format!("./{file}"));
    command
}

fn wait(child: &mut Child, start: Instant, log: &Path, limits: &Limits) -> End {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return End::Code(code(status)),
            Ok(None) => {}
            Err(_) => return End::Code(-1),
        }
        if limits.interrupt.load(Ordering::SeqCst) {
            return End::Interrupted;
        }
        if start.elapsed() >= limits.time {
            return End::Timeout;
        }
        if std::fs::metadata(log).is_ok_and(|data| data.len() > MAX_PRINTED) {
            return End::Flood;
        }
        std::thread::sleep(GLANCE);
    }
}

fn code(status: ExitStatus) -> i32 {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt as _;
        if let Some(signal) = status.signal() {
            return 128 + signal;
        }
    }
    status.code().unwrap_or(-1)
}

/// Puts the script into a process group of its own.
#[cfg(unix)]
fn apart(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;
    command.process_group(0);
}

#[cfg(not(unix))]
fn apart(_: &mut Command) {}

/// Ends all processes of a script.
#[cfg(unix)]
fn end_group(child: &Child) {
    use nix::sys::signal::{Signal, killpg};
    if let Ok(group) = i32::try_from(child.id()) {
        // Nobody may be left: no fault.
        let _ = killpg(nix::unistd::Pid::from_raw(group), Signal::SIGKILL);
    }
}

#[cfg(not(unix))]
fn end_group(_: &Child) {}

fn printed(log: &Path) -> std::io::Result<String> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    if length <= MAX_READ {
        file.read_to_end(&mut bytes)?;
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    (&mut file).take(MAX_READ / 2).read_to_end(&mut bytes)?;
    bytes.extend(b"\n[...]\n");
    file.seek(SeekFrom::Start(length - MAX_READ / 2))?;
    file.take(MAX_READ / 2).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Sum of `cycles` over lines of JSON.
fn cycles(text: &str) -> Option<u64> {
    let values =
        text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let cycles: Vec<u64> = values.filter_map(|value| value["cycles"].as_u64()).collect();
    (!cycles.is_empty()).then(|| cycles.iter().sum())
}
