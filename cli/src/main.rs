//! The command-line tool: replays logs against rules, suggests limits, and checks Redis servers.

extern crate alloc;

mod args;
mod check;
mod failure;
mod input;
mod key_names;
mod progress;
mod redis_check;
mod replay;
mod report;
mod rules;
mod sorter;
mod suggest;
mod topics;

use std::collections::HashMap;
use std::fs;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{CommandFactory, Parser};
use serde::Serialize;

use args::{Args, Command, InputArgs, ReplayArgs, RulesArgs, SuggestArgs};
use failure::Failure;
use input::choice::{Choice, Own};
use input::source::Source;
use input::time::calendar;
use input::time::infer_year::YearInference;
use input::time::timestamp::TimestampParser;
use progress::Progress;
use redis_check::{CheckArgs, RedisCommand};
use replay::ReportParts;
use replay::requests::Inputs;
use report::{page, tables};
use rules::Plan;
use suggest::Share;

/// The exit status of a failure; clap uses the same for wrong arguments.
const FAILED: u8 = 2;

fn main() -> ExitCode {
    let command = match Args::try_parse() {
        Ok(args) => args.command,
        Err(error) => return usage(&error),
    };
    let outcome = match command {
        Command::Replay(args) => replay(&args),
        Command::Suggest(args) => suggest(&args),
        Command::Check(args) => check_rules(&args),
        Command::Explain { topic } => print(&topics::text(topic)).map(|()| ExitCode::SUCCESS),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "ringgate", &mut script);
            print(&String::from_utf8_lossy(&script)).map(|()| ExitCode::SUCCESS)
        }
        Command::Man => man(),
        Command::Redis(RedisCommand::Check(args)) => redis_check(&args),
    };
    outcome.unwrap_or_else(|failure| {
        print_error(&format!("error: {failure}"));
        ExitCode::from(FAILED)
    })
}

/// Prints help, or a usage error from which passwords are removed.
fn usage(error: &clap::Error) -> ExitCode {
    let text = error.to_string();
    if !error.use_stderr() {
        return print(&text).map_or(ExitCode::from(FAILED), |()| ExitCode::SUCCESS);
    }
    print_error(redis_check::without_secrets(&text).trim_end());
    ExitCode::from(FAILED)
}

