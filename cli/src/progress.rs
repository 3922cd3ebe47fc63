//! How far a long run is, and what took how long.

use core::time::Duration;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::time::Instant;

/// A line on standard error that is written over, when that is a terminal and the run takes longer.
#[derive(Debug)]
pub(crate) struct Progress {
    /// When the line was written last, or the run began; `None`: it never is.
    shown: Option<Instant>,
    /// Bytes of all inputs, when that is known.
    total: Option<u64>,
    began: Instant,
    visible: bool,
    /// What was done before now, and how long that took; and since when what is done now is done.
    done: Vec<(String, Duration)>,
    doing: Option<(&'static str, Instant)>,
    /// Bytes of lines that were read.
    pub(crate) bytes: u64,
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
            done: Vec::new(),
            doing: None,
            bytes: 0,
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

    /// Says what is done from now on.
    pub(crate) fn begin(&mut self, what: &'static str) {
        self.end();
        self.doing = Some((what, Instant::now()));
    }

    fn end(&mut self) {
        if let Some((what, since)) = self.doing.take() {
            self.done.push((what.into(), since.elapsed()));
        }
    }

    /// Shows what is done now.
    pub(crate) fn go_on(&mut self) {
        let what = self.doing.map_or("", |(what, _)| what);
        self.show(|| what.to_string());
    }

    /// What took how long, how fast lines were read, and the most memory that was in use where the system says it.
    pub(crate) fn timings(&mut self) -> String {
        self.end();
        let mut text = String::new();
        for (what, took) in &self.done {
            text += &format!("{what:<22} {:>8.3} s\n", took.as_secs_f64());
        }
        let all = self.began.elapsed();
        text += &format!("{:<22} {:>8.3} s\n", "all", all.as_secs_f64());
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let megabytes = self.bytes as f64 / 1e6;
        let reading = self.done.first().map_or(all, |(_, took)| *took);
        for (what, took) in [("lines read", reading), ("and all done", all)] {
            let rate = megabytes / took.as_secs_f64().max(1e-9);
            text += &format!("{what:<22} {megabytes:>8.1} MB at {rate:.0} MB/s\n");
        }
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        if let Some(kilobytes) = peak {
            text += &format!("{:<22} {:>8} MiB\n", "most memory in use", kilobytes / 1024);
        }
        text.truncate(text.trim_end().len());
        text
    }

    fn show(&mut self, text: impl FnOnce() -> String) {
        if self.shown.is_none_or(|shown| shown.elapsed() < PERIOD) {
            return;
        }
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
