//! Runs of the tool.

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

pub(crate) fn file(content: impl AsRef<[u8]>) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(content.as_ref()).unwrap();
    file
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
        // A tool that ends early closes the pipe. The test judges its output.
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
