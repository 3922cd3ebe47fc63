//! Models of the striped limiter.
//!
//! After the threads have ended, one caller takes the permits that remain at the end of the model. Each execution
//! asserts:
//!
//! - *bound*: the window that ends then has at most the limit, by the readings at the beginning of the calls;
//! - *conservation*: the window has exactly the limit, unless the model states how much may be charged late. A permit
//!   that is charged twice would be missing, and a permit that is never charged would be admitted in excess;
//! - *sleeper*: a thread that the model marks is never denied.

use core::cell::Cell;
use core::time::Duration;

use ringgate::striped::set_thread_index;
use ringgate::{Clock, ManualClock, Nanos, Quota, StripedLimiter};

#[cfg(not(ringgate_loom))]
use alloc::sync::Arc;
#[cfg(ringgate_loom)]
use loom::{sync::Arc, thread, thread_local};
#[cfg(not(ringgate_loom))]
use std::{thread, thread_local};

use super::harness::{BOUNDED, FULL, Model};

/// Nanoseconds in the window, which is one cell: a charge counts until the end of the next cell. The window is long
/// enough for the word of the published denial to represent each cell.
const W: u64 = 1_000_000;

/// Requests as a worker. Each worker has the stripe of its number.
trait AsWorker {
    fn as_worker(&self, worker: usize) -> &Self;
}

impl<C> AsWorker for StripedLimiter<C> {
    fn as_worker(&self, worker: usize) -> &Self {
        set_thread_index(worker);
        self
    }
}

thread_local! {
    /// The time that the clock shows to this thread. Without it, the thread reads the time that all threads share.
    static OWN_TIME: Cell<Option<u64>> = Cell::default();
}

fn set_own_time(at: Option<u64>) {
    OWN_TIME.with(|own| own.set(at));
}

/// A clock whose readings differ between threads, as those of a thread that has stalled since its reading.
struct ThreadClock(ManualClock);

impl Clock for ThreadClock {
    fn now(&self) -> Nanos {
        match OWN_TIME.with(Cell::get) {
            Some(at) => Nanos::new(at),
            None => self.0.now(),
        }
    }
}

/// A step of a thread.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Requests this number of permits as a worker.
    Check(usize, u64),
    /// Requests this number of permits as a worker. From now on, the clock shows this time to the thread.
    CheckAt(usize, u64, u64),
    /// Claims the stripe of a worker as a local stripe.
    ClaimLocal(usize),
    /// Requests this number of permits from the local stripe. From now on, the clock shows this time to the thread.
    CheckLocalAt(u64, u64),
    /// Drops the local stripe.
    DropLocal,
    /// Moves the time that threads share, which the clock shows to the thread from now on.
    Advance(u64),
}
use Step::*;

/// An admission: the reading at the beginning of the call, and the permits.
type Admission = (u64, u64);

type Limiter = StripedLimiter<ThreadClock>;

struct Scene {
    limit: u64,
    stripes: u64,
    batch: u64,
    before: &'static [Step],
    threads: &'static [&'static [Step]],
    /// The time at which one caller takes all remaining permits.
    end: u64,
    /// Permits that may be missing then.
    late: u64,
    /// A thread that is never denied, whatever the other threads do.
    served: Option<usize>,
}

impl Scene {
    /// The ring behind the stripes has a limit of 3.
    const fn new(stripes: u64, batch: u64, threads: &'static [&'static [Step]]) -> Self {
        Self {
            limit: 3 + stripes * batch,
            stripes,
            batch,
            before: &[],
            threads,
            end: 0,
            late: 0,
            served: None,
        }
    }

    const fn ring_limit(self, limit: u64) -> Self {
        Self {
            limit: limit + self.stripes * self.batch,
            ..self
        }
    }

    const fn before(self, before: &'static [Step]) -> Self {
        Self { before, ..self }
    }

    const fn end(self, end: u64) -> Self {
        Self { end, ..self }
    }

    const fn late(self, late: u64) -> Self {
        Self { late, ..self }
    }

    const fn served(self, thread: usize) -> Self {
        Self {
            served: Some(thread),
            ..self
        }
    }

    fn limiter(&self) -> Limiter {
        StripedLimiter::builder(Quota::new(self.limit, Duration::from_nanos(W)).unwrap())
            .cells(1)
            .stripes(self.stripes)
            .batch(self.batch)
            .build_with(ThreadClock(ManualClock::new()))
            .unwrap()
    }

    fn run(self, model: Model) {
        model.explore(move || {
            set_own_time(None);
            let limiter = Arc::new(self.limiter());
            assert_eq!(limiter.bound(), self.limit);
            let mut log = play(&limiter, self.before);
            let handles: Vec<_> = self
                .threads
                .iter()
                .map(|steps| {
                    let limiter = Arc::clone(&limiter);
                    thread::spawn(move || play(&limiter, steps))
                })
                .collect();
            for (thread, handle) in handles.into_iter().enumerate() {
                let admitted = handle.join().unwrap();
                if self.served == Some(thread) {
                    let requests = self.threads[thread]
                        .iter()
                        .filter(|step| !matches!(step, Advance(_) | ClaimLocal(_) | DropLocal));
                    assert_eq!(
                        admitted.len(),
                        requests.count(),
                        "a denial while permits were left"
                    );
                }
                log.extend(admitted);
            }
            set_own_time(None);
            let end = self.end.max(limiter.clock().now().get());
            set_own_time(Some(end));
            while limiter.as_worker(0).check().is_ok() {
                log.push((end, 1));
                assert!(log.len() < 100, "more permits than the limit");
            }
            // Half-open: t - W < s <= t.
            let sum: u64 = log
                .iter()
                .filter(|&&(at, _)| at + W > end)
                .map(|&(_, permits)| permits)
                .sum();
            let least = self.limit - self.late;
            assert!(
                (least..=self.limit).contains(&sum),
                "{sum}, not {least} to {} in the window up to {end}: {log:?}",
                self.limit
            );
            assert_eq!(limiter.remaining(), 0);
        });
    }
}

