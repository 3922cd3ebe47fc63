//! Keys by which requests are counted.

use super::*;

fn api_key() -> Key<Parts> {
    HttpKey::header(HeaderName::from_static("x-api-key"))
}

fn user(name: &str) -> Request<()> {
    with("x-api-key", name, Request::new(()))
}

fn cookie(value: &str) -> Request<()> {
    with("cookie", value, Request::new(()))
}

pub(crate) fn bytes(name: &'static str, bytes: &[u8]) -> Request<()> {
    let mut request = Request::new(());
    let value = http::HeaderValue::from_bytes(bytes).expect("a value");
    request.headers_mut().insert(name, value);
    request
}

fn extended<T: Clone + Send + Sync + 'static>(value: T) -> Request<()> {
    let mut request = Request::new(());
    request.extensions_mut().insert(value);
    request
}

#[test]
fn by_peer_each_address_has_its_own() {
    let requests = ["192.0.2.1", "192.0.2.1", "192.0.2.2", "::ffff:192.0.2.2"].map(from);
    assert_eq!(statuses(&HttpKey::peer(), requests), [200, 429, 200, 429]);
}

#[test]
fn by_peer_in_an_extension_of_the_server() {
    #[derive(Clone)]
    struct Info(core::net::SocketAddr);
    let info = |text: &str| extended(Info(text.parse().expect("an address")));
    let clients = ClientIp::peer().peer_from(|info: &Info| Some(info.0.ip()));
    let requests = ["192.0.2.1:1", "192.0.2.1:2", "192.0.2.2:1"].map(info);
    assert_eq!(statuses(&HttpKey::client(clients), requests), [200, 429, 200]);
}

#[test]
fn an_ipv6_client_is_a_prefix() {
    let requests = || ["2001:db8:0:1::1", "2001:db8:0:1:2::", "2001:db8:0:2::1"].map(from);
    assert_eq!(statuses(&HttpKey::peer(), requests()), [200, 429, 200]);
    let by = |bits| HttpKey::client(ClientIp::peer().prefix(bits).expect("a prefix"));
    assert_eq!(statuses(&by(48), requests()), [200, 429, 429]);
    assert_eq!(statuses(&by(128), requests()), [200, 200, 200]);
    let error = ClientIp::peer().prefix(129).expect_err("too many");
    assert_eq!(error.field, "prefix");
}

/// Values that are not text are keys, too.
#[test]
fn by_header() {
    let requests = ["alice", "alice", "bob", "Alice"].map(user);
    assert_eq!(statuses(&api_key(), requests), [200, 429, 200, 200]);
    let requests = [b"\xff", b"\xff", b"\xfe"].map(|value| bytes("x-api-key", value));
    assert_eq!(statuses(&api_key(), requests), [200, 429, 200]);
}

#[test]
fn by_cookie() {
    let requests = [
        cookie("session=1; theme=dark"),
        cookie("theme=light; session=1"),
        cookie("session=\"1\""),
        cookie("a=b;session=2;session=1"),
        cookie("session2=1; session=3"),
        with("cookie", "session=2", cookie("theme=dark")),
    ];
    let key = HttpKey::cookie("session");
    assert_eq!(statuses(&key, requests), [200, 429, 429, 200, 200, 429]);
}

#[test]
fn a_cookie_is_found_beside_invalid_utf8() {
    let key = HttpKey::cookie("session").on_missing(OnMissingKey::Skip);
    let requests = [(); 2].map(|()| bytes("cookie", b"a=\xff; session=1"));
    assert_eq!(statuses(&key, requests), [200, 429]);
}

#[test]
fn by_path_without_the_query() {
    let requests = ["/a?x=1", "/a?x=2", "/b"].map(get);
    assert_eq!(statuses(&HttpKey::path(), requests), [200, 429, 200]);
}

#[test]
fn by_extension() {
    let key = HttpKey::extension::<u64>("user");
    assert_eq!(statuses(&key, [1_u64, 1, 2].map(extended)), [200, 429, 200]);
}

#[test]
fn requests_without_the_key_share_one_budget() {
    let none = || Request::new(());
    let requests = || [none(), none(), user("alice"), user("")];
    // An empty value is no key.
    assert_eq!(statuses(&api_key(), requests()), [200, 429, 200, 429]);
    // The same holds for each source.
    for key in [
        HttpKey::peer().on_missing(OnMissingKey::Share),
        HttpKey::cookie("session"),
        HttpKey::extension::<u64>("user"),
        HttpKey::route(|route: &String| route),
    ] {
        assert_eq!(statuses(&key, [none(), none()]), [200, 429]);
    }
}

