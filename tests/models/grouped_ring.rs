//! Models of the form that a counter ring of one window has in a table: several counts in a slot.
//!
//! A window of one cell has one slot with one count, two cells have two such slots, and three cells have two slots with two
//! counts. So a few cells go through all slots. The scenarios of both forms are in `counter_ring`.

use core::time::Duration;

use ringgate::algorithm::Reclaim;
use ringgate::{CounterRing, Quota};

use super::counter_ring;
use super::harness::{BOUNDED, Call, Call::*, FULL};

/// Nanoseconds in a cell.
const W: u64 = 1_000;

/// The calls of each thread.
type Threads = &'static [&'static [Call]];

/// A window of `cells` cells of 1 µs.
fn ring(limit: u64, cells: u64) -> CounterRing {
    let quota = Quota::new(limit, Duration::from_nanos(cells * W)).unwrap();
    let ring = CounterRing::builder(quota).cells(cells).unpacked().build();
    ring.unwrap().for_table(limit).unwrap()
}

#[test]
fn grouped_one_cell() {
    counter_ring::one_cell(ring);
}

/// Two threads enter one cell concurrently. One requests too much, and the other must get its permit.
#[test]
fn grouped_one_cell_in_full() {
    FULL.run(
        ring(1, 1),
        &[Check(0, 1)],
        &[&[Check(2 * W, 2)], &[Check(2 * W, 1)]],
    );
}

#[test]
fn grouped_adjacent_cells() {
    counter_ring::adjacent_cells(ring);
}

/// A thread stalls while it enters a cell, and the ring goes on for more than a lap. The later writes of the thread must
/// change nothing.
#[test]
fn grouped_sleeper_for_a_lap() {
    BOUNDED.run(
        ring(1, 1),
        &[Check(0, 1)],
        &[&[Check(W, 1)], &[Check(W, 1), Check(3 * W, 1)]],
    );
    BOUNDED.up_to(2).run(
        ring(1, 1),
        &[Check(0, 1)],
        &[
            &[Check(2 * W, 1)],
            &[Check(2 * W, 1), Check(4 * W, 1), Check(5 * W, 1)],
        ],
    );
}

/// A thread stalls while it publishes a count, until other counts are in the slot and its cell is in the base of a later one.
#[test]
fn grouped_sleeper_with_two_cells() {
    BOUNDED.up_to(2).run(
        ring(2, 2),
        &[Check(0, 1), Check(W, 1)],
        &[&[Check(2 * W, 1)], &[Check(3 * W, 1), Check(5 * W, 1)]],
    );
}

#[test]
fn grouped_entering_carries_the_sum() {
    counter_ring::entering_carries_the_sum(ring);
}

/// Two cells share a slot. Two threads publish the second count, and then replace the slot of an older group.
#[test]
fn grouped_counts_share_a_slot() {
    BOUNDED.up_to(2).run(
        ring(3, 3),
        &[Check(0, 1), Check(W, 1)],
        &[&[Check(2 * W, 1)], &[Check(2 * W, 2), Check(3 * W, 1)]],
    );
    BOUNDED.up_to(2).run(
        ring(2, 3),
        &[Check(W, 1), Check(2 * W, 1)],
        &[&[Check(4 * W, 1)], &[Check(4 * W, 1), Check(5 * W, 1)]],
    );
}

/// A cell is entered that no longer sums the cell before. Its base is 0, and the count of that cell is not published.
#[test]
fn grouped_entering_after_a_jump() {
    BOUNDED.up_to(2).run(
        ring(2, 2),
        &[Check(0, 2)],
        &[&[Check(3 * W, 1), Check(3 * W, 1)], &[Check(3 * W, 1)]],
    );
    BOUNDED.up_to(2).run(
        ring(2, 2),
        // A window that ends in cell 2 has these permits.
        &[Check(W / 2, 2)],
        &[&[Check(3 * W, 1)], &[Check(2 * W, 1), Check(3 * W, 1)]],
    );
}

#[test]
fn grouped_refund_against_entering() {
    counter_ring::refund_against_entering(ring);
}

#[test]
fn grouped_refund_in_a_later_cell() {
    counter_ring::refund_in_a_later_cell(ring);
}

