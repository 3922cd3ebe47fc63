//! Lines of all formats with their fields, and changes by which they are no lines of the format: the table of `lines.txt`.

use std::process::Output;

use serde_json::Value;

use crate::tool::{json, on_pipe, stderr, tool};

/// A line of the table.
enum Step<'t> {
    /// `> ARGUMENTS` of the lines below, with " ; " between them.
    Args(&'t str),
    /// `+ LINE` before those below.
    Header(&'t str),
    /// `- LINE` with the fields below.
    Line(&'t str),
    /// `@ TIME` of the line in milliseconds.
    Time(&'t str),
    /// `~ FROM => TO` makes another line of the line.
    Change(&'t str),
    /// `? FIELDS` that the format lacks.
    Lacks(&'t str),
    /// `! TEXT` of the error about the line.
    Error(&'t str),
    /// `FIELD=VALUE`, or `FIELD` without a value.
    Field(&'t str),
}

impl<'t> Step<'t> {
    fn of(line: &'t str) -> Self {
        match line.split_at_checked(2) {
            Some(("> ", rest)) => Self::Args(rest),
            Some(("+ ", rest)) => Self::Header(rest),
            Some(("- ", rest)) => Self::Line(rest),
            Some(("@ ", rest)) => Self::Time(rest),
            Some(("~ ", rest)) => Self::Change(rest),
            Some(("? ", rest)) => Self::Lacks(rest),
            Some(("! ", rest)) => Self::Error(rest),
            _ => Self::Field(line),
        }
    }
}

/// The lines before a line, the line, and the arguments.
#[derive(Default)]
struct Case<'t> {
    args: &'t str,
    header: String,
    line: String,
    time: Option<i64>,
    fields: Vec<(&'t str, &'t str)>,
}

impl Case<'_> {
    /// A replay of a line.
    fn replay(&self, args: &[String], line: &str) -> Output {
        let own = self.args.split(" ; ").filter(|arg| !arg.is_empty());
        let mut command = tool("--json --quiet", None);
        on_pipe(command.args(own).args(args), format!("{}{line}\n", self.header))
    }

    /// The error of a replay of a line by a key.
    fn error(&self, key: &str, line: &str) -> String {
        let output = self.replay(&[format!("--rule=9/s by \"{key}\"")], line);
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {error}");
        error
    }

    /// Asserts that the line has its time and its fields, by a rule for each field.
    fn check(&mut self) {
        if self.fields.is_empty() {
            assert_eq!(self.time, None, "a time without fields: {}", self.line);
            return;
        }
        let names = self.fields.iter().map(|(name, _)| name);
        let rules: Vec<String> = names
            .map(|name| format!("--rule=9/s by \"{name}\" as \"{name}\""))
            .collect();
        let report = json(&self.replay(&rules, &self.line));
        let keys: Vec<&Value> = report["keys"].as_array().unwrap().iter().collect();
        for (name, value) in self.fields.drain(..) {
            let key = keys.iter().find(|key| key["rule"] == *name).expect(name);
            assert_eq!(key["key"], *value, "{name} of {}", self.line);
        }
        assert_eq!(report["requests"], 1, "{}", self.line);
        if let Some(time) = self.time.take() {
            assert_eq!(report["from"], time, "{}", self.line);
        }
    }
}

#[test]
fn lines_have_their_fields_and_their_neighbours_are_refused() {
    let mut case = Case::default();
    for text in include_str!("lines.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let step = Step::of(text);
        if !matches!(step, Step::Field(_) | Step::Time(_)) {
            case.check();
        }
        // Escapes for characters that a table does not show.
        let plain = |text: &str| {
            text.replace("\\t", "\t")
                .replace("\\e", "\u{1b}")
                .replace("\\b", "\u{feff}")
        };
        match step {
            Step::Args(args) => {
                case = Case {
                    args,
                    ..Case::default()
                };
            }
            Step::Header(line) => case.header += &(plain(line) + "\n"),
            Step::Line(line) => case.line = plain(line),
            Step::Time(time) => case.time = Some(time.parse().expect(time)),
            Step::Field(field) => {
                let (name, value) = field.split_once('=').unwrap_or((field, "(none)"));
                case.fields.push((name, value));
            }
            Step::Change(change) => {
                let (from, to) = change.split_once(" => ").unwrap_or_else(|| panic!("{change}"));
                assert!(case.line.contains(from), "{from}: {}", case.line);
                let changed = case.line.replace(from, to);
                case.error("client", changed.split("CUT").next().unwrap_or_default());
            }
            Step::Lacks(fields) => {
                for field in fields.split(' ') {
                    let error = case.error(field, &case.line);
                    assert!(error.contains(&format!("invalid field: \"{field}\"")), "{error}");
                }
            }
            Step::Error(said) => {
                let error = case.error("client", &case.line);
                assert!(error.contains(said), "{}: {error}", case.line);
            }
        }
    }
    case.check();
}
