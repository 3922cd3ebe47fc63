//! Fields of formats that name them: which names the wanted fields and the time have in an input.

use alloc::collections::BTreeSet;

use crate::failure::Failure;
use crate::input::client;
use crate::input::format::WantedFields;
use crate::input::format::columns::{self, Columns, Part, REQUEST, Standard};
use crate::input::format::common;
use crate::input::row::shown;
use crate::input::time::calendar::SECOND;
use crate::input::time::infer_year::YearInference;
use crate::input::time::timestamp::{TimestampFormat, TimestampParser};

/// Names of the client's address, for rules that count by `client`. Of several, the first whose value is an address.
const CLIENT: &str = "client remote_addr client_ip clientip remote_ip ip address client.ip source.ip addr remote \
                      remote_address src_ip source_ip ClientHost ClientIP request.client_ip request.remote_ip \
                      request.remote_addr httpRequest.remoteIp req.remoteAddress host";

/// A name that is also that of servers and virtual hosts, so it is that of the client only if it is an address.
const HOST: &str = "host";

/// Names of the address that a proxy forwards, if another field is the client.
const FORWARDED: &str = "x_forwarded_for http_x_forwarded_for X-Forwarded-For request.headers.X-Forwarded-For \
                         request_X-Forwarded-For headers.x-forwarded-for request.headers.x-forwarded-for forwarded_for x_real_ip \
                         http_x_real_ip X-Real-IP real_ip client_ip remote_ip";

/// Names of the time, where `--time-field` is not given.
const TIME: &str = "StartUTC EdgeStartTimestamp time timestamp @timestamp ts datetime date msec time_iso8601 time_local \
                    start_time t";

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

/// Names of a line of another program, which collectors of logs write with the time and their own address.
const MESSAGE: &str =
    "message msg log line short_message text body event.original _raw textPayload @message MESSAGE";

/// Names of the identifier of a request.
const REQUEST_ID: &str = "request_id requestId reqId req_id req.id request.id x_request_id";

/// Lines whose values are checked.
const LOOKED_AT: usize = 100;

/// The wanted fields under their names in an input.
#[derive(Debug)]
pub(crate) struct NamedFields {
    /// The fields to read: first those of rules, of which there are `of_rules`, then the time, and then those for details alone.
    pub(crate) columns: Columns,
    pub(crate) of_rules: usize,
    /// The names of the time and of the client, and a value of the client that is no address.
    time: String,
    client: Option<(&'static str, Option<String>)>,
    /// A field with the address that a proxy forwards.
    forwarded: Option<&'static str>,
    /// A field with the identifier of a request, if several lines have the same one.
    repeated: Option<&'static str>,
}

impl NamedFields {
    /// Finds the names of the wanted fields and of the time in an input with the fields `names`. `values` returns the values
    /// of a field in the first lines.
    ///
    /// # Errors
    ///
    /// When no field is known to be the time or the client.
    pub(crate) fn resolve(
        wanted: &WantedFields,
        names: &[String],
        values: impl Fn(&str) -> Vec<Vec<u8>>,
    ) -> Result<Self, Failure> {
        if names.is_empty() {
            return Err(Failure::new(
                "no field in the first lines (expected names with values, one for the time; or another --format)",
            ));
        }
        // An object or an array is not a value.
        let has = |name: &str| values(name).iter().any(|value| !is_nested(value));
        let time = match &wanted.time {
            Some(time) => time.as_str(),
            // A field that is called time may be a duration.
            None => known(TIME, |name| values(name).iter().any(|value| is_recent(value)))
                .or_else(|| known(TIME, has))
                .ok_or_else(|| no_time(names, &values))?,
        };
        let mut client = None;
        let mut natives = Vec::new();
        for (name, place) in &wanted.fields {
            let (native, part) = match name.as_str() {
                "client" => {
                    let found = client_of(names, &values);
                    reject_messages(found.as_ref().ok().map(|(native, _)| *native), &values)?;
                    let (native, example) = found?;
                    let part = if example.is_none() {
                        Part::Address
                    } else {
                        Part::Whole
                    };
                    client = Some((native, example));
                    (native, part)
                }
                name if has(name) => (name, Part::Whole),
                name => columns::find(&[OTHERS, REQUEST], name, has).unwrap_or((name, Part::Whole)),
            };
            natives.push((native, part.at(*place, wanted), *place));
        }
        natives.push((time, Part::Whole, wanted.time_place));
        natives.sort_by_key(|(_, _, place)| *place);
        // A field may be wanted several times.
        let mut read: Vec<String> = Vec::new();
        let (mut takes, mut of_rules, mut time_column) = (Vec::new(), 0, 0);
        for (native, part, place) in natives {
            let known = read.iter().position(|known| known == native);
            let column = known.unwrap_or(read.len());
            if known.is_none() {
                read.push(native.to_owned());
            }
            match place == wanted.time_place {
                true => time_column = column,
                false => takes.push((column, part, place)),
            }
            if place < wanted.time_place {
                of_rules = read.len();
            }
        }
        let client_name = client.as_ref().map(|(name, _)| *name);
        Ok(Self {
            columns: Columns::of(read, takes, time_column, wanted),
            of_rules,
            time: time.to_owned(),
            client,
            forwarded: known(FORWARDED, |name| {
                client_name != Some(name) && values(name).iter().any(|value| is_forwarded(value))
            }),
            repeated: known(REQUEST_ID, |name| is_repeated(&values(name))),
        })
    }

