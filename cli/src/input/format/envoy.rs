//! Access logs of Envoy in its default text format.

use crate::input::format::columns::Part;
use crate::input::format::words::Layout;

/// The client is the one address of `X-Forwarded-For`; the format has no other.
pub(crate) const ENVOY: Layout = Layout {
    title: "an access log of Envoy in its default format",
    names: &[
        "start_time",
        "request",
        "response_code",
        "response_flags",
        "bytes_received",
        "bytes_sent",
        "duration",
        "upstream_service_time",
        "x_forwarded_for",
        "user_agent",
        "x_request_id",
        "authority",
        "upstream_host",
    ],
    standard: &[
        ("client", "x_forwarded_for", Part::Address),
        ("method", "request", Part::Word(0)),
        ("target", "request", Part::Word(1)),
        ("path", "request", Part::PathOfRequest),
        ("protocol", "request", Part::Word(2)),
        ("status", "response_code", Part::Whole),
        ("size", "bytes_sent", Part::Whole),
        ("agent", "user_agent", Part::Whole),
        ("vhost", "authority", Part::Whole),
    ],
    times: &["start_time"],
    least: 13,
    most: 13,
    is: |words| {
        words[0].first().is_some_and(u8::is_ascii_digit)
            && words[1].split(|&byte| byte == b' ').count() == 3
            && (1..=3).contains(&words[2].len())
            && words[2].iter().all(u8::is_ascii_digit)
    },
};

#[cfg(test)]
mod tests {
    use super::ENVOY;
    use crate::input::format::words::tests::check;

    #[test]
    fn lines_are_read() {
        let line = r#"[2015-05-17T10:05:03.310Z] "POST /api/v1/locations?x HTTP/2" 204 - 154 0 226 100 "198.51.100.9" "nsq2http" "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "locations" "tcp://10.0.2.1:80""#;
        let expected = [
            ("client", Some("198.51.100.9")),
            ("method", Some("POST")),
            ("path", Some("/api/v1/locations")),
            ("protocol", Some("HTTP/2")),
            ("status", Some("204")),
            ("size", Some("0")),
            ("agent", Some("nsq2http")),
            ("vhost", Some("locations")),
            ("response_flags", None),
        ];
        let neighbours = [
            // Which of several addresses is the client depends on the proxies.
            line.replace("198.51.100.9", "203.0.113.7, 198.51.100.9"),
            line.replace("198.51.100.9", "unknown\" \"x"),
            line.replace(" 204 - ", " 204 - via_upstream - \"-\" "),
            format!("{line} outbound"),
        ];
        check(
            ENVOY,
            (line, 1_431_857_103_310_000_000),
            &expected,
            &neighbours.each_ref().map(String::as_str),
        );
    }
}
