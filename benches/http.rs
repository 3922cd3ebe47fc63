//! The cost that the HTTP layer adds to a decision, for admitted requests.
//!
//! `cargo bench -p ringgate-benches --bench http` first prints a table of ratios, measured in alternating rounds, and then
//! the statistics of criterion. No figure makes this bench fail.
//!
//! The row `the service alone` is the cost of moving the request, without a layer.

extern crate alloc;

mod service;

use alloc::sync::Arc;
use core::convert::Infallible;
use core::hint::black_box;
use core::time::Duration;

use http::request::Parts;
use http::{HeaderName, Request, Response};
use ringgate::http::{HttpKey, QuotaHeaders, RateLimitLayer};
use ringgate::{LiveRules, Quota, Rule, RuleSet};
use ringgate_benches::{Case, Work, counted};
use tower::{Layer, Service};

use self::service::{Store, request, turn};

type Error = Box<dyn core::error::Error>;

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
            case("the service alone", None, served(Store)?),
            case("layer, bare", Some(2.0), layer(rules, bare)?),
            case("layer, decision", None, layer(rules, off)?),
            case("layer, decision, headers", None, layer(rules, |layer| layer)?),
        ]);
    }
    ringgate_benches::run(cases);
    Ok(())
}

/// Rules that admit everything while a bench runs.
fn set(rules: usize) -> Result<RuleSet<Parts>, Error> {
    let keys = [
        HttpKey::peer(),
        HttpKey::header(HeaderName::from_static("x-api-key")),
        HttpKey::path(),
    ];
    // A rule decides about forty million requests a second, all with one key.
    let quota = Quota::new(10_000_000_000, Duration::from_secs(60))?;
    let rules = keys[..rules]
        .iter()
        .enumerate()
        .map(|(number, key)| Rule::new(format!("rule {number}"), quota).cells(5).by(key));
    Ok(rules
        .fold(RuleSet::builder(), |set, rule| set.rule(rule))
        .build()?)
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
    served(layer.layer(Store))
}

fn served<S>(service: S) -> Result<Work, Error>
where
    S: Service<Request<()>, Response = Response<String>, Error = Infallible> + 'static,
{
    Ok(counted(turn(service)?))
}
