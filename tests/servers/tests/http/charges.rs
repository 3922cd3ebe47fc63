//! Charges that depend on the response or on the size of its body.

use super::*;
use http_body::Body as _;

/// Responds with the status in the path.
fn status_of_path(request: Request<()>) -> core::future::Ready<Result<Response<Body>, Infallible>> {
    let status: u16 = request.uri().path()[1..].parse().expect("a status");
    let mut response = Response::new(Body::default());
    *response.status_mut() = StatusCode::from_u16(status).expect("a status");
    core::future::ready(Ok(response))
}

fn remaining(live: &Live) -> Vec<(String, u64)> {
    let (request, ()) = get("/").into_parts();
    let rules = live.load();
    rules
        .peek(&request)
        .map(|peek| (peek.rule().to_owned(), peek.remaining()))
        .collect()
}

#[test]
fn only_failures_are_charged() {
    for algorithm in [RuleAlgorithm::Counter, RuleAlgorithm::Gcra, RuleAlgorithm::Fixed] {
        let (live, _) = live([rule("failures", "2/min").algorithm(algorithm)]);
        let layer = RateLimitLayer::new(Arc::clone(&live))
            .charge_if(|response| response.status == StatusCode::UNAUTHORIZED);
        let mut service = layer.layer(tower::service_fn(status_of_path));
        for _ in 0..10 {
            assert_eq!(send(&mut service, get("/200")).status(), 200);
        }
        assert_eq!(send(&mut service, get("/401")).status(), 401);
        assert_eq!(send(&mut service, get("/200")).status(), 200);
        assert_eq!(send(&mut service, get("/401")).status(), 401);
        for path in ["/200", "/401"] {
            assert_eq!(send(&mut service, get(path)).status(), 429, "{algorithm:?}");
        }
    }
}

/// The charge precedes the response, so concurrent attempts cannot exceed the limit.
#[test]
fn concurrent_attempts_do_not_exceed_the_limit() {
    let (live, _) = live([rule("failures", "2/min")]);
    let layer = RateLimitLayer::new(live).charge_if(|response| response.status == 401);
    let mut service = layer.layer(tower::service_fn(status_of_path));
    let attempts: Vec<_> = (0..10).map(|_| service.call(get("/401"))).collect();
    let statuses = attempts.into_iter().map(|attempt| {
        let Ok(response) = now(attempt);
        response.status()
    });
    assert_eq!(statuses.filter(|status| *status == 401).count(), 2);
}

#[test]
fn without_a_response_the_charge_stays() {
    let (live, _) = live([rule("failures", "5/min")]);
    let layer = RateLimitLayer::new(Arc::clone(&live)).charge_if(|_| false);
    let mut never = layer.layer(tower::service_fn(|_: Request<()>| {
        core::future::pending::<Result<Response<Body>, Infallible>>()
    }));
    drop(never.call(get("/200")));
    let mut broken = layer.layer(tower::service_fn(|_: Request<()>| {
        core::future::ready(Err::<Response<Body>, _>("broken"))
    }));
    assert!(now(broken.call(get("/200"))).is_err());
    assert_eq!(remaining(&live), [("failures".to_owned(), 3)]);
}

#[test]
fn a_refund_goes_to_the_reloaded_rules() {
    let (live, _) = live([rule("failures", "5/min")]);
    let layer = RateLimitLayer::new(Arc::clone(&live)).charge_if(|_| false);
    let mut service = layer.layer(tower::service_fn(status_of_path));
    let attempt = service.call(get("/200"));
    live.store(&set([rule("failures", "4/min")])).expect("rules");
    assert!(now(attempt).is_ok());
    assert_eq!(remaining(&live), [("failures".to_owned(), 4)]);
}

/// Body of these frames.
#[derive(Debug)]
struct Frames(VecDeque<Result<Frame<Bytes>, &'static str>>);

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        Poll::Ready(self.0.pop_front())
    }
}

impl From<String> for Frames {
    fn from(text: String) -> Self {
        Self([Ok(Frame::data(text.into()))].into())
    }
}

fn data(length: usize) -> Result<Frame<Bytes>, &'static str> {
    Ok(Frame::data(vec![b'x'; length].into()))
}

fn frames(frames: impl IntoIterator<Item = Result<Frame<Bytes>, &'static str>>) -> Frames {
    Frames(frames.into_iter().collect())
}

/// A thousand bytes a minute with an estimate of a hundred, and ten requests a minute.
fn volume() -> (Arc<Live>, RateLimitLayer<Live, Problem, Metered>) {
    let bytes = Cost::new("bytes", |_: &Parts| 100);
    let volume = rule("volume", "1000/min").cost(&bytes);
    let (live, _) = live([volume, rule("requests", "10/min")]);
    let layer = RateLimitLayer::new(Arc::clone(&live)).settle_body(&bytes);
    (live, layer)
}

