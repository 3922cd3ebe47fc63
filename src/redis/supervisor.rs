//! The connection to the server: a background task keeps it, and no call waits for it.
//!
//! The client library waits through an outage, and keeps a connection on which no reply arrives. So every call here has
//! a timeout, and several failures in a row end the connection. Without a connection calls fail at once, and a task
//! makes another.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use ::redis::{Cmd, RedisError, Value};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

use super::breaker::{Breaker, BreakerState};
use super::connection::{Connection, ServerTarget};
use super::endpoint::Role;
use super::error_class::{ErrorClass, diagnose, is_unknown_script};
use super::health::Health;
use super::script::Script;
use super::settings::Settings;
use crate::shared::{StoreError, StoreErrorKind, jittered};
use crate::sync::{AtomicU64, Ordering, Tally};

/// Makes calls, and keeps the connection that they need.
pub(super) struct Supervisor {
    settings: Settings,
    target: ServerTarget,
    /// The lock of the channel is held for a copy, and never across an await.
    link: watch::Sender<Option<Arc<Link>>>,
    call_slots: Semaphore,
    breaker: Breaker,
    counts: CallCounts,
    last_results: Mutex<LastResults>,
}

/// A connection, while it lasts.
struct Link {
    connection: Connection,
    /// Failures in a row.
    failures: AtomicU64,
}

#[derive(Debug, Default)]
struct CallCounts {
    calls: Tally,
    answered: Tally,
    timed_out: Tally,
    disconnected: Tally,
    refused: Tally,
    unexpected_replies: Tally,
    unsent: Tally,
    connections: Tally,
}

/// The last results that [`Health`] shows.
#[derive(Debug, Default)]
struct LastResults {
    answer: Option<Instant>,
    error: Option<StoreError>,
    leases: Restriction,
    role: Restriction,
    /// Whether the log says that the store answers, or that it does not. `None`: neither.
    #[cfg(feature = "observe")]
    logged_as_answering: Option<bool>,
    /// Whether an error of this connection is logged that concerns its call alone.
    #[cfg(feature = "observe")]
    is_error_logged: bool,
}

/// The effect of a right that the user lacks.
#[derive(Debug, Default)]
struct Restriction {
    error: Option<StoreError>,
    #[cfg(feature = "observe")]
    is_logged: bool,
}

const NO_START: &str = "it registers no leases, and decides about each request: INFO server does not tell this user run_id and \
                        uptime_in_seconds (ACL SETUSER <user> +info)";

const NO_ROLE: &str = "a replica is recognized only when it denies a write: this user may run neither ROLE nor INFO \
                       replication (ACL SETUSER <user> +role)";

const ON_REPLICA: &str = "the server is a replica";

impl Supervisor {
    pub(super) fn new(target: ServerTarget, settings: Settings) -> Self {
        Self {
            link: watch::Sender::new(None),
            call_slots: Semaphore::new(settings.max_in_flight),
            breaker: Breaker::new(settings.trip, Instant::now()),
            counts: CallCounts::default(),
            last_results: Mutex::default(),
            target,
            settings,
        }
    }

    pub(super) const fn target(&self) -> &ServerTarget {
        &self.target
    }

    pub(super) fn prefix(&self) -> &str {
        &self.settings.prefix
    }

