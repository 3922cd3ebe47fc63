use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

use tokio::sync::{SemaphorePermit, watch};
use tokio::time::{Instant, sleep, timeout};

use super::breaker::BreakerState;
use super::call_error::{CallError, ErrorClass};
use super::live_health::LiveHealth;
use super::server::{Server, ServerRole};
use super::settings::SupervisorSettings;
use crate::error::ConfigError;
use crate::shared::lease::jittered;
use crate::shared::store::{StoreError, StoreErrorKind};
use crate::sync::{AtomicU64, Ordering};

/// Keeps a connection to a [`Server`], and makes calls on it that end in bounded time.
///
/// A task connects in the background, and connects again after a connection has ended. No call waits for it. Dropping the
/// supervisor ends the task. Calls in progress continue.
///
/// # Guarantee
///
/// - A [call](Self::call) ends within the [call timeout](SupervisorSettings::call_timeout), and at once while there is no
///   connection, while [`max_in_flight`](SupervisorSettings::max_in_flight) calls are made, or while the circuit breaker is
///   open.
/// - No call is sent twice.
/// - [`failures`](SupervisorSettings::failures) failures in a row end the connection, also those of calls whose futures were
///   dropped after half of the response timeout. Only an answered call ends the row: an answered heartbeat does not.
/// - No lock is held across an await.
pub struct Supervisor<S: Server> {
    inner: Arc<Inner<S>>,
    task: tokio::task::AbortHandle,
}

/// The parts that the supervisor shares with its task and its calls.
struct Inner<S: Server> {
    settings: SupervisorSettings,
    server: S,
    /// The lock of the channel is held for a copy, and never across an await.
    link: watch::Sender<Option<SharedLink<S>>>,
    health: Arc<LiveHealth>,
}

/// A connection, while it lasts.
struct Link<C> {
    connection: C,
    /// Failures in a row, without an answered call between them.
    failures: AtomicU64,
}

/// A connection that calls share while it lasts.
type SharedLink<S> = Arc<Link<<S as Server>::Connection>>;

impl<S: Server> Supervisor<S> {
    /// Spawns the task, which begins to connect at once, in the present runtime. It makes no connection after that runtime has
    /// ended.
    ///
    /// # Errors
    ///
    /// When a setting is out of its range; the error names the field, such as `call_timeout` or `breaker.percent`. Outside
    /// of a tokio runtime, it names `runtime`.
    pub fn start(server: S, settings: SupervisorSettings) -> Result<Self, ConfigError> {
        settings.validate()?;
        let runtime = tokio::runtime::Handle::try_current().map_err(|error| {
            ConfigError::new(
                "runtime",
                format!("none: {error}"),
                "a tokio runtime with time and input",
            )
        })?;
        let health = Arc::new(LiveHealth::new(&settings, S::NAME, server.prefix()));
        let inner = Arc::new(Inner {
            settings,
            server,
            link: watch::Sender::new(None),
            health,
        });
        let task = runtime.spawn(Arc::clone(&inner).keep_connected());
        Ok(Self {
            inner,
            task: task.abort_handle(),
        })
    }

    /// The server.
    #[must_use]
    pub fn server(&self) -> &S {
        &self.inner.server
    }

    /// The state of the connection and counts of its calls as they change. [`LiveHealth::read`] has them at one time, and
    /// [`StoreObserver::publish`](super::StoreObserver::publish) publishes them.
    #[must_use]
    pub fn live_health(&self) -> &Arc<LiveHealth> {
        &self.inner.health
    }

    /// Notes why the server registers no leases, or that it registers them, for [`Health::lease_error`](super::Health::lease_error).
    pub fn note_lease_error(&self, reason: Option<&'static str>) {
        self.inner
            .health
            .note_restriction(|last| &mut last.leases, reason);
    }

    /// Notes an error that the answer to a call contains, for [`Health::last_error`](super::Health::last_error). The call counts as answered.
    pub fn note_error(&self, error: StoreError) {
        self.inner.health.note(Some(error));
    }

    /// Makes a call, if there is a connection and the limits allow it.
    ///
    /// # Errors
    ///
    /// [`Down`](StoreErrorKind::Down), [`Overloaded`](StoreErrorKind::Overloaded) or [`BreakerOpen`](StoreErrorKind::BreakerOpen)
    /// at once, and nothing was sent. [`TimedOut`](StoreErrorKind::TimedOut), or the error of `ask`.
    ///
    /// # Concurrency
    ///
    /// Calls are made concurrently on one connection. A call whose future is dropped may still take effect.
    pub async fn call<T>(
        &self,
        ask: impl AsyncFnOnce(&S::Connection) -> Result<T, CallError>,
    ) -> Result<T, StoreError> {
        let inner = &*self.inner;
        let (link, _slot) = inner.admit().inspect_err(|error| {
            inner.health.counts.unsent.add_one();
            inner.health.note(Some(error.clone()));
        })?;
        let call = TimedCall {
            inner,
            link: &link,
            began: Instant::now(),
            ended: false,
        };
        inner.health.counts.calls.add_one();
        let answer = timeout(inner.settings.call_timeout, ask(&link.connection)).await;
        let failed = match answer {
            Ok(Ok(value)) => {
                call.end(None, ErrorClass::None);
                return Ok(value);
            }
            Ok(Err(failed)) => failed,
            Err(_) => timed_out(""),
        };
        call.end(Some(failed.error.clone()), failed.class);
        Err(failed.error)
    }

