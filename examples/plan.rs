//! The plan of a customer: a few requests at a time, a number of requests for each calendar month, and a block after repeated violations.
//!
//! ```text
//! cargo run --release --features config,calendar --example plan
//! ```
//!
//! The example advances the clock itself, so that each run prints the same output.

use core::error::Error;
use core::hash::Hash;
use core::time::Duration;
use std::time::SystemTime;

use ringgate::rules::{Extractors, FileFormat, Reservation, RuleSetBuilder};
use ringgate::{Key, ManualClock, RuleSet};

/// A request is charged to all rules, or to none if one of them has no capacity left.
const PLAN: &str = r#"
[[rules]]
name = "at a time"
key = "customer"
in_flight = 2

[[rules]]
name = "contract"
key = "customer"
calendar = "8/month from the 5th"
time_zone = "Europe/Berlin"

[[rules]]
name = "pace"
key = "customer"
quota = "3/s"

# Three denials by the pace within a minute block the customer for ten minutes.
[rules.block]
after = "3/min"
for = "10min"
"#;

/// Midnight of 20 October 2026 in Berlin, in seconds since the Unix epoch.
const BEGIN: u64 = 1_792_447_200;

type Plan = RuleSet<str, ManualClock>;

fn main() -> Result<(), Box<dyn Error>> {
    let extractors = Extractors::new().key(Key::new("customer", |customer: &str, key| customer.hash(key)))?;
    let clock = ManualClock::new();
    // A server passes a `SystemClock` and random seeds. A manual clock and fixed seeds make each run the same.
    let plan = RuleSetBuilder::from_text(PLAN, FileFormat::Toml, &extractors)?
        .origin(SystemTime::UNIX_EPOCH + Duration::from_secs(BEGIN))
        .build_with(clock.clone(), [1, 2, 3, 4])?;

    println!("two requests at a time:");
    let running = [reserve(&plan), reserve(&plan)];
    reserve(&plan);
    // The slots are released when the work has ended, also by a panic or a cancelled future.
    drop(running);

    println!("one more in this second, then a block:");
    for _ in 0..5 {
        reserve(&plan);
    }
    clock.advance(Duration::from_secs(60));
    reserve(&plan);
    println!("the support ends the block of {} rule:", plan.unblock("acme"));
    reserve(&plan);

    println!("the rest of the month, a request a second:");
    for _ in 0..5 {
        clock.advance(Duration::from_secs(1));
        reserve(&plan);
    }
    Ok(())
}

/// Requests a slot and a permit of each rule, and prints the result.
fn reserve(plan: &Plan) -> Option<Reservation<str>> {
    match plan.reserve("acme") {
        Ok(reservation) => {
            println!("  admitted");
            Some(reservation)
        }
        Err(denied) => {
            println!("  {denied}");
            None
        }
    }
}
