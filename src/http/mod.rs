//! Rate limits for HTTP and gRPC servers and their clients: layers and services of `tower`, for axum, tonic and hyper.
//!
// The example is compiled in `tests/servers`, which has axum.
#![cfg_attr(not(doctest), doc = include_str!("axum.md"))]
//!
//! # Contents
//!
//! | task | item |
//! |---|---|
//! | limit a server | [`RateLimitLayer`] |
//! | count by address, header, cookie, path, route or extension | [`HttpKey`] |
//! | identify clients behind proxies | [`ClientIp`] |
//! | choose the quota headers, or turn them off | [`QuotaHeaders`] |
//! | replace the default 429 response | [`RateLimitLayer::respond_with`], [`RejectionResponse`] |
//! | reject with gRPC statuses | [`Grpc`] |
//! | choose the statuses of rejections | [`RateLimitLayer::status`], [`RejectionReason`] |
//! | exempt CORS preflights and health checks | [`RateLimitLayer::skip_preflight`], [`RateLimitLayer::skip_path`] |
//! | count failed requests only | [`RateLimitLayer::charge_if`] |
//! | charge the bytes of response bodies | [`RateLimitLayer::settle_body`] |
//! | limit the requests in flight until their bodies have ended | [`RateLimitLayer::until_body_end`] |
//! | limit the connections in flight that are upgraded, such as WebSockets | [`InFlightSlot`] |
//! | delay requests instead of rejecting them | [`RateLimitLayer::wait`] |
//! | read the body of a rejected request before the response | [`DrainLayer`] |
//! | choose how requests without a key are treated | [`Key::on_missing`](crate::Key::on_missing) |
//! | read the decision in a handler | [`Decision`] |
//! | respond to a limit that a handler checks | [`DenialResponse`] |
//! | observe rejections | [`RateLimitLayer::on_rejected`] |
//! | count over many machines (feature `shared`) | `RateLimitLayer::from` of `SharedRules` |
//! | obey the limits of a server as a client | [`ClientRateLimitLayer`], with the [guide](crate::guide::waiting#clients-of-http-apis) |
//! | read the limits that a response states | [`ServerLimit`] |
//!
//! Rules of the layer evaluate `http::request::Parts`: the request head and its extensions. They do not depend on the type of the
//! body.
//!
//! # Guarantees
//!
//! - All clones of a layer, and all their services, share one set of rules. So a limit holds over all connections.
//! - A rejected request does not reach the inner service. It is charged to no rule, with the exceptions that
//!   [`RuleSet`](crate::RuleSet) documents.
//! - `Retry-After` is at least 1. A request that is repeated after that many seconds is admitted, if no other request
//!   is charged in between. [`RateLimitLayer::jitter`] makes it later, never earlier. A rejection that no wait can change has no
//!   `Retry-After`. A rejection for lack of a slot [in flight](crate::Rule::in_flight) has none by default, because no time frees a
//!   slot: see [`RateLimitLayer::slot_retry_after`].
//! - The inner service is called only after it was ready.
//! - With [`QuotaHeaders::Off`] and without the [`Decision`], an admitted request allocates nothing. This includes shared rules that
//!   decide by a lease. [`charge_if`](RateLimitLayer::charge_if), [`settle_body`](RateLimitLayer::settle_body), a rule of
//!   requests in flight, waiting, and a call of a store allocate.
//! - A request is decided in the call of the service, without an await, unless it waits or a store decides it.
//!
//! # Caveats
//!
//! - A client may be able to choose its key. [`HttpKey`] documents this for each source of a key.

mod admission;
mod answer;
mod client;
mod config;
mod drain;
mod layer;
mod request;
mod rules;
mod service;

pub use admission::{InFlightSlot, SlotGuard};
pub use answer::{
    Decision, DenialResponse, Grpc, Problem, QuotaHeaders, QuotaPolicy, Rejection, RejectionReason,
    RejectionResponse,
};
pub use client::ServerLimit;
pub use client::{ClientRateLimitFuture, ClientRateLimitLayer, ClientRateLimitService};
pub use drain::{DrainBody, DrainFuture, DrainLayer, DrainService};
pub use layer::RateLimitLayer;
pub use request::{ClientIp, HttpKey, PeerAddress};
pub use rules::HttpRules;
pub use service::{Metered, MeteredBody, RateLimitFuture, RateLimitService, Unmetered};
