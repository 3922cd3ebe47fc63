//! Parts of a request that have several spellings: hosts, credentials, and paths under nested routers; and pairs of keys.

use super::*;
use axum::routing::get;

fn to(uri: &str, hosts: &[&str]) -> Request<()> {
    let request = Request::get(uri).body(()).expect("a request");
    hosts
        .iter()
        .fold(request, |request, host| with("host", host, request))
}

/// Whether the second of two requests has the key of the first.
fn same(key: &Key<Parts>, one: Request<()>, other: Request<()>) -> bool {
    match *statuses(key, [one, other]) {
        [200, 429] => true,
        [200, 200] => false,
        ref statuses => panic!("{statuses:?}"),
    }
}

#[test]
fn a_host_has_one_key() {
    let key = HttpKey::host();
    let of = |host: &str| to("/", &[host]);
    for (other, expected) in [
        (of("a.example.com"), true),
        (of("A.Example.COM"), true),
        (of("a.example.com:80"), true),
        (of("a.example.com:443"), true),
        (of("a.example.com:0080"), true),
        (of("a.example.com:"), true),
        (of("a.example.com."), true),
        (of("A.EXAMPLE.com.:443"), true),
        (to("https://a.example.com/x?y", &[]), true),
        (to("https://user@A.example.com:443/", &[]), true),
        // The authority of the URI precedes the header.
        (to("https://a.example.com/", &["b.example.com"]), true),
        (to("/", &["a.example.com", "a.example.com:80"]), true),
        (of("b.example.com"), false),
        (of("a.example.com:8080"), false),
        (of("example.com"), false),
        // These have no key, and share one budget.
        (of(""), false),
        (of("a.example.com:http"), false),
        (of("a.example.com:99999"), false),
        (to("/", &["a.example.com", "b.example.com"]), false),
    ] {
        let shown = format!("{:?} {:?}", other.uri(), other.headers());
        assert_eq!(same(&key, of("a.example.com"), other), expected, "{shown}");
    }
    assert!(same(&key, of("[2001:DB8:0::1]"), of("[2001:db8::1]:443")));
    assert!(!same(&key, of("[2001:db8::1]"), of("[2001:db8::2]")));
    assert!(same(&key, of(""), to("/", &["a", "b"])), "no key");
    let mut service = layer([rule("h", "9/h").by(&key).deny("Evil.Example.com:443")]).layer(Hello);
    assert_eq!(send(&mut service, of("evil.example.com")).status(), 429);
    let wrong = set([rule("h", "9/h").by(&key).deny("evil.example.com/x")]);
    let error = wrong.build_with(ManualClock::new(), [1; 4]).expect_err("no host");
    assert!(error.to_string().contains("invalid host"), "{error}");
}

#[test]
fn a_credential_has_one_key() {
    let key = HttpKey::bearer();
    let of = |value: &str| with("authorization", value, Request::new(()));
    for (other, expected) in [
        ("Bearer abc", true),
        ("bearer abc", true),
        ("BEARER abc", true),
        ("Bearer   abc", true),
        ("Bearer\tabc", true),
        ("Bearer abc  ", true),
        ("  bEARER \t abc", true),
        ("Bearer ABC", false),
        ("Bearer abd", false),
        // These have no key.
        ("Basic abc", false),
        ("Bearer", false),
        ("Bearer ", false),
        ("Bearerabc", false),
        ("Bearer abc def", false),
        ("Bearer abc, Bearer def", false),
    ] {
        assert_eq!(same(&key, of("Bearer abc"), of(other)), expected, "{other:?}");
    }
    assert!(same(&key, of("Basic abc"), of("Bearer a b")), "no key");
    let key = key.on_missing(OnMissingKey::Deny);
    let mut service = layer([rule("b", "9/h").by(&key).deny("abc")]).layer(Hello);
    let statuses =
        ["bearer  abc", "Bearer abd", "Basic abc"].map(|value| send(&mut service, of(value)).status());
    assert_eq!(statuses.map(|status| status.as_u16()), [429, 200, 400]);
    let wrong = set([rule("b", "9/h").by(&key).deny("Bearer abc")]);
    assert!(wrong.build_with(ManualClock::new(), [1; 4]).is_err());
}

