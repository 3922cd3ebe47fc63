//! Models of the counter ring, wide and packed, and of the unit ring.

use core::time::Duration;

use ringgate::algorithm::CounterRingBuilder;
use ringgate::{CounterRing, Quota, UnitRing};

use super::harness::{BOUNDED, Call::*, FULL};

/// Nanoseconds in a cell.
const W: u64 = 1_000;

/// A window of `cells` cells of 1 µs.
fn ring(limit: u64, cells: u64) -> CounterRingBuilder {
    let quota = Quota::new(limit, Duration::from_nanos(cells * W)).unwrap();
    CounterRing::builder(quota).cells(cells).unpacked()
}

/// A strict ring of several words, in its form for a limiter or in that for a table, of a limit and a number of cells.
pub(super) type Form = fn(u64, u64) -> CounterRing;

/// The form for a limiter.
fn wide(limit: u64, cells: u64) -> CounterRing {
    ring(limit, cells).build().unwrap()
}

/// Two threads enter one cell concurrently and request its last permit.
pub(super) fn one_cell(ring: Form) {
    BOUNDED.run(ring(2, 1), &[], &[&[Check(0, 1), Check(0, 1)], &[Check(0, 1)]]);
}

/// One thread is a cell ahead of the other by one nanosecond. A charge at the end of a cell is in the sum at the
/// beginning of the next cell.
pub(super) fn adjacent_cells(ring: Form) {
    BOUNDED.up_to(2).run(
        ring(2, 1),
        &[],
        &[&[Check(W - 1, 1), Check(W, 1)], &[Check(W, 1), Check(W - 1, 1)]],
    );
}

/// A charge in the last cell is still in the sum when two threads enter the next cell.
pub(super) fn entering_carries_the_sum(ring: Form) {
    BOUNDED.up_to(2).run(
        ring(3, 2),
        &[Check(0, 1), Check(W, 1)],
        &[
            &[Check(2 * W, 1), Check(2 * W, 1)],
            &[Check(2 * W, 1), Check(3 * W, 1)],
        ],
    );
}

/// A refund races with the entry of the next cell. It is exact in the cell of its receipt. In a later cell, the
/// permits may count until the cell after it.
pub(super) fn refund_against_entering(ring: Form) {
    BOUNDED.with_late_refunds().run(
        ring(1, 1),
        &[],
        &[&[Check(0, 1), Refund(1)], &[Check(W, 1), Check(0, 1)]],
    );
    BOUNDED.with_late_refunds().run(
        ring(2, 1),
        &[Check(0, 1)],
        &[&[Check(0, 1), Refund(1)], &[Check(0, 1), Check(2 * W, 2)]],
    );
}

/// A charge in one cell is not refunded in another.
pub(super) fn refund_in_a_later_cell(ring: Form) {
    BOUNDED.with_late_refunds().up_to(2).run(
        ring(2, 1),
        &[],
        &[&[Check(0, 1), Refund(1)], &[Check(2 * W - 1, 1), Check(2 * W, 2)]],
    );
}

/// Two refunds of different cells raise the same slot and the same base. Each counts, and counts once.
pub(super) fn refund_beside_a_refund_of_another_cell(ring: Form) {
    FULL.inheriting().run(
        ring(3, 3),
        &[Check(0, 1), Check(W, 1), Check(2 * W, 1)],
        &[&[Refund(1)], &[Refund(1)]],
    );
    // The second refund is to the current cell.
    FULL.inheriting().run(
        ring(3, 2),
        &[Check(0, 1), Check(W, 1)],
        &[&[Refund(1)], &[Refund(1), Check(W, 2)]],
    );
    BOUNDED.inheriting().up_to(2).run(
        ring(3, 3),
        &[Check(0, 1), Check(W, 1), Check(2 * W, 1)],
        &[&[Refund(1)], &[Refund(1)], &[Check(2 * W, 1)]],
    );
}

/// The next cell is entered while a refund of an older cell raises slots and base. The refunded permits are never
/// subtracted twice.
pub(super) fn refund_of_an_older_cell_against_entering(ring: Form) {
    BOUNDED.inheriting().with_late_refunds().up_to(2).run(
        ring(3, 2),
        &[Check(0, 1), Check(W, 2)],
        &[&[Refund(1)], &[Check(2 * W, 2)]],
    );
    // The other order of the threads is a separate model, because loom goes back only to the last access of a word.
    BOUNDED.inheriting().with_late_refunds().up_to(2).run(
        ring(3, 2),
        &[Check(0, 1), Check(0, 1), Check(W, 1)],
        &[&[Check(2 * W, 2)], &[Refund(1)]],
    );
    BOUNDED.inheriting().with_late_refunds().up_to(2).run(
        ring(3, 2),
        &[Check(0, 1), Check(W, 2)],
        &[&[Refund(1)], &[Check(2 * W, 1), Check(3 * W, 1)]],
    );
    BOUNDED.inheriting().with_late_refunds().up_to(2).run(
        ring(3, 2),
        &[Check(0, 1), Check(W, 1)],
        &[&[Refund(1)], &[Refund(1)], &[Check(2 * W, 3)]],
    );
}

