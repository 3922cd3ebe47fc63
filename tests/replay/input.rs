//! Logs of every kind: from pipes, in no order, damaged, empty, long.

use core::iter::repeat_n;
use std::path::Path;
use std::process::Command;

use crate::log::{START, line, lines, shuffled, text};
use crate::tool::{json, on_file, on_pipe, stderr, tool};

#[test]
fn a_pipe_is_read_as_a_file_is() {
    // Enough for the requests to be put aside in a temporary file.
    let ordered = lines(100_000, 4);
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
                assert_eq!(output.stdout, expected.stdout, "{args}");
                assert_eq!(output.stderr, expected.stderr, "{args}");
                assert_eq!(output.status, expected.status, "{args}");
            }
        }
    }
}

#[test]
fn the_order_of_lines_is_told_and_makes_no_difference() {
    const NOTE: &str = "not in order of time: 2000 requests were held in memory and sorted";
    let ordered = lines(2_000, 7);
    let [in_order, in_none] = [text(&ordered), text(&shuffled(ordered, 8))];
    let [quiet, told] = [&in_order, &in_none].map(|log| on_file("--json --rule 9/60s", log));
    assert_eq!(quiet.stdout, told.stdout);
    assert_eq!(
        (stderr(&quiet), stderr(&told)),
        (String::new(), format!("note: {NOTE}\n"))
    );
    let [quiet, told] = [&in_order, &in_none].map(|log| on_file("--rule 9/60s", log).stdout);
    let [quiet, told] = [quiet, told].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(quiet, told.replace(&format!("note       {NOTE}\n"), ""));
    assert_ne!(quiet, told);
}

#[test]
fn line_ends_and_blank_lines_make_no_difference() {
    let lines = lines(1_000, 9);
    let expected = on_file("--json --rule 9/60s", text(&lines));
    assert_eq!(json(&expected)["malformed"], 0);
    for other in [
        lines.join("\r\n"),
        lines.join("\n"),
        format!("\n\r\n{}\n \t\r\n", lines.join("\n\n\r\n")),
    ] {
        assert_eq!(on_file("--json --rule 9/60s", other).stdout, expected.stdout);
    }
}

#[test]
fn malformed_lines_are_counted_and_the_first_three_are_shown() {
    let mut log = Vec::new();
    for (number, bad) in [
        &b"\xff\xfe\x00 - - nothing"[..],
        b"a - - [31/Feb/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 5",
        &[b'x'; 70_000],
        // Blank as far as it is held, but nobody knows the rest.
        &[b' '; 70_000],
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
    // Bytes that are no text are no harm in a request.
    log.extend_from_slice(b"a - - [29/Feb/2020:12:00:00 +0000] \"GET /\xff\xfe HTTP/1.1\" 200 5 \"\xff\"");
    let output = on_file("--json --rule 2/60s", &log);
    let object = json(&output);
    assert_eq!(
        (&object["requests"], &object["denied"], &object["malformed"]),
        (&6.into(), &3.into(), &5.into())
    );
    let shown = stderr(&output);
    let shown: Vec<&str> = shown.lines().collect();
    assert_eq!(
        shown,
        [
            "line 2: no client address of printable ASCII: \u{fffd}\u{fffd}\\0 - - nothing",
            "line 4: no such time: a - - [31/Feb/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 5",
            &format!("line 6: longer than 64 KiB: {}…", "x".repeat(80)),
        ]
    );
}

#[test]
fn an_input_without_a_request_is_an_error() {
    for (log, malformed) in [
        (&b""[..], 0),
        (b"\n\r\n", 0),
        (b"a\nb\nc\nd", 4),
        (b"\x1f\x8b\x08\0", 1),
    ] {
        let output = on_file("--rule 2/60s --json", log);
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
        let said = stderr(&output);
        assert!(said.starts_with("error: the log is empty"), "{said}");
        assert!(
            said.contains(&format!("malformed lines: {malformed}\n")),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1 + malformed.min(3), "{said}");
        assert_eq!(
            on_pipe(&mut tool("--rule 2/60s", None), log).stderr,
            output.stderr
        );
    }
}

/// An address space of 16 MiB is enough for any log in order, and for 600,000 requests in no order it is not.
#[test]
#[cfg(target_os = "linux")]
fn memory_does_not_grow_with_a_log_in_order() {
    let limited = |args: &str| {
        let mut command = Command::new("sh");
        command
            .args([
                "-c",
                "ulimit -v 16384 && exec \"$0\" \"$@\"",
                env!("CARGO_BIN_EXE_ringgate"),
            ])
            .args(args.split_whitespace());
        command
    };
    if !limited("--version")
        .output()
        .is_ok_and(|output| output.status.success())
    {
        println!("not run: the tool does not start in 16 MiB of address space here, or there is no sh");
        return;
    }
    let mut lines: Vec<String> = (START..START + 6_000)
        .flat_map(|second| repeat_n(line("a", second), 100))
        .collect();
    let args = "replay --json --rule 20/60s";
    assert_eq!(
        json(&on_pipe(&mut limited(args), text(&lines)))["requests"],
        600_000
    );
    // A line without an end is no reason to hold it.
    let endless = [text(&lines[..1]).as_bytes(), &[b'x'; 40 << 20]].concat();
    assert_eq!(json(&on_pipe(&mut limited(args), endless))["malformed"], 1);
    lines.swap(0, 599_999);
    assert!(
        !on_pipe(&mut limited(args), text(&lines)).status.success(),
        "the limit bites"
    );
}