#[test]
fn entries_that_no_request_can_have_are_errors() {
    let api_key = HttpKey::header(HeaderName::from_static("x-api-key"));
    for (key, entries) in [
        (api_key.clone(), &["", " a", "a\nb"][..]),
        (HttpKey::cookie("session"), &["\"a\"", "a;b", ""]),
        (HttpKey::path(), &["items", "/items?page=1", ""]),
        (HttpKey::host(), &["https://example.com"]),
        (HttpKey::peer(), &["localhost"]),
        (HttpKey::extension::<u64>("user"), &["7"]),
    ] {
        let limited = || rule("r", "1/h").by(&key);
        for &entry in entries {
            for rule in [limited().allow(entry), limited().deny(entry)] {
                let built = set([rule]).build_with(ManualClock::new(), [1; 4]);
                assert!(built.is_err(), "{}: {entry:?}", key.name());
            }
        }
    }
    // A value beyond ASCII is compared as it was sent.
    let mut service = layer([rule("r", "9/h").by(&api_key).deny("müller")]).layer(Hello);
    let request = super::keys::bytes("x-api-key", "müller".as_bytes());
    assert_eq!(send(&mut service, request).status(), 429);
}

async fn hello() -> &'static str {
    "hello"
}

async fn gets(app: Router, paths: &[&str]) -> Vec<StatusCode> {
    let mut statuses = Vec::new();
    for path in paths {
        let request = Request::get(*path).body(axum::body::Body::empty());
        let response = app.clone().oneshot(request.expect("a request")).await;
        let Ok(response) = response;
        statuses.push(response.status());
    }
    statuses
}

fn by_path(quota: &str) -> RateLimitLayer<Live> {
    layer([rule("path", quota).by(&HttpKey::path())])
}

#[tokio::test]
async fn the_path_is_that_of_the_outermost_router() {
    let items = || Router::new().route("/items", get(hello));
    let layer = by_path("1/min");
    let app = Router::new()
        .nest("/a", items().layer(layer.clone()))
        .nest("/b", items().layer(layer.clone()))
        .nest("/c/{id}", Router::new().nest("/d", items().route_layer(layer)));
    let paths = "/a/items /b/items /a/items?x=1 /c/1/d/items /c/2/d/items /c/1/d/items";
    let paths: Vec<&str> = paths.split(' ').collect();
    let statuses = gets(app, &paths).await;
    assert_eq!(statuses, [200, 200, 429, 200, 200, 429]);
}

#[tokio::test]
async fn a_skipped_path_is_that_of_the_outermost_router() {
    let health = || Router::new().route("/health", get(hello));
    let layer = layer([rule("all", "1/min")]).skip_path("/a/health");
    let app = Router::new()
        .nest("/a", health().layer(layer.clone()))
        .nest("/b", health().layer(layer));
    let paths = ["/a/health", "/a/health", "/b/health", "/b/health", "/a/health"];
    assert_eq!(gets(app, &paths).await, [200, 200, 200, 429, 200]);
}

#[test]
fn keys_compose() {
    let api_key = || HttpKey::header(HeaderName::from_static("x-api-key"));
    let of = |peer: &str, key: &str| with("x-api-key", key, from(peer));
    let key = HttpKey::peer().and(&api_key());
    assert_eq!(key.name(), "peer and x-api-key");
    let requests = [
        of("192.0.2.1", "a"),
        of("192.0.2.1", "b"),
        of("192.0.2.2", "a"),
        of("::ffff:192.0.2.1", "a"),
        from("192.0.2.1"),
        from("192.0.2.2"),
        from("192.0.2.1"),
    ];
    assert_eq!(statuses(&key, requests), [200, 200, 200, 429, 200, 200, 429]);
    // A request without an address is refused, and the rule does not apply without an API key.
    let key = HttpKey::peer().and(&api_key().on_missing(OnMissingKey::Skip));
    let without_address = with("x-api-key", "a", Request::new(()));
    let requests = [from("192.0.2.1"), from("192.0.2.1"), without_address];
    assert_eq!(statuses(&key, requests), [200, 200, 500]);
    // Three keys.
    let key = api_key().and(&HttpKey::path()).and(&HttpKey::host());
    let requests = ["http://a/x", "http://a/x", "http://b/x", "http://a/y"].map(|uri| to(uri, &[]));
    assert_eq!(statuses(&key, requests), [200, 429, 200, 200]);
}
