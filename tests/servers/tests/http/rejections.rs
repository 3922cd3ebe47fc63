//! Rejection responses and quota headers.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;

use http::{HeaderValue, StatusCode};
use proptest::prelude::*;
use ringgate::CounterRing;
use ringgate::http::{HttpKey, QuotaHeaders, Rejection, RejectionResponse};
use ringgate::rules::{Block, Condition, TierOf};
use sfv::{BareItem, List, ListEntry, Parser};

use super::*;

/// Items of a structured field: name and parameters in order.
pub(crate) fn items<B>(response: &Response<B>, name: &str) -> Vec<(String, Vec<(String, i64)>)> {
    let lines: Vec<&str> = response
        .headers()
        .get_all(name)
        .iter()
        .map(|line| line.to_str().expect("text"))
        .collect();
    let list: List = Parser::new(&lines.join(", "))
        .parse()
        .expect("a structured field");
    let item = |entry: ListEntry| {
        let ListEntry::Item(item) = entry else {
            panic!("no item");
        };
        let parameter = |(key, value): (sfv::Key, BareItem)| {
            let value = value.as_integer().expect("an integer");
            (key.as_str().to_owned(), i64::from(value))
        };
        let name = item.bare_item.as_string().expect("a string").as_str().to_owned();
        (name, item.params.into_iter().map(parameter).collect())
    };
    list.into_iter().map(item).collect()
}

fn item(name: &str, parameters: &[(&str, i64)]) -> (String, Vec<(String, i64)>) {
    let owned = |&(key, value): &(&str, i64)| (key.to_owned(), value);
    (name.to_owned(), parameters.iter().map(owned).collect())
}

fn hello() -> Request<()> {
    Request::new(())
}

#[test]
fn a_rejection_is_429_with_retry_after() {
    let (live, clock) = live([rule("burst", "2/10s")]);
    let mut service = RateLimitLayer::new(live).layer(Hello);
    assert_eq!(send(&mut service, hello()).status(), 200);
    assert_eq!(send(&mut service, hello()).status(), 200);
    let rejected = send(&mut service, hello());
    assert_eq!(rejected.status(), StatusCode::TOO_MANY_REQUESTS);
    // The window of ten seconds and a part of one of its sixty cells, rounded up to a second.
    assert_eq!(header(&rejected, "retry-after"), Some("11"));
    clock.advance(Duration::from_millis(1_001));
    assert_eq!(header(&send(&mut service, hello()), "retry-after"), Some("9"));
    clock.advance(Duration::from_secs(11));
    assert_eq!(send(&mut service, hello()).status(), 200);
}

/// Other crates write a wait of less than a second as 0.
#[test]
fn retry_after_is_never_0() {
    let (live, clock) = live([rule("fast", "1/1ms").cells(1)]);
    let mut service = RateLimitLayer::new(live).layer(Hello);
    assert_eq!(send(&mut service, hello()).status(), 200);
    clock.advance(Duration::from_micros(999));
    let rejected = send(&mut service, hello());
    assert_eq!(rejected.status(), 429);
    assert_eq!(header(&rejected, "retry-after"), Some("1"));
}

/// Permits are refunded between the denial and the response, which states the retry time that the denial saw.
#[test]
fn retry_after_is_that_of_the_decision_after_a_concurrent_refund() {
    type Refund = Box<dyn FnOnce() + Send>;
    let refund: Arc<Mutex<Option<Refund>>> = Arc::default();
    let (calls, hook) = (AtomicU64::new(0), Arc::clone(&refund));
    // The key is extracted by the other request, by the decision, and then to count the violation.
    let key = Key::new("all", move |_: &Parts, _: &mut ringgate::keyed::KeyHasher| {
        if calls.fetch_add(1, Ordering::Relaxed) == 2 {
            let refund = hook.lock().expect("no panic").take();
            refund.expect("the charge of the other request")();
        }
    });
    let block = Block::new("9/min".parse().expect("a quota"), Duration::from_secs(600));
    let (live, _) = live([rule("all", "1/min").cells(60).by(&key).block(block)]);
    let (request, ()) = hello().into_parts();
    let other = live.load().reserve(&request).expect("room");
    let rules = Arc::clone(&live);
    *refund.lock().expect("no panic") = Some(Box::new(move || {
        rules.load().refund(other);
    }));
    let rejected = send(&mut RateLimitLayer::new(live).layer(Hello), hello());
    assert_eq!(rejected.status(), 429);
    assert!(refund.lock().expect("no panic").is_none());
    assert_eq!(header(&rejected, "retry-after"), Some("61"));
}

