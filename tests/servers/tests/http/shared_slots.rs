//! Requests in flight over many nodes: the slot of a request is free on all nodes as soon as the request has ended.

use super::*;

type Shared = SharedRules<Parts>;

/// The time in which the task of a node releases slots.
const MOMENT: Duration = Duration::from_millis(1);

/// Two nodes with one slot for each peer, and ten requests per hour.
async fn nodes() -> [Arc<Shared>; 2] {
    let store = memory().await;
    let slots = || Rule::in_flight("slots", 1).by(&HttpKey::peer());
    [(); 2].map(|()| over(&store, [slots().into_any(), rule("rate", "10/h").into_any()]))
}

async fn free(rules: &Shared) -> (u64, u64) {
    sleep(MOMENT).await;
    let (head, ()) = alice().into_parts();
    let statuses = rules.peek(&head).await.expect("an answer");
    (statuses[0].remaining, statuses[1].remaining)
}

#[tokio::test(start_paused = true)]
async fn a_slot_is_held_until_the_response() {
    let [one, two] = nodes().await;
    let slow = tower::service_fn(|_: Request<()>| async {
        sleep(Duration::from_secs(60)).await;
        Ok::<_, Infallible>(Response::new(String::new()))
    });
    let running = tokio::spawn(RateLimitLayer::new(Arc::clone(&one)).layer(slow).oneshot(alice()));
    sleep(Duration::from_secs(30)).await;
    let rejected = answer(RateLimitLayer::new(Arc::clone(&two)).layer(Hello), alice()).await;
    assert_eq!((rejected.status().as_u16(), free(&two).await), (429, (0, 9)));
    let response = running.await.expect("no panic").expect("a response");
    assert_eq!(
        header(&response, "ratelimit-policy"),
        Some("\"slots\";q=1;qu=\"concurrent-requests\", \"rate\";q=10;w=3600")
    );
    assert_eq!(free(&two).await, (1, 9));
    // A service that panics, and a future that is dropped.
    let panics = tower::service_fn(|_: Request<()>| async {
        sleep(MOMENT).await;
        panic!("in the future");
        #[expect(unreachable_code, reason = "it gives the future its type")]
        Ok::<_, Infallible>(Response::new(String::new()))
    });
    let layer = RateLimitLayer::new(Arc::clone(&one));
    assert!(tokio::spawn(layer.layer(panics).oneshot(alice())).await.is_err());
    assert_eq!(free(&two).await, (1, 8));
    let waits = RateLimitLayer::new(one).layer(slow).oneshot(alice());
    assert!(tokio::time::timeout(Duration::from_secs(1), waits).await.is_err());
    assert_eq!(free(&two).await, (1, 7));
}

/// A refund of the permits keeps the slot until the body has ended. A settlement releases it.
#[tokio::test(start_paused = true)]
async fn a_refund_keeps_the_slot() {
    let [one, two] = nodes().await;
    let layer = RateLimitLayer::new(Arc::clone(&one))
        .charge_if(|head| head.status != 200)
        .until_body_end();
    let response = answer(layer.layer(Hello), alice()).await;
    assert_eq!(free(&two).await, (0, 10));
    drop(response);
    assert_eq!(free(&two).await, (1, 10));
    let bytes = Cost::new("bytes", |_: &Parts| 100);
    let layer = RateLimitLayer::new(one).settle_body(&bytes).until_body_end();
    let response = answer(layer.layer(Hello), alice()).await;
    assert_eq!(free(&two).await, (0, 9));
    drop(response);
    assert_eq!(free(&two).await, (1, 9));
}
