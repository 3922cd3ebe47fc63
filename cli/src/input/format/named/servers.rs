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
