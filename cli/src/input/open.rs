//! Opening the format of an input: given, or detected from its first lines.

use crate::failure::Failure;
use crate::input::choice::{Choice, FormatArg, Lines, Own};
use crate::input::detect::{detect, detect_envelope, reject_address_as_user};
use crate::input::format::common::{self, Common};
use crate::input::format::named::csv::Csv;
use crate::input::format::named::json::Json;
use crate::input::format::named::logfmt::Logfmt;
use crate::input::format::pattern::Pattern;
use crate::input::format::w3c::W3c;
use crate::input::format::words::WordFormat;
use crate::input::format::wrapper::{Parts, Wrapped, messages};
use crate::input::format::{FirstLines, LogFormat, TimeKind, WantedFields, first_lines};
use crate::input::refuse::refuse;
use crate::input::row::shown;
use crate::input::time::timestamp::TimestampParser;

/// An input's format.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) format: Box<dyn LogFormat>,
    /// The chosen format and the reason.
    pub(crate) chosen: String,
    pub(crate) notes: Vec<String>,
}

/// Opens the format of an input that begins with `start`.
///
/// # Errors
///
/// When the format does not have a wanted field.
pub(crate) fn open(choice: &Choice, start: &[u8], wanted: &WantedFields) -> Result<Opened, Failure> {
    open_lines(choice, &first_lines(start), wanted, true)
}

fn open_lines(
    choice: &Choice,
    lines: &FirstLines,
    wanted: &WantedFields,
    outermost: bool,
) -> Result<Opened, Failure> {
    let given = |kind: FormatArg| (kind, format!("{}, as given by --format", kind.name()));
    if let Some(own) = &choice.own {
        let name = match own {
            Own::LogFormat(_) => "--log-format",
            Own::Pattern(_) => "--pattern",
        };
        let pattern = |wanted: &WantedFields| match own {
            Own::LogFormat(format) => Pattern::of_nginx(format, wanted),
            Own::Pattern(pattern) => Pattern::of_expression(pattern, wanted),
        };
        // Without fields, and with the name of the time.
        let probe = pattern(&WantedFields {
            time: wanted.time.clone(),
            ..WantedFields::default()
        })?;
        // The lines themselves are of the format, or messages in them are.
        let is_whole =
            probe.time_kind() == TimeKind::Full && lines.iter().any(|(_, line)| probe.matches(line));
        let around = match choice.format {
            FormatArg::Auto if is_whole || !outermost => None,
            FormatArg::Auto => detect_envelope(lines).map(|(kind, number)| (kind, by_line(kind, number))),
            kind => Some(given(kind)),
        };
        if let Some((kind, why)) = around {
            return wrap(kind, why, choice, lines, wanted);
        }
        if outermost && probe.time_kind() == TimeKind::Absent {
            let (given, named) = match own {
                Own::LogFormat(_) => ("no time", "$time_local, $time_iso8601 or $msec"),
                Own::Pattern(_) => (
                    "no group called time, and no time before the lines",
                    "a group (?<time>..)",
                ),
            };
            let expected = format!("{named}, --time-field, or lines of syslog, the journal or a container");
            return Err(Failure::argument(name, given, expected));
        }
        return Ok(Opened {
            format: Box::new(pattern(wanted)?),
            chosen: name.to_owned(),
            notes: Vec::new(),
        });
    }
    if choice.format == FormatArg::Auto {
        refuse(lines)?;
    }
    let begins_like_json = lines
        .first()
        .is_some_and(|(_, line)| matches!(line.trim_ascii(), [b'{', ..] | [b'[', b'{', ..] | [b'[']));
    let (kind, why) = match choice.format {
        FormatArg::Auto => match detect(lines, wanted) {
            Some((kind, number)) => (kind, by_line(kind, number)),
            // The error of the line says why it is no object.
            None if begins_like_json => (FormatArg::Json, String::new()),
            None => (
                FormatArg::Combined,
                "combined, as the first lines are of no known format".to_owned(),
            ),
        },
        kind => given(kind),
    };
    let mut notes = Vec::new();
    let format: Box<dyn LogFormat> = match kind.lines() {
        Lines::Common(layout) => {
            if choice.format == FormatArg::Auto {
                reject_address_as_user(lines)?;
            }
            let mut timestamps = TimestampParser::detecting();
            let name = lines.iter().find_map(|(number, line)| {
                Some((number, common::client_name(line, layout, &mut timestamps)?))
            });
            if let Some((number, client)) = name {
                notes.push(format!(
                    "clients may be host names, as \"{}\" in line {number}",
                    shown(client)
                ));
            }
            Box::new(Common::new(wanted, layout, name.is_some())?)
        }
        Lines::Json(marks) => Box::new(Json::new(lines, wanted, marks)?),
        Lines::Csv => Box::new(Csv::new(lines, wanted)?),
        Lines::Logfmt => Box::new(Logfmt::new(lines, wanted)?),
        Lines::W3c => Box::new(W3c::new(lines, wanted)?),
        Lines::Words(layout) => {
            if kind == FormatArg::Nlb {
                notes.push(
                    "a line is a connection of TLS: a Network Load Balancer logs no requests".to_owned(),
                );
            }
            Box::new(WordFormat::new(layout, wanted)?)
        }
        Lines::Messages(..) => return wrap(kind, why, choice, lines, wanted),
    };
    let chosen = match format.describe() {
        described if described.is_empty() => why,
        described => format!("{why}; {described}"),
    };
    Ok(Opened {
        format,
        chosen,
        notes,
    })
}