fn left(volume: u64, requests: u64) -> Vec<(String, u64)> {
    vec![("volume".to_owned(), volume), ("requests".to_owned(), requests)]
}

/// Returns the response of a service with this body.
fn response(layer: &RateLimitLayer<Live, Problem, Metered>, body: Frames) -> Response<MeteredBody<Frames>> {
    let body = Arc::new(std::sync::Mutex::new(Some(body)));
    let service = tower::service_fn(move |_: Request<()>| {
        let body = body.lock().expect("no panic").take().expect("one request");
        core::future::ready(Ok::<_, Infallible>(Response::new(body)))
    });
    send(&mut layer.layer(service), get("/"))
}

fn next(body: &mut MeteredBody<Frames>) -> Option<Result<Frame<Bytes>, &'static str>> {
    match Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(frame) => frame,
        Poll::Pending => panic!("pending"),
    }
}

#[test]
fn a_body_is_settled_by_its_bytes_when_it_ends() {
    for (lengths, after) in [
        (vec![30, 12], 958),
        (vec![100], 900),
        (vec![300, 0, 50], 650),
        (vec![], 1000),
    ] {
        let (live, layer) = volume();
        let mut body = response(&layer, frames(lengths.iter().map(|&length| data(length)))).into_body();
        for _ in &lengths {
            assert_eq!(remaining(&live), left(900, 9));
            assert!(next(&mut body).is_some());
        }
        assert!(next(&mut body).is_none());
        // Settled before the drop.
        assert_eq!(remaining(&live), left(after, 9));
        drop(body);
        assert_eq!(remaining(&live), left(after, 9));
    }
}

#[test]
fn a_dropped_or_failed_body_is_settled_by_the_bytes_sent() {
    for second in [data(250), Err("broken")] {
        let (live, layer) = volume();
        let fails = second.is_err();
        let mut body = response(&layer, frames([data(250), second])).into_body();
        assert!(next(&mut body).is_some_and(|frame| frame.is_ok()));
        if fails {
            assert!(next(&mut body).is_some_and(|frame| frame.is_err()));
            assert_eq!(remaining(&live), left(750, 9));
        }
        drop(body);
        assert_eq!(remaining(&live), left(750, 9));
        drop(response(&layer, frames([data(250)])));
        assert_eq!(remaining(&live), left(750, 8));
    }
}

#[test]
fn without_a_response_zero_bytes_are_charged() {
    let (live, layer) = volume();
    let mut never = layer.layer(tower::service_fn(|_: Request<()>| {
        core::future::pending::<Result<Response<Frames>, Infallible>>()
    }));
    let future = never.call(get("/"));
    assert_eq!(remaining(&live), left(900, 9));
    drop(future);
    assert_eq!(remaining(&live), left(1000, 9));
}

#[test]
fn bytes_beyond_the_estimate_delay_later_requests() {
    let (live, layer) = volume();
    let mut body = response(&layer, frames([data(5000)])).into_body();
    while next(&mut body).is_some() {}
    assert_eq!(remaining(&live), left(0, 9));
    let rejected = response(&layer, frames([]));
    assert_eq!(rejected.status(), 429);
    // The body of the rejection is not charged.
    drop(rejected);
    assert_eq!(remaining(&live), left(0, 9));
}

#[test]
fn a_response_that_charge_if_refuses_refunds_everything() {
    let bytes = Cost::new("bytes", |_: &Parts| 100);
    let volume = rule("volume", "1000/min").cost(&bytes);
    let (live, _) = live([volume, rule("requests", "10/min")]);
    let layer = RateLimitLayer::new(Arc::clone(&live))
        .charge_if(|response| response.status != 304)
        .settle_body(&bytes);
    let service = tower::service_fn(status_of_path);
    drop(send(&mut layer.layer(service), get("/304")));
    assert_eq!(remaining(&live), left(1000, 10));
    drop(send(&mut layer.layer(service), get("/200")));
    assert_eq!(remaining(&live), left(1000, 9));
}

#[test]
fn a_metered_body_keeps_the_size_hint() {
    let (_, layer) = volume();
    let service = tower::service_fn(|_: Request<()>| {
        core::future::ready(Ok::<_, Infallible>(Response::new(Body::from("hello"))))
    });
    let body = send(&mut layer.layer(service), get("/")).into_body();
    assert_eq!(body.size_hint().exact(), Some(5));
    assert!(!body.is_end_stream());
}

#[test]
fn skipped_requests_are_not_metered() {
    let bytes = Cost::new("bytes", |_: &Parts| 100);
    let (live, _) = live([rule("volume", "1000/min").cost(&bytes).by(&HttpKey::path())]);
    let layer = RateLimitLayer::new(Arc::clone(&live))
        .skip_path("/200")
        .settle_body(&bytes);
    drop(send(
        &mut layer.layer(tower::service_fn(status_of_path)),
        get("/200"),
    ));
    assert_eq!(live.load().counts().next().expect("a rule").1.admitted, 0);
}
