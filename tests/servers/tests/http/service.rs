//! The contract of `tower::Service`, skipped requests and the decision extension.

use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Mutex;

use ringgate::Clock;
use ringgate::http::{Decision, HttpKey, QuotaHeaders};
use ringgate::keyed::OnFull;

use super::*;

/// Panics if it is called before it was ready. Clones are not ready.
#[derive(Debug, Default)]
pub(crate) struct Strict {
    ready: bool,
    /// Calls of all clones.
    calls: Arc<AtomicU64>,
}

impl Clone for Strict {
    fn clone(&self) -> Self {
        Self {
            ready: false,
            calls: Arc::clone(&self.calls),
        }
    }
}

impl Service<Request<()>> for Strict {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = core::future::Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        assert!(core::mem::take(&mut self.ready), "called without being ready");
        self.calls.fetch_add(1, Ordering::Relaxed);
        core::future::ready(Ok(Response::new(Full::from("hello"))))
    }
}

#[test]
fn the_inner_service_is_called_only_when_ready() {
    let strict = Strict::default();
    let calls = Arc::clone(&strict.calls);
    let mut service = layer([rule("all", "3/min")]).layer(strict);
    for _ in 0..5 {
        // A clone has its own readiness.
        drop(service.clone());
        send(&mut service, Request::new(()));
        let mut clone = service.clone();
        send(&mut clone, Request::new(()));
    }
    // It is not called for rejected requests.
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[test]
fn readiness_is_that_of_the_inner_service() {
    #[derive(Clone)]
    struct Never;
    impl Service<Request<()>> for Never {
        type Response = Response<Body>;
        type Error = &'static str;
        type Future = core::future::Ready<Result<Response<Body>, &'static str>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
            Poll::Ready(Err("broken"))
        }

        fn call(&mut self, _: Request<()>) -> Self::Future {
            core::future::ready(Err("broken"))
        }
    }
    let mut service = layer([rule("all", "3/min")]).layer(Never);
    let mut cx = Context::from_waker(Waker::noop());
    assert_eq!(service.poll_ready(&mut cx), Poll::Ready(Err("broken")));
    assert_eq!(
        now(service.call(Request::new(()))).expect_err("an error"),
        "broken"
    );
}

/// Other crates have state per connection, because each has a clone of the service.
#[test]
fn clones_share_one_budget() {
    let layer = layer([rule("all", "5/s")]);
    let service = layer.layer(Hello);
    let admitted = |mut service: ringgate::http::RateLimitService<Hello, Live>| {
        let responses = (0..10).map(|_| send(&mut service, Request::new(())));
        responses.filter(|response| response.status() == 200).count()
    };
    let all: usize = (0..300).map(|_| admitted(service.clone())).sum();
    assert_eq!(all, 5);
    // Clones of the layer share it too.
    assert_eq!(admitted(layer.clone().layer(Hello)), 0);
}

#[test]
fn skipped_paths_and_preflights_are_not_limited() {
    let (live, _) = live([rule("all", "1/h")]);
    let layer = RateLimitLayer::new(Arc::clone(&live))
        .skip_preflight()
        .skip_path("/health")
        .skip_if(|request| request.headers.contains_key("x-internal"));
    let mut service = layer.layer(Hello);
    let request = |method: &str, path: &str, headers: &[(&'static str, &str)]| {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .body(())
            .expect("a request");
        headers
            .iter()
            .fold(request, |request, (name, value)| with(name, value, request))
    };
    let preflight = [
        ("origin", "https://example.com"),
        ("access-control-request-method", "PUT"),
    ];
    for _ in 0..3 {
        for skipped in [
            request("GET", "/health", &[]),
            request("GET", "/health?deep=1", &[]),
            request("OPTIONS", "/", &preflight),
            request("GET", "/", &[("x-internal", "1")]),
        ] {
            let response = send(&mut service, skipped);
            assert_eq!(response.status(), 200);
            assert!(response.headers().is_empty());
        }
    }
    assert_eq!(send(&mut service, request("GET", "/", &[])).status(), 200);
    for judged in [
        request("GET", "/health/", &[]),
        request("GET", "/Health", &[]),
        request("OPTIONS", "/", &preflight[..1]),
        request("OPTIONS", "/", &preflight[1..]),
        request("GET", "/", &preflight),
    ] {
        assert_eq!(send(&mut service, judged).status(), 429);
    }
    // By default no request is skipped.
    let mut service = RateLimitLayer::new(live).layer(Hello);
    for judged in [
        request("GET", "/health", &[]),
        request("OPTIONS", "/", &preflight),
    ] {
        assert_eq!(send(&mut service, judged).status(), 429);
    }
}

#[test]
fn the_decision_is_in_the_extensions() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let inner = {
        let seen = Arc::clone(&seen);
        tower::service_fn(move |request: Request<()>| {
            let decision = request.extensions().get::<Decision>().copied();
            seen.lock().expect("no panic").push(decision);
            core::future::ready(Ok::<_, Infallible>(Response::new(Body::default())))
        })
    };
    let (live, clock) = live([rule("all", "2/min").by(&HttpKey::peer()).allow("192.0.2.9")]);
    let layer = RateLimitLayer::new(live).skip_path("/health");
    let mut service = layer.clone().layer(inner.clone());
    send(&mut service, from("192.0.2.1"));
    send(&mut service, from("192.0.2.9"));
    let mut health = from("192.0.2.1");
    *health.uri_mut() = "/health".parse().expect("a path");
    send(&mut service, health);
    send(
        &mut layer.decision_extension(false).layer(inner),
        from("192.0.2.1"),
    );
    let rejected = send(&mut service, from("192.0.2.1"));
    let decision = rejected.extensions().get::<Decision>().expect("a decision");
    assert!(!decision.is_admitted() && decision.is_limited());

    let seen = seen.lock().expect("no panic");
    let [Some(limited), Some(free), None, None] = seen[..] else {
        panic!("{seen:?}");
    };
    assert!(limited.is_admitted() && limited.is_limited());
    assert_eq!(limited.at(), clock.now());
    assert!(free.is_admitted() && !free.is_limited());
}

