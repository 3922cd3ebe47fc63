//! Paths, status codes and user agents of denied requests are counted as in the log, and have no effect on decisions.

use serde_json::{Value, json};

use crate::log::clock;
use crate::tool::{json as object, on_pipe, stderr, tool};

fn details(args: &str, log: &str) -> Value {
    let report = object(&on_pipe(
        &mut tool(&format!("--json --quiet --rule 10/60s {args}"), None),
        log,
    ));
    assert_eq!(report["denied"], 10, "{report}");
    report["chosen"][0]["details"].clone()
}

/// Returns twenty requests. The last ten are denied: six of /a, four of /b, and three with status 404.
fn log(line: impl Fn(&str, &str, u32) -> String) -> String {
    let lines = (0..20).map(|number: usize| {
        let path = if number % 5 < 3 { "/a" } else { "/b" };
        line(&clock(number), path, if number > 16 { 404 } else { 200 }) + "\n"
    });
    lines.collect()
}

#[test]
fn the_details_of_denied_requests_are_counted() {
    let path = json!({"field": "path", "denied": [["/a", 6], ["/b", 4]]});
    let status = json!({"field": "status", "denied": [["200", 7], ["404", 3]]});
    let agent = json!({"field": "agent", "denied": [["curl \"x\"", 10]]});
    let common = log(|time, path, status| {
        format!("1.2.3.4 - - [17/May/2015:{time} +0000] \"GET {path}?q HTTP/1.1\" {status} 5")
    });
    assert_eq!(details("", &common), json!([path, status]));
    let combined = common.replace(" 5\n", " 5 \"-\" \"curl \\\"x\\\"\"\n");
    let escaped = json!({"field": "agent", "denied": [["curl \\\"x\\\"", 10]]});
    assert_eq!(details("", &combined), json!([path, status, escaped]));
    // A rule may name the fields, too.
    let mut command = tool("--json --quiet --rule 10/60s", None);
    let output = on_pipe(
        command.args(["--rule", "90/60s by path,status when agent as other"]),
        &combined,
    );
    assert_eq!(
        object(&output)["chosen"][0]["details"],
        json!([path, status, escaped])
    );
    let lines = log(|time, path, status| {
        format!(
            "{{\"time\":\"2015-05-17T{time}Z\",\"client\":\"a\",\"path\":\"{path}\",\"status\":{status},\
             \"agent\":\"curl \\\"x\\\"\"}}"
        )
    });
    assert_eq!(details("", &lines), json!([path, status, agent]));
    let csv = "time,client,path,status\n".to_owned()
        + &log(|time, path, status| format!("2015-05-17T{time}Z,a,{path},{status}"));
    assert_eq!(details("", &csv), json!([path, status]));
    let w3c = "#Fields: date time c-ip cs-uri-stem sc-status\n".to_owned()
        + &log(|time, path, status| format!("2015-05-17 {time} 1.2.3.4 {path} {status}"));
    assert_eq!(details("", &w3c), json!([path, status]));
    // Formats without the fields, and messages that need not be requests.
    let without = log(|time, _, _| format!("{{\"time\":\"2015-05-17T{time}Z\",\"client\":\"a\"}}"));
    assert_eq!(details("", &without), json!([]));
    let syslog = log(|time, path, _| match path {
        "/a" => format!(
            "2015-05-17T{time}Z web nginx: 1.2.3.4 - - [17/May/2015:{time} +0000] \"GET /a HTTP/1.1\" 200 5"
        ),
        _ => format!("2015-05-17T{time}Z web cron: ready"),
    });
    assert_eq!(details("--key host", &syslog), json!([]));
}

/// Asserts that the text report, which reads no details, has the figures of the JSON object.
fn assert_agrees(key: &str, log: &str, figures: [u64; 3]) {
    let arguments = format!("--quiet --lenient --key {key} --rule 10/60s");
    let report = object(&on_pipe(&mut tool(&format!("--json {arguments}"), None), log));
    let [requests, denied, unreadable] = figures;
    assert_eq!(report["requests"], requests, "{report}");
    assert_eq!(report["denied"], denied, "{report}");
    assert_eq!(report["unreadable"], unreadable, "{report}");
    let output = on_pipe(&mut tool(&arguments, None), log);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", stderr(&output));
    for (name, figure) in [
        ("requests", requests),
        ("denied", denied),
        ("unreadable", unreadable),
    ] {
        let line = format!("{name:<10} {figure}");
        assert!(text.lines().any(|message| message == line), "{line}: {text}");
    }
}

#[test]
fn a_detail_around_the_key_changes_no_figure() {
    let lines = log(|time, path, _| {
        let id = if path == "/a" { "x" } else { "y" };
        format!("{{\"time\":\"2015-05-17T{time}Z\",\"agent\":{{\"id\":\"{id}\"}}}}")
    });
    assert_agrees("agent.id", &lines, [20, 2, 0]);
}

#[test]
fn later_columns_without_a_detail_change_no_figure() {
    let mut w3c = String::new();
    for (number, line) in log(|time, _, _| format!("2015-05-17 {time} 1.2.3.4"))
        .lines()
        .enumerate()
    {
        w3c += match number {
            0 => "#Fields: date time c-ip cs(User-Agent)\n",
            8 => "#Fields: date time c-ip\n",
            _ => "",
        };
        w3c += line;
        w3c += if number < 8 { " curl\n" } else { "\n" };
    }
    assert_agrees("client", &w3c, [20, 10, 0]);
}

#[test]
fn a_repeated_detail_changes_no_figure() {
    let lines = log(|time, path, _| {
        format!("{{\"time\":\"2015-05-17T{time}Z\",\"client\":\"a\",\"path\":\"{path}\",\"path\":\"/c\"}}")
    });
    assert_agrees("client", &lines, [20, 10, 0]);
    let path = json!({"field": "path", "denied": [["/a", 6], ["/b", 4]]});
    assert_eq!(details("", &lines), json!([path]));
    let lines = log(|time, path, _| format!("time=2015-05-17T{time}Z client=a path={path} path=/c"));
    assert_agrees("client", &lines, [20, 10, 0]);
    assert_eq!(details("", &lines), json!([path]));
    // A line that repeats a field of a rule is unreadable in both.
    let lines = lines + "time=2015-05-17T10:05:00Z client=a client=b path=/a\n";
    assert_agrees("client", &lines, [20, 10, 1]);
}
