//! Runs of the tool.

use std::process::{Command, Output, Stdio};

/// `ringgate redis` with these arguments, separated by spaces.
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

/// Runs the tool with a text as standard input.
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

/// The report and the exit status of a check.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) status: Option<i32>,
    pub(crate) all: serde_json::Value,
}

impl Report {
    /// Runs a check with these arguments.
    pub(crate) fn to(args: &str) -> Self {
        Self::by(&run(&format!("check --json --timeout 20000 {args}")))
    }

    /// The report in an output without errors.
    pub(crate) fn by(output: &Output) -> Self {
        assert_eq!(stderr(output), "", "{}", stdout(output));
        let report = Self {
            status: output.status.code(),
            all: serde_json::from_slice(&output.stdout).expect("an object"),
        };
        let problem = report
            .findings()
            .iter()
            .any(|finding| finding["level"] == "problem");
        assert_eq!(report.status, Some(i32::from(problem)), "{report:?}");
        for finding in report.findings() {
            // Each finding has a meaning, and one that is not `ok` has advice.
            let is_text = |field: &str| finding[field].as_str().is_some_and(|text| text.len() > 10);
            assert!(is_text("means"), "{finding}");
            assert!(finding["level"] == "ok" || is_text("do"), "{finding}");
        }
        report
    }

    pub(crate) fn findings(&self) -> &[serde_json::Value] {
        self.all["findings"].as_array().expect("findings")
    }

    /// The finding of a check; `None` if there is none.
    pub(crate) fn of(&self, check: &str) -> Option<&serde_json::Value> {
        let mut of = self.findings().iter().filter(|finding| finding["check"] == check);
        let finding = of.next();
        assert!(of.next().is_none(), "twice: {check}, {self:?}");
        finding
    }

    /// The level and the text of a finding.
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
