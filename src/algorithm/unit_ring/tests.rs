//! The choice of cells and units, and the ends of time. The steps are proved, and compared with the proof, in `specification`.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::cells::UnitCells;
use super::ring::UnitRing;
use super::word::UnitLayout;
use crate::algorithm::attempt::Attempt;
use crate::algorithm::cell_window::{CellWindow, Variant};
use crate::algorithm::traits::Algorithm;
use crate::quota::Quota;
use crate::sync::{AtomicU64, Shared};
use crate::time::Nanos;

/// The table in the documentation of the ring.
#[test]
fn the_table_of_the_documentation_is_right() {
    let source = include_str!("ring.rs");
    let rows: Vec<&str> = source
        .lines()
        .filter(|line| line.starts_with("/// | ") && line.ends_with(" % |"))
        .collect();
    assert_eq!(rows.len(), 11);
    for row in rows {
        let fields: Vec<String> = row[4..]
            .split('|')
            .map(|field| field.trim().replace(',', ""))
            .collect();
        let limit: u64 = fields[1].parse().expect("a limit");
        for (at, window) in [1, 60, 86_400].into_iter().enumerate() {
            let quota = Quota::new(limit, core::time::Duration::from_secs(window)).expect("a quota");
            let ring = UnitRing::new(quota).expect("a ring");
            let (admitted, asked) = ring.guaranteed_share();
            let percent = (200 * admitted + asked) / (2 * asked);
            let expected = [
                format!("{} of {}", ring.cells(), ring.unit()),
                format!("{percent} %"),
            ];
            assert_eq!(fields[2 + 2 * at..4 + 2 * at], expected, "{limit} per {window} s");
        }
    }
}

/// A client that asks evenly at the limit gets its guaranteed share, from any phase.
#[test]
fn a_paced_client_gets_the_guaranteed_share() {
    for limit in [1_u64, 2, 5, 10, 30, 60, 100, 1_000] {
        let window = 60_000_000_000;
        let quota = Quota::new(limit, core::time::Duration::from_nanos(window)).expect("a quota");
        let ring = UnitRing::new(quota).expect("a ring");
        let (share, asked) = ring.guaranteed_share();
        for phase in 0..7 {
            let words = [AtomicU64::new(0)];
            let at = |n: u64| Nanos::new(phase * window / 50 + n * window / limit);
            let admitted: Vec<bool> = (0..20 * limit)
                .map(|n| ring.decide(Shared::new(&words), at(n), 1).is_some())
                .collect();
            for run in admitted.windows(usize::try_from(asked).expect("small")) {
                let admitted = run.iter().filter(|&&admitted| admitted).count() as u64;
                assert!(
                    admitted >= share,
                    "{admitted} of {asked}, {} are guaranteed",
                    share
                );
            }
        }
    }
}

#[test]
fn a_ring_says_what_it_is() {
    let ring = UnitRing::new(Quota::per_minute(60).expect("a quota")).expect("a ring");
    assert_eq!(ring.to_string(), "one word of 16 cells in units of 4");
}

#[test]
fn a_layout_without_bits_for_the_tick_is_refused() {
    assert!(UnitLayout::new(1, 61, 0).is_none());
    assert!(UnitLayout::new(1 << 40, 2, 0).is_none());
    assert!(UnitLayout::new(1, 1, 62).is_none());
    assert!(UnitLayout::new(1, 0, 1).is_none());
    assert_eq!(
        UnitLayout::new(5, 28, 0).expect("33 bits").last_tick(),
        (1 << 29) - 1
    );
}

/// Time stops at the last tick that the word can hold: later readings share its limit.
#[test]
fn readings_after_the_last_tick_charge_it() {
    // The string leaves nine bits for the tick.
    let cell_window = CellWindow::new(Variant::Strict, 40, 12);
    let ring = UnitCells::new(cell_window, 0, 1, 400).expect("a layout");
    let last = ring.cells().last();
    assert_eq!(last, 511);
    let word = AtomicU64::new(0);
    let words = || Shared::new(core::slice::from_ref(&word));
    let charged = |now, permits| match ring.attempt_or_enter(40, words(), ring.tick(now), permits) {
        Attempt::Admitted(tick) => Some(tick),
        Attempt::Denied | Attempt::Retry => None,
    };
    let ticks = |tick: u64| Nanos::new(tick - 13);
    assert_eq!(charged(ticks(last - 1), 10), Some(last - 1));
    for now in [ticks(last), ticks(last + 1), Nanos::MAX] {
        assert_eq!(charged(now, 10), Some(last));
        assert_eq!(ring.ticks().stamp(now, ring.tick(now), last), now);
    }
    for now in [Nanos::ZERO, ticks(last - 1), ticks(last + 20), Nanos::MAX] {
        assert_eq!((charged(now, 1), ring.remaining(words(), now)), (None, 0));
        assert_eq!(ring.ready_at(words(), now, 1), None);
    }
}

/// A state that the caller made has any contents, also a tick that the layout cannot hold.
#[test]
fn a_word_above_the_last_tick_counts_as_fresh() {
    let ring = UnitRing::new(Quota::per_minute(60).expect("a quota")).expect("a ring");
    let word = AtomicU64::new(u64::MAX);
    let words = || Shared::new(core::slice::from_ref(&word));
    assert_eq!(ring.spent(words(), Nanos::MAX), 0);
    assert_eq!(ring.remaining(words(), Nanos::MAX), 60);
    assert!(ring.decide(words(), Nanos::MAX, 60).is_some());
    assert_eq!(ring.remaining(words(), Nanos::MAX), 0);
}
