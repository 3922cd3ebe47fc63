//! The command-line tool: what would rules have done to this log, and is this server fit to keep limits?

extern crate alloc;

// Floors, from the ground up: a module names only modules above it in this list.
mod failure;
mod doctor;
mod calendar;
mod stamp;
mod years;
mod moment;
mod row;
mod lines;
mod log_line;
mod json_line;
mod csv_line;
mod syslog_line;
mod format;
mod zstd;
mod source;
mod args;
mod algorithm;
mod condition;
mod key;
mod layout;
mod rule_arg;
mod plan;
mod words;
mod sorter;
mod names;
mod progress;
mod intake;
mod span;
mod series;
mod window;
mod judge;
mod asked;
mod survey;
mod by_key;
mod alone;
mod chosen;
mod report;
mod replay;
mod table;
mod suggest;
mod page;

use std::collections::HashMap;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Parser;

use args::{Args, Command, InputArgs, ReplayArgs, SuggestArgs};
use doctor::{DoctorArgs, RedisCommand};
use failure::Failure;
use intake::Reading;
use moment::Moments;
use plan::Plan;
use progress::Progress;
use replay::Depth;
use source::Source;
use suggest::Share;
use years::Years;

/// The exit status of wrong arguments, of an input that cannot be read, and of one without a
/// request; clap's too.
const FAILED: u8 = 2;

fn main() -> ExitCode {
    let command = match Args::try_parse() {
        Ok(args) => args.command,
        Err(usage) => return say(&usage),
    };
    let outcome = match command {
        Command::Replay(args) => replay(&args).map(|()| ExitCode::SUCCESS),
        Command::Suggest(args) => suggest(&args).map(|()| ExitCode::SUCCESS),
        Command::Redis(RedisCommand::Doctor(args)) => doctor(&args),
    };
    outcome.unwrap_or_else(|failure| {
        complain(&format!("error: {failure}"));
        ExitCode::from(FAILED)
    })
}

/// Says how to use it, or what was wrong with how it was used: without the passwords of addresses.
fn say(usage: &clap::Error) -> ExitCode {
    let text = usage.to_string();
    if !usage.use_stderr() {
        // Help, which has none.
        return print(&text).map_or(ExitCode::from(FAILED), |()| ExitCode::SUCCESS);
    }
    complain(doctor::without_secrets(&text).trim_end());
    ExitCode::from(FAILED)
}

/// Says what is to be said of a server: with 1 when there is a problem.
fn doctor(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    let examined = doctor::doctor(args)?;
    print(&examined.text)?;
    Ok(ExitCode::from(u8::from(examined.problem)))
}

/// Builds the rules before the inputs are opened, so that a bad one is an error at once.
fn replay(args: &ReplayArgs) -> Result<(), Failure> {
    let aliases = aliases(&args.input)?;
    let plan = match &args.rules {
        Some(path) => Plan::of_file(path, aliases)?,
        None => Plan::of_args(&args.rule, &args.count, aliases)?,
    };
    let depth = Depth {
        charts: args.json || args.html.is_some(),
        compare: args.compare,
    };
    let (report, unreadable) = {
        let reading = reading(&args.input)?;
        let mut progress = Progress::new(reading.size(), args.input.quiet);
        let found = replay::replay(&plan, reading, depth, &mut progress)?;
        finish(progress, args.input.timings);
        found
    };
    for example in &unreadable {
        complain(example);
    }
    if let Some(path) = &args.html {
        let object = serde_json::to_string(&report).map_err(not_json)?;
        write(path, &page::render(&object)?)?;
    }
    if args.json {
        for note in &report.notes {
            complain(&format!("note: {note}"));
        }
        let object = serde_json::to_string(&report).map_err(not_json)?;
        print(&(object + "\n"))
    } else {
        print(&table::text(&report))
    }
}

fn suggest(args: &SuggestArgs) -> Result<(), Failure> {
    let rules = suggest::rules(&args.window, args.when.as_deref())?;
    let plan = Plan::of_args(&rules, &args.count, aliases(&args.input)?)?;
    let shares: Vec<Share> = match args.refuse.as_slice() {
        [] => Share::DEFAULT
            .into_iter()
            .map(Share::read)
            .collect::<Result<_, _>>(),
        given => given.iter().map(|share| Share::read(share)).collect(),
    }?;
    let (found, unreadable) = {
        let reading = reading(&args.input)?;
        let mut progress = Progress::new(reading.size(), args.input.quiet);
        let found = suggest::suggest(&plan, reading, &shares, &mut progress)?;
        finish(progress, args.input.timings);
        found
    };
    for example in &unreadable {
        complain(example);
    }
    if args.json {
        for note in &found.notes {
            complain(&format!("note: {note}"));
        }
        let object = serde_json::to_string(&found).map_err(not_json)?;
        print(&(object + "\n"))
    } else {
        print(&found.text())
    }
}

/// Takes the line of progress away, and says what took how long.
fn finish(mut progress: Progress, told: bool) {
    let timings = told.then(|| progress.timings());
    drop(progress);
    if let Some(timings) = timings {
        complain(&timings);
    }
}

/// How the inputs are to be read.
fn reading(args: &InputArgs) -> Result<Reading, Failure> {
    let zone = calendar::zone(args.utc_offset.as_bytes()).ok_or_else(|| {
        Failure::argument(
            "--utc-offset",
            format!("{:?}", args.utc_offset),
            "hours and minutes, as in +02:00",
        )
    })?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.ok().and_then(|now| i64::try_from(now.as_nanos()).ok());
    let mut sources: Vec<Source> = args.files.iter().map(|path| Source::of(path)).collect();
    if sources.is_empty() {
        sources.push(Source::Input);
    }
    Ok(Reading {
        sources,
        format: args.format,
        time_field: args.time_field.clone(),
        moments: Moments::new(
            args.time_format,
            Years::new(args.year, now.unwrap_or_default()),
            zone,
        ),
    })
}

fn aliases(args: &InputArgs) -> Result<HashMap<String, String>, Failure> {
    let pairs = args.alias.iter().map(|alias| match alias.split_once('=') {
        Some((name, meant)) if !name.is_empty() && !meant.is_empty() => Ok((name.into(), meant.into())),
        _ => Err(Failure::argument(
            "--alias",
            format!("{alias:?}"),
            "a name, \"=\", and what it means: user=client",
        )),
    });
    pairs.collect()
}

fn not_json(error: serde_json::Error) -> Failure {
    Failure::io("the result cannot be written as JSON", error.into())
}

fn write(path: &PathBuf, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure::io(format!("{} cannot be written", path.display()), error))
}

/// Writes to standard output. A reader who has seen enough and closed the pipe is no failure.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::io("standard output cannot be written", error))
        }
        _ => Ok(()),
    }
}

/// Writes a line to standard error. When that is closed, there is nobody left to be told.
fn complain(line: &str) {
    let _nobody_listens = writeln!(io::stderr().lock(), "{line}");
}
