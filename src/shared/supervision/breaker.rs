use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

use super::settings::BreakerSettings;

/// The state of the circuit breaker of a [`Supervisor`](super::Supervisor).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BreakerState {
    /// Every call is made.
    Closed,
    /// No call is made for a while.
    Open,
    /// One call at a time is made, to test the server.
    Probing,
}

/// Stops calls when too many have failed, since each would cost its caller a timeout and load the server.
///
/// Closed: calls are counted in spans of time. When the present span and the one before together have enough calls, and
/// enough of them failed, the breaker opens. Open: no call is made until the rest is over, or until there is a new connection.
/// Probing: one call at a time is made. Three answers in a row close the breaker, and a failure opens it again.
#[derive(Debug)]
pub(super) struct Breaker {
    settings: BreakerSettings,
    /// Held for a few instructions, and never across an await.
    inside: Mutex<Inside>,
}

/// The phase of the breaker, and its counts of calls.
#[derive(Debug)]
struct Inside {
    phase: Phase,
    span: Span,
    previous_span: Span,
    span_began: Instant,
}

/// All calls are made, no call is made, or one call at a time is made as a probe.
#[derive(Clone, Copy, Debug)]
enum Phase {
    Closed,
    Open {
        until: Instant,
    },
    Probing {
        /// When the pending probe was made. If it has not ended after a rest, another probe is made.
        pending_since: Option<Instant>,
        answered: u32,
    },
}

/// The calls of a span of time, and how many of them failed.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    calls: u32,
    failed: u32,
}

/// The answered probes in a row that close a breaker.
const ANSWERS_TO_CLOSE: u32 = 3;

impl Breaker {
    pub(super) fn new(settings: BreakerSettings, now: Instant) -> Self {
        Self {
            settings,
            inside: Mutex::new(Inside {
                phase: Phase::Closed,
                span: Span::default(),
                previous_span: Span::default(),
                span_began: now,
            }),
        }
    }

