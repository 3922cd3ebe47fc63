//! The formats of inputs, and which one an input has.

use clap::ValueEnum;

use crate::csv_line::Header;
use crate::failure::Failure;
use crate::json_line::{self, Paths};
use crate::lines::Line;
use crate::log_line::{self, LogField};
use crate::moment::{Moments, TimeFormat};
use crate::row::{Row, Unreadable, shown};
use crate::syslog_line::{self, SyslogField};
use crate::years::Years;

/// How lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// By the first lines of each input
    #[default]
    Auto,
    /// Apache's and nginx's: address ident user [time] "request" status size
    Common,
    /// The same, and "referer" "user-agent"
    Combined,
    /// An object a line, with named fields
    Json,
    /// Values between commas (or tabs, semicolons, bars), by the names in the first line
    Csv,
    /// Time, host and program before a message, which may be a line of the common or combined format
    Syslog,
}

/// Names that a client's address has where nobody says one.
const CLIENT: [&str; 10] = [
    "client",
    "remote_addr",
    "client_ip",
    "clientip",
    "remote_ip",
    "ip",
    "address",
    "client.ip",
    "addr",
    "host",
];

/// Names that a time has where nobody says one.
const TIME: [&str; 10] = [
    "time",
    "timestamp",
    "@timestamp",
    "ts",
    "datetime",
    "date",
    "time_iso8601",
    "time_local",
    "msec",
    "t",
];

/// What is wanted of every line.
#[derive(Clone, Debug)]
pub(crate) struct Wants {
    /// The fields, by their places in a row.
    pub(crate) fields: Vec<String>,
    /// The field that says the time.
    pub(crate) time: Option<String>,
}

impl Wants {
    /// The place of the time in a row.
    pub(crate) const fn time_place(&self) -> usize {
        self.fields.len()
    }
}

/// Places of a row that have the value of another: from the first to the second.
type Copies = Vec<(usize, usize)>;

/// A reader of one input's lines.
#[derive(Debug)]
pub(crate) enum Parser {
    Log(Vec<(LogField, usize)>),
    Json {
        paths: Paths,
        copies: Copies,
        time: String,
    },
    Csv {
        header: Header,
        places: Vec<Option<usize>>,
        copies: Copies,
        time: String,
    },
    Syslog {
        fields: Vec<(SyslogField, usize)>,
        log: Vec<(LogField, usize)>,
    },
}

impl Parser {
    /// The reader for an input that begins so; says too whether the first line is a header.
    ///
    /// # Errors
    ///
    /// When the format has no such fields.
    pub(crate) fn of(format: InputFormat, start: &[u8], wants: &Wants) -> Result<(Self, bool), Failure> {
        let format = match format {
            InputFormat::Auto => guess(start, wants),
            format => format,
        };
        match format {
            InputFormat::Json => Ok((Self::json(start, wants)?, false)),
            InputFormat::Csv => Ok((Self::csv(start, wants)?, true)),
            InputFormat::Syslog => Ok((Self::syslog(wants)?, false)),
            _ => Ok((Self::log(wants)?, false)),
        }
    }

    fn log(wants: &Wants) -> Result<Self, Failure> {
        if let Some(time) = &wants.time {
            return Err(Failure::argument(
                "--time-field",
                format!("{time:?}"),
                "no --time-field with a log in the common or combined format, where the time has its place",
            ));
        }
        let fields = wants.fields.iter().zip(0..);
        let known = fields.map(|(name, place)| match LogField::named(name) {
            Some(field) => Ok((field, place)),
            None => Err(Failure::argument(
                "field",
                format!("{name:?}"),
                format!(
                    "one of a log in the common or combined format: {}",
                    LogField::names()
                ),
            )),
        });
        known.collect::<Result<_, _>>().map(Self::Log)
    }

    fn syslog(wants: &Wants) -> Result<Self, Failure> {
        let mut fields = Vec::new();
        let mut log = Vec::new();
        for (name, place) in wants.fields.iter().zip(0..) {
            if let Some(field) = SyslogField::named(name) {
                fields.push((field, place));
            } else if let Some(field) = LogField::named(name) {
                log.push((field, place));
            } else {
                return Err(Failure::argument(
                    "field",
                    format!("{name:?}"),
                    format!(
                        "one of a syslog line: {}, and where the message is a log line: {}",
                        SyslogField::names(),
                        LogField::names()
                    ),
                ));
            }
        }
        Ok(Self::Syslog { fields, log })
    }

