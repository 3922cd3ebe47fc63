//! Rules for http servers: a Layer and a Service of `tower`, for axum, tonic, hyper and whatever else is built of them.
//!
// Compiled in tests/servers, so that the library itself needs no server to be tested.
#![cfg_attr(not(doctest), doc = include_str!("http/axum.md"))]
//!
//! | you want | see |
//! |---|---|
//! | to limit a server | [`RateLimitLayer`] |
//! | to count by address, header, cookie, path, route, extension | [`HttpKey`] |
//! | clients behind proxies, without spoofing | [`ClientIp`] |
//! | other headers, or none | [`QuotaHeaders`] |
//! | another answer than 429 with problem+json | [`RateLimitLayer::answer`], [`RejectionResponse`] |
//! | gRPC | [`RateLimitLayer::grpc`] |
//! | to leave preflights and health checks alone | [`RateLimitLayer::skip_preflight`], [`RateLimitLayer::skip_path`] |
//! | to count failures only | [`RateLimitLayer::charge_if`] |
//! | to charge the bytes that were sent | [`RateLimitLayer::settle_body`] |
//! | to let requests wait instead (feature `tokio`) | `RateLimitLayer::wait`, which makes a `WaitLayer` |
//! | what becomes of requests without a key | [`HttpKey::missing`], [`RateLimitLayer::missing_status`] |
//! | what a handler can read of the decision | [`Decision`] |
//! | events for refusals | [`RateLimitLayer::on_refused`] |
//!
//! Rules are about `http::request::Parts`, so they do not depend on the type of the body; what they count by is in the
//! head of a request and in what others have put into its extensions.
//!
//! # Guarantees
//!
//! - All clones of a layer and of the services that it makes share its rules, over all connections.
//! - A refused request is charged to no rule (as far as a [`RuleSet`](crate::RuleSet) promises), and does not reach the
//!   service inside.
//! - What `Retry-After` says is never 0, and never too early if nobody else asks meanwhile.
//! - The service inside is called only when it has said that it is ready.
//! - Nothing is boxed or allocated for an admitted request, except for the headers and the [`Decision`], which can be turned off,
//!   and for [`charge_if`](RateLimitLayer::charge_if) and requests that wait.
//!
//! Limits that many machines share (the module `redis`, with its feature) are asked by a middleware of one's own: the layer's
//! rules are those of one process.

mod body;
mod client_ip;
mod config;
mod decision;
mod future;
mod grpc;
mod headers;
mod keys;
mod layer;
mod policy;
mod rejection;
mod service;
mod skip;
#[cfg(feature = "tokio")]
mod wait;

pub use body::{MeteredBody, SettleFuture, SettleLayer, SettleService};
pub use client_ip::{ClientIp, PeerAddress};
pub use decision::Decision;
pub use future::RateLimitFuture;
pub use headers::QuotaHeaders;
pub use keys::HttpKey;
pub use layer::RateLimitLayer;
pub use policy::QuotaPolicy;
pub use rejection::{Grpc, Problem, Rejection, RejectionResponse};
pub use service::RateLimitService;
#[cfg(feature = "tokio")]
pub use wait::{WaitFuture, WaitLayer, WaitService};
