use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use ::http::header::{CONTENT_TYPE, HeaderValue};
use ::http::request::Parts;
use ::http::{Response, StatusCode};

use super::grpc;
use super::policy::{QuotaPolicy, whole_seconds};

/// A request that was refused, for whoever answers it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Rejection<'a> {
    pub(super) request: &'a Parts,
    pub(super) policies: Vec<QuotaPolicy<'a>>,
    pub(super) retry_after: Option<Duration>,
    pub(super) status: StatusCode,
}

impl<'a> Rejection<'a> {
    /// The request, without its body.
    #[must_use]
    pub const fn request(&self) -> &'a Parts {
        self.request
    }

    /// All enforced policies that are about the request.
    #[must_use]
    pub fn policies(&self) -> &[QuotaPolicy<'a>] {
        &self.policies
    }

    /// Those that had no room.
    pub fn violated(&self) -> impl Iterator<Item = &QuotaPolicy<'a>> {
        self.policies.iter().filter(|policy| policy.is_violated())
    }

    /// How long until the same request would be admitted if nobody else asked; `None`: never.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The same in seconds, as `Retry-After` says it: rounded up, and never 0.
    #[must_use]
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.retry_after.map(whole_seconds)
    }

    /// Whether it was refused because it lacks a key that it must have.
    #[must_use]
    pub fn lacks_key(&self) -> bool {
        self.violated().any(QuotaPolicy::lacks_key)
    }

    /// The status that the layer is told to answer with.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }
}

/// Makes the answer to a request that was refused.
///
/// Functions do, of a [`Rejection`]; so do [`Problem`] and [`Grpc`]. The layer adds
/// `Retry-After`, unless the answer has it, and the [quota headers](super::QuotaHeaders).
///
/// # Examples
///
/// ```
/// use ::http::Response;
/// use ringgate::http::{RejectionResponse, RateLimitLayer, Rejection};
/// use ringgate::{ManualClock, Rule, RuleSetBuilder};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// /// Refuses in the words of the house.
/// #[derive(Clone)]
/// struct Plain;
///
/// impl RejectionResponse<String> for Plain {
///     fn answer(&self, refused: &Rejection<'_>) -> Response<String> {
///         let rules: Vec<_> = refused.violated().map(|policy| policy.rule()).collect();
///         let mut response = Response::new(format!("too many requests: {}", rules.join(", ")));
///         *response.status_mut() = refused.status();
///         response
///     }
/// }
///
/// let rules = RuleSetBuilder::new().rule(Rule::new("all", "2/s".parse()?)).build_with(ManualClock::new(), [1; 4])?;
/// let layer = RateLimitLayer::from(rules).rejection_response(Plain);
/// # let _ = layer;
/// # Ok(())
/// # }
/// ```
pub trait RejectionResponse<B> {
    /// Makes the answer.
    fn answer(&self, refused: &Rejection<'_>) -> Response<B>;
}

impl<B, F: Fn(&Rejection<'_>) -> Response<B>> RejectionResponse<B> for F {
    fn answer(&self, refused: &Rejection<'_>) -> Response<B> {
        self(refused)
    }
}

/// Answers 429 with a body of `application/problem+json` (RFC 9457), and gRPC requests as [`Grpc`] does. The default.
///
/// ```json
/// {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",
///  "title":"Request cannot be satisfied as assigned quota has been exceeded",
///  "status":429,"violated-policies":["user"]}
/// ```
///
/// For bodies that can be made of a `String`: axum's `Body`, `http_body_util::Full<Bytes>` and the like. For others there
/// is [`RateLimitLayer::answer`](super::RateLimitLayer::answer).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem;

impl<B: From<String>> RejectionResponse<B> for Problem {
    fn answer(&self, refused: &Rejection<'_>) -> Response<B> {
        if grpc::is_grpc(&refused.request.headers) {
            return grpc::response(refused, String::new().into());
        }
        let mut body = String::from("{");
        let kind = if refused.lacks_key() {
            ("about:blank", "Request lacks what a rate limit counts by")
        } else {
            (
                "https://iana.org/assignments/http-problem-types#quota-exceeded",
                "Request cannot be satisfied as assigned quota has been exceeded",
            )
        };
        for (name, value) in [("type", kind.0), ("title", kind.1)] {
            push_text(&mut body, name);
            body.push(':');
            push_text(&mut body, value);
            body.push(',');
        }
        body.push_str("\"status\":");
        body.push_str(refused.status.as_str());
        body.push_str(",\"violated-policies\":[");
        for (at, policy) in refused.violated().enumerate() {
            if at > 0 {
                body.push(',');
            }
            push_text(&mut body, policy.name());
        }
        body.push_str("]}");
        let mut response = Response::new(body.into());
        *response.status_mut() = refused.status;
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }
}

/// Answers as a gRPC server does: with the code `RESOURCE_EXHAUSTED`, or `INVALID_ARGUMENT` for a request that lacks a key.
///
/// The answer is trailers only, with the status 200 that gRPC asks for, and `google.rpc.RetryInfo` and
/// `google.rpc.QuotaFailure` (a violation for each violated policy) in `grpc-status-details-bin`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grpc;

impl<B: Default> RejectionResponse<B> for Grpc {
    fn answer(&self, refused: &Rejection<'_>) -> Response<B> {
        grpc::response(refused, B::default())
    }
}

/// Writes a JSON string (RFC 8259, 7).
fn push_text(json: &mut String, text: &str) {
    json.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            c if c < ' ' => json.push_str(&alloc::format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
}
