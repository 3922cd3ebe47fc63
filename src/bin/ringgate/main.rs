//! The command-line tool: what would a limiter have done to this access log, and is this server fit to keep limits?

extern crate alloc;

// Floors, from the ground up: a module names only modules above it in this list.
mod failure;
mod doctor;
mod args;
mod words;
mod stamp;
mod log_line;
mod lines;
mod requests;
mod spool;
mod decisions;
mod replay;
mod report;

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;
use ringgate::{Algorithm, CounterRing, Gcra, TimestampRing};

use args::{AlgorithmName, Args, Command, ReplayArgs};
use doctor::{DoctorArgs, RedisCommand};
use failure::Failure;
use report::Report;

/// The exit status of wrong arguments, of an input that cannot be read, and of a log without a
/// request; clap's too.
const FAILED: u8 = 2;

fn main() -> ExitCode {
    let command = match Args::try_parse() {
        Ok(args) => args.command,
        Err(usage) => return say(&usage),
    };
    let outcome = match command {
        Command::Replay(args) => replay(&args).map(|()| ExitCode::SUCCESS),
        Command::Redis(RedisCommand::Doctor(args)) => doctor(&args),
    };
    outcome.unwrap_or_else(|failure| {
        complain(&format!("error: {failure}"));
        ExitCode::from(FAILED)
    })
}

/// Says how to use it, or what was wrong with how it was used: without the passwords of addresses.
fn say(usage: &clap::Error) -> ExitCode {
    let text = doctor::without_secrets(&usage.to_string());
    if !usage.use_stderr() {
        return print(&text).map_or(ExitCode::from(FAILED), |()| ExitCode::SUCCESS);
    }
    complain(text.trim_end());
    ExitCode::from(FAILED)
}

/// Says what is to be said of a server: with 1 when there is a problem.
fn doctor(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    let examined = doctor::doctor(args)?;
    print(&examined.text)?;
    Ok(ExitCode::from(u8::from(examined.problem)))
}

/// Builds the limiter before the log is opened, so that a bad rule is an error at once.
fn replay(args: &ReplayArgs) -> Result<(), Failure> {
    let cells = args.cells()?;
    let ring = || CounterRing::builder(args.rule).cells(cells);
    match args.algorithm {
        AlgorithmName::Counter => run(args, &ring().strict().build()?),
        AlgorithmName::Classic => run(args, &ring().classic().build()?),
        AlgorithmName::Even => run(args, &ring().even().build()?),
        AlgorithmName::Log => run(args, &TimestampRing::new(args.rule)?),
        AlgorithmName::Gcra => run(args, &Gcra::new(args.rule)?),
        AlgorithmName::Fixed => run(args, &CounterRing::fixed_window(args.rule)?),
    }
}

fn run<A: Algorithm>(args: &ReplayArgs, policy: &A) -> Result<(), Failure> {
    let outcome = replay::replay(policy, args.file())?;
    for example in &outcome.malformed.examples {
        complain(example);
    }
    let report = Report::new(&outcome);
    if args.json {
        if let Some(note) = report.note() {
            complain(&format!("note: {note}"));
        }
        print(&report.json()?)
    } else {
        print(&report.text(args, policy))
    }
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
