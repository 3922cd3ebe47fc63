//! A rejected client is told what the decision saw, whatever other requests do before the response is made.

use std::sync::Mutex;

use ringgate::http::QuotaHeaders;
use ringgate::rules::{Block, Cost, RuleAlgorithm};

use super::denials::told;
use super::*;

/// The extractions of a key until a function is called.
#[derive(Clone, Default)]
struct Hook(Arc<Mutex<Option<Armed>>>);

type Armed = (u32, Box<dyn FnOnce() + Send>);

impl Hook {
    /// Calls a function when the key is extracted once more after this many times.
    fn arm(&self, after: u32, function: impl FnOnce() + Send + 'static) {
        *self.0.lock().expect("no panic") = Some((after, Box::new(function)));
    }

    fn has_fired(&self) -> bool {
        self.0.lock().expect("no panic").is_none()
    }

    /// A key of all requests.
    fn key(&self) -> Key<Parts> {
        let hook = self.clone();
        Key::new("all", move |_: &Parts, _: &mut ringgate::keyed::KeyHasher| {
            let mut armed = hook.0.lock().expect("no panic");
            let now = armed.take_if(|(after, _)| match after.checked_sub(1) {
                Some(less) => {
                    *after = less;
                    false
                }
                None => true,
            });
            drop(armed);
            if let Some((_, function)) = now {
                function();
            }
        })
    }
}

type Case = (&'static str, fn(Rule<Parts>) -> Rule<Parts>, &'static str, u64);

/// Rules that admit one request of this cost, and then none.
const CASES: [Case; 12] = [
    ("fixed", |rule| rule.algorithm(RuleAlgorithm::Fixed), "1/h", 1),
    ("strict", |rule| rule.cells(60), "1/h", 1),
    ("classic", |rule| rule.algorithm(RuleAlgorithm::Classic), "1/h", 1),
    (
        "even",
        |rule| rule.algorithm(RuleAlgorithm::Even).cells(2),
        "9/h",
        4,
    ),
    ("one cell", |rule| rule.cells(1), "1/h", 1),
    ("log", |rule| rule.algorithm(RuleAlgorithm::Log), "1/h", 1),
    ("bucket", |rule| rule.algorithm(RuleAlgorithm::Gcra), "1/h", 1),
    ("a higher cost", |rule| rule.cells(60), "7/h", 5),
    (
        "a higher cost, log",
        |rule| rule.algorithm(RuleAlgorithm::Log),
        "9/h",
        6,
    ),
    (
        "a higher cost, bucket",
        |rule| rule.algorithm(RuleAlgorithm::Gcra),
        "7/h",
        4,
    ),
    (
        "two quotas",
        |rule| rule.cells(60).also("9/d".parse().expect("a quota")),
        "7/h",
        5,
    ),
    (
        "a lower limit",
        |rule| rule.cells(60).limit_by(|_: &Parts| Some(3)),
        "8/h",
        2,
    ),
];

/// All headers that tell the client a quota.
fn quotas<B>(response: &Response<B>) -> [Option<String>; 5] {
    [
        "ratelimit",
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
        "retry-after",
    ]
    .map(|name| header(response, name).map(str::to_owned))
}

/// Permits are refunded at any extraction of the key. Before the decision they admit the request. After it they change nothing.
#[test]
fn a_refund_after_the_decision_changes_no_header() {
    for (name, change, text, permits) in CASES {
        let mut rejections = 0;
        for (after, reserves, alone) in (0..6).flat_map(|after| {
            [false, true]
                .map(|on| (after, on, on))
                .into_iter()
                .chain([(after, true, false)])
        }) {
            let rejected = |after: Option<u32>| {
                let hook = Hook::default();
                // Its violations are counted after the decision, which extracts the key again.
                let block = Block::new(quota("999/min"), Duration::from_secs(60));
                let limited = change(rule("all", text).by(&hook.key()).capacity(64).block(block));
                let limited = limited.cost(&Cost::new("cost", move |_: &Parts| permits));
                let (live, _) = match alone {
                    true => live([limited]),
                    false => live([limited, rule("roomy", "99/min").cells(7)]),
                };
                let (request, ()) = Request::new(()).into_parts();
                let other = live.load().reserve(&request).expect("room");
                if let Some(after) = after {
                    let rules = Arc::clone(&live);
                    hook.arm(after, move || {
                        rules.load().refund(other);
                    });
                }
                let mut layer = RateLimitLayer::new(live).headers(QuotaHeaders::Both);
                if reserves {
                    layer = layer.charge_if(|_| true);
                }
                let response = send(&mut layer.layer(Hello), Request::new(()));
                (response, hook.has_fired())
            };
            let (seen, _) = rejected(None);
            assert_eq!(seen.status(), 429, "{name}");
            assert!(told(&seen)[1].expect("permits") < permits, "{name}");
            let (response, fired) = rejected(Some(after));
            if response.status() == 200 {
                continue;
            }
            if after == 0 {
                // The refund preceded the decision, and not every algorithm could make it.
                assert!(told(&response)[1].expect("permits") < permits, "{name}");
                continue;
            }
            rejections += u32::from(fired);
            assert_eq!(
                quotas(&response),
                quotas(&seen),
                "{name} {after} {reserves} {alone}"
            );
            let body = super::text(response);
            assert!(body.contains("\"violated-policies\":[\"all"), "{name}: {body}");
        }
        assert!(rejections > 0, "{name}");
    }
}

