//! The values that a rejected client is told: they agree with each other and with the decision.

use super::*;
use proptest::prelude::*;

/// The cost that the header `name` of a request states, and 1 without it.
pub(crate) fn cost(name: &'static str) -> Cost<Parts> {
    Cost::new(name, move |request: &Parts| {
        let cost = request.headers.get(name);
        cost.and_then(|cost| cost.to_str().ok()?.parse().ok())
            .unwrap_or(1)
    })
}

pub(crate) const LEGACY: [&str; 3] = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];

/// Values of `X-RateLimit-Limit`, `X-RateLimit-Remaining`, `X-RateLimit-Reset` and `Retry-After`.
pub(crate) fn told<B>(response: &Response<B>) -> [Option<u64>; 4] {
    let [limit, remaining, reset] = LEGACY;
    [limit, remaining, reset, "retry-after"].map(|name| {
        let value = header(response, name)?;
        Some(value.parse().expect("a number"))
    })
}

/// Each case: the rules, the requests as costs of `a` and `b` after this many seconds, and what the last response tells.
#[test]
fn legacy_headers_are_of_the_policy_that_binds() {
    type Case<'a> = (&'a str, &'a [(u64, u64, u64)], [u64; 3], bool);
    let (a, b) = (cost("a"), cost("b"));
    // The rules of a case: a quota of `a` and one of `b`, in this order, with one cell unless it is said.
    let rules_of = |text: &str| match text {
        "cells" => vec![rule("a", "60/min").cost(&a), rule("b", "1000/h").cost(&b)],
        "one rule" => vec![rule("a", "2/10s").also(quota("3/h")).cells(1)],
        "requests" => vec![rule("a", "9/min").cost(&a).cells(1), rule("b", "99/h")],
        quotas => {
            let of = |text: &str| match text.split_once(' ').expect("a cost and a quota") {
                ("a", quota) => rule("a", quota).cost(&a).cells(1),
                (_, quota) => rule("b", quota).cost(&b).cells(1),
            };
            quotas.split(", ").map(of).collect()
        }
    };
    let six = [0, 0, 0, 0, 600, 600].map(|bytes| (0, 1, bytes));
    let ones = [(0, 1, 1), (0, 1, 1), (30, 1, 1), (0, 1, 1)];
    let cases: [Case<'_>; 10] = [
        // A policy with room, and a violated one.
        ("cells", &six, [1000, 400, 3660], true),
        // The longer of two spent ones, in either order, and of one rule.
        ("a 2/10s, b 3/h", &[(0, 2, 3); 2], [3, 0, 7200], true),
        ("b 3/h, a 2/10s", &[(0, 2, 3); 2], [3, 0, 7200], true),
        ("one rule", &ones, [3, 0, 7170], true),
        // More remain before enough remain.
        ("requests", &[(0, 4, 1), (60, 4, 1), (0, 9, 1)], [9, 1, 120], true),
        // Fewer permits, but room for more requests.
        ("a 60/min, b 1000/h", &[(0, 1, 100)], [1000, 900, 7200], false),
        ("a 60/min, b 100000/h", &[(0, 10, 1)], [60, 50, 120], false),
        // A policy that costs nothing does not bind.
        (
            "a 3/min, b 90/h",
            &[(0, 1, 1), (0, 1, 1), (0, 0, 1)],
            [90, 87, 7200],
            false,
        ),
        // As many requests: the longest reset.
        ("a 5/min, b 5/h", &[(0, 1, 1)], [5, 4, 7200], false),
        // More than the limit is never admitted.
        ("a 5/min, b 9/h", &[(0, 1, 1), (0, 6, 1)], [5, 4, 120], false),
    ];
    for (name, requests, [limit, left, reset], is_retried) in cases {
        let rules = rules_of(name);
        let (live, clock) = live(rules);
        let mut service = RateLimitLayer::new(live).headers(QuotaHeaders::Both).layer(Hello);
        let mut last = None;
        for &(wait, a, b) in requests {
            clock.advance(Duration::from_secs(wait));
            let request = with("a", &a.to_string(), with("b", &b.to_string(), Request::new(())));
            last = Some(told(&send(&mut service, request)));
        }
        let retry = is_retried.then_some(reset);
        let expected = [Some(limit), Some(left), Some(reset), retry];
        assert_eq!(last, Some(expected), "{name}");
    }
}

/// No time ends a denial by a list, so none is stated. A spent quota beside it has a time, but no retry is admitted after it.
#[test]
fn legacy_headers_of_a_listed_key_state_no_reset() {
    let path = HttpKey::path();
    let mut service = layer([
        rule("spent", "1/h"),
        rule("listed", "7/min").by(&path).deny("/no"),
    ])
    .headers(QuotaHeaders::Legacy)
    .layer(Hello);
    assert_eq!(send(&mut service, Request::new(())).status(), 200);
    let rejected = send(&mut service, Request::get("/no").body(()).expect("a request"));
    assert_eq!(told(&rejected), [Some(7), Some(0), None, None]);
    assert_eq!(header(&rejected, "ratelimit"), None, "only legacy headers");
}

