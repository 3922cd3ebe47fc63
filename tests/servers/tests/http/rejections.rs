//! Rejection responses and quota headers.

use super::*;
use proptest::prelude::*;
use ringgate::CounterRing;
use ringgate::rules::{Condition, TierOf};
use sfv::List;

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

/// Rules of one client that is blocked for ten minutes after violations.
fn blocking(quota: &str, after: Quota) -> Rule<Parts> {
    let block = Block::new(after, Duration::from_secs(600));
    rule("client", quota).by(&HttpKey::peer()).block(block)
}

#[test]
fn a_rejection_is_429_with_retry_after() {
    let (live, clock) = live([rule("burst", "2/10s")]);
    let mut service = RateLimitLayer::new(live).layer(Hello);
    assert_eq!(sent(&mut service, 2), [200, 200]);
    // The window of ten seconds and a part of one of its sixty cells, rounded up to a second.
    let rejected = send(&mut service, hello());
    assert_eq!(status_and(&rejected, "retry-after"), (429, Some("11")));
    clock.advance(Duration::from_millis(1_001));
    assert_eq!(header(&send(&mut service, hello()), "retry-after"), Some("9"));
    clock.advance(Duration::from_secs(11));
    assert_eq!(sent(&mut service, 1), [200]);
}

/// Other crates write a wait of less than a second as 0.
#[test]
fn retry_after_is_never_0() {
    let (live, clock) = live([rule("fast", "1/1ms").cells(1)]);
    let mut service = RateLimitLayer::new(live).layer(Hello);
    assert_eq!(sent(&mut service, 1), [200]);
    clock.advance(Duration::from_micros(999));
    let rejected = send(&mut service, hello());
    assert_eq!(status_and(&rejected, "retry-after"), (429, Some("1")));
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
                let wait = header(&response, "retry-after").expect("a wait");
                clock.advance(Duration::from_secs(wait.parse().expect("a number")));
                assert_eq!(send(&mut service, hello()).status(), 200, "{text}, step {step}");
            }
        }
    }
}

/// In the exact format of the draft.
#[test]
fn admitted_and_rejected_responses_have_both_fields() {
    let mut service = layer([rule("burst", "2/60s")]).layer(Hello);
    for state in ["\"burst\";r=1;t=61", "\"burst\";r=0;t=61", "\"burst\";r=0;t=61"] {
        let response = send(&mut service, hello());
        assert_eq!(header(&response, "ratelimit-policy"), Some("\"burst\";q=2;w=60"));
        assert_eq!(header(&response, "ratelimit"), Some(state));
    }
}

/// `t` of a policy does not depend on the others. A tier has its own limit.
#[test]
fn each_quota_has_a_policy_with_a_unique_name() {
    let when = Condition::new("post", |request: &Parts| request.method == "POST");
    let plan = TierOf::new("plan", |request: &Parts| request.uri.host());
    let user = rule("user", "2/s").also(quota("50/10s"));
    let mut service = layer([
        user.also(quota("100/1500ms")),
        rule("all", "3/1ms"),
        rule("posts", "5/s").when(&when),
        rule("shadow", "1/s").shadow(),
        rule("plan", "2/min").tier_of(&plan).tier("paid", 100),
    ])
    .layer(Hello);
    let response = send(&mut service, get("http://paid/"));
    let sorted = |name| {
        let mut items = items(&response, name);
        items.sort();
        items
    };
    let expected = [
        item("all", &[("q", 3), ("w", 1)]),
        item("plan", &[("q", 100), ("w", 60)]),
        item("user-10s", &[("q", 50), ("w", 10)]),
        item("user-1500ms", &[("q", 100), ("w", 2)]),
        item("user-1s", &[("q", 2), ("w", 1)]),
    ];
    assert_eq!(sorted("ratelimit-policy"), expected);
    let expected = [
        item("all", &[("r", 2), ("t", 1)]),
        item("plan", &[("r", 99), ("t", 61)]),
        item("user-10s", &[("r", 49), ("t", 11)]),
        item("user-1500ms", &[("r", 99), ("t", 2)]),
        item("user-1s", &[("r", 1), ("t", 2)]),
    ];
    assert_eq!(sorted("ratelimit"), expected);
}

