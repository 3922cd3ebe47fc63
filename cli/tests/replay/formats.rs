//! Equal requests in every format, with timestamps in every format, compressed or not, agree with brute force.

use crate::agreement::{models, says};
use crate::brute_force::{self, Ask, SECOND, civil};
use crate::log::{Random, START, shuffled};
use crate::tool::{json, on_pipe, tool};
use core::fmt::Write as _;

/// The steps between requests are multiples for which all models are exact.
const MILLI: i64 = 1_000_000;

/// Requests of a few users from a few addresses, in order of time.
pub(crate) fn asks(count: usize, seed: u64, step: i64) -> Vec<Ask> {
    let mut random = Random::new(seed);
    let mut at = START * SECOND;
    let ask = |_| {
        at += match random.below(60) {
            0 => random.below(60_000) as i64 * MILLI / step * step,
            1..20 => random.below(2_000) as i64 * MILLI / step * step,
            _ => 0,
        };
        Ask {
            at,
            key: format!("192.0.2.{}", random.below(random_clients(at))),
            cost: 1 + at as u64 / 7 % 4,
        }
    };
    (0..count).map(ask).collect()
}

/// The number of clients varies with the time.
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

/// Formats of time, with whether they have milliseconds.
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

pub(crate) fn combined(asks: &[Ask]) -> String {
    let lines = asks.iter().map(|ask| {
        let time = clf(ask.at);
        let size = ask.cost;
        format!(
            "{} - a b [{time}] \"GET /x\\\"y HTTP/1.1\" 200 {size} \"-\" \"agent\"\n",
            ask.key
        )
    });
    lines.collect()
}

pub(crate) fn common(asks: &[Ask]) -> String {
    combined(asks).replace(" \"-\" \"agent\"", "")
}

pub(crate) fn json_lines(asks: &[Ask], clock: Clock) -> String {
    let mut text = String::new();
    for (number, ask) in asks.iter().enumerate() {
        let time = clock(ask.at);
        // Numbers occur as text and as numbers.
        let time = if number % 2 == 0 && time.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            time
        } else {
            format!("\"{time}\"")
        };
        let address = ask
            .key
            .replace('.', if number % 3 == 0 { "\\u002e" } else { "." });
        writeln!(
            text,
            "{{\"level\":\"info\",\"ts\":{time},\"http\":{{\"from\":\"{address}\",\"bytes\":{}}},\"x\":[1,{{}}]}}",
            ask.cost
        )
        .unwrap();
    }
    text
}

pub(crate) fn csv(asks: &[Ask], clock: Clock, delimiter: char) -> String {
    let mut text = ["bytes", "from", "note", "ts"].join(&delimiter.to_string()) + "\r\n";
    for ask in asks {
        let note = if ask.cost == 1 {
            ""
        } else {
            "\"a, \"\"b\"\"; \t|c\""
        };
        // A fraction may be written with a comma.
        let time = clock(ask.at);
        let time = if time.contains(delimiter) {
            format!("\"{time}\"")
        } else {
            time
        };
        let cells = [ask.cost.to_string(), ask.key.clone(), note.to_string(), time];
        text += &cells.join(&delimiter.to_string());
        text += "\r\n";
    }
    text
}

pub(crate) fn syslog_lines(asks: &[Ask]) -> String {
    let messages = combined(asks);
    let lines = asks.iter().zip(messages.lines());
    let lines = lines.map(|(ask, message)| format!("<190>{} web nginx: {message}\n", syslog(ask.at)));
    lines.collect()
}

/// The report for these arguments and this input agrees with brute force.
pub(crate) fn agrees(args: &str, input: &str, asks: &[Ask]) {
    for (algorithm, model) in [models(20, 60)[0], models(20, 60)[1], models(20, 60)[6]] {
        let args = format!("--json --rule 20/60s {algorithm} {args}");
        let output = on_pipe(&mut tool(&args, None), input);
        let expected = brute_force::replay(asks, 20, 60 * SECOND, model);
        assert!(expected.denied > 10, "{args}");
        says(&json(&output), &expected, &args);
    }
}