#[test]
fn requests_without_the_key_can_be_rejected_and_charge_no_rule() {
    let key = api_key().on_missing(OnMissingKey::Deny);
    let (live, _) = live([rule("all", "2/h"), rule("user", "1/h").by(&key)]);
    let mut service = RateLimitLayer::new(Arc::clone(&live)).layer(Hello);
    for _ in 0..5 {
        let rejected = send(&mut service, Request::new(()));
        assert_eq!(rejected.status(), 400);
        assert_eq!(header(&rejected, "retry-after"), None);
        let body = problem(rejected);
        assert_eq!(body["status"], 400);
        assert_eq!(body["type"], "about:blank");
        assert_eq!(body["violated-policies"], serde_json::json!(["user"]));
    }
    assert_eq!(send(&mut service, user("alice")).status(), 200);
    assert_eq!(send(&mut service, user("bob")).status(), 200);
    assert_eq!(send(&mut service, user("carol")).status(), 429);

    let layer = RateLimitLayer::new(live).status(RejectionReason::NoKey, StatusCode::UNAUTHORIZED);
    assert_eq!(send(&mut layer.layer(Hello), Request::new(())).status(), 401);
}

#[test]
fn lists_of_a_file_match_addresses_and_texts() {
    use ringgate::rules::{Extractors, FileFormat};
    let extractors = Extractors::new().key(HttpKey::peer());
    let extractors = extractors.and_then(|it| it.key(api_key().on_missing(OnMissingKey::Deny)));
    let extractors = extractors.expect("unique names");
    let rules = |text: &str| RuleSetBuilder::from_text(text, FileFormat::Yaml, &extractors);
    let text = "
rules:
  - { name: client, quota: 1/h, key: peer, allow: ['2001:db8:0:1::/64', 10.0.0.0/8, '2001:db8::1'], deny: [192.0.2.9] }
  - { name: user, quota: 1000/h, key: x-api-key, deny: [mallory] }
";
    let built = rules(text)
        .expect("rules")
        .build_with(ManualClock::new(), [1, 2, 3, 4]);
    let mut service = RateLimitLayer::from(built.expect("rules")).layer(Hello);
    for (peer, user, status) in [
        ("192.0.2.1", "alice", 200),
        ("192.0.2.1", "alice", 429),
        // Each address in the allowed prefix.
        ("2001:db8:0:1::5", "alice", 200),
        ("2001:db8:0:1::6", "alice", 200),
        ("2001:db8:0:1::6", "mallory", 429),
        ("10.1.2.3", "alice", 200),
        ("10.1.2.3", "alice", 200),
        // Only an address is allowed, and not the other addresses of its client.
        ("2001:db8::dead", "alice", 200),
        ("2001:db8::dead", "alice", 429),
        ("192.0.2.9", "alice", 429),
    ] {
        let response = send(&mut service, with("x-api-key", user, from(peer)));
        assert_eq!(response.status(), status, "{peer} {user}");
    }
    assert_eq!(send(&mut service, from("192.0.2.2")).status(), 400);
    let wrong = rules(&text.replace("192.0.2.9", "192.0.2.999")).expect_err("no address");
    assert!(wrong.to_string().contains("192.0.2.999"), "{wrong}");
}

#[test]
fn a_key_is_extracted_once_for_all_rules_and_headers() {
    use core::sync::atomic::{AtomicU64, Ordering};
    use ringgate::rules::RuleAlgorithm;
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    let key = Key::optional("path", OnMissingKey::Share, move |request: &Parts, hasher| {
        counted.fetch_add(1, Ordering::Relaxed);
        request.uri.path().hash(hasher);
        true
    });
    // Rules of different algorithms have different states.
    let mut service = layer([
        rule("counter", "9/min").by(&key),
        rule("fixed", "9/min").algorithm(RuleAlgorithm::Fixed).by(&key),
        rule("gcra", "9/min").algorithm(RuleAlgorithm::Gcra).by(&key),
    ])
    .layer(Hello);
    let response = send(&mut service, get("/"));
    assert_eq!(response.status(), 200);
    let policies = header(&response, "ratelimit").expect("a header");
    assert_eq!(policies.matches(";r=8").count(), 3, "{policies}");
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}
