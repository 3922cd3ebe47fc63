//! The contract of `tower::Service`, skipped requests and the decision extension.

use super::*;
use ringgate::keyed::OnFull;

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
    let found = now(service.call(Request::new(()))).expect_err("an error");
    assert_eq!(found, "broken");
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
        let request = Request::builder().method(method).uri(path).body(());
        let request = request.expect("a request");
        headers
            .iter()
            .fold(request, |request, (name, value)| with(name, value, request))
    };
    let preflight = [
        ("origin", "https://example.com"),
        ("access-control-request-method", "PUT"),
    ];
    for _ in 0..3 {
        for (method, path, headers) in [
            ("GET", "/health", &[][..]),
            ("GET", "/health?deep=1", &[]),
            ("OPTIONS", "/", &preflight),
            ("GET", "/", &[("x-internal", "1")]),
        ] {
            let response = send(&mut service, request(method, path, headers));
            assert_eq!(response.status(), 200);
            assert!(response.headers().is_empty());
        }
    }
    assert_eq!(send(&mut service, get("/")).status(), 200);
    for (method, path, headers) in [
        ("GET", "/health/", &[][..]),
        ("GET", "/Health", &[]),
        ("OPTIONS", "/", &preflight[..1]),
        ("OPTIONS", "/", &preflight[1..]),
        ("GET", "/", &preflight),
    ] {
        assert_eq!(send(&mut service, request(method, path, headers)).status(), 429);
    }
    // By default no request is skipped.
    let mut service = RateLimitLayer::new(live).layer(Hello);
    assert_eq!(send(&mut service, get("/health")).status(), 429);
    let found = send(&mut service, request("OPTIONS", "/", &preflight)).status();
    assert_eq!(found, 429);
}

#[test]
fn the_decision_is_in_the_extensions() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let inner = tower::service_fn(move |request: Request<()>| {
        let decision = request.extensions().get::<Decision>().copied();
        noted.lock().expect("no panic").push(decision);
        core::future::ready(Ok::<_, Infallible>(Response::new(Body::default())))
    });
    let (live, _) = live([rule("all", "2/min").by(&HttpKey::peer()).allow("192.0.2.9")]);
    let layer = RateLimitLayer::new(live).skip_path("/health");
    let mut service = layer.clone().layer(inner.clone());
    let mut health = alice();
    *health.uri_mut() = "/health".parse().expect("a path");
    for request in [alice(), from("192.0.2.9"), health] {
        send(&mut service, request);
    }
    send(&mut layer.decision_extension(false).layer(inner), alice());
    let rejected = send(&mut service, alice());
    assert_eq!(rejected.extensions().get(), Some(&Decision::Rejected));
    let expected = [Some(Decision::Admitted), Some(Decision::NotLimited), None, None];
    assert_eq!(*seen.lock().expect("no panic"), expected);
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
    assert!(poll_once(&mut future).is_pending());
    drop(future);
    assert!(dropped.load(Ordering::Relaxed));
    assert_eq!(sent(&mut RateLimitLayer::new(live).layer(Hello), 1), [429]);
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
    assert!(poll_once(&mut rejected).is_ready());
    let _ = poll_once(&mut rejected);
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
