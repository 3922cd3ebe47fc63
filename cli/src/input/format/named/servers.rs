//! Servers that write JSON, by fields that no other server writes together. The fields have the names of `fields.rs`.

use crate::failure::Failure;
use crate::input::row::shown;

/// The request is an object.
pub(crate) const CADDY: [&str; 3] = ["request", "logger", "status"];
/// Other lines of Traefik are of the common format.
pub(crate) const TRAEFIK: [&str; 3] = ["ClientHost", "RequestMethod", "DownstreamStatus"];

/// Whether an object has all fields.
pub(crate) fn has_all(names: &[String], fields: &[&str]) -> bool {
    fields.iter().all(|field| names.iter().any(|name| name == field))
}

/// Names of fields that lines about requests have, and other messages of a program do not.
const REQUEST: [&str; 20] = [
    "method",
    "status",
    "path",
    "uri",
    "url",
    "url.path",
    "request",
    "target",
    "req",
    "verb",
    "request_method",
    "request_uri",
    "status_code",
    "response_code",
    "http_method",
    "http.request.method",
    "http.response.status_code",
    "httpRequest",
    "RequestMethod",
    "ClientRequestMethod",
];

/// Whether a field is one of lines about requests.
pub(crate) fn is_of_request(name: &[u8]) -> bool {
    REQUEST.iter().any(|field| field.as_bytes() == name)
}

/// The lines with fields of an input that are messages of a program, and no requests.
#[derive(Debug)]
pub(crate) struct Messages {
    /// Whether requests are told by their fields; `None` if no line of the beginning has a field of a request, so that all count.
    told: Option<bool>,
    /// Messages with a client.
    with_client: u64,
    /// The first line with a field of a request, if the beginning has none.
    late: Option<String>,
}

impl Messages {
    pub(crate) const fn new(told: Option<bool>) -> Self {
        Self {
            told,
            with_client: 0,
            late: None,
        }
    }

    /// Whether a line is a message: other lines have a field of a request, and it has none. `of_request` tells whether it has one,
    /// or `None` if its fields cannot be read to the end.
    #[inline]
    pub(crate) fn is_message(
        &mut self,
        line: &[u8],
        has_client: bool,
        of_request: impl FnOnce() -> Option<bool>,
    ) -> bool {
        if self.told == Some(false) {
            return false;
        }
        match (self.told, of_request()) {
            (Some(_), Some(false)) => {
                self.with_client += u64::from(has_client);
                true
            }
            (None, Some(true)) => {
                self.late.get_or_insert_with(|| shown(line));
                false
            }
            _ => false,
        }
    }

    /// A note about messages with a client.
    ///
    /// # Errors
    ///
    /// When the first request follows messages that were counted.
    pub(crate) fn notes(&self) -> Result<Vec<String>, Failure> {
        if let Some(line) = &self.late {
            return Err(Failure::new(format!(
                "no line of the beginning has a field of a request, but a later line has: {line} (expected a method, path or status \
                 in one of the first 1,000 lines; leave out the messages before the requests)"
            )));
        }
        let count = self.with_client;
        let note = (count > 0).then(|| {
            format!(
                "{count} messages have a client, but no method, path or status as the requests have, and are not counted"
            )
        });
        Ok(note.into_iter().collect())
    }
}

/// The logger of Caddy whose lines are requests, with the quotation mark before its name.
pub(crate) const ACCESS_OF_CADDY: &[u8] = b"\"http.log.access";

/// Whether a line of Caddy is a request, by its logger, its message and its status. Other loggers report errors of the same
/// requests.
pub(crate) fn is_access(logger: Option<&[u8]>, message: Option<&[u8]>, status: Option<&[u8]>) -> bool {
    let is_known = logger.is_none_or(|logger| logger.starts_with(&ACCESS_OF_CADDY[1..]));
    status.is_some() && (is_known || message == Some(b"handled request"))
}

#[cfg(test)]
mod tests {
    use super::{CADDY, TRAEFIK, has_all};
    use crate::input::format::WantedFields;
    use crate::input::format::named::json::{Json, names};
    use crate::input::format::words::tests::assert_values;

    const OF_CADDY: &str = r#"{"level":"info","ts":1431857103.25,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"203.0.113.7","remote_port":"41342","client_ip":"198.51.100.9","proto":"HTTP/2.0","method":"GET","host":"www.example.com","uri":"/a?b=1","headers":{"User-Agent":["curl/8.0"],"Accept":["*/*"]}},"bytes_read":0,"user_id":"ann","duration":0.0009,"size":10900,"status":200,"resp_headers":{"Server":["Caddy"]}}"#;
    const OF_TRAEFIK: &str = r#"{"ClientAddr":"198.51.100.9:52112","ClientHost":"198.51.100.9","ClientPort":"52112","ClientUsername":"-","DownstreamContentSize":19,"DownstreamStatus":404,"Duration":101200,"RequestCount":7,"RequestHost":"www.example.com","RequestMethod":"GET","RequestPath":"/a?b=1","RequestProtocol":"HTTP/1.1","RouterName":"web@docker","StartLocal":"2015-05-17T12:05:03.25+02:00","StartUTC":"2015-05-17T10:05:03.25Z","entryPointName":"web","level":"info","msg":"","request_User-Agent":"curl/8.0","time":"2015-05-17T12:05:04+02:00"}"#;

    #[test]
    fn the_fields_of_lines_are_found() {
        for (server, line, user, status, size, own) in [
            (
                CADDY,
                OF_CADDY,
                "ann",
                "200",
                "10900",
                ("request.remote_ip", "203.0.113.7"),
            ),
            (
                TRAEFIK,
                OF_TRAEFIK,
                "-",
                "404",
                "19",
                ("ClientAddr", "198.51.100.9:52112"),
            ),
        ] {
            assert!(has_all(&names(line.as_bytes()), &server));
            assert!(!has_all(&names(br#"{"ts":1,"client":"a"}"#), &server));
            let protocol = if server == CADDY { "HTTP/2.0" } else { "HTTP/1.1" };
            let wanted = [
                ("client", "198.51.100.9"),
                ("user", user),
                ("method", "GET"),
                ("path", "/a"),
                ("target", "/a?b=1"),
                ("protocol", protocol),
                ("status", status),
                ("size", size),
                ("agent", "curl/8.0"),
                ("vhost", "www.example.com"),
                own,
            ];
            let lines = [(1, line.as_bytes().to_vec())];
            let marks: &'static [&'static str] = if server == CADDY { &CADDY } else { &TRAEFIK };
            let open = |wanted: &WantedFields| Json::new(&lines, wanted, marks);
            assert_values(open, line, 1_431_857_103_250_000_000, &wanted);
        }
    }
}
