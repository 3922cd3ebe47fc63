//! Calls that stall between two of their steps while other calls run to their end, compared with the exact log of
//! admissions. Calls nest, so one thread has many of the interleavings of several.

#![no_main]

#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../../tests/common/mod.rs"]
mod common;

use std::cell::{Cell, RefCell};
use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::{Corpus, fuzz_target};
use ringgate::sync::{AtomicU64, Ordering, Shared, Words};
use ringgate::{Algorithm, Nanos, Receipt};
use ringgate_fuzz::{Any, Setting, Step, fresh};

use common::Log;

#[derive(Arbitrary, Debug)]
struct Call {
    step: Step,
    permits: u8,
    verb: Verb,
    /// The number of steps before this call stalls.
    stalls_after: u8,
    /// The number of calls that run while this one is stalled.
    others: u8,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Verb {
    Check,
    Refund { which: u8 },
    Charge,
    Query,
}

struct Run<'a> {
    algorithm: &'a Any,
    words: Vec<AtomicU64>,
    cell: Duration,
    calls: RefCell<std::vec::IntoIter<Call>>,
    readings: RefCell<Vec<Nanos>>,
    log: RefCell<Log>,
    /// Each with the number of its admission in the log.
    receipts: RefCell<Vec<(Receipt, usize)>>,
}

/// The words of a call that stalls before one of its steps.
#[derive(Clone, Copy)]
struct Stalling<'a> {
    run: &'a Run<'a>,
    steps: &'a Cell<u8>,
    others: u8,
    depth: u8,
}

impl Stalling<'_> {
    fn step(self) {
        match self.steps.get() {
            0 => {}
            1 => {
                self.steps.set(0);
                for _ in 0..self.others {
                    self.run.next(self.depth + 1);
                }
            }
            steps => self.steps.set(steps - 1),
        }
    }
}

impl Words for Stalling<'_> {
    fn load(self, index: usize, order: Ordering) -> u64 {
        self.step();
        Shared::new(&self.run.words).load(index, order)
    }

    fn exchange(self, index: usize, current: u64, new: u64, order: Ordering) -> Result<u64, u64> {
        self.step();
        Shared::new(&self.run.words).exchange(index, current, new, order)
    }
}

impl Run<'_> {
    /// Makes the next call. Returns false if there is none.
    fn next(&self, depth: u8) -> bool {
        // The depth is the number of calls in progress, as if each had a thread.
        if depth > 4 {
            return false;
        }
        let Some(call) = self.calls.borrow_mut().next() else {
            return false;
        };
        let now = call
            .step
            .from(&self.readings.borrow(), self.algorithm.window(), self.cell);
        self.readings.borrow_mut().push(now);
        let words = Stalling {
            run: self,
            steps: &Cell::new(call.stalls_after % 24),
            others: call.others % 6,
            depth,
        };
        let permits = match call.permits {
            permits @ ..192 => 1 + u64::from(permits % 2),
            permits @ 192.. => u64::from(permits - 192) % (self.algorithm.max_request() + 1),
        };
        match call.verb {
            Verb::Check => {
                if let Some(receipt) = self.algorithm.decide(words, now, permits) {
                    let mut log = self.log.borrow_mut();
                    log.add(receipt.at(), permits);
                    self.receipts.borrow_mut().push((receipt, log.len() - 1));
                }
            }
            Verb::Refund { which } => {
                let (receipt, admission) = {
                    let mut receipts = self.receipts.borrow_mut();
                    let Some(which) = usize::from(which).checked_rem(receipts.len()) else {
                        return true;
                    };
                    receipts.remove(which)
                };
                let permits = permits.min(receipt.permits());
                if self.algorithm.refund(words, &receipt, permits) {
                    self.log.borrow_mut().remove(admission, permits);
                }
            }
            Verb::Charge => {
                let _ = self.algorithm.charge(words, now, permits);
            }
            Verb::Query => {
                assert!(self.algorithm.remaining(words, now) <= self.algorithm.max_request());
                assert!(
                    self.algorithm
                        .ready_at(words, now, permits)
                        .is_none_or(|ready| ready >= now)
                );
            }
        }
        true
    }
}

fuzz_target!(|input: (Setting, Vec<Call>)| -> Corpus {
    let (setting, mut calls) = input;
    let Ok(algorithm) = setting.build() else {
        return Corpus::Reject;
    };
    calls.truncate(200);
    let run = Run {
        algorithm: &algorithm,
        words: fresh(algorithm.words()),
        cell: setting.window() / u32::try_from(setting.cells()).expect("at most 255 cells"),
        calls: RefCell::new(calls.into_iter()),
        readings: RefCell::default(),
        log: RefCell::default(),
        receipts: RefCell::default(),
    };
    while run.next(0) {}
    for (bound, window) in setting.bounds(&algorithm) {
        let largest = run.log.borrow().worst(window);
        assert!(
            largest <= bound,
            "{largest} permits in {window:?}, more than the bound of {bound}"
        );
    }
    Corpus::Keep
});