#[test]
fn grouped_refund_beside_a_refund_of_another_cell() {
    counter_ring::refund_beside_a_refund_of_another_cell(ring);
}

#[test]
fn grouped_refund_of_an_older_cell_against_entering() {
    counter_ring::refund_of_an_older_cell_against_entering(ring);
}

/// A refund lowers a count in the slot in which the next count is about to be published. Neither is lost.
#[test]
fn grouped_refund_while_a_count_is_published() {
    BOUNDED.inheriting().with_late_refunds().run(
        ring(3, 3),
        &[Check(0, 1), Check(W, 1)],
        &[&[Refund(1)], &[Check(2 * W, 1), Check(3 * W, 2)]],
    );
    BOUNDED.inheriting().with_late_refunds().run(
        ring(3, 2),
        &[Check(0, 1), Check(W, 1)],
        &[&[Refund(1)], &[Check(2 * W, 1), Check(4 * W, 3)]],
    );
}

#[test]
fn grouped_refund_sleeps_for_a_lap() {
    counter_ring::refund_sleeps_for_a_lap(ring);
}

/// A thread admits because of a refund, and another thread enters the next cell. That thread observes the lowered count.
#[test]
fn grouped_admission_after_a_refund() {
    BOUNDED.inheriting().with_late_refunds().up_to(2).run(
        ring(2, 2),
        &[Check(0, 2), Check(W, 1)],
        &[&[Refund(1)], &[Check(W, 1), Check(2 * W, 1)]],
    );
    BOUNDED.inheriting().with_late_refunds().up_to(2).run(
        ring(2, 2),
        &[Check(0, 2), Check(W, 1)],
        &[&[Refund(2)], &[Check(W, 2)], &[Check(2 * W, 1)]],
    );
}

/// Debt is charged during an admission, during the entry of a cell, and to the capacity that a refund has made.
#[test]
fn grouped_charge() {
    BOUNDED
        .up_to(2)
        .run(ring(2, 1), &[], &[&[Charge(0, 3), Check(W, 1)], &[Check(0, 1)]]);
    BOUNDED.inheriting().with_late_refunds().up_to(2).run(
        ring(1, 2),
        &[Check(0, 1), Check(W, 1)],
        &[&[Refund(1)], &[Charge(W, 9)], &[Check(2 * W, 1)]],
    );
}

/// Read-only calls write nothing, while cells are entered and charged.
#[test]
fn grouped_queries() {
    let queries: [Threads; 2] = [
        &[&[Check(W, 1)], &[Remaining(W)]],
        &[&[Check(W, 1)], &[ReadyAt(2 * W, 1)]],
    ];
    for threads in queries {
        FULL.run(ring(1, 1), &[Check(0, 1)], threads);
    }
    // While the cell is being entered, the base is that of an earlier cell, whose permits may no longer count.
    let queries: [Threads; 3] = [
        &[&[Check(W, 1)], &[ReadyAt(W, 2)]],
        &[&[Check(3 * W, 1)], &[Remaining(3 * W)]],
        &[&[Check(3 * W, 1)], &[ReadyAt(3 * W, 2)]],
    ];
    for threads in queries {
        BOUNDED.up_to(2).run(ring(2, 2), &[Check(0, 2)], threads);
    }
    // The cell of the call is entered and left meanwhile, and the slot of an older cell is replaced.
    BOUNDED.up_to(2).run(
        ring(3, 2),
        &[Check(W, 1), Check(2 * W, 1)],
        &[&[Check(3 * W, 1), Check(4 * W, 1)], &[Remaining(3 * W)]],
    );
}

/// A thread reads the control word and stalls. When it reads the refunds, they belong to a later cell. So the thread cannot know
/// the refunds of its own cell, and must not deny: a permit is available in every cell. The first admission of the thread is after
/// the first refund.
#[test]
fn grouped_denial_of_the_past() {
    BOUNDED.inheriting().up_to(2).run(
        ring(4, 1),
        &[Check(0, 3), Check(W, 1)],
        &[
            &[Refund(3), Check(2 * W, 1), Check(3 * W, 4), Refund(1)],
            &[Check(W, 1), Check(W, 1)],
        ],
    );
}
