//! The command line.

use core::fmt;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use ringgate::rules::RuleAlgorithm;

use crate::input::choice::FormatArg;
use crate::input::time::timestamp::TimestampFormat;
use crate::redis_check::RedisCommand;

/// Replay logs against rate limits, and check Redis servers
#[derive(Parser)]
#[command(version)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Apply rules to the requests of a log
    ///
    /// Evaluates the requests in order of time with the library's own rule set. Requests of the same time keep the order of
    /// their lines.
    #[command(after_long_help = REPLAY_NOTES)]
    Replay(ReplayArgs),
    /// Find the limits that deny a given share of a log
    ///
    /// For each share, finds the lowest limit at which, and above which, no larger share is denied. The limits are found by
    /// exact replays.
    #[command(after_long_help = INPUT_NOTES)]
    Suggest(SuggestArgs),
    /// Validate a rules file and say what it means
    Check(RulesArgs),
    /// Print a completion script for a shell
    Completions {
        /// Shell
        shell: Shell,
    },
    /// Print the manual page
    Man,
    /// Commands about a Redis or Valkey server
    #[command(subcommand)]
    Redis(RedisCommand),
}

macro_rules! input_notes {
    () => {
        r#"Input:
  One request a line. The format is that of most of the first 1,000 lines of each file, or given with --format:

    common, combined  address ident user [17/May/2015:10:05:03 +0000] "request" status size "referer" "user-agent"
                      Fields: client, ident, user, request, method, target, path, protocol, status, size, referer,
                      agent (or nginx's names for them), and vhost if each line begins with a virtual host. A client
                      is an address or a host name; its port is left out. A line may be in quotation marks, and the
                      client may be there again in brackets.
    json, logfmt      {"time": "2015-05-17T10:05:03Z", "client": "1.2.3.4", "user": {"id": 7}}
                      time=2015-05-17T10:05:03Z client=1.2.3.4 user=7
                      Fields: those of the line. user.id is a field of a field. A null field is missing. client, method,
                      path, status and so on also stand for the names that nginx, Caddy, Traefik and others use, as
                      they are in lines about requests. Lines of other loggers are no requests.
    csv               The first line names the columns. Commas, tabs, semicolons or bars separate values, which may be
                      quoted. A record is one line.
    w3c               IIS, CloudFront: #Fields: date time c-ip cs-method ..
    alb, elb, nlb, s3, envoy, istio, haproxy, proxy-manager
                      Access logs in the documented order of fields. Fields: those of common, or the documented names.
    syslog, rfc5424, journald
                      Fields: host, program, pid, message, and those of a message in one of the other formats.
    docker, cri, timed
                      Lines of containers. Fields: stream, and those of the message.
    --log-format '$remote_addr [$time_local] "$request" $status'
                      As in nginx's directive. Fields: the variables, and those of common that they have.
    --pattern 'Failed password for .* from (?<address>\S+)'
                      Lines that a regular expression matches; others are no requests. Fields: the named groups. The
                      time is that of a group "time", or of the line around the message.

  A message's own time counts, unless the line around it has a year and the message has none.

  Files may be compressed by gzip or zstd. If a compressed file was cut, the result so far is printed. Holes of zeros, as
  copytruncate leaves them, are skipped. A line whose time or whose fields in rules cannot be read, or that exceeds 64 KiB,
  is unreadable: it is counted and skipped. The first three are shown on standard error. Other fields may be invalid or cut.
  With more of them than requests, the input is an error unless --lenient is given. Blank lines are skipped. Requests
  without the field of a key share one key.

Time:
  17/May/2015:10:05:03 +0000, RFC 3339, seconds, milliseconds, microseconds or nanoseconds since 1970 (by the size of the
  number, also as 1.4318571e+09), or May 17 10:05:03. A time without a zone has that of --utc-offset. A missing year is the one nearest to the line
  before. For the first line it is --year, or else the last year in which the time is not in the future. From 1678 to
  2261. A leap second counts as second 59."#
    };
}

const INPUT_NOTES: &str = concat!(
    input_notes!(),
    r#"

Exit status:
  0; 1 if a compressed input was cut; 2 if an argument is invalid, or the input cannot be read or has no request."#
);

const REPLAY_NOTES: &str = concat!(
    input_notes!(),
    r#"

Rules:
  --rule QUOTA [by FIELD,..|by all] [cost FIELD] [when CONDITION] [algorithm NAME] [cells N] [burst N] [as NAME]
  QUOTA is 20/60s or "5 per min". With a cost in bytes, it may have a unit: 50MiB/s, 10GB/min, 2.5Gbit/s.
  A condition is "field" (present, and not "", "-", "0", "false" or "no"), "field=value", "field!=value" or
  "field=prefix*". Every spelling of a whole address of IPv6 is equal. Several rules are one decision: a request that one
  rule denies is charged to none. In a rules file, keys, costs, conditions and tiers name fields in the same way. --alias
  maps other names to fields.

  A client counts as in the library: by the /64 network of an address of IPv6, and by the address of IPv4 in one, or by
  the prefix of a rule of a file. The lists of a key of one field have addresses, networks and other texts. A rule of a
  file with in_flight is left out with a note, because a log does not show when a request ends.

  The default algorithm, sliding-window, chooses as a rule set of the library does: one word for a rule with a key; 60 cells for a
  rule without one, with a cost, or with several quotas of one key. "ringgate check" names what was chosen.

  Cells and fixed windows begin at multiples of the window since 1970-01-01T00:00:00Z (of all windows, if they have a
  common multiple of at most 400 days, or else of the longest). A log may span 15 years, less two windows. Times are
  rounded so that no more is admitted: cells to whole nanoseconds, gcra to half a nanosecond a permit, log to a unit
  that grows with the limit (0.5 ms at a million).

  Rules of the command line have room for all keys, up to 1 GiB. Rules of a file have the capacity that it says, and
  requests without room are reported. The comparison and "what if" replay each rule by itself, with its quota, key,
  cost and condition, without tiers, lists and shadow, and with room for all keys.

Memory:
  The tables of keys grow to at most 1 GiB. Requests are in temporary files in $TMPDIR (8 bytes for the time and for
  each field of a rule, several times), and sorted there. For the key with the most requests in one window, 16 bytes for
  each distinct time of that window are in memory.

Exit status:
  0; 1 if a compressed input was cut; 2 if an argument is invalid, or the input cannot be read or has no request."#
);

#[derive(Debug, clap::Args)]
pub(crate) struct FileArgs {
    /// Rules file in TOML, JSON or YAML
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RulesArgs {
    #[command(flatten)]
    pub(crate) file: FileArgs,

    /// Check also that a store can serve the rules
    ///
    /// Limits over many machines (SharedRules) keep their counts in a store, such as a Redis server. Everything in the file that
    /// no store serves is reported at once. The exit status is 2 then.
    #[arg(long)]
    pub(crate) shared: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct InputArgs {
    /// Log files; standard input if none or "-"
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Format of the lines
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub(crate) format: FormatArg,

    /// Value of nginx's log_format, as in '$remote_addr [..]'
    #[arg(long, value_name = "STRING", conflicts_with = "pattern")]
    pub(crate) log_format: Option<String>,

    /// Regular expression whose named groups are fields
    #[arg(long, value_name = "REGEX")]
    pub(crate) pattern: Option<String>,

    /// Field of the time [default: time, ts, ..]
    #[arg(long, value_name = "FIELD")]
    pub(crate) time_field: Option<String>,

    /// Format of that field
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub(crate) time_format: TimestampFormat,

    /// Year of the first timestamp without a year
    #[arg(long, value_name = "YEAR", value_parser = clap::value_parser!(i16).range(1678..=2261))]
    pub(crate) year: Option<i16>,

    /// UTC offset of timestamps without a time zone
    #[arg(long, value_name = "OFFSET", default_value = "Z", allow_hyphen_values = true)]
    pub(crate) utc_offset: String,

    /// Leave out requests before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,

    /// Leave out requests from this time on
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<String>,

    /// Accept inputs with more unreadable lines than requests
    #[arg(long)]
    pub(crate) lenient: bool,

    /// Name in rules for a field, as in user=client (repeatable)
    #[arg(long, value_name = "NAME=FIELD")]
    pub(crate) alias: Vec<String>,

    /// No progress on standard error
    #[arg(long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CountArgs {
    /// Fields with a limit for each value; "all" for one limit
    #[arg(long, value_name = "FIELDS", default_value = "client")]
    pub(crate) key: String,

    /// Field with the permits of a request [default: one permit]
    #[arg(long, value_name = "FIELD")]
    pub(crate) cost: Option<String>,

    /// Algorithm
    #[arg(long, value_name = "NAME", default_value = "sliding-window")]
    pub(crate) algorithm: AlgorithmName,

    /// Cells [default: counter 60, classic and even 5]
    #[arg(long, value_name = "N")]
    pub(crate) cells: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReplayArgs {
    /// Rule, as in 20/60s or "5/min by user" (repeatable)
    #[arg(long, value_name = "RULE", required_unless_present = "rules")]
    pub(crate) rule: Vec<String>,

    /// Rules file in TOML, JSON or YAML
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rule", "key", "cost", "algorithm", "cells"])]
    pub(crate) rules: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) count: CountArgs,

    /// Compare all algorithms
    #[arg(long)]
    pub(crate) compare: bool,

    /// Print one JSON object
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
    /// Window to evaluate (repeatable)
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) window: Vec<String>,

    /// Largest share to deny (repeatable) [default: 0%, 0.1%, ..]
    #[arg(long, value_name = "SHARE")]
    pub(crate) deny: Vec<String>,

    /// Condition of the counted requests, as in method=POST
    #[arg(long, value_name = "CONDITION")]
    pub(crate) when: Option<String>,

    #[command(flatten)]
    pub(crate) count: CountArgs,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) input: InputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AlgorithmName {
    /// Sliding log: exact, 8 bytes a permit
    Log,
    /// Sliding window of one word, or of cells: at most the limit
    SlidingWindow,
    /// Sliding window counter: at most the limit in any window
    Counter,
    /// Sliding window counter: at most twice the limit
    Classic,
    /// As classic, with a share of the limit for each cell
    Even,
    /// Token bucket, the limit as burst: at most twice the limit
    Gcra,
    /// Fixed window: at most twice the limit
    Fixed,
}

impl AlgorithmName {
    /// All algorithms, in the order of the comparison: as many as the library has.
    pub(crate) const ALL: [Self; RuleAlgorithm::NAMES.len()] = [
        Self::Log,
        Self::SlidingWindow,
        Self::Counter,
        Self::Classic,
        Self::Even,
        Self::Gcra,
        Self::Fixed,
    ];

    pub(crate) const fn has_cells(self) -> bool {
        match self {
            Self::SlidingWindow | Self::Counter | Self::Classic | Self::Even => true,
            Self::Log | Self::Gcra | Self::Fixed => false,
        }
    }

    pub(crate) const fn of_rule(self) -> RuleAlgorithm {
        match self {
            Self::Log => RuleAlgorithm::Log,
            Self::SlidingWindow => RuleAlgorithm::SlidingWindow,
            Self::Counter => RuleAlgorithm::Counter,
            Self::Classic => RuleAlgorithm::Classic,
            Self::Even => RuleAlgorithm::Even,
            Self::Gcra => RuleAlgorithm::Gcra,
            Self::Fixed => RuleAlgorithm::Fixed,
        }
    }

    /// The name of a rule's algorithm. `None` for an algorithm that this tool does not simulate.
    pub(crate) fn of(algorithm: RuleAlgorithm) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.of_rule() == algorithm)
    }
}

