//! A store in a server of its own kind, as another crate would write it: the ledger of `third.rs`, behind connections that fail. Only
//! the public interface supervises it. Time is that of the paused runtime.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Mutex;

use ringgate::ManualClock;
use ringgate::shared::supervision::{
    BreakerState, CallError, Connected, ErrorClass, Health, Server, ServerRole, Supervisor,
    SupervisorSettings,
};
use ringgate::shared::{
    CounterRequest, CounterStore, Counting, LeaseFuture, LeaseRequest, LeaseStore, StoreError,
    StoreErrorKind, conformance,
};
use tokio::time::{Instant, sleep, timeout};

use crate::third::Ledger;

/// The behaviour of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behaviour {
    Serves,
    /// No connection is accepted, and each one breaks.
    IsDown,
    /// No call is answered.
    IsSilent,
    /// Writes are refused.
    IsReadOnly,
    /// Each call is answered with an error of its own.
    IsForeign,
    /// Writes are refused as by a primary that has become a replica. Heartbeats are answered.
    IsDemoted,
}

/// The server: it outlives its connections.
struct Host {
    ledger: Arc<Ledger>,
    behaviour: Mutex<Behaviour>,
    role: ServerRole,
    /// The calls that have reached it.
    calls: AtomicU64,
}

impl Host {
    fn new(clock: &Arc<ManualClock>, role: ServerRole) -> Arc<Self> {
        Arc::new(Self {
            ledger: Arc::new(Ledger::new(Arc::clone(clock))),
            behaviour: Mutex::new(Behaviour::Serves),
            role,
            calls: AtomicU64::new(0),
        })
    }

    fn is(&self, behaviour: Behaviour) {
        *self.behaviour.lock().expect("no call panics") = behaviour;
    }

    /// Answers a call, or fails it as the behaviour says.
    async fn answer(&self) -> Result<(), CallError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let behaviour = *self.behaviour.lock().expect("no call panics");
        let failed = |kind, class| {
            let error = StoreError::new(kind, format!("{behaviour:?}"));
            Err(CallError { error, class })
        };
        match behaviour {
            Behaviour::Serves => Ok(()),
            Behaviour::IsDown => failed(StoreErrorKind::Disconnected, ErrorClass::Lost),
            Behaviour::IsSilent => core::future::pending().await,
            Behaviour::IsReadOnly => failed(StoreErrorKind::Refused, ErrorClass::ServerFault),
            Behaviour::IsForeign => failed(StoreErrorKind::UnexpectedReply, ErrorClass::None),
            Behaviour::IsDemoted => failed(StoreErrorKind::Refused, ErrorClass::Suspect),
        }
    }
}

struct LedgerServer(Arc<Host>);

impl Server for LedgerServer {
    const NAME: &'static str = "Ledger";

    type Connection = Arc<Host>;

    fn prefix(&self) -> &str {
        "ringgate"
    }

    async fn connect(&self) -> Result<Connected<Arc<Host>>, StoreError> {
        if *self.0.behaviour.lock().expect("no call panics") == Behaviour::IsDown {
            return Err(StoreError::new(StoreErrorKind::Disconnected, "nothing listens"));
        }
        Ok(Connected {
            connection: Arc::clone(&self.0),
            role: self.0.role,
        })
    }

    async fn ping(&self, connection: &Arc<Host>) -> Result<(), CallError> {
        match *connection.behaviour.lock().expect("no call panics") {
            Behaviour::IsDemoted => return Ok(()),
            Behaviour::Serves
            | Behaviour::IsDown
            | Behaviour::IsSilent
            | Behaviour::IsReadOnly
            | Behaviour::IsForeign => {}
        }
        connection.answer().await
    }
}

#[derive(Debug)]
struct RemoteLedger {
    supervisor: Supervisor<LedgerServer>,
    ledger: Arc<Ledger>,
}

impl RemoteLedger {
    fn start(host: &Arc<Host>, settings: SupervisorSettings) -> Self {
        let server = LedgerServer(Arc::clone(host));
        Self {
            supervisor: Supervisor::start(server, settings).expect("valid settings"),
            ledger: Arc::clone(&host.ledger),
        }
    }

    async fn supervised<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let call = async |host: &Arc<Host>| {
            host.answer().await?;
            call.await.map_err(|error| CallError {
                error,
                class: ErrorClass::None,
            })
        };
        self.supervisor.call(call).await
    }

    fn health(&self) -> Health {
        self.supervisor.live_health().read()
    }

    async fn ready(&self) -> Result<(), StoreError> {
        let within = Duration::from_secs(5);
        self.supervisor
            .ready(within, async |host: &Arc<Host>| host.answer().await)
            .await
    }
}