#[test]
fn a_request_after_retry_after_is_admitted() {
    for text in ["1/1500ms", "3/7s", "2/1min"] {
        let (live, clock) = live([rule("all", text)]);
        let mut service = RateLimitLayer::new(live).layer(Hello);
        for step in 0..50 {
            clock.advance(Duration::from_millis(77 * step));
            let response = send(&mut service, hello());
            if response.status() == 429 {
                let wait = header(&response, "retry-after")
                    .expect("a wait")
                    .parse()
                    .expect("a number");
                clock.advance(Duration::from_secs(wait));
                assert_eq!(send(&mut service, hello()).status(), 200, "{text}, step {step}");
            }
        }
    }
}

#[test]
fn admitted_and_rejected_responses_have_both_fields() {
    let (live, clock) = live([rule("burst", "2/60s")]);
    let mut service = RateLimitLayer::new(live).layer(Hello);
    let policy = vec![item("burst", &[("q", 2), ("w", 60)])];
    for left in [1, 0, 0] {
        let response = send(&mut service, hello());
        assert_eq!(items(&response, "ratelimit-policy"), policy);
        assert_eq!(
            items(&response, "ratelimit"),
            [item("burst", &[("r", left), ("t", 61)])]
        );
    }
    // The exact format of the draft.
    clock.advance(Duration::from_millis(500));
    let response = send(&mut service, hello());
    assert_eq!(header(&response, "ratelimit-policy"), Some("\"burst\";q=2;w=60"));
    assert_eq!(header(&response, "ratelimit"), Some("\"burst\";r=0;t=61"));
}

#[test]
fn each_quota_has_a_policy_with_a_unique_name() {
    let when = Condition::new("post", |request: &Parts| request.method == "POST");
    let mut service = layer([
        rule("user", "2/s")
            .also(quota("50/10s"))
            .also(quota("100/1500ms")),
        rule("all", "3/1ms"),
        rule("posts", "5/s").when(&when),
        rule("shadow", "1/s").shadow(),
    ])
    .layer(Hello);
    let response = send(&mut service, hello());
    let mut policies = items(&response, "ratelimit-policy");
    policies.sort();
    let expected = [
        item("all", &[("q", 3), ("w", 1)]),
        item("user-10s", &[("q", 50), ("w", 10)]),
        item("user-1500ms", &[("q", 100), ("w", 2)]),
        item("user-1s", &[("q", 2), ("w", 1)]),
    ];
    assert_eq!(policies, expected);
    // `t` of a policy does not depend on the others.
    let mut states = items(&response, "ratelimit");
    states.sort();
    let expected = [
        item("all", &[("r", 2), ("t", 1)]),
        item("user-10s", &[("r", 49), ("t", 11)]),
        item("user-1500ms", &[("r", 99), ("t", 2)]),
        item("user-1s", &[("r", 1), ("t", 2)]),
    ];
    assert_eq!(states, expected);
}

#[test]
fn a_policy_has_the_limit_of_the_tier() {
    let plan = TierOf::new("plan", |request: &Parts| request.uri.host());
    let mut service = layer([rule("plan", "2/min").tier_of(&plan).tier("paid", 100)]).layer(Hello);
    let response = send(
        &mut service,
        Request::get("http://paid/").body(()).expect("a request"),
    );
    assert_eq!(
        items(&response, "ratelimit-policy"),
        [item("plan", &[("q", 100), ("w", 60)])]
    );
    assert_eq!(
        items(&response, "ratelimit"),
        [item("plan", &[("r", 99), ("t", 61)])]
    );
}

