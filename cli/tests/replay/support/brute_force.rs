//! The expected reports, computed without the crate: with a separate parser and calendar, and with limiters that read
//! every admission.

use alloc::collections::{BTreeMap, VecDeque};
use core::time::Duration;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Nanoseconds since 1970.
    pub(crate) at: i64,
    pub(crate) key: String,
    pub(crate) cost: u64,
}

/// A naive limiter, which decides by the admissions so far and the time of the request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Model {
    /// An admission at s counts at t when t - W < s <= t.
    Log,
    /// Counts the admissions in `summed` cells of W/N, the last of which is the current cell. With `shares`, the current
    /// cell admits at most L/N. N divides L.
    Cells { cells: i64, summed: i64, shares: bool },
    /// Units of permits in cells: a unit counts in the cell of its last permit, and the permits of a unit that is not full until
    /// the cell of the last of them no longer counts.
    Word,
    /// A bucket of L permits that drains at the rate L/W.
    Bucket,
}

/// The cells of a [`Model::Word`] in nanoseconds, and its unit. The library documents how they are chosen, and tests it.
#[derive(Clone, Copy)]
struct Units {
    origin: i64,
    cells: i64,
    width: i64,
    unit: u64,
}

impl Units {
    fn new(first: i64, limit: i64, window: i64) -> Self {
        let length = Duration::from_nanos(window.unsigned_abs());
        let quota = ringgate::Quota::new(limit.unsigned_abs(), length).expect("a quota");
        let ring = ringgate::UnitRing::new(quota).expect("a ring");
        let cells = ring.cells().cast_signed();
        Self {
            // The readings of the tool count from a multiple of the window.
            origin: first.div_euclid(window) * window,
            cells,
            width: (window + cells - 1) / cells,
            unit: ring.unit(),
        }
    }

    /// The permits that count at `at`.
    fn counted(self, admitted: &VecDeque<(i64, u64)>, at: i64) -> u64 {
        let cell = |s: i64| (s - self.origin) / self.width;
        let counts = |own: i64, now: i64| own + self.cells >= now;
        let (mut units, mut rest, mut last) = (Vec::new(), 0, 0);
        for &(s, cost) in admitted {
            rest = cost + if counts(last, cell(s)) { rest } else { 0 };
            last = cell(s);
            units.extend((0..rest / self.unit).map(|_| last));
            rest %= self.unit;
        }
        let units = units.iter().filter(|own| counts(**own, cell(at))).count() as u64;
        self.unit * units + if counts(last, cell(at)) { rest } else { 0 }
    }
}

/// The expected report of one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExpectedKey {
    pub(crate) key: String,
    pub(crate) requests: u64,
    pub(crate) denied: u64,
    /// Milliseconds.
    pub(crate) first_denied: Option<i64>,
    pub(crate) last_denied: Option<i64>,
    /// The most permits that were requested in one window.
    pub(crate) worst: u64,
}

impl ExpectedKey {
    /// The order of keys: denials, then the peak demand, then requests.
    pub(crate) fn rank(&self) -> (u64, u64, u64) {
        (self.denied, self.worst, self.requests)
    }
}

/// The expected report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) requests: u64,
    pub(crate) denied: u64,
    /// The most permits that a key was admitted in one window.
    pub(crate) worst: u64,
    /// Milliseconds.
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) keys: Vec<ExpectedKey>,
    /// The decision about each request, in order of time.
    pub(crate) verdicts: Vec<bool>,
}

#[derive(Default)]
struct Client {
    /// Times and costs of admissions, without some of those that have expired.
    admitted: VecDeque<(i64, u64)>,
    /// All admissions.
    asked: Vec<(i64, u64)>,
    charged: Vec<(i64, u64)>,
    found: ExpectedKey,
}

pub(crate) const SECOND: i64 = 1_000_000_000;

/// Sorts requests by time. Requests of equal time keep their order.
pub(crate) fn in_order(requests: &[Request]) -> Vec<Request> {
    let mut requests = requests.to_vec();
    requests.sort_by_key(|request| request.at);
    requests
}

