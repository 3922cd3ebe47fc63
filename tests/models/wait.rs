//! Models of the line before a limiter.
//!
//! What is asserted of every execution:
//!
//! - *nobody is forgotten*: every wait that is not dropped ends, once time has gone far enough (a model in which
//!   somebody waits for ever is a deadlock, which loom reports);
//! - *bound*: no interval of one window holds more than the limit;
//! - *order*: who came first is served first, where the model says who did.

use alloc::task::Wake;
use core::future::Future;
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use ringgate::{
    Clock, CounterRing, Fair, Key, Nanos, Quota, RateLimiter, Rule, RuleSet, RuleSetBuilder, Runtime,
    TurnError,
};

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

/// Time, and the alarms that were set. (Not the model checker's atomic: it is written with the lock held.)
#[derive(Default)]
struct Time {
    now: AtomicU64,
    alarms: Mutex<Alarms>,
}

#[derive(Default)]
struct Alarms {
    set: Vec<(u64, Waker)>,
    next: u64,
    /// Time goes no further, so whatever was set is due.
    over: bool,
}

impl Time {
    /// Lets all alarms ring, at a time after which no more will be needed.
    fn end(&self, at: u64) {
        let set = {
            let mut alarms = self.alarms.lock().unwrap();
            self.now.store(at, Ordering::SeqCst);
            alarms.over = true;
            core::mem::take(&mut alarms.set)
        };
        for (_, waker) in set {
            waker.wake();
        }
    }
}

#[derive(Clone)]
struct Hand(Arc<Time>);

struct Alarm {
    number: u64,
    time: Arc<Time>,
}

impl Clock for Hand {
    fn now(&self) -> Nanos {
        Nanos::new(self.0.now.load(Ordering::SeqCst))
    }
}

impl Runtime for Hand {
    type Alarm = Alarm;

    fn alarm(&self, after: Duration, waker: &Waker) -> Alarm {
        let mut alarms = self.0.alarms.lock().unwrap();
        let number = alarms.next;
        alarms.next += 1;
        // One for room was set by a reading from before the end, and is due; one for those who do not come is not.
        if alarms.over && after < Duration::from_nanos(LATER) {
            drop(alarms);
            waker.wake_by_ref();
        } else {
            alarms.set.push((number, waker.clone()));
        }
        Alarm {
            number,
            time: Arc::clone(&self.0),
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // What rings meanwhile is not called off.
        let mut alarms = self.time.alarms.lock().unwrap();
        let place = alarms.set.iter().position(|(number, _)| *number == self.number);
        let called_off = place.map(|place| alarms.set.swap_remove(place));
        drop(alarms);
        drop(called_off);
    }
}

/// A thread that waits until it is woken.
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

/// So many permits a window, in one cell.
fn limiter(limit: u64) -> (Limiter, Hand) {
    let time = Hand(Arc::new(Time::default()));
    time.0.now.store(W, Ordering::SeqCst);
    let quota = Quota::new(limit, Duration::from_nanos(W)).unwrap();
    let ring = CounterRing::builder(quota).cells(1).build().unwrap();
    let limiter = Fair::with_runtime(RateLimiter::with_clock(ring, time.clone()), time.clone());
    (Arc::new(limiter), time)
}

/// One who waits for a permit, and says when it had it.
fn waits(limiter: &Limiter) -> thread::JoinHandle<Nanos> {
    let limiter = Arc::clone(limiter);
    thread::spawn(move || block_on(limiter.acquire(1)).unwrap().at())
}

/// The last cell that the models look at: whatever was taken before counts no longer.
const LATER: u64 = 3 * W;

/// Two permits are spent, and two wait for a later window: one is woken by its alarm, and wakes the other.
#[test]
fn wait_for_time_to_pass() {
    FULL.explore(|| {
        let (limiter, time) = limiter(2);
        assert!(limiter.check_n(2).is_ok());
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

/// The first in line is dropped, at any time, and the second is served all the same.
#[test]
fn wait_first_is_dropped() {
    FULL.explore(|| {
        let (limiter, time) = limiter(1);
        assert!(limiter.check().is_ok());
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

/// Three were told that there is room; the first of them is dropped instead of coming, and one who came later gets what it
/// leaves.
#[test]
fn wait_told_is_dropped() {
    FULL.explore(|| {
        let (limiter, time) = limiter(2);
        assert!(limiter.check_n(2).is_ok());
        let mut first = limiter.clone().acquire_owned(1);
        let mut second = limiter.clone().acquire_owned(1);
        assert!(poll_once(&mut first).is_pending());
        assert!(poll_once(&mut second).is_pending());
        time.0.end(LATER);
        // It takes its own, and tells the second.
        assert!(poll_once(&mut first).is_ready());
        let third = waits(&limiter);
        drop(second);
        assert_eq!(third.join().unwrap(), Nanos::new(LATER));
        assert_eq!(limiter.waiting(), 0);
        assert_eq!(limiter.limiter().peek().remaining(), 0);
    });
}

/// One comes while another was told that there is room and has yet to come: it is woken by the one that takes.
#[test]
fn wait_for_those_who_were_told() {
    FULL.explore(|| {
        let (limiter, time) = limiter(3);
        assert!(limiter.check_n(3).is_ok());
        let mut first = limiter.clone().acquire_owned(1);
        let mut second = limiter.clone().acquire_owned(1);
        assert!(poll_once(&mut first).is_pending());
        assert!(poll_once(&mut second).is_pending());
        time.0.end(LATER);
        // It takes its own, and tells the second.
        assert!(poll_once(&mut first).is_ready());
        let third = waits(&limiter);
        assert!(block_on(second).is_ok());
        assert_eq!(third.join().unwrap(), Nanos::new(LATER));
        assert_eq!(limiter.waiting(), 0);
    });
}

/// Whoever does not wait does not overtake; and the one who waits is served.
#[test]
fn wait_is_not_overtaken() {
    FULL.explore(|| {
        let (limiter, time) = limiter(2);
        assert!(limiter.check_n(1).is_ok());
        let mut both = limiter.clone().acquire_owned(2);
        assert!(poll_once(&mut both).is_pending());
        let hasty = {
            let limiter = Arc::clone(&limiter);
            thread::spawn(move || limiter.check())
        };
        time.0.end(LATER);
        let taken = block_on(both).unwrap();
        assert_eq!(taken.permits(), 2);
        // Before it was served, or after, when there was no room.
        match hasty.join().unwrap() {
            Err(TurnError::Queued | TurnError::Denied(_)) => {}
            other => panic!("{other:?}"),
        }
    });
}

/// Two requests that need two states each, and one of them a third: nobody is forgotten, and no rule admits too much.
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
        assert!(rules.check(&0).is_ok());
        // Waits for its own rule; the other request has room, but for what the first takes.
        let first = {
            let rules = Arc::clone(&rules);
            thread::spawn(move || block_on(rules.until_ready(&0)).unwrap().at())
        };
        let second = {
            let rules = Arc::clone(&rules);
            thread::spawn(move || block_on(rules.until_ready(&1)).unwrap().at())
        };
        time.0.end(LATER);
        assert_eq!(first.join().unwrap(), Nanos::new(LATER));
        second.join().unwrap();
        assert_eq!(rules.waiting(), 0);
    });
}
