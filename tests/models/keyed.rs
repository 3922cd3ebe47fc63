//! Models of the table of keys.
//!
//! Under loom a table for one key has two entries, and every key may have either; otherwise it has
//! four. What is asserted of every execution:
//!
//! - *bound*: of no key does an interval of one window hold more than the bound, whether its own
//!   entry or the catch-all decided;
//! - *books*: what each key has spent in its own entry in the end is what it was admitted there:
//!   nothing was charged to another key, nothing lost;
//! - *one entry*: the entries in use are as many as the keys that have one.

use core::time::Duration;

use ringgate::{
    CounterRing, Gcra, KeyedBuilder, KeyedRateLimiter, Keys, ManualClock, Nanos, OnFull, Quota, RateLimiter,
    Reclaim, TimestampRing,
};

#[cfg(not(ringgate_loom))]
use alloc::sync::Arc;
#[cfg(ringgate_loom)]
use loom::{sync::Arc, thread};
#[cfg(not(ringgate_loom))]
use std::thread;

use super::harness::{BOUNDED, FULL, Model};

/// Nanoseconds in a cell.
const W: u64 = 1_000;

/// A key's hash is the key itself, so that the models are the same every time.
#[derive(Debug)]
struct Plain;

impl Keys<u64> for Plain {
    fn hash(&self, key: &u64) -> u64 {
        *key
    }
}

/// A call: one permit of a key, at a time.
type Call = (u64, u64);

/// An admission: of which key, when, and by the catch-all?
#[derive(Clone, Copy, Debug)]
struct Admission {
    key: u64,
    at: u64,
    overflow: bool,
}

type Limiter<A> = KeyedRateLimiter<A, ManualClock, Plain>;

/// What is called, and how it is judged.
struct Scene<A> {
    algorithm: A,
    on_full: OnFull,
    before: &'static [Call],
    threads: &'static [&'static [Call]],
    /// Whether a key's own state is compared with its admissions in the end.
    books: bool,
}

impl<A: Reclaim + Clone + Send + Sync + 'static> Scene<A> {
    fn new(algorithm: A, before: &'static [Call], threads: &'static [&'static [Call]]) -> Self {
        Self {
            algorithm,
            on_full: OnFull::Share,
            before,
            threads,
            books: true,
        }
    }

    fn on_full(self, on_full: OnFull) -> Self {
        Self { on_full, ..self }
    }

    /// Helpers may have filled in a later time than a sleeper's.
    fn without_books(self) -> Self {
        Self { books: false, ..self }
    }

    fn run(self, model: Model) {
        self.run_and(model, |_, _| {});
    }

    /// Judges the admissions, those of each thread in a list of its own, by a rule of the model's as well.
    fn run_and(self, model: Model, judge: impl Fn(&Limiter<A>, &[Vec<Admission>]) + Send + Sync + 'static) {
        model.explore(move || {
            let limiter = Arc::new(
                KeyedBuilder::new(self.algorithm.clone())
                    .capacity(1)
                    .on_full(self.on_full)
                    .build_with(ManualClock::new(), Plain)
                    .unwrap(),
            );
            let mut admitted = vec![play(&limiter, &occupied(self.before, limiter.capacity()))];
            let handles: Vec<_> = self
                .threads
                .iter()
                .map(|&calls| {
                    let limiter = Arc::clone(&limiter);
                    thread::spawn(move || play(&limiter, calls))
                })
                .collect();
            admitted.extend(handles.into_iter().map(|handle| handle.join().unwrap()));
            self.judge(&limiter, &admitted.concat());
            judge(&limiter, &admitted[1..]);
        });
    }

    fn judge(&self, limiter: &Limiter<A>, admitted: &[Admission]) {
        let calls = || self.threads.iter().copied().flatten().chain(self.before);
        let last = calls().map(|&(_, now)| now).max().unwrap();
        limiter.clock().set(Nanos::new(last));
        let window = u64::try_from(self.algorithm.window().as_nanos()).unwrap();
        let mut keys: Vec<u64> = admitted.iter().map(|admission| admission.key).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut entered = 0;
        for key in keys {
            let mut own: Vec<u64> = Vec::new();
            let mut all: Vec<u64> = Vec::new();
            for admission in admitted.iter().filter(|admission| admission.key == key) {
                all.push(admission.at);
                if !admission.overflow {
                    own.push(admission.at);
                }
            }
            for &end in &all {
                let sum = all.iter().filter(|&&at| at <= end && at + window > end).count() as u64;
                assert!(
                    sum <= self.algorithm.bound(),
                    "{sum} of key {key} up to {end}: {admitted:?}"
                );
            }
            let peek = limiter.peek(&key);
            entered += u64::from(!peek.is_overflow() && peek.spent() > 0);
            if self.books && !peek.is_overflow() {
                let reference = RateLimiter::with_clock(self.algorithm.clone(), limiter.clock().clone());
                own.sort_unstable();
                for at in own {
                    assert!(reference.check_at(Nanos::new(at), 1).is_ok(), "{admitted:?}");
                }
                assert_eq!(peek.spent(), reference.peek().spent(), "key {key}: {admitted:?}");
            }
        }
        assert!(
            self.on_full == OnFull::Forget || entered <= limiter.len(),
            "{entered} keys with a state, {} with an entry",
            limiter.len()
        );
        assert!(limiter.len() <= limiter.capacity() as u64);
    }
}