fn by_line(kind: FormatArg, number: usize) -> String {
    format!("{}, by line {number}: {}", kind.name(), kind.why())
}

/// Opens a format whose lines hold messages.
fn wrap(
    kind: FormatArg,
    why: String,
    choice: &Choice,
    lines: &FirstLines,
    wanted: &WantedFields,
) -> Result<Opened, Failure> {
    let Lines::Messages(_, envelope) = kind.lines() else {
        return Err(Failure::argument(
            "--format",
            kind.name(),
            "with --log-format or --pattern: auto, syslog, rfc5424, docker, cri, timed or journald",
        ));
    };
    let mut envelope = envelope(lines);
    let (mut own, mut of_message) = (Vec::new(), Vec::new());
    for (name, place) in &wanted.fields {
        match envelope.field(name) {
            Some(field) => own.push((field, *place)),
            None => of_message.push((name.clone(), *place)),
        }
    }
    let required = !of_message.is_empty() || choice.own.is_some();
    let wanted = WantedFields {
        fields: of_message,
        ..wanted.clone()
    };
    let messages = messages(&mut *envelope, lines);
    let inner = Choice {
        format: FormatArg::Auto,
        own: choice.own.clone(),
    };
    let is_known = choice.own.is_some() || detect(&messages, &wanted).is_some();
    let opened = match is_known {
        true => Some(open_lines(&inner, &messages, &wanted, false)),
        false => None,
    };
    let title = envelope.title();
    if let Some((number, line)) = lines
        .first()
        .filter(|_| messages.is_empty() && choice.format == kind)
        && let Err(error) = envelope.split(line, &mut Parts::default())
    {
        let (name, line) = (kind.name(), shown(line));
        return Err(Failure::new(format!(
            "line {number} is not of --format {name}: {error}: {line}"
        )));
    }
    let (message, chosen, notes) = match opened {
        Some(Ok(opened)) => (
            Some((opened.format, required)),
            format!("{why}; messages: {}", opened.chosen),
            opened.notes,
        ),
        Some(Err(failure)) if required => {
            return Err(Failure::new(format!("messages of {title}: {failure}")));
        }
        None if required => {
            refuse(&messages)?;
            let names: Vec<&str> = wanted.fields.iter().map(|(name, _)| name.as_str()).collect();
            let first = messages
                .first()
                .map_or_else(String::new, |(_, message)| shown(message));
            return Err(Failure::argument(
                "field",
                format!("{:?}", names.join(", ")),
                format!(
                    "a field of {title}: {}; its messages are of no known format, as in \"{first}\": --pattern REGEX names \
                     fields in them",
                    match envelope.fields() {
                        [] => "none".to_owned(),
                        fields => fields.join(", "),
                    }
                ),
            ));
        }
        Some(Err(_)) | None => (None, why, Vec::new()),
    };
    Ok(Opened {
        format: Box::new(Wrapped::new(envelope, message, own)),
        chosen,
        notes,
    })
}
