//! Inputs from pipes, out of order, damaged, empty and long.

use std::path::Path;
#[cfg(target_os = "linux")]
use std::process::Command;
use std::process::Output;

use crate::log::{START, line, lines, shuffled, text};
use crate::tool::{assert_fields, json, on_file, on_pipe, stderr, tool};

#[test]
fn a_pipe_equals_a_file() {
    // Enough requests for a temporary file.
    let ordered = lines(30_000, 4);
    let mut late = ordered.clone();
    late.push(line("192.0.2.1", START));
    let mut broken = shuffled(lines(500, 5), 6);
    broken.insert(0, "first".to_string());
    broken.insert(250, "\u{1b}[2Jsecond".to_string());
    broken.push("last".to_string());
    for log in [ordered, late, broken].map(|lines| text(&lines)) {
        for args in ["--rule 20/60s", "--rule 20/60s --json --algorithm log"] {
            let expected = on_file(args, &log);
            assert_eq!(expected.status.code(), Some(0));
            for command in [&mut tool(args, None), &mut tool(args, Some(Path::new("-")))] {
                let output = on_pipe(command, &log);
                let unnamed = |output: &Output| {
                    let text = String::from_utf8(output.stdout.clone()).unwrap();
                    match (text.find(",\"lines\":"), text.starts_with('{')) {
                        (Some(end), true) => text[end..].to_string(),
                        _ => text,
                    }
                };
                assert_eq!(unnamed(&output), unnamed(&expected), "{args}");
                assert_eq!(output.stderr, expected.stderr, "{args}");
                assert_eq!(output.status, expected.status, "{args}");
            }
        }
    }
}

#[test]
fn the_order_of_lines_is_noted_and_has_no_effect() {
    const NOTE: &str = "input not in order of time: ";
    let ordered = lines(2_000, 7);
    let [in_order, in_none] = [text(&ordered), text(&shuffled(ordered, 8))];
    let [quiet, told] = [&in_order, &in_none].map(|log| on_pipe(&mut tool("--rule 9/60s", None), log));
    let [quiet, told] = [quiet, told].map(|output| String::from_utf8(output.stdout).unwrap());
    let noted = |text: &str| text.lines().filter(|line| line.contains(NOTE)).count();
    assert_eq!((noted(&quiet), noted(&told)), (0, 1));
    let unnoted: Vec<&str> = told.lines().filter(|line| !line.contains(NOTE)).collect();
    assert_eq!(unnoted, quiet.lines().collect::<Vec<_>>());
    let told = on_pipe(&mut tool("--json --rule 9/60s", None), &in_none);
    assert!(stderr(&told).starts_with(&format!("note: {NOTE}")));
}

#[test]
fn line_ends_and_blank_lines_have_no_effect() {
    let lines = lines(1_000, 9);
    let expected = on_pipe(&mut tool("--json --rule 9/60s", None), text(&lines));
    assert_eq!(json(&expected)["unreadable"], 0);
    for other in [
        lines.join("\r\n"),
        lines.join("\n"),
        format!("\n\r\n{}\n \t\r\n", lines.join("\n\n\r\n")),
    ] {
        let [mut seen, mut expected] = [
            json(&on_pipe(&mut tool("--json --rule 9/60s", None), other)),
            json(&expected),
        ];
        assert!(seen["lines"].as_u64() >= expected["lines"].as_u64());
        (seen["lines"], expected["lines"]) = (0.into(), 0.into());
        // The format is detected by this line.
        (seen["formats"], expected["formats"]) = (0.into(), 0.into());
        assert_eq!(seen, expected);
    }
}

/// A byte order mark at the beginning is skipped.
#[test]
fn a_byte_order_mark_has_no_effect() {
    for (args, input) in [
        ("", text(&[line("192.0.2.1", START)])),
        ("", "{\"time\":1,\"client\":\"a\"}\n".into()),
        ("--format json", "{\"time\":1,\"client\":\"a\"}".into()),
        ("", "time,client\n1,a\n".into()),
        ("--year 2015 --key host", "May 17 10:05:03 a b: c\n".into()),
    ] {
        let args = format!("--json --rule 9/60s {args}");
        let marked = json(&on_pipe(&mut tool(&args, None), format!("\u{feff}{input}")));
        assert_eq!(marked["unreadable"], 0);
        assert_eq!(marked, json(&on_pipe(&mut tool(&args, None), &input)));
    }
    // An input with only the mark is empty.
    let output = on_pipe(&mut tool("--rule 9/60s", None), "\u{feff}");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no requests in the input: it has no lines"));
}

#[test]
fn blank_lines_before_a_header_are_skipped() {
    let args = "--json --rule 9/60s";
    let object = json(&on_pipe(
        &mut tool(args, None),
        "\n \t\r\n\r\ntime,client\r\n\n1,a\n2,a",
    ));
    assert_fields(&object, "lines requests", [7, 2], "");
    assert_eq!(object["unreadable"], 0);
}

/// "client" and the field that it is an alias of have equal values. The time may be a key, too.
#[test]
fn two_names_of_one_field_have_equal_values() {
    for input in [
        "{\"ts\":1,\"ip\":\"a\"}\n{\"ts\":1,\"ip\":\"a\"}\n{\"ip\":\"b\",\"ts\":2}\n",
        "ts,ip\n1,a\n1,a\n2,b\n",
    ] {
        let output = on_pipe(
            tool("--json", None).args([
                "--rule=1/h by client as x",
                "--rule=1/h by ip as y",
                "--rule=1/h by ts as z",
                "--rule=9/h by ip,ts cost ts when ip=b as v",
            ]),
            input,
        );
        let object = json(&output);
        assert_eq!(object["notes"], serde_json::json!([]));
        let rules = object["rules"].as_array().unwrap();
        let seen = rules
            .iter()
            .map(|rule| ["requests", "denied", "keys"].map(|name| &rule[name]));
        let expected = [[3, 1, 2], [3, 1, 2], [3, 1, 2], [1, 0, 1]];
        assert!(seen.eq(expected), "{rules:?}");
    }
}

