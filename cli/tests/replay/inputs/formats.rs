//! Equal requests in every format, with timestamps in every format, compressed or not, agree with brute force.

use crate::agreement::{assert_report, models};
use crate::brute_force::{self, Request, SECOND, civil};
use crate::log::{START, shuffled};
use crate::random::Random;
use crate::tool::{json, on_pipe, tool};
use core::fmt::Write as _;

/// The step between the times of requests. All models are exact for its multiples.
const MILLI: i64 = 1_000_000;

/// Returns requests of a few users from a few addresses, in order of time.
pub(crate) fn requests(count: usize, seed: u64, step: i64) -> Vec<Request> {
    let mut random = Random::new(seed);
    let mut at = START * SECOND;
    let request = |_| {
        at += match random.below(60) {
            0 => random.below(60_000) as i64 * MILLI / step * step,
            1..20 => random.below(2_000) as i64 * MILLI / step * step,
            _ => 0,
        };
        Request {
            at,
            key: format!("192.0.2.{}", random.below(random_clients(at))),
            cost: 1 + at as u64 / 7 % 4,
        }
    };
    (0..count).map(request).collect()
}

/// The requests with a cost of one.
pub(crate) fn free(requests: &[Request]) -> Vec<Request> {
    let one = |request: &Request| Request {
        cost: 1,
        ..request.clone()
    };
    requests.iter().map(one).collect()
}

/// Returns the number of clients at a time.
fn random_clients(at: i64) -> u64 {
    if at / (600 * SECOND) % 2 == 0 { 5 } else { 30 }
}

/// A time in nanoseconds since 1970 as text.
pub(crate) type Clock = fn(i64) -> String;

fn parts(at: i64) -> (i64, i64, i64, i64, i64, i64) {
    let (year, month, day, rest) = civil(at / SECOND);
    (year, month, day, rest / 3600, rest / 60 % 60, rest % 60)
}

const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";

pub(crate) fn clf(at: i64) -> String {
    let (year, month, day, hour, minute, second) = parts(at + 7200 * SECOND);
    let month = &MONTHS[3 * month as usize..][..3];
    format!("{day:02}/{month}/{year}:{hour:02}:{minute:02}:{second:02} +0200")
}

pub(crate) fn rfc3339(at: i64) -> String {
    let (year, month, day, hour, minute, second) = parts(at - 12_600 * SECOND);
    let milli = at / MILLI % 1_000;
    format!(
        "{year}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}-03:30",
        month + 1
    )
}

fn without_zone(at: i64) -> String {
    let (year, month, day, hour, minute, second) = parts(at);
    let milli = at / MILLI % 1_000;
    format!(
        "{year}-{:02}-{day:02} {hour:02}:{minute:02}:{second:02},{milli:03}",
        month + 1
    )
}

pub(crate) fn syslog(at: i64) -> String {
    let (_, month, day, hour, minute, second) = parts(at);
    let month = &MONTHS[3 * month as usize..][..3];
    format!("{month} {day:2} {hour:02}:{minute:02}:{second:02}")
}

pub(crate) fn seconds(at: i64) -> String {
    format!("{}.{:03}", at / SECOND, at / MILLI % 1_000)
}

/// Formats of timestamps, and whether they have milliseconds.
const CLOCKS: [(&str, Clock, bool); 8] = [
    ("clf", clf, false),
    ("rfc3339", rfc3339, true),
    ("rfc3339", without_zone, true),
    ("s", seconds, true),
    ("ms", |at| format!("{}", at / MILLI), true),
    ("us", |at| format!("{}", at / 1_000), true),
    ("ns", |at| format!("{at}"), true),
    ("syslog", syslog, false),
];

pub(crate) fn combined(requests: &[Request]) -> String {
    let lines = requests.iter().map(|request| {
        let time = clf(request.at);
        let size = request.cost;
        format!(
            "{} - a b [{time}] \"GET /x\\\"y HTTP/1.1\" 200 {size} \"-\" \"agent\"\n",
            request.key
        )
    });
    lines.collect()
}

