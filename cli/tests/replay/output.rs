//! Output, error messages and exit status.

use std::io::{Read, Write};
use std::process::Stdio;

use crate::log::{START, line, text};
use crate::tool::{file, on_file, tool};

#[test]
fn the_json_object_has_these_fields() {
    let log = file(text(
        &["b", "a", "c", "c", "b", "a", "a"].map(|address| line(address, START)),
    ));
    let output = tool("--json --rule 1/s", Some(log.path())).output().unwrap();
    let expected = concat!(
        r#"{"version":1,"sources":["FILE"],"#,
        r#""formats":["combined, by line 1: an address, a time in brackets and a quoted request"],"lines":7,"requests":7,"admitted":3,"denied":4,"unreadable":0,"#,
        r#""from":1582932600000,"to":1582932600000,"step":1,"#,
        r#""rules":[{"name":"1/s","quota":"1/1s","limit":1,"window":1000,"algorithm":"sliding-window","cells":null,"#,
        r#""form":"one word of 26 cells in units of 1","#,
        r#""key":"client","cost":null,"when":null,"burst":null,"shadow":false,"requests":7,"admitted":3,"denied":4,"worst":1,"bound":1,"bytes":8,"keys":3}],"#,
        r#""series":{"requests":[7],"denied":[4],"by_rule":{"1/s":[4]}},"#,
        r#""keys":[{"rule":"1/s","key":"a","requests":3,"denied":2,"first_denied":1582932600000,"#,
        r#""last_denied":1582932600000,"worst":3},"#,
    );
    let output = String::from_utf8(output.stdout).unwrap();
    let output = output.replace(log.path().to_str().unwrap(), "FILE");
    assert!(output.starts_with(expected), "{output}");
    assert!(
        output.ends_with(concat!(
            r#""asked":[[1582932600000,2]],"admitted":[[1582932600000,1]],"near":null,"details":["#,
            r#"{"field":"path","denied":[["/a\\\"b",1]]},{"field":"status","denied":[["200",1]]},"#,
            r#"{"field":"agent","denied":[["agent",1]]}]}],"#,
            r#""what_if":[{"rule":"1/s","limits":[1,2,3],"denied":[4,1,0],"keys_denied":[3,1,0],"requests":7,"keys":3}],"#,
            r#""compare":[],"warnings":[],"notes":["clients may be host names, as \"b\" in line 1","#,
            r#""times are whole seconds, so all requests of a second count at its beginning; for rule \"1/s\" "#,
            r#"with its window of 1s, denials may differ from those at the exact times"],"truncated":false}"#,
            "\n"
        )),
        "{output}"
    );
}

#[test]
fn the_text_is_tables() {
    let log =
        text(&["192.0.2.1", "2001:db8::aaaa:1", "2001:db8::aaaa:1"].map(|address| line(address, START)));
    let output = on_file("--compare --rule 1/60s --algorithm classic --cells 4", log);
    let expected = "\
requests   3
admitted   2
denied     1
lines      3
unreadable 0
first      2020-02-28T23:30:00Z
last       2020-02-28T23:30:00Z
format     combined, by line 1: an address, a time in brackets and a quoted request

rule   quota   algorithm         key     keys  requests  admitted  denied  peak usage  bound  bytes/key
1/60s  1/1min  classic, 4 cells  client     2         3         2       1           1      2          8

rule   algorithm          admitted  denied  peak usage  bound  bytes/key
1/60s  log                       2       1           1      1         16
1/60s  sliding-window            2       1           1      1          8
1/60s  counter                   2       1           1      1          8
1/60s  classic                   2       1           1      2          8
1/60s  even                      0       3           0      2          8
1/60s  gcra                      2       1           1      1          8
1/60s  fixed                     2       1           1      2          8
1/60s  counter, 5 cells          2       1           1      1          8
1/60s  counter, 13 cells         2       1           1      1          8
1/60s  counter, 60 cells         2       1           1      1        496

most denied    requests  denied  peak demand          first denied
2001:db8::/64         2       1            2  2020-02-28T23:30:00Z
";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn a_closed_pipe_is_no_error() {
    for args in ["--rule 1/min", "--rule 1/min --json"] {
        let mut command = tool(args, None);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        // The pipe is closed before the tool has read a line, so before it writes.
        drop(child.stdout.take());
        let mut input = child.stdin.take().unwrap();
        input.write_all(line("192.0.2.1", START).as_bytes()).unwrap();
        drop(input);
        let mut message = String::new();
        child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
        assert_eq!(
            (child.wait().unwrap().code(), message.as_str()),
            (Some(0), ""),
            "{args}"
        );
    }
}
