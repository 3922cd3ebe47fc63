use core::error::Error;

use http::HeaderName;
use http::request::Parts;
use ringgate::http::{HttpKey, QuotaHeaders, RateLimitLayer};
use ringgate::rules::RuleAlgorithm;
use ringgate::{Key, QuantaClock, Quota, Rule, RuleSet};
use tower::Layer;

use super::service::{Store, turn};
use super::{CELLS, DAY, Paths, SEEDS, counted};

/// Admitted requests through the HTTP layer.
pub(super) fn layers(clock: &QuantaClock) -> Result<Paths, Box<dyn Error>> {
    let client = HttpKey::peer();
    let user = HttpKey::header(HeaderName::from_static("x-api-key"));
    let path = HttpKey::path();
    let set = |keys: &[&Key<Parts>], algorithms: &[RuleAlgorithm]| {
        let mut rules = RuleSet::builder();
        for ((number, key), &algorithm) in (1..).zip(keys).zip(algorithms) {
            let mut rule = Rule::new(format!("rule {number}"), Quota::new(100_000_000, DAY)?);
            if algorithm == RuleAlgorithm::Counter {
                rule = rule.cells(CELLS);
            }
            rules = rules.rule(rule.by(key).algorithm(algorithm));
        }
        Ok::<_, Box<dyn Error>>(rules.build_with(clock.clone(), SEEDS)?)
    };
    let counter = [RuleAlgorithm::Counter; 3];
    // Rules of different algorithms are evaluated one by one.
    let mixed = [RuleAlgorithm::Counter, RuleAlgorithm::Fixed, RuleAlgorithm::Gcra];
    let mut paths: Paths = vec![("http, the service alone".into(), counted(turn(Store)?))];
    for (name, keys, algorithms) in [
        ("one rule", &[&client][..], counter),
        ("three on one client", &[&client, &client, &client], mixed),
        ("three on three keys", &[&client, &user, &path], counter),
    ] {
        for (suffix, headers) in [("", QuotaHeaders::Off), (", headers", QuotaHeaders::Standard)] {
            let layer = RateLimitLayer::from(set(keys, &algorithms)?)
                .headers(headers)
                .decision_extension(false);
            let mut turn = turn(layer.layer(Store))?;
            // The first request makes the entries of the client.
            turn();
            paths.push((format!("http, {name}{suffix}"), counted(turn)));
        }
    }
    Ok(paths)
}