fn play(limiter: &Limiter, steps: &[Step]) -> Vec<Admission> {
    let mut log = Vec::new();
    let mut local = None;
    for step in steps {
        match *step {
            Check(worker, permits) => {
                let before = limiter.clock().now().get();
                if limiter.as_worker(worker).check_n(permits).is_ok() {
                    log.push((before, permits));
                }
            }
            CheckAt(worker, at, permits) => {
                set_own_time(Some(at));
                if limiter.as_worker(worker).check_n(permits).is_ok() {
                    log.push((at, permits));
                }
            }
            ClaimLocal(worker) => local = Some(limiter.as_worker(worker).local_stripe()),
            CheckLocalAt(at, permits) => {
                let stripe = local.as_mut().expect("a local stripe");
                set_own_time(Some(at));
                if stripe.check_n(permits).is_ok() {
                    log.push((at, permits));
                }
            }
            DropLocal => local = None,
            Advance(by) => {
                limiter.clock().0.advance(Duration::from_nanos(by));
                set_own_time(None);
            }
        }
    }
    log
}

/// Two threads use one stripe. The thread that fills the stripe charges it once.
#[test]
fn striped_charged_once() {
    Scene::new(
        1,
        2,
        &[&[CheckAt(0, 0, 1), CheckAt(0, 0, 1)], &[CheckAt(0, 0, 1)]],
    )
    .run(BOUNDED);
}

/// Two threads use one stripe. The stripe is filled, charged and used again.
#[test]
fn striped_charged_once_and_again() {
    Scene::new(
        1,
        2,
        &[
            &[CheckAt(0, 0, 1), CheckAt(0, 0, 1)],
            &[CheckAt(0, 0, 1), CheckAt(0, 0, 1)],
        ],
    )
    .run(BOUNDED.up_to(2));
}

/// The ring has capacity for one charge, and both threads request more than is left. The kept count remains used, and
/// the last single permits are found.
#[test]
fn striped_denied_charge() {
    Scene::new(
        2,
        2,
        &[
            &[CheckAt(0, 0, 1), CheckAt(0, 0, 1)],
            &[CheckAt(1, 0, 1), CheckAt(1, 0, 1)],
        ],
    )
    .run(BOUNDED);
}

/// A caller with an old reading searches for permits. Meanwhile another thread publishes a time at which the stripe has
/// expired, and takes the permits of the ring. Before that the ring has a permit, and after it the stripe has two.
#[test]
fn striped_expires_while_searched() {
    Scene::new(1, 2, &[&[CheckAt(0, 0, 1)], &[CheckAt(0, 2 * W, 4)]])
        .ring_limit(4)
        .before(&[CheckAt(0, 0, 3), CheckAt(0, 0, 2)])
        .end(2 * W)
        .late(1)
        .served(0)
        .run(FULL);
}

/// While a caller is denied, another thread releases its stripe. The permits that become free are not denied to later
/// callers, even if they are on a stripe that is used up.
#[test]
fn striped_closed_beside_a_drop() {
    Scene::new(2, 2, &[&[ClaimLocal(1)], &[CheckAt(0, 0, 1)]])
        .before(&[CheckAt(0, 0, 3), CheckAt(0, 0, 2)])
        .run(BOUNDED);
}