/// Replays requests with `limit` permits in `window` nanoseconds.
pub(crate) fn replay(requests: &[Request], limit: i64, window: i64, model: Model) -> Expected {
    let requests = in_order(requests);
    let mut clients: BTreeMap<&str, Client> = BTreeMap::new();
    let mut verdicts = Vec::new();
    let units = matches!(model, Model::Word).then(|| Units::new(requests[0].at, limit, window));
    for request in &requests {
        let client = clients.entry(&request.key).or_default();
        client.asked.push((request.at, request.cost));
        client.found.requests += 1;
        let admitted = match units {
            Some(units) => {
                let counted = units.counted(&client.admitted, request.at);
                request.cost == 0 || counted + request.cost <= limit.unsigned_abs()
            }
            None => admits(model, &mut client.admitted, request, limit, window),
        };
        verdicts.push(admitted);
        if admitted {
            client.admitted.push_back((request.at, request.cost));
            client.charged.push((request.at, request.cost));
        } else {
            client.found.denied += 1;
            let at = request.at.div_euclid(1_000_000);
            client.found.first_denied.get_or_insert(at);
            client.found.last_denied = Some(at);
        }
    }
    let worst = clients.values().map(|client| most(&client.charged, window)).max();
    let keys: Vec<ExpectedKey> = clients
        .into_iter()
        .map(|(key, client)| ExpectedKey {
            key: key.to_string(),
            worst: most(&client.asked, window),
            ..client.found
        })
        .collect();
    Expected {
        requests: requests.len() as u64,
        denied: keys.iter().map(|key| key.denied).sum(),
        worst: worst.unwrap_or(0),
        from: requests[0].at.div_euclid(1_000_000),
        to: requests[requests.len() - 1].at.div_euclid(1_000_000),
        keys,
        verdicts,
    }
}

/// Returns the permits that count at `at`.
pub(crate) fn counted(taken: &[(i64, u64)], at: i64, window: i64) -> u64 {
    let counts = taken.iter().filter(|&&(s, _)| at - window < s && s <= at);
    counts.map(|&(_, cost)| cost).sum()
}

/// Returns the most permits in one window. A window that ends with a request has the maximum.
pub(crate) fn most(taken: &[(i64, u64)], window: i64) -> u64 {
    let mut start = 0;
    let mut inside = 0;
    let mut most = 0;
    for &(at, cost) in taken {
        inside += cost;
        while taken[start].0 <= at - window {
            inside -= taken[start].1;
            start += 1;
        }
        most = most.max(inside);
    }
    most
}

fn admits(
    model: Model,
    admitted: &mut VecDeque<(i64, u64)>,
    request: &Request,
    limit: i64,
    window: i64,
) -> bool {
    let wide = |number: i64| i128::from(number);
    let (at, cost) = (request.at, i128::from(request.cost));
    let sum =
        |taken: &mut dyn Iterator<Item = &(i64, u64)>| taken.map(|&(_, cost)| i128::from(cost)).sum::<i128>();
    if cost == 0 {
        return true;
    }
    match model {
        Model::Log => {
            while admitted.front().is_some_and(|&(s, _)| s <= at - window) {
                admitted.pop_front();
            }
            sum(&mut admitted.iter()) + cost <= wide(limit)
        }
        Model::Cells {
            cells,
            summed,
            shares,
        } => {
            // A cell is W/N long. The cells are aligned so that one begins at each multiple of W since 1970.
            let cell = |s: i64| (wide(s) * wide(cells)).div_euclid(wide(window));
            while admitted
                .front()
                .is_some_and(|&(s, _)| cell(s) <= cell(at) - wide(summed))
            {
                admitted.pop_front();
            }
            let newest = sum(&mut admitted.iter().filter(|&&(s, _)| cell(s) == cell(at)));
            sum(&mut admitted.iter()) + cost <= wide(limit)
                && !(shares && newest + cost > wide(limit / cells))
        }
        Model::Word => unreachable!("it is decided by its units"),
        Model::Bucket => {
            // The time at which the bucket is empty, in units of 1/L nanoseconds. A permit takes W units.
            let empty = admitted.iter().fold(i128::MIN / 2, |empty, &(s, cost)| {
                empty.max(wide(s) * wide(limit)) + i128::from(cost) * wide(window)
            });
            let then = empty.max(wide(at) * wide(limit)) + cost * wide(window);
            then <= wide(at) * wide(limit) + wide(limit) * wide(window)
        }
    }
}

/// Returns the requests of a log in the common or combined format.
pub(crate) fn requests(log: &str) -> Vec<Request> {
    log.lines().map(parse).collect()
}

/// Parses the time and the address of a line.
fn parse(line: &str) -> Request {
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
    let second = if sign == "-" {
        local + offset
    } else {
        local - offset
    };
    Request {
        at: second * SECOND,
        key: address.to_string(),
        cost: 1,
    }
}

/// Returns the year, the month from 0, the day from 1, and the second of the day.
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

fn days_of(year: i64) -> i64 {
    337 + days_in(year, 1)
}

/// Returns the days in a month, which is counted from 0.
fn days_in(year: i64, month: i64) -> i64 {
    match month {
        1 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        1 => 28,
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    }
}
