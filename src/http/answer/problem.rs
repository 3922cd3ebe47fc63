use alloc::format;
use alloc::string::String;

use ::http::Response;
use ::http::header::{CONTENT_TYPE, HeaderValue};

use super::grpc;
use super::rejection::{Rejection, RejectionReason, RejectionResponse};

/// Rejects with status 429 and an `application/problem+json` body (RFC 9457). The default.
///
/// ```json
/// {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",
///  "title":"Request cannot be satisfied as assigned quota has been exceeded",
///  "status":429,"violated-policies":["user"]}
/// ```
///
/// If the request only needs a slot [in flight](crate::Rule::in_flight), the title is `Request cannot be satisfied as too many
/// requests are in flight`, and the `detail` says when to try again. The type is the same, because the draft counts concurrent
/// requests as a quota.
///
/// A rejection for another reason has another title. The reasons are that the request lacks a key, that the server did not
/// provide a key, and that the store of shared rules does not answer. If an address is missing or cannot be read, a `detail` says what to
/// do.
///
/// A request whose content type is gRPC or gRPC-Web gets the response of [`Grpc`](super::Grpc).
///
/// The body type must be convertible from `String`, as axum's `Body` and `http_body_util::Full<Bytes>` are. For other
/// body types use [`RateLimitLayer::respond_with`](crate::http::RateLimitLayer::respond_with).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Problem;

/// The problem type of draft-ietf-httpapi-ratelimit-headers.
const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";

impl<B: From<String>> RejectionResponse<B> for Problem {
    fn response(&self, rejection: &Rejection<'_>) -> Response<B> {
        if let Some(content_type) = grpc::content_type(&rejection.request.headers) {
            return grpc::response(rejection, content_type, String::new().into());
        }
        let reason = rejection.reason();
        let (kind, title) = match reason {
            RejectionReason::NoKeyFromServer => {
                ("about:blank", "Server gives requests no key for a rate limit")
            }
            RejectionReason::NoKey => ("about:blank", "Request lacks the key of a rate limit"),
            RejectionReason::StoreUnavailable => ("about:blank", "Rate limit cannot be decided"),
            RejectionReason::QuotaExceeded => (
                QUOTA_EXCEEDED,
                "Request cannot be satisfied as assigned quota has been exceeded",
            ),
            RejectionReason::NoSlot => (
                QUOTA_EXCEEDED,
                "Request cannot be satisfied as too many requests are in flight",
            ),
        };
        let mut body = String::from("{\"type\":");
        push_json_string(&mut body, kind);
        body.push_str(",\"title\":");
        push_json_string(&mut body, title);
        if let Some(detail) = rejection.detail() {
            body.push_str(",\"detail\":");
            push_json_string(&mut body, detail);
        }
        body.push_str(",\"status\":");
        body.push_str(rejection.status.as_str());
        body.push_str(",\"violated-policies\":[");
        for (index, policy) in rejection.violated().enumerate() {
            if index > 0 {
                body.push(',');
            }
            push_json_string(&mut body, policy.name());
        }
        body.push_str("]}");
        let mut response = Response::new(body.into());
        *response.status_mut() = rejection.status;
        let content_type = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        response
    }
}

/// Appends a JSON string (RFC 8259, section 7).
fn push_json_string(json: &mut String, text: &str) {
    json.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            c if c < ' ' => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
}
