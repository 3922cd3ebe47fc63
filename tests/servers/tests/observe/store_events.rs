//! The events that say that a store in Redis is lost, and that it is found again.

use std::sync::OnceLock;
use std::sync::mpsc::channel;
use std::time::Instant;

use super::*;
use crate::server::{PATIENCE, Server, until};
use ringgate::redis::{RedisStore, RedisStoreBuilder};
use ringgate::shared::supervision::{
    CallError, Connected, LiveHealth, Server as StoreServer, ServerRole, Supervisor, SupervisorSettings,
};
use ringgate::shared::{OnError, SharedLimiter, StoreError};
use tracing::Metadata;

fn levels(recorder: &EventRecorder) -> Vec<Level> {
    recorder.events().into_iter().map(|(level, _)| level).collect()
}

/// Whether some field of the event has this text.
fn says((_, fields): &(Level, Fields), text: &str) -> bool {
    fields.values().any(|value| value.contains(text))
}

/// Runs a test in one thread, with a recorder of its events.
fn recorded<F: Future<Output = ()>>(test: impl FnOnce(EventRecorder) -> F) {
    let recorder = EventRecorder::new(LevelFilter::TRACE);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    tracing::subscriber::with_default(recorder.clone(), || runtime.block_on(test(recorder)));
}

fn quick(url: &str) -> RedisStoreBuilder {
    let timeout = Duration::from_millis(300);
    RedisStore::builder(url).prefix("shop").supervision(|settings| {
        settings.connect_timeout = timeout;
        settings.response_timeout = timeout;
        settings.call_timeout = timeout;
    })
}

/// Makes decisions until these levels were recorded.
async fn decide_until(limiter: &SharedLimiter, recorder: &EventRecorder, expected: &[Level]) {
    let began = Instant::now();
    while levels(recorder) != expected {
        assert!(
            began.elapsed() < PATIENCE,
            "{:?} (expected {expected:?})",
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
    assert_eq!(levels(recorder), expected, "{:?}", recorder.events());
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
        assert!(says(&events[0], "Redis is found"), "{events:?}");
        assert!(says(&events[1], "Redis is lost"), "{events:?}");
        assert!(events[1].1["prefix"] == "shop", "{events:?}");
        assert!(events[1].1.contains_key("error"), "{events:?}");
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
                words => drop(server.ask::<redis::Value>(words)),
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
            assert_eq!(levels(&recorder), [Level::WARN], "{events:?}");
            assert!(says(&events[0], reason), "{events:?}");
            assert!(
                !says(&events[0], "wrong@") && !says(&events[0], "secret"),
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
        let _: redis::Value = server.ask("ACL SETUSER user reset on >secret ~shop:* +@all");
        let _: redis::Value = server.ask(&format!("ACL SETUSER user {rights}"));
        let url = format!("redis://user:secret@127.0.0.1:{}", server.port());
        recorded(|recorder| async move {
            let store = Arc::new(quick(&url).build().expect("a store"));
            until("there is a connection", || store.health().connected).await;
            let limiter = limiter(&store);
            decide_until(&limiter, &recorder, &[Level::INFO, Level::ERROR]).await;
            let events = recorder.events();
            assert!(says(&events[1], remedy), "{events:?}");
        });
    }
}

/// A server that does not tell its role.
struct Reticent;

impl StoreServer for Reticent {
    const NAME: &'static str = "Reticent";

    type Connection = ();

    fn prefix(&self) -> &str {
        "shop"
    }

    async fn connect(&self) -> Result<Connected<()>, StoreError> {
        Ok(Connected {
            connection: (),
            role: ServerRole::Unknown("the role is unknown"),
        })
    }

    async fn ping(&self, (): &()) -> Result<(), CallError> {
        Ok(())
    }
}

/// A subscriber that reads the health of a store at each event, and notes the errors that it shows.
#[derive(Clone, Default)]
struct HealthReader {
    health: Arc<OnceLock<Arc<LiveHealth>>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Subscriber for HealthReader {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("ringgate")
    }

    fn event(&self, event: &Event<'_>) {
        if let Some(health) = self.health.get() {
            let health = health.read();
            let errors = [health.role_error, health.lease_error];
            let errors = errors.map(|error| error.map_or_else(String::new, |error| error.to_string()));
            let seen = format!("{}: {}", event.metadata().level(), errors.join(", "));
            self.seen.lock().expect("no panic").push(seen);
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Each event is emitted without a lock, and after its reason is known.
#[test]
fn a_subscriber_may_read_the_health_of_the_store() {
    let reader = HealthReader::default();
    let (send, done) = channel();
    let (subscriber, health) = (reader.clone(), Arc::clone(&reader.health));
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let test = async {
            let store = Supervisor::start(Reticent, SupervisorSettings::default()).expect("settings");
            assert!(health.set(Arc::clone(store.live_health())).is_ok());
            store
                .ready(PATIENCE, async |(): &()| Ok(()))
                .await
                .expect("a connection");
            for _ in 0..2 {
                store.note_lease_error(Some("no right to lease"));
                store.note_lease_error(None);
            }
        };
        tracing::subscriber::with_default(subscriber, || runtime.expect("a runtime").block_on(test));
        let _ = send.send(());
    });
    assert!(
        done.recv_timeout(PATIENCE).is_ok(),
        "the subscriber waits for a lock"
    );
    let reply = |error| format!("unexpected reply of the store: {error}");
    let (role, leases) = (reply("the role is unknown"), reply("no right to lease"));
    let expected = [
        format!("ERROR: {role}, "),
        format!("INFO: {role}, "),
        format!("ERROR: {role}, {leases}"),
    ];
    assert_eq!(*reader.seen.lock().expect("no panic"), expected);
}