/// A refund stalls while the ring goes on for more than a lap. Its later writes must change nothing.
pub(super) fn refund_sleeps_for_a_lap(ring: Form) {
    BOUNDED.inheriting().with_late_refunds().run(
        ring(1, 1),
        &[Check(0, 1), Check(W, 1)],
        &[&[Refund(1)], &[Check(2 * W, 1), Check(4 * W, 1), Check(5 * W, 1)]],
    );
}

#[test]
fn wide_one_cell() {
    one_cell(wide);
}

/// Two threads enter one cell concurrently. One requests too much, and the other must get its permit.
#[test]
fn wide_one_cell_with_a_denial() {
    BOUNDED.run(
        wide(1, 1),
        &[Check(0, 1)],
        &[&[Check(2 * W, 2)], &[Check(2 * W, 1)]],
    );
}

/// A refund during the entry of a cell.
#[test]
fn wide_refund_while_entering() {
    BOUNDED.with_late_refunds().run(
        wide(2, 1),
        &[Check(0, 1)],
        &[&[Check(0, 1), Refund(1)], &[Check(W, 1)]],
    );
}

#[test]
fn wide_adjacent_cells() {
    adjacent_cells(wide);
}

/// An older reading adopts the newer cell and gets its time, because its own cell may be full.
#[test]
fn wide_older_reading() {
    BOUNDED.run(
        wide(1, 1),
        &[Check(W / 2, 1)],
        &[&[Check(2 * W, 2)], &[Check(W / 2, 1)]],
    );
}

/// A thread stalls while it enters a cell, and the ring goes on for more than a lap. The later writes of the thread
/// must change nothing.
#[test]
fn wide_sleeper_for_a_lap() {
    BOUNDED.run(
        wide(1, 1),
        &[Check(0, 1)],
        &[
            &[Check(2 * W, 1)],
            &[Check(2 * W, 1), Check(4 * W, 1), Check(5 * W, 1)],
        ],
    );
}

/// A thread stalls for a lap of a ring with two cells to a window, where the base is not the current slot.
#[test]
fn wide_sleeper_with_two_cells() {
    BOUNDED.run(
        wide(2, 2),
        &[Check(0, 1), Check(W, 1)],
        &[&[Check(2 * W, 1)], &[Check(3 * W, 1), Check(5 * W, 1)]],
    );
}

#[test]
fn wide_entering_carries_the_sum() {
    entering_carries_the_sum(wide);
}

/// Two threads enter a cell whose slot replaces the only other slot. The sum of the old slot is in the base before,
/// so no thread loses it. A ring has a single slot if it is strict with one cell, or classic with two.
#[test]
fn wide_slot_is_replaced() {
    BOUNDED.run(wide(1, 1), &[Check(W - 1, 1)], &[&[Check(W, 2)], &[Check(W, 1)]]);
    BOUNDED.run(
        ring(2, 2).classic().build().unwrap(),
        &[Check(W - 1, 2)],
        &[&[Check(W, 1)], &[Check(W, 1)]],
    );
}

/// An open cell has a slot. The base of a later cell is computed from that slot.
#[test]
fn wide_slot_of_an_open_cell() {
    BOUNDED.up_to(2).run(
        wide(2, 2),
        &[],
        &[&[Check(2 * W, 1)], &[Check(2 * W, 1), Check(4 * W, 2)]],
    );
}

/// A thread reads while a slot is replaced. The base has the sum that the slot no longer has.
#[test]
fn wide_queries_while_a_slot_is_replaced() {
    BOUNDED.run(wide(1, 1), &[Check(0, 1)], &[&[Check(W, 1)], &[Remaining(W)]]);
    BOUNDED.run(wide(1, 1), &[Check(0, 1)], &[&[Check(W, 1)], &[ReadyAt(W, 1)]]);
}

#[test]
fn wide_refund_against_entering() {
    refund_against_entering(wide);
}

#[test]
fn wide_refund_in_a_later_cell() {
    refund_in_a_later_cell(wide);
}

#[test]
fn wide_refund_beside_a_refund_of_another_cell() {
    refund_beside_a_refund_of_another_cell(wide);
}

