//! A rejected client is told what the decision saw, whatever other requests do before the response is made.

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

type Case = (&'static str, &'static str, u64);

/// Rules that admit one request of this cost, and then none.
const CASES: [Case; 12] = [
    ("fixed", "1/h", 1),
    ("60 cells", "1/h", 1),
    ("classic", "1/h", 1),
    ("even", "9/h", 4),
    ("one cell", "1/h", 1),
    ("log", "1/h", 1),
    ("bucket", "1/h", 1),
    ("60 cells", "7/h", 5),
    ("log", "9/h", 6),
    ("bucket", "7/h", 4),
    ("two quotas", "7/h", 5),
    ("a lower limit", "8/h", 2),
];

fn of_case(name: &str, rule: Rule<Parts>) -> Rule<Parts> {
    match name {
        "fixed" => rule.algorithm(RuleAlgorithm::Fixed),
        "60 cells" => rule.cells(60),
        "classic" => rule.algorithm(RuleAlgorithm::Classic),
        "even" => rule.algorithm(RuleAlgorithm::Even).cells(2),
        "one cell" => rule.cells(1),
        "log" => rule.algorithm(RuleAlgorithm::Log),
        "bucket" => rule.algorithm(RuleAlgorithm::Gcra),
        "two quotas" => rule.cells(60).also(quota("9/d")),
        "a lower limit" => rule.cells(60).limit_by(|_: &Parts| Some(3)),
        _ => unreachable!("{name}"),
    }
}

/// All headers that tell the client a quota.
fn quotas<B>(response: &Response<B>) -> [Option<String>; 5] {
    let [limit, remaining, reset] = super::denials::LEGACY;
    let names = ["ratelimit", limit, remaining, reset, "retry-after"];
    names.map(|name| header(response, name).map(str::to_owned))
}

/// Permits are refunded at any extraction of the key. Before the decision they admit the request. After it they change nothing.
#[test]
fn a_refund_after_the_decision_changes_no_header() {
    for (name, text, permits) in CASES {
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
                let limited = of_case(name, rule("all", text).by(&hook.key()).capacity(64).block(block));
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
            let found = quotas(&response);
            assert_eq!(found, quotas(&seen), "{name} {after} {reserves} {alone}");
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
    for (name, text, permits) in CASES {
        let limited = of_case(name, rule("all", text)).cost(&Cost::new("cost", move |_: &Parts| permits));
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
