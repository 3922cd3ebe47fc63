//! What the tool says, and its exit status.

use std::io::{Read, Write};
use std::process::Stdio;

use crate::log::{START, line, lines, text};
use crate::tool::{file, on_file, stderr, tool};

#[test]
fn wrong_arguments_are_errors_that_say_what_is_allowed() {
    let log = file(text(&lines(3, 1)));
    for (args, said) in [
        ("--rule 20x", "quota is \"20x\", but allowed is a limit"),
        ("--rule 0/60s", "limit is 0 permits, but allowed is 1 to"),
        ("--rule 1/500d", "window is"),
        ("", "--rule"),
        ("--rule 1/s --algorithm window", "gcra"),
        (
            "--rule 2000000/h --algorithm log",
            "limit is 2000000 permits, but allowed is 1 to 1048576 permits",
        ),
        (
            "--rule 1/s --cells 0",
            "cells is 0 cells, but allowed is 1 to 4096 cells",
        ),
        ("--rule 1/s --cells 4097 --algorithm even", "cells is 4097 cells"),
        ("--rule 1/s --cells x", "invalid value 'x' for '--cells"),
        (
            "--rule 1/s --cells 5 --algorithm log",
            "no --cells with --algorithm log",
        ),
        (
            "--rule 1/s --cells 5 --algorithm gcra",
            "no --cells with --algorithm gcra",
        ),
        (
            "--rule 1/s --cells 1 --algorithm fixed",
            "no --cells with --algorithm fixed",
        ),
        ("--rule 1/s another.log", "unexpected argument"),
        ("--rule 1/s --color", "unexpected argument"),
    ] {
        let output = tool(args, Some(log.path())).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args}");
        assert!(output.stdout.is_empty(), "{args}");
        let error = stderr(&output);
        assert!(
            error.starts_with("error: ") && error.contains(said),
            "{args}: {error}"
        );
    }
}

#[test]
fn a_file_that_cannot_be_read_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    for path in [directory.path(), &directory.path().join("absent.log")] {
        let output = tool("--rule 1/s", Some(path)).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
        assert!(
            stderr(&output).contains("cannot be read: "),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn the_json_object_has_these_members_and_no_others() {
    let log = text(&["b", "a", "c", "c", "b", "a", "a"].map(|address| line(address, START)));
    let output = on_file("--json --rule 1/s", log);
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        concat!(
            r#"{"requests":7,"admitted":3,"denied":4,"keys":3,"malformed":0,"#,
            r#""first":"2020-02-28T23:30:00Z","last":"2020-02-28T23:30:00Z","#,
            r#""denied_by_key":[{"key":"a","requests":3,"denied":2},{"key":"b","requests":2,"denied":1},"#,
            r#"{"key":"c","requests":2,"denied":1}]}"#,
            "\n"
        )
    );
}

#[test]
fn the_text_is_a_table() {
    let log = text(&["b", "2001:db8::aaaa:1", "2001:db8::aaaa:1"].map(|address| line(address, START)));
    let output = on_file("--rule 1/60s --algorithm classic --cells 4", log);
    let expected = "\
rule       1/1min
algorithm  classic, 4 cells
bound      at most 2 in any 60s
requests   3
admitted   2
denied     1
keys       2
malformed  0
first      2020-02-28T23:30:00Z
last       2020-02-28T23:30:00Z

most denied        requests     denied
2001:db8::aaaa:1          2          1
";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn a_reader_who_has_seen_enough_is_no_error() {
    for args in ["--rule 1/s", "--rule 1/s --json"] {
        let mut command = tool(args, None);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        // Closed before the tool has read a line, so before it can write one.
        drop(child.stdout.take());
        let mut input = child.stdin.take().unwrap();
        input.write_all(line("a", START).as_bytes()).unwrap();
        drop(input);
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(
            (child.wait().unwrap().code(), said.as_str()),
            (Some(0), ""),
            "{args}"
        );
    }
}
