//! The client's layer: requests wait for the limiter, and for the times that the server states.

use core::error::Error;

use super::*;
use ringgate::TimestampRing;
use ringgate::http::ClientRateLimitService;
use ringgate::wait::WaitError;

type Limiter = Fair<RateLimiter<TimestampRing, TokioClock>>;

fn limiter(text: &str) -> Arc<Limiter> {
    let ring = TimestampRing::new(quota(text)).expect("a ring");
    Arc::new(Fair::new(RateLimiter::with_clock(ring, TokioClock::new())))
}

fn spent(limiter: &Limiter) -> u64 {
    limiter.limiter().peek().spent()
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// An answer of a server: the time that it takes, its status, and a header.
type Answer = (Duration, u16, &'static str, &'static str);

const OK: Answer = (Duration::ZERO, 200, "server", "any");

/// Gives these answers in turn, and `OK` after them.
#[derive(Clone)]
struct Server {
    answers: Arc<[Answer]>,
    calls: Arc<AtomicUsize>,
}

impl Server {
    fn new(answers: impl Into<Arc<[Answer]>>) -> Self {
        let (answers, calls) = (answers.into(), Arc::default());
        Self { answers, calls }
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

impl Service<Request<()>> for Server {
    type Response = Response<&'static str>;
    type Error = Infallible;
    type Future = core::pin::Pin<Box<dyn Future<Output = Result<Response<&'static str>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let (time, status, name, value) = self.answers.get(call).copied().unwrap_or(OK);
        Box::pin(async move {
            sleep(time).await;
            let response = Response::builder().status(status).header(name, value);
            Ok(response.body("body").expect("a response"))
        })
    }
}

type Client = ClientRateLimitService<Server, Arc<Limiter>>;

fn client(limiter: &Arc<Limiter>, server: &Server) -> Client {
    ClientRateLimitLayer::new(Arc::clone(limiter)).layer(server.clone())
}

/// The time since `start` at which the response has arrived.
fn sent(client: &Client, start: Instant) -> tokio::task::JoinHandle<Duration> {
    let client = client.clone();
    tokio::spawn(async move {
        client.oneshot(Request::new(())).await.expect("a response");
        start.elapsed()
    })
}

/// Lets every other task run until it waits.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_pauses_all_callers_of_the_limiter() {
    let malformed = "\"a\";r=0;t=7,";
    let cases = [
        ((429, "retry-after", "7"), 7),
        ((503, "retry-after", "7"), 7),
        ((429, "retry-after", "99999999999999999999"), 24 * 3600),
        ((429, "ratelimit", "\"a\";r=0;t=7"), 7),
        ((200, "ratelimit", "\"a\";r=0;t=7"), 7),
        ((404, "ratelimit", "\"a\";r=9;t=1, \"b\";r=0;t=7"), 7),
        ((200, "ratelimit", "\"a\";r=1;t=7"), 0),
        ((200, "ratelimit", malformed), 0),
        ((200, "retry-after", "7"), 0),
        ((302, "retry-after", "7"), 0),
        ((429, "retry-after", "0"), 0),
        ((429, "retry-after", "soon"), 60),
        ((429, "retry-after", "1.5"), 2),
        ((429, "retry-after", "3, 7"), 7),
        ((503, "ratelimit", "\"a\";r=0;t=1.5"), 2),
        ((429, "ratelimit", malformed), 60),
        ((429, "x-ratelimit-reset", "1"), 60),
        ((429, "server", "any"), 0),
        ((503, "server", "any"), 0),
    ];
    for ((status, name, value), pause) in cases {
        let limiter = limiter("1000/s");
        let server = Server::new([(Duration::ZERO, status, name, value)]);
        let layer = ClientRateLimitLayer::new(Arc::clone(&limiter));
        let start = Instant::now();
        let first = layer.layer(server.clone()).oneshot(Request::new(())).await;
        let first = first.expect("a response");
        // The response is returned as it is, and the request is not repeated.
        assert_eq!((first.status().as_u16(), *first.body()), (status, "body"));
        assert_eq!(first.headers()[name], value);
        assert_eq!((server.calls(), start.elapsed()), (1, Duration::ZERO), "{value}");
        let second = layer
            .clone()
            .layer(server.clone())
            .oneshot(Request::new(()))
            .await;
        assert_eq!(second.expect("a response").status(), StatusCode::OK);
        assert_eq!(start.elapsed(), secs(pause), "{status} {name}: {value}");
        assert!(start.elapsed() <= Duration::from_secs(24 * 3600));
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_delays_the_requests_that_wait() {
    let limiter = limiter("1/s");
    let server = Server::new([(Duration::from_millis(500), 429, "retry-after", "5")]);
    let client = client(&limiter, &server);
    let start = Instant::now();
    let mut requests = Vec::new();
    for _ in 0..3 {
        requests.push(sent(&client, start));
        settle().await;
    }
    assert_eq!(limiter.waiting(), 2);
    let mut times = Vec::new();
    for request in requests {
        times.push(request.await.expect("no panic").as_millis());
    }
    // In order of arrival, and then at the rate of the limiter.
    assert_eq!(times, [500, 5_500, 6_500]);
}

#[tokio::test(start_paused = true)]
async fn an_older_response_does_not_end_a_pause_early() {
    for older in [
        (secs(3), 429, "retry-after", "1"),
        (secs(3), 200, "ratelimit", "\"a\";r=0;t=1"),
        (secs(3), 200, "ratelimit", "\"a\";r=50;t=1"),
        (secs(3), 503, "retry-after", "0"),
    ] {
        let limiter = limiter("1000/s");
        let server = Server::new([older, (secs(1), 429, "retry-after", "10")]);
        let client = client(&limiter, &server);
        let start = Instant::now();
        let first = sent(&client, start);
        settle().await;
        let second = sent(&client, start);
        assert_eq!(second.await.expect("no panic"), secs(1));
        assert_eq!(first.await.expect("no panic"), secs(3));
        assert_eq!(sent(&client, start).await.expect("no panic"), secs(11));
    }
}

#[tokio::test(start_paused = true)]
async fn resume_ends_a_pause() {
    let limiter = limiter("1000/s");
    let server = Server::new([(Duration::ZERO, 429, "retry-after", "3600")]);
    let client = client(&limiter, &server);
    let start = Instant::now();
    sent(&client, start).await.expect("no panic");
    let waiting = sent(&client, start);
    sleep(secs(9)).await;
    limiter.resume();
    assert_eq!(waiting.await.expect("no panic"), secs(9));
}

fn wait_error(error: &(dyn Error + 'static)) -> WaitError {
    *error.downcast_ref().expect("a WaitError")
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_wait_fails_and_charges_nothing() {
    let limiter = limiter("1000/s");
    let server = Server::new([(Duration::ZERO, 429, "retry-after", "60")]);
    let layer = ClientRateLimitLayer::new(Arc::clone(&limiter)).max_wait(secs(59));
    let start = Instant::now();
    let client = layer.layer(server.clone());
    client
        .clone()
        .oneshot(Request::new(()))
        .await
        .expect("a response");
    let error = client
        .clone()
        .oneshot(Request::new(()))
        .await
        .expect_err("too late");
    let (needed, allowed) = (secs(60), secs(59));
    assert_eq!(wait_error(&*error), WaitError::TooLate { needed, allowed });
    assert_eq!(
        (server.calls(), spent(&limiter), start.elapsed()),
        (1, 1, Duration::ZERO)
    );
    sleep(secs(1)).await;
    client.oneshot(Request::new(())).await.expect("a response");
    assert_eq!(start.elapsed(), secs(60));
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "polled after completion")]
async fn a_future_that_has_failed_panics_if_it_is_polled() {
    let limiter = limiter("1/s");
    let mut client = ClientRateLimitLayer::new(Arc::clone(&limiter))
        .max_wait(Duration::ZERO)
        .layer(Server::new([OK]));
    client.call(Request::new(())).await.expect("a response");
    let mut late = Box::pin(client.call(Request::new(())));
    assert!(matches!(poll_once(&mut late), Poll::Ready(Err(_))));
    let _ = poll_once(&mut late);
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_inner_service_is_returned() {
    let limiter = limiter("1000/s");
    let failing = tower::service_fn(|_: Request<()>| async { Err::<Response<()>, _>("connection refused") });
    let client = ClientRateLimitLayer::new(Arc::clone(&limiter)).layer(failing);
    let error = client
        .oneshot(Request::new(()))
        .await
        .expect_err("the inner error");
    assert_eq!(error.to_string(), "connection refused");
    // The server may have counted the request.
    assert_eq!(spent(&limiter), 1);
}

#[tokio::test(start_paused = true)]
async fn the_inner_service_that_was_ready_is_called() {
    let limiter = limiter("1/s");
    let mut client = ClientRateLimitLayer::new(Arc::clone(&limiter)).layer(Strict::default());
    for _ in 0..3 {
        // The clone has its own readiness.
        drop(client.clone());
        client.ready().await.expect("ready");
        client.call(Request::new(())).await.expect("a response");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_does_not_wait_allocates_nothing() {
    let limiter = limiter("1000/s");
    let four = ["a", "b", "c", "d"]
        .map(|name| format!("\"{name}\";r=9;t=1"))
        .join(", ");
    let policies = four.replace("r=9;t=1", "q=9;w=1");
    let mut response = Response::builder()
        .header("ratelimit", four)
        .header("ratelimit-policy", policies)
        .header("retry-after", "Fri, 06 Nov 2026 08:00:30 GMT")
        .body(())
        .ok();
    let server = tower::service_fn(|response: Request<Response<()>>| {
        core::future::ready(Ok::<_, Infallible>(response.into_body()))
    });
    let mut client = ClientRateLimitLayer::new(limiter).layer(server);
    let counted = allocation_counter::measure(|| {
        let request = Request::new(response.take().expect("a response"));
        response = now(client.call(request)).ok();
    });
    assert!(response.is_some());
    assert_eq!(counted.count_total, 0);
}

/// A future is dropped before its first poll, while it waits, during the call, and after the response.
#[tokio::test(start_paused = true)]
async fn a_dropped_request_charges_nothing_before_the_call_and_one_permit_after_it() {
    let limiter = limiter("2/10s");
    let slow = (secs(1), 429, "retry-after", "3600");
    let server = Server::new([slow, OK, OK]);
    let mut client = client(&limiter, &server);
    let start = Instant::now();

    drop(client.call(Request::new(())));
    assert_eq!((spent(&limiter), server.calls()), (0, 0), "never polled");

    let mut called = Box::pin(client.call(Request::new(())));
    assert!(poll_once(&mut called).is_pending());
    assert_eq!((spent(&limiter), server.calls()), (1, 1), "during the call");
    drop(called);
    // Its response is not read, so nothing is paused.
    sleep(secs(2)).await;
    assert_eq!((spent(&limiter), limiter.limiter().peek().remaining()), (1, 1));

    client.call(Request::new(())).await.expect("a response");
    assert_eq!((spent(&limiter), server.calls()), (2, 2), "after the response");

    let mut waits = Box::pin(client.call(Request::new(())));
    assert!(poll_once(&mut waits).is_pending());
    let behind = sent(&client, start);
    settle().await;
    assert_eq!(limiter.waiting(), 2);
    drop(waits);
    assert_eq!((spent(&limiter), server.calls()), (2, 2), "while it waits");
    // The next one has its turn, when the first permit is ten seconds old.
    assert_eq!(behind.await.expect("no panic"), secs(10));
    assert_eq!((limiter.waiting(), server.calls()), (0, 3));
}
