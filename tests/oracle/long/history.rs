//! The steps of a history, and the checks after each.

use std::time::Instant;

use ringgate::{ManualClock, Nanos, Receipt, Settled};

use super::cases::{Case, WINDOW};
use super::target::{Answer, Target};
use crate::common::Log;
use crate::exact::{Exact, Mark};
use crate::random::Random;
use crate::subjects::nanos;

/// The steps of each history.
fn steps() -> u64 {
    let steps = std::env::var("RINGGATE_STEPS");
    steps.map_or(20_000, |steps| steps.parse().expect("RINGGATE_STEPS is a number"))
}

/// An admission. Refunded permits are removed.
struct Admission {
    id: u64,
    at: u64,
    permits: u64,
}

/// A key: its definition, its admissions that can be in a window with later ones, and the receipts that were not refunded.
struct Key {
    exact: Exact,
    admissions: Vec<Admission>,
    receipts: Vec<(u64, Mark, Receipt)>,
}

impl Key {
    fn fresh(exact: &Exact) -> Self {
        Self {
            exact: exact.clone(),
            admissions: Vec::new(),
            receipts: Vec::new(),
        }
    }
}

/// The requests and refunds of one history, by their results.
#[derive(Debug, Default)]
struct Counts {
    admitted: u64,
    denied: u64,
    retried: u64,
    refunded: u64,
    forfeited: u64,
    reset: u64,
    paused: u64,
}

pub(crate) struct History<'a, T> {
    case: &'a Case,
    target: &'a T,
    clock: ManualClock,
    random: Random,
    /// Whether each key has its own entry from its first request on, so that its decisions are those of the definition.
    pub(crate) exact: bool,
    /// Whether some callers have older readings than others.
    pub(crate) late: bool,
    keys: Vec<Key>,
    now: u64,
    paused_until: u64,
    next_id: u64,
    counts: Counts,
}

impl<'a, T: Target> History<'a, T> {
    /// A history that begins in the third second of its clock.
    pub(crate) fn new(case: &'a Case, target: &'a T, clock: ManualClock, keys: usize) -> Self {
        Self {
            case,
            target,
            clock,
            random: Random::new(1),
            exact: true,
            late: true,
            keys: (0..keys).map(|_| Key::fresh(&case.exact)).collect(),
            now: 3_000_000_000,
            paused_until: 0,
            next_id: 0,
            counts: Counts::default(),
        }
    }

    pub(crate) fn run(mut self) {
        let (begin, steps) = (Instant::now(), steps());
        let longest = self
            .case
            .subject
            .bounds
            .iter()
            .map(|(window, _)| nanos(*window))
            .max();
        let longest = longest.expect("a window");
        for step in 0..steps {
            self.move_clock();
            let key = self.random.below(self.keys.len() as u64);
            match self.random.below(200) {
                0 => self.reset(key),
                1..20 => self.refund(key),
                20..22 => self.pause(),
                _ => self.request(key),
            }
            if step % 16 == 0 {
                let oldest = self.now.saturating_sub(2 * longest);
                for key in &mut self.keys {
                    key.admissions.retain(|it| it.at >= oldest);
                }
            }
        }
        let Counts {
            admitted,
            denied,
            retried,
            refunded,
            forfeited,
            reset,
            paused,
        } = self.counts;
        println!(
            "{}: {:?} in {:.1?}",
            self.case.subject.name,
            self.counts,
            begin.elapsed()
        );
        let is_log = self.keys[0].exact.is_log();
        assert!(admitted.min(denied) > steps / 25 && retried > steps / 1_000);
        assert!(refunded.max(forfeited) > steps / 100 && (is_log || refunded > 0));
        assert!(if self.keys.len() == 1 {
            paused > 0
        } else {
            reset > 0
        });
    }

    fn move_clock(&mut self) {
        // Each of several keys gets enough requests in a window to reach its limit.
        let keys = self.keys.len() as u64;
        if self.random.below(keys) > keys / 4 {
            return;
        }
        let (window, cell) = (WINDOW, self.case.cell);
        self.now += match self.random.below(100) {
            0..40 => 0,
            40..50 => self.random.below(4),
            50..80 => self.random.below(cell),
            80..90 => cell - self.now % cell - self.random.below(2),
            90..97 => self.random.below(window),
            97..99 => window - 1 + self.random.below(3),
            99 if self.random.one_in(100) => self.random.below(1_000 * window),
            _ => self.random.below(8 * window),
        };
        self.clock.set(Nanos::new(self.now));
    }

    /// The limit of a request. It is the limiter's own for each third one, and for a ring of several windows.
    fn limit(&mut self) -> Option<u64> {
        let is_own = self.case.subject.bounds.len() > 1 || self.random.one_in(3);
        (!is_own).then(|| 1 + self.random.below(self.case.limit))
    }

    fn request(&mut self, key: u64) {
        let limit = self.limit();
        let permits = match self.random.below(16) {
            0 => 0,
            1 => 1 + self.random.below(self.case.limit + 1),
            2..6 => 1 + self.random.below(3),
            _ => 1,
        };
        let back = if self.late && self.random.one_in(10) {
            self.random.below(WINDOW / 2)
        } else {
            0
        };
        let Some(retry) = self.decide(key, limit, self.now.saturating_sub(back), permits) else {
            return;
        };
        // Each eighth denied caller waits until the retry time, if this is not in the past of the clock.
        if retry > self.now && self.random.one_in(8) {
            self.now = retry;
            self.clock.set(Nanos::new(retry));
            let early = self.decide(key, limit, retry - 1, permits);
            assert!(
                !self.exact || early == Some(retry),
                "{early:?} instead of {retry}"
            );
            let again = self.decide(key, limit, retry, permits);
            assert!(!self.exact || again.is_none(), "{again:?} at {retry}");
            self.counts.retried += 1;
        }
    }