    fn inside<T>(&self, f: impl FnOnce(&mut Inside) -> T) -> T {
        // No operation under the lock panics half way, so a poisoned lock protects whole values.
        f(&mut self.inside.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a call may be made now. If so, [`record`](Self::record) must be called with its outcome.
    pub(super) fn lets_through(&self, now: Instant) -> bool {
        self.inside(|inside| {
            if let Phase::Open { until } = inside.phase
                && now >= until
            {
                inside.phase = Phase::Probing {
                    pending_since: None,
                    answered: 0,
                };
            }
            match &mut inside.phase {
                Phase::Closed => true,
                Phase::Open { .. } => false,
                Phase::Probing { pending_since, .. } => {
                    let is_free = pending_since
                        .is_none_or(|since| now.saturating_duration_since(since) >= self.settings.rest);
                    if is_free {
                        *pending_since = Some(now);
                    }
                    is_free
                }
            }
        })
    }

    /// Counts a call that was made. Returns the new state if the call has opened or closed the breaker.
    pub(super) fn record(&self, now: Instant, failed: bool) -> Option<BreakerState> {
        self.inside(|inside| match &mut inside.phase {
            Phase::Closed => {
                inside.end_old_span(now, self.settings.over);
                inside.span.calls = inside.span.calls.saturating_add(1);
                inside.span.failed = inside.span.failed.saturating_add(u32::from(failed));
                let calls = u64::from(inside.span.calls) + u64::from(inside.previous_span.calls);
                let failures = u64::from(inside.span.failed) + u64::from(inside.previous_span.failed);
                if failed
                    && calls >= u64::from(self.settings.calls)
                    && failures * 100 >= calls * u64::from(self.settings.percent)
                {
                    inside.open(now, self.settings.rest);
                    return Some(BreakerState::Open);
                }
                None
            }
            // The call was made before the breaker opened.
            Phase::Open { .. } => None,
            Phase::Probing { .. } if failed => {
                inside.open(now, self.settings.rest);
                Some(BreakerState::Open)
            }
            Phase::Probing {
                pending_since,
                answered,
            } => {
                (*pending_since, *answered) = (None, *answered + 1);
                if *answered < ANSWERS_TO_CLOSE {
                    return None;
                }
                inside.close(now);
                Some(BreakerState::Closed)
            }
        })
    }

    /// Ends the rest, because the server may answer again.
    pub(super) fn probe(&self) {
        self.inside(|inside| {
            if let Phase::Open { .. } = inside.phase {
                inside.phase = Phase::Probing {
                    pending_since: None,
                    answered: 0,
                };
            }
        });
    }

    pub(super) fn state(&self, now: Instant) -> BreakerState {
        self.inside(|inside| match inside.phase {
            Phase::Closed => BreakerState::Closed,
            Phase::Open { until } if now < until => BreakerState::Open,
            Phase::Open { .. } | Phase::Probing { .. } => BreakerState::Probing,
        })
    }
}

impl Inside {
    /// Begins a new span when the present one is over.
    fn end_old_span(&mut self, now: Instant, over: Duration) {
        let age = now.saturating_duration_since(self.span_began);
        if age >= over {
            let ended = core::mem::take(&mut self.span);
            // If the span ended longer ago, a span without calls lies between.
            self.previous_span = if age < 2 * over { ended } else { Span::default() };
            self.span_began = now;
        }
    }

    fn open(&mut self, now: Instant, rest: Duration) {
        self.phase = Phase::Open { until: now + rest };
    }

    fn close(&mut self, now: Instant) {
        (self.span, self.previous_span, self.span_began) = (Span::default(), Span::default(), now);
        self.phase = Phase::Closed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn breaker() -> (Breaker, Instant) {
        let now = Instant::now();
        let settings = BreakerSettings {
            over: SECOND,
            calls: 10,
            percent: 50,
            rest: SECOND,
        };
        (Breaker::new(settings, now), now)
    }

    #[test]
    fn opens_by_the_rate_of_failures_and_not_by_their_number() {
        let (breaker, now) = breaker();
        for _ in 0..1000 {
            for failed in [true, false, false] {
                assert!(breaker.lets_through(now));
                breaker.record(now, failed);
            }
        }
        assert_eq!(breaker.state(now), BreakerState::Closed);
        // Half of the calls of this span and the one before, and not one fewer.
        for _ in 0..1000 {
            assert_eq!(breaker.state(now), BreakerState::Closed);
            breaker.record(now, true);
        }
        assert_eq!(breaker.state(now), BreakerState::Open);
        assert!(!breaker.lets_through(now));
    }

    #[test]
    fn a_few_calls_prove_nothing() {
        let (breaker, now) = breaker();
        for call in 0..9 {
            breaker.record(now + call * SECOND / 100, true);
        }
        assert_eq!(breaker.state(now), BreakerState::Closed);
        // Neither do old ones.
        breaker.record(now + 3 * SECOND, true);
        assert_eq!(breaker.state(now + 3 * SECOND), BreakerState::Closed);
    }

    #[test]
    fn probes_one_at_a_time_and_closes_after_three_answers() {
        let (breaker, mut now) = breaker();
        for _ in 0..10 {
            breaker.record(now, true);
        }
        now += SECOND;
        assert_eq!(breaker.state(now), BreakerState::Probing);
        assert!(breaker.lets_through(now));
        assert!(!breaker.lets_through(now));
        breaker.record(now, true);
        assert!(!breaker.lets_through(now));
        now += SECOND;
        for answered in 0..3 {
            assert_eq!(breaker.state(now), BreakerState::Probing, "{answered}");
            assert!(breaker.lets_through(now));
            breaker.record(now, false);
        }
        assert_eq!(breaker.state(now), BreakerState::Closed);
        assert!(breaker.lets_through(now) && breaker.lets_through(now));
    }

    #[test]
    fn a_new_connection_ends_the_rest_and_counts_as_no_answer() {
        let (breaker, now) = breaker();
        breaker.probe();
        assert_eq!(breaker.state(now), BreakerState::Closed);
        for _ in 0..10 {
            breaker.record(now, true);
        }
        breaker.probe();
        assert_eq!(breaker.state(now), BreakerState::Probing);
        assert!(breaker.lets_through(now));
        assert!(!breaker.lets_through(now), "one at a time");
        breaker.record(now, true);
        assert_eq!(breaker.state(now), BreakerState::Open);
    }

    /// A probe never ends if its caller has dropped the future.
    #[test]
    fn a_probe_that_never_comes_back_does_not_keep_it_open() {
        let (breaker, mut now) = breaker();
        for _ in 0..10 {
            breaker.record(now, true);
        }
        now += SECOND;
        assert!(breaker.lets_through(now));
        assert!(!breaker.lets_through(now + SECOND / 2));
        assert!(breaker.lets_through(now + SECOND));
    }
}
