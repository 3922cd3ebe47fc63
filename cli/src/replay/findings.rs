//! Warnings and notes about the inputs.

use alloc::collections::BTreeSet;
use alloc::rc::Rc;
use core::fmt;

use crate::input::client;
use crate::input::row::{Row, shown};
use crate::input::time::calendar::{self, SECOND};
use crate::rules::key::NONE;
use crate::rules::record_layout::{CLIENT, RecordLayout};

/// Findings about the inputs.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Lines that are requests.
    pub(crate) readable: u64,
    /// Lines that could not be read.
    pub(crate) unreadable: u64,
    /// Lines that are no requests of the format.
    pub(crate) others: u64,
    /// Requests outside of `--from` and `--to`.
    pub(crate) out_of_range: u64,
    /// Requests that were earlier than the request on the line before.
    pub(crate) out_of_order: u64,
    /// Wanted fields that no line has, apart from those of keys.
    pub(crate) absent: Vec<String>,
    /// Fields of keys that no line has.
    pub(crate) absent_keys: Vec<String>,
    /// Fields of keys that some requests lack, with the number of these.
    pub(crate) missing: Vec<(String, u64)>,
    /// Keys whose values are addresses with a port or marks around them.
    pub(crate) with_port: BTreeSet<String>,
    /// Keys whose values are lists of addresses.
    pub(crate) with_lists: BTreeSet<String>,
    /// A client that is a name with a number as of a port.
    pub(crate) name_with_port: Option<String>,
    /// The year of the first timestamp, if it was assumed.
    pub(crate) assumed_year: Option<i16>,
    /// Whether timestamps without a time zone were taken as UTC.
    pub(crate) assumed_utc: bool,
    /// The client of all requests, if there is only one.
    pub(crate) one_client: Option<String>,
    /// The number of clients, and one of them, if they are few and none has a public address.
    pub(crate) private_clients: Option<(usize, String)>,
    /// A field that may have the address of the client behind a proxy.
    pub(crate) forwarded: Option<String>,
    /// Inputs that end within compressed data.
    pub(crate) truncated: Vec<String>,
    /// Notes of formats.
    pub(crate) notes: Vec<String>,
    pub(crate) gaps: Gaps,
    /// The location of the first request.
    pub(crate) first: Option<Location>,
    /// The location of the last request.
    pub(crate) last: Option<Location>,
}

/// The line of a request.
#[derive(Clone, Debug)]
pub(crate) struct Location {
    time: i64,
    input: Rc<str>,
    line: u64,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}line {}", self.input, self.line)
    }
}

/// A step of which the times of a log are multiples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) nanos: i64,
    pub(crate) name: &'static str,
}

/// The steps in which logs have times, in descending order.
const STEPS: [Step; 3] = [
    Step {
        nanos: 60 * SECOND,
        name: "minute",
    },
    Step {
        nanos: SECOND,
        name: "second",
    },
    Step {
        nanos: SECOND / 1000,
        name: "millisecond",
    },
];

/// Requests from which whole minutes are no coincidence.
const NO_COINCIDENCE: u64 = 30;

/// A window is short if it has fewer steps than this number, so that more than a twentieth of it is unknown.
const SHORT: i64 = 20;

impl Step {
    /// Whether the decisions of a rule with this window, in nanoseconds, may depend on the times within the steps.
    pub(crate) const fn is_coarse(self, window: i64) -> bool {
        window < SHORT * self.nanos
    }
}

/// The longest pause between requests in order of time, and the step of their times.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    count: u64,
    /// The number of leading steps of which not all times are multiples.
    finer: usize,
    /// The times of the first and of the last request.
    pub(crate) first: i64,
    pub(crate) last: i64,
    /// The length of the pause, the requests before it, and the times at both ends.
    longest: Option<(u64, u64, i64, i64)>,
}

impl Gaps {
    /// Adds the time of the next request.
    #[inline]
    pub(crate) fn next(&mut self, time: i64) {
        if self.count == 0 {
            self.first = time;
        } else {
            let gap = time.abs_diff(self.last);
            if self.longest.is_none_or(|(longest, ..)| gap > longest) {
                self.longest = Some((gap, self.count, self.last, time));
            }
        }
        self.last = time;
        self.count += 1;
        while STEPS.get(self.finer).is_some_and(|step| time % step.nanos != 0) {
            self.finer += 1;
        }
    }