/// The name on the command line.
impl fmt::Display for AlgorithmName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Log => "log",
            Self::SlidingWindow => "sliding-window",
            Self::Counter => "counter",
            Self::Classic => "classic",
            Self::Even => "even",
            Self::Gcra => "gcra",
            Self::Fixed => "fixed",
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Args;

    /// The help lines of a command, of its options and their values, and of its subcommands.
    fn phrases(command: &clap::Command) -> Vec<String> {
        let mut lines: Vec<String> = command.get_about().map(ToString::to_string).into_iter().collect();
        for argument in command.get_arguments() {
            lines.extend(argument.get_help().map(ToString::to_string));
            let values = argument.get_possible_values();
            lines.extend(
                values
                    .iter()
                    .filter_map(|value| Some(value.get_help()?.to_string())),
            );
        }
        lines.extend(command.get_subcommands().flat_map(phrases));
        lines
    }

    #[test]
    fn help_lines_are_short_phrases() {
        let all = phrases(&Args::command());
        assert!(all.len() > 60, "{}", all.len());
        for line in all {
            let is_short = line.chars().count() <= 60;
            let is_sentence = line.ends_with('.') && !line.ends_with("..");
            assert!(is_short && !is_sentence, "{line}");
            assert!(!line.starts_with(char::is_lowercase), "{line}");
        }
    }
}
