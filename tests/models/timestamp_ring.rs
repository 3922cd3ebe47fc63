//! Models of the timestamp ring.

use core::time::Duration;

use ringgate::{Algorithm, Quota, TimestampRing};

use super::harness::{BOUNDED, Call, Call::*, FULL, Model};

/// The window, in nanoseconds: many units of time.
const W: u64 = 10_000;

fn ring(limit: u64) -> TimestampRing {
    TimestampRing::new(Quota::new(limit, Duration::from_nanos(W)).unwrap()).unwrap()
}

/// Runs a model with claims in the head, as in a table, and with claims in the slots, as in a limiter. The second protocol loads
/// the hint without an order, so loom explores more values, and its preemptions are bounded.
fn run(model: Model, limit: u64, before: &'static [Call], threads: &'static [&'static [Call]]) {
    model.run(ring(limit), before, threads);
    model.up_to(2).run(ring(limit).for_limiter(), before, threads);
}

/// Two threads request the last permit.
#[test]
fn log_last_permit() {
    run(FULL, 1, &[], &[&[Check(0, 1)], &[Check(0, 1)]]);
    run(FULL, 2, &[Check(0, 1)], &[&[Check(0, 1)], &[Check(100, 1)]]);
}

/// Fewer claims than slots: no thread needs help, and every answer is exact.
#[test]
fn log_without_a_lap() {
    run(
        FULL,
        4,
        &[],
        &[&[Check(0, 1), Check(W / 2, 1)], &[Check(W / 2, 1), Check(100, 1)]],
    );
    run(
        FULL,
        4,
        &[],
        &[&[Check(0, 2)], &[Check(W / 2, 1), Check(W / 2, 1)]],
    );
}

/// A thread reads the head and stalls. When it reads the slot, the slot has a time of two laps later. A permit is
/// available at every moment of the call, so the thread must not be denied.
#[test]
fn log_denial_of_the_past() {
    run(
        BOUNDED,
        2,
        &[],
        &[&[Check(W + 100, 1)], &[Check(0, 1), Check(0, 1), Check(W, 1)]],
    );
}

/// A claiming thread stalls before it stores, and the ring returns to its slot. Another thread fills the slot, at a
/// time no earlier than that of the stalled thread.
#[test]
fn log_sleeper_is_helped() {
    run(
        FULL.unordered(),
        1,
        &[Check(0, 1)],
        &[&[Check(W, 1)], &[Check(W, 1), Check(2 * W, 1)]],
    );
    run(
        FULL.unordered(),
        2,
        &[Check(0, 1), Check(100, 1)],
        &[
            &[Check(W, 1)],
            &[Check(W + 100, 1), Check(2 * W, 1), Check(2 * W + 100, 1)],
        ],
    );
}

/// A claiming thread stalls for more than a lap, until the tags have the same values again.
#[test]
fn log_sleeper_for_two_laps() {
    run(
        BOUNDED.unordered(),
        1,
        &[],
        &[&[Check(0, 1)], &[Check(W, 1), Check(2 * W, 1), Check(3 * W, 1)]],
    );
}

/// A claiming thread stalls, and an older reading claims after it. Then the slot of the stalled thread is filled with
/// the newest time of the head. If the older reading had set that time back, the slot would expire too early.
#[test]
fn log_older_reading() {
    run(
        BOUNDED.unordered(),
        2,
        &[Check(0, 1), Check(100, 1)],
        &[
            &[Check(2 * W, 1)],
            &[Check(W + 200, 1), Check(2 * W + 300, 1), Check(2 * W + 400, 1)],
        ],
    );
}

/// Several permits in one request, across the end of the lap, beside single permits.
#[test]
fn log_several_permits() {
    run(
        BOUNDED.unordered().up_to(2),
        3,
        &[Check(0, 2)],
        &[&[Check(W, 2)], &[Check(W, 2), Check(2 * W, 2)]],
    );
    BOUNDED
        .unordered()
        .up_to(2)
        .run(ring(2), &[], &[&[Check(0, 2)], &[Check(W, 1), Check(2 * W, 2)]]);
    // A thread stalls for two laps: its second slot looks unchanged, but has a later time. Claims in the slots are exchanges only, so
    // a stalled thread changes no slot of a later lap.
    BOUNDED.unordered().run(
        ring(2),
        &[],
        &[
            &[Check(0, 2)],
            &[
                Check(W, 2),
                Check(2 * W, 1),
                Check(2 * W + W / 2, 1),
                Check(3 * W, 1),
                Check(3 * W + 100, 1),
            ],
        ],
    );
}

/// A timestamp ring refunds nothing. The permits remain spent, and `refund` returns false.
#[test]
fn log_refund() {
    run(
        BOUNDED.unordered(),
        1,
        &[],
        &[&[Check(0, 1), Refund(1)], &[Check(W, 1), Check(W + 100, 1)]],
    );
    run(
        BOUNDED.unordered(),
        1,
        &[],
        &[
            &[Check(0, 1), Refund(1), Check(W - 100, 1), Check(W, 1)],
            &[Check(0, 1)],
        ],
    );
    run(
        BOUNDED.unordered(),
        2,
        &[Check(0, 1)],
        &[
            &[Check(0, 1), Refund(1), Check(W - 100, 1)],
            &[Check(0, 2), Check(W, 2)],
        ],
    );
    run(
        BOUNDED.unordered(),
        2,
        &[Check(100, 1)],
        &[
            &[Check(100, 1), Refund(1)],
            &[Check(100, 1), Check(W + 150, 1), Check(W + 150, 1)],
        ],
    );
}

/// A charge beyond the limit overwrites the oldest slots, even current ones, while other threads claim slots.
#[test]
fn log_charge() {
    run(
        BOUNDED.unordered().up_to(2),
        2,
        &[Check(0, 1)],
        &[
            &[Charge(100, 3), Check(W + 100, 1)],
            &[Check(100, 1), Check(W, 1), Check(2 * W, 1)],
        ],
    );
}

/// Three threads on one slot.
#[test]
fn log_three_threads() {
    run(
        BOUNDED.unordered().up_to(2),
        1,
        &[],
        &[&[Check(0, 1)], &[Check(W, 1)], &[Check(2 * W, 1)]],
    );
}

/// Read-only calls write nothing while slots are claimed.
#[test]
fn log_queries() {
    run(
        FULL,
        3,
        &[Check(0, 1)],
        &[
            &[Check(100, 1), Check(200, 1)],
            &[Remaining(100), ReadyAt(100, 2)],
        ],
    );
}

/// A thread claims and stalls before it stores the hint. Its hint is that of an earlier lap when it is stored.
#[test]
fn log_stale_hint() {
    BOUNDED.up_to(2).run(
        ring(2).for_limiter(),
        &[],
        &[&[Check(0, 1)], &[Check(0, 1), Check(W, 1), Check(W, 1)]],
    );
}

/// A thread claims several positions and stalls after the first. Another thread claims the rest, and no position twice.
#[test]
fn log_rest_is_claimed() {
    BOUNDED.run(
        ring(3).for_limiter(),
        &[],
        &[&[Check(0, 2)], &[Check(100, 1), Check(W, 1)]],
    );
    BOUNDED.unordered().up_to(2).run(
        ring(3).for_limiter(),
        &[Check(0, 3)],
        &[
            &[Check(W, 3)],
            &[Check(W + 100, 1), Check(2 * W, 2), Check(2 * W + 100, 1)],
        ],
    );
}

/// Read-only calls count the positions that a request has not claimed yet.
#[test]
fn log_queries_beside_several_permits() {
    BOUNDED.run(
        ring(3).for_limiter(),
        &[Check(0, 1)],
        &[&[Check(W, 2)], &[Remaining(W), ReadyAt(W, 2)]],
    );
}