/// The response of the service or of the rejection may state values of its own.
#[test]
fn legacy_headers_agree_with_the_headers_that_the_response_has() {
    let later = |rejection: &Rejection<'_>| {
        let mut response = Response::new(Body::default());
        *response.status_mut() = rejection.status();
        response.headers_mut().insert("retry-after", 7200.into());
        response
    };
    let mut service = layer([rule("all", "1/min")])
        .headers(QuotaHeaders::Legacy)
        .respond_with(later)
        .layer(Hello);
    send(&mut service, Request::new(()));
    let rejected = send(&mut service, Request::new(()));
    assert_eq!(told(&rejected), [Some(1), Some(0), Some(7200), Some(7200)]);
    // Headers of two policies are never mixed.
    for own in ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"] {
        let inner = tower::service_fn(move |_: Request<()>| {
            let mut response = Response::new(Body::default());
            response.headers_mut().insert(own, 3.into());
            core::future::ready(Ok::<_, Infallible>(response))
        });
        let layer = layer([rule("all", "9/min")]).headers(QuotaHeaders::Legacy);
        let response = send(&mut layer.layer(inner), Request::new(()));
        let stated = told(&response).into_iter().flatten().collect::<Vec<_>>();
        assert_eq!((header(&response, own), stated), (Some("3"), vec![3]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Of any rules and requests: a rejection names a violated policy, and its reset is not before `Retry-After`.
    #[test]
    fn a_rejection_agrees_with_itself(
        rules in proptest::collection::vec((1..20_u64, 1..100_u64, 1..5_u64), 1..4),
        steps in proptest::collection::vec((0..30_u64, 0..12_u64, 0..12_u64), 1..40),
    ) {
        let costs = [cost("a"), cost("b")];
        let built = rules.iter().enumerate().map(|(index, &(limit, seconds, cells))| {
            // Limits tell the policies apart.
            let text = format!("{}/{seconds}s", 4 * limit + index as u64);
            rule(["a", "b", "c", "d"][index], &text).cells(cells).cost(&costs[index % 2])
        });
        let (live, clock) = live(built);
        let mut service = RateLimitLayer::new(live).headers(QuotaHeaders::Both).layer(Hello);
        for (wait, a, b) in steps {
            clock.advance(Duration::from_secs(wait));
            let request = with("a", &a.to_string(), with("b", &b.to_string(), Request::new(())));
            let response = send(&mut service, request);
            let [limit, remaining, reset, retry_after] = told(&response);
            let index = limit.expect("a limit") % 4;
            let cost = if index % 2 == 0 { a } else { b };
            let rejected = response.status() == 429;
            prop_assert!(!rejected || remaining.expect("permits") < cost);
            prop_assert!(!rejected || reset >= retry_after);
            prop_assert!(rejected || retry_after.is_none() && reset.is_some());
        }
    }
}

/// A permit is free, but a request that came before waits for it.
#[tokio::test(start_paused = true)]
async fn a_rejection_by_the_queue_shows_no_room() {
    let rules = paused([rule("all", "2/1s").cost(&cost("a")), rule("roomy", "99/min")]);
    let layer = RateLimitLayer::from(rules)
        .wait(Duration::from_secs(3), 1)
        .headers(QuotaHeaders::Both);
    let service = layer.layer(Hello);
    let costs = |cost: &str| with("a", cost, Request::new(()));
    let first = service.clone().oneshot(costs("1")).await.expect("a response");
    assert_eq!(first.status(), 200);
    let waiting = tokio::spawn(service.clone().oneshot(costs("2")));
    tokio::time::sleep(Duration::from_millis(1)).await;
    let rejected = service.clone().oneshot(costs("1")).await.expect("a response");
    assert_eq!(rejected.status(), 429);
    let [limit, remaining, reset, retry_after] = told(&rejected);
    assert_eq!((limit, remaining), (Some(2), Some(0)));
    assert!(reset >= retry_after && retry_after >= Some(1));
    assert!(super::text(rejected).contains("[\"all\"]"));
    let found = waiting.await.expect("no panic").expect("a response").status();
    assert_eq!(found, 200);
}

struct Login {
    user: &'static str,
}

fn logins(text: &str) -> RuleSet<Login, ManualClock> {
    let user = Key::new("user", |login: &Login, key| login.user.hash(key));
    RuleSetBuilder::new()
        // The cells of the layer's rule, which has no key, so that both have one retry time.
        .rule(Rule::new("logins", quota(text)).by(&user).cells(60))
        .build_with(ManualClock::new(), [1, 2, 3, 4])
        .expect("rules")
}

/// The head and the text of a response.
fn whole(response: Response<Body>) -> (StatusCode, Vec<(String, String)>, String) {
    let headers = response.headers().iter();
    let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().expect("text").to_owned()));
    let mut headers: Vec<_> = headers.collect();
    headers.sort();
    (response.status(), headers, super::text(response))
}