#[test]
fn wide_refund_of_an_older_cell_against_entering() {
    refund_of_an_older_cell_against_entering(wide);
}

/// A refund raises a slot that the slot of a new cell is about to replace. The new slot is still published.
#[test]
fn wide_refund_while_a_slot_is_published() {
    BOUNDED.inheriting().with_late_refunds().run(
        wide(3, 2),
        &[Check(0, 1), Check(W, 1)],
        &[&[Refund(1)], &[Check(2 * W, 1), Check(4 * W, 3)]],
    );
}

#[test]
fn wide_refund_sleeps_for_a_lap() {
    refund_sleeps_for_a_lap(wide);
}

/// Debt is charged to the capacity that a refund has made, and another thread enters the next cell. That thread
/// observes the slots that the refund has raised.
#[test]
fn wide_refund_charge_and_entering() {
    BOUNDED.inheriting().with_late_refunds().up_to(2).run(
        wide(1, 2),
        &[Check(0, 1), Check(W, 1)],
        &[&[Refund(1)], &[Charge(W, 9)], &[Check(2 * W, 1)]],
    );
}

/// Debt is charged during an admission, and during the entry of a cell.
#[test]
fn wide_charge() {
    BOUNDED
        .up_to(2)
        .run(wide(2, 1), &[], &[&[Charge(0, 3), Check(W, 1)], &[Check(0, 1)]]);
}

/// Read-only calls write nothing, while cells are entered and charged.
#[test]
fn wide_queries() {
    BOUNDED
        .up_to(2)
        .run(wide(2, 2), &[Check(0, 1)], &[&[Check(W, 1)], &[Remaining(W)]]);
    BOUNDED
        .up_to(2)
        .run(wide(2, 2), &[Check(0, 1)], &[&[Check(W, 1)], &[ReadyAt(W, 2)]]);
    BOUNDED
        .up_to(2)
        .run(wide(2, 2), &[Check(0, 1)], &[&[Check(3 * W, 1)], &[Remaining(W)]]);
    // While the cell is being entered, the base is that of an earlier cell, whose permits no longer count.
    BOUNDED.up_to(2).run(
        wide(2, 2),
        &[Check(0, 2)],
        &[&[Check(3 * W, 1)], &[Remaining(3 * W)]],
    );
    // The cell of the call is entered and left meanwhile. The one preemption is that of the reading thread.
    BOUNDED.up_to(1).run(
        wide(2, 1),
        &[Check(W, 1), Check(2 * W, 1)],
        &[&[Check(3 * W, 1), Check(4 * W, 1)], &[Remaining(3 * W)]],
    );
    // Neither the slot nor the base has the cell of the call any more.
    BOUNDED.run(wide(2, 1), &[Check(W, 2)], &[&[Check(2 * W, 1)], &[Remaining(W)]]);
}

/// The base may belong to a later cell than the control word that was read before it, and more permits were admitted
/// in between.
#[test]
fn wide_capacity_of_the_present_cell() {
    // The one preemption is that of the reading thread. With two, this model takes 18 s of a processor.
    BOUNDED.up_to(1).run(
        wide(2, 1),
        &[Check(W, 1), Check(2 * W, 1)],
        &[&[Check(3 * W, 1), Check(4 * W, 1)], &[Remaining(2 * W)]],
    );
}

/// A thread reads the control word and stalls. When it reads the base, the base belongs to a later cell. A permit is
/// available at every reading of the thread.
#[test]
fn wide_denial_of_the_past() {
    BOUNDED.run(
        wide(2, 1),
        &[Check(0, 1)],
        &[&[Check(0, 1)], &[Check(2 * W, 1), Check(4 * W, 1)]],
    );
}

/// Each cell has its own share.
#[test]
fn wide_even() {
    BOUNDED.up_to(2).run(
        ring(2, 2).even().build().unwrap(),
        &[],
        &[&[Check(0, 1), Check(W, 1)], &[Check(0, 1)]],
    );
}

/// Two windows, of one and of three cells, over one control word.
#[test]
fn wide_two_windows() {
    let quota = |limit, cells| Quota::new(limit, Duration::from_nanos(cells * W)).unwrap();
    let both = CounterRing::builder(quota(1, 1))
        .also(quota(1, 3))
        .cells(1)
        .unpacked()
        .build()
        .unwrap();
    BOUNDED
        .and_within(1, 3 * W)
        .run(both, &[Check(0, 1)], &[&[Check(2 * W, 1)], &[Check(2 * W, 1)]]);
}