/// Each request has its limit, in every header. More limits are given than policies are cached.
#[test]
fn headers_have_the_limit_of_the_request() {
    let limit = |request: &Parts| request.uri.host().and_then(|host| host.parse().ok());
    let layer = layer([rule("plan", "100/min").limit_by(limit)]);
    let mut service = layer.headers(QuotaHeaders::Both).layer(Hello);
    for spent in 1..=20 {
        let limit = 50 - spent;
        let request = Request::get(format!("http://{limit}/"));
        let response = send(&mut service, request.body(()).expect("a request"));
        assert_eq!(response.status(), 200);
        assert_eq!(
            items(&response, "ratelimit-policy"),
            [item("plan", &[("q", limit), ("w", 60)])]
        );
        assert_eq!(
            items(&response, "ratelimit")[0].1[0],
            ("r".to_owned(), limit - spent)
        );
        assert_eq!(header(&response, "x-ratelimit-limit"), Some(&*limit.to_string()));
        let left = (limit - spent).to_string();
        assert_eq!(header(&response, "x-ratelimit-remaining"), Some(&*left));
    }
    for (limit, retry_after) in [(20, Some("61")), (0, None)] {
        let request = Request::get(format!("http://{limit}/"));
        let rejected = send(&mut service, request.body(()).expect("a request"));
        assert_eq!(rejected.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(
            items(&rejected, "ratelimit-policy"),
            [item("plan", &[("q", limit), ("w", 60)])]
        );
        assert_eq!(header(&rejected, "x-ratelimit-limit"), Some(&*limit.to_string()));
        assert_eq!(header(&rejected, "retry-after"), retry_after);
    }
}

#[test]
fn names_are_percent_encoded() {
    for (name, encoded) in [
        ("é", "%C3%A9"),
        ("a\nb", "a%0Ab"),
        ("%C3%A9", "%25C3%25A9"),
        ("quote\" and \\", "quote\" and \\"),
    ] {
        let mut service = layer([rule(name, "2/min")]).layer(Hello);
        assert_eq!(items(&send(&mut service, hello()), "ratelimit")[0].0, encoded);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Headers and bodies parse for any name and quota.
    #[test]
    fn headers_and_bodies_parse(
        name in ".{1,20}",
        limit in 1..=Quota::MAX_LIMIT,
        nanos in 1_000..=31_622_400_000_000_000_u64,
    ) {
        let quota = Quota::new(limit, Duration::from_nanos(nanos)).expect("a quota");
        // A narrow cell does not hold the largest limits.
        prop_assume!(CounterRing::builder(quota).cells(1).build().is_ok());
        let (live, clock) = live([Rule::new(name.as_str(), quota).cells(1)]);
        let mut service = RateLimitLayer::new(live).headers(QuotaHeaders::Both).layer(Hello);
        for _ in 0..2 {
            let response = send(&mut service, hello());
            let seconds = i64::try_from(nanos.div_ceil(1_000_000_000)).expect("a year");
            let policy = items(&response, "ratelimit-policy");
            prop_assert_eq!(&policy[0].1[0].1, &i64::try_from(limit).expect("a limit"));
            prop_assert_eq!(&policy[0].1[1].1, &seconds);
            let state = items(&response, "ratelimit");
            prop_assert!(state[0].1[1].1 >= 1 && state[0].1[1].1 <= 2 * seconds);
            if response.status() == 429 {
                let body = text(response);
                let body: serde_json::Value = serde_json::from_str(&body).expect("JSON");
                prop_assert_eq!(&body["violated-policies"], &serde_json::json!([name]));
            }
            clock.advance(Duration::from_nanos(1));
        }
    }
}

#[test]
fn without_quota_headers_retry_after_stays() {
    let (live, _) = live([rule("all", "1/min")]);
    let mut service = RateLimitLayer::new(live).headers(QuotaHeaders::Off).layer(Hello);
    assert!(send(&mut service, hello()).headers().is_empty());
    let rejected = send(&mut service, hello());
    assert_eq!(header(&rejected, "ratelimit"), None);
    assert_eq!(header(&rejected, "ratelimit-policy"), None);
    assert_eq!(header(&rejected, "retry-after"), Some("61"));
}

#[test]
fn the_body_is_a_problem_with_the_violated_policies() {
    let (live, _) = live([rule("quoted \"é\"", "1/min"), rule("roomy", "9/min").cells(6)]);
    let mut service = RateLimitLayer::new(live).layer(Hello);
    send(&mut service, hello());
    let rejected = send(&mut service, hello());
    assert_eq!(
        header(&rejected, "content-type"),
        Some("application/problem+json")
    );
    let body = problem(rejected);
    let expected = serde_json::json!({
        "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
        "title": "Request cannot be satisfied as assigned quota has been exceeded",
        "status": 429,
        "violated-policies": ["quoted \"é\""],
    });
    assert_eq!(body, expected);
}

#[test]
fn the_response_can_be_replaced() {
    let (live, _) = live([rule("all", "1/min"), rule("more", "5/min").cells(4)]);
    let layer = RateLimitLayer::new(live)
        .status(StatusCode::SERVICE_UNAVAILABLE)
        .respond_with(|rejected: &Rejection<'_>| {
            assert_eq!(rejected.retry_after_seconds(), Some(61));
            assert_eq!(rejected.policies().len(), 2);
            let violated: Vec<_> = rejected.violated().map(|policy| policy.rule()).collect();
            let text = format!("{} {}", rejected.request().uri.path(), violated.join(","));
            let mut response = Response::new(Body::from(text));
            *response.status_mut() = rejected.status();
            response
        });
    let mut service = layer.layer(Hello);
    send(&mut service, hello());
    let rejected = send(&mut service, hello());
    assert_eq!(rejected.status(), 503);
    // The layer adds its headers.
    assert_eq!(header(&rejected, "retry-after"), Some("61"));
    assert_eq!(items(&rejected, "ratelimit").len(), 2);
    assert_eq!(text(rejected), "/ all");
}

#[test]
fn retry_after_of_the_response_is_kept() {
    #[derive(Clone)]
    struct Later;
    impl RejectionResponse<Body> for Later {
        fn response(&self, _: &Rejection<'_>) -> Response<Body> {
            let mut response = Response::new(Body::default());
            let value = HeaderValue::from_static("3600");
            response.headers_mut().insert("retry-after", value);
            response
        }
    }
    let mut service = layer([rule("all", "1/min")])
        .rejection_response(Later)
        .layer(Hello);
    send(&mut service, hello());
    let rejected = send(&mut service, hello());
    assert_eq!(header(&rejected, "retry-after"), Some("3600"));
}

#[test]
fn a_request_that_is_never_admitted_has_no_retry_after() {
    let key = HttpKey::path();
    let mut service = layer([rule("all", "5/min").by(&key).deny("/")]).layer(Hello);
    let rejected = send(&mut service, hello());
    assert_eq!(rejected.status(), 429);
    assert_eq!(header(&rejected, "retry-after"), None);
    assert_eq!(header(&rejected, "ratelimit"), Some("\"all\";r=0"));
}

#[test]
fn nested_layers_list_all_policies() {
    let outer = layer([rule("outer", "9/min")]).headers(QuotaHeaders::Both);
    let inner = layer([rule("inner", "2/min")]).headers(QuotaHeaders::Both);
    let mut service = outer.layer(inner.layer(Hello));
    let response = send(&mut service, hello());
    let names: Vec<_> = items(&response, "ratelimit")
        .into_iter()
        .map(|item| item.0)
        .collect();
    assert_eq!(names, ["inner", "outer"]);
    assert_eq!(response.headers().get_all("x-ratelimit-limit").iter().count(), 1);
    assert_eq!(header(&response, "x-ratelimit-limit"), Some("2"));
}

/// Texts of headers are kept for later responses. They must be those of the rules that decided.
#[test]
fn headers_follow_reloads() {
    let (live, _) = live([rule("total", "1/min")]);
    let mut service = RateLimitLayer::new(Arc::clone(&live)).layer(Hello);
    for limit in (1..=20).chain(1..=20) {
        live.store(&set([rule("total", &format!("{limit}/min"))]))
            .expect("rules");
        let policies = items(&send(&mut service, hello()), "ratelimit-policy");
        assert_eq!(policies, [item("total", &[("q", limit), ("w", 60)])]);
    }
}

/// Jitter is added to `Retry-After` and nothing else.
#[tokio::test]
async fn jitter_makes_retry_after_later_and_never_earlier() {
    use tower::ServiceExt;

    let mut seen = Vec::new();
    for seconds in [0, 20] {
        let rules = set([rule("all", "1/10s")])
            .build_with(ManualClock::new(), [1, 2, 3, 4])
            .expect("rules");
        let exact = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&exact);
        let layer = RateLimitLayer::from(rules)
            .jitter(Duration::from_secs(seconds))
            .on_rejected(move |rejection| {
                let told = (rejection.retry_after(), rejection.retry_after_seconds());
                noted.lock().expect("no panic").push(told);
            });
        let service = layer.layer(tower::service_fn(|_: Request<()>| {
            core::future::ready(Ok::<_, Infallible>(Response::new(Body::default())))
        }));
        let mut told = alloc::collections::BTreeSet::new();
        for turn in 0..200 {
            let Ok(response) = service.clone().oneshot(Request::new(())).await;
            if turn == 0 {
                continue;
            }
            let after = response.headers()["retry-after"].to_str().expect("text");
            told.insert(after.parse::<u64>().expect("seconds"));
            assert_eq!(
                items(&response, "ratelimit"),
                [item("all", &[("r", 0), ("t", 11)])]
            );
        }
        for (exact, seconds) in exact.lock().expect("no panic").iter() {
            assert!(exact.expect("a time") <= Duration::from_secs(11));
            assert!(told.contains(&seconds.expect("seconds")));
        }
        seen.push(told);
    }
    assert_eq!(seen[0].iter().copied().collect::<Vec<_>>(), [11]);
    // 10.167 s and less than 20 s more, in whole seconds.
    assert!(seen[1].len() >= 15, "{seen:?}");
    assert!(
        seen[1].iter().all(|seconds| (11..=31).contains(seconds)),
        "{seen:?}"
    );
}

