//! A report of tests that this machine cannot run.

use std::io::Write;

/// Reports that the running test is skipped, because the machine lacks `program`.
///
/// The test harness has no such outcome and counts the test as passed. `ci/test.sh` counts it as skipped by this line.
pub(crate) fn skipped(program: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let line = format!("skipped: no {program}: {}::{test}\n", env!("CARGO_CRATE_NAME"));
    // The harness captures what `println` prints, but not this.
    std::io::stderr()
        .write_all(line.as_bytes())
        .expect("the standard error can be written");
}
