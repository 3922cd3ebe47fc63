//! Compares the word with an exact log: a list of charges by cell.

use alloc::collections::BTreeMap;
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
use crate::receipt::Receipt;
use crate::sync::{AtomicU64, Shared};
use crate::time::Nanos;

/// Numbers for a random walk.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % end
    }
}

/// The permits charged to each cell, less those that were refunded.
#[derive(Default)]
struct Log(BTreeMap<u64, u64>);

impl Log {
    /// The permits that are charged to the cells from `first` on.
    fn since(&self, first: u64) -> u64 {
        self.0.range(first..).map(|(_, permits)| permits).sum()
    }
}

/// Which steps a walk makes beside admissions and advances.
#[derive(Clone, Copy)]
struct Steps {
    debt: bool,
    refunds: bool,
    older_readings: bool,
}

fn walk(limit: u64, cells: u64, unit_bits: u32, steps: Steps, seed: u64) {
    let cell_window = CellWindow::new(Variant::Strict, limit, cells);
    let Some(ring) = UnitCells::new(cell_window, unit_bits, 1, 500) else {
        return;
    };
    let layout = UnitLayout::new(limit, cells + 1, unit_bits).expect("a layout");
    let word = AtomicU64::new(0);
    let words = || Shared::new(core::slice::from_ref(&word));
    // Relaxed, here and in the steps: one thread makes the whole walk.
    let state = || word.load(core::sync::atomic::Ordering::Relaxed);
    let mut random = Random(seed);
    let mut log = Log::default();
    let mut charges: Vec<(u64, u64)> = Vec::new();
    let mut now = 0;
    for _ in 0..120 {
        let at = match random.below(4) {
            0 if steps.older_readings => Nanos::new(random.below(now + 1)),
            _ => Nanos::new(now),
        };
        let tick = ring.cells().tick(at);
        let what = format!(
            "limit {limit}, {cells} cells, unit {}, seed {seed}",
            1_u64 << unit_bits
        );
        match random.below(8) {
            0 | 1 => now += random.below(3),
            2 => now += random.below(cells + 3),
            3 if steps.refunds && !charges.is_empty() => {
                let (tick, permits) = charges.swap_remove(random.below(charges.len() as u64) as usize);
                let back = 1 + random.below(permits);
                let spent = layout.spent(state());
                let receipt = Receipt::new(Nanos::ZERO, permits, tick);
                if ring.refund(words(), &receipt, back) {
                    assert_eq!(
                        spent - layout.spent(state()),
                        back,
                        "{what}: exactly the refunded permits"
                    );
                    *log.0.get_mut(&tick).expect("a charge of the log") -= back;
                    if permits > back {
                        charges.push((tick, permits - back));
                    }
                }
            }
            4 if steps.debt => {
                let permits = 1 + random.below(2 * limit);
                ring.charge(words(), at, permits);
                let tick = layout.tick(state());
                *log.0.entry(tick).or_default() += permits;
                charges.push((tick, permits));
            }
            other => {
                let lower = 1 + random.below(limit);
                let limit = if other == 5 { lower } else { limit };
                let most = if random.below(2) == 0 { 3 } else { limit + 1 };
                let permits = 1 + random.below(most);
                let lowered = ring.with_limit(limit);
                let seen = word.load(core::sync::atomic::Ordering::Relaxed);
                let before = layout.at(seen, tick);
                let ready = (permits <= limit)
                    .then(|| lowered.ready_at(words(), at, permits))
                    .flatten();
                let left = lowered.remaining(words(), at);
                match lowered.attempt_or_enter(limit, words(), tick, permits) {
                    Attempt::Admitted(charged) => {
                        assert_eq!(ready, Some(at), "{what}");
                        assert!(permits <= left, "{what}");
                        assert_eq!(charged, layout.tick(before));
                        *log.0.entry(charged).or_default() += permits;
                        charges.push((charged, permits));
                        if !steps.debt {
                            let counted = log.since((charged + 1).saturating_sub(cells + 1));
                            assert!(
                                counted <= limit,
                                "{what}: {counted} permits in a window of {limit}"
                            );
                        }
                    }
                    Attempt::Denied => {
                        assert!(permits > left, "{what}");
                        assert_eq!(ready.is_some(), permits <= limit, "{what}");
                        let Some(ready) = ready else { continue };
                        assert!(ready > at, "{what}");
                        let fits = |tick| layout.admit(layout.at(seen, tick), limit, permits).is_some();
                        let tick = ring.cells().tick(ready);
                        assert!(
                            fits(tick) && !fits(tick - 1),
                            "{what}: the first cell that has room"
                        );
                    }
                    Attempt::Retry => unreachable!("a single thread"),
                }
            }
        }
        invariant(&layout, state(), &log, cells, steps, &what);
        idle(&ring, &layout, state(), words(), &what);
    }
}

/// For every age, the permits charged since then are at most those of the marks and of the partial unit.
fn invariant(layout: &UnitLayout, state: u64, log: &Log, cells: u64, steps: Steps, what: &str) {
    let marked = layout.spent(state);
    if layout.marks_in_window(state) > layout.most_marks() {
        // Debt may have dropped marks.
        return;
    }
    for age in 0..=cells {
        let since = log.since(layout.tick(state).saturating_sub(age));
        let marked = layout.spent_by_age(state, age);
        assert!(
            since <= marked,
            "{what}: {since} of age {age}, of which {marked} are marked"
        );
    }
    if !steps.refunds && !steps.debt {
        let since = log.since(layout.tick(state).saturating_sub(cells));
        assert!(
            marked - since < layout.unit(),
            "{what}: less than a unit counts too long"
        );
    }
}

/// The time from which the state is idle is the first one.
fn idle(ring: &UnitCells, layout: &UnitLayout, state: u64, words: Shared<'_>, what: &str) {
    let after = layout.cells_until_idle(state);
    assert_eq!(
        layout.spent(layout.at(state, layout.tick(state) + after)),
        0,
        "{what}"
    );
    assert!(
        after == 0 || layout.spent(layout.at(state, layout.tick(state) + after - 1)) > 0,
        "{what}"
    );
    let idle = ring.idle_at(words, Nanos::ZERO).expect("time does not end");
    assert!(
        ring.is_idle(
            state,
            idle.max(
                ring.latest_time(state)
                    .saturating_add(core::time::Duration::from_nanos(1))
            )
        )
    );
}

fn walks(steps: Steps) {
    let seeds = 5;
    for limit in [1, 2, 3, 4, 5, 6, 7, 9, 12, 17, 24, 30, 40, 64, 100, 1_000] {
        for cells in [1, 2, 3, 5, 8, 16] {
            for unit_bits in 0..10 {
                for seed in 1..=seeds {
                    walk(limit, cells, unit_bits, steps, seed);
                }
            }
        }
    }
}

#[test]
fn a_window_never_holds_more_than_the_limit() {
    walks(Steps {
        debt: false,
        refunds: false,
        older_readings: true,
    });
}

#[test]
fn refunds_release_exactly_their_permits() {
    walks(Steps {
        debt: false,
        refunds: true,
        older_readings: true,
    });
}

#[test]
fn debt_counts_for_a_whole_window() {
    walks(Steps {
        debt: true,
        refunds: false,
        older_readings: true,
    });
}

#[test]
fn debt_and_refunds_together_keep_the_marks() {
    walks(Steps {
        debt: true,
        refunds: true,
        older_readings: true,
    });
}

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
        assert_eq!(ring.cells().ticks().stamp(now, ring.tick(now), last), now);
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
