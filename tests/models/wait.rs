//! Models of the wait queues of a limiter.
//!
//! Every execution asserts:
//!
//! - *no waiter is forgotten*: each wait that is not dropped completes once time is far enough ahead (otherwise the
//!   model deadlocks, which loom reports);
//! - *bound*: no interval of one window admits more than the limit;
//! - *order*: where the model fixes the order of arrival, waiters are served in it.

use alloc::task::Wake;
use core::future::Future;
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use ringgate::rules::RuleSetBuilder;
use ringgate::wait::{CheckError, Runtime};
use ringgate::{Clock, CounterRing, Fair, Key, Nanos, Quota, RateLimiter, Rule, RuleSet, Settled};

use alloc::sync::Arc;
#[cfg(ringgate_loom)]
use loom::{
    sync::{Condvar, Mutex},
    thread,
};
#[cfg(not(ringgate_loom))]
use std::{
    sync::{Condvar, Mutex},
    thread,
};

use super::harness::FULL;

/// Nanoseconds in a window of one cell.
const W: u64 = 1_000;

/// The time, and the timers that are set. The time is no atomic of loom, because it is written while the lock is held.
#[derive(Default)]
struct Time {
    now: AtomicU64,
    timers: Mutex<Timers>,
}

#[derive(Default)]
struct Timers {
    set: Vec<(u64, Waker)>,
    next: u64,
    /// Whether the time has reached its end. Then each timer is due when it is set.
    ended: bool,
}

impl Time {
    /// Moves time to `at`, after which no timer is needed, and fires all timers.
    fn end(&self, at: u64) {
        let set = {
            let mut timers = self.timers.lock().unwrap();
            self.now.store(at, Ordering::SeqCst);
            timers.ended = true;
            core::mem::take(&mut timers.set)
        };
        for (_, waker) in set {
            waker.wake();
        }
    }
}

#[derive(Clone)]
struct Hand(Arc<Time>);

struct Timer {
    number: u64,
    time: Arc<Time>,
}

impl Clock for Hand {
    fn now(&self) -> Nanos {
        Nanos::new(self.0.now.load(Ordering::SeqCst))
    }
}

impl Runtime for Hand {
    type Timer = Timer;

    fn set_timer(&self, after: Duration, waker: &Waker) -> Timer {
        let mut timers = self.0.timers.lock().unwrap();
        let number = timers.next;
        timers.next += 1;
        // A capacity timer was computed from a reading before the end, and is due. A grace timer is not.
        if timers.ended && after < Duration::from_nanos(LATER) {
            drop(timers);
            waker.wake_by_ref();
        } else {
            timers.set.push((number, waker.clone()));
        }
        Timer {
            number,
            time: Arc::clone(&self.0),
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // A timer that has fired is not in the list.
        let mut timers = self.time.timers.lock().unwrap();
        let index = timers.set.iter().position(|(number, _)| *number == self.number);
        let cancelled = index.map(|index| timers.set.swap_remove(index));
        drop(timers);
        drop(cancelled);
    }
}

/// A thread that is parked until it is woken.
#[derive(Default)]
struct Parked {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        *self.woken.lock().unwrap() = true;
        self.changed.notify_one();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let parked = Arc::new(Parked::default());
    let waker = Waker::from(Arc::clone(&parked));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let mut woken = parked.woken.lock().unwrap();
        while !*woken {
            woken = parked.changed.wait(woken).unwrap();
        }
        *woken = false;
    }
}

fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

type Limiter = Arc<Fair<RateLimiter<CounterRing, Hand>, Hand>>;

/// A limiter of `limit` permits per window, in one cell.
fn limiter(limit: u64) -> (Limiter, Hand) {
    let time = Hand(Arc::new(Time::default()));
    time.0.now.store(W, Ordering::SeqCst);
    let quota = Quota::new(limit, Duration::from_nanos(W)).unwrap();
    let ring = CounterRing::builder(quota).cells(1).build().unwrap();
    let limiter = Fair::with_runtime(RateLimiter::with_clock(ring, time.clone()), time.clone());
    (Arc::new(limiter), time)
}

/// A thread that waits for a permit, and returns the time of its admission.
fn waits(limiter: &Limiter) -> thread::JoinHandle<Nanos> {
    let limiter = Arc::clone(limiter);
    thread::spawn(move || block_on(limiter.acquire(1)).unwrap().at())
}

/// The last cell of the models. Earlier admissions no longer count.
const LATER: u64 = 3 * W;

/// Two threads wait for a later window. The timer wakes one thread, which wakes the other.
#[test]
fn wait_for_time_to_pass() {
    FULL.explore(|| {
        let (limiter, time) = limiter(2);
        assert!(limiter.check(2).is_ok());
        let others = waits(&limiter);
        let more = waits(&limiter);
        time.0.end(LATER);
        for taken in [others.join().unwrap(), more.join().unwrap()] {
            assert_eq!(taken, Nanos::new(LATER));
        }
        assert_eq!(limiter.waiting(), 0);
        assert_eq!(limiter.limiter().peek().remaining(), 0);
    });
}