#[test]
fn on_rejected_is_called_for_each_rejection() {
    let rejections = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&rejections);
    let mut service = layer([rule("all", "1/min")])
        .on_rejected(move |rejected| recorded.lock().expect("no panic").push(rejected.to_string()))
        .layer(Hello);
    send(&mut service, Request::new(()));
    assert!(rejections.lock().expect("no panic").is_empty());
    send(&mut service, Request::new(()));
    let rejections = rejections.lock().expect("no panic");
    assert!(
        rejections.len() == 1 && rejections[0].contains("all"),
        "{rejections:?}"
    );
}

/// Never completes, and records its drop.
struct Forever(Arc<AtomicBool>);

impl Future for Forever {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Pending
    }
}

impl Drop for Forever {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_dropped_response_stays_charged() {
    let dropped = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&dropped);
    let (live, _) = live([rule("all", "1/min")]);
    let forever = tower::service_fn(move |_: Request<()>| Forever(Arc::clone(&seen)));
    let mut service = RateLimitLayer::new(Arc::clone(&live)).layer(forever);
    let mut future = Box::pin(service.call(Request::new(())));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(future.as_mut().poll(&mut cx).is_pending());
    drop(future);
    assert!(dropped.load(Ordering::Relaxed));
    assert_eq!(
        send(&mut RateLimitLayer::new(live).layer(Hello), Request::new(())).status(),
        429
    );
}

#[test]
fn the_rules_are_held_only_during_the_decision() {
    let (live, _) = live([rule("all", "9/min")]);
    let dropped = Arc::new(AtomicBool::new(false));
    let forever = tower::service_fn(move |_: Request<()>| Forever(Arc::clone(&dropped)));
    let layer = RateLimitLayer::new(Arc::clone(&live)).headers(QuotaHeaders::Both);
    let waiting = layer.layer(forever).call(Request::new(()));
    // A change of the window is pending while the old rules are referenced.
    let reloaded = live.store(&set([rule("all", "9/h")])).expect("rules");
    assert_eq!(reloaded, ringgate::rules::Reloaded::Done);
    drop(waiting);
}

#[test]
#[should_panic(expected = "polled after completion")]
fn polling_after_completion_panics() {
    let mut service = layer([rule("all", "1/min")]).layer(Hello);
    send(&mut service, Request::new(()));
    let mut rejected = Box::pin(service.call(Request::new(())));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(rejected.as_mut().poll(&mut cx).is_ready());
    let _ = rejected.as_mut().poll(&mut cx);
}

/// A rule with a key takes a short path, on which a decision for want of an entry must not be made twice.
#[test]
fn a_request_is_decided_once_whatever_the_headers_are() {
    for on_full in [OnFull::Share, OnFull::Deny, OnFull::Admit, OnFull::Forget] {
        // The smallest table has twelve entries.
        let small = || {
            let small = rule("small", "2/10s").by(&HttpKey::peer());
            live([small.capacity(1).on_full(on_full)]).0
        };
        let requests = || (0_u8..60).map(|number| from(&format!("192.0.2.{}", number % 40)));
        let checked = small();
        let statuses: Vec<u16> = requests()
            .map(|request| match checked.load().check(&request.into_parts().0) {
                Ok(_) => 200,
                Err(_) => 429,
            })
            .collect();
        for headers in [QuotaHeaders::Off, QuotaHeaders::Both] {
            let rules = small();
            let mut service = RateLimitLayer::new(Arc::clone(&rules))
                .headers(headers)
                .layer(Hello);
            let answers: Vec<u16> = requests()
                .map(|request| send(&mut service, request).status().as_u16())
                .collect();
            assert_eq!(answers, statuses, "{on_full:?}, {headers:?}");
            let counts = |rules: &Live| rules.load().counts().map(|(_, counts)| counts).next();
            assert_eq!(counts(&rules), counts(&checked), "{on_full:?}, {headers:?}");
        }
    }
}
