//! The layer over shared rules that are replaced while requests are served.

use std::sync::mpsc;

use super::*;
use tokio::sync::oneshot;

type Live = Arc<LiveSharedRules<Parts>>;

/// The time in which the tasks of a node call the store.
const MOMENT: Duration = Duration::from_millis(1);

fn live<K: Into<AnyKind>>(store: &Arc<MemoryStore>, rules: impl IntoIterator<Item = Rule<Parts, K>>) -> Live {
    let builder = SharedRules::builder()
        .term_clock(TokioClock::new())
        .rules(set(rules));
    Arc::new(builder.build_live(store.clone()).expect("rules"))
}

async fn statuses<S, B>(service: S, requests: usize) -> Vec<u16>
where
    S: Service<Request<()>, Response = Response<B>, Error = Infallible> + Clone,
{
    let mut statuses = Vec::new();
    for _ in 0..requests {
        statuses.push(answer(service.clone(), alice()).await.status().as_u16());
    }
    statuses
}

/// The permits that remain of these rules in the store.
async fn remaining<K: Into<AnyKind>>(
    store: &Arc<MemoryStore>,
    rules: impl IntoIterator<Item = Rule<Parts, K>>,
) -> Vec<u64> {
    sleep(MOMENT).await;
    let (head, ()) = alice().into_parts();
    let rules = live(store, rules).load();
    let statuses = rules.peek(&head).await.expect("an answer");
    statuses.iter().map(|status| status.remaining).collect()
}

/// Each case: the mode, and the statuses of three requests under the rule 2/h before a reload and of four after it, for each rule
/// that replaces it.
#[tokio::test(start_paused = true)]
async fn requests_after_a_reload_are_decided_by_the_new_rules() {
    let first = [200, 200, 429];
    for (mode, name, text, second) in [
        (Mode::Strict, "all", "4/h", [200, 200, 429, 429]),
        (Mode::Strict, "all", "1/h", [429; 4]),
        (Mode::Strict, "other", "3/h", [200, 200, 200, 429]),
        (Mode::Strict, "all", "1/s", [200, 429, 429, 429]),
        (Mode::Lease { permits: 1 }, "all", "3/h", [200, 429, 429, 429]),
        (Mode::Local, "all", "1/h", [429; 4]),
    ] {
        let store = memory().await;
        let live = live(&store, [rule("all", "2/h").mode(mode)]);
        let service = RateLimitLayer::new(Arc::clone(&live)).layer(Hello);
        assert_eq!(statuses(service.clone(), 3).await, first, "{mode:?}");
        live.load().flush().await.expect("an answer");
        live.store(set([rule(name, text).mode(mode)])).expect("rules");
        assert_eq!(
            statuses(service.clone(), 4).await,
            second,
            "{mode:?} {name} {text}"
        );
        // Without a rule, no request is limited.
        live.store(RuleSetBuilder::new()).expect("no rules");
        let response = answer(service, alice()).await;
        assert_eq!(status_and(&response, "ratelimit"), (200, None));
    }
}

/// The headers and the body name the rules in force, and a layer over them has all the options of one over rules that are not replaced.
#[tokio::test(start_paused = true)]
async fn responses_name_the_rules_in_force() {
    let store = memory().await;
    let key = HttpKey::peer();
    let live = live(&store, [rule("old", "9/h").by(&key)]);
    let service = RateLimitLayer::new(Arc::clone(&live)).layer(Hello);
    let seen = answer(service.clone(), alice()).await;
    assert_eq!(header(&seen, "ratelimit-policy"), Some("\"old\";q=9;w=3600"));
    live.store(set([rule("new", "1/min").by(&key)])).expect("rules");
    let seen = answer(service.clone(), alice()).await;
    assert_eq!(header(&seen, "ratelimit-policy"), Some("\"new\";q=1;w=60"));
    let rejected = answer(service.clone(), alice()).await;
    assert_eq!(header(&rejected, "ratelimit"), Some("\"new\";r=0;t=61"));
    assert!(text(rejected).contains("\"violated-policies\":[\"new\"]"));
    // Rules that the store does not serve change nothing.
    let even = rule("even", "9/h").algorithm(ringgate::rules::RuleAlgorithm::Even);
    live.store(set([even])).expect_err("even");
    assert_eq!(statuses(service, 2).await, [429, 429]);
}

