//! Requests in flight: the slot of a request is free as soon as the request has ended, in whichever way.

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use super::*;
use http_body::Body as _;

/// One request of each peer at a time, until the end of its body.
fn one() -> (Arc<Live>, RateLimitLayer<Live, Problem, Metered>) {
    let (live, _) = live([Rule::in_flight("client", 1).by(&HttpKey::peer())]);
    let layer = RateLimitLayer::new(Arc::clone(&live)).until_body_end();
    (live, layer)
}

/// A body of frames, each of which is pending once.
#[derive(Debug, Default)]
struct Slow(VecDeque<Result<Frame<Bytes>, &'static str>>, bool);

impl http_body::Body for Slow {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        self.1 = !self.1;
        if self.1 {
            return Poll::Pending;
        }
        Poll::Ready(self.0.pop_front())
    }
}

impl From<String> for Slow {
    fn from(_: String) -> Self {
        Self::default()
    }
}

fn slow(frames: impl IntoIterator<Item = Result<Frame<Bytes>, &'static str>>) -> Slow {
    Slow(frames.into_iter().collect(), false)
}

fn data() -> Result<Frame<Bytes>, &'static str> {
    Ok(Frame::data(Bytes::from_static(b"data")))
}

/// The response of a service with this body.
fn response(
    layer: &RateLimitLayer<Live, Problem, Metered>,
    body: impl Fn() -> Slow + Clone,
) -> Response<MeteredBody<Slow>> {
    let service = tower::service_fn(move |_: Request<()>| {
        core::future::ready(Ok::<_, Infallible>(Response::new(body())))
    });
    send(&mut layer.layer(service), alice())
}

fn poll(body: &mut MeteredBody<Slow>) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
    Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_slot_is_held_until_the_body_has_ended() {
    let (live, layer) = one();
    for fails in [false, true] {
        let frames = move || slow([data(), data()].into_iter().chain(fails.then_some(Err("broken"))));
        let mut body = response(&layer, frames).into_body();
        for _ in 0..2 {
            assert!(poll(&mut body).is_pending() && poll(&mut body).is_ready());
            assert_eq!(response(&layer, Slow::default).status(), 429);
            assert_eq!(held(&live), 1);
        }
        assert!(poll(&mut body).is_pending());
        assert_eq!(held(&live), 1);
        assert!(matches!(poll(&mut body), Poll::Ready(None | Some(Err(_)))));
        // The body is kept, and the slot is free.
        assert_eq!(held(&live), 0);
        let next = response(&layer, Slow::default);
        assert_eq!((next.status().as_u16(), held(&live)), (200, 1));
        drop(body);
        assert_eq!(held(&live), 1);
        drop(next);
        assert_eq!(held(&live), 0);
    }
}

#[test]
fn a_body_that_is_dropped_after_any_poll_frees_its_slot() {
    let (live, layer) = one();
    for polls in 0..7 {
        let mut body = response(&layer, || slow([data(), data()])).into_body();
        for _ in 0..polls {
            let _ = poll(&mut body);
        }
        assert_eq!(held(&live), u64::from(polls < 6), "{polls}");
        drop(body);
        assert_eq!(held(&live), 0, "{polls}");
    }
}

/// Is pending this many times.
async fn pending(times: usize) {
    let mut left = times;
    core::future::poll_fn(|_| match left.checked_sub(1) {
        Some(less) => {
            left = less;
            Poll::Pending
        }
        None => Poll::Ready(()),
    })
    .await;
}

#[test]
fn a_future_that_is_dropped_at_any_await_frees_its_slot() {
    let (live, layer) = one();
    let mut service = layer.layer(tower::service_fn(|_: Request<()>| async {
        pending(3).await;
        Ok::<_, Infallible>(Response::new(Slow::default()))
    }));
    for polls in 0..5 {
        let mut future = Box::pin(service.call(alice()));
        let mut responses = Vec::new();
        for _ in 0..polls {
            let polled = poll_once(&mut future);
            responses.extend(matches!(polled, Poll::Ready(_)).then_some(polled));
            assert_eq!(held(&live), 1);
        }
        assert_eq!(responses.len(), usize::from(polls == 4));
        drop((future, responses));
        assert_eq!(held(&live), 0, "{polls}");
    }
}

