//! Snapshots beside their input: `<input>.<stage>.snap`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Compares `text` with the snapshot of a stage of an input.
///
/// # Errors
/// They differ (or, unless snapshots are being accepted, there is none yet).
pub fn compare(input: &Path, stage: &str, text: &str) -> Result<(), String> {
    let folder = input.parent().unwrap_or(Path::new("."));
    let file = input.file_name().unwrap_or_default().to_string_lossy();
    let name = format!("{file}.{stage}");
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let result = settings.bind(|| {
        // insta reports by panicking; the trial's verdict is a value.
        catch_unwind(AssertUnwindSafe(|| insta::assert_snapshot!(name.as_str(), text)))
    });
    result.map_err(|_| {
        format!("{}: stage `{stage}` prints something new: cargo xtask bless", input.display())
    })
}
