//! Runs of the tool.

use std::process::{Command, Output, Stdio};

/// The tool with these arguments, separated by spaces, after `redis`.
pub(crate) fn tool(args: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringgate"));
    command.arg("redis").args(args.split_whitespace());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub(crate) fn run(args: &str) -> Output {
    tool(args).output().expect("the tool runs")
}

/// A run that reads a text.
pub(crate) fn run_with(args: &str, text: &str) -> Output {
    use std::io::Write;

    let mut child = tool(args).stdin(Stdio::piped()).spawn().expect("the tool runs");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(text.as_bytes()).expect("the tool reads");
    drop(input);
    child.wait_with_output().expect("the tool ends")
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// What the doctor has said, and the status that it ended with.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: Option<i32>,
    pub(crate) all: serde_json::Value,
}

impl Said {
    /// Of these arguments.
    pub(crate) fn to(args: &str) -> Self {
        Self::by(&run(&format!("check --json --timeout 20000 {args}")))
    }

    /// In this output, which shows no error.
    pub(crate) fn by(output: &Output) -> Self {
        assert_eq!(stderr(output), "", "{}", stdout(output));
        let said = Self {
            status: output.status.code(),
            all: serde_json::from_slice(&output.stdout).expect("an object"),
        };
        let problem = said
            .findings()
            .iter()
            .any(|finding| finding["level"] == "problem");
        assert_eq!(said.status, Some(i32::from(problem)), "{said:?}");
        for finding in said.findings() {
            // Whatever is not well comes with what it means and what to do.
            let is_text = |field: &str| finding[field].as_str().is_some_and(|text| text.len() > 10);
            assert!(is_text("means"), "{finding}");
            assert!(finding["level"] == "ok" || is_text("do"), "{finding}");
        }
        said
    }

    pub(crate) fn findings(&self) -> &[serde_json::Value] {
        self.all["findings"].as_array().expect("findings")
    }

    /// `None`: nothing is said of it.
    pub(crate) fn of(&self, check: &str) -> Option<&serde_json::Value> {
        let mut of = self.findings().iter().filter(|finding| finding["check"] == check);
        let finding = of.next();
        assert!(of.next().is_none(), "twice: {check}, {self:?}");
        finding
    }

    /// The level of a check, and what was found.
    pub(crate) fn found(&self, check: &str) -> (&str, &str) {
        let finding = self
            .of(check)
            .unwrap_or_else(|| panic!("nothing of {check}: {self:?}"));
        let text = |field: &str| finding[field].as_str().expect("a text");
        (text("level"), text("found"))
    }

    pub(crate) fn level(&self, check: &str) -> &str {
        self.found(check).0
    }

    pub(crate) fn advice(&self, check: &str) -> &str {
        self.of(check)
            .and_then(|finding| finding["do"].as_str())
            .expect("what to do")
    }
}
