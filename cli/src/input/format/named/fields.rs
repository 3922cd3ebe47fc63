//! Fields of formats that name them: which names the wanted fields and the time have in an input.

use crate::failure::Failure;
use crate::input::client;
use crate::input::format::WantedFields;
use crate::input::format::columns::{self, Part, REQUEST, Standard};
use crate::input::row::{Row, Unreadable, shown};
use crate::input::time::calendar::SECOND;
use crate::input::time::infer_year::YearInference;
use crate::input::time::timestamp::{TimestampFormat, TimestampParser};

/// Names of the client's address, for rules that count by `client`. Of several, the first whose value is an address.
const CLIENT: &str = "client remote_addr client_ip clientip remote_ip ip address client.ip source.ip addr remote \
                      remote_address src_ip source_ip ClientHost ClientIP request.client_ip request.remote_ip \
                      request.remote_addr httpRequest.remoteIp req.remoteAddress host";

/// A name that is also that of servers and virtual hosts, so it is that of the client only if it is an address.
const HOST: &str = "host";

/// Names of the address that a proxy forwards.
const FORWARDED: &str = "x_forwarded_for http_x_forwarded_for X-Forwarded-For request.headers.X-Forwarded-For \
                         request_X-Forwarded-For headers.x-forwarded-for forwarded_for";

/// Names of the time, where `--time-field` is not given.
const TIME: &str = "StartUTC EdgeStartTimestamp time timestamp @timestamp ts datetime date time_iso8601 time_local \
                    start_time msec t";

/// Other names of the tool's own fields.
const OTHERS: &[Standard] = &[
    ("user", "remote_user user_id username ClientUsername", Part::Whole),
    (
        "method",
        "request_method RequestMethod request.method http.request.method httpRequest.requestMethod",
        Part::Whole,
    ),
    ("target", "request_uri RequestPath request.uri url", Part::Whole),
    (
        "path",
        "RequestPath request.uri request_uri uri url.path url target httpRequest.requestUrl",
        Part::Path,
    ),
    (
        "protocol",
        "server_protocol RequestProtocol request.proto",
        Part::Whole,
    ),
    (
        "status",
        "status_code DownstreamStatus response_code http.response.status_code httpRequest.status",
        Part::Whole,
    ),
    (
        "size",
        "body_bytes_sent bytes_sent DownstreamContentSize bytes",
        Part::Whole,
    ),
    (
        "referer",
        "http_referer request_Referer request.headers.Referer",
        Part::Whole,
    ),
    (
        "agent",
        "http_user_agent user_agent request_User-Agent request.headers.User-Agent",
        Part::Whole,
    ),
    ("vhost", "RequestHost request.host http_host", Part::Whole),
];

/// Lines whose values are checked.
const LOOKED_AT: usize = 100;