/// A denial is published during a charge, which frees permits of the stripe and fills the ring.
#[test]
fn striped_closed_beside_a_charge() {
    Scene::new(2, 3, &[&[CheckAt(1, 0, 2)], &[CheckAt(0, 0, 1)]])
        .ring_limit(6)
        .before(&[CheckAt(0, 0, 4), CheckAt(0, 0, 3), CheckAt(1, 0, 2)])
        .run(BOUNDED.up_to(2));
}

/// A denial is published during a charge that the ring denies. The kept count expires before the ring has capacity.
#[test]
fn striped_closed_beside_a_kept_charge() {
    Scene::new(
        1,
        2,
        &[
            &[CheckAt(0, 2_000_000, 1)],
            &[CheckAt(0, 2_000_000, 4), CheckAt(0, 2_000_000, 1)],
        ],
    )
    .ring_limit(4)
    .before(&[CheckAt(0, 0, 4), CheckAt(0, 1_000_001, 2)])
    .end(3_000_000)
    .late(4)
    .run(BOUNDED.up_to(2));
}

/// Between two steps of a caller that closes the limiter, another caller begins to close it, and permits become free.
#[test]
fn striped_closed_by_two() {
    Scene::new(
        2,
        2,
        &[&[ClaimLocal(1), DropLocal, CheckAt(0, 0, 3)], &[CheckAt(0, 0, 1)]],
    )
    .before(&[CheckAt(0, 0, 3), CheckAt(0, 0, 2)])
    .run(BOUNDED);
}

/// The ring and one stripe are full. The other stripe is used by its own thread, and by the thread of the full stripe.
#[test]
fn striped_taken_from_another() {
    Scene::new(
        2,
        2,
        &[
            &[CheckAt(0, 0, 1), CheckAt(0, 0, 1)],
            &[CheckAt(1, 0, 1), CheckAt(1, 0, 1)],
        ],
    )
    .before(&[CheckAt(0, 0, 3), CheckAt(0, 0, 2)])
    .run(BOUNDED);
}

/// A thread stalls at any point of its charge. The other thread gets all remaining permits of the other stripe and of
/// the ring.
#[test]
fn striped_sleeper() {
    Scene::new(
        2,
        2,
        &[
            &[CheckAt(0, 0, 2)],
            // The stalled thread uses two permits, and two are being charged.
            &[CheckAt(0, 0, 1), CheckAt(0, 0, 1), CheckAt(0, 0, 1)],
        ],
    )
    .served(1)
    .run(BOUNDED.up_to(2));
}

/// Requests for several permits do not add up to the batch. A part of the batch is charged to free its permits, and a
/// request above the batch goes to the ring.
#[test]
fn striped_several_permits() {
    Scene::new(
        2,
        3,
        &[&[CheckAt(0, 0, 2), CheckAt(0, 0, 2)], &[CheckAt(0, 0, 2)]],
    )
    .ring_limit(4)
    .run(BOUNDED.up_to(2));
    Scene::new(
        1,
        3,
        &[&[CheckAt(0, 0, 2), CheckAt(0, 0, 1)], &[CheckAt(0, 0, 2)]],
    )
    .run(BOUNDED.up_to(2));
    Scene::new(
        1,
        2,
        &[&[CheckAt(0, 0, 1), CheckAt(0, 0, 3)], &[CheckAt(0, 0, 2)]],
    )
    .run(BOUNDED.up_to(2));
}

/// One thread uses a permit two cells after the beginning, and the other fills the stripe. The charge is no earlier
/// than the use, whichever thread makes it.
#[test]
fn striped_charge_is_after_use() {
    Scene::new(1, 2, &[&[Advance(1_500_000), Check(0, 1)], &[Check(0, 1)]])
        .end(2_400_000)
        .late(2)
        .run(FULL);
}

/// A charge is no earlier than the use if the stripe is claimed in a separate step, to make room.
#[test]
fn striped_claim_is_after_use() {
    Scene::new(1, 4, &[&[Advance(1_500_000), Check(0, 3)], &[Check(0, 2)]])
        .ring_limit(4)
        .end(2_400_000)
        .late(2)
        .run(FULL);
}

/// A count was kept because the ring was full. When the ring has capacity, one of two threads charges the count.
#[test]
fn striped_kept_is_charged_once() {
    Scene::new(1, 2, &[&[CheckAt(0, 2_100_000, 1)], &[CheckAt(0, 2_100_000, 1)]])
        .before(&[CheckAt(0, 0, 3), CheckAt(0, 1_500_000, 2)])
        .end(2_100_000)
        .run(BOUNDED);
}