    /// Decides a request, and checks the answer. Returns the retry time of a denial, if there is one.
    fn decide(&mut self, key: u64, limit: Option<u64>, now: u64, permits: u64) -> Option<u64> {
        let it = &mut self.keys[usize::try_from(key).expect("few keys")];
        let name = &self.case.subject.name;
        let answer = self.target.decide(key, limit, Nanos::new(now), permits);
        it.exact.set_limit(limit);
        let is_paused = now < self.paused_until && permits > 0;
        let expected = if is_paused {
            None
        } else {
            it.exact.decide(now, permits)
        };
        let (at, remaining) = match &answer {
            Answer::Admitted(receipt, remaining) => (receipt.at().get(), *remaining),
            Answer::Denied(_, remaining) => (now, *remaining),
        };
        if self.exact {
            let expected = if at < self.paused_until {
                0
            } else {
                it.exact.remaining(now)
            };
            assert_eq!(remaining, expected, "{name}: {limit:?}, {now}, {permits}");
        }
        match answer {
            Answer::Admitted(receipt, _) => {
                assert!(
                    !self.exact || expected.is_some(),
                    "{name}: {limit:?}, {now}, {permits}"
                );
                assert_eq!(receipt.permits(), permits);
                let at = receipt.at().get();
                assert!(at >= now);
                self.counts.admitted += 1;
                it.admissions.push(Admission {
                    id: self.next_id,
                    at,
                    permits,
                });
                if it.receipts.len() == 8 {
                    it.receipts.drain(..1);
                }
                it.receipts
                    .push((self.next_id, expected.unwrap_or_default(), receipt));
                self.next_id += 1;
                let mut log = Log::default();
                let mut certain = 0;
                for admission in &it.admissions {
                    log.add(Nanos::new(admission.at), admission.permits);
                    if admission.at + self.case.certain > at {
                        certain += admission.permits;
                    }
                }
                assert_eq!(self.case.subject.broken(&log), None, "{name}");
                let limit = limit.unwrap_or(self.case.limit);
                let counts_permits = self.case.certain > 0 && permits > 0;
                assert!(
                    !counts_permits || certain <= limit,
                    "{name}: {certain} by {limit} at {at}"
                );
                None
            }
            Answer::Denied(retry, _) => {
                assert!(
                    !self.exact || expected.is_none(),
                    "{name}: {limit:?}, {now}, {permits}"
                );
                self.counts.denied += 1;
                self.counts.paused += u64::from(is_paused);
                let retry = retry.map(Nanos::get);
                if self.exact {
                    let ready = it.exact.ready_at(now.max(self.paused_until), permits);
                    assert_eq!(retry, ready, "{name}: {limit:?}, {now}, {permits}");
                    if let Some(retry) = retry {
                        self.clock.set(Nanos::new(retry - 1));
                        assert!(
                            self.target.remaining(key, limit) < permits,
                            "{name}: before {retry}"
                        );
                        self.clock.set(Nanos::new(retry));
                        assert!(self.target.remaining(key, limit) >= permits, "{name}: at {retry}");
                        self.clock.set(Nanos::new(self.now));
                    }
                }
                retry
            }
        }
    }

    /// Settles one of the last receipts at a part of its permits, by any limit.
    fn refund(&mut self, key: u64) {
        let limit = self.limit();
        let it = &mut self.keys[usize::try_from(key).expect("few keys")];
        let Some(last) = it.receipts.len().checked_sub(1) else {
            return;
        };
        // A bucket refunds its last charge only.
        let which = last.saturating_sub(usize::try_from(self.random.below(6)).expect("a digit"));
        let (id, mark, receipt) = it.receipts.remove(which);
        let permits = receipt.permits();
        let back = self.random.below(permits + 1).max(self.random.below(2) * permits);
        let settled = self.target.settle(key, limit, receipt, permits - back);
        if self.exact {
            let expected = it.exact.refund(mark, permits, back);
            let name = &self.case.subject.name;
            assert_eq!(settled == Settled::Exact, expected, "{name}: {settled:?}");
        }
        if settled == Settled::Exact {
            self.counts.refunded += back;
            if let Some(admission) = it.admissions.iter_mut().find(|it| it.id == id) {
                admission.permits -= back;
            }
        } else {
            assert_eq!(settled, Settled::Forfeited(back));
            self.counts.forfeited += back;
        }
    }

    /// Pauses the limiter for a part of a window, or ends its pause. An earlier end than the present one changes nothing.
    fn pause(&mut self) {
        if self.random.one_in(8) {
            self.target.resume();
            self.paused_until = 0;
            return;
        }
        let end = self.now + self.random.below(WINDOW);
        if self.target.pause_until(Nanos::new(end)) {
            self.paused_until = self.paused_until.max(end);
        }
    }

    /// Resets a key. Its next window is a fresh one, and its receipts refund nothing of it.
    fn reset(&mut self, key: u64) {
        if !self.target.reset(key) {
            return;
        }
        self.counts.reset += 1;
        let fresh = Key::fresh(&self.case.exact);
        let it = core::mem::replace(&mut self.keys[usize::try_from(key).expect("few keys")], fresh);
        for (_, _, receipt) in it.receipts {
            let permits = receipt.permits();
            let settled = self.target.settle(key, None, receipt, 0);
            assert!(!self.exact || permits == 0 || settled == Settled::Forfeited(permits));
        }
    }
}
