//! Generated logs.

use crate::brute_force::civil;
use crate::random::Random;

/// 2020-02-28T23:30:00Z: the leap day is half an hour away.
pub(crate) const START: i64 = 1_582_932_600;

/// A line of the combined format at `second`, with a UTC offset of `minutes`.
pub(crate) fn line_at(address: &str, second: i64, minutes: i64) -> String {
    let (year, month, day, rest) = civil(second + minutes * 60);
    let month = &"JanFebMarAprMayJunJulAugSepOctNovDec"[3 * month as usize..][..3];
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    let sign = if minutes < 0 { '-' } else { '+' };
    let (east, past) = (minutes.abs() / 60, minutes.abs() % 60);
    format!(
        "{address} - - [{day:02}/{month}/{year}:{hour:02}:{minute:02}:{second:02} {sign}{east:02}{past:02}] \
         \"GET /a\\\"b HTTP/1.1\" 200 17 \"-\" \"agent\""
    )
}

/// A line with UTC offset 0.
pub(crate) fn line(address: &str, second: i64) -> String {
    line_at(address, second, 0)
}

/// Lines of 60 clients in order of time, with bursts and pauses. Seven clients send half of the requests.
pub(crate) fn lines(count: usize, seed: u64) -> Vec<String> {
    let mut random = Random::new(seed);
    let mut second = START;
    (0..count)
        .map(|_| {
            second += match random.below(100) {
                0 => random.below(90) as i64,
                1..20 => 1,
                _ => 0,
            };
            let client = match random.below(2) {
                0 => random.below(7),
                _ => random.below(60),
            };
            let zone = random.one_of(&[0, 0, 120, -210, 345]);
            line_at(&format!("192.0.2.{client}"), second, zone)
        })
        .collect()
}

/// A random permutation of the lines.
pub(crate) fn shuffled<T>(mut lines: Vec<T>, seed: u64) -> Vec<T> {
    let mut random = Random::new(seed);
    for place in (1..lines.len()).rev() {
        lines.swap(place, random.index(place + 1));
    }
    lines
}

/// The lines as a file.
pub(crate) fn text(lines: &[String]) -> String {
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

/// Returns twenty lines.
pub(crate) fn twenty(line: impl Fn(usize) -> String) -> String {
    (0..20).map(|number| line(number) + "\n").collect()
}

/// Returns a time of day such as `10:05:03`, with the number as the second.
pub(crate) fn clock(number: usize) -> String {
    format!("10:05:{number:02}")
}

/// Returns a line of an access log that begins with `first`, usually the client.
pub(crate) fn access(first: &str, number: usize) -> String {
    let rest = "\"GET /a HTTP/1.1\" 200 57 \"-\" \"curl/8.0\"";
    format!("{first} - - [17/May/2015:{} +0000] {rest}", clock(number))
}

/// Returns a line of Docker's json-file around a message.
pub(crate) fn docker(message: &str, number: usize) -> String {
    let log = serde_json::Value::from(format!("{message}\n"));
    format!(
        r#"{{"log":{log},"stream":"stdout","time":"2015-05-17T{}.5Z"}}"#,
        clock(number)
    )
}