/// The violations and the quota have one window. Both are policies, each with its name, also after the window of the quota.
#[test]
fn a_block_with_the_window_of_a_quota_is_another_policy() {
    for after in ["1/min", "3/min"] {
        let after: Quota = after.parse().expect("a quota");
        let block = Block::new(after, Duration::from_secs(600));
        let limited = rule("client", "1/min").cells(1).by(&HttpKey::peer()).block(block);
        let (live, clock) = live([limited]);
        let mut service = RateLimitLayer::new(live).layer(Hello);
        let mut get = || send(&mut service, from("192.0.2.1"));
        assert_eq!(get().status(), 200);
        for _ in 0..after.limit() {
            assert_eq!(get().status(), 429);
        }
        let q = after.limit();
        for (seconds, remaining) in [(0, "r=0;t=120"), (300, "r=1")] {
            clock.advance(Duration::from_secs(seconds));
            let blocked = get();
            assert_eq!(blocked.status(), 429);
            assert_eq!(
                header(&blocked, "ratelimit-policy"),
                Some(&*format!("\"client\";q=1;w=60, \"client-block\";q={q};w=60"))
            );
            let end = 600 - seconds;
            assert_eq!(
                header(&blocked, "ratelimit"),
                Some(&*format!("\"client\";{remaining}, \"client-block\";r=0;t={end}"))
            );
            assert_eq!(header(&blocked, "retry-after"), Some(&*format!("{end}")));
        }
    }
}

