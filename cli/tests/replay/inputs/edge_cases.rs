//! Unusual inputs of known formats: the result is exact, or there is an error or a warning with the reason.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::log::{access, twenty};
use crate::tool::{assert_error, assert_half_denied, file, json, on_file, replay, run, stderr, texts, tool};

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// Returns twenty requests of one client, of which ten are denied.
fn valid() -> String {
    twenty(|number| access("198.51.100.9", number))
}

#[test]
fn one_address_in_several_spellings_is_one_key() {
    for spellings in [
        ["2001:DB8::1", "2001:db8:0:0:0:0:0:1"],
        ["::ffff:198.51.100.9", "198.51.100.9"],
        ["[2001:db8::1]:443", "2001:db8::1"],
    ] {
        assert_half_denied("", &twenty(|number| access(spellings[number % 2], number)));
    }
    // Each interface has its own link-local addresses.
    let zones = twenty(|number| access(["fe80::1%eth0", "fe80::1%eth1"][number % 2], number));
    assert_eq!(json(&replay("", &zones))["denied"], 0);
    // A list of keys in a rules file names an address in any spelling.
    let mut rules = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    rules
        .write_all(b"[[rules]]\nname = 'r'\nquota = '10/h'\nkey = 'client'\nallow = ['2001:DB8:0::1']\n")
        .unwrap();
    let args = format!("--json --rules {}", rules.path().display());
    let output = on_file(&args, twenty(|number| access("2001:db8::1", number)));
    assert_eq!(json(&output)["denied"], 0);
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
}

#[test]
fn a_client_that_is_no_address_is_shown() {
    assert_error(
        "",
        "time,client\n2015-05-17T10:05:03Z,\"10.0.0.1, 198.51.100.9\"\n",
        "no client among the fields time, client; \"client\" is \"10.0.0.1, 198.51.100.9\" (expected an address, or --key FIELD)",
    );
}

#[test]
fn an_assumed_time_zone_is_a_note() {
    let without =
        |number: usize| format!("{{\"time\":\"2015-05-17 10:05:{number:02}\",\"client\":\"198.51.100.9\"}}");
    let object = assert_half_denied("", &twenty(without));
    assert_eq!(
        texts(&object, "notes"),
        ["timestamps without a time zone are taken as UTC (--utc-offset sets another)"]
    );
    assert_eq!(
        texts(
            &assert_half_denied("--utc-offset=+02:00", &twenty(without)),
            "notes"
        )
        .len(),
        0
    );
}

#[test]
fn requests_without_a_client_are_a_warning() {
    let half = |number: usize| match number % 2 {
        0 => format!("{{\"time\":\"2015-05-17T10:05:{number:02}Z\",\"client\":\"198.51.100.9\"}}"),
        _ => format!("{{\"time\":\"2015-05-17T10:05:{number:02}Z\"}}"),
    };
    let object = json(&replay("", twenty(half)));
    assert_eq!(
        texts(&object, "warnings"),
        ["requests without the field \"client\", which share the key (none): 10"]
    );
}
