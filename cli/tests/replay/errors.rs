//! Invalid arguments and inputs: each has its message and the exit status 2.

use std::fs;
use std::process::{Command, Stdio};

use crate::log::{access, twenty};
use crate::tool::stderr;

/// Arguments with bars between them, and the beginning of the message, in which all white space is one space.
const ERRORS: &str = r#"frobnicate => unrecognized subcommand 'frobnicate'
replay => the following required arguments were not provided: --rule <RULE>
replay|--rule|20x => invalid quota: "20x" (expected a limit,
replay|--rule|0/60s => invalid limit: 0 (expected 1 to 1000000000000 permits)
replay|--rule|1/s as => invalid --rule "1/s as": as: empty (expected a value for each part)
replay|--rule|1/s by a by b => invalid --rule "1/s by a by b": by: there twice (expected each part once,
replay|--rule|1/s by , => invalid --rule "1/s by ,": key: "," (expected a field,
replay|--rule|1/s algorithm x => invalid --rule "1/s algorithm x": algorithm: "x" (expected log,
replay|--rule|1/s cells x => invalid --rule "1/s cells x": cells: "x" (expected a whole number)
replay|--rule|1/s when =x => invalid --rule "1/s when =x": when: "=x" (expected field,
replay|--rule|1/s cost agent|access.log => no requests in the input (20 unreadable lines);
replay|--rule|1/s|--key|usr|access.log => invalid field: "usr" (expected a field of the common
replay|--rules|absent.toml => absent.toml: cannot be read:
replay|--rules|empty.toml => no rules in empty.toml (expected one or more)
replay|--rules|flight.toml => no rule to replay: each is in_flight, and a log does not show when a request ends (expected one or more rules with a quota)
replay|--rules|bad.toml => bad.toml:3:7: rule "r": invalid quota: "2/x" (expected a limit,
replay|--rule|1/s|--alias|x => invalid --alias: "x" (expected NAME=FIELD, as in user=client)
replay|--rule|1/s|--utc-offset|2 => invalid --utc-offset: "2" (expected -14:00 to +14:00, as in +02:00)
replay|--rule|1/s|--year|1 => invalid value '1' for '--year <YEAR>': 1 is not in 1678..=2261
replay|--rule|1/s|--from|x => invalid --from: "x" (expected a date or a time,
replay|--rule|1/s|--to|2000-01-01|access.log => no requests in the input; 20 requests are outside of --from and --to
replay|--rule|1/s|--time-field|t|access.log => invalid --time-field: "t" (expected none:
replay|--rule|1/s|--log-format|$foo|access.log => invalid --log-format: no time (expected $time_local,
replay|--rule|1/s|--log-format|x|access.log => invalid --log-format: "x" (expected variables of nginx,
replay|--rule|1/s|--log-format|%h %l %u|access.log => invalid --log-format: "%h %l %u" (expected variables of nginx,
replay|--rule|1/s|--log-format|log_format main '$remote_addr [$time_local]';|access.log => invalid --log-format: a whole directive (expected its string alone,
replay|--rule|1/s|--log-format|$remote_addr$host|access.log => invalid --log-format: $remote_addr without a text behind it (expected a text between variables)
replay|--rule|1/s|--log-format|$status $status|access.log => invalid --log-format: $status twice (expected each variable once)
replay|--rule|1/s|absent.log => cannot read absent.log:
replay|--rule|1/s|nonsense.log => no requests in the input (1 unreadable line); --format,
replay|--rule|1/s when status>=500 => invalid --rule "1/s when status>=500": when: "status>=500" (expected field,
replay|--rules|operator.toml|access.log => operator.toml:4:6: rule "r": invalid when: "status==500" (expected
replay|--rule|1/s|array.json => line 1: column 1: no JSON object: invalid type: sequence, expected an object (expected one object a line): [{"time
replay|--rule|1/s|commas.json => line 1: column 22: no JSON object: trailing characters (expected one object a line): {"time
replay|--rule|1/s|--format|json|access.log => line 1: column 6: no JSON object: invalid type: floating point `198.51`,
replay|--rule|1/s|--format|logfmt|access.log => no field in the first lines (expected names with values,
replay|--rule|1/s|--format|syslog|access.log => line 1 is not of --format syslog: no header, as in
replay|--rule|1/s|--format|docker|access.log => line 1 is not of --format docker: column 6: no JSON object:
replay|--rule|1/s|empty.log => no requests in the input: it has no lines (expected one request a line)
replay|--rule|1/s|log.bz2 => invalid log.bz2: compression: bzip2 (expected gzip, zstd, or no compression)
replay|--rule|1/s|access.log|access.log => invalid inputs: access.log twice (expected each input once)
replay|--rule|1/s|--html|access.log|access.log => invalid --html: access.log (expected another file than the input access.log)
replay|--rule|1/s|--html|absent/x.html|access.log => cannot write absent/x.html:
replay|--rule|1/500d => invalid window: 43200000s (expected 1µs to 366 days)
replay|--rule|1/s|--algorithm|window => invalid value 'window' for '--algorithm <NAME>' [possible values: log, sliding-window,
replay|--rule|2000000/h|--algorithm|log => rule "2000000/h": invalid limit: 2000000 (expected 1 to 1048576 permits for a timestamp ring,
replay|--rule|1/s|--cells|0 => rule "1/s": invalid cells: 0 (expected 1 to 4096)
replay|--rule|1/s|--cells|4097|--algorithm|even => rule "1/s": invalid cells: 4097 (expected 1 to 4096)
replay|--rule|1/s|--cells|x => invalid value 'x' for '--cells <N>':
replay|--rule|1/s|--cells|5|--algorithm|log => rule "1/s": invalid cells: 5 (expected no cells for a log rule)
replay|--rule|1/s|--cells|5|--algorithm|gcra => rule "1/s": invalid cells: 5 (expected no cells for a gcra rule)
replay|--rule|1/s|--cells|1|--algorithm|fixed => rule "1/s": invalid cells: 1 (expected no cells for a fixed window,
replay|--rule|1/s|--rule|1/s => rule "1/s": invalid name: "1/s" again (expected a different name for each rule)
replay|--rule|1/s|--rules|bad.toml => the argument '--rule <RULE>' cannot be used with '--rules <FILE>'
replay|--rule|1/s|--key|, => invalid --key: "," (expected a field,
replay|--rule|1/s|--cost| => invalid --cost: "" (expected a field)
replay|--rule|1/s|--format|xml => invalid value 'xml' for '--format <NAME>' [possible values: auto, common, combined,
replay|--rule|1/s|--color => unexpected argument '--color' found
replay|--rules|key.toml => key.toml:4:5: rule "r": invalid key: "" (expected a field of the input
replay|--rules|usr.toml|access.log => invalid field: "usr" (expected a field of the common
replay|--rule|1/s|--html|-|access.log => invalid --html: - (expected a file)
suggest|--window|0s => invalid --window: "0s" (expected 1us to 366d,
suggest|--deny|200% => invalid --deny: "200%" (expected 0% to 100%)
suggest|--window|60x => invalid --window: "60x" (expected 1us to 366d,
suggest|--window|60s|--window|1min => invalid --window: "1min" twice (expected each window once)
suggest|--when|status>500 => invalid --when: "status>500" (expected field,
suggest|--key|,|--window|5min => invalid --key: "," (expected a field,
suggest|--algorithm|log|--cells|5 => rule "--window 60s": invalid cells: 5 (expected no cells for a log rule)
suggest|--deny|1 => invalid --deny: "1" (expected 0% to 100%)
check|absent.toml => absent.toml: cannot be read:
check|bad.toml => bad.toml:3:7: rule "r": invalid quota: "2/x" (expected a limit,
check|empty.toml => no rules in empty.toml (expected one or more)
check|burst.toml => burst.toml:4:7: rule "r": invalid burst: 3 (expected no burst, except for a gcra rule)
check|field.toml => field.toml:4:1: rule "r": invalid field: "qouta" (expected name,
redis|check => the following required arguments were not provided: <URL>...
redis|check|--timeout|1|redis://a => invalid value '1' for '--timeout <MS>': 1 is not in 10..=60000
redis|check|rediss://127.0.0.1:1/#insecure => invalid url: #insecure (expected a certificate that can be checked
redis|check|127.0.0.1:6379 => invalid url: not a URL of Redis (expected redis://[user:password@]host:port
redis|check|redis:///0 => invalid url: Missing hostname (expected redis://
redis|check|redis://host/x => invalid url: Invalid database number (expected redis://
redis|check|--prefix|{|redis://127.0.0.1:1 => invalid prefix: "{" (expected a text without braces)"#;

#[test]
fn each_error_has_its_message() {
    let folder = tempfile::tempdir().unwrap();
    let rule = |quota: &str| format!("[[rules]]\nname='r'\nquota='{quota}'\n");
    for (name, content) in [
        ("access.log", twenty(|number| access("198.51.100.9", number))),
        ("array.json", "[{\"time\":1,\"client\":2},\n".to_owned()),
        ("commas.json", "{\"time\":1,\"client\":2},\n".repeat(3)),
        ("nonsense.log", "nonsense\n".to_owned()),
        ("empty.log", String::new()),
        ("log.bz2", "BZh91AY".to_owned()),
        ("empty.toml", "rules = []".to_owned()),
        (
            "flight.toml",
            "rules = [{ name = 'exports', in_flight = 20 }]".into(),
        ),
        ("bad.toml", rule("2/x")),
        ("burst.toml", rule("2/s") + "burst=3\n"),
        ("field.toml", rule("2/s") + "qouta='3/s'\n"),
        ("key.toml", rule("2/s") + "key=''\n"),
        ("usr.toml", rule("2/s") + "key='usr'\n"),
        ("operator.toml", rule("2/s") + "when='status==500'\n"),
    ] {
        fs::write(folder.path().join(name), content).unwrap();
    }
    for (args, message) in ERRORS.lines().map(|line| line.split_once(" => ").unwrap()) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ringgate"));
        command.args(args.split('|')).current_dir(folder.path());
        let output = command.stdin(Stdio::null()).output().unwrap();
        let said = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.starts_with(&format!("error: {message}")), "{args}: {said}");
        let found = (output.status.code(), output.stdout.len());
        assert_eq!(found, (Some(2), 0), "{args}");
    }
}
