//! The command line.

use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand, ValueEnum};
use ringgate::{CounterRing, Quota};

use crate::doctor::RedisCommand;
use crate::failure::Failure;

/// Rate limiting that never admits more than it promises, on the command line.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Tells what a limiter would have done to the requests of an access log.
    ///
    /// Each client address has a limiter of its own, and every request asks it for one permit, in
    /// order of time; requests of the same second keep the order of their lines.
    #[command(after_long_help = NOTES)]
    Replay(ReplayArgs),
    /// Looks after a Redis or Valkey server that keeps limits for many machines.
    #[command(subcommand)]
    Redis(RedisCommand),
}

const NOTES: &str = r#"The log:
  One request a line, in Apache's or nginx's common or combined format:

    address ident user [17/May/2015:10:05:03 +0000] "request" status size ...

  The address is printable ASCII; the time must exist (no 31/Feb; a leap second counts as second 59); within the
  quoted request \" is not the end; the status is three digits; the size is digits or "-". What follows after a
  space (in the combined format "referer" and "user-agent") is not looked at. Any other line, and any line of more
  than 64 KiB, is malformed: it is counted and passed over, and the first three are shown on standard error. Lines
  may end in \r\n. Blank lines are passed over.

Time:
  Cells and fixed windows begin at whole multiples of the window since 1970-01-01T00:00:00Z: the limiter's clock
  starts at the last such multiple that is not after the first request. A log may span 20 years, less two windows.

Memory:
  Apart from what is kept per client address, memory is constant while the log is in order of time. From the first
  line that is earlier than the one before it, all requests are held in memory (16 bytes each) and sorted: a file
  is read once more for that; other input is copied to a temporary file as it comes (12 bytes a request, in
  $TMPDIR).

Exit status:
  0, or 2 when the arguments are wrong, the log cannot be read, or there is no request in it."#;

#[derive(Debug, clap::Args)]
pub(crate) struct ReplayArgs {
    /// How many requests of one client are allowed in how long: 20/60s, 5/min, 1000/h
    #[arg(long)]
    pub(crate) rule: Quota,

    /// How the limiter counts
    #[arg(long, value_name = "NAME", default_value = "counter")]
    pub(crate) algorithm: AlgorithmName,

    /// Cells that the window is divided into, for counter, classic and even [default: 5]
    #[arg(long, value_name = "N")]
    cells: Option<u64>,

    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,

    /// The access log; standard input when it is "-" or not given
    file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AlgorithmName {
    /// The exact sliding log: never more than the limit in any window, never fewer when asked for
    Log,
    /// Cells, one more than the window has: never more than the limit in any window
    Counter,
    /// Cells, as many as the window has: up to twice the limit
    Classic,
    /// As classic, and each cell has its own share of the limit
    Even,
    /// The token bucket, with the limit as its burst: up to twice the limit
    Gcra,
    /// The fixed window: up to twice the limit
    Fixed,
}

impl AlgorithmName {
    fn has_cells(self) -> bool {
        match self {
            Self::Counter | Self::Classic | Self::Even => true,
            Self::Log | Self::Gcra | Self::Fixed => false,
        }
    }
}

/// The name on the command line.
impl core::fmt::Display for AlgorithmName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Log => "log",
            Self::Counter => "counter",
            Self::Classic => "classic",
            Self::Even => "even",
            Self::Gcra => "gcra",
            Self::Fixed => "fixed",
        })
    }
}

impl ReplayArgs {
    /// Cells per window.
    ///
    /// # Errors
    ///
    /// When a number was given for an algorithm that has no choice of it.
    pub(crate) fn cells(&self) -> Result<u64, Failure> {
        match self.cells {
            Some(given) if !self.algorithm.has_cells() => Err(Failure::NoCells {
                given,
                algorithm: self.algorithm.to_string(),
            }),
            cells => Ok(cells.unwrap_or(CounterRing::DEFAULT_CELLS)),
        }
    }

    /// The log's path; `None` is standard input.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref().filter(|path| *path != Path::new("-"))
    }

    /// The algorithm, and its cells where they can be chosen.
    pub(crate) fn algorithm_text(&self) -> String {
        match self.cells() {
            Ok(cells) if self.algorithm.has_cells() => format!("{}, {cells} cells", self.algorithm),
            _ => self.algorithm.to_string(),
        }
    }
}