    /// The largest step of which all times are multiples; `None` if they are finer than all steps.
    pub(crate) fn step(&self) -> Option<Step> {
        let coincidence = usize::from(self.count < NO_COINCIDENCE);
        STEPS.get(self.finer.max(coincidence)).copied()
    }
}

/// Nanoseconds of a day.
const DAY: u64 = 24 * 3600 * SECOND.unsigned_abs();

/// The earliest year of a request whose time is taken as it is.
const PLAUSIBLE: i16 = 1990;

impl Findings {
    /// Notes the line of a request if it is the first or the last one in time.
    #[inline]
    pub(crate) fn locate(&mut self, time: i64, input: &Rc<str>, line: u64) {
        let here = || Location {
            time,
            input: Rc::clone(input),
            line,
        };
        if self.first.as_ref().is_none_or(|first| time < first.time) {
            self.first = Some(here());
        }
        if self.last.as_ref().is_none_or(|last| time > last.time) {
            self.last = Some(here());
        }
    }

    /// Reasons to doubt the figures.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = self.truncated.clone();
        let all = self.readable + self.unreadable;
        if self.unreadable.saturating_mul(100) > all {
            #[expect(clippy::cast_precision_loss, reason = "for people")]
            let percent = self.unreadable as f64 * 100.0 / all as f64;
            warnings.push(format!(
                "{} of {all} lines ({percent:.1} %) are unreadable and not counted (standard error shows the first)",
                self.unreadable
            ));
        }
        if let Some(client) = &self.one_client {
            let option = match &self.forwarded {
                Some(field) => format!("--key {field} counts by the address that a proxy forwards"),
                None => "behind a proxy, --key FIELD, --log-format or --pattern names the address that it forwards".into(),
            };
            warnings.push(format!(
                "every request has the client \"{client}\", so all share one limit: {option}"
            ));
        }
        if let (Some((clients, client)), Some(field)) = (&self.private_clients, &self.forwarded) {
            warnings.push(format!(
                "all {clients} clients have private addresses, as \"{client}\", which may be those of proxies: --key {field} counts by \
                 the address that a proxy forwards"
            ));
        }
        for field in &self.with_lists {
            warnings.push(format!(
                "values of {field:?} are lists of addresses, of which a client chooses the first ones, and each list is a key (--pattern \
                 takes one address, as the last by (?<address>[^ ,\"]+)\")"
            ));
        }
        for field in &self.absent_keys {
            warnings.push(format!(
                "no line has the field {field:?} of a key: its value is {NONE} for all requests"
            ));
        }
        warnings.extend(self.missing(true));
        warnings.extend(self.stray());
        if calendar::year(self.gaps.first) < PLAUSIBLE {
            warnings.push(format!(
                "the first request is at {}: if the field is not its time, name one by --time-field",
                calendar::text(self.gaps.first)
            ));
        }
        warnings
    }

    /// Fields of keys that requests lack: with `many`, those that more than 1 % of the requests lack, otherwise the rest.
    fn missing(&self, many: bool) -> impl Iterator<Item = String> {
        let fields = self.missing.iter();
        let fields = fields.filter(move |(_, requests)| (requests * 100 > self.readable) == many);
        fields.map(|(field, requests)| {
            format!("requests without the field {field:?}, which share the key {NONE}: {requests}")
        })
    }

    /// A few requests that are far before or after all others.
    fn stray(&self) -> Option<String> {
        let gaps = &self.gaps;
        let (gap, before, from, to) = gaps.longest?;
        let after = gaps.count - before;
        let few = before.min(after);
        if gap < DAY || gap < gaps.last.abs_diff(gaps.first) / 2 || few * 10 > gaps.count {
            return None;
        }
        let (which, location, option, time, side) = match before < after {
            true => (gaps.first, &self.first, "--from", to, "before"),
            false => (gaps.last, &self.last, "--to", to, "after"),
        };
        let location = location
            .as_ref()
            .map_or_else(String::new, |location| format!(" ({location})"));
        let days = gap / DAY;
        let requests = if few == 1 {
            "1 request".to_owned()
        } else {
            format!("{few} requests")
        };
        debug_assert!(from <= to, "in order");
        Some(format!(
            "{requests}, as that at {}{location}, {} {days} days {side} all others ({option} {} leaves {} out)",
            calendar::text(which),
            if few == 1 { "is" } else { "are" },
            calendar::text(time),
            if few == 1 { "it" } else { "them" },
        ))
    }

    /// Facts about the inputs.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        if let Some(year) = self.assumed_year {
            notes.push(format!(
                "timestamps have no year: the first is taken to be in {year} (--year sets another)"
            ));
        }
        if self.assumed_utc {
            notes.push(
                "timestamps without a time zone are taken as UTC (--utc-offset sets another)".to_owned(),
            );
        }
        if self.out_of_order > 0 {
            notes.push(format!(
                "input not in order of time: {} requests were earlier than the one before (all were sorted)",
                self.out_of_order
            ));
        }
        if self.others > 0 {
            notes.push(format!("{} lines are no requests of the format", self.others));
        }
        if self.out_of_range > 0 {
            notes.push(format!(
                "{} requests are outside of --from and --to, and left out",
                self.out_of_range
            ));
        }
        for field in &self.absent {
            notes.push(format!(
                "no line has the field {field:?}: its value is {NONE} for all requests"
            ));
        }
        notes.extend(self.missing(false));
        for field in &self.with_port {
            notes.push(format!(
                "values of {field:?} are addresses with a port, brackets or a slash, so a client may have a key for each \
                 connection (--key client leaves these out, and --alias client={field} says which field is the client)"
            ));
        }
        if let Some(name) = &self.name_with_port {
            notes.push(format!(
                "clients are names that may have ports, as \"{name}\": if so, each connection is a key (--pattern names the part before it)"
            ));
        }
        notes
    }
}