    /// Waits until there is a connection on which `probe` succeeds, for at most this time. The breaker does not count these
    /// calls.
    ///
    /// # Errors
    ///
    /// At once, an [unexpected reply](StoreErrorKind::UnexpectedReply), which no wait mends. After this time, the error of the
    /// last attempt. The supervisor continues to connect.
    pub async fn ready(
        &self,
        within: Duration,
        probe: impl AsyncFn(&S::Connection) -> Result<(), CallError>,
    ) -> Result<(), StoreError> {
        let inner = &*self.inner;
        let mut last = None;
        let answered = timeout(within, async {
            let mut link = inner.link.subscribe();
            loop {
                let connected = link.wait_for(Option::is_some).await.map(|link| link.clone());
                // The supervisor keeps the sender of the channel, so the channel is open.
                let Ok(Some(connected)) = connected else { continue };
                let Err(CallError { error, class }) = probe(&connected.connection).await else {
                    return Ok(());
                };
                inner.health.note(Some(error.clone()));
                inner.count_in_a_row(&connected, class);
                if error.kind() == StoreErrorKind::UnexpectedReply {
                    return Err(error);
                }
                last = Some(error);
                sleep(jittered(inner.settings.reconnect_after)).await;
            }
        })
        .await;
        match (answered, last) {
            (Ok(answered), _) => answered,
            (Err(_), Some(last)) => Err(last),
            (Err(_), None) if inner.link.borrow().is_some() => Err(StoreError::new(
                StoreErrorKind::TimedOut,
                "while the connection is tried",
            )),
            (Err(_), None) => {
                let last_error = inner.health.with_last(|last| last.error.clone());
                let detail = last_error.map_or_else(String::new, |error| error.to_string());
                Err(StoreError::new(StoreErrorKind::Down, detail))
            }
        }
    }
}

fn timed_out(detail: impl Into<String>) -> CallError {
    CallError {
        error: StoreError::new(StoreErrorKind::TimedOut, detail),
        class: ErrorClass::Suspect,
    }
}

impl<S: Server> Inner<S> {
    /// Makes a connection at once, and another each time that one has ended. Tests an idle connection from time to time.
    async fn keep_connected(self: Arc<Self>) {
        let mut delay = Duration::ZERO;
        loop {
            // There is a delay also after a successful attempt, so that a server that ends every connection is not called in
            // a tight loop.
            sleep(jittered(delay)).await;
            while let Err(error) = self.connect().await {
                let wait = self.settings.wait_after(error.kind());
                self.health.log_lost(&error);
                self.health.note(Some(error));
                sleep(jittered(wait)).await;
            }
            delay = self.settings.reconnect_after;
            let mut link = self.link.subscribe();
            while timeout(self.settings.heartbeat, link.wait_for(Option::is_none))
                .await
                .is_err()
            {
                self.beat().await;
            }
        }
    }

    /// Tests the connection if it was idle. The breaker does not count the test: a server that does not accept writes
    /// still answers it.
    async fn beat(&self) {
        let heard = self.health.with_last(|last| last.answer);
        let Some(link) = self.link.borrow().clone() else {
            return;
        };
        if heard.is_some_and(|heard| heard.elapsed() < self.settings.heartbeat) {
            return;
        }
        let answer = timeout(self.settings.response_timeout, self.server.ping(&link.connection)).await;
        let failed = answer
            .unwrap_or_else(|_| Err(timed_out("no answer to a heartbeat")))
            .err();
        self.health
            .note(failed.as_ref().map(|failed| failed.error.clone()));
        // A server that has become a replica answers the test and fails the calls, so an answer leaves the count of failures as
        // it is. Otherwise calls that are further apart than the tests would never end the connection.
        if let Some(failed) = failed {
            self.count_in_a_row(&link, failed.class);
        }
    }

