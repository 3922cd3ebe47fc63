//! The command line.

use core::fmt;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use ringgate::RuleAlgorithm;

use crate::doctor::RedisCommand;
use crate::format::InputFormat;
use crate::moment::TimeFormat;

/// Rate limiting that never admits more than it promises, on the command line.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Tells what rules would have done to the requests of a log.
    ///
    /// The requests are judged in order of time by the library's own rule set; requests of the same time keep the order
    /// of their lines.
    #[command(after_long_help = REPLAY_NOTES)]
    Replay(ReplayArgs),
    /// Tells at which limits a given share of requests, or of keys, would have been refused.
    ///
    /// For each share the lowest limit at which, and above which, no more than that is refused, found by exact replays.
    #[command(after_long_help = INPUT_NOTES)]
    Suggest(SuggestArgs),
    /// Looks after a Redis or Valkey server that keeps limits for many machines.
    #[command(subcommand)]
    Redis(RedisCommand),
}

macro_rules! input_notes {
    () => {
        r#"The input:
  One request a line. The format is told by the first lines of each file, or given with --format:

    common, combined  address ident user [17/May/2015:10:05:03 +0000] "request" status size "referer" "user-agent"
                      Fields: client, ident, user, request, method, target, path, protocol, status, size, referer,
                      agent (or nginx's names for them). The address is printable ASCII; within quotes \" is no end.
    json              {"time": "2015-05-17T10:05:03Z", "client": "1.2.3.4", "user": {"id": 7}}
                      Fields: those of the object; user.id is a field of a field. null is the same as missing.
    csv               The first line names the columns; they are separated by commas, tabs, semicolons or bars, and
                      values may be quoted. A record is one line.
    syslog            <13>May 17 10:05:03 host program[pid]: message
                      Fields: host, program, pid, message, and those of common where the message is such a line.

  Files may be compressed by gzip or zstd. What is no request, and any line of more than 64 KiB, is unreadable: it is
  counted and passed over, and the first three are shown on standard error. Blank lines are passed over. A request
  without a key's field counts with all others without it.

Time:
  17/May/2015:10:05:03 +0000, RFC 3339 (without a zone: --utc-offset), seconds, milliseconds, microseconds or
  nanoseconds since 1970 (by the size of the number), or May 17 10:05:03, whose year is the one nearest to the line
  before, and first of all --year, or the last one in which it is not in the future. Between 1678 and 2261.
  A leap second counts as second 59."#
    };
}

const INPUT_NOTES: &str = concat!(
    input_notes!(),
    r#"

Exit status:
  0, or 2 when the arguments are wrong, the input cannot be read, or there is no request in it."#
);

const REPLAY_NOTES: &str = concat!(
    input_notes!(),
    r#"

Rules:
  --rule QUOTA [by FIELD,..|by all] [cost FIELD] [when CONDITION] [algorithm NAME] [cells N] [burst N] [as NAME]
  A condition is "field" (it is there, and not "", "-", "0", "false" or "no"), "field=value", "field!=value" or
  "field=prefix*". Several rules are judged as one: a request that one refuses is charged to none. In a file, keys,
  costs, conditions and tiers are names of fields in the same way; --alias says what other names mean.

  Cells and fixed windows begin at whole multiples of the window since 1970-01-01T00:00:00Z (of all windows, where
  they have a common multiple of at most 400 days; else of the longest). A log may span 20 years, less two windows.
  Where a window is no whole number of nanoseconds a cell, a cell is the next one long, and so begins later by up to a
  nanosecond for each cell since the first window; the time per permit of gcra is rounded up to half a nanosecond, and
  the times of log down to a unit that grows with the limit (0.5 ms at a million). All of it admits no more.

  Rules of the command line have room for all keys, up to 1 GiB; those of a file have the room that it says, and
  requests that found none are told. What is compared and "what if" replays each rule by itself: the quota, key, cost
  and condition, without its tiers, lists and shadow, and with room for all keys.

Memory:
  Grows with the room that rules have for keys, and not with the input: requests are kept in temporary files (in
  $TMPDIR, 8 bytes for the time and for each field of a rule, a few times over), and sorted there by time and by key
  where they are not in order. For the key with the most requests in one window those of that window are held, 16
  bytes for each different time.

Exit status:
  0, or 2 when the arguments are wrong, the input cannot be read, or there is no request in it."#
);

#[derive(Debug, clap::Args)]
pub(crate) struct InputArgs {
    /// The logs; standard input when none is given, or "-"
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// How lines are written
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub(crate) format: InputFormat,

    /// The field that says the time, in JSON and CSV [default: time, timestamp, @timestamp, ts ..]
    #[arg(long, value_name = "FIELD")]
    pub(crate) time_field: Option<String>,

    /// How that is written
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub(crate) time_format: TimeFormat,

    /// The year of the first time that does not say its own
    #[arg(long, value_name = "YEAR", value_parser = clap::value_parser!(i16).range(1678..=2261))]
    pub(crate) year: Option<i16>,

    /// How far east of Greenwich times are that do not say: +02:00
    #[arg(long, value_name = "OFFSET", default_value = "Z", allow_hyphen_values = true)]
    pub(crate) utc_offset: String,

    /// What a name in rules means: user=client, "is upload=method=PUT"
    #[arg(long, value_name = "NAME=FIELD")]
    pub(crate) alias: Vec<String>,

    /// No progress on standard error
    #[arg(long)]
    pub(crate) quiet: bool,

    /// Say on standard error what took how long, and how much memory
    #[arg(long)]
    pub(crate) timings: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CountArgs {
    /// The fields whose values have a limit each, with commas between them; "all": all requests have one together
    #[arg(long, value_name = "FIELDS", default_value = "client")]
    pub(crate) key: String,

    /// The field that says how many permits a request costs [default: one permit]
    #[arg(long, value_name = "FIELD")]
    pub(crate) cost: Option<String>,

    /// How to count
    #[arg(long, value_name = "NAME", default_value = "counter")]
    pub(crate) algorithm: AlgorithmName,

    /// Cells that the window is divided into, for counter, classic and even [default: 5]
    #[arg(long, value_name = "N")]
    pub(crate) cells: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReplayArgs {
    /// What is allowed: 20/60s, "5/min by user", "1000000/h by user cost size"
    #[arg(long, value_name = "RULE", required_unless_present = "rules")]
    pub(crate) rule: Vec<String>,

    /// A file of rules in TOML, JSON or YAML, as the library reads it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rule", "key", "cost", "algorithm", "cells"])]
    pub(crate) rules: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) count: CountArgs,

    /// Every algorithm beside the rule's own
    #[arg(long)]
    pub(crate) compare: bool,

    /// Print one JSON object instead of tables
    #[arg(long)]
    pub(crate) json: bool,

    /// Write a page with charts, which needs no network
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) input: InputArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SuggestArgs {
    /// In how long; several for several answers
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) window: Vec<String>,

    /// The share that may be refused; several for several answers [default: 0%, 0.1%, 1% and 5%]
    #[arg(long, value_name = "SHARE")]
    pub(crate) refuse: Vec<String>,

    /// The condition of the requests that are counted: "field", "field=value", "field!=value" or "field=prefix*"
    #[arg(long, value_name = "CONDITION")]
    pub(crate) when: Option<String>,

    #[command(flatten)]
    pub(crate) count: CountArgs,

    /// Print one JSON object instead of tables
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) input: InputArgs,
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
    /// All of them, in the order in which they are compared.
    pub(crate) const ALL: [Self; 6] = [
        Self::Log,
        Self::Counter,
        Self::Classic,
        Self::Even,
        Self::Gcra,
        Self::Fixed,
    ];

    pub(crate) const fn has_cells(self) -> bool {
        match self {
            Self::Counter | Self::Classic | Self::Even => true,
            Self::Log | Self::Gcra | Self::Fixed => false,
        }
    }

    pub(crate) const fn of_rule(self) -> RuleAlgorithm {
        match self {
            Self::Log => RuleAlgorithm::Log,
            Self::Counter => RuleAlgorithm::Counter,
            Self::Classic => RuleAlgorithm::Classic,
            Self::Even => RuleAlgorithm::Even,
            Self::Gcra => RuleAlgorithm::Gcra,
            Self::Fixed => RuleAlgorithm::Fixed,
        }
    }

    /// The name of what a rule counts by; those that this tool does not know are counters.
    pub(crate) fn of(algorithm: RuleAlgorithm) -> Self {
        let all = Self::ALL.into_iter();
        all.clone()
            .find(|name| name.of_rule() == algorithm)
            .unwrap_or(Self::Counter)
    }
}

/// The name on the command line.
impl fmt::Display for AlgorithmName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
