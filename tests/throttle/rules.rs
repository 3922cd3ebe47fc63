//! Rules that connections share.

use core::hash::Hash;
use std::io;

use super::*;
use ringgate::rules::{Cost, RuleAlgorithm, RuleSetBuilder};
use ringgate::{Key, LiveRules, Rule, RuleSet};

#[derive(Clone, Copy)]
struct Transfer {
    user: u32,
    bytes: u64,
}

fn bytes() -> Cost<Transfer> {
    Cost::new("bytes", |transfer: &Transfer| transfer.bytes)
}

fn rules(each: &str, all: &str, bytes: &Cost<Transfer>) -> RuleSetBuilder<Transfer> {
    let user = Key::new("user", |transfer: &Transfer, key| transfer.user.hash(key));
    let rule = |name: &str, quota: &str| {
        Rule::new(name, quota.parse().unwrap())
            .algorithm(RuleAlgorithm::Gcra)
            .burst(10_000)
            .cost(bytes)
    };
    RuleSet::builder()
        .rule(rule("each", each).by(&user))
        .rule(rule("all", all))
}

type Rules = Arc<Fair<LiveRules<Transfer, TokioClock>>>;

fn built(rules: RuleSetBuilder<Transfer>) -> Rules {
    let rules = rules.build_with(TokioClock::new(), [1, 2, 3, 4]);
    Arc::new(Fair::new(LiveRules::new(rules.unwrap())))
}

/// A connection of a user that writes to a wire.
fn writer(rules: &Rules, cost: &Cost<Transfer>, wire: Wire, user: u32) -> Throttled<Wire> {
    let request = move |bytes| Transfer { user, bytes };
    let builder = Throttled::builder(wire).write_rules(Arc::clone(rules), cost, request);
    builder.build().unwrap()
}

/// The rate of a connection of each of the users, in bytes per second.
async fn rates(users: &[u32], reading: bool) -> Vec<f64> {
    let bytes = bytes();
    let rules = built(rules("100_000/s", "250_000/s", &bytes));
    let mut tasks = Vec::new();
    for &user in users {
        let request = move |bytes| Transfer { user, bytes };
        let builder = Throttled::builder(Wire::plain());
        let mut stream = match reading {
            true => builder.read_rules(Arc::clone(&rules), &bytes, request),
            false => builder.write_rules(Arc::clone(&rules), &bytes, request),
        }
        .quantum(1_000)
        .build()
        .unwrap();
        tasks.push(tokio::spawn(async move {
            let until = Instant::now() + Duration::from_secs(10);
            let (mut buf, mut moved) = ([7; 8192], 0);
            loop {
                let step = async {
                    match reading {
                        true => stream.read(&mut buf).await,
                        false => stream.write(&buf).await,
                    }
                };
                let Ok(count) = tokio::time::timeout_at(until, step).await else {
                    return moved as f64 / 10.0;
                };
                moved += count.unwrap();
            }
        }));
    }
    let mut rates = Vec::new();
    for task in tasks {
        rates.push(task.await.unwrap());
    }
    println!("{rates:?}");
    rates
}

#[tokio::test(start_paused = true)]
async fn rules_limit_each_and_all() {
    for reading in [true, false] {
        let are = |rates: &[f64], rate: f64, off: f64| {
            assert!(rates.iter().all(|it| (it / rate - 1.0).abs() < off), "{rates:?}");
        };
        are(&rates(&[1], reading).await, 100_000.0, 0.02);
        // Two connections of one user share its limit.
        are(&rates(&[1, 1], reading).await, 50_000.0, 0.05);
        let five = rates(&[1, 2, 3, 4, 5], reading).await;
        assert!(five.iter().sum::<f64>() < 252_000.0, "{five:?}");
        are(&five, 50_000.0, 0.1);
    }
}

/// The largest request of rules is unknown, so turns shrink until one is admitted.
#[tokio::test(start_paused = true)]
async fn turns_shrink_to_an_admissible_request() {
    let cost = bytes();
    let rule = |name: &str| Rule::new(name, "100/s".parse().unwrap()).cost(&cost);
    let user = Key::value("user", |transfer: &Transfer| Some(transfer.user));
    let none = rule("none").deny(13_u32).by(&user);
    let rules = built(RuleSet::builder().rule(rule("few")).rule(none));
    let write = async |user| {
        let mut stream = writer(&rules, &cost, Wire::plain(), user);
        stream.write(&[7; 8192]).await
    };
    let count = write(1).await.unwrap();
    assert!((33..=100).contains(&count), "{count}");
    // A key that is always denied is an error.
    let error = write(13).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::QuotaExceeded);
}

/// A rule without the byte cost counts turns, and is not refunded.
#[tokio::test(start_paused = true)]
async fn unwritten_bytes_are_refunded_to_byte_rules() {
    let cost = bytes();
    let volume = Rule::new("volume", "100_000/h".parse().unwrap()).cost(&cost);
    let turns = Rule::new("turns", "100/h".parse().unwrap());
    let rules = built(RuleSet::builder().rule(volume).rule(turns));
    let mut stream = writer(&rules, &cost, Wire::new(Behavior::new(0, 255, 0), 5), 1);
    let mut moved = 0;
    for _ in 0..10 {
        moved += stream.write(&[7; 5_000]).await.unwrap() as u64;
    }
    let (rules, request) = (rules.limiter().load(), Transfer { user: 1, bytes: 0 });
    let left: Vec<u64> = rules.peek(&request).map(|peek| peek.remaining()).collect();
    assert_eq!(left, [100_000 - moved, 90]);
    assert_eq!(stream.forfeited(), 0);
}

/// A refund to rules wakes the next waiter.
#[tokio::test(start_paused = true)]
async fn bytes_refunded_to_rules_are_available_at_once() {
    let (cost, all) = (bytes(), Rule::new("all", "100_000/s".parse().unwrap()));
    let rules = built(RuleSet::builder().rule(all.cost(&cost)));
    let behavior = Behavior::new(100, 255, 0);
    let (began, mut tasks) = (Instant::now(), Vec::new());
    for seed in 1..=50_u64 {
        let mut stream = writer(&rules, &cost, Wire::new(behavior, seed * 7_919), 1);
        tasks.push(tokio::spawn(async move {
            stream.write_all(&[7; 10_000]).await.unwrap();
            stream.forfeited()
        }));
    }
    for task in tasks {
        assert_eq!(task.await.unwrap(), 0);
    }
    let took = began.elapsed();
    println!("{took:?} by rules");
    // Five windows with one cell more each; without the wake-up it takes two windows more.
    assert!(took < Duration::from_millis(6_100), "{took:?}");
}

/// A turn that shrank grows again when the rules admit larger requests.
#[tokio::test(start_paused = true)]
async fn turns_grow_again_when_more_is_admitted() {
    let cost = bytes();
    let rules = |quota: &str| RuleSet::builder().rule(Rule::new("all", quota.parse().unwrap()).cost(&cost));
    let live = built(rules("100/s"));
    let mut stream = writer(&live, &cost, Wire::plain(), 1);
    assert!(stream.write(&[7; 8192]).await.unwrap() <= 100);
    live.limiter().store(&rules("1_000_000/s")).unwrap();
    let mut most = 0;
    for _ in 0..10 {
        most = most.max(stream.write(&[7; 8192]).await.unwrap());
    }
    assert_eq!(most, 8192);
}
