//! Histories, and the run of one subject through one history.

use proptest::prelude::*;
use proptest::test_runner::Config;
use ringgate::{Algorithm, Nanos, Receipt};

pub(crate) use super::subjects::{
    Ring, cell_of, exact, limiter_subject, nanos, quota, ring, subject, window,
};
use crate::common::{Any, Log, State};
use crate::moves::thousandths;
pub(crate) use crate::moves::{HORIZON, Move, Size, anywhere, back_and_forth, forward, size};

/// The number of cases of each property.
pub(crate) fn config() -> Config {
    Config {
        // In WebAssembly, `ci/wasm.sh` chooses.
        cases: if cfg!(target_family = "wasm") {
            Config::default().cases
        } else {
            256
        },
        failure_persistence: None,
        ..Config::default()
    }
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Ask(Size),
    /// Refunds thousandths of one of the held charges. Number 0 is the newest.
    Refund(usize, u64),
    Charge(Size),
}

pub(crate) type Op = (Move, Act);

/// Debts that every representation of a ring can charge in full: at most the limit and one more.
pub(crate) fn small_debt() -> impl Strategy<Value = Size> + Clone {
    prop_oneof![
        (0..3_u64).prop_map(Size::Exactly),
        (0..1000_u64).prop_map(Size::Permille),
        Just(Size::TooMany),
    ]
}

pub(crate) fn asks() -> impl Strategy<Value = Act> + Clone {
    size().prop_map(Act::Ask)
}

pub(crate) fn acts() -> impl Strategy<Value = Act> + Clone {
    prop_oneof![
        32 => asks(),
        8 => (0..4_usize, 0..=1000_u64).prop_map(|(which, part)| Act::Refund(which, part)),
        5 => prop_oneof![4 => small_debt(), 1 => size()].prop_map(Act::Charge),
    ]
}

pub(crate) fn history(
    moves: impl Strategy<Value = Move>,
    acts: impl Strategy<Value = Act>,
) -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec((moves, acts), 1..80)
}

/// One caller's run through a history.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    pub(crate) algorithm: &'a Any,
    pub(crate) state: State,
    /// The caller's own reading.
    pub(crate) now: u64,
    /// The newest reading of all callers.
    pub(crate) newest: u64,
    pub(crate) log: Log,
    held: Vec<(Receipt, usize)>,
    /// Whether a charge ever exceeded the limit.
    pub(crate) in_debt: bool,
    window: u64,
    cell: u64,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Admitted(u64),
    Denied(u64),
    GivenBack(bool),
    Booked,
    Nothing,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(algorithm: &'a Any) -> Self {
        Self {
            algorithm,
            state: State::fresh(algorithm),
            now: 0,
            newest: 0,
            log: Log::default(),
            held: Vec::new(),
            in_debt: false,
            window: nanos(algorithm.window()),
            cell: cell_of(algorithm),
        }
    }

    /// A run that has followed this history.
    pub(crate) fn after(algorithm: &'a Any, history: Vec<Op>) -> Self {
        let mut walk = Self::new(algorithm);
        for op in history {
            walk.step(op);
        }
        walk
    }

    pub(crate) fn at(&self) -> Nanos {
        Nanos::new(self.now)
    }

    pub(crate) fn go(&mut self, step: Move) {
        self.now = step.apply(self.now, self.window, self.cell);
        self.newest = self.newest.max(self.now);
    }

    pub(crate) fn ask(&mut self, permits: u64) -> Outcome {
        match self.algorithm.decide(self.state.shared(), self.at(), permits) {
            Some(receipt) => {
                self.log.add(receipt.at(), receipt.permits());
                assert_eq!(receipt.permits(), permits);
                self.held.push((receipt, self.log.len() - 1));
                Outcome::Admitted(permits)
            }
            None => Outcome::Denied(permits),
        }
    }

    pub(crate) fn step(&mut self, (step, act): Op) -> Outcome {
        self.go(step);
        self.act(act)
    }

    pub(crate) fn act(&mut self, act: Act) -> Outcome {
        match act {
            Act::Ask(size) => self.ask(size.of(self.algorithm.max_request())),
            Act::Refund(which, part) => {
                let Some(which) = self.held.len().checked_sub(which + 1) else {
                    return Outcome::Nothing;
                };
                // A receipt can be refunded once.
                let (receipt, index) = self.held.remove(which);
                let permits = thousandths(receipt.permits(), part);
                let done = self.algorithm.refund(self.state.shared(), &receipt, permits);
                if done {
                    self.log.remove(index, permits);
                }
                Outcome::GivenBack(done)
            }
            Act::Charge(size) => {
                let permits = size.of(self.algorithm.max_request());
                let booked = self.algorithm.charge(self.state.shared(), self.at(), permits);
                assert!(booked <= permits);
                self.in_debt |= permits > 0;
                Outcome::Booked
            }
        }
    }
}
