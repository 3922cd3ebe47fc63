//! The layer over shared rules, with tokio's paused clock. Also every combination of options over local and shared rules.

use super::*;
use ringgate::http::{HttpRules, Unmetered};
use ringgate::rules::{Denial, OnError};
use ringgate::shared::{CounterStore, SharedRulesBuilder, StoreError, StoreErrorKind, StoreFuture};
use tokio::time::timeout;

type Shared = SharedRules<Parts>;

fn builder(rules: impl IntoIterator<Item = Rule<Parts>>) -> SharedRulesBuilder<Parts> {
    let builder = SharedRules::builder().term_clock(TokioClock::new());
    rules.into_iter().fold(builder, SharedRulesBuilder::rule)
}

/// A layer over rules of a store.
fn over_store(
    store: &Arc<MemoryStore>,
    rules: impl IntoIterator<Item = Rule<Parts>>,
) -> RateLimitLayer<Shared> {
    RateLimitLayer::new(over(store, rules))
}

fn alice_by_key() -> Request<()> {
    with("x-api-key", "alice", Request::new(()))
}

fn by_api_key() -> Key<Parts> {
    HttpKey::header(HeaderName::from_static("x-api-key"))
}

/// A service whose responses have a body of this length.
fn of_length(
    length: usize,
) -> impl Service<Request<()>, Response = Response<Body>, Error = Infallible, Future: Send> + Clone {
    responding(move || Response::new(Body::from(vec![b'x'; length])))
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn nodes_share_a_limit_and_report_it() {
    let store = memory().await;
    let rules = || [rule("user", "3/min").by(&by_api_key()), rule("all", "100/min")];
    let nodes = [(); 2].map(|()| over_store(&store, rules()).layer(Hello));
    for (at, left) in [(0, 2), (1, 1), (0, 0)] {
        let response = answer(nodes[at].clone(), alice_by_key()).await;
        // The window is a minute, and the cell in which it began counts, too.
        let expected = format!("\"user\";r={left};t=61, \"all\";r={};t=61", 97 + left);
        assert_eq!(status_and(&response, "ratelimit"), (200, Some(&*expected)));
        let policy = "\"user\";q=3;w=60, \"all\";q=100;w=60";
        assert_eq!(header(&response, "ratelimit-policy"), Some(policy));
    }
    let rejected = answer(nodes[1].clone(), alice_by_key()).await;
    assert_eq!(status_and(&rejected, "retry-after"), (429, Some("61")));
    let quotas = "\"user\";r=0;t=61, \"all\";r=97;t=61";
    assert_eq!(header(&rejected, "ratelimit"), Some(quotas));
    assert_eq!(rejected.extensions().get(), Some(&Decision::Rejected));
    assert_eq!(
        problem(rejected)["violated-policies"],
        serde_json::json!(["user"])
    );
    let bob = with("x-api-key", "bob", Request::new(()));
    assert_eq!(answer(nodes[1].clone(), bob).await.status(), 200);
}

/// Returns rules whose only limit is decided by a lease, which the node already has.
async fn leased(store: &Arc<MemoryStore>) -> Arc<Shared> {
    let client = rule("client", "1000000/min").by(&HttpKey::peer());
    let rules = over(store, [client.mode(Mode::Lease { permits: 1000 })]);
    let (head, ()) = alice().into_parts();
    let held = async {
        while rules.lease_stats().held < 100 {
            rules.check(&head).await.expect("room");
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(seconds(60), held).await.expect("a lease");
    rules
}

/// The decision is ready in the first poll, does not wake the task, and allocates nothing.
#[tokio::test(start_paused = true)]
async fn a_decision_by_a_lease_neither_allocates_nor_awaits() {
    let store = memory().await;
    let layer = RateLimitLayer::new(leased(&store).await)
        .headers(QuotaHeaders::Off)
        .decision_extension(false);
    let mut service = layer.layer(Hello);
    send(&mut service, alice());
    let requests = [(); 20].map(|()| alice());
    let counted = allocation_counter::measure(|| {
        for request in requests {
            assert_eq!(send(&mut service, request).status(), 200);
        }
    });
    assert_eq!(counted.count_total, 0);
}

/// Each request leaves one less.
#[tokio::test(start_paused = true)]
async fn a_decision_by_a_lease_has_headers() {
    let store = memory().await;
    let layer = RateLimitLayer::new(leased(&store).await).headers(QuotaHeaders::Both);
    let mut service = layer.layer(Hello);
    let left = [(); 2].map(|()| {
        let response = send(&mut service, alice());
        assert_eq!(header(&response, "x-ratelimit-limit"), Some("1000000"));
        assert_eq!(header(&response, "x-ratelimit-reset"), Some("61"));
        let left = header(&response, "x-ratelimit-remaining").expect("a number");
        left.parse::<u64>().expect("a number")
    });
    assert!((990_000..1_000_000).contains(&left[0]), "{left:?}");
    assert_eq!(left[1], left[0] - 1);
}

#[tokio::test(start_paused = true)]
async fn requests_wait_for_the_store() {
    let store = memory().await;
    let all = || over_store(&store, [rule("all", "1/s").cells(1)]);
    let layer = all().wait(seconds(3), 1_000);
    let get = |layer: &RateLimitLayer<Shared>| answer(layer.layer(Hello), Request::new(()));
    assert_eq!(get(&layer).await.status(), 200);
    let start = Instant::now();
    assert_eq!(get(&layer).await.status(), 200);
    let waited = start.elapsed();
    assert!((seconds(1)..=seconds(2)).contains(&waited), "{waited:?}");
    // Another node does not wait.
    assert_eq!(get(&all()).await.status(), 429);
    // Three requests arrive at once. One is admitted in time, one would wait too long, and the last finds the queue full.
    let layer = layer.wait(seconds(3), 2);
    let (start, mut statuses) = (Instant::now(), Vec::new());
    for waiting in [(); 3].map(|()| tokio::spawn(get(&layer))) {
        statuses.push(waiting.await.expect("no panic").status().as_u16());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 429, 429]);
    assert!(start.elapsed() <= seconds(3));
}

/// The response to a blocked key reports the block. A request that waits violates no rule.
#[tokio::test(start_paused = true)]
async fn a_block_is_reported_at_all_nodes() {
    let store = memory().await;
    let block = Block::new(quota("2/min"), seconds(60));
    let blocking = || {
        rule("user", "1/s")
            .cells(1)
            .by(&by_api_key())
            .block(block.clone())
    };
    let layer = || over_store(&store, [blocking()]);
    let waiting = layer().wait(seconds(3), 1_000).layer(Hello);
    let nodes = [(); 2].map(|()| layer().layer(Hello));
    for _ in 0..4 {
        assert_eq!(answer(waiting.clone(), alice_by_key()).await.status(), 200);
    }
    for (at, later, retry_after) in [(0, 0, "2"), (1, 0, "60"), (0, 10, "50")] {
        sleep(seconds(later)).await;
        let rejected = answer(nodes[at].clone(), alice_by_key()).await;
        assert_eq!(status_and(&rejected, "retry-after"), (429, Some(retry_after)));
        if later > 0 {
            let quotas = "\"user\";r=1, \"user-block\";r=0;t=50";
            assert_eq!(header(&rejected, "ratelimit"), Some(quotas));
            let violated = &problem(rejected)["violated-policies"];
            assert_eq!(*violated, serde_json::json!(["user-block"]));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_is_charged_nothing() {
    let store = memory().await;
    let layer = over_store(&store, [rule("all", "1/s")]).wait(seconds(60), 1);
    answer(layer.layer(Hello), Request::new(())).await;
    let gone = tokio::spawn(answer(layer.layer(Hello), Request::new(())));
    sleep(Duration::from_millis(10)).await;
    gone.abort();
    sleep(Duration::from_millis(10)).await;
    // The dropped request has left the queue, and was not charged.
    let start = Instant::now();
    assert_eq!(answer(layer.layer(Hello), Request::new(())).await.status(), 200);
    assert!(start.elapsed() <= Duration::from_millis(1_200));
}

/// A pair of keys has the parts of both, and requests without one part are told apart by the other.
#[tokio::test(start_paused = true)]
async fn a_pair_of_keys_is_shared() {
    let store = memory().await;
    let key = HttpKey::peer().and(&by_api_key()).and(&HttpKey::bearer());
    let nodes = [(); 2].map(|()| over_store(&store, [rule("pair", "1/h").by(&key)]));
    let requests: [(&str, &[(&'static str, &str)]); 6] = [
        ("192.0.2.1", &[("x-api-key", "a")]),
        ("192.0.2.1", &[("x-api-key", "b")]),
        ("192.0.2.2", &[("x-api-key", "a")]),
        ("192.0.2.1", &[]),
        ("192.0.2.1", &[("authorization", "Bearer a")]),
        ("192.0.2.1", &[("x-api-key", "a"), ("authorization", "bearer  a")]),
    ];
    for (node, expected) in nodes.iter().zip([200, 429]) {
        for (peer, headers) in requests {
            let add = |request, &(name, value): &_| with(name, value, request);
            let request = headers.iter().fold(from(peer), add);
            let status = answer(node.layer(Hello), request).await.status();
            assert_eq!(status, expected, "{peer} {headers:?}");
        }
    }
    // An extension has no parts, so neither has a pair with it.
    let key = HttpKey::peer().and(&HttpKey::extension::<u64>("user"));
    assert!(builder([rule("pair", "1/h").by(&key)]).build(store).is_err());
}

/// An address that cannot be read is refused by shared rules, too.
#[tokio::test(start_paused = true)]
async fn an_unreadable_address_is_explained() {
    let store = memory().await;
    let key = HttpKey::client(ringgate::http::ClientIp::one_proxy());
    let client = rule("client", "9/h").by(&key).deny("192.0.2.0/24");
    let service = over_store(&store, [client]).layer(Hello);
    let of = |line: &str| with("x-forwarded-for", line, Request::new(()));
    for (request, status, reason) in [
        (
            of("unknown"),
            400,
            "the header `x-forwarded-for` states no address",
        ),
        (of("192.0.2.7:80"), 429, "quota"),
        (of("[2001:db8::1]"), 200, "hello"),
        (Request::new(()), 500, "no header `x-forwarded-for`"),
    ] {
        let response = answer(service.clone(), request).await;
        assert_eq!(response.status(), status, "{reason}");
        let text = text(response);
        assert!(text.contains(reason), "{text}");
    }
}

/// Returns the permits left of a rule, after all settlements.
async fn left(rules: &Shared) -> u64 {
    sleep(Duration::from_millis(1)).await;
    let (head, ()) = Request::new(()).into_parts();
    rules.peek(&head).await.expect("an answer")[0].remaining
}

/// A surplus is refunded, and a deficit is charged to the store as debt.
#[tokio::test(start_paused = true)]
async fn bodies_settle_the_store() {
    for log in [false, true] {
        let store = memory().await;
        let bytes = Cost::new("bytes", |_: &Parts| 100);
        let mut volume = rule("volume", "1000/min").cost(&bytes);
        if log {
            volume = volume.algorithm(ringgate::rules::RuleAlgorithm::Log);
        }
        let rules = over(&store, [volume]);
        let layer = RateLimitLayer::new(Arc::clone(&rules)).settle_body(&bytes);
        let mut expected = 1000;
        for length in [30_usize, 100, 0, 450] {
            let response = answer(layer.layer(of_length(length)), Request::new(())).await;
            assert_eq!(left(&rules).await, expected - 100, "the estimate");
            let body = response.into_body().collect().await.expect("a body").to_bytes();
            assert_eq!(body.len(), length);
            expected -= length as u64;
            assert_eq!(left(&rules).await, expected);
        }
        // A request without a response is settled by zero bytes.
        let never =
            tower::service_fn(|_: Request<()>| core::future::pending::<Result<Response<Body>, Infallible>>());
        assert!(
            timeout(seconds(1), layer.layer(never).oneshot(Request::new(())))
                .await
                .is_err()
        );
        assert_eq!(left(&rules).await, expected);
    }
}

/// A lease refunds permits that it has not reported. Permits beyond the estimate are charged to the store.
#[tokio::test(start_paused = true)]
async fn bodies_settle_leases() {
    let store = memory().await;
    let bytes = Cost::new("bytes", |_: &Parts| 10);
    let volume = rule("volume", "1000000/min")
        .cost(&bytes)
        .mode(Mode::Lease { permits: 10_000 });
    let rules = over(&store, [volume]);
    let layer = RateLimitLayer::new(Arc::clone(&rules)).settle_body(&bytes);
    let mut sent = 0;
    for round in 0..400_usize {
        let length = if round % 2 == 0 { 3 } else { 25 };
        let response = answer(layer.layer(of_length(length)), Request::new(())).await;
        assert_eq!(response.status(), 200);
        drop(response.into_body().collect().await.expect("a body"));
        sent += length as u64;
        sleep(Duration::from_millis(1)).await;
    }
    assert!(rules.lease_stats().held > 0, "leases decide");
    rules.flush().await.expect("an answer");
    let charged = 1_000_000 - left(&rules).await;
    // Permits that a lease had reported before the body ended stay charged: 7 for each of a few requests.
    assert!(
        (sent..=sent + 7 * 200).contains(&charged),
        "{charged} charged, {sent} sent"
    );
}

/// A store that does not answer.
#[derive(Debug, Default)]
struct Down(MemoryStore);

impl Down {
    async fn no_answer<T>(&self, _: StoreFuture<'_, T>) -> Result<T, StoreError> {
        Err(StoreError::new(StoreErrorKind::Down, ""))
    }
}

impl CounterStore for Down {
    forward!(0 by no_answer: decide peek charge refund reset);
    forward!(keeps);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_is_not_the_client() {
    let over_down = |on_error| {
        let rules = builder([rule("all", "1/min").on_error(on_error)]);
        rules.build(Arc::<Down>::default()).expect("rules")
    };
    let rules = |on_error| RateLimitLayer::from(over_down(on_error));
    let deny = || rules(OnError::Deny);
    let rejected = answer(deny().layer(Hello), Request::new(())).await;
    assert_eq!(status_and(&rejected, "retry-after"), (503, None));
    assert_eq!(problem(rejected)["title"], "Rate limit cannot be decided");
    // A request that may wait does not wait for the store.
    let waits = deny().wait(seconds(60), 1_000).layer(Hello);
    assert_eq!(answer(waits, Request::new(())).await.status(), 503);
    // So is the response of a handler.
    let (head, ()) = Request::new(()).into_parts();
    let denied = over_down(OnError::Deny).check(&head).await.expect_err("no store");
    let response = DenialResponse::new(&denied).response::<Body>();
    assert_eq!(status_and(&response, "retry-after"), (503, None));
    let layer = deny().status(RejectionReason::StoreUnavailable, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(answer(layer.layer(Hello), Request::new(())).await.status(), 429);
    let rejected = answer(deny().rejection_response(Grpc).layer(Hello), Request::new(())).await;
    assert_eq!(header(&rejected, "grpc-status"), Some("14"));
    // The limiter of the node decides, and the headers have its values.
    let (local, admit) = (rules(OnError::Local), rules(OnError::Admit));
    let spent = Some("\"all\";r=0;t=61");
    for (layer, expected) in [
        (&local, (200, spent)),
        (&local, (429, spent)),
        (&admit, (200, None)),
    ] {
        let response = answer(layer.layer(Hello), Request::new(())).await;
        assert_eq!(status_and(&response, "ratelimit"), expected);
    }
}

/// Two nodes use up a limit of 50 permits, by requests that cost 3, in each mode.
#[tokio::test(start_paused = true)]
async fn a_violated_policy_shows_no_room_in_any_mode() {
    let modes = [
        Mode::Strict,
        Mode::Lease { permits: 10 },
        Mode::Lease { permits: 40 },
        Mode::Sync {
            period: Duration::from_millis(20),
            pending: 10,
        },
        Mode::Local,
    ];
    for mode in modes {
        let store = memory().await;
        let three = Cost::new("three", |_: &Parts| 3);
        let nodes = [(); 2].map(|()| {
            let limited = rule("all", "50/h").cost(&three).mode(mode);
            over_store(&store, [limited, rule("roomy", "9000/min").mode(mode)]).headers(QuotaHeaders::Both)
        });
        let mut rejected = 0;
        for turn in 0..60 {
            let response = answer(nodes[turn % 2].layer(Hello), Request::new(())).await;
            if response.status() == 429 {
                rejected += 1;
                let told = |name| header(&response, name).and_then(|value| value.parse::<u64>().ok());
                assert_eq!(told("x-ratelimit-limit"), Some(50), "{mode:?}");
                assert!(told("x-ratelimit-remaining") < Some(3), "{mode:?}");
                assert!(told("x-ratelimit-reset") >= told("retry-after"), "{mode:?}");
            }
            sleep(Duration::from_millis(7)).await;
        }
        assert!(rejected > 0, "{mode:?}");
    }
}

type Inner = tower::util::BoxCloneService<Request<()>, Response<Body>, Infallible>;
type Limited<S, M> = RateLimitService<Inner, S, Problem, M>;

/// The responses and the rejections of a layer whose rule admits two requests of ten bytes a second.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    statuses: Vec<(u16, bool, u64)>,
    rejected: Vec<String>,
}

async fn seen<S, M, B>(service: Limited<S, M>, rejected: &Mutex<Vec<String>>) -> Seen
where
    S: HttpRules,
    Limited<S, M>: Service<Request<()>, Response = Response<B>, Error = Infallible>,
    B: http_body::Body<Data = Bytes, Error = Infallible>,
{
    let (mut statuses, mut service, start) = (Vec::new(), service, Instant::now());
    for path in ["/health", "/a", "/miss", "/a", "/a", "/a"] {
        let request = Request::get(path).body(()).expect("a request");
        let Ok(response) = service.ready().await.expect("ready").call(request).await;
        let has_headers = response.headers().contains_key("ratelimit");
        statuses.push((response.status().as_u16(), has_headers, start.elapsed().as_secs()));
        let Ok(body) = response.into_body().collect().await;
        drop(body);
        // A settlement may run in another task.
        sleep(Duration::from_millis(1)).await;
    }
    let rejected = core::mem::take(&mut *rejected.lock().expect("no panic"));
    Seen { statuses, rejected }
}

/// Returns a service that responds with twelve bytes, and with the status in the path.
fn inner() -> Inner {
    Inner::new(tower::service_fn(async |request: Request<()>| {
        let mut response = Response::new(Body::from("twelve bytes"));
        if request.uri().path() == "/miss" {
            *response.status_mut() = StatusCode::NOT_FOUND;
        }
        Ok(response)
    }))
}

/// Returns the results of a layer over any rules, with every combination of options.
async fn combinations<S: HttpRules>(layer: impl Fn(&Cost<Parts>) -> RateLimitLayer<S>) -> Vec<Seen>
where
    Limited<S, Unmetered>: Service<Request<()>, Response = Response<Body>, Error = Infallible>,
    Limited<S, Metered>: Service<Request<()>, Response = Response<MeteredBody<Body>>, Error = Infallible>,
{
    let mut all = Vec::new();
    for options in 0..16_u8 {
        let has = |option: u8| options & 1 << option != 0;
        let bytes = Cost::new("bytes", |_: &Parts| 10);
        let rejected: Arc<Mutex<Vec<String>>> = Arc::default();
        let record = Arc::clone(&rejected);
        let mut layer = layer(&bytes).skip_path("/health").on_rejected(move |rejection| {
            let names = rejection
                .violated_quotas()
                .iter()
                .map(|quota| quota.rule.to_string())
                .collect();
            record.lock().expect("no panic").push(names);
        });
        if has(0) {
            layer = layer.wait(seconds(5), 1_000);
        }
        if has(1) {
            layer = layer.charge_if(|response| response.status == 200);
        }
        if has(2) {
            layer = layer.headers(QuotaHeaders::Off);
        }
        all.push(if has(3) {
            seen(layer.settle_body(&bytes).layer(inner()), &rejected).await
        } else {
            seen(layer.layer(inner()), &rejected).await
        });
    }
    all
}

/// Local and shared rules give equal responses, with any options.
#[tokio::test(start_paused = true)]
async fn every_combination_of_options_is_alike_for_local_and_shared_rules() {
    let rule = |bytes: &Cost<Parts>| rule("volume", "20/s").cells(1).cost(bytes);
    let clock = TokioClock::new();
    advance(seconds(3600)).await;
    // The test begins at the start of a cell.
    let local = combinations(|bytes| {
        let rules = set([rule(bytes)]).build_with(clock, [1, 2, 3, 4]);
        RateLimitLayer::from(rules.expect("rules"))
    })
    .await;
    let store = |bytes: &Cost<Parts>| {
        let store = MemoryStore::with_clock(clock);
        RateLimitLayer::from(builder([rule(bytes)]).build(Arc::new(store)).expect("rules"))
    };
    let shared = combinations(store).await;
    for (options, (local, shared)) in local.iter().zip(&shared).enumerate() {
        let statuses = |seen: &Seen| {
            seen.statuses
                .iter()
                .map(|&(status, headers, _)| (status, headers))
                .collect::<Vec<_>>()
        };
        assert_eq!(statuses(local), statuses(shared), "options {options:04b}");
        assert_eq!(local.rejected, shared.rejected, "options {options:04b}");
        let waits = options & 1 != 0;
        let rejections = local
            .statuses
            .iter()
            .filter(|(status, ..)| *status == 429)
            .count();
        assert_eq!(rejections == 0, waits, "options {options:04b}: {local:?}");
        assert_eq!(local.rejected.len(), rejections);
    }
}