    /// Makes a connection at once, and another each time that one has ended. Tests an idle connection from time to time.
    pub(super) async fn keep_connected(self: Arc<Self>) {
        let mut wait = Duration::ZERO;
        loop {
            // The wait also follows a successful attempt, so that a server that ends every connection is not called in
            // a tight loop.
            sleep(jittered(wait)).await;
            while let Err(error) = self.connect().await {
                let wait = self.settings.wait_after(error.kind());
                self.log_lost(&error);
                self.note(Some(error));
                sleep(jittered(wait)).await;
            }
            wait = self.settings.reconnect_after;
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
        let heard = self.with_last(|last| last.answer);
        let Some(link) = self.link.borrow().clone() else {
            return;
        };
        if heard.is_some_and(|heard| heard.elapsed() < self.settings.heartbeat) {
            return;
        }
        let ping = ::redis::cmd("PING");
        let answer = timeout(self.settings.response_timeout, link.connection.send(&ping)).await;
        let (error, class) = match answer {
            Ok(Ok(_)) => (None, ErrorClass::None),
            Ok(Err(error)) => {
                let (error, class) = diagnose(&error);
                (Some(error), class)
            }
            Err(_) => {
                let error = StoreError::new(StoreErrorKind::TimedOut, "no answer to a heartbeat");
                (Some(error), ErrorClass::Suspect)
            }
        };
        self.note(error);
        self.count_failure(&link, class);
    }

    async fn connect(&self) -> Result<(), StoreError> {
        let connecting = self.target.connect(&self.settings.prefix);
        let (connection, role) = match timeout(self.settings.connect_timeout, connecting).await {
            Ok(Ok(connected)) => connected,
            Ok(Err(error)) => return Err(error),
            Err(_) => return Err(StoreError::new(StoreErrorKind::TimedOut, "while connecting")),
        };
        self.restrict(|last| &mut last.role, (role == Role::Unknown).then_some(NO_ROLE));
        let link = Link {
            connection,
            failures: AtomicU64::new(0),
        };
        // The server answers. One call shows whether it serves calls, too.
        self.breaker.probe();
        // Counted before it is published, so that a caller of `ready` finds it counted.
        self.counts.connections.add_one();
        self.link.send_replace(Some(Arc::new(link)));
        match role {
            // The server may have become a replica, so the next call may end the connection, and so on.
            Role::Replica => self.log_lost(&StoreError::new(StoreErrorKind::Refused, ON_REPLICA)),
            Role::Primary | Role::Unknown => self.log_found(),
        }
        Ok(())
    }

    /// Waits until there is a connection on which the server executes these calls of scripts, for at most this time. An error
    /// that no wait mends ends the wait. The breaker does not count these calls.
    pub(super) async fn ready(&self, within: Duration, probes: &[Probe<'_>]) -> Result<(), StoreError> {
        let mut last = None;
        let answered = timeout(within, async {
            let mut link = self.link.subscribe();
            loop {
                let connected = link.wait_for(Option::is_some).await.map(|link| link.clone());
                // The supervisor keeps the sender of the channel, so the channel is open.
                let Ok(Some(connected)) = connected else { continue };
                let (error, class) = match probe(&connected.connection, probes).await {
                    Ok(()) => return Ok(()),
                    Err(error) => diagnose(&error),
                };
                self.note(Some(error.clone()));
                self.count_failure(&connected, class);
                if error.kind() == StoreErrorKind::UnexpectedReply {
                    return Err(error);
                }
                last = Some(error);
                sleep(jittered(self.settings.reconnect_after)).await;
            }
        })
        .await;
        match (answered, last) {
            (Ok(answered), _) => answered,
            (Err(_), Some(last)) => Err(last),
            (Err(_), None) if self.link.borrow().is_some() => Err(StoreError::new(
                StoreErrorKind::TimedOut,
                "while the scripts are tried",
            )),
            (Err(_), None) => {
                let last_error = self.with_last(|last| last.error.clone());
                let detail = last_error.map_or_else(String::new, |error| error.to_string());
                Err(StoreError::new(StoreErrorKind::Down, detail))
            }
        }
    }

    /// Runs a script.
    pub(super) async fn run(
        &self,
        script: &Script,
        names: &[String],
        arguments: &[String],
    ) -> Result<Value, StoreError> {
        self.call(async |connection| evaluate(connection, script, names, arguments).await)
            .await
    }

    /// Sends a command.
    pub(super) async fn send(&self, command: &Cmd) -> Result<Value, StoreError> {
        self.call(async |connection| connection.send(command).await).await
    }

    async fn call(
        &self,
        ask: impl AsyncFnOnce(&Connection) -> Result<Value, RedisError>,
    ) -> Result<Value, StoreError> {
        let (link, _slot) = self.admit().inspect_err(|error| {
            self.counts.unsent.add_one();
            self.note(Some(error.clone()));
        })?;
        let call = TimedCall {
            supervisor: self,
            link: &link,
            began: Instant::now(),
            ended: false,
        };
        self.counts.calls.add_one();
        let answer = timeout(self.settings.call_timeout, ask(&link.connection)).await;
        match answer {
            Ok(Ok(value)) => {
                call.end(None, ErrorClass::None);
                Ok(value)
            }
            Ok(Err(error)) => {
                let (error, class) = diagnose(&error);
                call.end(Some(error.clone()), class);
                Err(error)
            }
            Err(_) => {
                let error = StoreError::new(StoreErrorKind::TimedOut, "");
                call.end(Some(error.clone()), ErrorClass::Suspect);
                Err(error)
            }
        }
    }

    /// Returns the connection and a slot for one call, or an error at once.
    fn admit(&self) -> Result<(Arc<Link>, tokio::sync::SemaphorePermit<'_>), StoreError> {
        let error = |kind| StoreError::new(kind, "");
        let link = self.link.borrow().clone();
        let link = link.ok_or_else(|| error(StoreErrorKind::Down))?;
        let slot = self.call_slots.try_acquire();
        let slot = slot.map_err(|_| error(StoreErrorKind::Overloaded))?;
        // The breaker comes last, so that every call that it admits is recorded.
        if !self.breaker.lets_through(Instant::now()) {
            return Err(error(StoreErrorKind::BreakerOpen));
        }
        Ok((link, slot))
    }

    /// Counts a failure of a connection, and ends it after several in a row. Any other outcome sets the count to 0.
    fn count_failure(&self, link: &Arc<Link>, class: ErrorClass) {
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
            let error = self.with_last(|last| last.error.clone());
            self.log_lost(&error.unwrap_or_else(|| StoreError::new(StoreErrorKind::Disconnected, "")));
        }
    }

    /// Ends a connection, unless another has replaced it. Returns whether it did.
    fn give_up(&self, link: &Arc<Link>) -> bool {
        self.link.send_if_modified(|present| {
            let same = present.as_ref().is_some_and(|present| Arc::ptr_eq(present, link));
            if same {
                *present = None;
            }
            same
        })
    }

    fn with_last<T>(&self, f: impl FnOnce(&mut LastResults) -> T) -> T {
        // No operation under the lock panics half way, so a poisoned lock protects whole values.
        f(&mut self.last_results.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes an error, or the time of an answer.
    pub(super) fn note(&self, error: Option<StoreError>) {
        self.with_last(|last| match error {
            Some(error) => last.error = Some(error),
            None => last.answer = Some(Instant::now()),
        });
    }

    /// Notes whether the server registers leases.
    pub(super) fn note_leases(&self, are_registered: bool) {
        self.restrict(|last| &mut last.leases, (!are_registered).then_some(NO_START));
    }

    /// Notes the effect of a right that the user lacks, or that it lacks none. The first such effect is logged.
    fn restrict(&self, of: impl FnOnce(&mut LastResults) -> &mut Restriction, effect: Option<&'static str>) {
        let error = effect.map(|effect| StoreError::new(StoreErrorKind::UnexpectedReply, effect));
        self.with_last(|last| {
            let restriction = of(last);
            #[cfg(feature = "observe")]
            if let Some(error) = &error
                && !core::mem::replace(&mut restriction.is_logged, true)
            {
                tracing::error!("{error}");
            }
            restriction.error = error;
        });
    }

    /// Logs that the store does not answer, unless the log says so already.
    #[cfg(feature = "observe")]
    fn log_lost(&self, error: &StoreError) {
        if self.with_last(|last| last.logged_as_answering.replace(false)) != Some(false) {
            let prefix = self.prefix();
            tracing::warn!(target: "ringgate", prefix, %error, "Redis is lost: on_error decides until it answers");
        }
    }

    /// Logs that the store answers, unless the log says so already.
    #[cfg(feature = "observe")]
    fn log_found(&self) {
        if self.with_last(|last| last.logged_as_answering.replace(true)) != Some(true) {
            self.with_last(|last| last.is_error_logged = false);
            tracing::info!(target: "ringgate", prefix = self.prefix(), "Redis is found: it decides");
        }
    }

    /// Logs an error that the server has answered a call with, the first one of a connection.
    #[cfg(feature = "observe")]
    fn log_error(&self, error: &StoreError) {
        if !self.with_last(|last| core::mem::replace(&mut last.is_error_logged, true)) {
            let prefix = self.prefix();
            tracing::error!(target: "ringgate", prefix, %error, "Redis answers with an error: on_error decides");
        }
    }

    #[cfg(not(feature = "observe"))]
    #[expect(clippy::unused_self, reason = "the feature `observe` logs it")]
    const fn log_lost(&self, _: &StoreError) {}

    #[cfg(not(feature = "observe"))]
    #[expect(clippy::unused_self, reason = "the feature `observe` logs it")]
    const fn log_found(&self) {}

    #[cfg(not(feature = "observe"))]
    #[expect(clippy::unused_self, reason = "the feature `observe` logs it")]
    const fn log_error(&self, _: &StoreError) {}

    pub(super) fn health(&self) -> Health {
        let now = Instant::now();
        let (answer, last_error) = self.with_last(|last| (last.answer, last.error.clone()));
        let (lease_error, role_error) =
            self.with_last(|last| (last.leases.error.clone(), last.role.error.clone()));
        Health {
            connected: self.link.borrow().is_some(),
            breaker: self.breaker.state(now),
            in_flight: self.settings.max_in_flight - self.call_slots.available_permits(),
            calls: self.counts.calls.get(),
            answered: self.counts.answered.get(),
            timed_out: self.counts.timed_out.get(),
            disconnected: self.counts.disconnected.get(),
            refused: self.counts.refused.get(),
            unexpected_replies: self.counts.unexpected_replies.get(),
            unsent: self.counts.unsent.get(),
            connections: self.counts.connections.get(),
            stale: answer.map(|answer| now.saturating_duration_since(answer)),
            last_error,
            lease_error,
            role_error,
        }
    }
}

/// A call of a script that changes nothing: the script, its keys and its arguments.
pub(super) type Probe<'a> = (&'a Script, Vec<String>, Vec<String>);

/// Makes calls of scripts, one after the other, until one fails.
async fn probe(connection: &Connection, probes: &[Probe<'_>]) -> Result<(), RedisError> {
    for (script, names, arguments) in probes {
        evaluate(connection, script, names, arguments).await?;
    }
    Ok(())
}

/// Calls a script by its digest, and by its text if the server does not know it.
async fn evaluate(
    connection: &Connection,
    script: &Script,
    names: &[String],
    arguments: &[String],
) -> Result<Value, RedisError> {
    match connection.send(&script.call(true, names, arguments)).await {
        // The server was restarted, or told to forget its scripts. Nothing was executed.
        Err(error) if is_unknown_script(&error) => {
            connection.send(&script.call(false, names, arguments)).await
        }
        answer => answer,
    }
}

/// A call in progress.
struct TimedCall<'a> {
    supervisor: &'a Supervisor,
    link: &'a Arc<Link>,
    began: Instant,
    ended: bool,
}

impl TimedCall<'_> {
    /// Records the outcome.
    fn end(mut self, error: Option<StoreError>, class: ErrorClass) {
        self.ended = true;
        let Self { supervisor, link, .. } = &self;
        let counts = &supervisor.counts;
        match error.as_ref().map(StoreError::kind) {
            None => &counts.answered,
            Some(StoreErrorKind::TimedOut) => &counts.timed_out,
            Some(StoreErrorKind::Refused) => &counts.refused,
            Some(StoreErrorKind::UnexpectedReply) => &counts.unexpected_replies,
            Some(_) => &counts.disconnected,
        }
        .add_one();
        if let Some(error) = error
            .as_ref()
            .filter(|error| error.kind() == StoreErrorKind::UnexpectedReply)
        {
            supervisor.log_error(error);
        }
        supervisor.note(error.clone());
        let is_answered = error.is_none();
        let (now, failed) = (Instant::now(), class != ErrorClass::None);
        let is_opened = supervisor.breaker.record(now, failed) == Some(BreakerState::Open);
        if is_opened {
            supervisor.log_lost(&error.unwrap_or_else(|| StoreError::new(StoreErrorKind::BreakerOpen, "")));
        } else if is_answered && supervisor.breaker.state(now) == BreakerState::Closed {
            // Of a replica that has become the primary, only the answers say so.
            supervisor.log_found();
        }
        supervisor.count_failure(link, class);
    }
}

/// Counts a call whose future was dropped after half of the response timeout as a call without an answer. Otherwise callers with
/// shorter timeouts would never end a broken connection.
impl Drop for TimedCall<'_> {
    fn drop(&mut self) {
        if !self.ended && 2 * self.began.elapsed() >= self.supervisor.settings.response_timeout {
            let call = TimedCall { ..*self };
            let waited = self.began.elapsed();
            let error = StoreError::new(
                StoreErrorKind::TimedOut,
                format!("dropped by the caller after {waited:?}"),
            );
            call.end(Some(error), ErrorClass::Suspect);
        }
    }
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address is left out: it may contain a password.
        f.debug_struct("Supervisor")
            .field("settings", &self.settings)
            .field("health", &self.health())
            .finish_non_exhaustive()
    }
}
