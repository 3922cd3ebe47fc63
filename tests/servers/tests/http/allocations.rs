//! Allocations of an admitted request.

use super::*;

/// Counts the allocations of an admitted request, after the counters of the thread are allocated.
fn counted(layer: &RateLimitLayer<Live>, request: impl Fn() -> Request<()>) -> u64 {
    let mut service = layer.layer(Hello);
    assert_eq!(send(&mut service, request()).status(), 200);
    let request = request();
    let mut response = None;
    let counted = allocation_counter::measure(|| response = Some(send(&mut service, request)));
    assert_eq!(response.expect("a response").status(), 200);
    counted.count_total
}

#[test]
fn nothing_is_allocated_for_an_admitted_request() {
    let clients = ClientIp::peer().forwarded(["10.0.0.0/8"]).expect("networks");
    let user = HttpKey::header(HeaderName::from_static("x-api-key"));
    let (live, _) = live([
        rule("client", "100/min").by(&HttpKey::client(clients)),
        rule("user", "100/min").by(&user),
        rule("session", "100/min").by(&HttpKey::cookie("session")),
        rule("path", "100/min").by(&HttpKey::path()),
        rule("all", "100/min"),
    ]);
    let layer = RateLimitLayer::new(live)
        .headers(QuotaHeaders::Off)
        .skip_preflight()
        .skip_path("/health");
    let request = || {
        let request = with("x-api-key", "alice", from("10.0.0.1"));
        let request = with("cookie", "a=b; session=1", request);
        with("forwarded", "for=\"[2001:db8::1]:80\", for=10.0.0.2", request)
    };
    assert_eq!(counted(&layer.clone().decision_extension(false), request), 0);
    // The decision costs as much as any extension.
    let extension = allocation_counter::measure(|| {
        let mut request = from("10.0.0.1");
        request.extensions_mut().insert(1_u64);
    });
    let none = allocation_counter::measure(|| drop(from("10.0.0.1")));
    assert_eq!(counted(&layer, request), extension.count_total - none.count_total);
    assert!(size_of::<Decision>() <= 16);
}

/// One value, the header map of the response, and the box that keeps the values until there is a response. All responses share
/// the value of `RateLimit-Policy`.
#[test]
fn headers_allocate_one_value_and_one_box() {
    let (live, _) = live(["a", "b", "c", "d"].map(|name| rule(name, "100/min").by(&HttpKey::peer())));
    let layer = RateLimitLayer::new(live).decision_extension(false);
    let headers = allocation_counter::measure(|| {
        let mut response = Response::new(());
        let headers = response.headers_mut();
        let shared = HeaderValue::from_static("a");
        headers.append(HeaderName::from_static("ratelimit-policy"), shared);
        let value = HeaderValue::from_str("a").expect("a value");
        headers.append(HeaderName::from_static("ratelimit"), value);
    });
    assert_eq!(counted(&layer, || from("192.0.2.1")), headers.count_total + 1);
}

#[test]
fn nothing_is_allocated_with_the_default_clock() {
    let rules = set([rule("all", "1000000/s").by(&HttpKey::peer())]);
    let mut service = RateLimitLayer::from(rules.build().expect("rules"))
        .headers(QuotaHeaders::Off)
        .decision_extension(false)
        .layer(Hello);
    send(&mut service, from("192.0.2.1"));
    let requests: Vec<_> = (0..100).map(|_| from("192.0.2.1")).collect();
    let counted = allocation_counter::measure(|| {
        for request in requests {
            assert_eq!(send(&mut service, request).status(), 200);
        }
    });
    assert_eq!(counted.count_total, 0);
}