pub(crate) fn common(requests: &[Request]) -> String {
    combined(requests).replace(" \"-\" \"agent\"", "")
}

pub(crate) fn json_lines(requests: &[Request], clock: Clock) -> String {
    let mut text = String::new();
    for (number, request) in requests.iter().enumerate() {
        let time = clock(request.at);
        // Numbers occur as text and as numbers.
        let time = if number % 2 == 0 && time.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            time
        } else {
            format!("\"{time}\"")
        };
        let address = request
            .key
            .replace('.', if number % 3 == 0 { "\\u002e" } else { "." });
        writeln!(
            text,
            "{{\"level\":\"info\",\"ts\":{time},\"http\":{{\"from\":\"{address}\",\"bytes\":{}}},\"x\":[1,{{}}]}}",
            request.cost
        )
        .unwrap();
    }
    text
}

pub(crate) fn csv(requests: &[Request], clock: Clock, delimiter: char) -> String {
    let mut text = ["bytes", "from", "note", "ts"].join(&delimiter.to_string()) + "\r\n";
    for request in requests {
        let note = if request.cost == 1 {
            ""
        } else {
            "\"a, \"\"b\"\"; \t|c\""
        };
        // A fraction may be written with a comma.
        let time = clock(request.at);
        let time = if time.contains(delimiter) {
            format!("\"{time}\"")
        } else {
            time
        };
        let cells = [
            request.cost.to_string(),
            request.key.clone(),
            note.to_string(),
            time,
        ];
        text += &cells.join(&delimiter.to_string());
        text += "\r\n";
    }
    text
}

pub(crate) fn syslog_lines(requests: &[Request]) -> String {
    let messages = combined(requests);
    let lines = requests.iter().zip(messages.lines());
    let lines = lines.map(|(request, message)| format!("<190>{} web nginx: {message}\n", syslog(request.at)));
    lines.collect()
}

/// Asserts that the report by an algorithm, for these arguments and this input, agrees with brute force. The algorithms are an
/// exact log, the default one, and a ring of equal shares.
fn assert_one_agrees(algorithm: usize, args: &str, input: &str, requests: &[Request]) {
    let models = models(20, 60);
    let model = |algorithm| {
        *models
            .iter()
            .find(|(name, _)| *name == algorithm)
            .expect("a model")
    };
    // A rule with a cost or without a key counts in 60 cells.
    let in_cells = args.contains("--cost") || args.contains("--key all");
    let default = ("", model(if in_cells { "--algorithm counter" } else { "" }).1);
    let algorithms = [model("--algorithm log"), default, model("--algorithm even")];
    let (algorithm, model) = algorithms[algorithm];
    let args = format!("--json --rule 20/60s {algorithm} {args}");
    let output = on_pipe(&mut tool(&args, None), input);
    let expected = brute_force::replay(requests, 20, 60 * SECOND, model);
    assert!(expected.denied > 10, "{args}");
    assert_report(&json(&output), &expected, &args);
}

/// Asserts that the reports by three algorithms, for these arguments and this input, agree with brute force.
pub(crate) fn assert_agrees(args: &str, input: &str, requests: &[Request]) {
    for algorithm in 0..3 {
        assert_one_agrees(algorithm, args, input, requests);
    }
}

