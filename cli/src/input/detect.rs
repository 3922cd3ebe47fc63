//! The format of an input: given, or detected from its first lines.

use clap::ValueEnum;

use crate::failure::Failure;
use crate::input::format::common::{self, Common};
use crate::input::format::csv::{Csv, Header};
use crate::input::format::json::{self, Json};
use crate::input::format::named_fields;
use crate::input::format::syslog::{self, Syslog};
use crate::input::format::{LogFormat, WantedFields, first_lines};
use crate::input::row::Row;
use crate::input::time::infer_year::YearInference;
use crate::input::time::timestamp::{TimestampFormat, TimestampParser};

/// The value of `--format`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    /// Detected from the first lines of each input
    #[default]
    Auto,
    /// Apache, nginx: address ident user [time] "request" status size
    Common,
    /// As common, followed by "referer" "user-agent"
    Combined,
    /// One object a line, with named fields
    Json,
    /// Values separated by commas, tabs, semicolons or bars; names in the first line
    Csv,
    /// Time, host and program before a message, which may be a line of the common or combined format
    Syslog,
}

/// Opens the format of an input that begins with `start`.
///
/// # Errors
///
/// When the format does not have a wanted field.
pub(crate) fn open(
    format: FormatArg,
    start: &[u8],
    wanted: &WantedFields,
) -> Result<Box<dyn LogFormat>, Failure> {
    Ok(match format {
        FormatArg::Auto => return open(detect(start, wanted), start, wanted),
        FormatArg::Common | FormatArg::Combined => Box::new(Common::new(wanted)?),
        FormatArg::Json => Box::new(Json::new(start, wanted)?),
        FormatArg::Csv => Box::new(Csv::new(start, wanted)?),
        FormatArg::Syslog => Box::new(Syslog::new(wanted)?),
    })
}

/// The format of the first line that is one of a known format; never `Auto`.
fn detect(start: &[u8], wanted: &WantedFields) -> FormatArg {
    let mut timestamps = TimestampParser::new(TimestampFormat::Auto, YearInference::new(None, 0), 0);
    let mut row = Row::new(0);
    for line in first_lines(start) {
        if line.trim_ascii_start().starts_with(b"{") && !json::names(line).is_empty() {
            return FormatArg::Json;
        }
        // Syslog is tried before common: a syslog line may look like a common line with a long user name.
        if syslog::parse(line, &mut timestamps, (&[], &[]), &mut row).is_ok() {
            return FormatArg::Syslog;
        }
        if common::parse(line, 0, &mut timestamps, &[], &mut row).is_ok() {
            return FormatArg::Combined;
        }
    }
    let header = first_lines(start).next().map(Header::parse);
    match header {
        Some(Ok(header)) if header.names.len() > 1 && named_fields::has_time(&header.names, wanted) => {
            FormatArg::Csv
        }
        _ => FormatArg::Combined,
    }
}

#[cfg(test)]
mod tests {
    use super::{FormatArg, detect, open};
    use crate::input::format::WantedFields;

    fn wants(fields: &[&str], time: Option<&str>) -> WantedFields {
        WantedFields {
            fields: fields.iter().map(ToString::to_string).collect(),
            time: time.map(ToString::to_string),
        }
    }

    #[test]
    fn formats_are_detected_from_the_first_lines() {
        let log = "a - - [17/May/2015:10:05:03 +0000] \"GET /\" 200 5\n";
        for (start, time, expected) in [
            (log.to_string(), None, FormatArg::Combined),
            (format!("\nnonsense, more\n{log}"), None, FormatArg::Combined),
            ("{\"time\":1}\n".into(), None, FormatArg::Json),
            (format!("{{broken\n  {{\"x\":1}}\r\n{log}"), None, FormatArg::Json),
            (
                format!("<13>May 17 10:05:03 web nginx: {log}"),
                None,
                FormatArg::Syslog,
            ),
            ("ts,ip\n1,2\n".into(), None, FormatArg::Csv),
            ("when;ip\n1;2\n".into(), Some("when"), FormatArg::Csv),
            ("when,ip\n1,2\n".into(), None, FormatArg::Combined),
            (String::new(), None, FormatArg::Combined),
            ("\u{1b}\u{0}".into(), None, FormatArg::Combined),
        ] {
            assert_eq!(detect(start.as_bytes(), &wants(&[], time)), expected, "{start}");
        }
    }

    #[test]
    fn errors_about_fields_name_the_known_fields() {
        let error = |format, start: &str, wants: &WantedFields| {
            open(format, start.as_bytes(), wants)
                .expect_err("an error")
                .to_string()
        };
        for (format, start, wants, said) in [
            (
                FormatArg::Common,
                "",
                wants(&["usr"], None),
                "client, ident, user",
            ),
            (
                FormatArg::Common,
                "",
                wants(&[], Some("t")),
                "invalid --time-field",
            ),
            (FormatArg::Syslog, "", wants(&["usr"], None), "host, program"),
            (FormatArg::Csv, "a,b", wants(&[], None), "fields a, b"),
            (FormatArg::Csv, "a,b", wants(&["c"], Some("a")), "a, b"),
            (FormatArg::Csv, "a,\"b", wants(&[], None), "column 3"),
            (FormatArg::Json, "{\"a\":1}", wants(&[], None), "fields a "),
        ] {
            let error = error(format, start, &wants);
            assert!(error.contains(said), "{error}");
        }
    }
}