/// Each request has its limit, in every header. More limits are given than policies are cached.
#[test]
fn headers_have_the_limit_of_the_request() {
    let limit = |request: &Parts| request.uri.host().and_then(|host| host.parse().ok());
    let layer = layer([rule("plan", "100/min").limit_by(limit)]);
    let mut service = layer.headers(QuotaHeaders::Both).layer(Hello);
    // The limit, and the permits that are left.
    let admitted = (1..=20).map(|spent| (50 - spent, Some(50 - 2 * spent), None));
    for (limit, left, retry_after) in admitted.chain([(20, None, Some("61")), (0, None, None)]) {
        let response = send(&mut service, get(&format!("http://{limit}/")));
        let status = if left.is_some() { 200 } else { 429 };
        assert_eq!(status_and(&response, "retry-after"), (status, retry_after));
        let found = items(&response, "ratelimit-policy");
        assert_eq!(found, [item("plan", &[("q", limit), ("w", 60)])]);
        assert_eq!(header(&response, "x-ratelimit-limit"), Some(&*limit.to_string()));
        if let Some(left) = left {
            assert_eq!(items(&response, "ratelimit")[0].1[0], ("r".to_owned(), left));
            let found = header(&response, "x-ratelimit-remaining");
            assert_eq!(found, Some(&*left.to_string()));
        }
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
    let rules = [rule("quoted \"é\"", "1/min"), rule("roomy", "9/min").cells(6)];
    let mut service = layer(rules).layer(Hello);
    send(&mut service, hello());
    let rejected = send(&mut service, hello());
    let found = header(&rejected, "content-type");
    assert_eq!(found, Some("application/problem+json"));
    let expected = serde_json::json!({
        "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
        "title": "Request cannot be satisfied as assigned quota has been exceeded",
        "status": 429,
        "violated-policies": ["quoted \"é\""],
    });
    assert_eq!(problem(rejected), expected);
}

#[test]
fn the_response_can_be_replaced() {
    let (live, _) = live([rule("all", "1/min"), rule("more", "5/min").cells(4)]);
    let layer = RateLimitLayer::new(live)
        .status(RejectionReason::QuotaExceeded, StatusCode::SERVICE_UNAVAILABLE)
        .respond_with(|rejected: &Rejection<'_>| {
            assert_eq!(rejected.retry_after_seconds(), Some(61));
            assert_eq!(rejected.reason(), RejectionReason::QuotaExceeded);
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
fn a_request_that_is_never_admitted_has_no_retry_after() {
    let path = HttpKey::path();
    let mut service = layer([rule("all", "5/min").by(&path).deny("/")]).layer(Hello);
    let rejected = send(&mut service, hello());
    assert_eq!(status_and(&rejected, "retry-after"), (429, None));
    assert_eq!(header(&rejected, "ratelimit"), Some("\"all\";r=0"));
}

#[test]
fn nested_layers_list_all_policies() {
    let [outer, inner] = [rule("outer", "9/min"), rule("inner", "2/min")]
        .map(|rule| layer([rule]).headers(QuotaHeaders::Both));
    let response = send(&mut outer.layer(inner.layer(Hello)), hello());
    let names = items(&response, "ratelimit").into_iter().map(|item| item.0);
    assert_eq!(names.collect::<Vec<_>>(), ["inner", "outer"]);
    let limits = response.headers().get_all("x-ratelimit-limit");
    assert_eq!(limits.iter().collect::<Vec<_>>(), ["2"]);
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
#[test]
fn jitter_makes_retry_after_later_and_never_earlier() {
    let seen = [0, 20].map(|seconds| {
        let exact = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&exact);
        let rules = set([rule("all", "1/10s")]).build_with(ManualClock::new(), [1, 2, 3, 4]);
        let layer = RateLimitLayer::from(rules.expect("rules"))
            .jitter(Duration::from_secs(seconds))
            .on_rejected(move |rejection| {
                let told = (rejection.retry_after(), rejection.retry_after_seconds());
                noted.lock().expect("no panic").push(told);
            });
        let mut service = layer.layer(Hello);
        send(&mut service, hello());
        let mut told = alloc::collections::BTreeSet::new();
        for _ in 1..200 {
            let response = send(&mut service, hello());
            let after = header(&response, "retry-after").expect("a wait");
            told.insert(after.parse::<u64>().expect("seconds"));
            assert_eq!(header(&response, "ratelimit"), Some("\"all\";r=0;t=11"));
        }
        for (exact, seconds) in exact.lock().expect("no panic").iter() {
            assert!(exact.expect("a time") <= Duration::from_secs(11));
            assert!(told.contains(&seconds.expect("seconds")));
        }
        told
    });
    assert_eq!(seen[0].iter().copied().collect::<Vec<_>>(), [11]);
    // 10.167 s and less than 20 s more, in whole seconds.
    let in_range = seen[1].iter().all(|seconds| (11..=31).contains(seconds));
    assert!(in_range && seen[1].len() >= 15, "{seen:?}");
}

/// While a client is blocked, the block is one of the quotas of its rule, and the retry time is the end of the block. The
/// violations and the quota may have one window, and both are policies, each with its name.
#[test]
fn a_blocked_client_is_told_the_end_of_its_block() {
    for after in [quota("1/min"), quota("3/min")] {
        let (live, clock) = live([blocking("1/min", after).cells(1)]);
        let mut service = RateLimitLayer::new(live).layer(Hello);
        let mut get = || send(&mut service, from("192.0.2.1"));
        let first = get();
        let found = status_and(&first, "ratelimit-policy");
        assert_eq!(found, (200, Some("\"client\";q=1;w=60")));
        for _ in 0..after.limit() {
            assert_eq!(get().status(), 429);
        }
        let policies = format!("\"client\";q=1;w=60, \"client-block\";q={};w=60", after.limit());
        for (seconds, remaining) in [(0, "r=0;t=120"), (300, "r=1")] {
            clock.advance(Duration::from_secs(seconds));
            let (blocked, end) = (get(), 600 - seconds);
            let found = status_and(&blocked, "retry-after");
            assert_eq!(found, (429, Some(&*end.to_string())));
            assert_eq!(header(&blocked, "ratelimit-policy"), Some(&*policies));
            let states = format!("\"client\";{remaining}, \"client-block\";r=0;t={end}");
            assert_eq!(header(&blocked, "ratelimit"), Some(&*states));
        }
        clock.advance(Duration::from_secs(300));
        assert_eq!(get().status(), 200);
        assert_eq!(send(&mut service, from("192.0.2.2")).status(), 200);
    }
}

/// A name that is made of a rule and a window gives way to the name of another rule.
#[test]
fn a_rule_with_the_name_of_a_window_of_another_rule_keeps_its_name() {
    let several = rule("user", "1/s").also(quota("5/10s")).also(quota("7/1min"));
    let blocked = blocking("1/s", quota("1/min"));
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
