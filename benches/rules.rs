//! The cost of evaluating several limits in one step, compared with keyed limiters alone.
//!
//! `cargo bench -p ringgate-benches --bench rules` first prints a table of ratios, measured in alternating rounds, then the
//! cost of reloads to deciding threads, and then criterion's statistics. No figure makes this bench fail.

use core::hash::Hash;
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::thread;
use std::time::Instant;

use ringgate::{ConfigError, CounterRing, Key, KeyedRateLimiter, LiveRules, Quota, Rule, RuleSet};

use ringgate_benches::{Case, Work, counted};

/// A request with the values that are keys of rules.
#[derive(Clone, Copy)]
struct Request {
    user: u64,
    route: u64,
    address: u64,
}

/// A stream of requests.
#[derive(Clone, Copy)]
struct Requests {
    /// The number of different keys.
    keys: u64,
    /// The state of a linear congruential generator.
    next: u64,
}

impl Requests {
    /// Returns the next request. Its key is random, so the processor cannot predict it.
    #[inline]
    fn next(&mut self) -> Request {
        self.next = self.next.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let key = ((u128::from(self.next) * u128::from(self.keys)) >> 64) as u64;
        Request {
            user: key,
            route: key + 1,
            address: key + 2,
        }
    }
}

const CAPACITY: u64 = 1 << 18;

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let mut cases = Vec::new();
    for (keys, one, three, several) in [
        (100, "100 keys", "100 keys, 3 keys each", "100 keys, 3 rules"),
        (
            100_000,
            "100,000 keys",
            "100,000 keys, 3 keys each",
            "100,000 keys, 3 rules",
        ),
    ] {
        let requests = Requests { keys, next: 1 };
        let case = |group, name, target, work| Case {
            group,
            name,
            target,
            work,
        };
        cases.extend([
            case(one, "keyed limiter", None, keyed(requests)?),
            case(one, "one rule", Some(1.3), rules(requests, 1, false)?),
            case(one, "one rule, live", None, live(requests)?),
            case(one, "keyed limiter, denied", None, keyed_denied(requests)?),
            case(one, "one rule, denied", None, denied(requests)?),
            case(several, "one rule", None, rules(requests, 1, false)?),
            case(several, "on one key", Some(1.5), rules(requests, 3, false)?),
            case(three, "three keyed limiters", None, three_keyed(requests)?),
            case(three, "three rules", Some(1.2), rules(requests, 3, true)?),
        ]);
    }
    if std::env::args().any(|arg| arg == "--bench") {
        reloads()?;
    }
    ringgate_benches::run(cases);
    Ok(())
}

/// A quota that is never used up.
fn plenty(seconds: u64) -> Result<Quota, ConfigError> {
    Quota::new(100_000_000, Duration::from_secs(seconds))
}

fn limiter() -> Result<KeyedRateLimiter<CounterRing>, ConfigError> {
    KeyedRateLimiter::new(CounterRing::builder(plenty(60)?).cells(5).build()?, CAPACITY)
}

fn keyed(mut requests: Requests) -> Result<Work, ConfigError> {
    let limiter = limiter()?;
    Ok(counted(move || {
        black_box(&limiter).check(&requests.next().user).is_ok()
    }))
}

fn three_keyed(mut requests: Requests) -> Result<Work, ConfigError> {
    let limiters = [limiter()?, limiter()?, limiter()?];
    Ok(counted(move || {
        let [users, routes, addresses] = black_box(&limiters);
        let request = requests.next();
        users.check(&request.user).is_ok()
            & routes.check(&request.route).is_ok()
            & addresses.check(&request.address).is_ok()
    }))
}

fn keyed_denied(mut requests: Requests) -> Result<Work, ConfigError> {
    let day = Duration::from_secs(24 * 3600);
    let limiter = KeyedRateLimiter::new(
        CounterRing::builder(Quota::new(1, day)?).cells(5).build()?,
        CAPACITY,
    )?;
    for key in 0..requests.keys {
        let _ = limiter.check(&key);
    }
    Ok(counted(move || {
        black_box(&limiter).check(&requests.next().user).is_err()
    }))
}

