//! A refusal as gRPC has it: trailers only, and the details of `google.rpc`, whose encoding is a few fields.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use ::http::Response;
use ::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::policy::{QuotaPolicy, printable};
use super::rejection::Rejection;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

const INVALID_ARGUMENT: u8 = 3;
const RESOURCE_EXHAUSTED: u8 = 8;

/// Whether a request is a gRPC one, which no answer but gRPC's is of use to; not so gRPC-Web, whose trailers are in the body.
pub(super) fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| {
        let rest = kind.as_bytes().strip_prefix(b"application/grpc");
        rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
    })
}

/// The answer; `body` must be empty.
pub(super) fn response<B>(refused: &Rejection<'_>, body: B) -> Response<B> {
    let code = if refused.lacks_key() {
        INVALID_ARGUMENT
    } else {
        RESOURCE_EXHAUSTED
    };
    let message = message(refused);
    let details = STANDARD_NO_PAD.encode(status(code, &message, refused));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(GRPC_STATUS, HeaderValue::from(u16::from(code)));
    for (name, value) in [
        (GRPC_MESSAGE, printable(&message).into_owned()),
        (GRPC_DETAILS, details),
    ] {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
    response
}

fn message(refused: &Rejection<'_>) -> String {
    let names: Vec<&str> = refused.violated().map(QuotaPolicy::name).collect();
    let what = if refused.lacks_key() {
        "request lacks what a rate limit counts by"
    } else {
        "rate limit reached"
    };
    format!("{what}: {}", names.join(", "))
}

/// `google.rpc.Status`: code, message, details.
fn status(code: u8, message: &str, refused: &Rejection<'_>) -> Vec<u8> {
    let mut status = Vec::new();
    number(&mut status, 1, u64::from(code));
    bytes(&mut status, 2, message.as_bytes());
    if let Some(wait) = refused.retry_after {
        // RetryInfo: retry_delay.
        let mut info = Vec::new();
        bytes(&mut info, 1, &duration(wait));
        bytes(&mut status, 3, &any("google.rpc.RetryInfo", &info));
    }
    if !refused.lacks_key() {
        // QuotaFailure: violations, each a subject and a description.
        let mut failure = Vec::new();
        for policy in refused.violated() {
            let mut violation = Vec::new();
            bytes(&mut violation, 1, policy.name().as_bytes());
            let description = format!("{} per {:?}", policy.limit(), policy.window());
            bytes(&mut violation, 2, description.as_bytes());
            bytes(&mut failure, 1, &violation);
        }
        bytes(&mut status, 3, &any("google.rpc.QuotaFailure", &failure));
    }
    status
}

/// `google.protobuf.Any`: type URL and value.
fn any(name: &str, value: &[u8]) -> Vec<u8> {
    let mut any = Vec::new();
    bytes(&mut any, 1, format!("type.googleapis.com/{name}").as_bytes());
    bytes(&mut any, 2, value);
    any
}

/// `google.protobuf.Duration`: seconds and nanoseconds.
fn duration(wait: Duration) -> Vec<u8> {
    let mut duration = Vec::new();
    number(&mut duration, 1, wait.as_secs());
    number(&mut duration, 2, u64::from(wait.subsec_nanos()));
    duration
}

/// A field of the wire type 0; the default, zero, is left out.
fn number(to: &mut Vec<u8>, field: u8, value: u64) {
    if value > 0 {
        to.push(field << 3);
        varint(to, value);
    }
}

/// A field of the wire type 2.
fn bytes(to: &mut Vec<u8>, field: u8, value: &[u8]) {
    to.push(field << 3 | 2);
    varint(to, value.len() as u64);
    to.extend_from_slice(value);
}

fn varint(to: &mut Vec<u8>, mut value: u64) {
    while let Some(low) = low_bits(value) {
        to.push(low | 0x80);
        value >>= 7;
    }
    to.extend(u8::try_from(value));
}

/// The low seven bits of a number that needs more.
fn low_bits(value: u64) -> Option<u8> {
    (value >= 0x80).then(|| value.to_le_bytes()[0] & 0x7f)
}
