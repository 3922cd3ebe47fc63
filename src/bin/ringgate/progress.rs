//! How far a long run is, for whoever looks at a terminal.

use core::time::Duration;
use std::io::{self, IsTerminal, Write};
use std::time::Instant;

/// A line on standard error that is written over, when that is a terminal and the run takes longer.
#[derive(Debug)]
pub(crate) struct Progress {
    shown: Option<Instant>,
    /// Bytes of all inputs, when that is known.
    total: Option<u64>,
    began: Instant,
    visible: bool,
}

/// How often the line is written, and how long a run takes that has none.
const PERIOD: Duration = Duration::from_millis(200);

/// Characters of the bar.
const BAR: u64 = 30;

impl Progress {
    pub(crate) fn new(total: Option<u64>, quiet: bool) -> Self {
        let now = Instant::now();
        Self {
            shown: (!quiet && io::stderr().is_terminal()).then_some(now),
            total,
            began: now,
            visible: false,
        }
    }

    /// Shows that so many bytes were read.
    pub(crate) fn read(&mut self, bytes: u64) {
        let Some(total) = self.total.filter(|total| *total > 0) else {
            let megabytes = bytes / 1_000_000;
            return self.show(|| format!("reading: {megabytes} MB"));
        };
        let seconds = self.began.elapsed().as_secs_f64();
        self.show(|| {
            let bytes = bytes.min(total);
            let done = bytes * BAR / total;
            let bar: String = (0..BAR).map(|at| if at < done { '#' } else { '.' }).collect();
            let percent = bytes * 100 / total;
            #[expect(clippy::cast_precision_loss, reason = "for people")]
            let rate = bytes as f64 / 1e6 / seconds.max(1e-3);
            format!("reading [{bar}] {percent:3} % {rate:.0} MB/s")
        });
    }

    /// Shows what is done now.
    pub(crate) fn doing(&mut self, what: &str) {
        self.show(|| what.to_string());
    }

    fn show(&mut self, text: impl FnOnce() -> String) {
        let Some(shown) = self.shown.filter(|shown| shown.elapsed() >= PERIOD) else {
            return;
        };
        let _ = shown;
        self.shown = Some(Instant::now());
        self.visible = true;
        // Nobody is told less when it cannot be written.
        let _unseen = write!(io::stderr().lock(), "\r\u{1b}[K{}", text());
    }
}

/// The line goes.
impl Drop for Progress {
    fn drop(&mut self) {
        if self.visible {
            let _unseen = write!(io::stderr().lock(), "\r\u{1b}[K");
        }
    }
}