#[test]
fn a_service_that_fails_or_panics_frees_its_slot() {
    let (live, layer) = one();
    let mut broken = layer.layer(tower::service_fn(|_: Request<()>| {
        core::future::ready(Err::<Response<Slow>, _>("broken"))
    }));
    let mut future = Box::pin(broken.call(alice()));
    let polled = poll_once(&mut future);
    assert!(matches!(polled, Poll::Ready(Err("broken"))));
    // The future is kept, and the slot is free.
    assert_eq!(held(&live), 0);
    drop(future);

    // A panic in `call`, and one in a poll of the future.
    let mut in_call = layer.layer(tower::service_fn(|_: Request<()>| {
        panic!("in the call");
        #[expect(unreachable_code, reason = "it gives the closure its type")]
        core::future::ready(Ok::<_, Infallible>(Response::new(Slow::default())))
    }));
    assert!(catch_unwind(AssertUnwindSafe(|| drop(in_call.call(alice())))).is_err());
    assert_eq!(held(&live), 0);
    let mut in_poll = layer.layer(tower::service_fn(|_: Request<()>| async {
        pending(1).await;
        panic!("in the future");
        #[expect(unreachable_code, reason = "it gives the future its type")]
        Ok::<_, Infallible>(Response::new(Slow::default()))
    }));
    let mut future = Box::pin(in_poll.call(alice()));
    let mut poll = || poll_once(&mut future).is_pending();
    assert!(poll());
    assert_eq!(held(&live), 1);
    assert!(catch_unwind(AssertUnwindSafe(poll)).is_err());
    drop(future);
    assert_eq!(held(&live), 0);
    assert_eq!(response(&layer, Slow::default).status(), 200);
}

/// Without `until_body_end`, the response ends the request.
#[test]
fn by_default_a_slot_is_held_until_the_response() {
    let (live, _) = live([Rule::in_flight("client", 1)]);
    let layer = RateLimitLayer::new(Arc::clone(&live));
    let mut service = layer.layer(tower::service_fn(|_: Request<()>| async {
        pending(1).await;
        Ok::<_, Infallible>(Response::new(Body::default()))
    }));
    let mut future = Box::pin(service.call(alice()));
    let mut poll = || poll_once(&mut future);
    assert!(poll().is_pending());
    let found = now(service.clone().call(alice())).expect("a response").status();
    assert_eq!(found, 429);
    let Poll::Ready(Ok(response)) = poll() else {
        panic!("a response")
    };
    assert_eq!((response.status().as_u16(), held(&live)), (200, 0));
}

/// A response that is not charged gives its rates back at once, and its slot when its body has ended.
#[test]
fn a_refund_and_a_settlement_keep_the_slot_until_the_body_has_ended() {
    let bytes = Cost::new("bytes", |_: &Parts| 100);
    let rules = [
        Rule::in_flight("client", 1).into_any(),
        rule("requests", "10/min").into_any(),
        rule("volume", "1000/min").cost(&bytes).into_any(),
    ];
    let (live, _) = live(rules);
    let spent = || -> Vec<u64> {
        let (head, ()) = alice().into_parts();
        live.load().peek(&head).map(|peek| peek.spent()).collect()
    };
    let charged = Arc::new(AtomicBool::new(false));
    let charge_if = Arc::clone(&charged);
    let layer = RateLimitLayer::new(Arc::clone(&live))
        .charge_if(move |_| charge_if.load(Ordering::Relaxed))
        .settle_body(&bytes)
        .until_body_end();
    let mut body = response(&layer, || slow([data()])).into_body();
    assert_eq!(spent(), [1, 0, 0]);
    while !matches!(poll(&mut body), Poll::Ready(None)) {}
    assert_eq!(spent(), [0, 0, 0]);
    charged.store(true, Ordering::Relaxed);
    let mut body = response(&layer, || slow([data()])).into_body();
    assert_eq!(spent(), [1, 1, 100]);
    while !matches!(poll(&mut body), Poll::Ready(None)) {}
    assert_eq!(spent(), [0, 1, 4]);
}

