//! Invalid arguments and inputs: each has its message and the exit status 2.

use std::fs;
use std::process::{Command, Stdio};

use crate::log::{access, twenty};
use crate::tool::stderr;

/// Arguments, and the beginning of the message.
const ERRORS: &[(&[&str], &str)] = &[
    (&["frobnicate"], "unrecognized subcommand 'frobnicate'"),
    (
        &["replay"],
        "the following required arguments were not provided:\n  --rule <RULE>",
    ),
    (
        &["replay", "--rule", "20x"],
        "invalid quota: \"20x\" (expected a limit, ",
    ),
    (
        &["replay", "--rule", "0/60s"],
        "invalid limit: 0 (expected 1 to 1000000000000 permits)",
    ),
    (
        &["replay", "--rule", "1/s as"],
        "invalid --rule \"1/s as\": as: empty (expected a value for each part)",
    ),
    (
        &["replay", "--rule", "1/s by a by b"],
        "invalid --rule \"1/s by a by b\": by: there twice (expected each part once, ",
    ),
    (
        &["replay", "--rule", "1/s by ,"],
        "invalid --rule \"1/s by ,\": key: \",\" (expected a field, ",
    ),
    (
        &["replay", "--rule", "1/s algorithm x"],
        "invalid --rule \"1/s algorithm x\": algorithm: \"x\" (expected log, ",
    ),
    (
        &["replay", "--rule", "1/s cells x"],
        "invalid --rule \"1/s cells x\": cells: \"x\" (expected a whole number)",
    ),
    (
        &["replay", "--rule", "1/s when =x"],
        "invalid --rule \"1/s when =x\": condition: \"=x\" (expected field, ",
    ),
    (
        &["replay", "--rule", "1/s cost agent", "access.log"],
        "no requests in the input (20 unreadable lines); ",
    ),
    (
        &["replay", "--rule", "1/s", "--key", "usr", "access.log"],
        "invalid field: \"usr\" (expected a field of the common ",
    ),
    (
        &["replay", "--rules", "absent.toml"],
        "absent.toml: cannot be read: ",
    ),
    (
        &["replay", "--rules", "empty.toml"],
        "no rules in empty.toml (expected one or more)",
    ),
    (
        &["replay", "--rules", "flight.toml"],
        "no rule to replay: each is in_flight, and a log does not show when a request ends (expected one or more rules with a quota)",
    ),
    (
        &["replay", "--rules", "bad.toml"],
        "bad.toml:3:7: rule \"r\": invalid quota: \"2/x\" (expected a limit, ",
    ),
    (
        &["replay", "--rule", "1/s", "--alias", "x"],
        "invalid --alias: \"x\" (expected NAME=FIELD, as in user=client)",
    ),
    (
        &["replay", "--rule", "1/s", "--utc-offset", "2"],
        "invalid --utc-offset: \"2\" (expected -14:00 to +14:00, as in +02:00)",
    ),
    (
        &["replay", "--rule", "1/s", "--year", "1"],
        "invalid value '1' for '--year <YEAR>': 1 is not in 1678..=2261",
    ),
    (
        &["replay", "--rule", "1/s", "--from", "x"],
        "invalid --from: \"x\" (expected a date or a time, ",
    ),
    (
        &["replay", "--rule", "1/s", "--to", "2000-01-01", "access.log"],
        "no requests in the input; 20 requests are outside of --from and --to\n",
    ),
    (
        &["replay", "--rule", "1/s", "--time-field", "t", "access.log"],
        "invalid --time-field: \"t\" (expected none: ",
    ),
    (
        &["replay", "--rule", "1/s", "--log-format", "$foo", "access.log"],
        "invalid --log-format: no time (expected $time_local, ",
    ),
    (
        &["replay", "--rule", "1/s", "--log-format", "x", "access.log"],
        "invalid --log-format: \"x\" (expected variables of nginx, ",
    ),
    (
        &["replay", "--rule", "1/s", "absent.log"],
        "cannot read absent.log: ",
    ),
    (
        &["replay", "--rule", "1/s", "nonsense.log"],
        "no requests in the input (1 unreadable line); --format, ",
    ),
    (
        &["replay", "--rule", "1/s when status>=500"],
        "invalid --rule \"1/s when status>=500\": condition: \"status>=500\" (expected field, ",
    ),
    (
        &["replay", "--rules", "operator.toml", "access.log"],
        "operator.toml:4:6: rule \"r\": invalid when: \"status==500\" (expected ",
    ),
    (
        &["replay", "--rule", "1/s", "array.json"],
        "line 1: column 1: no JSON object: invalid type: sequence, expected an object (expected one object a line): [{\"time",
    ),
    (
        &["replay", "--rule", "1/s", "commas.json"],
        "line 1: column 22: no JSON object: trailing characters (expected one object a line): {\"time",
    ),
    (
        &["replay", "--rule", "1/s", "--format", "json", "access.log"],
        "line 1: column 6: no JSON object: invalid type: floating point `198.51`, ",
    ),
    (
        &["replay", "--rule", "1/s", "--format", "logfmt", "access.log"],
        "no field in the first lines (expected names with values, ",
    ),
    (
        &["replay", "--rule", "1/s", "--format", "syslog", "access.log"],
        "line 1 is not of --format syslog: column 1: no time, ",
    ),
    (
        &["replay", "--rule", "1/s", "--format", "docker", "access.log"],
        "line 1 is not of --format docker: column 6: no JSON object: ",
    ),
    (
        &["replay", "--rule", "1/s", "empty.log"],
        "no requests in the input: it has no lines (expected one request a line)",
    ),
    (
        &["replay", "--rule", "1/s", "log.bz2"],
        "invalid log.bz2: compression: bzip2 (expected gzip, zstd, or no compression)",
    ),
    (
        &["replay", "--rule", "1/s", "access.log", "access.log"],
        "invalid inputs: access.log twice (expected each input once)",
    ),
    (
        &["replay", "--rule", "1/s", "--html", "access.log", "access.log"],
        "invalid --html: access.log (expected another file than the input access.log)",
    ),
    (
        &["replay", "--rule", "1/s", "--html", "absent/x.html", "access.log"],
        "cannot write absent/x.html: ",
    ),
    (
        &["suggest", "--window", "0s"],
        "invalid --window: \"0s\" (expected 1us to 366d, ",
    ),
    (
        &["suggest", "--deny", "200%"],
        "invalid --deny: \"200%\" (expected 0% to 100%)",
    ),
    (&["check", "absent.toml"], "absent.toml: cannot be read: "),
    (
        &["redis", "check"],
        "the following required arguments were not provided:\n  <URL>...",
    ),
    (
        &["redis", "check", "--timeout", "1", "redis://a"],
        "invalid value '1' for '--timeout <MS>': 1 is not in 10..=60000",
    ),
    (
        &["redis", "check", "--prefix", "{", "redis://127.0.0.1:1"],
        "invalid prefix: \"{\" (expected a text without braces)",
    ),
];