/// How a row is completed after the fields of a line were read.
#[derive(Debug)]
pub(crate) struct NamedFields {
    /// The name of the time's field, and its place in a row.
    time: String,
    time_place: usize,
    /// Places with the value of another place: from the first to the second.
    copies: Vec<(usize, usize)>,
    /// Places with a part of the value.
    parts: Vec<(usize, Part)>,
    /// The place of a client that must be an address, and its name in the input.
    client: Option<(usize, String)>,
    /// The name of the client's field, and a value of it that is no address.
    client_is: Option<(&'static str, Option<String>)>,
    /// A field with the address that a proxy forwards.
    forwarded: Option<&'static str>,
}

impl NamedFields {
    /// Finds the names of the wanted fields and of the time in an input with the fields `names`. `values` returns the values
    /// of a field in the first lines. Returns each name once, with its place in a row.
    ///
    /// # Errors
    ///
    /// When no field is known to be the time or the client.
    pub(crate) fn resolve(
        wanted: &WantedFields,
        names: &[String],
        values: impl Fn(&str) -> Vec<Vec<u8>>,
    ) -> Result<(Self, Vec<(String, usize)>), Failure> {
        // An object or an array is not a value.
        let has = |name: &str| values(name).iter().any(|value| !is_nested(value));
        let time = match &wanted.time {
            Some(time) => time.clone(),
            // A field that is called time may be a duration.
            None => known(TIME, |name| values(name).iter().any(|value| is_recent(value)))
                .or_else(|| known(TIME, has))
                .ok_or_else(|| no_time(names))?
                .to_owned(),
        };
        let mut found = Self {
            time: time.clone(),
            time_place: wanted.time_place,
            copies: Vec::new(),
            parts: Vec::new(),
            client: None,
            client_is: None,
            forwarded: known(FORWARDED, |name| {
                values(name).iter().any(|value| is_forwarded(value))
            }),
        };
        let mut natives = Vec::new();
        for (name, place) in &wanted.fields {
            let (native, part) = match name.as_str() {
                "client" => found.client(*place, names, &values)?,
                name if has(name) => (name, Part::Whole),
                name => columns::find(&[OTHERS, REQUEST], name, has).unwrap_or((name, Part::Whole)),
            };
            if part != Part::Whole {
                found.parts.push((*place, part));
            }
            natives.push((native, *place));
        }
        natives.push((time.as_str(), wanted.time_place));
        // A detail that is also the time or a field of a rule is a copy of it.
        natives.sort_by_key(|(_, place)| *place);
        let mut fields: Vec<(String, usize)> = Vec::new();
        for (native, place) in natives {
            found.add(&mut fields, native, place);
        }
        Ok((found, fields))
    }

    fn add(&mut self, fields: &mut Vec<(String, usize)>, name: &str, place: usize) {
        match fields.iter().find(|(known, _)| known == name) {
            Some((_, first)) => self.copies.push((*first, place)),
            None => fields.push((name.to_owned(), place)),
        }
    }

    /// The name of the client's field.
    fn client(
        &mut self,
        place: usize,
        names: &[String],
        values: impl Fn(&str) -> Vec<Vec<u8>>,
    ) -> Result<(&'static str, Part), Failure> {
        let has = |name: &str, is: fn(&[u8]) -> bool| values(name).iter().any(|value| is(value));
        let is_address = |name: &str| has(name, |value| client::address(value).is_some());
        // A field called client is meant, also if another one has addresses.
        let is_own = has("client", is_name) && !is_address("client");
        let addresses = |name: &str| {
            let values = values(name);
            values
                .iter()
                .filter(|value| client::address(value).is_some())
                .count()
        };
        let address = most(addresses).filter(|_| !is_own);
        if let Some(name) = address {
            self.client = Some((place, name.to_owned()));
            self.client_is = Some((name, None));
            return Ok((name, Part::Address));
        }
        // Names, or addresses that were made anonymous.
        let name = known(CLIENT, |name| name != HOST && has(name, is_name));
        let name = name.ok_or_else(|| {
            // A list, or a text that is no address.
            let other = known(CLIENT, |name| {
                has(name, |value| !value.is_empty() && !is_nested(value))
            });
            let other = other
                .filter(|name| *name != HOST)
                .map_or_else(String::new, |name| {
                    let value = values(name).into_iter().find(|value| !value.is_empty());
                    format!("; {name:?} is \"{}\"", shown(&value.unwrap_or_default()))
                });
            Failure::new(format!(
                "no client among the fields {}{other} (expected an address, or --key FIELD)",
                listed(names)
            ))
        })?;
        let example = values(name).into_iter().find(|value| is_name(value));
        self.client_is = Some((name, example.map(|value| shown(&value))));
        Ok((name, Part::Whole))
    }

    /// A field with the address that a proxy forwards, unless that is the client.
    pub(crate) fn forwarded(&self) -> Option<String> {
        self.forwarded.map(ToOwned::to_owned)
    }

