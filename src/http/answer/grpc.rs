//! Rejections as gRPC statuses with the details of `google.rpc`. These are a few protobuf fields, which are encoded here.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use ::http::Response;
use ::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::policy::{QuotaPolicy, percent_encode};
use super::rejection::{Rejection, RejectionReason, RejectionResponse};

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_STATUS_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

const INVALID_ARGUMENT: u8 = 3;
const RESOURCE_EXHAUSTED: u8 = 8;
const INTERNAL: u8 = 13;
const UNAVAILABLE: u8 = 14;

/// Rejects with the gRPC code `RESOURCE_EXHAUSTED`.
///
/// The code is `INVALID_ARGUMENT` if the request lacks a key. It is `INTERNAL` if the server should have provided the key, and
/// `UNAVAILABLE` if the store of shared rules does not answer.
///
/// The response is trailers-only, with the HTTP status 200 that gRPC requires: the status is in its headers, and the body is
/// empty. A request of gRPC-Web gets the same response with its own content type. A browser shows the status to a client of
/// another origin only if the CORS layer exposes `grpc-status`, `grpc-message` and `grpc-status-details-bin`.
///
/// Its `grpc-status-details-bin` has a
/// `google.rpc.RetryInfo` and a `google.rpc.QuotaFailure` with one violation for each violated policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grpc;

impl<B: Default> RejectionResponse<B> for Grpc {
    fn response(&self, rejection: &Rejection<'_>) -> Response<B> {
        let content_type = content_type(&rejection.request.headers);
        let content_type = content_type.unwrap_or(HeaderValue::from_static("application/grpc"));
        response(rejection, content_type, B::default())
    }
}

/// Returns the content type of the response to a gRPC request. `None` for another request. A client of gRPC-Web expects the type
/// that it has sent.
pub(super) fn content_type(headers: &HeaderMap) -> Option<HeaderValue> {
    let sent = headers.get(CONTENT_TYPE)?.as_bytes();
    let media_type = sent.split(|&byte| byte == b';').next()?.trim_ascii();
    let media_type = media_type.to_ascii_lowercase();
    let protocol = media_type.split(|&byte| byte == b'+').next()?;
    match protocol {
        b"application/grpc" => Some(HeaderValue::from_static("application/grpc")),
        b"application/grpc-web" | b"application/grpc-web-text" => HeaderValue::from_bytes(&media_type).ok(),
        _ => None,
    }
}

/// Makes the gRPC response to a rejected request. `body` must be empty.
pub(super) fn response<B>(rejection: &Rejection<'_>, content_type: HeaderValue, body: B) -> Response<B> {
    let code = match rejection.reason() {
        RejectionReason::NoKeyFromServer => INTERNAL,
        RejectionReason::NoKey => INVALID_ARGUMENT,
        RejectionReason::StoreUnavailable => UNAVAILABLE,
        RejectionReason::QuotaExceeded | RejectionReason::NoSlot => RESOURCE_EXHAUSTED,
    };
    let message = message(rejection);
    let details = STANDARD_NO_PAD.encode(status(code, &message, rejection));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, content_type);
    headers.insert(GRPC_STATUS, HeaderValue::from(u16::from(code)));
    for (name, value) in [
        (GRPC_MESSAGE, percent_encode(&message).into_owned()),
        (GRPC_STATUS_DETAILS, details),
    ] {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
    response
}

fn message(rejection: &Rejection<'_>) -> String {
    let names: Vec<&str> = rejection.violated().map(QuotaPolicy::name).collect();
    let reason = rejection.reason();
    let message = format!("{}: {}", reason.text(), names.join(", "));
    match rejection.detail() {
        Some(help) => format!("{message} ({help})"),
        None => message,
    }
}

/// Encodes `google.rpc.Status`: code, message, details.
fn status(code: u8, message: &str, rejection: &Rejection<'_>) -> Vec<u8> {
    let mut status = [number(1, u64::from(code)), bytes(2, message.as_bytes())].concat();
    if let Some(after) = rejection.jittered_retry_after() {
        // RetryInfo { retry_delay: Duration { seconds, nanos } }
        let nanos = u64::from(after.subsec_nanos());
        let delay = [number(1, after.as_secs()), number(2, nanos)].concat();
        status.extend(any("google.rpc.RetryInfo", &bytes(1, &delay)));
    }
    if code == RESOURCE_EXHAUSTED {
        // QuotaFailure { violations: [{ subject, description }] }
        let violation = |policy: &QuotaPolicy<'_>| {
            let description = format!("{} {}", policy.limit(), policy.per_window());
            let fields = [
                bytes(1, policy.name().as_bytes()),
                bytes(2, description.as_bytes()),
            ];
            bytes(1, &fields.concat())
        };
        let violations: Vec<u8> = rejection.violated().flat_map(violation).collect();
        status.extend(any("google.rpc.QuotaFailure", &violations));
    }
    status
}

/// Encodes a detail of a status, a `google.protobuf.Any`: type URL and value.
fn any(name: &str, value: &[u8]) -> Vec<u8> {
    let url = format!("type.googleapis.com/{name}");
    bytes(3, &[bytes(1, url.as_bytes()), bytes(2, value)].concat())
}

/// Encodes a field of wire type 0 (varint). The default value, zero, is omitted.
fn number(field: u8, value: u64) -> Vec<u8> {
    let mut encoded = Vec::new();
    if value > 0 {
        encoded.push(field << 3);
        push_varint(&mut encoded, value);
    }
    encoded
}

/// Encodes a field of wire type 2 (length-delimited).
fn bytes(field: u8, value: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::from([field << 3 | 2]);
    push_varint(&mut encoded, value.len() as u64);
    encoded.extend_from_slice(value);
    encoded
}

fn push_varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    to.push(value.to_le_bytes()[0]);
}
