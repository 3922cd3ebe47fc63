//! Promises of the HTTP layer, by direct calls and over connections.

extern crate alloc;

// First, because its macro is in scope below it only.
#[macro_use]
#[path = "../../common/forward.rs"]
mod forward;

#[path = "http/allocations.rs"]
mod allocations;
#[path = "http/cases.rs"]
mod cases;
#[path = "http/calendar.rs"]
mod calendar;
#[path = "http/charges.rs"]
mod charges;
#[path = "http/client.rs"]
mod client;
#[path = "http/client_ip.rs"]
mod client_ip;
#[path = "http/denials.rs"]
mod denials;
#[path = "http/drain.rs"]
mod drain;
#[path = "http/grpc.rs"]
mod grpc;
#[path = "http/in_flight.rs"]
mod in_flight;
#[path = "http/in_flight_answers.rs"]
mod in_flight_answers;
#[path = "http/keys.rs"]
mod keys;
#[path = "http/many_clients.rs"]
mod many_clients;
#[path = "http/rejections.rs"]
mod rejections;
#[path = "http/seen.rs"]
mod seen;
#[path = "http/server.rs"]
mod server;
#[path = "http/spellings.rs"]
mod spellings;
#[path = "http/live_shared.rs"]
mod live_shared;
#[path = "http/shared.rs"]
mod shared;
#[path = "http/shared_slots.rs"]
mod shared_slots;
#[path = "http/shared_waits.rs"]
mod shared_waits;
#[path = "http/server_limit.rs"]
mod server_limit;
#[path = "http/service.rs"]
mod service;
#[path = "http/upgrades.rs"]
mod upgrades;
#[path = "http/wait.rs"]
mod wait;

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::convert::Infallible;
use core::hash::Hash;
use core::net::{IpAddr, SocketAddr};
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Mutex;
use std::time::SystemTime;

use axum::Router;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Full};
use ringgate::http::{
    ClientIp, ClientRateLimitLayer, Decision, DenialResponse, Grpc, HttpKey, Metered, MeteredBody,
    PeerAddress, Problem, QuotaHeaders, RateLimitLayer, RateLimitService, Rejection, RejectionReason,
    ServerLimit,
};
use ringgate::rules::kind::AnyKind;
use ringgate::rules::{AnyRule, Block, Cost, Extractors, OnMissingKey, RuleAlgorithm, RuleSetBuilder};
use ringgate::shared::{LiveSharedRules, MemoryStore, Mode, SharedRules};
use ringgate::wait::TokioClock;
use ringgate::{Fair, Key, LiveRules, ManualClock, Quota, RateLimiter, Rule, RuleSet};
use service::Strict;
use sfv::{BareItem, ListEntry, Parser};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, advance, sleep};
use tower::{Layer, Service, ServiceExt};

type Live = LiveRules<Parts, ManualClock>;
type Body = Full<Bytes>;

fn quota(text: &str) -> Quota {
    text.parse().expect("a quota")
}

fn rule(name: &'static str, text: &str) -> Rule<Parts> {
    Rule::new(name, quota(text))
}

fn set<K: Into<AnyKind>>(rules: impl IntoIterator<Item = Rule<Parts, K>>) -> RuleSetBuilder<Parts> {
    rules
        .into_iter()
        .fold(RuleSetBuilder::new(), RuleSetBuilder::rule)
}

/// Rules with a manual clock, which reads one hour.
fn live<K: Into<AnyKind>>(rules: impl IntoIterator<Item = Rule<Parts, K>>) -> (Arc<Live>, ManualClock) {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(3600));
    let rules = set(rules).build_with(clock.clone(), [1, 2, 3, 4]).expect("rules");
    (Arc::new(LiveRules::new(rules)), clock)
}

fn layer<K: Into<AnyKind>>(rules: impl IntoIterator<Item = Rule<Parts, K>>) -> RateLimitLayer<Live> {
    RateLimitLayer::new(live(rules).0)
}

/// Makes a request from a peer.
fn from(peer: &str) -> Request<()> {
    let mut request = Request::new(());
    let peer = PeerAddress(peer.parse().expect("an address"));
    request.extensions_mut().insert(peer);
    request
}

fn with(name: &'static str, value: &str, mut request: Request<()>) -> Request<()> {
    let value = value.try_into().expect("a value");
    request.headers_mut().append(HeaderName::from_static(name), value);
    request
}

/// A request of this path.
fn get(path: &str) -> Request<()> {
    Request::get(path).body(()).expect("a request")
}