    fn json(start: &[u8], wants: &Wants) -> Result<Self, Failure> {
        // Not every line has every field, and the first is often about the start of a program.
        let mut names: Vec<String> = first_lines(start).flat_map(json_line::names).collect();
        names.sort_unstable();
        names.dedup();
        let has = |name: &str| {
            let top = name.split('.').next().unwrap_or(name);
            names.iter().any(|known| known == name || known == top)
        };
        let time = match &wants.time {
            Some(time) => time.clone(),
            None => resolve(&TIME, has).ok_or_else(|| no_time(&names))?.to_string(),
        };
        if wants.fields.len() >= Paths::MOST {
            return Err(Failure::argument(
                "rules",
                format!("about {} fields", wants.fields.len()),
                format!("at most {} fields of JSON", Paths::MOST - 1),
            ));
        }
        let (fields, copies) = places(wants, &time, has);
        let paths = Paths::new(fields.into_iter());
        Ok(Self::Json { paths, copies, time })
    }

    fn csv(start: &[u8], wants: &Wants) -> Result<Self, Failure> {
        let line = first_lines(start).next().unwrap_or_default();
        let header = Header::parse(line).map_err(|error| {
            Failure::argument("the first line of CSV", error.to_string(), "names of columns")
        })?;
        let has = |name: &str| header.names.iter().any(|known| known == name);
        let time = match &wants.time {
            Some(time) => time.clone(),
            None => resolve(&TIME, has)
                .ok_or_else(|| no_time(&header.names))?
                .to_string(),
        };
        let (fields, copies) = places(wants, &time, has);
        let mut places = vec![None; header.names.len()];
        for (name, place) in fields {
            let Some(column) = header.names.iter().position(|known| known == name) else {
                return Err(Failure::argument(
                    "field",
                    format!("{name:?}"),
                    format!("a column of the first line: {}", header.names.join(", ")),
                ));
            };
            places[column] = Some(place);
        }
        Ok(Self::Csv {
            header,
            places,
            copies,
            time,
        })
    }

    /// Reads a line into a row.
    ///
    /// # Errors
    ///
    /// When the line is no request.
    #[inline]
    pub(crate) fn read(
        &self,
        line: Line<'_>,
        moments: &mut Moments,
        time_place: usize,
        row: &mut Row,
    ) -> Result<(), Unreadable> {
        row.clear();
        if !line.whole {
            return Err(Unreadable::line("longer than 64 KiB"));
        }
        match self {
            Self::Log(wanted) => log_line::parse(line.bytes, 0, moments, wanted, row),
            Self::Json { paths, copies, time } => {
                json_line::parse(line.bytes, paths, row)?;
                copy(copies, row);
                read_time(time, time_place, moments, row)
            }
            Self::Csv {
                header,
                places,
                copies,
                time,
            } => {
                header.read(line.bytes, places, row)?;
                copy(copies, row);
                read_time(time, time_place, moments, row)
            }
            Self::Syslog { fields, log } => syslog_line::parse(line.bytes, moments, (fields, log), row),
        }
    }
}

