//! The answers to requests that were rejected for lack of a slot in flight.

use ringgate::http::{DenialResponse, Grpc, HttpKey, Metered, Problem, QuotaHeaders};
use ringgate::shared::{MemoryStore, SharedRules};
use ringgate::wait::TokioClock;
use tower::ServiceExt;

use super::*;

/// Each case: the rules, the options, and what the client of the second request is told.
#[test]
fn a_client_without_a_slot_is_told_the_truth() {
    type Layer = RateLimitLayer<Live, Problem, Metered>;
    type Case = (
        &'static str,
        Vec<Rule<Parts>>,
        fn(Layer) -> Layer,
        Option<&'static str>,
        bool,
    );
    let slots = || Rule::in_flight("slots", 1);
    let same: fn(Layer) -> Layer = |layer| layer;
    let five: fn(Layer) -> Layer = |layer| layer.slot_retry_after(Duration::from_secs(5));
    let path = HttpKey::path();
    let cases: [Case; 10] = [
        ("slots alone", vec![slots()], same, None, true),
        ("a stated time", vec![slots()], five, Some("5"), true),
        (
            "less than a second",
            vec![slots()],
            |layer| layer.slot_retry_after(Duration::from_millis(1)),
            Some("1"),
            true,
        ),
        (
            "beside a quota with room",
            vec![slots(), rule("r", "9/h")],
            five,
            Some("5"),
            true,
        ),
        (
            "beside a spent quota",
            vec![slots(), rule("r", "1/h").cells(1)],
            same,
            Some("7200"),
            false,
        ),
        (
            "beside a spent quota, a shorter time",
            vec![rule("r", "1/h").cells(1), slots()],
            five,
            Some("7200"),
            false,
        ),
        (
            "beside a spent quota, a longer time",
            vec![slots(), rule("r", "1/1s").cells(1)],
            five,
            Some("5"),
            false,
        ),
        ("of a key", vec![slots().by(&path)], same, None, true),
        (
            "beside a shadow",
            vec![slots(), rule("r", "1/h").shadow()],
            same,
            None,
            true,
        ),
        (
            "two rules",
            vec![slots(), Rule::in_flight("more", 1).by(&path)],
            five,
            Some("5"),
            true,
        ),
    ];
    for (name, rules, option, retry_after, in_flight) in cases {
        let (live, _) = live(rules);
        let layer = RateLimitLayer::new(live)
            .headers(QuotaHeaders::Both)
            .until_body_end();
        let mut service = option(layer).layer(Hello);
        let first = send(&mut service, alice());
        assert_eq!(first.status(), 200, "{name}");
        let rejected = send(&mut service, alice());
        assert_eq!(rejected.status(), 429, "{name}");
        assert_eq!(header(&rejected, "retry-after"), retry_after, "{name}");
        assert_eq!(header(&rejected, "x-ratelimit-remaining"), Some("0"), "{name}");
        assert_eq!(header(&rejected, "x-ratelimit-reset"), retry_after, "{name}");
        assert!(
            header(&rejected, "ratelimit")
                .expect("a header")
                .contains("\"slots\";r=0"),
            "{name}"
        );
        let text = text(rejected);
        assert_eq!(
            text.contains("too many requests are in flight"),
            in_flight,
            "{name}: {text}"
        );
        assert_eq!(
            text.contains("quota has been exceeded"),
            !in_flight,
            "{name}: {text}"
        );
    }
}

/// A key that never gets a slot is not told to wait for one.
#[test]
fn a_key_that_never_gets_a_slot_is_not_told_to_try_again() {
    let path = HttpKey::path();
    for never in [
        Rule::in_flight("slots", 1).by(&path).deny("/"),
        Rule::in_flight("slots", 1).limit_by(|_: &Parts| Some(0)),
    ] {
        let (live, _) = live([never]);
        let (head, ()) = alice().into_parts();
        let denied = live.load().reserve(&head).expect_err("never").to_string();
        assert!(denied.ends_with("; never admitted"), "{denied}");
        let layer = RateLimitLayer::new(live).slot_retry_after(Duration::from_secs(5));
        let rejected = send(&mut layer.layer(Hello), alice());
        assert_eq!(
            (rejected.status().as_u16(), header(&rejected, "retry-after")),
            (429, None)
        );
        let text = text(rejected);
        assert!(!text.contains("in flight"), "{text}");
    }
}

/// The layer waits, and the wait ends without a slot. A quota is spent as well, for a shorter time than the one that is stated for slots.
#[tokio::test(start_paused = true)]
async fn a_wait_without_a_slot_states_the_time_of_slots() {
    let rules = set([Rule::in_flight("slots", 1), rule("rate", "1/1s").cells(1)]);
    let rules = rules.build_with(TokioClock::new(), [1, 2, 3, 4]).expect("rules");
    let layer = RateLimitLayer::new(Arc::new(LiveRules::new(rules)))
        .wait(Duration::from_millis(100))
        .slot_retry_after(Duration::from_secs(5))
        .until_body_end()
        .layer(Hello);
    let Ok(held) = layer.clone().oneshot(alice()).await;
    assert_eq!(held.status(), 200);
    let Ok(rejected) = layer.oneshot(alice()).await;
    assert_eq!(
        (rejected.status().as_u16(), header(&rejected, "retry-after")),
        (429, Some("5"))
    );
    drop(held);
}

/// A store has given all slots to another node.
#[tokio::test(start_paused = true)]
async fn a_client_without_a_slot_of_a_store_is_told_the_truth() {
    let store = Arc::new(MemoryStore::with_clock(TokioClock::new()));
    let [one, two] = [(); 2].map(|()| {
        let built = SharedRules::builder()
            .rule(Rule::in_flight("slots", 1))
            .rule(rule("rate", "10/h"))
            .build(store.clone());
        Arc::new(built.expect("rules"))
    });
    let (head, ()) = alice().into_parts();
    let _held = one.check(&head).await.expect("a slot");
    let layer = RateLimitLayer::new(Arc::clone(&two)).headers(QuotaHeaders::Both);
    for (layer, retry_after) in [
        (layer.clone(), None),
        (layer.slot_retry_after(Duration::from_secs(5)), Some("5")),
    ] {
        let Ok(rejected) = layer.layer(Hello).oneshot(alice()).await;
        assert_eq!(rejected.status(), 429);
        assert_eq!(header(&rejected, "retry-after"), retry_after);
        assert_eq!(header(&rejected, "x-ratelimit-limit"), Some("1"));
        assert_eq!(header(&rejected, "x-ratelimit-remaining"), Some("0"));
        assert_eq!(header(&rejected, "x-ratelimit-reset"), retry_after);
        let states = header(&rejected, "ratelimit").expect("a header");
        assert!(states.starts_with("\"slots\";r=0, "), "{states}");
        let text = text(rejected);
        assert!(text.contains("too many requests are in flight"), "{text}");
    }
    let denied = two.check(&head).await.expect_err("no slot");
    let response: Response<Body> = DenialResponse::new(&denied).response_to(&head, &Grpc::default());
    let message = header(&response, "grpc-message").expect("a message");
    assert!(
        message.starts_with("too many requests in flight: slots"),
        "{message}"
    );
    assert_eq!(header(&response, "grpc-status"), Some("8"));
}
