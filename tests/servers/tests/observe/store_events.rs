//! The events that say that a store in Redis is lost, and that it is found again.

use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;
use std::sync::Mutex;
use std::time::Instant;

use ringgate::redis::{RedisStore, RedisStoreBuilder};
use ringgate::shared::{OnError, SharedLimiter};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::server::{PATIENCE, Server, until};

/// A subscriber that records the level and the fields of each event of the crate, as text.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<(Level, String)>>>);

impl Recorder {
    fn events(&self) -> Vec<(Level, String)> {
        self.0.lock().expect("no panic").clone()
    }

    fn levels(&self) -> Vec<Level> {
        self.events().into_iter().map(|(level, _)| level).collect()
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "ringgate"
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        self.0
            .lock()
            .expect("no panic")
            .push((*event.metadata().level(), fields.0));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0 += &format!("{}={value:?} ", field.name());
    }
}

/// Runs a test in one thread, with a recorder of its events.
fn recorded<F: Future<Output = ()>>(test: impl FnOnce(Recorder) -> F) {
    let recorder = Recorder::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    tracing::subscriber::with_default(recorder.clone(), || runtime.block_on(test(recorder)));
}

fn quick(url: &str) -> RedisStoreBuilder {
    let timeout = Duration::from_millis(300);
    RedisStore::builder(url)
        .prefix("shop")
        .connect_timeout(timeout)
        .response_timeout(timeout)
        .call_timeout(timeout)
}

fn order(server: &Server, words: &str) {
    let mut command = redis::Cmd::new();
    for word in words.split(' ') {
        command.arg(word);
    }
    let _: redis::Value = command.query(&mut server.client()).expect(words);
}

/// Makes decisions until these levels were recorded.
async fn decide_until(limiter: &SharedLimiter, recorder: &Recorder, levels: &[Level]) {
    let began = Instant::now();
    while recorder.levels() != levels {
        assert!(
            began.elapsed() < PATIENCE,
            "{:?} (expected {levels:?})",
            recorder.events()
        );
        let _ = limiter.check("key").await;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    // Many more decisions add no event.
    for _ in 0..200 {
        let _ = limiter.check("key").await;
    }
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert_eq!(recorder.levels(), levels, "{:?}", recorder.events());
}

fn limiter(store: &Arc<RedisStore>) -> SharedLimiter {
    let limiter = SharedLimiter::builder("login", "1000000/min".parse().expect("a quota"));
    limiter
        .on_error(OnError::Local)
        .build(store.clone())
        .expect("a limiter")
}

#[test]
fn a_lost_server_and_its_return_are_logged_once() {
    let Some(mut server) = Server::start() else { return };
    recorded(|recorder| async move {
        let store = Arc::new(quick(&server.url()).build().expect("a store"));
        store.ready(PATIENCE).await.expect("a connection");
        let limiter = limiter(&store);
        let mut levels = vec![Level::INFO];
        decide_until(&limiter, &recorder, &levels).await;
        for _ in 0..2 {
            server.kill();
            levels.push(Level::WARN);
            decide_until(&limiter, &recorder, &levels).await;
            server.restart();
            levels.push(Level::INFO);
            decide_until(&limiter, &recorder, &levels).await;
        }
        let events = recorder.events();
        assert!(events[0].1.contains("Redis is found"), "{events:?}");
        assert!(events[1].1.contains("Redis is lost"), "{events:?}");
        assert!(events[1].1.contains("prefix=\"shop\""), "{events:?}");
        assert!(events[1].1.contains("error="), "{events:?}");
    });
}

/// Losses of which the connection says nothing: the server does not answer, or refuses every write.
#[test]
fn a_server_that_serves_no_call_is_lost() {
    for (lose, find) in [
        ("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"),
        (
            "CONFIG SET min-replicas-to-write 1",
            "CONFIG SET min-replicas-to-write 0",
        ),
        ("REPLICAOF 127.0.0.1 1", concat!("REPLICAOF NO", " ONE")),
        ("STOP", "CONT"),
    ] {
        let Some(server) = Server::start() else { return };
        recorded(|recorder| async move {
            let store = Arc::new(quick(&server.url()).build().expect("a store"));
            store.ready(PATIENCE).await.expect("a connection");
            let limiter = limiter(&store);
            decide_until(&limiter, &recorder, &[Level::INFO]).await;
            let change = |words: &str| match words {
                "STOP" | "CONT" => server.signal(&format!("-{words}")),
                words => order(&server, words),
            };
            change(lose);
            decide_until(&limiter, &recorder, &[Level::INFO, Level::WARN]).await;
            change(find);
            decide_until(&limiter, &recorder, &[Level::INFO, Level::WARN, Level::INFO]).await;
        });
    }
}

/// A store that never gets a connection says so once, and why.
#[test]
fn a_server_that_was_never_found_is_logged_once() {
    let Some(server) = Server::guarded("secret") else {
        return;
    };
    let wrong = format!("redis://:wrong@127.0.0.1:{}", server.port());
    for (url, reason) in [
        ("redis://127.0.0.1:1", "refused"),
        (server.url().as_str(), "password"),
        (wrong.as_str(), "assword"),
    ] {
        recorded(|recorder| async move {
            let store = quick(url).build().expect("a store");
            until("an attempt has failed", || !recorder.events().is_empty()).await;
            let _ = store.ready(Duration::from_millis(300)).await;
            let events = recorder.events();
            assert_eq!(recorder.levels(), [Level::WARN], "{events:?}");
            assert!(events[0].1.contains(reason), "{events:?}");
            assert!(
                !events[0].1.contains("wrong@") && !events[0].1.contains("secret"),
                "{events:?}"
            );
        });
    }
}

/// A server that answers each decision with an error says so once, with the remedy.
#[test]
fn a_lasting_error_is_logged_once() {
    let Some(server) = Server::start() else { return };
    for (rights, remedy) in [
        ("-evalsha", "+evalsha"),
        ("-hgetall", "ACL SETUSER"),
        ("-hincrby", "ACL SETUSER"),
    ] {
        order(&server, "ACL SETUSER user reset on >secret ~shop:* +@all");
        order(&server, &format!("ACL SETUSER user {rights}"));
        let url = format!("redis://user:secret@127.0.0.1:{}", server.port());
        recorded(|recorder| async move {
            let store = Arc::new(quick(&url).build().expect("a store"));
            until("there is a connection", || store.health().connected).await;
            let limiter = limiter(&store);
            decide_until(&limiter, &recorder, &[Level::INFO, Level::ERROR]).await;
            let events = recorder.events();
            assert!(events[1].1.contains(remedy), "{events:?}");
        });
    }
}