/// A request of the client that most tests have.
fn alice() -> Request<()> {
    from("192.0.2.1")
}

/// Returns the response of a service that may wait.
async fn answer<S, B>(service: S, request: Request<()>) -> Response<B>
where
    S: Service<Request<()>, Response = Response<B>, Error = Infallible>,
{
    let Ok(response) = tower::ServiceExt::oneshot(service, request).await;
    response
}

/// Rules with tokio's clock.
fn paused<K: Into<AnyKind>>(rules: impl IntoIterator<Item = Rule<Parts, K>>) -> RuleSet<Parts, TokioClock> {
    set(rules).build_with(TokioClock::new(), [1; 4]).expect("rules")
}

/// A store with tokio's clock, which is advanced by one hour first.
async fn memory() -> Arc<MemoryStore> {
    let clock = TokioClock::new();
    tokio::time::advance(Duration::from_secs(3600)).await;
    Arc::new(MemoryStore::with_clock(clock))
}

/// Returns the response of a service to a request.
fn send<S, B>(service: &mut S, request: Request<()>) -> Response<B>
where
    S: Service<Request<()>, Response = Response<B>, Error = Infallible>,
{
    let mut cx = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut cx).is_ready());
    let Ok(response) = now(service.call(request));
    response
}

/// Returns the output of a future that is ready.
fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("pending"),
    }
}

/// Always responds with `hello`.
#[derive(Clone, Debug)]
struct Hello;

impl Service<Request<()>> for Hello {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = core::future::Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        core::future::ready(Ok(Response::new(Full::from("hello"))))
    }
}

/// Returns the statuses of responses to these requests, under a rule that admits each key once.
fn statuses(key: &Key<Parts>, requests: impl IntoIterator<Item = Request<()>>) -> Vec<u16> {
    let mut service = layer([rule("once", "1/h").by(key)]).layer(Hello);
    let status = |request| send(&mut service, request).status().as_u16();
    requests.into_iter().map(status).collect()
}

/// Returns the body of a problem.
fn problem<B: http_body::Body<Data = Bytes, Error: core::fmt::Debug>>(
    response: Response<B>,
) -> serde_json::Value {
    serde_json::from_str(&text(response)).expect("JSON")
}

/// Returns a header of a response as text.
fn header<'a, B>(response: &'a Response<B>, name: &str) -> Option<&'a str> {
    let value = response.headers().get(name)?;
    Some(value.to_str().expect("text"))
}

/// Rules over a store, in tokio's time.
fn over<K: Into<AnyKind>>(
    store: &Arc<MemoryStore>,
    rules: impl IntoIterator<Item = Rule<Parts, K>>,
) -> Arc<SharedRules<Parts>> {
    let builder = SharedRules::builder().term_clock(TokioClock::new());
    Arc::new(builder.rules(set(rules)).build(store.clone()).expect("rules"))
}

/// A listener on a free port of the loopback, and its address.
async fn listen() -> (tokio::net::TcpListener, core::net::SocketAddr) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

/// Returns the status and a header of a response.
fn status_and<'a, B>(response: &'a Response<B>, name: &str) -> (u16, Option<&'a str>) {
    (response.status().as_u16(), header(response, name))
}

/// Sends requests that carry nothing, and returns the statuses of the responses.
fn sent<S, B>(service: &mut S, requests: usize) -> Vec<u16>
where
    S: Service<Request<()>, Response = Response<B>, Error = Infallible>,
{
    let status = |_| send(service, Request::new(())).status().as_u16();
    (0..requests).map(status).collect()
}

/// The permits that are spent of all rules for the client, and the slots that are held.
fn held(live: &Live) -> u64 {
    let (head, ()) = alice().into_parts();
    live.load().peek(&head).map(|peek| peek.spent()).sum()
}

/// Polls a future once, without a task to wake.
fn poll_once<F: Future>(future: &mut core::pin::Pin<Box<F>>) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// A service that always gives this response.
fn responding<B: Clone + Send>(
    response: impl Fn() -> Response<B> + Clone,
) -> impl Service<Request<()>, Response = Response<B>, Error = Infallible, Future: Send> + Clone {
    tower::service_fn(move |_: Request<()>| core::future::ready(Ok::<_, Infallible>(response())))
}

/// Returns the body of a response as text.
fn text<B>(response: Response<B>) -> String
where
    B: http_body::Body<Data = Bytes, Error: core::fmt::Debug>,
{
    let body = now(http_body_util::BodyExt::collect(response.into_body())).expect("a body");
    String::from_utf8(body.to_bytes().to_vec()).expect("text")
}
