//! The answers to requests that were rejected for lack of a slot in flight.

use super::*;

/// Each case: the rules, the time that is stated for slots, and what the client of the second request is told: the retry time, and whether
/// the reason is the slot.
#[test]
fn a_client_without_a_slot_is_told_the_truth() {
    let path = HttpKey::path();
    let rule_of = |text: &str| match text {
        "slots" => Rule::in_flight("slots", 1).into_any(),
        "slots by path" => Rule::in_flight("slots", 1).by(&path).into_any(),
        "more by path" => Rule::in_flight("more", 1).by(&path).into_any(),
        "shadow 1/h" => self::rule("r", "1/h").cells(1).shadow().into_any(),
        quota => self::rule("r", quota).cells(1).into_any(),
    };
    for (name, stated, retry_after, in_flight) in [
        ("slots", None, None, true),
        ("slots", Some(5_000), Some("5"), true),
        // Less than a second.
        ("slots", Some(1), Some("1"), true),
        ("slots, 9/h", Some(5_000), Some("5"), true),
        ("slots, 1/h", None, Some("7200"), false),
        ("1/h, slots", Some(5_000), Some("7200"), false),
        ("slots, 1/1s", Some(5_000), Some("5"), false),
        ("slots by path", None, None, true),
        ("slots, shadow 1/h", None, None, true),
        ("slots, more by path", Some(5_000), Some("5"), true),
    ] {
        let rules: Vec<AnyRule<Parts>> = name.split(", ").map(rule_of).collect();
        let layer = RateLimitLayer::new(live(rules).0).headers(QuotaHeaders::Both);
        let layer = match stated {
            Some(millis) => layer.slot_retry_after(Duration::from_millis(millis)),
            None => layer,
        };
        let mut service = layer.until_body_end().layer(Hello);
        let first = send(&mut service, alice());
        assert_eq!(first.status(), 200, "{name}");
        let rejected = send(&mut service, alice());
        assert_eq!(status_and(&rejected, "retry-after"), (429, retry_after), "{name}");
        assert_eq!(header(&rejected, "x-ratelimit-remaining"), Some("0"), "{name}");
        assert_eq!(header(&rejected, "x-ratelimit-reset"), retry_after, "{name}");
        let states = header(&rejected, "ratelimit").expect("a header");
        assert!(states.contains("\"slots\";r=0"), "{name}: {states}");
        let text = text(rejected);
        let found = text.contains("too many requests are in flight");
        assert_eq!(found, in_flight, "{name}: {text}");
        let found = text.contains("quota has been exceeded");
        assert_eq!(found, !in_flight, "{name}: {text}");
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
        assert_eq!(status_and(&rejected, "retry-after"), (429, None));
        let text = text(rejected);
        assert!(!text.contains("in flight"), "{text}");
    }
}

/// The layer waits, and the wait ends without a slot. A quota is spent as well, for a shorter time than the one that is stated for slots.
#[tokio::test(start_paused = true)]
async fn a_wait_without_a_slot_states_the_time_of_slots() {
    let rules = set([
        Rule::in_flight("slots", 1).into_any(),
        rule("rate", "1/1s").cells(1).into_any(),
    ]);
    let rules = rules.build_with(TokioClock::new(), [1, 2, 3, 4]).expect("rules");
    let layer = RateLimitLayer::new(Arc::new(LiveRules::new(rules)))
        .wait(Duration::from_millis(100), 1_000)
        .slot_retry_after(Duration::from_secs(5))
        .until_body_end()
        .layer(Hello);
    let Ok(held) = layer.clone().oneshot(alice()).await;
    assert_eq!(held.status(), 200);
    let Ok(rejected) = layer.oneshot(alice()).await;
    assert_eq!(status_and(&rejected, "retry-after"), (429, Some("5")));
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
    let response: Response<Body> = DenialResponse::new(&denied).response_to(&head, &Grpc);
    let message = header(&response, "grpc-message").expect("a message");
    assert!(
        message.starts_with("too many requests in flight: slots"),
        "{message}"
    );
    assert_eq!(header(&response, "grpc-status"), Some("8"));
}
