//! Runs of the tool.

use core::fmt::Debug;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

use serde_json::Value;
use tempfile::NamedTempFile;

/// The tool with the arguments in `args`, separated by spaces, and a file after them.
pub(crate) fn tool(args: &str, file: Option<&Path>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringgate"));
    command.arg("replay").args(args.split_whitespace()).args(file);
    command.stdin(Stdio::null());
    command
}

/// Runs the tool with all its arguments.
pub(crate) fn run<A: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = A>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringgate"));
    command.args(args).stdin(Stdio::null()).output().unwrap()
}

/// Writes a temporary file.
pub(crate) fn file(content: impl AsRef<[u8]>) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(content.as_ref()).unwrap();
    file
}

/// Writes a temporary rules file.
pub(crate) fn rules(content: &str) -> NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    file.write_all(content.as_bytes()).unwrap();
    file
}

/// The report of a replay of a file with this content by a rules file.
pub(crate) fn by_rules(content: &str, args: &str, log: impl AsRef<[u8]>) -> Value {
    let rules = rules(content);
    json(&on_file(
        &format!("--json --quiet {args} --rules {}", rules.path().display()),
        log,
    ))
}

/// Runs a replay of a file with this content.
pub(crate) fn on_file(args: &str, content: impl AsRef<[u8]>) -> Output {
    tool(args, Some(file(content).path())).output().unwrap()
}

/// Runs a command with this content in a pipe.
pub(crate) fn on_pipe(command: &mut Command, content: impl AsRef<[u8]>) -> Output {
    let content = content.as_ref();
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    thread::scope(|scope| {
        // The write fails if the tool ends early. The test checks its output.
        scope.spawn(move || input.write_all(content).ok());
        child.wait_with_output().unwrap()
    })
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

pub(crate) fn json(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Asserts that fields of an object, whose names have spaces between them, have these values.
#[track_caller]
pub(crate) fn assert_fields<T: Into<Value>, const N: usize>(
    object: &Value,
    names: &str,
    values: [T; N],
    context: impl Debug,
) {
    let found: Vec<Value> = names.split(' ').map(|name| object[name].clone()).collect();
    assert_eq!(found, values.map(Into::into), "{context:?}: {names} of {object}");
}

/// Replays the input by a rule that admits ten requests of a client in a minute.
pub(crate) fn replay(args: &str, input: impl AsRef<[u8]>) -> Output {
    on_pipe(
        &mut tool(&format!("--json --quiet --rule 10/60s {args}"), None),
        input,
    )
}

/// Asserts that ten of twenty requests, all of one key, are denied.
pub(crate) fn assert_half_denied(args: &str, input: &str) -> Value {
    let object = json(&replay(args, input));
    assert_eq!(
        (
            &object["requests"],
            &object["denied"],
            &object["rules"][0]["keys"]
        ),
        (&20.into(), &10.into(), &1.into()),
        "{args}: {input}"
    );
    object
}

/// Asserts that the input is an error with this message.
pub(crate) fn assert_error(args: &str, input: &str, message: &str) {
    let output = replay(args, input);
    assert_eq!(output.status.code(), Some(2), "{input}");
    assert!(output.stdout.is_empty());
    assert!(
        stderr(&output).contains(message),
        "{message} is not in {}",
        stderr(&output)
    );
}

/// Returns a list of texts in an object.
pub(crate) fn texts<'v>(object: &'v Value, name: &str) -> Vec<&'v str> {
    let texts = object[name].as_array().expect("a list").iter();
    texts.map(|text| text.as_str().expect("a text")).collect()
}
