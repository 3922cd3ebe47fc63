//! What the layer adds to a decision, for requests that are admitted.
//!
//! `cargo bench -p ringgate-benches --bench http` first prints a table of ratios, measured here in alternating rounds, then
//! criterion's own statistics. No figure makes this fail. See `benches/README.md` for a run.
//!
//! The service inside puts the request aside, so that one request is used again and again, and nothing but the layer and
//! its rules takes time; what moving the request there and back takes by itself is the row `the service alone`. It is
//! called as a service is that the compiler does not know, and its answer is looked at where it is, in both cases: or the
//! one alone is made one with the loop around it, and what that saves would count as the layer's.

extern crate alloc;

use alloc::sync::Arc;
use core::cell::Cell;
use core::convert::Infallible;
use core::future::{Ready, ready};
use core::hint::black_box;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use http::request::Parts;
use http::{HeaderName, Request, Response};
use ringgate::http::{HttpKey, PeerAddress, QuotaHeaders, RateLimitLayer};
use ringgate::{LiveRules, Quota, Rule, RuleSet};
use tower::{Layer, Service};

use ringgate_benches::{Case, Work, counted};

type Error = Box<dyn core::error::Error>;

thread_local! {
    /// The request, when the service has had it.
    static SERVED: Cell<Option<Request<()>>> = const { Cell::new(None) };
}

/// Answers with nothing.
#[derive(Clone)]
struct Empty;

impl Service<Request<()>> for Empty {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    #[inline(never)]
    fn call(&mut self, request: Request<()>) -> Self::Future {
        SERVED.set(Some(request));
        ready(Ok(Response::new(String::new())))
    }
}

fn main() -> Result<(), Error> {
    let mut cases = Vec::new();
    for (rules, name) in [(1, "one rule"), (3, "three rules on three keys")] {
        let case = |case, target, work| Case {
            group: name,
            name: case,
            target,
            work,
        };
        let off = |layer: RateLimitLayer| layer.headers(QuotaHeaders::Off);
        let bare = |layer: RateLimitLayer| off(layer).decision_extension(false);
        cases.extend([
            case("rule set", None, decision(rules)?),
            case("rule set, live", None, live(rules)?),
            case("the service alone", None, service(Empty)?),
            case("layer, bare", Some(2.0), layer(rules, bare)?),
            case("layer, decision", None, layer(rules, off)?),
            case("layer, decision, headers", None, layer(rules, |layer| layer)?),
        ]);
    }
    ringgate_benches::run(cases);
    Ok(())
}

/// Admitted for as long as a bench may run.
fn set(rules: usize) -> Result<RuleSet<Parts>, Error> {
    let keys = [
        HttpKey::peer().key(),
        HttpKey::header(HeaderName::from_static("x-api-key")).key(),
        HttpKey::path().key(),
    ];
    // One key takes it all: a rule of its own decides forty million times a second.
    let quota = Quota::new(10_000_000_000, Duration::from_secs(60))?;
    let rules = keys[..rules]
        .iter()
        .enumerate()
        .map(|(number, key)| Rule::new(format!("rule {number}"), quota).by(key));
    Ok(rules
        .fold(RuleSet::builder(), |set, rule| set.rule(rule))
        .build()?)
}

fn request() -> Result<Request<()>, Error> {
    Ok(Request::get("/orders/17")
        .header("x-api-key", "alice")
        .header("host", "example.com")
        .header("accept", "*/*")
        .extension(PeerAddress("192.0.2.1".parse()?))
        .body(())?)
}

fn decision(rules: usize) -> Result<Work, Error> {
    let (rules, (request, ())) = (set(rules)?, request()?.into_parts());
    Ok(counted(move || {
        black_box(&rules).check(black_box(&request)).is_ok()
    }))
}

fn live(rules: usize) -> Result<Work, Error> {
    let (rules, (request, ())) = (LiveRules::new(set(rules)?), request()?.into_parts());
    Ok(counted(move || {
        black_box(&rules).load().check(black_box(&request)).is_ok()
    }))
}

fn layer(rules: usize, with: impl Fn(RateLimitLayer) -> RateLimitLayer) -> Result<Work, Error> {
    let layer = with(RateLimitLayer::new(Arc::new(LiveRules::new(set(rules)?))));
    service(layer.layer(Empty))
}

fn service<S>(mut service: S) -> Result<Work, Error>
where
    S: Service<Request<()>, Response = Response<String>, Error = Infallible> + 'static,
{
    let mut first = Some(request()?);
    Ok(counted(move || {
        let mut cx = Context::from_waker(Waker::noop());
        let Some(request) = first.take().or_else(|| SERVED.take()) else {
            return false;
        };
        if service.poll_ready(&mut cx).is_pending() {
            return false;
        }
        black_box(&request);
        let answer = pin!(service.call(request)).poll(&mut cx);
        matches!(black_box(&answer), Poll::Ready(Ok(answer)) if answer.status().is_success())
    }))
}