/// A kept count that has expired is forgotten, while another thread uses the free batch.
#[test]
fn striped_kept_is_forgotten() {
    Scene::new(1, 2, &[&[CheckAt(0, 2_500_000, 1)], &[CheckAt(0, 2_500_000, 1)]])
        .before(&[CheckAt(0, 0, 3), CheckAt(0, 0, 2)])
        .end(2_500_000)
        .run(BOUNDED);
}

/// A kept count below the batch has expired. No use by another thread makes it current again.
#[test]
fn striped_kept_part_is_forgotten() {
    const KEPT: &[Step] = &[
        CheckAt(0, 0, 3),
        ClaimLocal(0),
        CheckLocalAt(0, 1),
        CheckLocalAt(0, 3),
        Advance(2_500_000),
    ];
    Scene::new(1, 3, &[&[Check(0, 1), Check(0, 1)], &[Check(0, 2)]])
        .before(KEPT)
        .end(2_500_000)
        .run(BOUNDED);
    Scene::new(
        1,
        3,
        &[
            &[Check(0, 1)],
            &[
                ClaimLocal(0),
                CheckLocalAt(2_500_000, 1),
                CheckLocalAt(2_500_000, 1),
            ],
        ],
    )
    .before(KEPT)
    .end(2_500_000)
    .run(BOUNDED);
}

/// One thread publishes a time at which the kept count of a stripe has expired, and forgets it. Another thread, with an older
/// reading, uses the stripe and keeps the new count. That count is no older than the published time.
#[test]
fn striped_kept_after_a_forgotten_count() {
    const LATE: u64 = 2_500_000;
    let scene = Scene::new(2, 2, &[]).ring_limit(2);
    BOUNDED.explore(move || {
        set_own_time(None);
        let limiter = Arc::new(scene.limiter());
        // The ring is full, stripe 0 is full and kept, and stripe 1 has one permit left.
        let before = [CheckAt(0, 0, 2), CheckAt(0, 0, 2), CheckAt(1, 0, 1)];
        assert_eq!(play(&limiter, &before).len(), 3);
        let other = {
            let limiter = Arc::clone(&limiter);
            thread::spawn(move || play(&limiter, &[CheckAt(1, LATE, 1)]).len())
        };
        let own = limiter.as_worker(0).check_n(2).is_ok();
        assert_eq!(other.join().unwrap(), 1);
        set_own_time(Some(LATE));
        let left = (0..10)
            .take_while(|_| limiter.as_worker(0).check().is_ok())
            .count();
        // Stripe 1 was charged to the ring, which is full.
        assert_eq!(left, if own { 2 } else { 4 });
    });
}

/// Another thread charges a count that the thread of the stripe has left, while that thread uses the stripe.
#[test]
fn striped_old_part_is_charged() {
    // Only one preemption, because a fault needs one thread that stalls while the other charges.
    Scene::new(2, 2, &[&[CheckAt(0, 900_000, 2)], &[CheckAt(1, 900_000, 1)]])
        .before(&[CheckAt(1, 0, 1)])
        .end(900_000)
        .run(BOUNDED.up_to(1));
}

/// Three threads, two of them on one stripe.
#[test]
fn striped_three_threads() {
    Scene::new(
        2,
        2,
        &[&[CheckAt(0, 0, 1)], &[CheckAt(0, 0, 1)], &[CheckAt(1, 0, 2)]],
    )
    .run(BOUNDED);
}

/// One thread claims a stripe as a local stripe, uses it, charges it and releases it. Another thread requests permits
/// from the same stripe.
#[test]
fn striped_local_stripe() {
    Scene::new(
        1,
        2,
        &[
            &[
                ClaimLocal(0),
                CheckLocalAt(0, 1),
                CheckLocalAt(0, 1),
                CheckLocalAt(0, 1),
            ],
            &[CheckAt(0, 0, 1), CheckAt(0, 0, 1)],
        ],
    )
    .run(BOUNDED.up_to(2));
}

/// Two threads claim the same stripe as a local stripe.
#[test]
fn striped_local_stripe_twice() {
    Scene::new(
        1,
        3,
        &[
            &[ClaimLocal(0), CheckLocalAt(0, 1), CheckLocalAt(0, 1)],
            &[ClaimLocal(0), CheckLocalAt(0, 2), CheckLocalAt(0, 1)],
        ],
    )
    .run(BOUNDED);
}

/// The ring is full. The uses of a local stripe are kept, and the stripe is released for all callers.
#[test]
fn striped_local_stripe_kept() {
    Scene::new(
        1,
        2,
        &[
            &[ClaimLocal(0), CheckLocalAt(0, 1), CheckLocalAt(0, 2)],
            &[CheckAt(0, 0, 1)],
        ],
    )
    .before(&[CheckAt(0, 0, 3)])
    .run(BOUNDED);
}
