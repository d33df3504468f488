//! `dflowc conform`: command scripts of a code base, run with our tools.

use std::time::Duration;

use crate::args::ConformArgs;
use crate::conform::{self, Request};
use crate::exit::{Exit, Failure};

/// Runs the scripts below a folder.
///
/// # Errors
/// Wrong use, or the system does not let us.
pub(crate) fn execute(args: &ConformArgs) -> Result<Exit, Failure> {
    let jobs = args.jobs.map(usize::from);
    conform::execute(&Request {
        folder: args.folder.clone(),
        jobs: jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
        timeout: Duration::from_secs_f64(args.timeout),
        target: args.target.map(Into::into),
        filter: args.filter.clone(),
        scripts: args.scripts.clone(),
        json: args.json.clone(),
        python: args.python.clone(),
        venv: args.venv.clone(),
        wheel: args.wheel.clone(),
        keep: args.keep.clone(),
        verbose: args.verbose,
    })
}
