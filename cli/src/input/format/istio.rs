//! Access logs of Istio in its default text format, which is that of Envoy with further values.

use crate::failure::Failure;
use crate::input::format::columns::{Columns, Part, Standard};
use crate::input::format::words::split;
use crate::input::format::{LogFormat, Parsed, WantedFields};
use crate::input::row::{Row, Unreadable};
use crate::input::time::timestamp::TimestampParser;

const NAMES: [&str; 23] = [
    "start_time",
    "request",
    "response_code",
    "response_flags",
    "response_code_details",
    "connection_termination_details",
    "upstream_transport_failure_reason",
    "bytes_received",
    "bytes_sent",
    "duration",
    "upstream_service_time",
    "x_forwarded_for",
    "user_agent",
    "x_request_id",
    "authority",
    "upstream_host",
    "upstream_cluster",
    "upstream_local_address",
    "downstream_local_address",
    "downstream_remote_address",
    "requested_server_name",
    "route_name",
    "client",
];

/// The values of a line. The last name is that of the client, which is one of two values.
const WORDS: usize = NAMES.len() - 1;
const DETAILS: usize = 4;
const FORWARDED: usize = 11;
const REMOTE: usize = 19;

const STANDARD: &[Standard] = &[
    ("client", "client", Part::Address),
    ("method", "request", Part::Word(0)),
    ("target", "request", Part::Word(1)),
    ("path", "request", Part::PathOfRequest),
    ("protocol", "request", Part::Word(2)),
    ("status", "response_code", Part::Whole),
    ("size", "bytes_sent", Part::Whole),
    ("agent", "user_agent", Part::Whole),
    ("vhost", "authority", Part::Whole),
];

/// The default access log of Istio.
#[derive(Debug)]
pub(crate) struct Istio {
    columns: Columns,
    words: Vec<(usize, usize)>,
}

impl Istio {
    /// # Errors
    ///
    /// When the format does not have a wanted field.
    pub(crate) fn new(wanted: &WantedFields) -> Result<Self, Failure> {
        let title = "an access log of Istio in its default format";
        let columns = Columns::new(title, &NAMES, STANDARD, &["start_time"], wanted)?;
        Ok(Self {
            columns: columns.with_missing_dash(),
            words: Vec::new(),
        })
    }
}

impl LogFormat for Istio {
    fn parse(
        &mut self,
        line: &[u8],
        timestamps: &mut TimestampParser,
        row: &mut Row,
    ) -> Result<Parsed, Unreadable> {
        // A word that is cut is left out.
        split(line, &mut self.words);
        let mut values: Vec<&[u8]> = self.words.iter().map(|&(start, end)| &line[start..end]).collect();
        // Istio before 1.9 writes one of the two details.
        if values.len() == WORDS - 1 {
            values.insert(DETAILS, b"-");
        }
        if values.len() != WORDS {
            return Err(Unreadable::line(format!(
                "line has {} words (expected {} or {WORDS}, as in an access log of Istio)",
                self.words.len(),
                WORDS - 1
            )));
        }
        // Only the cluster has bars, as in outbound|80||name.
        let is_istio = values[0].first().is_some_and(u8::is_ascii_digit)
            && values[1].split(|&byte| byte == b' ').count() >= 3
            && (1..=3).contains(&values[2].len())
            && values[2].iter().all(u8::is_ascii_digit);
        if !is_istio {
            return Err(Unreadable::line("not the words of an access log of Istio"));
        }
        // A connection of TCP.
        if values[1] == b"- - -" && values[2] == b"0" {
            return Ok(Parsed::Other);
        }
        // Without a proxy before it, the client is the other end of the connection.
        let client = match values[FORWARDED] {
            b"-" | b"" => values[REMOTE],
            forwarded => forwarded,
        };
        values.push(client);
        self.columns
            .fill(|column| values.get(column).copied(), timestamps, row)?;
        Ok(Parsed::Request)
    }
}

#[cfg(test)]
mod tests {
    use super::Istio;
    use crate::input::format::words::tests::{fields, wanted};

    const LINE: &str = r#"[2015-05-17T10:05:03.310Z] "GET /x?y HTTP/1.1" 200 - via_upstream - "-" 0 95 12 11 "203.0.113.7" "UA" "id" "example.com" "10.0.0.5:80" outbound|80||x 10.0.0.9:1 10.0.0.5:80 198.51.100.9:2 - default"#;

    #[test]
    fn lines_are_read() {
        let names = [
            "client",
            "method",
            "path",
            "status",
            "size",
            "agent",
            "vhost",
            "route_name",
        ];
        let mut format = Istio::new(&wanted(&names)).expect("known fields");
        let at = 1_431_857_103_310_000_000;
        let values = |client: &str| {
            let values = [client, "GET", "/x", "200", "95", "UA", "example.com", "default"];
            Ok((at, values.map(|value| Some(value.to_owned())).to_vec()))
        };
        assert_eq!(fields(&mut format, LINE, 8), values("203.0.113.7"));
        let older = LINE.replace(" via_upstream - ", " via_upstream ");
        assert_eq!(fields(&mut format, &older, 8), values("203.0.113.7"));
        let direct = LINE.replace("203.0.113.7", "-");
        assert_eq!(fields(&mut format, &direct, 8), values("198.51.100.9"));
        let tcp = LINE.replace("GET /x?y HTTP/1.1\" 200", "- - -\" 0");
        assert_eq!(fields(&mut format, &tcp, 8), Err("no request".into()));
        for other in [
            &LINE.replace("203.0.113.7", "203.0.113.7,10.0.0.1"),
            &LINE.replace(" via_upstream - \"-\"", ""),
            &LINE.replace("[2015", "[x015"),
            &LINE.replace(" 200 ", " 2000 "),
            &LINE[..60],
        ] {
            fields(&mut format, other, 8).expect_err(other);
        }
    }
}