/// Values that are not wanted may be any JSON, and the first lines may lack fields.
#[test]
fn fields_are_detected_in_several_lines() {
    let input = "{\"message\":\"begun \\ud83d\",\"n\":1e999}\n\
                 {\"time\":1,\"message\":\"ready\"}\n\
                 {\"time\":2,\"ip\":\"a\"}\n{\"time\":3,\"ip\":\"b\"}\n";
    let object = json(&on_pipe(&mut tool("--json --rule 9/60s", None), input));
    // The first line has no time. The second has no client, which is a key of its own.
    assert_fields(&object, "unreadable requests", [1, 3], "");
    assert_eq!(object["rules"][0]["keys"], 3);
    let note = "requests without the field \"client\", which share the key (none): 1";
    assert_eq!(object["warnings"][1], note);
}

#[test]
fn unreadable_lines_are_counted_and_three_are_shown() {
    let mut log = Vec::new();
    for (number, bad) in [
        &b"\xff\xfe\x00 - - nothing"[..],
        b"a - - [31/Feb/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 5",
        &[b'x'; 70_000],
        // The beginning of a long line is blank, and the rest is cut.
        &[b' '; 70_000],
        // Cut behind the request: no rule needs the rest.
        b"a - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200",
    ]
    .into_iter()
    .enumerate()
    {
        log.extend_from_slice(line("a", START + number as i64).as_bytes());
        log.push(b'\n');
        log.extend_from_slice(bad);
        log.push(b'\n');
    }
    // A request may have bytes that are not UTF-8.
    log.extend_from_slice(b"a - - [29/Feb/2020:12:00:00 +0000] \"GET /\xff\xfe HTTP/1.1\" 200 5 \"\xff\"");
    let output = on_file("--json --rule 2/60s", &log);
    let object = json(&output);
    assert_fields(&object, "requests denied unreadable", [7, 3, 4], "");
    let shown = stderr(&output);
    let shown: Vec<&str> = shown.lines().collect();
    assert_eq!(
        shown,
        [
            "line 2: column 1: no client address at the beginning: \"\u{fffd}\u{fffd}\\0\" (expected an address, or HOST:PORT \
             and an address): \u{fffd}\u{fffd}\\0 - - nothing",
            "line 4: column 8: invalid time: \"31/Feb/2015:10:05:03 +0000\" (expected an existing time such as \
             17/May/2015:10:05:03 +0000): a - - [31/Feb/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 5",
            &format!("line 6: line exceeds 64 KiB: {}…", "x".repeat(80)),
            "warning: 4 of 11 lines (36.4 %) are unreadable and not counted (standard error shows the first)",
            "warning: every request has the client \"a\", so all share one limit: behind a proxy, --key FIELD, --log-format or \
             --pattern names the address that it forwards",
            "note: clients may be host names, as \"a\" in line 1",
            "note: input not in order of time: 1 requests were earlier than the one before (all were sorted)",
        ]
    );
}

#[test]
fn an_input_without_a_request_is_an_error() {
    for (log, unreadable) in [
        (&b""[..], 0),
        (b"\n\r\n", 0),
        (b"a\nb\nc\nd", 4),
        (b"\0", 0),
        (b"\x01", 1),
    ] {
        let output = on_file("--rule 2/60s --json", log);
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
        let message = stderr(&output);
        assert!(
            message.starts_with("error: no requests in the input"),
            "{message}"
        );
        let reason = match unreadable {
            0 => ": it has no lines (expected one request a line)\n".to_owned(),
            1 => " (1 unreadable line); --format, --log-format or --pattern say".to_owned(),
            _ => format!(" ({unreadable} unreadable lines); --format, --log-format or --pattern say"),
        };
        assert!(message.contains(&reason), "{message}");
        assert_eq!(message.lines().count(), 1 + unreadable.min(3), "{message}");
        assert_eq!(
            on_pipe(&mut tool("--rule 2/60s", None), log).stderr,
            output.stderr
        );
    }
}

/// The most memory of a run over two million requests, in order or not, in KiB.
#[cfg(target_os = "linux")]
const DATA_LIMIT: u32 = 64 * 1024;

#[test]
#[cfg(target_os = "linux")]
fn memory_does_not_grow_with_the_input() {
    const COUNT: i64 = 2_000_000;
    for order in [|number| number, |number| number * 7_919 % COUNT] {
        let lines = (0..COUNT).map(|number| {
            let number: i64 = order(number);
            line(&format!("10.0.{}.1", number % 200), START + number / 100)
                .replace("\"GET /a\\\"b HTTP/1.1\" 200 17 \"-\" \"agent\"", "\"\" 200 1\n")
        });
        let log: String = lines.collect();
        let script = format!("ulimit -d {DATA_LIMIT}; exec \"$0\" replay --quiet --rule 20/60s");
        let mut command = Command::new("sh");
        command.arg("-c").arg(script).arg(env!("CARGO_BIN_EXE_ringgate"));
        let output = on_pipe(&mut command, log);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
}

#[test]
fn an_endless_line_is_unreadable() {
    let endless = [line("a", START).as_bytes(), b"\n", &[b'x'; 40 << 20]].concat();
    assert_eq!(
        json(&on_pipe(&mut tool("--json --rule 20/60s", None), endless))["unreadable"],
        1
    );
}
