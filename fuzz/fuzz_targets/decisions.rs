//! Any sequence of calls on any algorithm, with any sequence of times.
//!
//! The decisions are compared with the exact log of admissions, with the definition of the algorithm, and with the
//! decisions of the same algorithm on words of one owner.

#![no_main]

#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../../tests/common/mod.rs"]
mod common;

use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::{Corpus, fuzz_target};
use ringgate::sync::{AtomicU64, Exclusive, Ordering, Shared};
use ringgate::{Algorithm, Nanos, Receipt};
use ringgate_fuzz::{Any, Reference, Setting, Step, copy, fresh};

use common::Log;

#[derive(Arbitrary, Debug)]
enum Op {
    Check { step: Step, permits: u8 },
    CheckHuge { step: Step, permits: u64 },
    Refund { which: u8, permits: u8 },
    Charge { step: Step, permits: u16 },
    Query { step: Step, permits: u8 },
}

/// An admission that can still be refunded.
struct Outstanding {
    receipt: Receipt,
    event: usize,
    /// The number of the admission in the log.
    admission: usize,
}

struct Run<'a> {
    algorithm: &'a Any,
    words: Vec<AtomicU64>,
    /// The words of a single owner, which get the same calls as `words`.
    owned: Vec<AtomicU64>,
    reference: Reference,
    log: Log,
    bounds: Vec<(u64, Duration)>,
    outstanding: Vec<Outstanding>,
    readings: Vec<Nanos>,
    /// Whether a charge exceeded the debt that the words can hold, and was cut to it.
    was_cut: bool,
}

impl Run<'_> {
    fn check(&mut self, now: Nanos, permits: u64) {
        let algorithm = self.algorithm;
        let expected = self.reference.fits(now, permits);
        let before = self.answers(now);
        let words = contents(&self.words);
        let decision = algorithm.decide(Shared::new(&self.words), now, permits);
        let owned = algorithm.decide(Exclusive::new(&mut self.owned), now, permits);
        assert_eq!(decision, owned);
        if let Some(expected) = expected {
            assert_eq!(decision.is_some(), expected, "{permits} permits at {now:?}");
        }
        match decision {
            Some(receipt) => {
                assert!(permits <= algorithm.max_request() || permits == 0);
                assert_eq!(receipt.permits(), permits);
                if permits == 0 {
                    assert_eq!(contents(&self.words), words, "zero permits touch nothing");
                    return;
                }
                self.log.add(receipt.at(), permits);
                for &(bound, window) in &self.bounds {
                    let largest = self.log.worst(window);
                    assert!(
                        largest <= bound,
                        "{largest} permits in {window:?}, more than the bound of {bound}"
                    );
                }
                self.reference.charge(now, permits, false);
                let event = self.reference.events().len() - 1;
                let admission = self.log.len() - 1;
                self.outstanding.push(Outstanding {
                    receipt,
                    event,
                    admission,
                });
            }
            None => {
                assert_ne!(permits, 0);
                assert_eq!(self.answers(now), before, "a denial changes no later answer");
                self.reference.denied(now);
            }
        }
    }

    /// The answers of the words at `now` and at later times.
    fn answers(&self, now: Nanos) -> Vec<(u64, u64, Option<Nanos>)> {
        let width = self.algorithm.window();
        let cell = self.reference.cell();
        // A denial may publish a reading, which changes the answers at earlier times.
        let now = now.max(self.reference.newest());
        [Duration::ZERO, cell, width / 2, width, width + cell]
            .map(|later| answer(self.algorithm, &self.words, now.saturating_add(later)))
            .to_vec()
    }

    /// Checks each read-only answer, by decisions on copies of the words at the times in the answer.
    fn query(&self, now: Nanos, permits: u64) {
        let algorithm = self.algorithm;
        let words = Shared::new(&self.words);
        let admits = |at: Nanos, permits: u64| {
            let words = copy(&self.words);
            algorithm.decide(Shared::new(&words), at, permits).is_some()
        };

        let remaining = algorithm.remaining(words, now);
        assert!(remaining <= algorithm.max_request());
        assert!(admits(now, remaining));
        assert!(!admits(now, remaining + 1));

        match algorithm.ready_at(words, now, permits) {
            None => {
                assert_ne!(permits, 0);
                assert!(!admits(now, permits));
                assert!(!admits(Nanos::MAX, permits));
            }
            Some(ready) => {
                assert!(permits <= algorithm.max_request() || permits == 0);
                assert!(ready >= now);
                assert!(
                    admits(ready, permits),
                    "{permits} permits at {ready:?}, the time in the answer"
                );
                if ready > now {
                    let earlier = Nanos::new(ready.get() - 1);
                    assert!(!admits(earlier, permits), "{permits} permits at {earlier:?}");
                    let between = now.get() + (ready.get() - now.get()) / 2;
                    assert!(!admits(Nanos::new(between), permits));
                }
                assert_eq!(ready == now, permits <= remaining);
            }
        }

        match algorithm.idle_at(words, now) {
            None => assert_ne!(algorithm.spent(words, now), 0),
            Some(idle) => {
                assert!(idle >= now);
                assert_eq!(algorithm.spent(words, idle), 0);
                if idle > now {
                    assert_ne!(algorithm.spent(words, Nanos::new(idle.get() - 1)), 0);
                }
                let unused = fresh(algorithm.words());
                // At an earlier time the words would use their newest reading, which unused words do not have.
                let idle = idle.max(self.reference.newest());
                for later in [Duration::ZERO, self.reference.cell(), algorithm.window()] {
                    let at = idle.saturating_add(later);
                    assert_eq!(answer(algorithm, &self.words, at), answer(algorithm, &unused, at));
                }
            }
        }

        // A fresh state to which the spent permits are charged is at least as strict.
        if now >= self.reference.newest() {
            let restored = fresh(algorithm.words());
            let spent = algorithm.spent(words, now);
            algorithm.charge(Shared::new(&restored), now, spent);
            let width = algorithm.window();
            for later in [
                Duration::ZERO,
                self.reference.cell(),
                width / 2,
                width,
                width + width / 2,
            ] {
                let at = now.saturating_add(later);
                assert!(algorithm.remaining(Shared::new(&restored), at) <= algorithm.remaining(words, at));
            }
        }
    }

    fn charge(&mut self, now: Nanos, permits: u64) {
        let charged = self.algorithm.charge(Shared::new(&self.words), now, permits);
        let owned = self
            .algorithm
            .charge(Exclusive::new(&mut self.owned), now, permits);
        assert_eq!(charged, owned);
        assert!(charged <= permits);
        if charged < permits {
            self.was_cut = true;
            self.reference.charge_was_cut();
        }
        self.reference.charge(now, charged, true);
    }

    fn refund(&mut self, which: u8, permits: u8) {
        if self.outstanding.is_empty() {
            return;
        }
        // The newest receipt is number 0, because a state is most likely to accept its refund.
        let newest = self.outstanding.len() - 1;
        let which = newest - usize::from(which) % self.outstanding.len();
        let Outstanding {
            receipt,
            event,
            admission,
        } = self.outstanding.remove(which);
        let permits = u64::from(permits) % (receipt.permits() + 1);
        let before = self.answers(self.reference.newest());
        let refunded = self.algorithm.refund(Shared::new(&self.words), &receipt, permits);
        let owned = self
            .algorithm
            .refund(Exclusive::new(&mut self.owned), &receipt, permits);
        assert_eq!(refunded, owned);
        if permits == 0 {
            return;
        }
        if refunded {
            self.log.remove(admission, permits);
            self.reference.refund(event, permits);
            self.compare_with_history_without_refunded();
        } else {
            assert_eq!(
                self.answers(self.reference.newest()),
                before,
                "a refund that is denied changes no answer"
            );
        }
    }

    /// Checks that the words answer like words that were never charged the refunded permits.
    fn compare_with_history_without_refunded(&self) {
        // Without the refunded permits, less of a charge that was cut would have been cut, and units would end elsewhere.
        if self.was_cut || self.reference.counts_units() {
            return;
        }
        let never = fresh(self.algorithm.words());
        let is_gcra = matches!(self.algorithm, Any::Gcra(_));
        let mut newest = Nanos::ZERO;
        for event in self.reference.events() {
            newest = newest.max(event.now);
            // GCRA keeps the time of refunded permits, and later permits are counted from there.
            let now = if is_gcra { newest } else { event.now };
            let words = Shared::new(&never);
            if event.debt {
                self.algorithm.charge(words, now, event.permits);
            } else {
                let decision = self.algorithm.decide(words, now, event.permits);
                assert!(
                    decision.is_some(),
                    "a request that was admitted is also admitted after fewer permits"
                );
            }
        }
        let now = self.reference.newest().max(newest);
        let (width, cell) = (self.algorithm.window(), self.reference.cell());
        for later in [Duration::ZERO, cell, width / 2, width, width + cell] {
            let at = now.saturating_add(later);
            assert_eq!(
                answer(self.algorithm, &self.words, at),
                answer(self.algorithm, &never, at)
            );
        }
    }
}

