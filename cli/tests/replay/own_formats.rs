//! Formats of the command line, and formats in columns.

use crate::truth::{clock, is_exact, is_refused, texts, twenty};

#[test]
fn failed_logins_are_found_by_a_pattern() {
    let pattern = r"--pattern=Failed\spassword\sfor\s.*\sfrom\s(?<address>\S+)";
    let log = twenty(|number| {
        format!(
            "May 17 {} web sshd[7]: Failed password for invalid user x from 198.51.100.9 port {number} ssh2\n\
             May 17 {} web sshd[7]: Connection closed",
            clock(number),
            clock(number)
        )
    });
    let object = is_exact(&format!("{pattern} --year 2015 --key address"), &log);
    assert_eq!(
        texts(&object, "notes"),
        ["20 lines are no requests of the format"]
    );
    is_exact(&format!("{pattern} --year 2015 --key host,client"), &log);
    // The time is that of a group, or there is none.
    let plain = twenty(|number| format!("at=2015-05-17T{}Z from=198.51.100.9 failed", clock(number)));
    is_exact(r"--pattern=^at=(?<time>\S+)\sfrom=(?<client>\S+)", &plain);
    is_refused(
        r"--pattern=from=(?<client>\S+)",
        &plain,
        "no group called time, and no time before the lines",
    );
    is_refused(
        r"--pattern=from=(?<client",
        &plain,
        "invalid --pattern: regex parse error",
    );
    is_refused(
        r"--pattern=at=(?<time>\S+)",
        &plain,
        "invalid field: \"client\" (expected a field of --pattern: time)",
    );
    is_refused(
        r"--pattern=on=(?<time>\S+)\s(?<client>\S+)",
        &plain,
        "20 lines are no requests of the format",
    );
}

#[test]
fn lines_are_read_by_a_log_format() {
    let format = "--log-format=$remote_addr,$request_id,[$time_local],\"$request\",$status";
    let log = |before: &str| {
        twenty(|number| {
            format!(
                "{before}198.51.100.9,x,[17/May/2015:{} +0000],\"GET /a HTTP/1.1\",200",
                clock(number)
            )
        })
    };
    is_exact(format, &log(""));
    is_exact(&format!("{format} --key request_id,path"), &log(""));
    is_exact(format, &log("2015-05-17T10:05:03.1Z stdout F "));
    is_exact(format, &log("<190>May 17 10:05:03 web nginx: "));
    is_refused(format, &log("- "), "not a line of --log-format");
    is_refused(
        "--log-format=$remote_addr",
        &log(""),
        "invalid --log-format: no time",
    );
}

#[test]
fn columns_of_known_servers_are_detected() {
    let w3c = String::from("#Version: 1.0\n#Fields: date time cs-method cs-uri-stem c-ip sc-status\n")
        + &twenty(|number| format!("2015-05-17\t{}\tGET\t/a\t198.51.100.9\t200", clock(number)));
    let alb = twenty(|number| {
        format!(
            "h2 2015-05-17T{}.1Z app/web/5 198.51.100.9:{number}817 10.0.0.1:80 0.0 0.0 0.0 200 200 0 57 \"GET https://h:443/a HTTP/2.0\" \"curl\" - - - \"-\" \"-\" \"-\" 0 2015-05-17T10:05:02Z \"forward\"",
            clock(number)
        )
    });
    let s3 = twenty(|number| {
        format!(
            "79a5 bucket [17/May/2015:{} +0000] 198.51.100.9 - 3E57 REST.GET.OBJECT a \"GET /a HTTP/1.1\" 200 - 1 1 7 5 \"-\" \"x\" -",
            clock(number)
        )
    });
    let envoy = twenty(|number| {
        format!(
            "[2015-05-17T{}.1Z] \"GET /a HTTP/2\" 204 - 154 0 226 100 \"198.51.100.9\" \"x\" \"y\" \"z\" \"tcp://10.0.2.1:80\"",
            clock(number)
        )
    });
    let haproxy = twenty(|number| {
        format!(
            "May 17 10:00:00 lb haproxy[14389]: 198.51.100.9:{number}317 [17/May/2015:{}.655] in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {{a b}} \"GET /a HTTP/1.1\"",
            clock(number)
        )
    });
    for (log, format) in [
        (w3c, "w3c"),
        (alb, "alb"),
        (s3, "s3"),
        (envoy, "envoy"),
        (haproxy, "syslog"),
    ] {
        let object = is_exact("--key client,path,method", &log);
        assert!(
            texts(&object, "formats")[0].starts_with(&format!("{format}, by line 1")),
            "{object}"
        );
    }
}