/// A name that is made of a rule and a window gives way to the name of another rule.
#[test]
fn a_rule_with_the_name_of_a_window_of_another_rule_keeps_its_name() {
    let several = rule("user", "1/s").also(quota("5/10s")).also(quota("7/1min"));
    let block = Block::new("1/min".parse().expect("a quota"), Duration::from_secs(60));
    let blocked = rule("client", "1/s").by(&HttpKey::peer()).block(block);
    let rules = ["user-10s", "user-10s-2", "client-block"].map(|name| rule(name, "9/s"));
    let mut service = layer([several, blocked].into_iter().chain(rules)).layer(Hello);
    let mut expected = vec![
        item("client", &[("q", 1), ("w", 1)]),
        item("client-block", &[("q", 9), ("w", 1)]),
        item("user-10s", &[("q", 9), ("w", 1)]),
        item("user-10s-2", &[("q", 9), ("w", 1)]),
        item("user-10s-3", &[("q", 5), ("w", 10)]),
        item("user-1s", &[("q", 1), ("w", 1)]),
        item("user-60s", &[("q", 7), ("w", 60)]),
    ];
    let mut sent = || {
        let response = send(&mut service, from("192.0.2.1"));
        let mut policies = items(&response, "ratelimit-policy");
        policies.sort();
        (response.status().as_u16(), policies)
    };
    assert_eq!(sent(), (200, expected.clone()));
    expected.insert(2, item("client-block-2", &[("q", 1), ("w", 60)]));
    assert_eq!(sent(), (429, expected));
}

