//! Rejections as gRPC statuses with the details of `google.rpc`. These are a few protobuf fields, which are encoded here.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

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
/// The response is trailers-only, with the HTTP status 200 that gRPC requires. Its `grpc-status-details-bin` has a
/// `google.rpc.RetryInfo` and a `google.rpc.QuotaFailure` with one violation for each violated policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grpc;

impl<B: Default> RejectionResponse<B> for Grpc {
    fn response(&self, rejection: &Rejection<'_>) -> Response<B> {
        response(rejection, B::default())
    }
}

/// Returns whether a request is gRPC. It returns false for gRPC-Web, whose clients read trailers from the body.
pub(super) fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|content_type| {
        let rest = content_type.as_bytes().strip_prefix(b"application/grpc");
        rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
    })
}

/// Makes the gRPC response to a rejected request. `body` must be empty.
pub(super) fn response<B>(rejection: &Rejection<'_>, body: B) -> Response<B> {
    let code = match rejection.reason() {
        RejectionReason::NoKeyFromServer => INTERNAL,
        RejectionReason::NoKey => INVALID_ARGUMENT,
        RejectionReason::StoreUnavailable => UNAVAILABLE,
        RejectionReason::QuotaExceeded => RESOURCE_EXHAUSTED,
    };
    let message = message(rejection);
    let details = STANDARD_NO_PAD.encode(status(code, &message, rejection));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
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
    let mut status = Vec::new();
    push_number(&mut status, 1, u64::from(code));
    push_bytes(&mut status, 2, message.as_bytes());
    if let Some(retry_after) = rejection.jittered_retry_after() {
        // RetryInfo { retry_delay }
        let mut info = Vec::new();
        push_bytes(&mut info, 1, &duration(retry_after));
        push_bytes(&mut status, 3, &any("google.rpc.RetryInfo", &info));
    }
    if rejection.reason() == RejectionReason::QuotaExceeded {
        // QuotaFailure { violations: [{ subject, description }] }
        let mut failure = Vec::new();
        for policy in rejection.violated() {
            let mut violation = Vec::new();
            push_bytes(&mut violation, 1, policy.name().as_bytes());
            let description = format!("{} {}", policy.limit(), policy.per_window());
            push_bytes(&mut violation, 2, description.as_bytes());
            push_bytes(&mut failure, 1, &violation);
        }
        push_bytes(&mut status, 3, &any("google.rpc.QuotaFailure", &failure));
    }
    status
}

/// Encodes `google.protobuf.Any`: type URL and value.
fn any(name: &str, value: &[u8]) -> Vec<u8> {
    let mut any = Vec::new();
    push_bytes(&mut any, 1, format!("type.googleapis.com/{name}").as_bytes());
    push_bytes(&mut any, 2, value);
    any
}

/// Encodes `google.protobuf.Duration`: seconds and nanoseconds.
fn duration(duration: Duration) -> Vec<u8> {
    let mut bytes = Vec::new();
    push_number(&mut bytes, 1, duration.as_secs());
    push_number(&mut bytes, 2, u64::from(duration.subsec_nanos()));
    bytes
}

/// Appends a field of wire type 0 (varint). The default value, zero, is omitted.
fn push_number(to: &mut Vec<u8>, field: u8, value: u64) {
    if value > 0 {
        to.push(field << 3);
        push_varint(to, value);
    }
}

/// Appends a field of wire type 2 (length-delimited).
fn push_bytes(to: &mut Vec<u8>, field: u8, value: &[u8]) {
    to.push(field << 3 | 2);
    push_varint(to, value.len() as u64);
    to.extend_from_slice(value);
}

fn push_varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    to.push(value.to_le_bytes()[0]);
}