/// Returns a set of `count` rules, all on one key or each on a key of its own.
fn set(count: u64, on_three_keys: bool) -> Result<RuleSet<Request>, Box<dyn core::error::Error>> {
    let keys = [
        Key::new("user", |request: &Request, key| request.user.hash(key)),
        Key::new("route", |request: &Request, key| request.route.hash(key)),
        Key::new("address", |request: &Request, key| request.address.hash(key)),
    ];
    let mut rules = RuleSet::builder();
    for number in 0..count {
        let seconds = if on_three_keys { 60 } else { 60 * (number + 1) };
        let key = &keys[if on_three_keys { number as usize } else { 0 }];
        rules = rules.rule(
            Rule::new(format!("rule {number}"), plenty(seconds)?)
                .cells(5)
                .by(key)
                .capacity(CAPACITY),
        );
    }
    Ok(rules.build()?)
}

fn rules(
    mut requests: Requests,
    count: u64,
    on_three_keys: bool,
) -> Result<Work, Box<dyn core::error::Error>> {
    let rules = set(count, on_three_keys)?;
    assert_eq!(rules.states() as u64, if on_three_keys { count } else { 1 });
    Ok(counted(move || black_box(&rules).check(&requests.next()).is_ok()))
}

fn live(mut requests: Requests) -> Result<Work, Box<dyn core::error::Error>> {
    let rules = LiveRules::new(set(1, false)?);
    Ok(counted(move || {
        black_box(&rules).load().check(&requests.next()).is_ok()
    }))
}

fn denied(mut requests: Requests) -> Result<Work, Box<dyn core::error::Error>> {
    let user = Key::new("user", |request: &Request, key| request.user.hash(key));
    let quota = Quota::new(1, Duration::from_secs(24 * 3600))?;
    let rules = RuleSet::builder()
        .rule(Rule::new("rule", quota).cells(5).by(&user).capacity(CAPACITY))
        .build()?;
    for key in 0..requests.keys {
        let _ = rules.check(&Request {
            user: key,
            route: 0,
            address: 0,
        });
    }
    Ok(counted(move || {
        black_box(&rules).check(&requests.next()).is_err()
    }))
}

/// Prints the throughput of all cores except one while rules are replaced 100 times a second, as a ratio to none.
fn reloads() -> Result<(), Box<dyn core::error::Error>> {
    const ROUNDS: usize = 11;
    const ROUND: Duration = Duration::from_millis(300);
    let limits = [100_000_000, 100_000_001].map(|limit| Quota::new(limit, Duration::from_secs(60)));
    let [one, other] = limits;
    let builders = [one?, other?].map(|quota| {
        let user = Key::new("user", |request: &Request, key| request.user.hash(key));
        RuleSet::builder().rule(Rule::new("rule", quota).cells(5).by(&user).capacity(CAPACITY))
    });
    let live = LiveRules::new(builders[0].build()?);
    let threads = thread::available_parallelism()?.get().saturating_sub(1).max(1);
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let [without, with] = [false, true].map(|reloading| {
            let stop = AtomicBool::new(false);
            thread::scope(|scope| {
                let deciders: Vec<_> = (0..threads)
                    .map(|thread| {
                        let (live, stop) = (&live, &stop);
                        scope.spawn(move || {
                            let mut requests = Requests {
                                keys: 100_000,
                                next: thread as u64,
                            };
                            let mut decided = 0_u64;
                            while !stop.load(Ordering::Relaxed) {
                                decided += u64::from(live.load().check(&requests.next()).is_ok());
                            }
                            decided
                        })
                    })
                    .collect();
                let start = Instant::now();
                let mut turn = 0;
                while start.elapsed() < ROUND {
                    thread::sleep(Duration::from_millis(10));
                    if reloading {
                        turn += 1;
                        live.store(&builders[turn % 2]).expect("the rules are valid");
                    }
                }
                stop.store(true, Ordering::Relaxed);
                let decided: u64 = deciders.into_iter().map(|it| it.join().unwrap()).sum();
                decided as f64 / start.elapsed().as_secs_f64()
            })
        });
        ratios.push(with / without);
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "{threads} threads, throughput with 100 reloads a second to none: median {:.3}, {:.3} to {:.3} ({ROUNDS} rounds)\n",
        ratios[ROUNDS / 2],
        ratios[0],
        ratios[ROUNDS - 1]
    );
    Ok(())
}