#[test]
fn all_formats_and_timestamps_agree_with_brute_force() {
    for (name, clock, exact) in CLOCKS {
        let unit = if exact { MILLI } else { SECOND };
        let ordered = asks(1_000, 31, unit);
        let in_none = shuffled(ordered.clone(), 32);
        // A year is inferred from the line before, so the requests are close to each other.
        for asks in if name == "syslog" {
            vec![ordered]
        } else {
            vec![ordered, in_none]
        } {
            let free: Vec<Ask> = asks
                .iter()
                .map(|ask| Ask {
                    cost: 1,
                    ..ask.clone()
                })
                .collect();
            let said = format!("--time-format {name} --year 2020");
            let lines = json_lines(&asks, clock);
            agrees("--year 2020 --key http.from", &lines, &free);
            agrees(
                &format!("--key http.from --cost http.bytes {said}"),
                &lines,
                &asks,
            );
            for (args, delimiter) in [
                ("--year 2020", ','),
                (&said, '\t'),
                ("--year 2020", ';'),
                (&said, '|'),
            ] {
                let lines = csv(&asks, clock, delimiter);
                agrees(&format!("--key from --cost bytes {args}"), &lines, &asks);
            }
            let lines = csv(&asks, clock, ',');
            let args = format!("--key from --time-field ts --format csv {said}");
            agrees(&args, &lines, &free);
        }
    }
}

#[test]
fn log_lines_agree_with_brute_force() {
    let asks = shuffled(asks(2_000, 33, SECOND), 34);
    let free: Vec<Ask> = asks
        .iter()
        .map(|ask| Ask {
            cost: 1,
            ..ask.clone()
        })
        .collect();
    for (format, lines) in [("common", common(&asks)), ("combined", combined(&asks))] {
        for args in ["", &format!("--format {format}"), "--key remote_addr"] {
            agrees(args, &lines, &free);
        }
        agrees("--cost size", &lines, &asks);
        // One limit for all requests.
        let together: Vec<Ask> = free
            .iter()
            .map(|ask| Ask {
                key: "all".into(),
                ..ask.clone()
            })
            .collect();
        agrees("--key all", &lines, &together);
        // A key of several fields.
        let both = |ask: &Ask| format!("{},/x\\\"y,{}", ask.key, ask.cost);
        let both: Vec<Ask> = free
            .iter()
            .zip(&asks)
            .map(|(free, ask)| Ask {
                key: both(ask),
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
        says(&json(&output), &expected, "three fields");
    }
    let ordered = brute_force::in_order(&asks);
    let ordered_free = brute_force::in_order(&free);
    agrees("--year 2020", &syslog_lines(&ordered), &ordered_free);
    agrees(
        "--year 2020 --format syslog --cost size",
        &syslog_lines(&ordered),
        &ordered,
    );
}

#[test]
fn a_turn_of_the_year_is_recognized() {
    // From 31 December 2020, 23:50 on.
    let shift = 1_609_458_600 - START;
    let asks: Vec<Ask> = asks(1_500, 35, SECOND)
        .into_iter()
        .map(|ask| Ask {
            at: ask.at + shift * SECOND,
            cost: 1,
            ..ask
        })
        .collect();
    assert_eq!(civil(asks[0].at / SECOND).0, 2020);
    assert_eq!(civil(asks[1_499].at / SECOND).0, 2021);
    agrees("--year 2020", &syslog_lines(&asks), &asks);
    agrees("--year 2020 --key from", &csv(&asks, syslog, ','), &asks);
    // Without --year, the inferred year has no time in the future.
    let output = on_pipe(&mut tool("--json --rule 20/60s", None), syslog_lines(&asks));
    let object = json(&output);
    let length = object["to"].as_i64().unwrap() - object["from"].as_i64().unwrap();
    assert_eq!(length, (asks[1_499].at - asks[0].at) / MILLI);
}
