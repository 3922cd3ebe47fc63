//! Requests that wait for shared rules, with tokio's paused clock.

use super::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A request behind others is rejected without a decision of its own, and its response has the values of the last decision.
#[tokio::test(start_paused = true)]
async fn a_rejection_behind_others_has_the_headers_of_the_rule() {
    let key = HttpKey::peer();
    let rules = over(
        &memory().await,
        [rule("client", "100/min").by(&key), rule("all", "1/10s").cells(10)],
    );
    let layer = RateLimitLayer::new(rules).wait(ms(20_000), 1);
    assert_eq!(answer(layer.layer(Hello), alice()).await.status(), 200);
    let first = tokio::spawn(answer(layer.layer(Hello), alice()));
    sleep(ms(4000)).await;
    let rejected = answer(layer.layer(Hello), from("192.0.2.2")).await;
    assert_eq!(status_and(&rejected, "retry-after"), (429, Some("7")));
    assert_eq!(header(&rejected, "ratelimit"), Some("\"all\";r=0;t=7"));
    assert_eq!(problem(rejected)["violated-policies"], serde_json::json!(["all"]));
    assert_eq!(first.await.expect("no panic").status(), 200);
}

/// A request that waits gets the slot of a request of this machine as soon as its response has ended.
#[tokio::test(start_paused = true)]
async fn requests_wait_for_a_slot() {
    let store = memory().await;
    let rules = over(&store, [Rule::in_flight("slots", 1)]);
    let slow = tower::service_fn(|_: Request<()>| async {
        sleep(ms(1500)).await;
        Ok::<_, Infallible>(Response::new(String::new()))
    });
    let layer = RateLimitLayer::new(rules).wait(ms(60_000), 1_000);
    let began = Instant::now();
    let requests = [(); 3].map(|()| tokio::spawn(layer.layer(slow).oneshot(alice())));
    for request in requests {
        assert_eq!(
            request.await.expect("no panic").expect("a response").status(),
            200
        );
    }
    let took = began.elapsed();
    assert!((ms(4500)..ms(4600)).contains(&took), "{took:?}");
    // A slot of another machine is found within a second, and a wait that is too short is rejected without a retry time.
    let other = RateLimitLayer::new(over(&store, [Rule::in_flight("slots", 1)])).wait(ms(60_000), 1_000);
    let first = tokio::spawn(layer.layer(slow).oneshot(alice()));
    sleep(ms(1)).await;
    let began = Instant::now();
    let hasty = answer(other.clone().wait(ms(500), 1_000).layer(Hello), alice()).await;
    assert_eq!(status_and(&hasty, "retry-after"), (429, None));
    assert_eq!(answer(other.layer(Hello), alice()).await.status(), 200);
    assert!(began.elapsed() < ms(2600), "{:?}", began.elapsed());
    assert!(first.await.expect("no panic").is_ok());
}

/// A refunded permit is taken by the first request that waits.
#[tokio::test(start_paused = true)]
async fn a_refunded_permit_is_taken_at_once() {
    let rules = over(&memory().await, [rule("failures", "1/h")]);
    let layer = RateLimitLayer::new(rules)
        .charge_if(|head| head.status != 200)
        .wait(ms(10_000_000), 1_000);
    let slow = tower::service_fn(|_: Request<()>| async {
        sleep(ms(1000)).await;
        Ok::<_, Infallible>(Response::new(String::new()))
    });
    let began = Instant::now();
    let requests = [(); 4].map(|()| tokio::spawn(layer.layer(slow).oneshot(alice())));
    for request in requests {
        let found = request.await.expect("no panic").expect("a response").status();
        assert_eq!(found, 200);
    }
    assert!(
        (ms(4000)..ms(4100)).contains(&began.elapsed()),
        "{:?}",
        began.elapsed()
    );
}

/// New rules apply to requests that wait as soon as the layer rechecks its queues.
#[tokio::test(start_paused = true)]
async fn a_recheck_applies_new_rules() {
    let store = memory().await;
    let builder = SharedRules::builder()
        .rule(rule("all", "1/h"))
        .term_clock(TokioClock::new());
    let live: LiveSharedRules<Parts> = builder.build_live(store).expect("rules");
    let live = Arc::new(live);
    let layer = RateLimitLayer::new(Arc::clone(&live)).wait(ms(10_000_000), 1_000);
    assert_eq!(answer(layer.layer(Hello), alice()).await.status(), 200);
    let began = Instant::now();
    let waiting = tokio::spawn(answer(layer.layer(Hello), alice()));
    sleep(ms(1000)).await;
    live.store(set([rule("all", "9/h")])).expect("rules");
    layer.recheck();
    assert_eq!(waiting.await.expect("no panic").status(), 200);
    assert!(began.elapsed() < ms(1010), "{:?}", began.elapsed());
}