/// What the wanted fields and the time are called in the input, each once, with their places; and the places of those
/// that have another name of the same field, or are the time too.
fn places<'w>(
    wants: &'w Wants,
    time: &'w str,
    has: impl Fn(&str) -> bool + Copy,
) -> (Vec<(&'w str, usize)>, Copies) {
    let mut fields: Vec<(&str, usize)> = Vec::new();
    let mut copies = Vec::new();
    let wanted = wants.fields.iter().map(|name| match name.as_str() {
        "client" => resolve(&CLIENT, has).unwrap_or("client"),
        name => name,
    });
    for (name, place) in wanted.chain([time]).zip(0..) {
        match fields.iter().find(|(known, _)| *known == name) {
            Some((_, first)) => copies.push((*first, place)),
            None => fields.push((name, place)),
        }
    }
    (fields, copies)
}

#[inline]
fn copy(copies: &Copies, row: &mut Row) {
    for &(from, to) in copies {
        row.copy(from, to);
    }
}

fn read_time(name: &str, place: usize, moments: &mut Moments, row: &mut Row) -> Result<(), Unreadable> {
    const ALLOWED: &str = "a time as in 2015-05-17T10:05:03Z, 17/May/2015:10:05:03 +0000, \
                           1431857103.5 or May 17 10:05:03, between 1678 and 2261";
    let Some(text) = row.get(place) else {
        return Err(Unreadable::line(format!(
            "{name:?} is missing, but allowed is {ALLOWED}"
        )));
    };
    match moments.read(text) {
        Some(time) => {
            row.time = time;
            Ok(())
        }
        None => Err(Unreadable::field(name, text, ALLOWED)),
    }
}

fn resolve(candidates: &[&'static str], has: impl Fn(&str) -> bool) -> Option<&'static str> {
    candidates.iter().copied().find(|name| has(name))
}

fn no_time(names: &[String]) -> Failure {
    let names: Vec<String> = names.iter().map(|name| shown(name.as_bytes())).collect();
    Failure::argument(
        "--time-field",
        format!(
            "not given, and none of the fields ({}) is a time by its name",
            names.join(", ")
        ),
        format!("a field of the input; known are {}", TIME.join(", ")),
    )
}

/// Lines that an input is judged by.
const LOOKED_AT: usize = 20;

/// The first lines that are not blank, as far as they are whole.
fn first_lines(start: &[u8]) -> impl Iterator<Item = &[u8]> {
    start
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty())
        .take(LOOKED_AT)
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// By the first line that is one of a format.
fn guess(start: &[u8], wants: &Wants) -> InputFormat {
    let mut moments = Moments::new(TimeFormat::Auto, Years::new(None, 0), 0);
    let mut row = Row::new(0);
    for line in first_lines(start) {
        if line.trim_ascii_start().starts_with(b"{") && !json_line::names(line).is_empty() {
            return InputFormat::Json;
        }
        // Before log lines, in which a user's name may be nearly anything.
        if syslog_line::parse(line, &mut moments, (&[], &[]), &mut row).is_ok() {
            return InputFormat::Syslog;
        }
        if log_line::parse(line, 0, &mut moments, &[], &mut row).is_ok() {
            return InputFormat::Combined;
        }
    }
    let first = first_lines(start).next();
    let header = first.and_then(|line| Header::parse(line).ok());
    let times = TIME.iter().copied().chain(wants.time.as_deref());
    let is_header = |header: Header| {
        header.names.len() > 1
            && times
                .clone()
                .any(|time| header.names.iter().any(|name| name == time))
    };
    if header.is_some_and(is_header) {
        InputFormat::Csv
    } else {
        InputFormat::Combined
    }
}

#[cfg(test)]
mod tests {
    use super::{InputFormat, Parser, Wants, guess};

    fn wants(fields: &[&str], time: Option<&str>) -> Wants {
        Wants {
            fields: fields.iter().map(ToString::to_string).collect(),
            time: time.map(ToString::to_string),
        }
    }

    #[test]
    fn formats_are_told_by_the_first_lines() {
        let log = "a - - [17/May/2015:10:05:03 +0000] \"GET /\" 200 5\n";
        for (start, time, expected) in [
            (log.to_string(), None, InputFormat::Combined),
            (format!("\nnonsense, more\n{log}"), None, InputFormat::Combined),
            ("{\"time\":1}\n".into(), None, InputFormat::Json),
            (
                format!("{{broken\n  {{\"x\":1}}\r\n{log}"),
                None,
                InputFormat::Json,
            ),
            (
                format!("<13>May 17 10:05:03 web nginx: {log}"),
                None,
                InputFormat::Syslog,
            ),
            ("ts,ip\n1,2\n".into(), None, InputFormat::Csv),
            ("when;ip\n1;2\n".into(), Some("when"), InputFormat::Csv),
            ("when,ip\n1,2\n".into(), None, InputFormat::Combined),
            (String::new(), None, InputFormat::Combined),
            ("\u{1b}\u{0}".into(), None, InputFormat::Combined),
        ] {
            assert_eq!(guess(start.as_bytes(), &wants(&[], time)), expected, "{start}");
        }
    }

    #[test]
    fn fields_that_are_not_there_are_errors_that_name_those_that_are() {
        let error = |format, start: &str, wants: &Wants| {
            Parser::of(format, start.as_bytes(), wants)
                .expect_err("an error")
                .to_string()
        };
        for (format, start, wants, said) in [
            (
                InputFormat::Common,
                "",
                wants(&["usr"], None),
                "client, ident, user",
            ),
            (InputFormat::Common, "", wants(&[], Some("t")), "no --time-field"),
            (InputFormat::Syslog, "", wants(&["usr"], None), "host, program"),
            (InputFormat::Csv, "a,b", wants(&[], None), "fields (a, b)"),
            (InputFormat::Csv, "a,b", wants(&["c"], Some("a")), "a, b"),
            (InputFormat::Csv, "a,\"b", wants(&[], None), "column 3"),
            (InputFormat::Json, "{\"a\":1}", wants(&[], None), "fields (a)"),
        ] {
            let error = error(format, start, &wants);
            assert!(error.contains(said), "{error}");
        }
    }
}