/// Prints a rules file in words.
fn check_rules(args: &RulesArgs) -> Result<ExitCode, Failure> {
    let plan = Plan::of_file(&args.file, HashMap::new())?;
    print(&check::words(&plan, args.shared)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual page of the tool and of its commands.
fn man() -> Result<ExitCode, Failure> {
    let mut page = Vec::new();
    let mut tool =
        Args::command().mut_subcommand("explain", |explain| explain.after_long_help(topics::all()));
    tool.build();
    let commands: Vec<clap::Command> = tool.get_subcommands().cloned().collect();
    for command in core::iter::once(tool).chain(commands) {
        clap_mangen::Man::new(command)
            .render(&mut page)
            .map_err(|error| Failure::io("cannot write the manual page", &error))?;
    }
    print(&String::from_utf8_lossy(&page))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the findings about a server. The exit status is 1 if one is a problem.
fn redis_check(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let report = redis_check::check(args)?;
    match args.json {
        true => print_json(&report, &[], &[])?,
        false => print(&report.text())?,
    }
    Ok(ExitCode::from(u8::from(report.has_problem())))
}

fn replay(args: &ReplayArgs) -> Result<ExitCode, Failure> {
    // The rules come first, so that an error in them is reported before a long input is read.
    let aliases = aliases(&args.input)?;
    let plan = match &args.rules {
        Some(path) => Plan::of_file(path, aliases)?.replayable()?,
        None => Plan::of_args(&args.rule, &args.count, None, aliases)?,
    };
    let depth = ReportParts {
        charts: args.json || args.html.is_some(),
        compare: args.compare,
    };
    let inputs = inputs(&args.input)?;
    if let Some(path) = &args.html {
        reject_input(
            path,
            inputs
                .sources
                .iter()
                .cloned()
                .chain(args.rules.as_deref().map(Source::of)),
        )?;
    }
    let mut progress = Progress::new(inputs.size(), args.input.quiet);
    let (report, unreadable) = replay::replay(&plan, inputs, depth, &mut progress)?;
    drop(progress);
    let status = status(report.truncated);
    unreadable.iter().for_each(|example| print_error(example));
    if let Some(path) = &args.html {
        write(path, &page::render(&report, &to_json(&report)?)?)?;
    }
    match args.json {
        true => print_json(&report, &report.warnings, &report.notes)?,
        false => print(&tables::render(&report))?,
    }
    Ok(status)
}

/// The exit status of a result: 1 if the input was truncated.
fn status(truncated: bool) -> ExitCode {
    ExitCode::from(u8::from(truncated))
}

/// Refuses to write over a file that is read, or to standard output, which has the tables.
fn reject_input(output: &Path, sources: impl IntoIterator<Item = Source>) -> Result<(), Failure> {
    if Source::of(output) == Source::StandardInput {
        return Err(Failure::argument("--html", "-", "a file"));
    }
    for source in sources {
        if source.is_file(output) {
            return Err(Failure::argument(
                "--html",
                output.display(),
                format!("another file than the input {}", source.name()),
            ));
        }
    }
    Ok(())
}

fn suggest(args: &SuggestArgs) -> Result<ExitCode, Failure> {
    let rules = suggest::rules(&args.window)?;
    let plan = Plan::of_args(&rules, &args.count, args.when.as_deref(), aliases(&args.input)?)?;
    let shares: Vec<Share> = match args.deny.as_slice() {
        [] => Share::DEFAULT
            .into_iter()
            .map(Share::parse)
            .collect::<Result<_, _>>(),
        given => given.iter().map(|share| Share::parse(share)).collect(),
    }?;
    let inputs = inputs(&args.input)?;
    let mut progress = Progress::new(inputs.size(), args.input.quiet);
    let (suggestions, unreadable) = suggest::suggest(&plan, inputs, &shares, &mut progress)?;
    drop(progress);
    unreadable.iter().for_each(|example| print_error(example));
    match args.json {
        true => print_json(&suggestions, &suggestions.warnings, &suggestions.notes)?,
        false => print(&suggestions.text())?,
    }
    Ok(status(suggestions.truncated))
}

fn inputs(args: &InputArgs) -> Result<Inputs, Failure> {
    let offset = calendar::utc_offset(args.utc_offset.as_bytes()).ok_or_else(|| {
        Failure::argument(
            "--utc-offset",
            format!("{:?}", args.utc_offset),
            "-14:00 to +14:00, as in +02:00",
        )
    })?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.ok().and_then(|now| i64::try_from(now.as_nanos()).ok());
    let instant = |name: &str, text: &Option<String>| match text {
        None => Ok(None),
        Some(text) => calendar::instant(text, offset).map(Some).ok_or_else(|| {
            Failure::argument(
                name,
                format!("{text:?}"),
                "a date or a time, as in 2015-05-17 or 2015-05-17T10:05:03Z",
            )
        }),
    };
    let mut sources: Vec<Source> = args.files.iter().map(|path| Source::of(path)).collect();
    if sources.is_empty() {
        sources.push(Source::StandardInput);
    }
    for (number, source) in sources.iter().enumerate() {
        if sources[..number].iter().any(|other| other.is_same(source)) {
            return Err(Failure::argument(
                "inputs",
                format!("{} twice", source.name()),
                "each input once",
            ));
        }
    }
    if !args.quiet && sources.contains(&Source::StandardInput) && io::stdin().is_terminal() {
        print_error(
            "reading lines from the terminal; Ctrl-D ends the input (files are arguments: see --help)",
        );
    }
    let own = args.log_format.clone().map(Own::LogFormat);
    Ok(Inputs {
        sources,
        choice: Choice {
            format: args.format,
            own: own.or_else(|| args.pattern.clone().map(Own::Pattern)),
        },
        from: instant("--from", &args.from)?,
        to: instant("--to", &args.to)?,
        lenient: args.lenient,
        time_field: args.time_field.clone(),
        timestamps: TimestampParser::new(
            args.time_format,
            YearInference::new(args.year, now.unwrap_or_default()),
            offset,
        ),
    })
}

fn aliases(args: &InputArgs) -> Result<HashMap<String, String>, Failure> {
    let mut aliases = HashMap::new();
    for alias in &args.alias {
        let pair = alias
            .split_once('=')
            .map(|(name, field)| (name.trim(), field.trim()));
        let Some((name, field)) = pair.filter(|(name, field)| !name.is_empty() && !field.is_empty()) else {
            return Err(Failure::argument(
                "--alias",
                format!("{alias:?}"),
                "NAME=FIELD, as in user=client",
            ));
        };
        if aliases.insert(name.to_owned(), field.to_owned()).is_some() {
            return Err(Failure::argument(
                "--alias",
                format!("{name:?} twice"),
                "each name once",
            ));
        }
    }
    Ok(aliases)
}

fn to_json(report: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(report).map_err(|error| Failure::io("cannot write the report as JSON", &error))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure::io(format!("cannot write {}", path.display()), &error))
}

/// Writes to standard output. A closed pipe is no failure: the reader has read enough.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::io("cannot write to standard output", &error))
        }
        _ => Ok(()),
    }
}

/// Prints a report as JSON, and its warnings and notes to standard error.
fn print_json(report: &impl Serialize, warnings: &[String], notes: &[String]) -> Result<(), Failure> {
    for (name, lines) in [("warning", warnings), ("note", notes)] {
        lines
            .iter()
            .for_each(|line| print_error(&format!("{name}: {line}")));
    }
    print(&(to_json(report)? + "\n"))
}

/// Writes a line to standard error. An error of that is ignored: there is no other place to report it.
fn print_error(line: &str) {
    let _ignored = writeln!(io::stderr().lock(), "{line}");
}