    /// A field with the address that a proxy forwards, unless that is the client.
    pub(crate) fn forwarded(&self) -> Option<String> {
        self.forwarded.map(ToOwned::to_owned)
    }

    /// A note if a program may write several lines for a request.
    pub(crate) fn note(&self) -> Option<String> {
        let field = self.repeated?;
        Some(format!(
            "several lines have the same {field:?}: if they are of one request, each counts (a condition such as \
             \"when event=finished\" takes one of them)"
        ))
    }

    /// The column of the client.
    pub(crate) fn client(&self) -> Option<usize> {
        let (name, _) = self.client.as_ref()?;
        self.columns.names().iter().position(|known| known == name)
    }

    /// The names of the time and of the client.
    pub(crate) fn describe(&self) -> String {
        let time = format!("time is {:?}", self.time);
        match &self.client {
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
}

/// The name of the client's field, and a value of it if its values are no addresses.
fn client_of(
    names: &[String],
    values: impl Fn(&str) -> Vec<Vec<u8>>,
) -> Result<(&'static str, Option<String>), Failure> {
    let has = |name: &str, is: fn(&[u8]) -> bool| values(name).iter().any(|value| is(value));
    let is_address: fn(&[u8]) -> bool = |value| client::address(value).is_some();
    let addresses = |name: &str| values(name).iter().filter(|value| is_address(value)).count();
    // A field called client is meant, also if another one has addresses.
    let is_own = has("client", is_name) && addresses("client") == 0;
    if let Some(name) = most(addresses).filter(|_| !is_own) {
        return Ok((name, None));
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
        let hint = hint(
            names,
            &values,
            is_address,
            "addresses for --alias client=FIELD are in",
        );
        Failure::new(format!(
            "no client among the fields {}{other} (expected an address, or --key FIELD{hint})",
            listed(names)
        ))
    })?;
    let example = values(name).into_iter().find(|value| is_name(value));
    Ok((name, Some(shown(&example.unwrap_or_default()))))
}

/// Refuses an input with lines of the common format in a field, unless the field of the client has an address of theirs.
fn reject_messages(client: Option<&str>, values: impl Fn(&str) -> Vec<Vec<u8>>) -> Result<(), Failure> {
    let mut timestamps = TimestampParser::detecting();
    for name in MESSAGE.split(' ') {
        let mut example = None;
        let mut of_lines = BTreeSet::new();
        for line in values(name) {
            if let Some(client) = common::client(&line, &mut timestamps) {
                of_lines.insert(client::spelled(client));
                example.get_or_insert_with(|| shown(&line));
            }
        }
        let has_theirs = || {
            let mut values = values(client.unwrap_or_default()).into_iter();
            values.any(|value| of_lines.contains(&client::spelled(&value)))
        };
        if let Some(example) = example.filter(|_| !has_theirs()) {
            return Err(Failure::new(format!(
                "the field {name:?} has lines of the common format, and their clients are in no known field: {example} (expected these \
                 lines alone, as jq takes them out of objects, or --key FIELD)"
            )));
        }
    }
    Ok(())
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
    client::listed(value).next().and_then(client::address).is_some()
}

/// Whether at least a fifth of several identifiers was there before. Of many lines, only a half are neighbours.
fn is_repeated(values: &[Vec<u8>]) -> bool {
    let given = values.iter().filter(|value| !matches!(value[..], [] | [b'-']));
    let (count, distinct) = (given.clone().count(), given.collect::<BTreeSet<_>>().len());
    distinct > 1 && (count - distinct) * 5 >= count
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

/// The names that an error shows.
const LISTED: usize = 40;

fn listed(names: &[String]) -> String {
    let first: Vec<String> = names
        .iter()
        .take(LISTED)
        .map(|name| shown(name.as_bytes()))
        .collect();
    let first = first.join(", ");
    match names.len().saturating_sub(LISTED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// The end of an error that names the fields with a value of some kind; empty if there is none.
fn hint(
    names: &[String],
    values: impl Fn(&str) -> Vec<Vec<u8>>,
    is: fn(&[u8]) -> bool,
    text: &str,
) -> String {
    let of_kind = names
        .iter()
        .filter(|name| values(name).iter().any(|value| is(value)));
    let of_kind: Vec<String> = of_kind.cloned().collect();
    match of_kind.is_empty() {
        true => String::new(),
        false => format!("; {text} {}", listed(&of_kind)),
    }
}

fn no_time(names: &[String], values: impl Fn(&str) -> Vec<Vec<u8>>) -> Failure {
    Failure::new(format!(
        "no time among the fields {} (expected one of {}, or --time-field{})",
        listed(names),
        TIME.replace(' ', ", "),
        hint(names, values, is_recent, "times are in")
    ))
}