/// The unit of the draft takes the place of the window, and no time is stated at which a slot is free.
#[test]
fn a_rejection_names_the_rule_and_has_no_retry_time() {
    let (live, _) = live([
        Rule::in_flight("slots", 1).into_any(),
        rule("requests", "10/min").into_any(),
    ]);
    let layer = RateLimitLayer::new(Arc::clone(&live))
        .headers(QuotaHeaders::Both)
        .until_body_end();
    let mut service = layer.layer(Hello);
    let first = send(&mut service, alice());
    for response in [&first, &send(&mut service, alice())] {
        assert_eq!(
            header(response, "ratelimit-policy"),
            Some("\"slots\";q=1;qu=\"concurrent-requests\", \"requests\";q=10;w=60")
        );
        let found = header(response, "ratelimit");
        assert_eq!(found, Some("\"slots\";r=0, \"requests\";r=9;t=61"));
        let is_rejected = response.status() == 429;
        let (limit, reset) = if is_rejected {
            ("1", None)
        } else {
            ("10", Some("61"))
        };
        assert_eq!(header(response, "x-ratelimit-limit"), Some(limit));
        assert_eq!(header(response, "x-ratelimit-reset"), reset);
        assert_eq!(header(response, "retry-after"), None);
    }
    let rejected = send(&mut service, alice());
    assert_eq!(rejected.status(), 429);
    let text = text(rejected);
    assert!(text.contains("\"violated-policies\":[\"slots\"]"), "{text}");
    assert!(text.contains("too many requests are in flight"), "{text}");
    assert!(
        text.contains("when one of the requests in flight has ended"),
        "{text}"
    );
}

/// A reload while a request is in flight adds, changes and removes the rule.
#[test]
fn a_slot_is_free_after_a_reload() {
    let (live, layer) = one();
    let of = |limit| Rule::in_flight("client", limit).by(&HttpKey::peer());
    let first = response(&layer, || slow([data()]));
    live.store(&set([of(2)])).expect("rules");
    let second = response(&layer, || slow([data()]));
    assert_eq!((second.status().as_u16(), held(&live)), (200, 2));
    live.store(&set([of(1)])).expect("rules");
    drop(first);
    assert_eq!(response(&layer, Slow::default).status(), 429);
    assert_eq!(held(&live), 1);
    live.store(&RuleSetBuilder::new()).expect("rules");
    live.store(&set([of(1)])).expect("rules");
    let third = response(&layer, Slow::default);
    assert_eq!((third.status().as_u16(), held(&live)), (200, 1));
    drop(second);
    assert_eq!(held(&live), 1);
    drop(third);
    assert_eq!(held(&live), 0);
}

/// Requests wait for a slot, and are served one after another when a body has ended. No time passes in between.
#[tokio::test(start_paused = true)]
async fn a_request_waits_for_the_end_of_a_body() {
    let rules = paused([Rule::in_flight("client", 1)]);
    let layer = RateLimitLayer::from(rules)
        .wait(Duration::from_secs(60), 1_000)
        .until_body_end();
    let service = layer.layer(Hello);
    let first = service.clone().oneshot(alice()).await.expect("a response");
    let start = Instant::now();
    let waiting: Vec<_> = (0..3)
        .map(|_| tokio::spawn(service.clone().oneshot(alice())))
        .collect();
    sleep(Duration::from_millis(300)).await;
    assert!(waiting.iter().all(|waiting| !waiting.is_finished()));
    drop(first);
    for (served, waiting) in waiting.into_iter().enumerate() {
        let response = waiting.await.expect("no panic").expect("a response");
        assert_eq!((served, response.status().as_u16()), (served, 200));
        drop(response);
    }
    assert_eq!(start.elapsed(), Duration::from_millis(300));
    // The deadline of a request passes while the slot is held.
    let _held = service.clone().oneshot(alice()).await.expect("a response");
    let late = service.clone().oneshot(alice()).await.expect("a response");
    assert_eq!((late.status().as_u16(), start.elapsed().as_secs()), (429, 60));
    assert_eq!(header(&late, "retry-after"), None);
}

