//! Messages of a program among its requests: before them, between them, and repeated ones in one line.

use serde_json::Value;

use crate::log::{access, clock, docker};
use crate::tool::{assert_fields, json, on_file, on_pipe, stderr, texts, tool};

const ARGS: &str = "--json --quiet --rule 100/min";

/// The requests, the keys and the lines that are no requests, which a file and a pipe have in common.
fn counts(input: &str) -> (u64, u64, u64) {
    let of = |object: &Value| {
        assert_eq!(object["unreadable"], 0, "{object}");
        let others = texts(object, "notes").into_iter().find_map(|note| {
            let number = note.strip_suffix(" lines are no requests of the format")?;
            number.parse().ok()
        });
        (
            object["requests"].as_u64().unwrap(),
            object["rules"][0]["keys"].as_u64().unwrap(),
            others.unwrap_or(0),
        )
    };
    let file = of(&json(&on_file(ARGS, input)));
    let pipe = of(&json(&on_pipe(&mut tool(ARGS, None), input)));
    assert_eq!(file, pipe, "a file and a pipe of {} bytes", input.len());
    file
}

/// A message of a program that starts, with a filling of so many bytes.
fn starting(number: usize, bytes: usize) -> String {
    let time = 1_431_857_000 + number / 100;
    let filling = "x".repeat(bytes);
    format!("{{\"time\":{time},\"level\":\"info\",\"host\":\"10.0.0.5\",\"msg\":\"{filling}\"}}\n")
}

/// A request of one of three clients.
fn request(number: usize) -> String {
    let (time, client) = (1_431_857_163, number % 3);
    format!(
        "{{\"time\":{time},\"host\":\"10.0.0.5\",\"client_ip\":\"192.0.2.{client}\",\"method\":\"GET\",\"status\":200}}\n"
    )
}

fn all(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect()
}

#[test]
fn a_pipe_has_the_beginning_of_a_file() {
    let requests = all(60, request);
    let logs = all(900, |number| {
        let request = access(&format!("192.0.2.{}", number % 3), number % 60);
        format!("May 17 {} web nginx: {request}\n", clock(number % 60))
    });
    let cron = |count: usize, bytes: usize| {
        let filling = "y".repeat(bytes);
        all(count, |number| {
            format!("May 17 {} web CRON[7]: job {filling}\n", clock(number % 60))
        })
    };
    for (before, bytes) in [
        (1, 0),
        (5, 60_000),
        (500, 120),
        (500, 600),
        (999, 100),
        (100, 3900),
    ] {
        let input = all(before, |number| starting(number, bytes)) + &requests;
        assert_eq!(
            counts(&input),
            (60, 3, before as u64),
            "{before} of {bytes} bytes"
        );
    }
    // Blank lines and lines that are too long are no lines of the beginning.
    for before in ["\n".repeat(300_000), "\n \t\n".repeat(1000)] {
        assert_eq!(counts(&(before + &requests)), (60, 3, 0));
    }
    for bytes in [70_000, 300_000] {
        for lines in [1, 3] {
            let input = all(lines, |number| starting(number, bytes)) + &requests;
            for output in [on_file(ARGS, &input), on_pipe(&mut tool(ARGS, None), &input)] {
                let object = json(&output);
                assert_fields(&object, "requests unreadable", [60, lines], "");
            }
        }
    }
    for (count, bytes) in [(600, 30), (600, 300), (90, 3000)] {
        let input = cron(count, bytes) + &logs;
        for output in [
            on_file("--json --quiet --rule 100/min --lenient", &input),
            on_pipe(&mut tool("--json --quiet --rule 100/min --lenient", None), &input),
        ] {
            let object = json(&output);
            assert_fields(
                &object,
                "requests unreadable",
                [900, count],
                format!("{count} of {bytes} bytes"),
            );
        }
    }
}