/// The quotas of a rule with one window are one policy, also in the response to a limit that a handler checks.
#[test]
fn quotas_with_one_window_are_one_policy() {
    let limited = rule("user", "1/s").also(quota("1/s"));
    let (live, _) = live([limited]);
    let rules = live.load();
    let (head, ()) = hello().into_parts();
    assert!(rules.check(&head).is_ok());
    let denied = rules.check(&head).expect_err("no permit is left");
    let response: Response<String> = ringgate::http::DenialResponse::new(&denied).response();
    let policies = items(&response, "ratelimit-policy");
    assert_eq!(policies, [item("user", &[("q", 1), ("w", 1)])]);
}

/// While a client is blocked, the block is one of the quotas of its rule, and the retry time is the end of the block.
#[test]
fn a_blocked_client_is_told_the_end_of_its_block() {
    let block = Block::new("1/min".parse().expect("a quota"), Duration::from_secs(600));
    let limited = rule("client", "1/s").by(&HttpKey::peer()).block(block);
    let (live, clock) = live([limited]);
    let mut service = RateLimitLayer::new(live).layer(Hello);
    let policy = |response: &Response<Full<Bytes>>| header(response, "ratelimit-policy").map(str::to_owned);
    let first = send(&mut service, from("192.0.2.1"));
    assert_eq!(
        (first.status().as_u16(), policy(&first).as_deref()),
        (200, Some("\"client\";q=1;w=1"))
    );
    let second = send(&mut service, from("192.0.2.1"));
    assert_eq!(
        (second.status().as_u16(), header(&second, "retry-after")),
        (429, Some("600"))
    );
    clock.advance(Duration::from_secs(100));
    let blocked = send(&mut service, from("192.0.2.1"));
    assert_eq!(
        (blocked.status().as_u16(), header(&blocked, "retry-after")),
        (429, Some("500"))
    );
    assert_eq!(
        policy(&blocked).as_deref(),
        Some("\"client\";q=1;w=1, \"client-block\";q=1;w=60")
    );
    assert_eq!(
        header(&blocked, "ratelimit"),
        Some("\"client\";r=1, \"client-block\";r=0;t=500")
    );
    assert_eq!(send(&mut service, from("192.0.2.2")).status(), 200);
    clock.advance(Duration::from_secs(500));
    assert_eq!(send(&mut service, from("192.0.2.1")).status(), 200);
}