/// Other names of an address of the client.
const NAMES: [&str; 6] = ["remote_addr", "client_ip", "remote_ip", "ip", "address", CLIENT];

/// Requests of one client from which a public address is no coincidence.
const MANY: u64 = 30;

/// The most clients that may be the proxies of one service.
const PROXIES: usize = 8;

/// The clients of all requests, if they are few.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    /// The place of the client in a row; `None` if no key is the client, or there are many clients.
    place: Option<usize>,
    few: Vec<Vec<u8>>,
}

impl Clients {
    pub(crate) fn new(layout: &RecordLayout) -> Self {
        let mut keys = layout.keys().flat_map(|(_, fields, _)| fields);
        let place = keys.find(|place| NAMES.contains(&layout.fields[**place].as_str()));
        Self {
            place: place.copied(),
            few: Vec::new(),
        }
    }

    /// Adds the client of a request.
    #[inline]
    pub(crate) fn add(&mut self, row: &Row) {
        let Some(place) = self.place else { return };
        let value = row.get(place).unwrap_or_default();
        if self.few.iter().any(|known| known == value) {
            return;
        }
        self.few.push(value.to_vec());
        if self.few.len() > PROXIES {
            self.place = None;
        }
    }

    /// The number of clients and the first one, if there are several and none has a public address.
    pub(crate) fn few_private(&self) -> Option<(usize, String)> {
        self.place?;
        let is_private = |client: &Vec<u8>| client::is_address(client) && !client::is_public(client);
        let first = self.few.first().filter(|_| self.few.len() > 1)?;
        self.few
            .iter()
            .all(is_private)
            .then(|| (self.few.len(), shown(first)))
    }

    /// The client of all requests, if there is only one, and it is likely to be that of a proxy.
    pub(crate) fn only(&self, requests: u64) -> Option<String> {
        let [first] = &self.few[..] else { return None };
        let is_public = client::address(first).is_some_and(client::is_public);
        let least = if is_public { MANY } else { 2 };
        (requests >= least && !first.is_empty()).then(|| shown(first))
    }
}
