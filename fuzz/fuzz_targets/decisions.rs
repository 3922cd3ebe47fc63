//! Any sequence of calls on any algorithm, on a clock that may do anything: compared with the exact
//! log of admissions, with the algorithm's definition, and with itself on plain words.

#![no_main]

use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::{Corpus, fuzz_target};
use ringgate::sync::{AtomicU64, Exclusive, Ordering, Shared};
use ringgate::{Algorithm, Nanos, Receipt};
use ringgate_fuzz::{Any, Log, Reference, Setting, Step, copy, fresh};

#[derive(Arbitrary, Debug)]
enum Op {
    Check { step: Step, permits: u8 },
    CheckHuge { step: Step, permits: u64 },
    Refund { which: u8, permits: u8 },
    Charge { step: Step, permits: u16 },
    Look { step: Step, permits: u8 },
}

/// An admission that can still be refunded.
struct Outstanding {
    receipt: Receipt,
    event: usize,
}

struct Run<'a> {
    algorithm: &'a Any,
    words: Vec<AtomicU64>,
    /// Words that a single owner decides with, by the calls that `words` gets.
    plain: Vec<AtomicU64>,
    reference: Reference,
    log: Log,
    promises: Vec<(u64, Duration)>,
    outstanding: Vec<Outstanding>,
    readings: Vec<Nanos>,
    forgiven: bool,
}

impl Run<'_> {
    fn check(&mut self, now: Nanos, permits: u64) {
        let algorithm = self.algorithm;
        let expected = self.reference.fits(now, permits);
        let before = self.answers(now);
        let words = contents(&self.words);
        let decision = algorithm.decide(Shared::new(&self.words), now, permits);
        let plain = algorithm.decide(Exclusive::new(&mut self.plain), now, permits);
        assert_eq!(decision, plain);
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
                for &(bound, window) in &self.promises {
                    let largest = self.log.largest(window);
                    assert!(
                        largest <= bound,
                        "{largest} permits in {window:?}, promised are {bound}"
                    );
                }
                self.reference.take(now, permits, false);
                let event = self.reference.events().len() - 1;
                self.outstanding.push(Outstanding { receipt, event });
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
        // No earlier than what was published: a denial may publish a reading.
        let now = now.max(self.reference.newest());
        [Duration::ZERO, cell, width / 2, width, width + cell]
            .map(|later| answer(self.algorithm, &self.words, now.saturating_add(later)))
            .to_vec()
    }

    /// Checks each answer of the words: repeats the question on copies of them, at the time that the answer names.
    fn look(&self, now: Nanos, permits: u64) {
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
                    "{permits} permits at {ready:?}, as answered"
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
                // Before the newest reading only the words would adopt that.
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
        let booked = self.algorithm.charge(Shared::new(&self.words), now, permits);
        let plain = self
            .algorithm
            .charge(Exclusive::new(&mut self.plain), now, permits);
        assert_eq!(booked, plain);
        assert!(booked <= permits);
        if booked < permits {
            self.forgiven = true;
            self.reference.forgive();
        }
        self.reference.take(now, booked, true);
    }

    fn refund(&mut self, which: u8, permits: u8) {
        if self.outstanding.is_empty() {
            return;
        }
        // Counted from the newest: that one can be given back most often.
        let newest = self.outstanding.len() - 1;
        let which = newest - usize::from(which) % self.outstanding.len();
        let Outstanding { receipt, event } = self.outstanding.remove(which);
        let permits = u64::from(permits) % (receipt.permits() + 1);
        let before = self.answers(self.reference.newest());
        let returned = self.algorithm.refund(Shared::new(&self.words), &receipt, permits);
        let plain = self
            .algorithm
            .refund(Exclusive::new(&mut self.plain), &receipt, permits);
        assert_eq!(returned, plain);
        if permits == 0 {
            return;
        }
        if returned {
            self.log.remove(receipt.at(), permits);
            self.reference.give_back(event, permits);
            self.compare_with_never_taken();
        } else {
            assert_eq!(
                self.answers(self.reference.newest()),
                before,
                "what is refused changes nothing"
            );
        }
    }

    /// After a refund the words decide as if the permits had never been taken.
    fn compare_with_never_taken(&self) {
        if self.forgiven {
            // Without the refunded permits less would have been forgiven.
            return;
        }
        let never = fresh(self.algorithm.words());
        let bucket = matches!(self.algorithm, Any::Gcra(_));
        let mut newest = Nanos::ZERO;
        for event in self.reference.events() {
            newest = newest.max(event.now);
            // A bucket keeps the time of what was given back to it, and what comes later starts there.
            let now = if bucket { newest } else { event.now };
            let words = Shared::new(&never);
            if event.debt {
                self.algorithm.charge(words, now, event.permits);
            } else {
                let taken = self.algorithm.decide(words, now, event.permits);
                assert!(taken.is_some(), "with less spent, what was admitted still is");
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

/// Remaining, spent, and when one permit is ready.
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
        plain: fresh(algorithm.words()),
        reference: Reference::new(&setting, &algorithm),
        log: Log::default(),
        promises: setting.promises(&algorithm),
        outstanding: Vec::new(),
        readings: Vec::new(),
        forgiven: false,
        algorithm: &algorithm,
    };
    // Longer sequences find no further faults, and their cost grows with the square of their length.
    for op in ops.into_iter().take(100) {
        let mut reading = |step: Step| {
            let now = step.from(&run.readings, algorithm.window(), run.reference.cell());
            run.readings.push(now);
            now
        };
        match op {
            Op::Check { step, permits } => {
                let now = reading(step);
                // Mostly one or two permits; otherwise up to one more than a request may have.
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
            Op::Look { step, permits } => {
                let now = reading(step);
                run.look(now, u64::from(permits) % (algorithm.max_request() + 2));
            }
        }
        assert_eq!(contents(&run.words), contents(&run.plain));
    }
    Corpus::Keep
});
