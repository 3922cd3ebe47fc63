//! Threads that stall in the middle of a call, stopped by their clock.

use alloc::sync::Arc;
use std::sync::{Barrier, Mutex};
use std::thread;

use ringgate::{Clock, Nanos};

use super::{AsWorker, builder, passed};

/// A clock at which a thread can be stopped.
#[derive(Clone, Default)]
struct Gate {
    stop: Arc<Mutex<Option<Stop>>>,
}

/// A thread that reads the clock after this number of readings waits twice.
struct Stop {
    readings: usize,
    barrier: Arc<Barrier>,
}

impl Gate {
    /// Stops the thread that reads the clock after `readings` readings. The thread waits twice at the returned
    /// barrier: when it has stopped, and before it continues.
    fn stop_after(&self, readings: usize) -> Arc<Barrier> {
        let barrier = Arc::new(Barrier::new(2));
        *self.stop.lock().expect("not poisoned") = Some(Stop {
            readings,
            barrier: Arc::clone(&barrier),
        });
        barrier
    }

    /// The barrier, if this is the reading at which to stop.
    fn stopped(&self) -> Option<Arc<Barrier>> {
        let mut stop = self.stop.lock().expect("not poisoned");
        match stop.as_mut()? {
            Stop { readings: 0, .. } => stop.take().map(|stop| stop.barrier),
            Stop { readings, .. } => {
                *readings -= 1;
                None
            }
        }
    }
}

impl Clock for Gate {
    fn now(&self) -> Nanos {
        if let Some(barrier) = self.stopped() {
            barrier.wait();
            barrier.wait();
        }
        Nanos::ZERO
    }
}

/// A thread that stalls in the middle of a charge blocks its own stripe only.
#[test]
fn a_stalled_thread_blocks_one_stripe_only() {
    let gate = Gate::default();
    let limiter = builder(100)
        .stripes(4)
        .batch(5)
        .build_with(gate.clone())
        .expect("a limiter");
    let barrier = gate.stop_after(0);
    thread::scope(|scope| {
        scope.spawn(|| (0..5).for_each(|_| assert!(limiter.as_worker(0).check().is_ok())));
        barrier.wait();
        // Five permits are used. The stripe of the stalled thread holds no more.
        assert_eq!(passed(|| limiter.as_worker(0).check().is_ok()), 95);
        barrier.wait();
    });
    assert_eq!(
        passed(|| limiter.as_worker(0).check().is_ok()),
        0,
        "nothing was left"
    );
}

/// A request that finds no room in the stripes, and then none in the ring, searches the stripes again, because a
/// stripe may have been released in between.
#[test]
fn permits_that_became_free_during_a_search_are_found() {
    let gate = Gate::default();
    let limiter = builder(100)
        .stripes(2)
        .batch(5)
        .build_with(gate.clone())
        .expect("a limiter");
    let own = limiter.as_worker(0).local_stripe();
    assert!(limiter.as_worker(1).check_n(4).is_ok());
    // The first reading is that of the search, which finds one stripe taken. The second reading is that of the charge
    // of the other stripe.
    let barrier = gate.stop_after(1);
    thread::scope(|scope| {
        let asker = scope.spawn(|| limiter.as_worker(0).check_n(2).is_ok());
        barrier.wait();
        assert!(limiter.as_worker(0).check_n(90).is_ok(), "all that the ring has");
        drop(own);
        barrier.wait();
        assert!(asker.join().expect("no panic"), "five were free");
    });
    assert_eq!(limiter.remaining(), 4);
}
