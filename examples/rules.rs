//! Limits requests by the rules of a file, and by other rules from then on, without a fresh budget.
//!
//! ```text
//! cargo run --release --features config --example rules
//! cargo run --release --features config --example rules -- examples/rules.yaml
//! ```
//!
//! Time is driven by hand, so that the output is the same each time.

use core::error::Error;
use core::hash::Hash;
use core::time::Duration;

use ringgate::{Extractors, FileFormat, Key, LiveRules, ManualClock, RuleSetBuilder};

struct Request {
    user: &'static str,
    endpoint: &'static str,
}

/// One instead of two a second for each user; the endpoint as before.
const STRICTER: &str = "
rules:
  - { name: user, quota: 1/s, key: user }
  - { name: endpoint, quotas: [50/10s, 100/60s], key: endpoint }
";

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args()
        .nth(1)
        .unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/examples/rules.toml").into());

    // What the names in the file mean.
    let extractors = Extractors::new()
        .key(Key::new("user", |request: &Request, key| request.user.hash(key)))?
        .key(Key::new("endpoint", |request: &Request, key| {
            request.endpoint.hash(key);
        }))?;

    let clock = ManualClock::new();
    let rules = RuleSetBuilder::from_file(path, &extractors)?;
    // Seeds that nobody else knows are `RuleSetBuilder::build`'s; these make each run the same.
    let live = LiveRules::new(rules.build_with(clock.clone(), [1, 2, 3, 4])?);

    println!("two a second for each user:");
    for user in ["alice", "alice", "alice", "bob"] {
        ask(&live, user);
    }

    live.store(&RuleSetBuilder::from_text(
        STRICTER,
        FileFormat::Yaml,
        &extractors,
    )?)?;
    println!("one a second from now on, and what was spent still counts:");
    for user in ["alice", "bob", "carol", "carol"] {
        ask(&live, user);
    }

    // A mistake changes nothing.
    let mistake = STRICTER.replace("1/s", "1/fortnight");
    if let Err(error) = RuleSetBuilder::from_text(&mistake, FileFormat::Yaml, &extractors) {
        println!("a mistake: {error}");
    }

    clock.advance(Duration::from_secs(2));
    println!("two seconds later:");
    for user in ["alice", "alice"] {
        ask(&live, user);
    }
    Ok(())
}

fn ask(live: &LiveRules<Request, ManualClock>, user: &'static str) {
    let request = Request {
        user,
        endpoint: "/orders",
    };
    let rules = live.load();
    match rules.check(&request) {
        Ok(_) => println!("  {user:<6} admitted"),
        Err(refused) => {
            let by: Vec<&str> = refused.violations().map(|violation| violation.rule()).collect();
            println!("  {user:<6} refused by {}", by.join(", "));
        }
    }
}