    async fn connect(&self) -> Result<(), StoreError> {
        let connected = match timeout(self.settings.connect_timeout, self.server.connect()).await {
            Ok(Ok(connected)) => connected,
            Ok(Err(error)) => return Err(error),
            Err(_) => return Err(StoreError::new(StoreErrorKind::TimedOut, "while connecting")),
        };
        let unknown = match connected.role {
            ServerRole::Unknown(reason) => Some(reason),
            ServerRole::Primary | ServerRole::Replica => None,
        };
        self.health.note_restriction(|last| &mut last.role, unknown);
        let link = Link {
            connection: connected.connection,
            failures: AtomicU64::new(0),
        };
        // The server accepts connections. One call at a time now tests whether it also answers calls.
        self.health.breaker.probe();
        // Counted and noted before it is published, so that a caller of `ready` finds both.
        self.health.counts.connections.add_one();
        self.health.with_last(|last| last.connected = true);
        self.link.send_replace(Some(Arc::new(link)));
        match connected.role {
            // Calls that a replica does not serve end this connection, so the log does not report that the server is found.
            ServerRole::Replica => self.health.log_lost(&StoreError::new(
                StoreErrorKind::Refused,
                "the server is a replica",
            )),
            ServerRole::Primary | ServerRole::Unknown(_) => self.health.log_found(),
        }
        Ok(())
    }

    /// Returns the connection and a slot for one call, or an error at once.
    fn admit(&self) -> Result<(SharedLink<S>, SemaphorePermit<'_>), StoreError> {
        let error = |kind| StoreError::new(kind, "");
        let link = self.link.borrow().clone();
        let link = link.ok_or_else(|| error(StoreErrorKind::Down))?;
        let slot = self.health.call_slots.try_acquire();
        let slot = slot.map_err(|_| error(StoreErrorKind::Overloaded))?;
        // The breaker comes last, so that every call that it admits is recorded.
        if !self.health.breaker.lets_through(Instant::now()) {
            return Err(error(StoreErrorKind::BreakerOpen));
        }
        Ok((link, slot))
    }

    /// Counts the failures in a row of a connection, and ends the connection after several. Any other outcome sets the count to 0.
    fn count_in_a_row(&self, link: &SharedLink<S>, class: ErrorClass) {
        let in_a_row = match class {
            ErrorClass::None | ErrorClass::ServerFault => {
                // Relaxed: the count is a heuristic; one failure more or less makes no difference.
                link.failures.store(0, Ordering::Relaxed);
                0
            }
            // Relaxed: as above.
            ErrorClass::Suspect => link.failures.fetch_add(1, Ordering::Relaxed) + 1,
            ErrorClass::Lost => u64::MAX,
        };
        if in_a_row >= self.settings.failures && self.give_up(link) {
            let error = self.health.with_last(|last| last.error.clone());
            self.health
                .log_lost(&error.unwrap_or_else(|| StoreError::new(StoreErrorKind::Disconnected, "")));
        }
    }

    /// Ends a connection, unless another has replaced it. Returns whether it did.
    fn give_up(&self, link: &SharedLink<S>) -> bool {
        self.link.send_if_modified(|present| {
            let same = present.as_ref().is_some_and(|present| Arc::ptr_eq(present, link));
            if same {
                *present = None;
                self.health.with_last(|last| last.connected = false);
            }
            same
        })
    }
}

impl<S: Server> Drop for Supervisor<S> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A call in progress.
struct TimedCall<'a, S: Server> {
    inner: &'a Inner<S>,
    link: &'a SharedLink<S>,
    began: Instant,
    ended: bool,
}

impl<S: Server> TimedCall<'_, S> {
    /// Records the outcome.
    fn end(mut self, error: Option<StoreError>, class: ErrorClass) {
        self.ended = true;
        let health = &*self.inner.health;
        let kind = error.as_ref().map(StoreError::kind);
        health.counts.count_end(kind);
        if let (Some(StoreErrorKind::UnexpectedReply), Some(error)) = (kind, &error) {
            health.log_error(error);
        }
        health.note(error.clone());
        let (now, failed) = (Instant::now(), class != ErrorClass::None);
        let is_opened = health.breaker.record(now, failed) == Some(BreakerState::Open);
        if is_opened {
            health.log_lost(&error.unwrap_or_else(|| StoreError::new(StoreErrorKind::BreakerOpen, "")));
        } else if kind.is_none() && health.breaker.state(now) == BreakerState::Closed {
            // If a replica has become the primary, only an answered call shows it.
            health.log_found();
        }
        self.inner.count_in_a_row(self.link, class);
    }
}

/// Counts a call whose future was dropped after half of the response timeout as a call without an answer. Otherwise callers with
/// shorter timeouts would never end a broken connection.
impl<S: Server> Drop for TimedCall<'_, S> {
    fn drop(&mut self) {
        if !self.ended && 2 * self.began.elapsed() >= self.inner.settings.response_timeout {
            let call = TimedCall { ..*self };
            let waited = self.began.elapsed();
            let failed = timed_out(format!("dropped by the caller after {waited:?}"));
            call.end(Some(failed.error), failed.class);
        }
    }
}

impl<S: Server> fmt::Debug for Supervisor<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The server is left out: its address may contain a password.
        f.debug_struct("Supervisor")
            .field("settings", &self.inner.settings)
            .field("health", &self.inner.health.read())
            .finish_non_exhaustive()
    }
}
