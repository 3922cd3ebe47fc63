//! HTTP logs of HAProxy, as `option httplog` and `option httpslog` write them, behind a header of syslog or without one.

use memchr::memchr;

use crate::failure::Failure;
use crate::input::format::columns::{Columns, Part, Standard};
use crate::input::format::{LogFormat, Parsed, WantedFields};
use crate::input::row::{Row, Unreadable};
use crate::input::time::timestamp::TimestampParser;

/// The words before the captured headers, and the request.
const NAMES: [&str; 14] = [
    "client:port",
    "accept_date",
    "frontend",
    "backend/server",
    "timers",
    "status",
    "bytes_read",
    "captured_request_cookie",
    "captured_response_cookie",
    "termination_state",
    "connections",
    "queues",
    "headers",
    "request",
];

const HEADERS: usize = 12;

const STANDARD: &[Standard] = &[
    ("client", "client:port", Part::AddressBeforePort),
    ("request", "request", Part::Whole),
    ("method", "request", Part::Word(0)),
    ("target", "request", Part::Word(1)),
    ("path", "request", Part::PathOfRequest),
    ("protocol", "request", Part::Word(2)),
    ("status", "status", Part::Whole),
    ("size", "bytes_read", Part::Whole),
];

#[derive(Debug)]
pub(crate) struct Haproxy(Columns);

impl Haproxy {
    /// # Errors
    ///
    /// When the format does not have a wanted field.
    pub(crate) fn new(wanted: &WantedFields) -> Result<Self, Failure> {
        Columns::new(
            "an HTTP log of HAProxy",
            &NAMES,
            STANDARD,
            &["accept_date"],
            wanted,
        )
        .map(Self)
    }
}

impl LogFormat for Haproxy {
    fn parse(
        &mut self,
        line: &[u8],
        timestamps: &mut TimestampParser,
        row: &mut Row,
    ) -> Result<Parsed, Unreadable> {
        let mut values: [&[u8]; NAMES.len()] = [b""; NAMES.len()];
        let mut rest = line;
        for value in &mut values[..HEADERS] {
            let end = memchr(b' ', rest).filter(|&end| end > 0);
            let end = end.ok_or_else(|| {
                Unreadable::at(line.len() - rest.len(), "line ends within an HTTP log of HAProxy")
            })?;
            *value = &rest[..end];
            rest = &rest[end + 1..];
        }
        let date = values[1]
            .strip_prefix(b"[")
            .and_then(|date| date.strip_suffix(b"]"));
        values[1] =
            date.ok_or_else(|| Unreadable::at(values[0].len() + 1, "no time in brackets after the client"))?;
        let is_status =
            |status: &[u8]| status == b"-1" || status.len() == 3 && status.iter().all(u8::is_ascii_digit);
        // A log of TCP has no status there.
        if !is_status(values[5]) || values[4].iter().filter(|&&byte| byte == b'/').count() != 4 {
            return Err(Unreadable::line(
                "no five timers and status of an HTTP log of HAProxy",
            ));
        }
        // Captured headers are in braces; quotation marks in them are escaped.
        let quote =
            memchr(b'"', rest).ok_or_else(|| Unreadable::at(line.len() - rest.len(), "no quoted request"))?;
        values[HEADERS] = rest[..quote].trim_ascii();
        let request = &rest[quote + 1..];
        // HAProxy cuts a long request, and then its quotation mark may be missing.
        let end = memchr::memrchr(b'"', request).unwrap_or(request.len());
        values[HEADERS + 1] = &request[..end];
        self.0
            .fill(|column| values.get(column).copied(), timestamps, row)?;
        Ok(Parsed::Request)
    }
}

#[cfg(test)]
mod tests {
    use super::Haproxy;
    use crate::input::format::words::tests::{fields, wanted};

    #[test]
    fn lines_are_read() {
        let names = [
            "client", "method", "path", "status", "size", "frontend", "headers",
        ];
        let mut format = Haproxy::new(&wanted(&names)).expect("known fields");
        let line = r#"198.51.100.9:33317 [17/May/2015:10:05:03.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu|a b} {} "GET /a?b=1 HTTP/1.1""#;
        let values = [
            "198.51.100.9",
            "GET",
            "/a",
            "200",
            "2750",
            "http-in",
            "{1wt.eu|a b} {}",
        ];
        let values = values.map(|value| Some(value.to_owned())).to_vec();
        let at = 1_431_857_103_655_000_000;
        assert_eq!(fields(&mut format, line, 7), Ok((at, values.clone())));
        // The port of an IPv6 address has no brackets before it. `option httpslog` appends words.
        let six = line.replace("198.51.100.9", "2001:db8::1") + " 0/0000000000000000/0/0/0 -/TLSv1.3/-";
        let mut of_six = values;
        of_six[0] = Some("2001:db8::1".to_owned());
        assert_eq!(fields(&mut format, &six, 7), Ok((at, of_six)));
        for neighbour in [
            r#"198.51.100.9:33313 [17/May/2015:10:05:03.443] fnt bck/srv1 0/0/5007 212 -- 0/0/0/0/3 0/0"#,
            &line.replace("198.51.100.9:33317", "198.51.100.9"),
            &line.replace("198.51.100.9", "www.example.com"),
            &line.replace("[17/May", "[37/May"),
            &line.replace(" 200 ", " 2000 "),
            &line[..60],
        ] {
            fields(&mut format, neighbour, 7).expect_err(neighbour);
        }
    }
}