fn contents(words: &[AtomicU64]) -> Vec<u64> {
    words.iter().map(|word| word.load(Ordering::Relaxed)).collect()
}

/// Returns the permits left, the permits spent, and the time at which one permit is ready.
fn answer(algorithm: &Any, words: &[AtomicU64], now: Nanos) -> (u64, u64, Option<Nanos>) {
    let words = Shared::new(words);
    (
        algorithm.remaining(words, now),
        algorithm.spent(words, now),
        algorithm.ready_at(words, now, 1),
    )
}

fuzz_target!(|input: (Setting, Vec<Op>)| -> Corpus {
    let (setting, ops) = input;
    let Ok(algorithm) = setting.build() else {
        return Corpus::Reject;
    };
    let mut run = Run {
        words: fresh(algorithm.words()),
        owned: fresh(algorithm.words()),
        reference: Reference::new(&setting, &algorithm),
        log: Log::default(),
        bounds: setting.bounds(&algorithm),
        outstanding: Vec::new(),
        readings: Vec::new(),
        was_cut: false,
        algorithm: &algorithm,
    };
    // The cost of a sequence grows with the square of its length.
    for op in ops.into_iter().take(100) {
        let mut reading = |step: Step| {
            let now = step.from(&run.readings, algorithm.window(), run.reference.cell());
            run.readings.push(now);
            now
        };
        match op {
            Op::Check { step, permits } => {
                let now = reading(step);
                // Mostly one or two permits, otherwise up to one more than `max_request`.
                let permits = match permits {
                    permits @ ..128 => 1 + u64::from(permits % 2),
                    permits @ 128.. => u64::from(permits - 128) % (algorithm.max_request() + 2),
                };
                run.check(now, permits);
            }
            Op::CheckHuge { step, permits } => {
                let now = reading(step);
                run.check(now, permits);
            }
            Op::Refund { which, permits } => run.refund(which, permits),
            Op::Charge { step, permits } => {
                let now = reading(step);
                run.charge(now, permits.into());
            }
            Op::Query { step, permits } => {
                let now = reading(step);
                run.query(now, u64::from(permits) % (algorithm.max_request() + 2));
            }
        }
        assert_eq!(contents(&run.words), contents(&run.owned));
    }
    Corpus::Keep
});
