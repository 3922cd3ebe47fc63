//! Histories, and the run of one subject through one history.

use proptest::prelude::*;
use proptest::test_runner::Config;
use ringgate::{Algorithm, Nanos, Receipt};

pub(crate) use super::subjects::{
    Kind, Ring, cell_of, exact, limiter_subject, nanos, quota, ring, subject, window,
};
use crate::common::{Any, Log, State};

/// Fifteen years of 365 days in nanoseconds, which every representation can hold.
pub(crate) const HORIZON: u64 = 15 * 365 * 24 * 3600 * 1_000_000_000;

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

/// A move of the clock.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Move {
    Stay,
    Nanos(u64),
    /// Thousandths of the window.
    Permille(u64),
    /// To the last nanosecond of the current cell.
    CellEnd,
    /// To the first nanosecond of the next cell.
    NextCell,
    /// One window, and this much more or less.
    Window(i64),
    Days(u64),
    /// Back by thousandths of the window.
    Back(u64),
    To(u64),
}

impl Move {
    pub(crate) fn apply(self, now: u64, window: u64, cell: u64) -> u64 {
        match self {
            Self::Stay => now,
            Self::Nanos(nanos) => now.saturating_add(nanos),
            Self::Permille(part) => now.saturating_add(thousandths(window, part)),
            Self::CellEnd => now.saturating_add(cell - 1 - now % cell),
            Self::NextCell => now.saturating_add(cell - now % cell),
            Self::Window(more) => now.saturating_add(window).saturating_add_signed(more),
            Self::Days(days) => now.saturating_add(days * 24 * 3600 * 1_000_000_000),
            Self::Back(part) => now.saturating_sub(thousandths(window, part)),
            Self::To(instant) => instant,
        }
    }
}

/// The permits of a request, relative to the most that one request can get.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Size {
    Exactly(u64),
    Permille(u64),
    Most,
    TooMany,
    Huge,
}

impl Size {
    pub(crate) fn of(self, most: u64) -> u64 {
        match self {
            Self::Exactly(permits) => permits,
            Self::Permille(part) => thousandths(most, part),
            Self::Most => most,
            Self::TooMany => most + 1,
            Self::Huge => u64::MAX,
        }
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

pub(crate) fn forward() -> impl Strategy<Value = Move> + Clone {
    prop_oneof![
        6 => Just(Move::Stay),
        2 => (1..4_u64).prop_map(Move::Nanos),
        6 => (0..400_u64).prop_map(Move::Permille),
        1 => (400..3000_u64).prop_map(Move::Permille),
        2 => Just(Move::CellEnd),
        3 => Just(Move::NextCell),
        3 => (-2..=2_i64).prop_map(Move::Window),
    ]
}

/// Forward, back, by decades, and to both ends of time.
pub(crate) fn anywhere() -> impl Strategy<Value = Move> + Clone {
    prop_oneof![
        12 => forward(),
        3 => (0..3000_u64).prop_map(Move::Back),
        1 => (0..9000_u64).prop_map(Move::Days),
        1 => prop_oneof![
            Just(0),
            Just(1),
            Just(u64::MAX >> 1),
            Just((u64::MAX >> 1) - 1),
            Just(u64::MAX),
            any::<u64>(),
            0..HORIZON,
        ].prop_map(Move::To),
    ]
}

/// Forward and back, within the horizon.
pub(crate) fn back_and_forth() -> impl Strategy<Value = Move> + Clone {
    prop_oneof![
        12 => forward(),
        3 => (0..3000_u64).prop_map(Move::Back),
        1 => (0..30_u64).prop_map(Move::Days),
    ]
}

pub(crate) fn size() -> impl Strategy<Value = Size> + Clone {
    prop_oneof![
        1 => Just(Size::Exactly(0)),
        8 => Just(Size::Exactly(1)),
        3 => (1..4_u64).prop_map(Size::Exactly),
        3 => (0..1000_u64).prop_map(Size::Permille),
        2 => Just(Size::Most),
        1 => Just(Size::TooMany),
        1 => Just(Size::Huge),
    ]
}

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

pub(crate) fn asks_and_refunds() -> impl Strategy<Value = Act> + Clone {
    prop_oneof![
        4 => asks(),
        1 => (0..4_usize, 0..=1000_u64).prop_map(|(which, part)| Act::Refund(which, part)),
    ]
}

pub(crate) fn acts() -> impl Strategy<Value = Act> + Clone {
    prop_oneof![
        8 => asks_and_refunds(),
        1 => prop_oneof![4 => small_debt(), 1 => size()].prop_map(Act::Charge),
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

fn thousandths(whole: u64, part: u64) -> u64 {
    u64::try_from(u128::from(whole) * u128::from(part) / 1000).unwrap_or(u64::MAX)
}
