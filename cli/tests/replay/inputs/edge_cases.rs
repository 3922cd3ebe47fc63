//! Unusual inputs of known formats: the result is exact, or there is an error or a warning with the reason.

use crate::compressed::gzip;
use crate::log::{access, twenty};
use crate::tool::{assert_error, assert_half_denied, file, json, on_file, replay, run, stderr, tool};

/// Returns twenty requests of one client, of which ten are denied.
fn valid() -> String {
    twenty(|number| access("198.51.100.9", number))
}

#[test]
fn two_lines_that_were_written_as_one_are_unreadable() {
    let glued = valid() + &access("198.51.100.9", 1) + " " + &access("198.51.100.9", 1) + "\n";
    assert_eq!(json(&replay("", &glued))["unreadable"], 1);
    let output = replay("", &glued);
    assert!(
        stderr(&output).contains("a second request on the line"),
        "{}",
        stderr(&output)
    );
    // The client chooses its user agent, which may look like a second request.
    let agent =
        |number: usize| access("198.51.100.9", number) + " \"-\" \"[17/May/2015:10:05:03 +0000] \\\"x\"";
    assert_half_denied("", &twenty(agent));
}

/// The tool reads nested values without a stack of their depth.
#[test]
fn a_line_of_deeply_nested_values_is_unreadable() {
    let line = |number: usize| format!(r#"{{"time":{},"client":"198.51.100.9"}}"#, 1_431_857_100 + number);
    let deep = format!("{{\"time\":1431857100,\"client\":{}\n", "[".repeat(60_000));
    assert_eq!(json(&replay("", &(twenty(line) + &deep)))["unreadable"], 1);
}

#[test]
fn content_that_is_no_text_is_an_error() {
    let utf16: Vec<u8> = valid().encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut archive = vec![0; 512];
    archive[..10].copy_from_slice(b"access.log");
    archive[257..262].copy_from_slice(b"ustar");
    archive.extend_from_slice(valid().as_bytes());
    for (content, message) in [
        (gzip(&gzip(valid().as_bytes())), "gzip within another compression"),
        (gzip(&archive), "an archive of tar"),
        (archive, "an archive of tar"),
        ([&[0xff, 0xfe][..], &utf16].concat(), "text in UTF-16"),
    ] {
        let output = on_file("--rule 10/60s", &content);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(
            stderr(&output).contains(&format!(": {message} (expected lines of text")),
            "{}",
            stderr(&output)
        );
    }
    // A folder is no input.
    let folder = tempfile::tempdir().unwrap();
    let output = run(["replay", "--rule", "1/s", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).starts_with("error: cannot read "),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_repeated_input_is_an_error() {
    let log = file(valid());
    let path = log.path().to_str().unwrap();
    let link = tempfile::tempdir().unwrap();
    let other = link.path().join("other.log");
    std::fs::hard_link(path, &other).unwrap();
    let of_standard_input = |first: &str, second: &str| {
        let mut command = tool("--rule 1/s", None);
        let input = std::fs::File::open(path).unwrap();
        command.args([first, second]).stdin(input).output().unwrap()
    };
    for output in [
        run(["replay", "--rule", "1/s", path, path]),
        run(["replay", "--rule", "1/s", path, other.to_str().unwrap()]),
        of_standard_input(path, "-"),
        of_standard_input("-", path),
    ] {
        assert_eq!(output.status.code(), Some(2));
        assert!(
            stderr(&output).contains("twice (expected each input once)"),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn a_field_that_is_called_time_may_be_a_duration() {
    let json_line = |number: usize| {
        format!(
            "{{\"timestamp\":\"2015-05-17T10:05:{number:02}Z\",\"time\":0.{number:02},\"client\":\"198.51.100.9\"}}"
        )
    };
    let object = assert_half_denied("", &twenty(json_line));
    assert_eq!(object["from"], 1_431_857_100_000_i64);
    // nginx has the milliseconds in another variable than the time as text.
    let of_nginx = |number: usize| {
        let local = format!("17/May/2015:10:05:{number:02} +0000");
        format!(
            "{{\"time_local\":\"{local}\",\"msec\":\"14318571{number:02}.250\",\"remote_addr\":\"198.51.100.9\"}}"
        )
    };
    assert_eq!(
        assert_half_denied("", &twenty(of_nginx))["from"],
        1_431_857_100_250_i64
    );
}

#[test]
fn a_client_that_is_no_address_is_shown() {
    assert_error(
        "",
        "time,client\n2015-05-17T10:05:03Z,\"10.0.0.1, 198.51.100.9\"\n",
        "no client among the fields time, client; \"client\" is \"10.0.0.1, 198.51.100.9\" (expected an address, or --key FIELD)",
    );
}