/// A request that is in flight during the reload is refunded, settled or released by the rules that admitted it. Each case: the
/// option, both rules, and the permits that are left of them.
#[tokio::test(start_paused = true)]
async fn a_charge_in_flight_belongs_to_the_rules_that_admitted_it() {
    type Layers = RateLimitLayer<LiveSharedRules<Parts>>;
    type Case = (
        fn(Layers) -> Layers,
        fn() -> AnyRule<Parts>,
        fn() -> AnyRule<Parts>,
        [u64; 2],
    );
    let refunds: fn(Layers) -> Layers = |layer| layer.charge_if(|_| false);
    let old: fn() -> AnyRule<Parts> = || rule("old", "9/h").into_any();
    let new: fn() -> AnyRule<Parts> = || rule("new", "9/h").into_any();
    let slots: [fn() -> AnyRule<Parts>; 2] = [
        || Rule::in_flight("old", 2).into_any(),
        || Rule::in_flight("new", 2).into_any(),
    ];
    let cases: [Case; 4] = [
        (refunds, old, new, [9, 9]),
        // A charge that stays.
        (|layer| layer.charge_if(|_| true), old, new, [8, 9]),
        // Another window of the same rule.
        (refunds, old, || rule("old", "9/min").into_any(), [9, 9]),
        (|layer| layer, slots[0], slots[1], [2, 2]),
    ];
    for (case, (change, old, new, left)) in cases.into_iter().enumerate() {
        let store = memory().await;
        let live = live(&store, [old()]);
        let (end, ended) = oneshot::channel::<()>();
        let ended = Arc::new(std::sync::Mutex::new(Some(ended)));
        let inner = tower::service_fn(move |_: Request<()>| {
            let ended = ended.lock().expect("no panic").take().expect("one request");
            async move {
                ended.await.expect("it ends");
                Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("hello")))
            }
        });
        let service = change(RateLimitLayer::new(Arc::clone(&live))).layer(inner);
        let request = tokio::spawn(answer(service, alice()));
        sleep(MOMENT).await;
        live.store(set([new()])).expect("rules");
        sleep(MOMENT).await;
        end.send(()).expect("it waits");
        drop(request.await.expect("no panic"));
        assert_eq!(remaining(&store, [old()]).await, [left[0]], "case {case}");
        assert_eq!(remaining(&store, [new()]).await, [left[1]], "case {case}");
    }
    // The cost of a body is known when it has ended.
    let bytes = Cost::new("bytes", |_: &Parts| 4);
    let of_bytes = |name| rule(name, "100/h").cost(&bytes);
    let store = memory().await;
    let live = live(&store, [of_bytes("old")]);
    let layer = RateLimitLayer::new(Arc::clone(&live)).settle_body(&bytes);
    let response = answer(layer.layer(Hello), alice()).await;
    live.store(set([of_bytes("new")])).expect("rules");
    assert_eq!(text(response), "hello");
    assert_eq!(remaining(&store, [of_bytes("old")]).await, [95]);
    assert_eq!(remaining(&store, [of_bytes("new")]).await, [100]);
}

/// A request that waits is decided by the rules that are in force when its wait ends, and rejected in their name.
#[tokio::test(start_paused = true)]
async fn a_request_that_waits_is_decided_by_the_new_rules() {
    for (name, text, expected) in [("other", "1/h", 429), ("other", "9/h", 200), ("all", "1/h", 429)] {
        let store = memory().await;
        let live = live(&store, [rule("all", "1/10s")]);
        let layer = RateLimitLayer::new(Arc::clone(&live)).wait(Duration::from_secs(60), 1_000);
        let service = layer.layer(Hello);
        assert_eq!(answer(service.clone(), alice()).await.status(), 200);
        let waiting = tokio::spawn(answer(service.clone(), alice()));
        sleep(Duration::from_secs(1)).await;
        live.store(set([rule(name, text)])).expect("rules");
        // A request that does not wait spends a permit of the new rule.
        let other = RateLimitLayer::new(Arc::clone(&live)).layer(Hello);
        assert_eq!(answer(other, alice()).await.status(), 200);
        let response = waiting.await.expect("no panic");
        assert_eq!(response.status(), expected, "{name} {text}");
        let policy = header(&response, "ratelimit-policy").expect("a header");
        assert!(policy.starts_with(&format!("\"{name}\";")), "{policy}");
    }
}

/// The rules of the layer are those of a watched file, after each change of the file.
#[tokio::test]
async fn a_watched_file_changes_the_rules_of_the_layer() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rules.toml");
    let write = |name: &str, quota: &str| {
        let text = format!("[[rules]]\nname = '{name}'\nquota = '{quota}'\nkey = 'peer'\n");
        // A file that is moved is never read before it is complete.
        let new = folder.path().join("new.toml");
        std::fs::write(&new, text).expect("written");
        std::fs::rename(&new, &path).expect("moved");
    };
    write("first", "1/h");
    let live = live::<AnyKind>(&Arc::new(MemoryStore::new()), []);
    let (report, reports) = mpsc::channel();
    let extractors = Extractors::new().key(HttpKey::peer()).expect("a key");
    let watcher = live.watch(&path, extractors, move |reloaded| {
        // Fails when the test has ended.
        let _ = report.send(reloaded.map_err(|error| error.to_string()));
    });
    let _watcher = watcher.expect("watched");
    let service = RateLimitLayer::new(Arc::clone(&live)).layer(Hello);
    let policy = || async {
        let response = answer(service.clone(), alice()).await;
        header(&response, "ratelimit-policy").map(str::to_owned)
    };
    let next = |expected: String| {
        while live.load().counts().next().map(|(name, _)| name.to_owned()) != Some(expected.clone()) {
            let report = reports.recv_timeout(Duration::from_secs(60)).expect("a report");
            report.expect("valid rules");
        }
    };
    next("first".to_owned());
    assert_eq!(policy().await.as_deref(), Some("\"first\";q=1;w=3600"));
    assert_eq!(statuses(service.clone(), 2).await, [429, 429]);
    for (name, quota, expected) in [
        ("second", "2/min", "\"second\";q=2;w=60"),
        ("third", "7/h", "\"third\";q=7;w=3600"),
    ] {
        write(name, quota);
        next(name.to_owned());
        assert_eq!(policy().await.as_deref(), Some(expected));
    }
    // The counts of the first rule are still in the store.
    write("first", "2/h");
    next("first".to_owned());
    assert_eq!(statuses(service.clone(), 2).await, [200, 429]);
}
