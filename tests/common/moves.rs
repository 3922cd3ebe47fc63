//! The steps of random histories: moves of the clock, which cluster at the edges of cells and windows, and permits.

use proptest::prelude::*;

/// Fifteen years of 365 days in nanoseconds, which every representation can hold.
pub(crate) const HORIZON: u64 = 15 * 365 * 24 * 3600 * 1_000_000_000;

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

pub(crate) fn thousandths(whole: u64, part: u64) -> u64 {
    u64::try_from(u128::from(whole) * u128::from(part) / 1000).unwrap_or(u64::MAX)
}