/// Refunds and entries of cells with two windows. Each window is raised separately, also where the permits are in its
/// current cell.
#[test]
fn wide_refund_in_two_windows() {
    let quota = |limit, cells| Quota::new(limit, Duration::from_nanos(cells * W)).unwrap();
    let both = || {
        CounterRing::builder(quota(3, 1))
            .also(quota(4, 3))
            .cells(1)
            .unpacked()
            .build()
            .unwrap()
    };
    FULL.inheriting().and_within(4, 3 * W).run(
        both(),
        &[Check(0, 1), Check(W, 1)],
        &[&[Refund(1)], &[Refund(1), Check(W, 2)]],
    );
    BOUNDED
        .inheriting()
        .unordered()
        .up_to(2)
        .and_within(4, 3 * W)
        .run(
            both(),
            &[Check(2 * W, 1), Check(3 * W - 1, 2)],
            &[&[Refund(1)], &[Check(3 * W, 2), Check(4 * W, 2)]],
        );
}

fn packed(limit: u64, cells: u64) -> CounterRing {
    let quota = Quota::new(limit, Duration::from_secs(cells)).unwrap();
    CounterRing::builder(quota).cells(cells).build().unwrap()
}

const SEC: u64 = 1_000_000_000;

#[test]
fn packed_one_cell() {
    FULL.run(packed(2, 1), &[], &[&[Check(0, 1), Check(0, 1)], &[Check(0, 1)]]);
    FULL.run(packed(3, 1), &[], &[&[Check(0, 2)], &[Check(0, 2)]]);
}

#[test]
fn packed_adjacent_cells() {
    FULL.run(
        packed(2, 1),
        &[],
        &[
            &[Check(SEC - 1, 1), Check(SEC, 1)],
            &[Check(SEC, 1), Check(SEC - 1, 1)],
        ],
    );
    FULL.run(
        packed(1, 2),
        &[Check(0, 1)],
        &[
            &[Check(2 * SEC, 1), Check(3 * SEC, 1)],
            &[Check(3 * SEC, 1), Check(5 * SEC, 1)],
        ],
    );
}

/// An older reading adopts the newer cell and gets its time, because its own cell may be full.
#[test]
fn packed_older_reading() {
    FULL.run(
        packed(2, 1),
        &[Check(SEC / 2, 2)],
        &[&[Check(2 * SEC, 1)], &[Check(SEC / 2, 1)]],
    );
}

#[test]
fn packed_refund() {
    FULL.run(
        packed(2, 1),
        &[],
        &[
            &[Check(0, 2), Refund(1)],
            &[Check(0, 1), Check(SEC, 1), Refund(1)],
        ],
    );
}

#[test]
fn packed_refund_in_a_later_cell() {
    FULL.run(
        packed(2, 1),
        &[],
        &[
            &[Check(0, 1), Refund(1)],
            &[Check(2 * SEC - 1, 1), Check(2 * SEC, 2)],
        ],
    );
}

/// Refunds of two cells, while the next cell is entered.
#[test]
fn packed_refund_of_older_cells() {
    FULL.inheriting().run(
        packed(3, 2),
        &[Check(0, 1), Check(SEC, 2)],
        &[&[Refund(1)], &[Refund(2), Check(2 * SEC, 3)]],
    );
}

#[test]
fn packed_charge() {
    FULL.run(
        packed(2, 2),
        &[Check(0, 1)],
        &[&[Charge(SEC, 5), Check(3 * SEC, 1)], &[Check(SEC, 1), Refund(1)]],
    );
}

/// A hundred permits a second: units of 8 permits, in 13 cells.
fn units() -> UnitRing {
    let ring = UnitRing::new(Quota::per_second(100).unwrap()).unwrap();
    assert_eq!((ring.unit(), ring.cells()), (8, 13));
    ring
}

/// Two threads fill the last unit, for which both together have too many permits.
#[test]
fn unit_last_unit() {
    FULL.run(
        units(),
        &[Check(0, 93)],
        &[&[Check(0, 4), Check(SEC / 2, 1)], &[Check(0, 4)]],
    );
}

/// A refund of a part of a unit moves its other permits to the newest cell, while another thread enters that cell.
#[test]
fn unit_refund_of_a_part() {
    FULL.inheriting().run(
        units(),
        &[Check(0, 95)],
        &[&[Refund(3)], &[Check(SEC / 2, 7), Check(SEC / 2, 8)]],
    );
}

/// Debt of a whole window, while another thread has an older reading.
#[test]
fn unit_charge() {
    FULL.run(
        units(),
        &[Check(0, 5)],
        &[
            &[Charge(SEC / 2, 200), Check(SEC / 2, 1)],
            &[Check(0, 90), Refund(9)],
        ],
    );
}