    /// The names of the time and of the client.
    pub(crate) fn describe(&self) -> String {
        let time = format!("time is {:?}", self.time);
        match &self.client_is {
            None => time,
            Some((HOST, None)) => {
                format!("{time}, client is {HOST:?}, an address (--key names another field)")
            }
            Some((name, None)) => format!("{time}, client is {name:?}"),
            Some((name, Some(value))) => {
                format!("{time}, client is {name:?} (no addresses, as \"{value}\")")
            }
        }
    }

    /// Completes a row: copies, parts and the time.
    ///
    /// # Errors
    ///
    /// When the row has no valid time, or the client is not an address.
    pub(crate) fn complete(&self, timestamps: &mut TimestampParser, row: &mut Row) -> Result<(), Unreadable> {
        const EXPECTED: &str = "a time, as in 2015-05-17T10:05:03Z or 1431857103.5";
        for &(from, to) in &self.copies {
            row.copy(from, to);
        }
        for &(place, part) in &self.parts {
            row.narrow(place, |text| part.of(text).unwrap_or_default());
        }
        if let Some((place, name)) = &self.client
            && row.get(*place).is_some_and(<[u8]>::is_empty)
        {
            return Err(Unreadable::line(format!(
                "{name:?} is no address (--key {name} takes it as it is)"
            )));
        }
        let Some(text) = row.get(self.time_place) else {
            return Err(Unreadable::missing(&self.time, EXPECTED));
        };
        match timestamps.read(text) {
            Some(time) => {
                row.time = time;
                Ok(())
            }
            None => Err(Unreadable::field(&self.time, text, EXPECTED)),
        }
    }
}

/// Whether one of the names is known to be that of a time.
pub(crate) fn has_time(names: &[String], wanted: &WantedFields) -> bool {
    let mut times = TIME.split(' ').chain(wanted.time.as_deref());
    times.any(|time| names.iter().any(|name| name == time))
}

fn known(candidates: &'static str, has: impl Fn(&str) -> bool) -> Option<&'static str> {
    candidates.split(' ').find(|name| has(name))
}

/// The first name of the client whose values are addresses in half as many lines as those of any other name.
fn most(addresses: impl Fn(&str) -> usize) -> Option<&'static str> {
    let mut counts = Vec::new();
    for name in CLIENT.split(' ') {
        let count = addresses(name);
        if 2 * count >= LOOKED_AT {
            return Some(name);
        }
        counts.push((name, count));
    }
    let most = counts
        .iter()
        .map(|(_, count)| *count)
        .max()
        .filter(|most| *most > 0)?;
    let mut counts = counts.into_iter();
    counts.find(|(_, count)| 2 * count >= most).map(|(name, _)| name)
}

/// Whether a value is an address, or a list that begins with one.
fn is_forwarded(value: &[u8]) -> bool {
    let first = value
        .split(|byte| b", ".contains(byte))
        .next()
        .unwrap_or_default();
    client::address(first).is_some()
}

/// Whether a value is a time after 1990.
fn is_recent(value: &[u8]) -> bool {
    let inference = YearInference::new(None, RECENT);
    let time = TimestampParser::new(TimestampFormat::Auto, inference, 0).detected(value);
    time.is_some_and(|time| time >= RECENT)
}

/// 1990-01-01T00:00:00Z.
const RECENT: i64 = 631_152_000 * SECOND;

/// Whether a value is an object or an array.
fn is_nested(value: &[u8]) -> bool {
    matches!(value.first(), Some(b'{' | b'['))
}

/// Whether a value may be a name of a client: one word.
fn is_name(value: &[u8]) -> bool {
    !value.is_empty() && value != b"-" && !is_nested(value) && !value.iter().any(|byte| b", ".contains(byte))
}

fn listed(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| shown(name.as_bytes())).collect();
    names.join(", ")
}

fn no_time(names: &[String]) -> Failure {
    Failure::new(format!(
        "no time among the fields {} (expected one of {}, or --time-field)",
        listed(names),
        TIME.replace(' ', ", ")
    ))
}