impl CounterStore for RemoteLedger {
    forward!(ledger by supervised: decide peek charge refund reset);
    forward!(keeps leases);
}

impl LeaseStore for RemoteLedger {
    fn renew<'a>(&'a self, requests: &'a [LeaseRequest]) -> LeaseFuture<'a> {
        Box::pin(async move {
            let renewed = async { Ok(self.ledger.renew(requests).await) };
            match self.supervised(renewed).await {
                Ok(grants) => grants,
                Err(error) => requests.iter().map(|_| Err(error.clone())).collect(),
            }
        })
    }
}

fn request() -> [CounterRequest; 1] {
    [CounterRequest::new(
        "rule",
        1,
        Counting::Log,
        1_000_000,
        Duration::from_secs(60),
    )]
}

/// The kind of the error of a call. `None`: it was answered.
async fn kind(store: &RemoteLedger) -> Option<StoreErrorKind> {
    store.decide(&request()).await.err().map(|error| error.kind())
}

#[tokio::test(start_paused = true)]
async fn a_supervised_store_keeps_every_promise() {
    let clock = Arc::new(ManualClock::new());
    let host = Host::new(&clock, ServerRole::Primary);
    let store = RemoteLedger::start(&host, SupervisorSettings::default());
    store.ready().await.expect("it serves");
    let checked = conformance::check(&store, async |time| clock.advance(time)).await;
    checked.unwrap_or_else(|broken| panic!("{broken}"));
    let health = store.health();
    assert_eq!((health.calls, health.unsent), (health.answered, 0));
}

/// Each fault has its error, ends the connection or not, and is over when the server serves again.
#[tokio::test(start_paused = true)]
async fn each_fault_has_its_error_and_its_end() {
    use StoreErrorKind::{Disconnected, Down, Refused, TimedOut, UnexpectedReply};
    // The behaviour, the error of the first call, the calls that end the connection (0: none does), and whether failures open
    // the breaker.
    for (behaviour, error, ends_after, opens) in [
        (Behaviour::IsDown, Disconnected, 1, false),
        (Behaviour::IsSilent, TimedOut, 3, false),
        (Behaviour::IsReadOnly, Refused, 0, true),
        (Behaviour::IsForeign, UnexpectedReply, 0, false),
        (Behaviour::IsDemoted, Refused, 3, false),
    ] {
        let host = Host::new(&Arc::default(), ServerRole::Primary);
        let store = RemoteLedger::start(&host, SupervisorSettings::default());
        assert_eq!(kind(&store).await, Some(Down), "no call waits for a connection");
        store.ready().await.expect("it serves");
        host.is(behaviour);
        for call in 1..=30 {
            let began = Instant::now();
            let connected = store.health().connected;
            let found = kind(&store).await;
            assert!(began.elapsed() <= Duration::from_millis(150), "{behaviour:?}");
            let expected = match call {
                _ if !connected => Down,
                _ if opens && call > 20 => StoreErrorKind::BreakerOpen,
                _ => error,
            };
            assert_eq!(found, Some(expected), "{behaviour:?}, call {call}");
            assert!(connected || ends_after > 0, "{behaviour:?} ends no connection");
            if call == ends_after {
                assert!(!store.health().connected, "{behaviour:?}, call {call}");
            }
        }
        let health = store.health();
        let is_open = health.breaker == BreakerState::Open;
        assert_eq!(is_open, opens, "{behaviour:?}: {health:?}");
        assert_eq!(
            host.calls.load(Ordering::Relaxed),
            health.calls + 1,
            "the first was of `ready`"
        );
        let ended = [
            health.timed_out,
            health.disconnected,
            health.refused,
            health.unexpected_replies,
        ];
        assert_eq!(health.calls, health.answered + ended.iter().sum::<u64>());

        host.is(Behaviour::Serves);
        sleep(Duration::from_secs(2)).await;
        for _ in 0..3 {
            assert_eq!(kind(&store).await, None, "{behaviour:?} is over");
        }
        let health = store.health();
        assert!(
            health.connected && health.breaker == BreakerState::Closed,
            "{health:?}"
        );
        assert_eq!(health.connections, 1 + u64::from(ends_after > 0), "{behaviour:?}");
    }
}

