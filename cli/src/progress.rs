//! The progress line of a long run.

use core::time::Duration;
use std::io::{self, IsTerminal, Write};
use std::time::Instant;

/// A line on standard error that is overwritten. It appears if that is a terminal and the run takes long.
#[derive(Debug)]
pub(crate) struct Progress {
    /// The last update, or the start of the run; `None` if the line never appears.
    updated: Option<Instant>,
    /// Bytes of all inputs, if known.
    total: Option<u64>,
    start: Instant,
    visible: bool,
    phase: &'static str,
}

/// The time between two updates, and before the first.
const PERIOD: Duration = Duration::from_millis(200);

/// Characters of the bar.
const BAR: u64 = 30;

impl Progress {
    pub(crate) fn new(total: Option<u64>, quiet: bool) -> Self {
        let now = Instant::now();
        Self {
            updated: (!quiet && io::stderr().is_terminal()).then_some(now),
            total,
            start: now,
            visible: false,
            phase: "",
        }
    }

    /// Begins a phase of the run.
    pub(crate) fn begin(&mut self, phase: &'static str) {
        self.phase = phase;
    }

    /// Shows the bytes that were read so far.
    pub(crate) fn read(&mut self, bytes: u64) {
        let Some(total) = self.total.filter(|total| *total > 0) else {
            return self.show(|| format!("reading: {} MB", bytes / 1_000_000));
        };
        let seconds = self.start.elapsed().as_secs_f64();
        self.show(|| {
            let bytes = bytes.min(total);
            let done = bytes * BAR / total;
            let bar: String = (0..BAR).map(|at| if at < done { '#' } else { '.' }).collect();
            let percent = bytes * 100 / total;
            #[expect(clippy::cast_precision_loss, reason = "a rate that is shown without decimals")]
            let rate = bytes as f64 / 1e6 / seconds.max(1e-3);
            format!("reading [{bar}] {percent:3} % {rate:.0} MB/s")
        });
    }

    /// Shows the present phase, of which `done` parts of `all` are done.
    pub(crate) fn show_phase(&mut self, done: u64, all: u64) {
        let phase = self.phase;
        let percent = done.saturating_mul(100) / all.max(1);
        self.show(|| format!("{phase}: {percent:3} %"));
    }

    fn show(&mut self, text: impl FnOnce() -> String) {
        if self.updated.is_none_or(|updated| updated.elapsed() < PERIOD) {
            return;
        }
        self.updated = Some(Instant::now());
        self.visible = true;
        let _ignored = write!(io::stderr().lock(), "\r\u{1b}[K{}", text());
    }
}

/// Erases the line.
impl Drop for Progress {
    fn drop(&mut self) {
        if self.visible {
            let _ignored = write!(io::stderr().lock(), "\r\u{1b}[K");
        }
    }
}
