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
    let stopped = wait(&mut child, start, log, limits);
    // What the script left running goes with it.
    end_group(&mut child);
    let status = child.wait();
    let end = match stopped {
        Ok(Some(end)) => Ok(end),
        Ok(None) => status.map(|status| End::Code(code(status))),
        Err(error) => Err(error),
    };
    let text = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    Ok(Ran {
        end: end.map_err(|error| fault(&folder.join(file), &error))?,
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

/// Waits until a script has ended by itself (none), or is to be ended. It is not reaped: its number is that of its
/// group until all of that is ended.
fn wait(
    child: &mut Child,
    start: Instant,
    log: &Path,
    limits: &Limits,
) -> std::io::Result<Option<End>> {
    while !has_ended(child)? {
        if limits.interrupt.load(Ordering::SeqCst) {
            return Ok(Some(End::Interrupted));
        }
        if start.elapsed() >= limits.time {
            return Ok(Some(End::Timeout));
        }
        if std::fs::metadata(log).is_ok_and(|data| data.len() > MAX_PRINTED) {
            return Ok(Some(End::Flood));
        }
        std::thread::sleep(GLANCE);
    }
    Ok(None)
}

/// The number of a script's process, and of its group.
#[cfg(unix)]
fn number(child: &Child) -> Option<rustix::process::Pid> {
    i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw)
}

#[cfg(unix)]
fn has_ended(child: &Child) -> std::io::Result<bool> {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let number = number(child).ok_or(std::io::ErrorKind::InvalidInput)?;
    let only_look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    Ok(waitid(WaitId::Pid(number), only_look)?.is_some())
}

#[cfg(not(unix))]
fn has_ended(child: &mut Child) -> std::io::Result<bool> {
    Ok(child.try_wait()?.is_some())
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

/// Ends all processes of a script, which has not been reaped.
#[cfg(unix)]
fn end_group(child: &mut Child) {
    if let Some(group) = number(child) {
        // Nobody may be left: no fault.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

/// Ends a script; what it started is not known here.
#[cfg(not(unix))]
fn end_group(child: &mut Child) {
    // It may have ended: no fault.
    let _ = child.kill();
}

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

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_has_ended_has_its_number_until_its_group_is_ended() {
        let log = tempfile::NamedTempFile::new().expect("a file");
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & exit 3"]).stdout(Stdio::null());
        apart(&mut command);
        let mut child = command.spawn().expect("it starts");
        let group = number(&child).expect("a number");
        let limits = Limits { time: Duration::from_secs(60), interrupt: Arc::default() };
        let ended = wait(&mut child, Instant::now(), log.path(), &limits);
        assert_eq!(ended.expect("it can be waited for"), None);
        assert!(rustix::process::test_kill_process(group).is_ok(), "the number may be another's");
        end_group(&mut child);
        assert_eq!(child.wait().expect("it has ended").code(), Some(3));
        let start = Instant::now();
        while rustix::process::test_kill_process_group(group).is_ok() {
            assert!(start.elapsed() < Duration::from_secs(30), "somebody is left");
            std::thread::sleep(GLANCE);
        }
    }

    #[test]
    fn a_script_that_cannot_be_waited_for_says_why() {
        let log = tempfile::NamedTempFile::new().expect("a file");
        let mut child = Command::new("true").spawn().expect("it starts");
        child.wait().expect("it ends");
        let limits = Limits { time: Duration::from_secs(60), interrupt: Arc::default() };
        let failed = wait(&mut child, Instant::now(), log.path(), &limits);
        assert!(failed.is_err(), "{failed:?}");
    }
}
