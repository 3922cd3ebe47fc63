use alloc::boxed::Box;
use core::fmt;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::breaker::Breaker;
use super::events;
use super::health::Health;
use super::settings::SupervisorSettings;
use crate::shared::store::{StoreError, StoreErrorKind};
use crate::sync::Tally;

/// The health of a supervised store as it changes, for [`StoreObserver::publish`](super::StoreObserver::publish).
pub struct LiveHealth {
    server: &'static str,
    prefix: Box<str>,
    max_in_flight: usize,
    pub(super) call_slots: Semaphore,
    pub(super) breaker: Breaker,
    pub(super) counts: CallCounts,
    last_results: Mutex<LastResults>,
}

/// Counts of calls by their outcome.
#[derive(Debug, Default)]
pub(super) struct CallCounts {
    pub(super) calls: Tally,
    pub(super) unsent: Tally,
    pub(super) connections: Tally,
    answered: Tally,
    timed_out: Tally,
    disconnected: Tally,
    refused: Tally,
    unexpected_replies: Tally,
}

impl CallCounts {
    /// Counts the end of a call. `None`: it was answered.
    pub(super) fn count_end(&self, error: Option<StoreErrorKind>) {
        match error {
            None => &self.answered,
            Some(StoreErrorKind::TimedOut) => &self.timed_out,
            Some(StoreErrorKind::Refused) => &self.refused,
            Some(StoreErrorKind::UnexpectedReply) => &self.unexpected_replies,
            Some(
                StoreErrorKind::Disconnected
                | StoreErrorKind::Down
                | StoreErrorKind::Overloaded
                | StoreErrorKind::BreakerOpen,
            ) => &self.disconnected,
        }
        .add_one();
    }
}

/// The last results that [`Health`] shows.
#[derive(Debug, Default)]
pub(super) struct LastResults {
    pub(super) connected: bool,
    pub(super) answer: Option<Instant>,
    pub(super) error: Option<StoreError>,
    pub(super) leases: Restriction,
    pub(super) role: Restriction,
    /// Whether the log says that the store answers, or that it does not. `None`: neither.
    logged_as_answering: Option<bool>,
    /// Whether the log has an error of a call since it says that the store answers.
    is_error_logged: bool,
}

/// The effect of a right that the user lacks.
#[derive(Debug, Default)]
pub(super) struct Restriction {
    error: Option<StoreError>,
    is_logged: bool,
}

impl LiveHealth {
    /// The health of a store that has made no call yet. `server` and `prefix` are of [`Server`](super::Server).
    pub(super) fn new(settings: &SupervisorSettings, server: &'static str, prefix: &str) -> Self {
        Self {
            server,
            prefix: Box::from(prefix),
            max_in_flight: settings.max_in_flight,
            call_slots: Semaphore::new(settings.max_in_flight),
            breaker: Breaker::new(settings.breaker, Instant::now()),
            counts: CallCounts::default(),
            last_results: Mutex::default(),
        }
    }

    /// The health at this time. Each number is exact by itself.
    #[must_use]
    pub fn read(&self) -> Health {
        let now = Instant::now();
        self.with_last(|last| Health {
            connected: last.connected,
            breaker: self.breaker.state(now),
            in_flight: self.max_in_flight - self.call_slots.available_permits(),
            calls: self.counts.calls.get(),
            answered: self.counts.answered.get(),
            timed_out: self.counts.timed_out.get(),
            disconnected: self.counts.disconnected.get(),
            refused: self.counts.refused.get(),
            unexpected_replies: self.counts.unexpected_replies.get(),
            unsent: self.counts.unsent.get(),
            connections: self.counts.connections.get(),
            stale: last.answer.map(|answer| now.saturating_duration_since(answer)),
            last_error: last.error.clone(),
            lease_error: last.leases.error.clone(),
            role_error: last.role.error.clone(),
        })
    }

    pub(super) fn with_last<T>(&self, f: impl FnOnce(&mut LastResults) -> T) -> T {
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

    /// Notes the effect of a right that the user lacks, or that it lacks none. The first such effect is logged.
    pub(super) fn note_restriction(
        &self,
        of: impl FnOnce(&mut LastResults) -> &mut Restriction,
        effect: Option<&'static str>,
    ) {
        let error = effect.map(|effect| StoreError::new(StoreErrorKind::UnexpectedReply, effect));
        let first = self.with_last(|last| {
            let restriction = of(last);
            restriction.error.clone_from(&error);
            error.filter(|_| !core::mem::replace(&mut restriction.is_logged, true))
        });
        // Without the lock, because a subscriber that reads the health takes it.
        if let Some(error) = first {
            events::restricted(&error);
        }
    }

    /// Logs that the store does not answer, unless the log says so already.
    pub(super) fn log_lost(&self, error: &StoreError) {
        if self.with_last(|last| last.logged_as_answering.replace(false)) != Some(false) {
            events::lost(self.server, &self.prefix, error);
        }
    }

    /// Logs that the store answers, unless the log says so already.
    pub(super) fn log_found(&self) {
        if self.with_last(|last| last.logged_as_answering.replace(true)) != Some(true) {
            self.with_last(|last| last.is_error_logged = false);
            events::found(self.server, &self.prefix);
        }
    }

    /// Logs an error that the server has answered a call with, if it is the first one since the log says that the store answers.
    pub(super) fn log_error(&self, error: &StoreError) {
        if !self.with_last(|last| core::mem::replace(&mut last.is_error_logged, true)) {
            events::refused(self.server, &self.prefix, error);
        }
    }
}

impl fmt::Debug for LiveHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LiveHealth").field(&self.read()).finish()
    }
}