/// The same calls for tables of two entries and of four: a key above 100 stands for one key in the
/// first case and for three in the second.
fn occupied(calls: &[Call], capacity: usize) -> Vec<Call> {
    calls
        .iter()
        .flat_map(|&(key, now)| {
            let times = if key > 100 { capacity as u64 - 1 } else { 1 };
            (0..times).map(move |time| (key + 1_000 * time, now))
        })
        .collect()
}

fn play<A: Reclaim>(limiter: &Limiter<A>, calls: &[Call]) -> Vec<Admission> {
    let mut admitted = Vec::new();
    for &(key, now) in calls {
        if let Ok(taken) = limiter.check_at(&key, Nanos::new(now), 1) {
            admitted.push(Admission {
                key,
                at: taken.at().get(),
                overflow: taken.is_overflow(),
            });
        }
    }
    admitted
}

/// A strict ring of `cells` cells of 1 µs, in one word.
fn packed(limit: u64, cells: u64) -> CounterRing {
    let quota = Quota::new(limit, Duration::from_nanos(cells * W)).unwrap();
    CounterRing::builder(quota).cells(cells).build().unwrap()
}

/// The same in several words.
fn wide(limit: u64, cells: u64) -> CounterRing {
    let quota = Quota::new(limit, Duration::from_nanos(cells * W)).unwrap();
    CounterRing::builder(quota)
        .cells(cells)
        .unpacked()
        .build()
        .unwrap()
}

fn log(limit: u64) -> TimestampRing {
    TimestampRing::new(Quota::new(limit, Duration::from_nanos(W)).unwrap()).unwrap()
}

fn gcra() -> Gcra {
    let quota = Quota::new(1, Duration::from_nanos(W)).unwrap();
    Gcra::token_bucket(quota, 1).unwrap()
}

/// Two threads see a key for the first time at once: it gets one entry, and one permit.
#[test]
fn keyed_same_key() {
    Scene::new(packed(1, 1), &[], &[&[(1, W)], &[(1, W)]]).run_and(BOUNDED, |limiter, admitted| {
        assert_eq!(admitted.concat().len(), 1);
        assert_eq!(limiter.len(), 1);
    });
}

/// The same with two permits and two looks each.
#[test]
fn keyed_same_key_twice() {
    Scene::new(packed(2, 1), &[], &[&[(1, W), (1, W)], &[(1, W)]]).run_and(BOUNDED, |limiter, admitted| {
        assert_eq!(admitted.concat().len(), 2);
        assert_eq!(limiter.len(), 1);
    });
}

#[test]
fn keyed_three_of_one_key() {
    Scene::new(packed(1, 1), &[], &[&[(1, W)], &[(1, W)], &[(1, W)]]).run_and(
        BOUNDED.up_to(2),
        |_, admitted| {
            assert_eq!(admitted.concat().len(), 1);
        },
    );
}