#[test]
fn all_formats_and_timestamps_agree_with_brute_force() {
    // An algorithm gets times and keys, whatever their format. So each input has one of the algorithms. They take turns, and each
    // format meets all of them, because a round has seven inputs.
    let mut turn = 0;
    let mut assert_agrees = |args: &str, input: &str, requests: &[Request]| {
        assert_one_agrees(turn % 3, args, input, requests);
        turn += 1;
    };
    for (name, clock, exact) in CLOCKS {
        let unit = if exact { MILLI } else { SECOND };
        let ordered = requests(1_500, 31, unit);
        let in_none = shuffled(ordered.clone(), 32);
        // The year of a line is inferred from the line before, so the requests have to be close to each other.
        for requests in if name == "syslog" {
            vec![ordered]
        } else {
            vec![ordered, in_none]
        } {
            let free = free(&requests);
            let message = format!("--time-format {name} --year 2020");
            let lines = json_lines(&requests, clock);
            assert_agrees("--year 2020 --key http.from", &lines, &free);
            assert_agrees(
                &format!("--key http.from --cost http.bytes {message}"),
                &lines,
                &requests,
            );
            for (args, delimiter) in [
                ("--year 2020", ','),
                (&message, '\t'),
                ("--year 2020", ';'),
                (&message, '|'),
            ] {
                let lines = csv(&requests, clock, delimiter);
                assert_agrees(&format!("--key from --cost bytes {args}"), &lines, &requests);
            }
            let lines = csv(&requests, clock, ',');
            let args = format!("--key from --time-field ts --format csv {message}");
            assert_agrees(&args, &lines, &free);
        }
    }
    // Seven formats, by eight clocks; those with a year also in no order.
    assert_eq!(turn, 7 * 15);
}

#[test]
fn log_lines_agree_with_brute_force() {
    let requests = shuffled(requests(2_000, 33, SECOND), 34);
    let free = free(&requests);
    for (format, lines) in [("common", common(&requests)), ("combined", combined(&requests))] {
        for args in ["", &format!("--format {format}"), "--key remote_addr"] {
            assert_agrees(args, &lines, &free);
        }
        assert_agrees("--cost size", &lines, &requests);
        // One limit for all requests.
        let together: Vec<Request> = free
            .iter()
            .map(|request| Request {
                key: "all".into(),
                ..request.clone()
            })
            .collect();
        assert_agrees("--key all", &lines, &together);
        // A key of several fields.
        let both = |request: &Request| format!("{},/x\\\"y,{}", request.key, request.cost);
        let both: Vec<Request> = free
            .iter()
            .zip(&requests)
            .map(|(free, request)| Request {
                key: both(request),
                ..free.clone()
            })
            .collect();
        let output = on_pipe(
            &mut tool(
                "--json --rule 3/600s --algorithm log --key client,path,size",
                None,
            ),
            &lines,
        );
        let expected = brute_force::replay(&both, 3, 600 * SECOND, brute_force::Model::Log);
        assert_report(&json(&output), &expected, "three fields");
    }
    let ordered = brute_force::in_order(&requests);
    let ordered_free = brute_force::in_order(&free);
    assert_agrees("--year 2020", &syslog_lines(&ordered), &ordered_free);
    assert_agrees(
        "--year 2020 --format syslog --cost size",
        &syslog_lines(&ordered),
        &ordered,
    );
}

#[test]
fn a_turn_of_the_year_is_recognized() {
    // The requests begin at 23:50 on 31 December 2020.
    let shift = 1_609_458_600 - START;
    let requests: Vec<Request> = requests(1_500, 35, SECOND)
        .into_iter()
        .map(|request| Request {
            at: request.at + shift * SECOND,
            cost: 1,
            ..request
        })
        .collect();
    assert_eq!(civil(requests[0].at / SECOND).0, 2020);
    assert_eq!(civil(requests[1_499].at / SECOND).0, 2021);
    assert_agrees("--year 2020", &syslog_lines(&requests), &requests);
    assert_agrees("--year 2020 --key from", &csv(&requests, syslog, ','), &requests);
    // Without --year, the inferred year has no time in the future.
    let output = on_pipe(&mut tool("--json --rule 20/60s", None), syslog_lines(&requests));
    let object = json(&output);
    let length = object["to"].as_i64().unwrap() - object["from"].as_i64().unwrap();
    assert_eq!(length, (requests[1_499].at - requests[0].at) / MILLI);
}