/// An open breaker lets one call through after its rest, and another failure opens it again.
#[tokio::test(start_paused = true)]
async fn an_open_breaker_tests_the_server_with_one_call() {
    let host = Host::new(&Arc::default(), ServerRole::Primary);
    let mut settings = SupervisorSettings::default();
    // No heartbeat is sent during the test.
    settings.heartbeat = Duration::from_secs(60);
    let store = RemoteLedger::start(&host, settings);
    store.ready().await.expect("it serves");
    host.is(Behaviour::IsReadOnly);
    while store.health().breaker == BreakerState::Closed {
        assert_eq!(kind(&store).await, Some(StoreErrorKind::Refused));
    }
    for _ in 0..5 {
        let before = host.calls.load(Ordering::Relaxed);
        sleep(Duration::from_millis(500)).await;
        assert_eq!(kind(&store).await, Some(StoreErrorKind::Refused));
        assert_eq!(kind(&store).await, Some(StoreErrorKind::BreakerOpen));
        assert_eq!(host.calls.load(Ordering::Relaxed), before + 1);
    }
}

/// Calls beyond the limit are errors at once, and calls that their callers drop end a silent connection.
#[tokio::test(start_paused = true)]
async fn calls_are_limited_and_dropped_calls_count() {
    let host = Host::new(&Arc::default(), ServerRole::Primary);
    let mut settings = SupervisorSettings::default();
    settings.max_in_flight = 2;
    let store = RemoteLedger::start(&host, settings);
    store.ready().await.expect("it serves");
    host.is(Behaviour::IsSilent);
    let request = request();
    let (first, second, third) = tokio::join!(kind(&store), kind(&store), store.decide(&request));
    let third = third.expect_err("two are in flight");
    assert!(third.kind() == StoreErrorKind::Overloaded && third.is_unsent());
    assert_eq!([first, second], [Some(StoreErrorKind::TimedOut); 2]);
    assert_eq!((store.health().in_flight, store.health().connected), (0, true));
    // Half of the response timeout, so that the call counts.
    let dropped = timeout(Duration::from_millis(50), kind(&store)).await;
    assert!(dropped.is_err());
    let health = store.health();
    assert_eq!((health.timed_out, health.connected), (3, false), "{health:?}");
}

/// The heartbeat ends a connection on which no call is made.
#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_tested() {
    let host = Host::new(&Arc::default(), ServerRole::Primary);
    let store = RemoteLedger::start(&host, SupervisorSettings::default());
    store.ready().await.expect("it serves");
    sleep(Duration::from_secs(10)).await;
    assert!(store.health().connected && store.health().connections == 1);
    host.is(Behaviour::IsDown);
    sleep(Duration::from_secs(2)).await;
    assert!(!store.health().connected);
    let error = store.ready().await.expect_err("it is down");
    assert_eq!(error.kind(), StoreErrorKind::Down);
    assert!(error.to_string().contains("nothing listens"), "{error}");
}

/// Heartbeats that are answered between the calls do not keep a connection on which each call fails.
#[tokio::test(start_paused = true)]
async fn a_few_failed_calls_end_a_connection_that_answers_heartbeats() {
    for between in [10, 600, 1500, 60_000] {
        let host = Host::new(&Arc::default(), ServerRole::Primary);
        let store = RemoteLedger::start(&host, SupervisorSettings::default());
        store.ready().await.expect("it serves");
        host.is(Behaviour::IsDemoted);
        for _ in 0..3 {
            sleep(Duration::from_millis(between)).await;
            assert_eq!(kind(&store).await, Some(StoreErrorKind::Refused), "{between} ms");
        }
        assert!(!store.health().connected, "{between} ms");
        host.is(Behaviour::Serves);
        store.ready().await.expect("it serves");
        assert_eq!(store.health().connections, 2, "{between} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn the_health_says_which_right_is_missing() {
    for (role, expected) in [
        (ServerRole::Primary, None),
        (ServerRole::Replica, None),
        (ServerRole::Unknown("no right to ask"), Some("no right to ask")),
    ] {
        let host = Host::new(&Arc::default(), role);
        let store = RemoteLedger::start(&host, SupervisorSettings::default());
        store.ready().await.expect("it serves");
        let said = |error: Option<StoreError>| error.map(|error| error.to_string());
        let found = said(store.health().role_error).unwrap_or_default();
        assert!(found.ends_with(expected.unwrap_or("")), "{found}");
        assert_eq!(found.is_empty(), expected.is_none(), "{found}");
        assert_eq!(store.health().lease_error, None);
        store.supervisor.note_lease_error(Some("no start"));
        assert!(said(store.health().lease_error).is_some_and(|text| text.ends_with("no start")));
        store.supervisor.note_lease_error(None);
        assert_eq!(store.health().lease_error, None);
    }
}
