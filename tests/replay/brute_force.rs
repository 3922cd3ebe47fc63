//! What the tool must find, worked out from nothing: its own parser, its own calendar, and limiters
//! that look at every admission there was. It names nothing of the crate.

use alloc::collections::{BTreeMap, VecDeque};

/// How a naive limiter decides: by all its admissions so far (in seconds; it may forget what no
/// longer counts), and the time of the request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Model {
    /// An admission at s counts at t when t - W < s <= t.
    Log,
    /// Admissions in the current cell of W/N and in those before it, `summed` in all. With
    /// `shares`, the current cell alone holds at most L/N, too; N divides L.
    Cells { cells: i64, summed: i64, shares: bool },
    /// A bucket of L that drains at L/W.
    Bucket,
}

/// What is printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) requests: u64,
    pub(crate) admitted: u64,
    pub(crate) denied: u64,
    pub(crate) keys: u64,
    pub(crate) first: String,
    pub(crate) last: String,
    /// Key, requests, denied.
    pub(crate) denied_by_key: Vec<(String, u64, u64)>,
}

#[derive(Default)]
struct Client {
    admitted: VecDeque<i64>,
    requests: u64,
    denied: u64,
}

/// Replays well-formed lines with `limit` requests in `window` seconds.
pub(crate) fn replay(log: &str, limit: i64, window: i64, model: Model) -> Found {
    let mut requests: Vec<(i64, &str)> = log.lines().map(parse).collect();
    requests.sort_by_key(|&(at, _)| at);
    let mut clients: BTreeMap<&str, Client> = BTreeMap::new();
    for &(at, key) in &requests {
        let client = clients.entry(key).or_default();
        client.requests += 1;
        if admits(model, &mut client.admitted, at, limit, window) {
            client.admitted.push_back(at);
        } else {
            client.denied += 1;
        }
    }
    let denied = clients.values().map(|client| client.denied).sum();
    let mut denied_by_key: Vec<(String, u64, u64)> = clients
        .iter()
        .filter(|(_, client)| client.denied > 0)
        .map(|(key, client)| ((*key).to_string(), client.requests, client.denied))
        .collect();
    // Stable: equal ones stay in the order of their keys.
    denied_by_key.sort_by_key(|&(_, _, denied)| u64::MAX - denied);
    denied_by_key.truncate(20);
    Found {
        requests: requests.len() as u64,
        admitted: requests.len() as u64 - denied,
        denied,
        keys: clients.len() as u64,
        first: rfc3339(requests[0].0),
        last: rfc3339(requests[requests.len() - 1].0),
        denied_by_key,
    }
}

fn admits(model: Model, admitted: &mut VecDeque<i64>, at: i64, limit: i64, window: i64) -> bool {
    match model {
        Model::Log => {
            while admitted.front().is_some_and(|&s| s <= at - window) {
                admitted.pop_front();
            }
            (admitted.len() as i64) < limit
        }
        Model::Cells {
            cells,
            summed,
            shares,
        } => {
            // A cell is W/N long, and one begins at each multiple of W since 1970.
            let cell = |s: i64| (s * cells).div_euclid(window);
            while admitted.front().is_some_and(|&s| cell(s) <= cell(at) - summed) {
                admitted.pop_front();
            }
            let newest = admitted.iter().filter(|&&s| cell(s) == cell(at)).count() as i64;
            (admitted.len() as i64) < limit && !(shares && newest >= limit / cells)
        }
        Model::Bucket => {
            // When the bucket is empty again, in L-ths of a second; one request is W of them.
            let empty = admitted
                .iter()
                .fold(i64::MIN, |empty, &s| empty.max(s * limit) + window);
            empty.max(at * limit) + window <= at * limit + limit * window
        }
    }
}

/// The time and the address of a line.
fn parse(line: &str) -> (i64, &str) {
    let (address, rest) = line.split_once(' ').expect("an address and more");
    let (_, rest) = rest.split_once('[').expect("a time");
    let (stamp, _) = rest.split_once(']').expect("a time that ends");
    let fields: Vec<&str> = stamp.split(['/', ':', ' ']).collect();
    let number = |field: &str| field.parse::<i64>().expect("a number");
    let month = "JanFebMarAprMayJunJulAugSepOctNovDec"
        .find(fields[1])
        .expect("a month") as i64
        / 3;
    let days = (1970..number(fields[2])).map(days_of).sum::<i64>()
        + (0..month)
            .map(|month| days_in(number(fields[2]), month))
            .sum::<i64>()
        + number(fields[0])
        - 1;
    let local = ((days * 24 + number(fields[3])) * 60 + number(fields[4])) * 60 + number(fields[5]);
    let (sign, offset) = fields[6].split_at(1);
    let offset = (number(&offset[..2]) * 60 + number(&offset[2..])) * 60;
    (
        if sign == "-" {
            local + offset
        } else {
            local - offset
        },
        address,
    )
}

/// Year, month from 0, day from 1, and second of the day.
pub(crate) fn civil(second: i64) -> (i64, i64, i64, i64) {
    let (mut year, mut month, mut day) = (1970, 0, second / 86_400);
    while day >= days_of(year) {
        day -= days_of(year);
        year += 1;
    }
    while day >= days_in(year, month) {
        day -= days_in(year, month);
        month += 1;
    }
    (year, month, day + 1, second % 86_400)
}

fn rfc3339(second: i64) -> String {
    let (year, month, day, rest) = civil(second);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!(
        "{year}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z",
        month + 1
    )
}

fn days_of(year: i64) -> i64 {
    337 + days_in(year, 1)
}

/// Days in a month, counted from 0.
fn days_in(year: i64, month: i64) -> i64 {
    match month {
        1 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        1 => 28,
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    }
}
