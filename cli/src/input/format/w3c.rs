//! W3C extended logs, as IIS and CloudFront write them: `#Fields:` names the values of the lines after it.

use memchr::memchr;

use crate::failure::Failure;
use crate::input::format::columns::{Columns, Part, Standard};
use crate::input::format::realign::aligned;
use crate::input::format::{LogFormat, ParseResult, Parsed, WantedFields};
use crate::input::row::{Row, Unreadable};
use crate::input::time::timestamp::TimestampParser;

const STANDARD: &[Standard] = &[
    ("client", "c-ip", Part::Address),
    ("user", "cs-username", Part::Whole),
    ("method", "cs-method", Part::Whole),
    ("path", "cs-uri-stem", Part::Whole),
    ("path", "cs-uri", Part::Path),
    ("target", "cs-uri cs-uri-stem", Part::Whole),
    ("protocol", "cs-version cs-protocol-version", Part::Whole),
    ("status", "sc-status", Part::Whole),
    ("size", "sc-bytes", Part::Whole),
    ("agent", "cs(User-Agent)", Part::Whole),
    ("referer", "cs(Referer)", Part::Whole),
    ("vhost", "x-host-header cs-host cs(Host)", Part::Whole),
];

const FIELDS: &[u8] = b"#Fields:";

/// Values between spaces or tabs.
#[derive(Debug)]
pub(crate) struct W3c {
    wanted: WantedFields,
    /// The columns of the last `#Fields:`, and their number.
    columns: Option<(Columns, usize)>,
}

impl W3c {
    /// For an input with these first lines.
    ///
    /// # Errors
    ///
    /// When the first `#Fields:` does not have a wanted field.
    pub(crate) fn new(lines: &[(usize, Vec<u8>)], wanted: &WantedFields) -> Result<Self, Failure> {
        let mut format = Self {
            wanted: wanted.clone(),
            columns: None,
        };
        let Some((_, line)) = lines.iter().find(|(_, line)| line.starts_with(FIELDS)) else {
            return Err(Failure::new(
                "no #Fields: in the first lines of a W3C extended log (expected names of the values)",
            ));
        };
        format.fields(line)?;
        Ok(format)
    }

    fn fields(&mut self, line: &[u8]) -> Result<(), Failure> {
        let text = String::from_utf8_lossy(&line[FIELDS.len()..]);
        let names: Vec<&str> = text.split_ascii_whitespace().collect();
        if let Some((number, name)) = names
            .iter()
            .enumerate()
            .find(|(number, name)| names[..*number].contains(name))
        {
            return Err(Failure::new(format!(
                "invalid #Fields: field {} is {name:?} again (expected each name once)",
                number + 1
            )));
        }
        let columns = Columns::new(
            "the W3C extended log",
            &names,
            &[STANDARD],
            &["date time", "timestamp"],
            &self.wanted,
        )?;
        if !columns.has_time() {
            return Err(Failure::new(format!(
                "no date and time among #Fields: {} (expected both, or --time-field)",
                names.join(" ")
            )));
        }
        self.columns = Some((columns.with_missing_dash(true), names.len()));
        Ok(())
    }
}

impl LogFormat for W3c {
    fn parse(&mut self, line: &[u8], timestamps: &mut TimestampParser, row: &mut Row) -> ParseResult {
        if line.starts_with(FIELDS) {
            self.columns = None;
            self.fields(line)
                .map_err(|failure| Unreadable::line(failure.to_string()))?;
            return Ok(Parsed::Other);
        }
        if line.first() == Some(&b'#') {
            return Ok(Parsed::Other);
        }
        let Some((columns, count)) = &self.columns else {
            return Err(Unreadable::line("no readable #Fields: before the line"));
        };
        let delimiter = if memchr(b'\t', line).is_some() {
            b'\t'
        } else {
            b' '
        };
        let values: Vec<&[u8]> = line.trim_ascii_end().split(|&byte| byte == delimiter).collect();
        let read = |values: &[&[u8]], row: &mut Row| {
            columns.fill(|column| values.get(column).copied(), timestamps, row)
        };
        let form = (*count, delimiter, "#Fields");
        aligned(&values, form, self.wanted.time_place, row, read)
    }
}

#[cfg(test)]
mod tests {
    use super::W3c;
    use crate::input::format::words::tests::{fields, wanted};

    const AT: i64 = 1_431_857_103_000_000_000;

    fn with(header: &str, names: &[&str]) -> Result<W3c, String> {
        W3c::new(&[(1, header.as_bytes().to_vec())], &wanted(names)).map_err(|failure| failure.to_string())
    }

    #[test]
    fn lines_of_iis_and_cloudfront_are_read() {
        let names = ["client", "method", "path", "status", "agent", "user"];
        let header = "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status time-taken";
        let mut format = with(header, &names).expect("known fields");
        let line =
            "2015-05-17 10:05:03 10.0.0.1 GET /a b=1 443 - 198.51.100.9 Mozilla/5.0+(X11) - 200 0 0 46";
        let values = [
            Some("198.51.100.9"),
            Some("GET"),
            Some("/a"),
            Some("200"),
            Some("Mozilla/5.0+(X11)"),
            None,
        ];
        let values = values.map(|value| value.map(str::to_owned)).to_vec();
        assert_eq!(fields(&mut format, line, 6), Ok((AT, values.clone())));
        assert_eq!(
            fields(&mut format, "#Date: 2015-05-17 10:05:03", 6),
            Err("no request".into())
        );
        // A user agent with spaces.
        let spaces = line.replace("(X11)", "(X11; Linux) x");
        let read = fields(&mut with(header, &names[..1]).expect("known fields"), &spaces, 1);
        assert_eq!(read, Ok((AT, values[..1].to_vec())));
        for neighbour in [
            // Which of the values have the spaces is unknown.
            &spaces,
            &line.replace(" 46", ""),
            &line.replace("198.51.100.9", "web-1"),
            &line.replace("10:05:03", "25:05:03"),
        ] {
            fields(&mut format, neighbour, 6).expect_err(neighbour);
        }
        // Another order of the values from here on.
        assert!(
            fields(
                &mut format,
                "#Fields: date time c-ip cs-method cs-uri-stem sc-status cs(User-Agent) cs-username",
                6
            )
            .is_err()
        );
        let other = "2015-05-17 10:05:03 198.51.100.9 GET /a 200 Mozilla/5.0+(X11) -";
        assert_eq!(fields(&mut format, other, 6), Ok((AT, values.clone())));
        assert!(fields(&mut format, line, 6).is_err());

        let header = "#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent)";
        let mut format = with(header, &names[..5]).expect("known fields");
        let line = "2015-05-17\t10:05:03\tLAX1\t2390282\t198.51.100.9\tGET\td111.cloudfront.net\t/a\t200\t-\tMozilla/5.0+(X11)";
        assert_eq!(fields(&mut format, line, 5), Ok((AT, values[..5].to_vec())));
    }

    #[test]
    fn missing_fields_are_errors() {
        for (header, said) in [
            ("#Fields: time c-ip cs-method", "no date and time"),
            ("#Fields: date time s-ip", "invalid field: \"client\""),
            ("#Fields: date time c-ip c-ip", "again"),
            ("#Version: 1.0", "no #Fields:"),
        ] {
            let error = with(header, &["client"]).expect_err(header);
            assert!(error.contains(said), "{header}: {error}");
        }
    }
}
