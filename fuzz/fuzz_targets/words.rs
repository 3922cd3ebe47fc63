//! Readings, permits and receipts of any value. No call panics or loops for ever.
//!
//! A state of one word begins with arbitrary contents. A state of several words begins fresh, because its words rely on
//! each other: for example, an index is below the number of slots. The target `stalled` reaches the states that stalled
//! calls leave.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::{Corpus, fuzz_target};
use ringgate::sync::{AtomicU64, Shared};
use ringgate::{Algorithm, Nanos, Receipt};
use ringgate_fuzz::{Setting, fresh};

#[derive(Arbitrary, Debug)]
enum Op {
    Decide(u64, u64),
    ReadyAt(u64, u64),
    Earliest(u64, u64),
    Remaining(u64),
    Refund {
        at: u64,
        taken: u64,
        mark: Option<u64>,
        permits: u64,
    },
    Charge(u64, u64),
    Spent(u64),
    IdleAt(u64),
}

fuzz_target!(|input: (Setting, u64, Vec<Op>)| -> Corpus {
    let (setting, content, ops) = input;
    let Ok(algorithm) = setting.build() else {
        return Corpus::Reject;
    };
    let mut words = fresh(algorithm.words());
    if let [word] = words.as_mut_slice() {
        *word = AtomicU64::new(content);
    }
    let words = Shared::new(&words);
    for op in ops {
        match op {
            Op::Decide(now, permits) => {
                let _ = algorithm.decide(words, Nanos::new(now), permits);
            }
            Op::ReadyAt(now, permits) => {
                let _ = algorithm.ready_at(words, Nanos::new(now), permits);
            }
            Op::Earliest(now, permits) => {
                let _ = algorithm.earliest(words, Nanos::new(now), permits);
            }
            Op::Remaining(now) => {
                let _ = algorithm.remaining(words, Nanos::new(now));
            }
            Op::Refund {
                at,
                taken,
                mark,
                permits,
            } => {
                let mark = mark.unwrap_or_default();
                let receipt = Receipt::new(Nanos::new(at), taken, mark);
                let _ = algorithm.refund(words, &receipt, permits);
            }
            Op::Charge(now, permits) => {
                let _ = algorithm.charge(words, Nanos::new(now), permits);
            }
            Op::Spent(now) => {
                let _ = algorithm.spent(words, Nanos::new(now));
            }
            Op::IdleAt(now) => {
                let _ = algorithm.idle_at(words, Nanos::new(now));
            }
        }
    }
    Corpus::Keep
});
