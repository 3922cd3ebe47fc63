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

/// The words by which a line is an HTTP log: up to the status. Those behind them may have been cut.
const NEEDED: usize = 6;

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

/// The HTTP log of HAProxy.
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
        let mut values: [Option<&[u8]>; NAMES.len()] = [None; NAMES.len()];
        let mut rest = line;
        for (number, value) in values[..HEADERS].iter_mut().enumerate() {
            let Some(end) = memchr(b' ', rest).filter(|&end| end > 0) else {
                let at = line.len() - rest.len();
                if number < NEEDED {
                    return Err(Unreadable::at(at, "line ends within an HTTP log of HAProxy"));
                }
                // The last word was cut.
                rest = b"";
                break;
            };
            *value = Some(&rest[..end]);
            rest = &rest[end + 1..];
        }
        let [client, date, _, _, timers, ..] = values.map(Option::unwrap_or_default);
        let inner = date.strip_prefix(b"[").and_then(|date| date.strip_suffix(b"]"));
        let date =
            inner.ok_or_else(|| Unreadable::at(client.len() + 1, "no time in brackets after the client"))?;
        values[1] = Some(date);
        // A log of TCP has three timers.
        if timers.iter().filter(|&&byte| byte == b'/').count() != 4 {
            return Err(Unreadable::line("no five timers of an HTTP log of HAProxy"));
        }
        // Captured headers are in braces; quotation marks in them are escaped. HAProxy cuts a line, so that the request or its
        // last quotation mark may be missing.
        let quote = memchr(b'"', rest);
        let headers = rest[..quote.unwrap_or(rest.len())].trim_ascii();
        values[HEADERS] = Some(headers).filter(|_| !rest.is_empty());
        values[HEADERS + 1] = quote.map(|quote| {
            let request = &rest[quote + 1..];
            &request[..memchr::memrchr(b'"', request).unwrap_or(request.len())]
        });
        self.0
            .fill(|column| values.get(column).copied().flatten(), timestamps, row)?;
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
        // The client of a socket, and lines that were cut.
        let socket = line.replace("198.51.100.9:33317", "unix:1");
        let mut of_socket = values.clone();
        of_socket[0] = Some("unix:".to_owned());
        assert_eq!(fields(&mut format, &socket, 7), Ok((at, of_socket)));
        let cut = |text: &str, from: usize, headers: Option<&str>| {
            let mut values = values.clone();
            values[from..6].fill(None);
            values[6] = headers.map(str::to_owned);
            let end = line.find(text).expect("a text of the line");
            (&line[..end], values)
        };
        for (cut, mut values) in [
            cut("|a b}", 6, Some("{1wt.eu")),
            cut(" \"GET", 6, Some("{1wt.eu|a b} {}")),
            cut("0 0/0", 6, None),
            cut(" ---- ", 6, None),
        ] {
            (values[1], values[2]) = (None, None);
            assert_eq!(fields(&mut format, cut, 7), Ok((at, values)), "{cut}");
        }
        let mut of_odd = values.clone();
        of_odd[3] = Some("2000".to_owned());
        assert_eq!(
            fields(&mut format, &line.replace(" 200 ", " 2000 "), 7),
            Ok((at, of_odd))
        );
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
            &line[..60],
        ] {
            fields(&mut format, neighbour, 7).expect_err(neighbour);
        }
    }
}