#[test]
fn requests_behind_the_beginning_are_an_error() {
    for (fields, count) in [
        ("\"host\":\"10.0.0.5\"", 1100),
        ("\"client\":\"192.0.2.1\"", 1001),
        ("\"ip\":\"192.0.2.1\",\"level\":\"info\"", 1002),
    ] {
        let messages = all(count, |number| {
            format!("{{\"time\":{},\"msg\":\"m\",{fields}}}\n", 1_431_857_000 + number)
        });
        // Without any field of a request all lines count.
        assert_eq!(counts(&messages).0, count as u64);
        for field in ["method", "status", "req"] {
            let late = format!("{{\"time\":1431861000,{fields},\"{field}\":\"x\"}}\n");
            let output = on_file(ARGS, messages.clone() + &late);
            assert_eq!(output.status.code(), Some(2), "{field}");
            let said = stderr(&output);
            assert!(
                said.contains("no line of the beginning has a field of a request"),
                "{said}"
            );
            assert!(output.stdout.is_empty());
        }
        // Among the first lines they tell requests from messages.
        let early = format!("{{\"time\":1431861000,{fields},\"method\":\"x\"}}\n");
        assert_eq!(counts(&(early + &messages)), (1, 1, count as u64));
    }
    let messages = all(1200, |number| {
        format!("time={} level=info ip=192.0.2.1\n", 1_431_857_000 + number)
    });
    assert_eq!(counts(&messages).0, 1200);
    let output = on_file(
        ARGS,
        messages + "time=1431861000 ip=192.0.2.1 method=GET path=/\n",
    );
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn messages_with_a_client_are_no_requests() {
    let request = r#"{"time":1431857163,"client_ip":"192.0.2.1","method":"GET","path":"/"}"#;
    for (request, message) in [
        (
            request,
            r#"{"time":1431857163,"level":"info","msg":"db","client_ip":"192.0.2.1"}"#,
        ),
        (
            request,
            r#"{"msg":"{\"method\":1}","time":1431857163,"client_ip":"192.0.2.1"}"#,
        ),
        (
            request,
            r#"{"client_ip":"192.0.2.1","time":1431857163,"ctx":{"method":"GET","status":1}}"#,
        ),
        (
            request,
            r#"{"client_ip":"192.0.2.1","time":1431857163,"type":"path","list":["status"]}"#,
        ),
        (
            r#"{"ts":1431857163.5,"remote_addr":"192.0.2.1","status":200}"#,
            r#"{"ts":1431857163.5,"remote_addr":"192.0.2.1","Method":"GET"}"#,
        ),
        (
            "time=1431857163 ip=192.0.2.1 method=GET status=200",
            "time=1431857163 ip=192.0.2.1 msg=\"method=GET status=200\"",
        ),
        (
            "time=1431857163 ip=192.0.2.1 path=/ dur=3",
            "time=1431857163 ip=192.0.2.1 level=info msg=db",
        ),
    ] {
        let input = format!("{message}\n{request}\n").repeat(20);
        assert_eq!(counts(&input), (20, 1, 20), "{message}");
        let notes = json(&on_file(ARGS, &input));
        assert_eq!(
            texts(&notes, "notes")[0],
            "20 messages have a client, but no method, path or status as the requests have, and are not counted"
        );
    }
    // A line that was cut behind its needed fields may have lost those of a request.
    let input =
        format!("{request}\n{{\"time\":1431857163,\"client_ip\":\"192.0.2.1\",\"msg\":\"cu\n").repeat(5);
    assert_eq!(counts(&input).0, 10);
}

#[test]
fn several_lines_of_a_request_are_a_note() {
    let identified = |number: usize, event: &str, id: usize| {
        format!(
            "{{\"timestamp\":\"2015-05-17T10:05:{:02}Z\",\"ip\":\"192.0.2.7\",\"path\":\"/\",\"event\":\"{event}\",\"request_id\":\"{id}\"}}\n",
            number % 60
        )
    };
    let of_two = |number| identified(number, "started", number) + &identified(number, "finished", number);
    let noted = |args: &[&str], input: &str| {
        let object = json(&on_pipe(tool("--json --quiet", None).args(args), input));
        let notes = texts(&object, "notes");
        let noted = notes
            .iter()
            .any(|note| note.contains("several lines have the same \"request_id\""));
        (object["rules"][0]["requests"].clone(), noted)
    };
    let rule = "--rule=5/s when event=finished";
    for count in [2, 20, 2000] {
        let twice: String = (0..count).map(of_two).collect();
        assert_eq!(noted(&["--rule=5/s"], &twice), ((2 * count).into(), true));
        assert_eq!(noted(&[rule], &twice), (count.into(), true));
        let once: String = (0..count)
            .map(|number| identified(number, "finished", number))
            .collect();
        assert_eq!(noted(&[rule], &once), (count.into(), false));
        // A value that stands for none, or one that all lines have.
        let constant: String = (0..count)
            .map(|number| identified(number, "finished", 0))
            .collect();
        assert_eq!(noted(&[rule], &constant), (count.into(), false));
    }
    let as_logfmt = |number: usize| {
        let line = |event| {
            format!("time=14318571{number:02} ip=192.0.2.7 path=/ event={event} request_id=a{number}\n")
        };
        line("started") + &line("finished")
    };
    let logfmt: String = (0..20).map(as_logfmt).collect();
    assert_eq!(noted(&[rule], &logfmt), (20.into(), true));
    let as_csv = |number: usize| {
        format!(
            "14318571{number:02},192.0.2.7,started,{number}\n14318571{number:02},192.0.2.7,finished,{number}\n"
        )
    };
    let csv = "time,ip,event,request_id\n".to_owned() + &(0..20).map(as_csv).collect::<String>();
    assert_eq!(noted(&[rule], &csv), (20.into(), true));
}

#[test]
fn repeated_messages_of_syslog_are_requests() {
    let time = "May 17 10:05:03";
    let request = access("192.0.2.1", 3);
    let name = access("a.example", 3);
    for (header, request) in [
        (format!("{time} web nginx: "), &request),
        (format!("{time} web nginx[7]: "), &request),
        (format!("<13>{time} web "), &name),
        ("2015-05-17T10:05:03+00:00 web nginx: ".to_owned(), &name),
        ("<13>1 2015-05-17T10:05:03Z web nginx 7 - - ".to_owned(), &request),
    ] {
        for (times, space) in [(1, " "), (19, " "), (19, ""), (1234, " ")] {
            let input =
                format!("{header}{request}\n{header}message repeated {times} times: [{space}{request}]\n");
            let object = json(&on_file("--json --quiet --rule 10/min", &input));
            let denied = (times + 1_u64).saturating_sub(10);
            assert_eq!(
                (&object["requests"], &object["denied"], &object["unreadable"]),
                (&(times + 1).into(), &denied.into(), &0.into()),
                "{input}"
            );
            assert_eq!(object["rules"][0]["keys"], 1);
        }
        for wrong in ["0", "1000001", "99999999999999999999"] {
            let input = format!("{header}{request}\n{header}message repeated {wrong} times: [ {request}]\n");
            let object = json(&on_file("--json --quiet --rule 10/min", &input));
            assert_fields(&object, "requests unreadable", [1, 1], "");
        }
    }
}

/// A line that its format skips is no request, also in a container and if no rule needs a field of it.
#[test]
fn lines_that_are_no_requests_are_none_in_a_container() {
    let csv = |number| format!("2015-05-17T{}Z,192.0.2.7\n", clock(number));
    let w3c = |number| format!("2015-05-17 {} 192.0.2.7 GET\n", clock(number));
    for (first, line) in [
        ("time,client\n", all(20, csv)),
        ("#Version: 1.0\n#Fields: date time c-ip cs-method\n", all(20, w3c)),
        (&*starting(0, 9), all(20, request)),
    ] {
        let log = first.to_owned() + &line;
        let wrapped = all(log.lines().count(), |number| {
            docker(log.lines().nth(number).unwrap(), number) + "\n"
        });
        for key in ["client", "all"] {
            for input in [&log, &wrapped] {
                let object = json(&on_file(&format!("{ARGS} --key {key}"), input));
                assert_fields(&object, "requests unreadable", [20, 0], format!("{key}: {input}"));
            }
        }
    }
}

/// A rotation cuts the first line of a container. The header is in the first whole message, and the cut line is unreadable.
#[test]
fn a_header_behind_a_cut_line_is_no_request() {
    let csv = |number| format!("2015-05-17T{}Z,192.0.2.7\n", clock(number));
    let log = "time,client\n".to_owned() + &all(20, csv);
    let wrapped = all(log.lines().count(), |number| {
        docker(log.lines().nth(number).unwrap(), number) + "\n"
    });
    let cut = format!("{}\n{wrapped}", &docker("2015-05-17,192.0.2.7", 0)[20..]);
    for key in ["client", "all"] {
        let object = json(&on_file(&format!("{ARGS} --key {key}"), &cut));
        assert_fields(&object, "requests unreadable", [20, 1], format!("{key}: {cut}"));
    }
}