/// The first waiter is dropped at any time, and the second is served.
#[test]
fn wait_first_is_dropped() {
    FULL.explore(|| {
        let (limiter, time) = limiter(1);
        assert!(limiter.check(1).is_ok());
        let mut first = limiter.clone().acquire_owned(1);
        assert!(poll_once(&mut first).is_pending());
        let second = waits(&limiter);
        let dropping = thread::spawn(move || drop(first));
        time.0.end(LATER);
        dropping.join().unwrap();
        assert_eq!(second.join().unwrap(), Nanos::new(LATER));
        assert_eq!(limiter.waiting(), 0);
    });
}

/// A notified waiter is dropped instead of being polled, and a later waiter gets its permit.
#[test]
fn wait_notified_is_dropped() {
    FULL.explore(|| {
        let (limiter, time) = limiter(2);
        assert!(limiter.check(2).is_ok());
        let mut first = limiter.clone().acquire_owned(1);
        let mut second = limiter.clone().acquire_owned(1);
        assert!(poll_once(&mut first).is_pending());
        assert!(poll_once(&mut second).is_pending());
        time.0.end(LATER);
        // The first waiter is admitted, and notifies the second.
        assert!(poll_once(&mut first).is_ready());
        let third = waits(&limiter);
        drop(second);
        assert_eq!(third.join().unwrap(), Nanos::new(LATER));
        assert_eq!(limiter.waiting(), 0);
        assert_eq!(limiter.limiter().peek().remaining(), 0);
    });
}

/// A waiter joins while another is notified and not polled yet. It is woken when the other is admitted.
#[test]
fn wait_for_notified() {
    FULL.explore(|| {
        let (limiter, time) = limiter(3);
        assert!(limiter.check(3).is_ok());
        let mut first = limiter.clone().acquire_owned(1);
        let mut second = limiter.clone().acquire_owned(1);
        assert!(poll_once(&mut first).is_pending());
        assert!(poll_once(&mut second).is_pending());
        time.0.end(LATER);
        // The first waiter is admitted, and notifies the second.
        assert!(poll_once(&mut first).is_ready());
        let third = waits(&limiter);
        assert!(block_on(second).is_ok());
        assert_eq!(third.join().unwrap(), Nanos::new(LATER));
        assert_eq!(limiter.waiting(), 0);
    });
}

/// Permits are refunded while a thread joins the queue, and it is served without a timer.
#[test]
fn wait_for_refund() {
    FULL.explore(|| {
        let (limiter, _) = limiter(1);
        let receipt = limiter.check(1).unwrap();
        let waiter = waits(&limiter);
        assert_eq!(limiter.refund(receipt), Settled::Exact);
        assert_eq!(waiter.join().unwrap(), Nanos::new(W));
        assert_eq!(limiter.waiting(), 0);
    });
}

/// A pause ends while a thread joins the queue, and it is served without a timer.
#[test]
fn wait_for_resume() {
    FULL.explore(|| {
        let (limiter, _) = limiter(1);
        limiter.limiter().pause_until(Nanos::new(LATER));
        let waiter = waits(&limiter);
        limiter.resume();
        assert_eq!(waiter.join().unwrap(), Nanos::new(W));
        assert_eq!(limiter.waiting(), 0);
    });
}

/// A check does not overtake a waiter, and the waiter is served.
#[test]
fn wait_is_not_overtaken() {
    FULL.explore(|| {
        let (limiter, time) = limiter(2);
        assert!(limiter.check(1).is_ok());
        let mut both = limiter.clone().acquire_owned(2);
        assert!(poll_once(&mut both).is_pending());
        let check = {
            let limiter = Arc::clone(&limiter);
            thread::spawn(move || limiter.check(1))
        };
        time.0.end(LATER);
        let taken = block_on(both).unwrap();
        assert_eq!(taken.permits(), 2);
        // The check is denied both before the waiter is served, as it must not overtake, and after it, without capacity.
        match check.join().unwrap() {
            Err(CheckError::Queued | CheckError::Denied(_)) => {}
            other => panic!("{other:?}"),
        }
    });
}

/// Two requests need two states each, one of them in common. Both are served, and no rule exceeds its limit.
#[test]
fn wait_for_rules() {
    FULL.explore(|| {
        let time = Hand(Arc::new(Time::default()));
        time.0.now.store(W, Ordering::SeqCst);
        let user = Key::new("user", |user: &u8, key| core::hash::Hash::hash(user, key));
        let quota = Quota::new(1, Duration::from_nanos(W)).unwrap();
        let all = Quota::new(2, Duration::from_nanos(W)).unwrap();
        let rules: RuleSet<u8, Hand> = RuleSetBuilder::new()
            .rule(Rule::new("user", quota).by(&user).cells(1).capacity(4))
            .rule(Rule::new("all", all).cells(1))
            .build_with(time.clone(), [1, 2, 3, 4])
            .unwrap();
        let rules = Arc::new(Fair::with_runtime(rules, time.clone()));
        assert!(rules.check(0).is_ok());
        // The first request waits for the rule of its user. The second has capacity, unless the first is admitted before it.
        let first = {
            let rules = Arc::clone(&rules);
            thread::spawn(move || block_on(rules.acquire(&0)).unwrap().at())
        };
        let second = {
            let rules = Arc::clone(&rules);
            thread::spawn(move || block_on(rules.acquire(&1)).unwrap().at())
        };
        time.0.end(LATER);
        assert_eq!(first.join().unwrap(), Nanos::new(LATER));
        second.join().unwrap();
        assert_eq!(rules.waiting(), 0);
    });
}