/// A block that ends between the decision and the response is still the policy that rejected.
#[test]
fn a_block_that_has_ended_since_is_named() {
    let mut rejections = 0;
    for after in 0..6 {
        let hook = Hook::default();
        let block = Block::new(quota("1/min"), Duration::from_secs(600)).extend_on_retry();
        let (live, clock) = live([rule("client", "1/s").by(&hook.key()).block(block)]);
        let (request, ()) = Request::new(()).into_parts();
        assert!(live.load().check(&request).is_ok());
        assert!(live.load().check(&request).is_err());
        clock.advance(Duration::from_secs(100));
        let rules = Arc::clone(&live);
        hook.arm(after, move || {
            assert_eq!(rules.load().unblock(&request), 1);
        });
        let layer = RateLimitLayer::new(live).headers(QuotaHeaders::Both);
        let rejected = send(&mut layer.layer(Hello), Request::new(()));
        if rejected.status() == 200 {
            continue;
        }
        rejections += u32::from(hook.has_fired());
        let [_, remaining, reset, retry_after] = told(&rejected);
        assert_eq!(remaining, Some(0), "{after}");
        assert!(
            reset >= retry_after && retry_after >= Some(500),
            "{after}: {reset:?}, {retry_after:?}"
        );
        let body = super::text(rejected);
        assert!(
            body.contains("\"violated-policies\":[\"client"),
            "{after}: {body}"
        );
    }
    assert!(rejections > 0);
}

/// A retry during a block that retries extend is told the end of the extended block.
#[test]
fn an_extended_block_is_told_as_extended() {
    let hook = Hook::default();
    let block = Block::new(quota("1/min"), Duration::from_secs(600)).extend_on_retry();
    let (live, clock) = live([rule("client", "1/s").by(&hook.key()).block(block)]);
    let mut service = RateLimitLayer::new(live).headers(QuotaHeaders::Both).layer(Hello);
    for (wait, status, retry_after) in [
        (0, 200, None),
        (0, 429, Some(600)),
        (100, 429, Some(600)),
        (250, 429, Some(600)),
    ] {
        clock.advance(Duration::from_secs(wait));
        let response = send(&mut service, Request::new(()));
        assert_eq!(
            (response.status().as_u16(), told(&response)[3]),
            (status, retry_after)
        );
    }
}

/// Two threads, whose requests are all refunded. At most one request at a time holds permits, so all rejections see equal states.
#[test]
fn rejections_beside_refunds_all_tell_the_same() {
    for (name, change, text, permits) in CASES {
        let limited = change(rule("all", text)).cost(&Cost::new("cost", move |_: &Parts| permits));
        let (live, _) = live([limited]);
        let (request, ()) = Request::new(()).into_parts();
        let layer = RateLimitLayer::new(Arc::clone(&live)).headers(QuotaHeaders::Both);
        let other = live.load().reserve(&request).expect("room");
        let seen = send(&mut layer.layer(Hello), Request::new(()));
        assert_eq!(seen.status(), 429, "{name}");
        let seen = quotas(&seen);
        live.load().refund(other);
        let layer = layer.charge_if(|_| false);
        let rejected = std::thread::scope(|scope| {
            let threads = [(); 2].map(|()| {
                scope.spawn(|| {
                    let mut service = layer.layer(Hello);
                    let mut rejected = 0;
                    for _ in 0..4_000 {
                        let response = send(&mut service, Request::new(()));
                        if response.status() == 429 {
                            rejected += 1;
                            assert_eq!(quotas(&response), seen, "{name}");
                        }
                    }
                    rejected
                })
            });
            threads
                .map(|thread| thread.join().expect("no panic"))
                .iter()
                .sum::<u32>()
        });
        println!("{name}: {rejected} of 8000 requests were rejected");
    }
}
