//! Requests that wait, with tokio's paused clock.

use super::*;

type Paused = LiveRules<Parts, TokioClock>;
type Waiting = RateLimitLayer<Paused>;

/// A layer with tokio's clock, which reads one hour.
async fn layer_of(rules: impl IntoIterator<Item = Rule<Parts>>) -> Waiting {
    let clock = TokioClock::new();
    advance(secs(3600)).await;
    let rules = set(rules).build_with(clock, [1, 2, 3, 4]).expect("rules");
    RateLimitLayer::from(rules)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Milliseconds until the response, and its status.
async fn response<S>(service: S, request: Request<()>) -> (u128, u16)
where
    S: Service<Request<()>, Response = Response<Body>, Error = Infallible>,
{
    let start = Instant::now();
    let Ok(response) = service.oneshot(request).await;
    (start.elapsed().as_millis(), response.status().as_u16())
}

fn hello(layer: &Waiting) -> RateLimitService<Hello, Paused> {
    layer.layer(Hello)
}

#[tokio::test(start_paused = true)]
async fn a_request_that_would_wait_too_long_is_rejected_at_once() {
    let layer = layer_of([rule("all", "1/s")]).await.wait(secs(1), 1_000);
    assert_eq!(response(hello(&layer), Request::new(())).await, (0, 200));
    let Ok(rejected) = hello(&layer).oneshot(Request::new(())).await;
    assert_eq!(rejected.status(), 429);
    // The wait is 1.2 s.
    assert_eq!(header(&rejected, "retry-after"), Some("2"));
    assert_eq!(header(&rejected, "ratelimit"), Some("\"all\";r=0;t=2"));
    let body = problem(rejected);
    assert_eq!(body["violated-policies"], serde_json::json!(["all"]));
    assert_eq!(response(hello(&layer), Request::new(())).await, (0, 429));
}

#[tokio::test(start_paused = true)]
async fn max_waiting_bounds_the_queue() {
    let layer = layer_of([rule("all", "1/s").cells(5)]).await.wait(secs(60), 2);
    assert_eq!(response(hello(&layer), Request::new(())).await, (0, 200));
    let waiting = [0, 1].map(|_| tokio::spawn(response(hello(&layer), Request::new(()))));
    sleep(Duration::from_millis(1)).await;
    let Ok(rejected) = hello(&layer).oneshot(Request::new(())).await;
    assert_eq!(rejected.status(), 429);
    assert_eq!(header(&rejected, "retry-after"), Some("4"));
    for waiting in waiting {
        assert_eq!(waiting.await.expect("no panic").1, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_of_a_full_queue_depends_on_the_cost() {
    let cost = ringgate::rules::Cost::new("cost", |request: &Parts| {
        if request.headers.contains_key("big") {
            10
        } else {
            1
        }
    });
    let all = rule("all", "10/10s")
        .algorithm(ringgate::rules::RuleAlgorithm::Gcra)
        .cost(&cost);
    let layer = layer_of([all]).await.wait(secs(60), 0);
    for _ in 0..3 {
        assert_eq!(response(hello(&layer), Request::new(())).await.1, 200);
    }
    let big = || with("big", "yes", Request::new(()));
    let Ok(rejected) = hello(&layer).oneshot(big()).await;
    assert_eq!(header(&rejected, "retry-after"), Some("3"));
    sleep(secs(3)).await;
    assert_eq!(response(hello(&layer), big()).await.1, 200);
}

/// Several requests can get the permits of an even ring sooner than one request does, so the estimate of the queue is too early.
#[tokio::test(start_paused = true)]
async fn retry_after_of_a_late_request_is_that_of_the_rules() {
    let cost = ringgate::rules::Cost::new(
        "cost",
        |request: &Parts| {
            if request.headers.contains_key("big") { 3 } else { 1 }
        },
    );
    // A cell of ten seconds admits three permits.
    let all = rule("all", "30/100s")
        .algorithm(ringgate::rules::RuleAlgorithm::Even)
        .cells(10)
        .cost(&cost);
    let layer = layer_of([all]).await.wait(Duration::ZERO, 1_000);
    assert_eq!(response(hello(&layer), Request::new(())).await.1, 200);
    let big = || with("big", "yes", Request::new(()));
    let Ok(rejected) = hello(&layer).oneshot(big()).await;
    assert_eq!(header(&rejected, "retry-after"), Some("10"));
    sleep(secs(10)).await;
    assert_eq!(response(hello(&layer), big()).await.1, 200);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_never_admitted_is_rejected_at_once() {
    let key = HttpKey::path();
    let user = HttpKey::header(HeaderName::from_static("x-api-key")).on_missing(OnMissingKey::Deny);
    let layer = layer_of([
        rule("path", "9/s").by(&key).deny("/never"),
        rule("user", "9/s").by(&user),
    ])
    .await
    .wait(secs(60), 1_000);
    let mut request = Request::new(());
    assert_eq!(response(hello(&layer), request.clone()).await, (0, 400));
    request
        .headers_mut()
        .insert("x-api-key", HeaderValue::from_static("alice"));
    assert_eq!(response(hello(&layer), request.clone()).await, (0, 200));
    *request.uri_mut() = "/never".parse().expect("a path");
    let Ok(rejected) = hello(&layer).oneshot(request).await;
    assert_eq!(rejected.status(), 429);
    assert_eq!(header(&rejected, "retry-after"), None);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_request_is_charged_nothing() {
    let layer = layer_of([rule("all", "1/s").cells(5)])
        .await
        .wait(secs(60), 1_000);
    assert_eq!(response(hello(&layer), Request::new(())).await.1, 200);
    let gone = tokio::spawn(response(hello(&layer), Request::new(())));
    let stays = tokio::spawn(response(hello(&layer), Request::new(())));
    sleep(Duration::from_millis(1)).await;
    assert_eq!(layer.waiting(), 2);
    gone.abort();
    assert!(gone.await.expect_err("it was aborted").is_cancelled());
    assert_eq!(layer.waiting(), 1);
    // It waits once, not twice.
    let (time, status) = stays.await.expect("no panic");
    assert_eq!((status, layer.waiting()), (200, 0));
    assert!((1_100..=1_300).contains(&time), "{time}");
}

#[tokio::test(start_paused = true)]
async fn the_service_that_was_ready_is_called_after_the_wait() {
    let strict = Strict::default();
    let layer = layer_of([rule("all", "1/s")]).await.wait(secs(60), 1_000);
    let mut service = layer.layer(strict);
    for _ in 0..5 {
        let Ok(response) = service.ready().await.expect("ready").call(Request::new(())).await;
        assert_eq!(response.status(), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn conditional_charges_wait_too() {
    let layer = layer_of([rule("failures", "1/s")]).await;
    let layer = layer
        .charge_if(|response| response.status != 200)
        .wait(secs(60), 1_000);
    for _ in 0..3 {
        assert_eq!(response(hello(&layer), Request::new(())).await, (0, 200));
    }
    let failing = tower::service_fn(|_: Request<()>| {
        let mut response = Response::new(Body::default());
        *response.status_mut() = http::StatusCode::UNAUTHORIZED;
        core::future::ready(Ok::<_, Infallible>(response))
    });
    assert_eq!(response(layer.layer(failing), Request::new(())).await, (0, 401));
    let (time, status) = response(hello(&layer), Request::new(())).await;
    assert_eq!(status, 200);
    assert!(time >= 1_000, "{time}");
}

#[tokio::test(start_paused = true)]
async fn a_refund_admits_a_waiting_request_at_once() {
    let rule = rule("failures", "1/h").algorithm(ringgate::rules::RuleAlgorithm::Fixed);
    let layer = layer_of([rule]).await;
    let layer = layer
        .charge_if(|response| response.status != 200)
        .wait(secs(7200), 1_000);
    let slow = tower::service_fn(async |_: Request<()>| {
        sleep(secs(5)).await;
        Ok::<_, Infallible>(Response::new(Body::default()))
    });
    let first = tokio::spawn(response(layer.layer(slow), Request::new(())));
    sleep(secs(1)).await;
    let second = response(hello(&layer), Request::new(())).await;
    assert_eq!(second, (4_000, 200));
    assert_eq!(first.await.expect("no panic").1, 200);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_does_not_wait_allocates_nothing() {
    let layer = layer_of([rule("all", "9/s").by(&HttpKey::peer())]).await;
    let layer = layer
        .headers(QuotaHeaders::Off)
        .decision_extension(false)
        .wait(secs(60), 1_000);
    let mut service = hello(&layer);
    send(&mut service, from("192.0.2.1"));
    let request = from("192.0.2.1");
    let counted = allocation_counter::measure(|| {
        assert_eq!(send(&mut service, request).status(), 200);
    });
    assert_eq!(counted.count_total, 0);
}