/// A request that is dropped while it waits holds no slot, and the next one is served.
#[tokio::test(start_paused = true)]
async fn a_request_that_is_dropped_while_it_waits_holds_nothing() {
    let rules = paused([Rule::in_flight("client", 1)]);
    let layer = RateLimitLayer::from(rules)
        .wait(Duration::from_secs(60), 1_000)
        .until_body_end();
    let service = layer.layer(Hello);
    for polls in 0..3 {
        let first = service.clone().oneshot(alice()).await.expect("a response");
        let mut waiting = Box::pin(service.clone().oneshot(alice()));
        for _ in 0..polls {
            let is_pending =
                core::future::poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx).is_pending())).await;
            assert!(is_pending);
        }
        if polls == 2 {
            // The slot is free, and the waiter was woken, when it is dropped.
            drop(first);
            drop(waiting);
        } else {
            drop(waiting);
            drop(first);
        }
        let next = service.clone().oneshot(alice()).await.expect("a response");
        assert_eq!(next.status(), 200, "{polls}");
    }
}

/// A reload adds the rule while requests wait for a quota. The rules in force decide whether a request holds a slot.
#[tokio::test(start_paused = true)]
async fn requests_that_wait_hold_slots_of_a_rule_that_was_added() {
    let quota = || rule("all", "1/s");
    let rules = paused([quota()]);
    let live = Arc::new(LiveRules::new(rules));
    let layer = RateLimitLayer::new(Arc::clone(&live))
        .wait(Duration::from_secs(600), 1_000)
        .until_body_end();
    let service = layer.layer(Hello);
    let first = service.clone().oneshot(alice()).await.expect("a response");
    let waiting: Vec<_> = (0..4)
        .map(|_| tokio::spawn(service.clone().oneshot(alice())))
        .collect();
    sleep(Duration::from_millis(1)).await;
    live.store(&set([quota()]).rule(Rule::in_flight("slots", 1)))
        .expect("rules");
    layer.recheck();
    sleep(Duration::from_secs(60)).await;
    // The first request was admitted by the old rules. The next one holds the slot, and the others wait for it.
    assert_eq!(waiting.iter().filter(|waiting| waiting.is_finished()).count(), 1);
    let (head, ()) = alice().into_parts();
    let held = || {
        live.load()
            .peek(&head)
            .find(|peek| peek.rule() == "slots")
            .map(|peek| peek.spent())
    };
    assert_eq!(held(), Some(1));
    for served in waiting {
        let response = served.await.expect("no panic").expect("a response");
        assert_eq!((response.status().as_u16(), held()), (200, Some(1)));
        drop(response);
    }
    drop(first);
    assert_eq!(held(), Some(0));
}

/// The end of a request wakes the waiters of its own states. Others read no key.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_body_wakes_the_waiters_of_its_key_only() {
    let reads = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&reads);
    let user = Key::new("user", move |head: &Parts, key| {
        counted.fetch_add(1, Ordering::Relaxed);
        core::hash::Hash::hash(&head.headers.get("user"), key);
    });
    let rules = paused([Rule::in_flight("slots", 1).by(&user)]);
    let layer = RateLimitLayer::from(rules)
        .wait(Duration::from_secs(60), 1_000)
        .headers(QuotaHeaders::Off)
        .until_body_end();
    let service = layer.layer(Hello);
    let of = |user: usize| with("user", &user.to_string(), alice());
    let mut bodies = Vec::new();
    let mut waiting = Vec::new();
    for user in 0..100 {
        bodies.push(service.clone().oneshot(of(user)).await.expect("a response"));
        waiting.push(tokio::spawn(service.clone().oneshot(of(user))));
    }
    sleep(Duration::from_millis(1)).await;
    let before = reads.load(Ordering::Relaxed);
    bodies.pop();
    let last = waiting.pop().expect("a waiter");
    assert_eq!(last.await.expect("no panic").expect("a response").status(), 200);
    let after = reads.load(Ordering::Relaxed) - before;
    assert!(after < 20, "{after} keys were read");
    assert!(waiting.iter().all(|waiting| !waiting.is_finished()));
}
