//! The command line.

use core::fmt;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use ringgate::CounterRing;
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
    #[command(after_help = NOTES)]
    Replay(ReplayArgs),
    /// Find the limits that deny a given share of a log
    #[command(after_help = NOTES)]
    Suggest(SuggestArgs),
    /// Validate a rules file and say what it means
    Check(RulesArgs),
    /// Explain a topic: formats, rules and others
    Explain { topic: Topic },
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

/// A subject of `ringgate explain`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Topic {
    /// Formats of logs, their fields, and unreadable lines
    Formats,
    /// Timestamps
    Time,
    /// Rules, keys, costs and conditions
    Rules,
    /// Algorithms of rules, and the shares of suggested limits
    Algorithms,
    /// Memory and temporary files
    Memory,
    /// Addresses and load of a check of a Redis server
    Redis,
}

const NOTES: &str = r#"Exit status:
  0; 1 if a compressed input was cut; 2 if an argument is invalid, or the input
  cannot be read or has no request

More: "ringgate explain formats", time, rules, algorithms, memory
or redis"#;

#[derive(Debug, clap::Args)]
pub(crate) struct RulesArgs {
    /// Rules file in TOML, JSON or YAML
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Check also that a store can serve the rules
    #[arg(long)]
    pub(crate) shared: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct InputArgs {
    /// Log files; standard input if none or "-"
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Format of the lines
    #[arg(
        long,
        value_name = "NAME",
        default_value = "auto",
        hide_possible_values = true
    )]
    pub(crate) format: FormatArg,

    /// Value of nginx's log_format, as '$remote_addr ..'
    #[arg(long, value_name = "STRING", conflicts_with = "pattern")]
    pub(crate) log_format: Option<String>,

    /// Regular expression whose named groups are fields
    #[arg(long, value_name = "REGEX")]
    pub(crate) pattern: Option<String>,

    /// Field of the time [default: time, ts, ..]
    #[arg(long, value_name = "FIELD")]
    pub(crate) time_field: Option<String>,

    /// Format of that field
    #[arg(
        long,
        value_name = "NAME",
        default_value = "auto",
        hide_possible_values = true
    )]
    pub(crate) time_format: TimestampFormat,

    /// Year of the first timestamp without a year
    #[arg(long, value_name = "YEAR", value_parser = clap::value_parser!(i16).range(1678..=2261))]
    pub(crate) year: Option<i16>,

    /// UTC offset of times without a zone
    #[arg(long, value_name = "OFFSET", default_value = "Z", allow_hyphen_values = true)]
    pub(crate) utc_offset: String,

    /// Leave out requests before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,

    /// Leave out requests from this time on
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<String>,

    /// Accept more unreadable lines than requests
    #[arg(long)]
    pub(crate) lenient: bool,

    /// Other name of a field, as user=client (repeatable)
    #[arg(long, value_name = "NAME=FIELD")]
    pub(crate) alias: Vec<String>,

    /// No progress on standard error
    #[arg(long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CountArgs {
    /// Fields that have limits, or "all"
    #[arg(long, value_name = "FIELDS", default_value = "client")]
    pub(crate) key: String,

    /// Field of the permits [default: one a request]
    #[arg(long, value_name = "FIELD")]
    pub(crate) cost: Option<String>,

    /// Algorithm
    #[arg(
        long,
        value_name = "NAME",
        default_value = "sliding-window",
        hide_possible_values = true
    )]
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

    /// Largest denied share (repeatable) [default: 0%, ..]
    #[arg(long, value_name = "SHARE")]
    pub(crate) deny: Vec<String>,

    /// Condition of counted requests, as in method=POST
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

/// The cells of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cells {
    None,
    /// The algorithm chooses them by the limit, unless they are given.
    Chosen,
    /// So many, unless they are given.
    Default(u64),
}

/// Declares the algorithms that this tool simulates: all of the library, in the order of the comparison, each with its line of help, its
/// cells and whether each cell has a share of the limit.
macro_rules! algorithm_names {
    ($(#[$help:meta] $variant:ident($cells:expr, $has_shares:literal),)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
        pub(crate) enum AlgorithmName {
            $(#[$help] $variant,)+
        }

        impl AlgorithmName {
            /// All algorithms, in the order of the comparison: as many as the library has.
            pub(crate) const ALL: [Self; RuleAlgorithm::NAMES.len()] = [$(Self::$variant),+];

            pub(crate) const fn of_rule(self) -> RuleAlgorithm {
                match self {
                    $(Self::$variant => RuleAlgorithm::$variant,)+
                }
            }

            pub(crate) const fn cells(self) -> Cells {
                match self {
                    $(Self::$variant => $cells,)+
                }
            }

            /// Whether each cell has an equal share of the limit.
            pub(crate) const fn has_shares(self) -> bool {
                match self {
                    $(Self::$variant => $has_shares,)+
                }
            }
        }
    };
}

algorithm_names! {
    /// Sliding log: exact, 8 bytes a permit
    Log(Cells::None, false),
    /// Sliding window of one word, or of cells: at most the limit
    SlidingWindow(Cells::Chosen, false),
    /// Sliding window counter: at most the limit in any window
    Counter(Cells::Default(CounterRing::DEFAULT_CELLS), false),
    /// Sliding window counter: at most twice the limit
    Classic(Cells::Default(CounterRing::DEFAULT_CLASSIC_CELLS), false),
    /// As classic, with a share of the limit for each cell
    Even(Cells::Default(CounterRing::DEFAULT_CLASSIC_CELLS), true),
    /// Token bucket, the limit as burst: at most twice the limit
    Gcra(Cells::None, false),
    /// Fixed window: at most twice the limit
    Fixed(Cells::None, false),
}

impl AlgorithmName {
    /// The name of a rule's algorithm. `None` for an algorithm that this tool does not simulate.
    pub(crate) fn of(algorithm: RuleAlgorithm) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.of_rule() == algorithm)
    }
}

/// The name on the command line, which is that in a file of rules.
impl fmt::Display for AlgorithmName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = RuleAlgorithm::NAMES.iter();
        let own = names.find(|&&(_, algorithm)| algorithm == self.of_rule());
        own.map_or(Ok(()), |(name, _)| f.write_str(name))
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

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

    /// The arguments that lead to each command.
    fn commands(command: &clap::Command, names: &[String]) -> Vec<Vec<String>> {
        let below = command.get_subcommands().flat_map(|command| {
            let names = [names, &[command.get_name().to_owned()]].concat();
            commands(command, &names)
        });
        core::iter::once(names.to_vec()).chain(below).collect()
    }

    #[test]
    fn help_fits_a_screen() {
        let all = commands(&Args::command(), &["ringgate".to_owned()]);
        assert!(all.len() > 8, "{}", all.len());
        for names in all {
            for flag in ["-h", "--help"] {
                let arguments = [&names[..], &[flag.to_owned()]].concat();
                let text = match Args::try_parse_from(&arguments) {
                    Ok(_) => panic!("{arguments:?} is no help"),
                    Err(help) => help.to_string(),
                };
                assert!(text.contains("Usage:"), "{arguments:?}: {text}");
                assert!(text.lines().count() <= 40, "{arguments:?}: {text}");
                for line in text.lines() {
                    assert!(line.chars().count() <= 80, "{arguments:?}: {line}");
                }
            }
        }
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
