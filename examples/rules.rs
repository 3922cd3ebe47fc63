//! Limits requests by rules from a file, and replaces the rules without a fresh budget.
//!
//! ```text
//! cargo run --release --features config --example rules
//! cargo run --release --features config --example rules -- examples/rules.yaml
//! ```
//!
//! The example advances the clock itself, so that each run prints the same output.

use core::error::Error;
use core::hash::Hash;
use core::time::Duration;

use ringgate::rules::{Extractors, FileFormat, RuleSetBuilder};
use ringgate::{Key, LiveRules, ManualClock};

struct Request {
    user: &'static str,
    endpoint: &'static str,
}

/// The new rules: one request per second for each user instead of two. The rule by endpoint is unchanged.
const STRICTER: &str = "
rules:
  - { name: user, quota: 1/s, key: user }
  - { name: endpoint, quotas: [50/10s, 100/60s], key: endpoint }
";

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args()
        .nth(1)
        .unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/examples/rules.toml").into());

    // The names that the file can refer to.
    let extractors = Extractors::new()
        .key(Key::new("user", |request: &Request, key| request.user.hash(key)))?
        .key(Key::new("endpoint", |request: &Request, key| {
            request.endpoint.hash(key);
        }))?;

    let clock = ManualClock::new();
    let rules = RuleSetBuilder::from_file(path, &extractors)?;
    // Fixed seeds make each run the same. A server uses `RuleSetBuilder::build`, whose seeds are random.
    let live = LiveRules::new(rules.build_with(clock.clone(), [1, 2, 3, 4])?);

    println!("two a second for each user:");
    for user in ["alice", "alice", "alice", "bob"] {
        check(&live, user);
    }

    live.store(&RuleSetBuilder::from_text(
        STRICTER,
        FileFormat::Yaml,
        &extractors,
    )?)?;
    println!("after the reload, one a second; earlier requests still count:");
    for user in ["alice", "bob", "carol", "carol"] {
        check(&live, user);
    }

    // An invalid file leaves the rules in force.
    let invalid = STRICTER.replace("1/s", "1/fortnight");
    if let Err(error) = RuleSetBuilder::from_text(&invalid, FileFormat::Yaml, &extractors) {
        println!("invalid: {error}");
    }

    clock.advance(Duration::from_secs(2));
    println!("two seconds later:");
    for user in ["alice", "alice"] {
        check(&live, user);
    }
    Ok(())
}

fn check(live: &LiveRules<Request, ManualClock>, user: &'static str) {
    let request = Request {
        user,
        endpoint: "/orders",
    };
    let rules = live.load();
    match rules.check(&request) {
        Ok(_) => println!("  {user:<6} admitted"),
        Err(denied) => {
            let by: Vec<String> = denied
                .violations()
                .map(|violation| violation.rule.to_string())
                .collect();
            println!("  {user:<6} denied by {}", by.join(", "));
        }
    }
}
