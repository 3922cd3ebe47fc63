//! The cost of decisions that a node makes from its leases, compared with the limiters of one process.

use alloc::sync::Arc;
use core::hash::Hash as _;
use core::hint::black_box;
use core::time::Duration;
use std::time::Instant;

use ringgate::redis::RedisStore;
use ringgate::rules::Mode;
use ringgate::shared::{DecidedBy, SharedLimiter, SharedLimiterBuilder, SharedRules};
use ringgate::{CounterRing, Key, KeyedRateLimiter, Quota, Rule, RuleSet};

use crate::Fallible;

/// A quota that is never used up.
const QUOTA: &str = "100000000/s";
const PERMITS: u64 = 1_000_000;
const TURNS: u32 = 10_000;

type User = &'static str;

/// One way to decide, which returns whether the node alone admitted the request.
struct Route {
    name: &'static str,
    decide: Box<dyn Fn() -> bool>,
}

/// Sends requests until a lease decides. A server that was just started grants no leases.
async fn ready(limiter: &SharedLimiter) -> Fallible<()> {
    loop {
        if limiter.check("alice").await?.decided_by() == DecidedBy::Local {
            return Ok(());
        }
    }
}

fn by_user() -> Key<User> {
    Key::new("user", |user: &User, key| user.hash(key)).shared_as(|user, key| {
        key.part(user);
    })
}

pub(crate) async fn compare(store: &Arc<RedisStore>, rounds: usize) -> Fallible<()> {
    let quota: Quota = QUOTA.parse()?;
    let limiter = |name: &'static str| -> SharedLimiterBuilder {
        SharedLimiter::builder(name, quota)
            .cells(5)
            .term(Duration::from_secs(1))
    };
    let lease = limiter("node lease").lease(PERMITS).build(store.clone())?;
    let sync = limiter("node sync")
        .sync(Duration::from_millis(20), PERMITS)
        .build(store.clone())?;
    let rules = SharedRules::builder()
        .term(Duration::from_secs(1))
        .rule(
            Rule::new("node rule", quota)
                .cells(5)
                .by(&by_user())
                .mode(Mode::Lease { permits: PERMITS }),
        )
        .build(store.clone())?;
    let keyed = KeyedRateLimiter::new(CounterRing::builder(quota).cells(5).build()?, 10_000)?;
    let set = RuleSet::builder()
        .rule(Rule::new("user", quota).cells(5).by(&by_user()))
        .build()?;
    ready(&lease).await?;
    ready(&sync).await?;
    while rules.check(&"alice").await?.decided_by() != DecidedBy::Local {}
    let routes = [
        Route {
            name: "KeyedRateLimiter",
            decide: Box::new(move || keyed.check(black_box("alice")).is_ok()),
        },
        Route {
            name: "RuleSet of one rule",
            decide: Box::new(move || set.check(black_box(&"alice")).is_ok()),
        },
        Route {
            name: "SharedLimiter, lease",
            decide: Box::new(move || matches!(lease.check_now(black_box("alice")), Some(Ok(_)))),
        },
        Route {
            name: "SharedLimiter, sync",
            decide: Box::new(move || matches!(sync.check_now(black_box("alice")), Some(Ok(_)))),
        },
        Route {
            name: "SharedRules of one, lease",
            decide: Box::new(move || matches!(rules.check_now(black_box(&"alice")), Some(Ok(_)))),
        },
    ];
    println!();
    println!("on the node, one thread, {rounds} alternating rounds of {TURNS} decisions each; medians");
    println!(
        "{:<28} {:>11} {:>7} {:>8} {:>21}",
        "", "ns/decision", "keyed", "RuleSet", "left to the store"
    );
    let mut nanos = vec![Vec::new(); routes.len()];
    let mut left = vec![0_u64; routes.len()];
    for _ in 0..rounds {
        for (at, route) in routes.iter().enumerate() {
            let start = Instant::now();
            let admitted: u32 = (0..TURNS).map(|_| u32::from((route.decide)())).sum();
            nanos[at].push(start.elapsed().as_secs_f64() * 1e9 / f64::from(TURNS));
            left[at] += u64::from(TURNS - admitted);
        }
        // The flusher is another task of this runtime.
        tokio::task::yield_now().await;
    }
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    for (at, route) in routes.iter().enumerate() {
        let ratio = |beside: usize| {
            let ratios = nanos[at]
                .iter()
                .zip(&nanos[beside])
                .map(|(one, other)| one / other);
            median(ratios.collect())
        };
        #[expect(clippy::cast_precision_loss, reason = "fewer than 2^52 decisions")]
        let left = left[at] as f64 * 100.0 / (rounds as f64 * f64::from(TURNS));
        println!(
            "{:<28} {:>11.1} {:>7.2} {:>8.2} {:>19.2} %",
            route.name,
            median(nanos[at].clone()),
            ratio(0),
            ratio(1),
            left
        );
    }
    Ok(())
}