/// A limit that a handler checks has the response of a layer with the same rule.
#[test]
fn a_denial_in_a_handler_has_the_response_of_the_layer() {
    use QuotaHeaders::{Both, Legacy, Off, Standard};
    for headers in [Off, Standard, Legacy, Both] {
        for text in ["1/min", "1/h", "1/1ms"] {
            let mut service = layer([rule("logins", text)]).headers(headers).layer(Hello);
            send(&mut service, Request::new(()));
            let expected = send(&mut service, Request::new(()));
            let (rules, login) = (logins(text), Login { user: "alice" });
            assert!(rules.check(&login).is_ok());
            let denied = rules.check(&login).expect_err("no room");
            let response = DenialResponse::new(&denied).headers(headers);
            let decision = expected.extensions().get() == Some(&Decision::Rejected);
            assert!(decision && response.response::<String>().extensions().len() == 1);
            assert_eq!(whole(response.response()), whole(expected), "{headers:?} {text}");
            assert!(rules.check(&Login { user: "bob" }).is_ok());
        }
    }
}

/// As an error of a handler of axum, and as a status of gRPC.
#[test]
fn a_denial_in_a_handler_is_a_response_of_axum_and_grpc() {
    use axum::response::IntoResponse;
    let rules = logins("1/min");
    let handler = |login: Login| -> Result<&'static str, DenialResponse> {
        rules
            .check(&login)
            .map_err(|denied| DenialResponse::new(&denied))?;
        Ok("hello")
    };
    assert_eq!(handler(Login { user: "alice" }).into_response().status(), 200);
    let denied = handler(Login { user: "alice" }).into_response();
    assert_eq!(denied.status(), 429);
    assert_eq!(header(&denied, "retry-after"), Some("61"));
    assert_eq!(header(&denied, "content-type"), Some("application/problem+json"));
    let denied = rules.check(&Login { user: "alice" }).expect_err("no room");
    let (request, ()) = Request::new(()).into_parts();
    let response: Response<Body> = DenialResponse::new(&denied).response_to(&request, &Grpc);
    assert_eq!(status_and(&response, "grpc-status"), (200, Some("8")));
    let (request, ()) = with("content-type", "application/grpc-web", Request::new(())).into_parts();
    let response: Response<Body> = DenialResponse::new(&denied).response_to(&request, &Problem);
    assert_eq!(header(&response, "content-type"), Some("application/grpc-web"));
}

/// The reasons other than a spent quota.
#[tokio::test]
async fn a_denial_in_a_handler_has_the_status_of_its_reason() {
    for (on_missing, status) in [(OnMissingKey::Deny, 400), (OnMissingKey::Fail, 500)] {
        let (live, _) = live([rule("client", "9/min").by(&HttpKey::peer().on_missing(on_missing))]);
        let (request, ()) = Request::new(()).into_parts();
        let rules = live.load();
        let denied = rules.check(&request).expect_err("no key");
        let response = DenialResponse::new(&denied).response::<Body>();
        assert_eq!(status_and(&response, "retry-after"), (status, None));
    }
    let (live, _) = live([Rule::in_flight("slots", 1)]);
    let (request, ()) = Request::new(()).into_parts();
    let rules = live.load();
    let _held = rules.reserve(&request).expect("a slot");
    let denied = rules.reserve(&request).expect_err("no slot");
    let response = DenialResponse::new(&denied).response::<Body>();
    assert_eq!(header(&response, "ratelimit"), Some("\"slots\";r=0"));
    assert!(super::text(response).contains("too many requests are in flight"));
    let shared = SharedRules::builder()
        .rule(rule("all", "1/h"))
        .build(Arc::new(MemoryStore::new()))
        .expect("rules");
    assert!(shared.check(&request).await.is_ok());
    let denied = shared.check(&request).await.expect_err("no room");
    let response = DenialResponse::new(&denied)
        .headers(QuotaHeaders::Both)
        .response::<Body>();
    let [limit, remaining, reset, retry_after] = told(&response);
    assert_eq!(
        (response.status().as_u16(), limit, remaining),
        (429, Some(1), Some(0))
    );
    assert!(reset >= retry_after && retry_after >= Some(1));
}