#[test]
fn each_error_has_its_message() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in [
        ("access.log", twenty(|number| access("198.51.100.9", number))),
        (
            "flight.toml",
            "rules = [{ name = 'exports', in_flight = 20 }]".to_owned(),
        ),
        (
            "operator.toml",
            "[[rules]]\nname='r'\nquota='2/s'\nwhen='status==500'\n".to_owned(),
        ),
        ("array.json", "[{\"time\":1,\"client\":2},\n".to_owned()),
        ("commas.json", "{\"time\":1,\"client\":2},\n".repeat(3)),
        ("nonsense.log", "nonsense\n".to_owned()),
        ("empty.log", String::new()),
        ("log.bz2", "BZh91AY".to_owned()),
        ("empty.toml", "rules = []".to_owned()),
        ("bad.toml", "[[rules]]\nname='r'\nquota='2/x'\n".to_owned()),
    ] {
        fs::write(folder.path().join(name), content).unwrap();
    }
    for (args, message) in ERRORS {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ringgate"));
        command
            .args(*args)
            .current_dir(folder.path())
            .stdin(Stdio::null());
        let output = command.output().unwrap();
        let error = stderr(&output);
        assert!(
            error.starts_with(&format!("error: {message}")),
            "{args:?}: {error}"
        );
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(2), 0),
            "{args:?}"
        );
    }
}
