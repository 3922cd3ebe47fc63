//! Rules that connections share.

use alloc::sync::Arc;
use core::hash::Hash;
use core::time::Duration;
use std::io;

use ringgate::rules::{Cost, RuleAlgorithm, RuleSetBuilder};
use ringgate::throttle::Throttled;
use ringgate::wait::TokioClock;
use ringgate::{Fair, Key, LiveRules, Rule, RuleSet};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use crate::wire::Wire;

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

/// The rate of a connection of each of the users, in bytes per second.
async fn rates(users: &[u32], reading: bool) -> Vec<f64> {
    let bytes = bytes();
    let rules = rules("100_000/s", "250_000/s", &bytes).build_with(TokioClock::new(), [1, 2, 3, 4]);
    let rules = Arc::new(Fair::new(LiveRules::new(rules.unwrap())));
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
        let one = rates(&[1], reading).await;
        assert!((one[0] / 100_000.0 - 1.0).abs() < 0.02, "{one:?}");
        // Two connections of one user share its limit.
        let two = rates(&[1, 1], reading).await;
        assert!(
            two.iter().all(|rate| (rate / 50_000.0 - 1.0).abs() < 0.05),
            "{two:?}"
        );
        let five = rates(&[1, 2, 3, 4, 5], reading).await;
        assert!(five.iter().sum::<f64>() < 252_000.0, "{five:?}");
        assert!(
            five.iter().all(|rate| (rate / 50_000.0 - 1.0).abs() < 0.1),
            "{five:?}"
        );
    }
}

/// The largest request of rules is unknown, so turns shrink until one is admitted.
#[tokio::test(start_paused = true)]
async fn turns_shrink_to_an_admissible_request() {
    let bytes = bytes();
    let few = Rule::new("few", "100/s".parse().unwrap()).cost(&bytes);
    let none = Rule::new("none", "100/s".parse().unwrap())
        .cost(&bytes)
        .deny(13_u32);
    let user = Key::value("user", |transfer: &Transfer| Some(transfer.user));
    let rules = RuleSet::builder().rule(few).rule(none.by(&user));
    let rules = rules.build_with(TokioClock::new(), [1, 2, 3, 4]).unwrap();
    let rules = Arc::new(Fair::new(rules));
    let stream = |user| {
        Throttled::builder(Wire::plain())
            .write_rules(Arc::clone(&rules), &bytes, move |bytes| Transfer { user, bytes })
            .build()
            .unwrap()
    };
    let count = stream(1).write(&[7; 8192]).await.unwrap();
    assert!((33..=100).contains(&count), "{count}");
    // A key that is always denied is an error.
    let error = stream(13).write(&[7; 8192]).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::QuotaExceeded);
}

/// A rule without the byte cost counts turns, and is not refunded.
#[tokio::test(start_paused = true)]
async fn unwritten_bytes_are_refunded_to_byte_rules() {
    let bytes = bytes();
    let volume = Rule::new("volume", "100_000/h".parse().unwrap()).cost(&bytes);
    let turns = Rule::new("turns", "100/h".parse().unwrap());
    let rules = RuleSet::builder().rule(volume).rule(turns);
    let rules = rules.build_with(TokioClock::new(), [1, 2, 3, 4]).unwrap();
    let rules = Arc::new(Fair::new(rules));
    let behavior = crate::wire::Behavior {
        short: 255,
        ..Default::default()
    };
    let mut stream = Throttled::builder(Wire::new(behavior, 5))
        .write_rules(Arc::clone(&rules), &bytes, |bytes| Transfer { user: 1, bytes })
        .build()
        .unwrap();
    let mut moved = 0;
    for _ in 0..10 {
        moved += stream.write(&[7; 5_000]).await.unwrap() as u64;
    }
    let request = Transfer { user: 1, bytes: 0 };
    let left: Vec<u64> = rules
        .limiter()
        .peek(&request)
        .map(|peek| peek.remaining())
        .collect();
    assert_eq!(left, [100_000 - moved, 90]);
    assert_eq!(stream.forfeited(), 0);
}

/// A refund to rules wakes the next waiter.
#[tokio::test(start_paused = true)]
async fn bytes_refunded_to_rules_are_available_at_once() {
    let bytes = bytes();
    let all = Rule::new("all", "100_000/s".parse().unwrap());
    let rules = RuleSet::builder().rule(all.cost(&bytes));
    let rules = rules.build_with(TokioClock::new(), [1, 2, 3, 4]);
    let rules = Arc::new(Fair::new(rules.unwrap()));
    let behavior = crate::wire::Behavior {
        pending: 100,
        short: 255,
        error: 0,
    };
    let (began, mut tasks) = (Instant::now(), Vec::new());
    for seed in 1..=50_u64 {
        let mut stream = Throttled::builder(Wire::new(behavior, seed * 7_919))
            .write_rules(Arc::clone(&rules), &bytes, |bytes| Transfer { user: 1, bytes })
            .build()
            .unwrap();
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
    let bytes = bytes();
    let rules = |quota: &str| RuleSet::builder().rule(Rule::new("all", quota.parse().unwrap()).cost(&bytes));
    let few = rules("100/s")
        .build_with(TokioClock::new(), [1, 2, 3, 4])
        .unwrap();
    let live = Arc::new(Fair::new(LiveRules::new(few)));
    let mut stream = Throttled::builder(Wire::plain())
        .write_rules(Arc::clone(&live), &bytes, |bytes| Transfer { user: 1, bytes })
        .build()
        .unwrap();
    assert!(stream.write(&[7; 8192]).await.unwrap() <= 100);
    live.limiter().store(&rules("1_000_000/s")).unwrap();
    let mut most = 0;
    for _ in 0..10 {
        most = most.max(stream.write(&[7; 8192]).await.unwrap());
    }
    assert_eq!(most, 8192);
}