/// Two keys race for the one entry that is left: one gets it, the other is denied.
#[test]
fn keyed_two_keys_for_one_entry() {
    Scene::new(packed(1, 1), &[(101, W)], &[&[(1, W)], &[(2, W)]])
        .on_full(OnFull::Deny)
        .run_and(BOUNDED, |limiter, admitted| {
            assert_eq!(admitted.concat().len(), 1);
            assert_eq!(limiter.len(), limiter.capacity() as u64);
        });
}

/// A key's entry is reclaimed while a decision of the key is in flight.
fn late<A: Reclaim + Clone + Send + Sync + 'static>(algorithm: A, idle: &'static Calls) {
    Scene::new(algorithm, idle.before, idle.threads).run(BOUNDED);
}

struct Calls {
    before: &'static [Call],
    threads: &'static [&'static [Call]],
}

/// Key 1 is idle at 3 W, and key 101 has every other entry. Key 2 wants one, while key 1 asks again.
const LATE: Calls = Calls {
    before: &[(1, 0), (101, 3 * W)],
    threads: &[&[(1, 3 * W)], &[(2, 3 * W)]],
};

#[test]
fn keyed_late_packed() {
    late(packed(1, 1), &LATE);
}

#[test]
fn keyed_late_wide() {
    late(wide(1, 1), &LATE);
}

#[test]
fn keyed_late_gcra() {
    late(gcra(), &LATE);
}

#[test]
fn keyed_late_log() {
    Scene::new(log(1), LATE.before, LATE.threads)
        .without_books()
        .run(BOUNDED);
}

/// The entry passes on and comes back to the old key, which is still in the middle of a decision.
#[test]
fn keyed_late_and_back() {
    Scene::new(
        packed(1, 1),
        &[(1, 0), (101, 7 * W)],
        &[&[(1, 3 * W)], &[(2, 3 * W), (1, 6 * W)]],
    )
    .run(BOUNDED.up_to(2));
}

/// Key 1 has lost its entry at 3 W. A reading of before must not admit it as of before.
#[test]
fn keyed_older_reading() {
    Scene::new(
        packed(1, 1),
        &[(1, W / 2), (101, 3 * W)],
        &[&[(1, W)], &[(2, 3 * W)]],
    )
    .run(BOUNDED);
}

/// A thread announces an entry, and sleeps while the key gets another, uses it, and loses it.
#[test]
fn keyed_older_reading_announced() {
    Scene::new(
        packed(1, 1),
        &[],
        &[&[(1, W)], &[(1, W + W / 2), (2, 4 * W), (3, 4 * W)]],
    )
    .run(BOUNDED.up_to(2));
}

/// Every entry is in use. Key 1 is served by the catch-all, while an entry comes free for it.
#[test]
fn keyed_full_share() {
    Scene::new(packed(1, 1), &[(9, 0), (101, 2 * W)], &[&[(1, W)], &[(1, 2 * W)]]).run(BOUNDED);
}

/// The same with two threads that find the table full.
#[test]
fn keyed_full_share_two() {
    Scene::new(
        packed(2, 1),
        &[(9, 0), (101, 2 * W)],
        &[&[(1, W), (1, 2 * W)], &[(1, W)]],
    )
    .run(BOUNDED);
}

/// Two keys that find the table full share one limit.
#[test]
fn keyed_full_shared_limit() {
    Scene::new(packed(1, 1), &[(9, W), (101, W)], &[&[(1, W)], &[(2, W)]])
        .run_and(FULL, |_, admitted| assert_eq!(admitted.concat().len(), 1));
}

/// A key that has an entry loses it to nobody while its window runs, except when forgotten.
#[test]
fn keyed_full_forget() {
    Scene::new(
        packed(2, 1),
        &[(9, W), (101, W), (101, W)],
        &[&[(1, W)], &[(9, W)]],
    )
    .on_full(OnFull::Forget)
    .without_books()
    .run(BOUNDED);
}
