//! Models of the table of keys.
//!
//! Under loom a bucket is one entry. A table for one key has one bucket. A table for two keys has two: the primary
//! and the alternate bucket of every key, in either order. There, key 6 has the primary bucket of key 1, and key 4 has
//! the other one. A table for three keys also has one in the backyard. A table for four keys has three in the front.
//! With real threads, a key has at most 20 possible entries. Each execution asserts:
//!
//! - *bound*: no window has more permits of a key than the bound, whether its own entry or the catch-all decided;
//! - *spent*: at the end, the spent permits in a key's entry are those that were admitted there, so no permit was charged
//!   to another key, and none was lost;
//! - *one entry*: no key has two entries in use;
//! - *new keys*: after a long silence, a new key can get every entry.

use core::time::Duration;

use ringgate::algorithm::Reclaim;
use ringgate::keyed::{Keys, OnFull};
use ringgate::{
    CounterRing, Gcra, KeyedRateLimiter, ManualClock, Nanos, Quota, RateLimiter, TimestampRing, UnitRing,
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

/// The hash of a key is the key itself, so that the models are the same in each run.
#[derive(Debug)]
struct Plain;

impl Keys<u64> for Plain {
    fn hash(&self, key: &u64) -> u64 {
        *key
    }
}

/// A call: one permit of a key, at a time.
type Call = (u64, u64);

/// An admission: the key, the time, and whether the catch-all admitted.
#[derive(Clone, Copy, Debug)]
struct Admission {
    key: u64,
    at: u64,
    overflow: bool,
}

type Limiter<A> = KeyedRateLimiter<A, ManualClock, Plain>;

/// A limiter, the calls of each thread, and the assertions about them.
struct Scene<A> {
    algorithm: A,
    on_full: OnFull,
    before: &'static [Call],
    threads: &'static [&'static [Call]],
    /// Keys that are inserted first and then reset.
    resets: &'static [u64],
    /// Entries of the table, under loom.
    entries: u64,
    /// Whether the state of a key is compared with its admissions at the end.
    books: bool,
}

impl<A: Reclaim + Clone + Send + Sync + 'static> Scene<A> {
    fn new(algorithm: A, before: &'static [Call], threads: &'static [&'static [Call]]) -> Self {
        Self {
            algorithm,
            on_full: OnFull::Share,
            before,
            resets: &[],
            threads,
            entries: 1,
            books: true,
        }
    }

    fn on_full(self, on_full: OnFull) -> Self {
        Self { on_full, ..self }
    }

    /// Each key has two entries, so one entry alone does not decide the assertion.
    fn of_two_entries(self) -> Self {
        self.of_entries(2)
    }

    fn of_entries(self, entries: u64) -> Self {
        Self { entries, ..self }
    }

    /// Helping threads may have stored a later time than a stalled thread would.
    fn without_spent(self) -> Self {
        Self { books: false, ..self }
    }

    fn run(self, model: Model) {
        self.run_and(model, |_, _| {});
    }

    /// Also checks the admissions of each thread with a function of the model.
    fn run_and(self, model: Model, check: impl Fn(&Limiter<A>, &[Vec<Admission>]) + Send + Sync + 'static) {
        model.explore(move || {
            let limiter = Arc::new(
                KeyedRateLimiter::builder(self.algorithm.clone())
                    .capacity(self.entries)
                    .on_full(self.on_full)
                    .build_with(ManualClock::new(), Plain)
                    .unwrap(),
            );
            let mut admitted = vec![play(&limiter, &occupied(self.before, limiter.capacity()))];
            for key in self.resets {
                assert!(limiter.reset(key));
            }
            // The last thread is the current one, so that the model checker has one thread fewer. It starts first, so
            // one preemption stalls it until the others have ended. It writes what the others read: see `Model::explore`.
            let (mine, theirs) = self.threads.split_last().unwrap();
            let handles: Vec<_> = theirs
                .iter()
                .map(|&calls| {
                    let limiter = Arc::clone(&limiter);
                    thread::spawn(move || play(&limiter, calls))
                })
                .collect();
            let own = play(&limiter, mine);
            admitted.extend(handles.into_iter().map(|handle| handle.join().unwrap()));
            admitted.push(own);
            self.check_bound_and_spent(&limiter, &admitted.concat());
            check(&limiter, &admitted[1..]);
            self.check_new_keys(&limiter);
        });
    }

    fn check_bound_and_spent(&self, limiter: &Limiter<A>, admitted: &[Admission]) {
        let calls = || self.threads.iter().copied().flatten().chain(self.before);
        let last = calls().map(|&(_, now)| now).max().unwrap();
        limiter.clock().set(Nanos::new(last));
        let window = u64::try_from(self.algorithm.window().as_nanos()).unwrap();
        // Keys without an admission are included, because permits of other keys could have been charged to them.
        let mut keys: Vec<u64> = calls().map(|&(key, _)| key).filter(|&key| key < 100).collect();
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

    /// Asserts that after a long silence, new keys get every entry.
    fn check_new_keys(&self, limiter: &Limiter<A>) {
        let later = Nanos::new(100 * W);
        limiter.clock().set(later);
        // A key may have three of the entries, so only that number is certain to be found.
        for key in 0..self.entries.min(3) {
            let answer = limiter.check_at(&(50_000 + key), later, 1);
            assert!(
                answer.is_ok_and(|taken| !taken.is_overflow()),
                "only {key} of {} new keys have an entry",
                self.entries
            );
        }
    }
}

/// Adapts calls to the size of the table. A key above 100 stands for as many keys as leave one entry vacant.
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

/// A strict ring in several words, with several counts in a word.
fn wide(limit: u64, cells: u64) -> CounterRing {
    let quota = Quota::new(limit, Duration::from_nanos(cells * W)).unwrap();
    CounterRing::builder(quota)
        .cells(cells)
        .unpacked()
        .build()
        .unwrap()
}

/// A hundred permits in W, in units of several permits.
fn units() -> UnitRing {
    let ring = UnitRing::new(Quota::new(100, Duration::from_nanos(W)).unwrap()).unwrap();
    assert!(ring.unit() > 1);
    ring
}

fn log(limit: u64) -> TimestampRing {
    TimestampRing::new(Quota::new(limit, Duration::from_nanos(W)).unwrap()).unwrap()
}

fn gcra() -> Gcra {
    let quota = Quota::new(1, Duration::from_nanos(W)).unwrap();
    Gcra::token_bucket(quota, 1).unwrap()
}

/// Two threads use a new key concurrently. One inserts it into the vacant entry, and both decide there.
#[test]
fn keyed_same_key() {
    Scene::new(packed(1, 1), &[], &[&[(1, W)], &[(1, W)]])
        .of_two_entries()
        .run_and(FULL, |limiter, admitted| {
            assert_eq!(admitted.concat().len(), 1);
            assert_eq!(limiter.len(), 1);
        });
}

/// One of the key's entries belongs to another key, so both threads insert the key into the other one.
#[test]
fn keyed_same_key_in_the_alternate_bucket() {
    let others: [&'static [Call]; 2] = [&[(4, W)], &[(6, W)]];
    for other in others {
        Scene::new(packed(1, 1), other, &[&[(1, W)], &[(1, W)]])
            .of_two_entries()
            .run_and(FULL, |limiter, admitted| {
                assert_eq!(admitted.concat().len(), 1);
                assert_eq!(limiter.len(), 2);
            });
    }
}

/// Two threads insert one key while a third inserts another key, which may take the primary entry of both.
#[test]
fn keyed_same_key_beside_another() {
    Scene::new(packed(1, 1), &[], &[&[(6, W)], &[(1, W)], &[(1, W)]])
        .of_two_entries()
        .run_and(BOUNDED, |limiter, admitted| {
            assert_eq!(admitted.concat().len(), 2);
            assert_eq!(limiter.len(), 2);
        });
}

/// The primary entry is idle for one thread. It is in use for the other, whose reading is one nanosecond older. The
/// alternate entry is vacant, and both threads use it.
#[test]
fn keyed_idle_beside_a_vacancy() {
    let others: [&'static [Call]; 2] = [&[(4, 0)], &[(6, 0)]];
    for other in others {
        Scene::new(packed(1, 1), other, &[&[(1, 2 * W)], &[(1, 2 * W - 1)]])
            .of_two_entries()
            .run_and(BOUNDED, |limiter, admitted| {
                assert_eq!(admitted.concat().len(), 1);
                assert_eq!(limiter.counts().reclaimed, 0);
            });
    }
}

/// The primary entry is idle for both threads, and the alternate entry is vacant. One thread enters the key there while the other
/// searches.
#[test]
fn keyed_same_key_beside_an_idle_entry() {
    Scene::new(packed(1, 1), &[(6, 0)], &[&[(1, 3 * W)], &[(1, 3 * W)]])
        .of_two_entries()
        .run_and(FULL, |limiter, admitted| {
            assert_eq!(admitted.concat().len(), 1);
            assert_eq!(limiter.counts().reclaimed, 0);
        });
}

/// The primary entry has a tombstone that is idle for one thread only.
#[test]
fn keyed_tombstone_beside_a_vacancy() {
    type Other = (&'static [Call], &'static [u64]);
    let others: [Other; 2] = [(&[(4, 0)], &[4]), (&[(6, 0)], &[6])];
    for (before, resets) in others {
        let scene = Scene::new(packed(1, 1), before, &[&[(1, 2 * W)], &[(1, 2 * W - 1)]]);
        let scene = Scene { resets, ..scene };
        scene.of_two_entries().run_and(BOUNDED, |limiter, admitted| {
            assert_eq!(admitted.concat().len(), 1);
            assert_eq!(limiter.len(), 1);
        });
    }
}

/// Key 1 loses its primary entry at 3 W to key 4, whose other entries are in use. A thread with an earlier reading
/// inserts key 1 into its alternate entry, which is vacant.
#[test]
fn keyed_older_reading_beside_a_vacancy() {
    Scene::new(
        packed(1, 1),
        &[(1, W / 2), (3, 3 * W), (6, 3 * W)],
        &[&[(1, W)], &[(4, 3 * W)]],
    )
    .of_entries(4)
    .run(BOUNDED);
}

/// Two threads make two requests each for one key, with two permits.
#[test]
fn keyed_same_key_twice() {
    Scene::new(packed(2, 1), &[], &[&[(1, W), (1, W)], &[(1, W)]])
        .of_two_entries()
        .run_and(BOUNDED, |limiter, admitted| {
            assert_eq!(admitted.concat().len(), 2);
            assert_eq!(limiter.len(), 1);
        });
}

/// Two threads use a new key concurrently, and both of its entries are idle. They agree on one entry.
#[test]
fn keyed_same_key_in_idle_entries() {
    Scene::new(packed(1, 1), &[(2, 0), (3, 0)], &[&[(1, 3 * W)], &[(1, 3 * W)]])
        .of_two_entries()
        .run_and(BOUNDED, |limiter, admitted| {
            assert_eq!(admitted.concat().len(), 1);
            assert_eq!(limiter.counts().overflowed, 0);
            assert!(limiter.len() <= 3);
        });
}

/// One thread inserts a key into the only entry. The other finds no entry, and uses the catch-all.
#[test]
fn keyed_shared_while_entered() {
    Scene::new(packed(1, 1), &[], &[&[(1, W)], &[(1, W)]]).run(BOUNDED);
}

/// Three threads insert one key.
#[test]
fn keyed_three_of_one_key() {
    Scene::new(packed(1, 1), &[], &[&[(1, W)], &[(1, W)], &[(1, W)]])
        .of_two_entries()
        .run_and(BOUNDED, |_, admitted| {
            assert_eq!(admitted.concat().len(), 1);
        });
}

/// Two keys compete for the last entry. One gets it, and the other is denied.
#[test]
fn keyed_two_keys_for_one_entry() {
    Scene::new(packed(1, 1), &[(101, W)], &[&[(1, W)], &[(2, W)]])
        .on_full(OnFull::Deny)
        .run_and(BOUNDED, |limiter, admitted| {
            assert_eq!(admitted.concat().len(), 1);
            assert_eq!(limiter.len(), limiter.capacity() as u64);
        });
}

/// The entry of a key is reclaimed while a decision of the key is in progress.
fn late<A: Reclaim + Clone + Send + Sync + 'static>(algorithm: A, idle: &'static Calls) {
    Scene::new(algorithm, idle.before, idle.threads).run(BOUNDED);
}

struct Calls {
    before: &'static [Call],
    threads: &'static [&'static [Call]],
}

/// Key 1 is idle at 3 W, and key 101 has every other entry. Key 2 needs an entry, while key 1 makes another request.
const LATE: Calls = Calls {
    before: &[(1, 0), (101, 3 * W)],
    threads: &[&[(1, 3 * W)], &[(2, 3 * W)]],
};

#[test]
fn keyed_late_packed() {
    late(packed(1, 1), &LATE);
}

#[test]
fn keyed_late_units() {
    late(units(), &LATE);
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
        .without_spent()
        .run(BOUNDED);
}

/// The entry passes to another key and back to the old key, whose decision is still in progress.
#[test]
fn keyed_late_and_back() {
    Scene::new(
        packed(1, 1),
        &[(1, 0), (101, 7 * W)],
        &[&[(1, 3 * W)], &[(2, 3 * W), (1, 6 * W)]],
    )
    .run(BOUNDED.up_to(1));
}

/// Key 1 has lost its entry at 3 W. A request with an earlier reading must not be admitted at that earlier time.
#[test]
fn keyed_older_reading() {
    Scene::new(
        packed(1, 1),
        &[(1, W / 2), (101, 3 * W)],
        &[&[(1, W)], &[(2, 3 * W)]],
    )
    .run(BOUNDED);
}

/// A thread publishes an entry and stalls, while the key gets another entry, uses it, and loses it.
#[test]
fn keyed_older_reading_published() {
    // Only one preemption: that of the own thread, which publishes and stalls.
    Scene::new(
        packed(1, 1),
        &[(8, 0), (9, 0)],
        &[&[(1, 3 * W + W / 2), (2, 6 * W)], &[(1, 3 * W)]],
    )
    .of_two_entries()
    .run(BOUNDED.up_to(1));
}

/// Every entry is in use. The catch-all serves key 1, while an entry becomes free for it.
#[test]
fn keyed_full_share() {
    // Only one preemption: `proofs/table/share.cfg` has every order of these steps, and this model adds their memory orderings.
    Scene::new(
        packed(1, 1),
        &[(9, 0), (101, 2 * W)],
        &[&[(1, W + W / 2)], &[(1, 2 * W)]],
    )
    .run(BOUNDED.up_to(1));
}

/// Two threads find the table full, and use the catch-all.
#[test]
fn keyed_full_share_two() {
    Scene::new(
        packed(2, 1),
        &[(9, 0), (101, 2 * W)],
        &[&[(1, W), (1, 2 * W)], &[(1, W)]],
    )
    .run(BOUNDED);
}

/// Two threads decide about a key with different limits. The lower one is 1, so it admits nothing after another admission.
#[test]
fn keyed_with_limit() {
    with_limit(packed(2, 1));
    with_limit(TimestampRing::new(Quota::new(2, Duration::from_nanos(W)).unwrap()).unwrap());
}

fn with_limit<A: Reclaim + Clone + Send + Sync + 'static>(it: A) {
    BOUNDED.explore(move || {
        let limiter = Arc::new(
            KeyedRateLimiter::builder(it.clone())
                .capacity(1)
                .build_with(ManualClock::new(), Plain)
                .unwrap(),
        );
        let now = Nanos::new(W);
        let other = Arc::clone(&limiter);
        let own_limit = thread::spawn(move || other.check_at(&1, now, 1).is_ok());
        let lowered = limiter.with_limit(1).unwrap();
        let admitted = [(); 2].map(|()| lowered.check_at(&1, now, 1).is_ok());
        assert!(own_limit.join().unwrap(), "at most one of two is spent");
        assert!(!admitted[1]);
        limiter.clock().set(now);
        assert_eq!(limiter.peek(&1).spent(), 1 + u64::from(admitted[0]));
    });
}

/// Two keys that find the table full share one limit.
#[test]
fn keyed_full_shared_limit() {
    Scene::new(packed(1, 1), &[(9, W), (101, W)], &[&[(1, W)], &[(2, W)]])
        .run_and(FULL, |_, admitted| assert_eq!(admitted.concat().len(), 1));
}

/// A key with an entry keeps it while its window runs, except by `Forget`.
#[test]
fn keyed_full_forget() {
    Scene::new(
        packed(2, 1),
        &[(9, W), (101, W), (101, W)],
        &[&[(1, W)], &[(9, W)]],
    )
    .on_full(OnFull::Forget)
    .without_spent()
    .run(BOUNDED);
}

/// Key 1 loses its entry to key 2, which uses its whole limit, and gets the entry back. A decision of key 1 that
/// stalls meanwhile must not be denied for permits of key 2.
#[test]
fn keyed_denied_for_another() {
    Scene::new(
        packed(2, 1),
        &[(1, 0), (101, 7 * W)],
        &[&[(1, 3 * W)], &[(2, 3 * W), (2, 3 * W), (1, 6 * W)]],
    )
    .run_and(BOUNDED.up_to(1), |_, admitted| {
        assert_eq!(admitted[0].len(), 1, "{admitted:?}");
    });
}

/// One thread finds the front full and inserts the key into the backyard. The other, whose reading is one nanosecond
/// later, finds the front idle.
#[test]
fn keyed_backyard() {
    Scene::new(
        packed(1, 1),
        &[(3, W / 2), (5, W / 2)],
        &[&[(1, 2 * W)], &[(1, 2 * W - 1)]],
    )
    .of_entries(3)
    .run_and(BOUNDED.up_to(2), |_, admitted| {
        let ones = admitted.concat().iter().filter(|it| it.key == 1).count();
        assert_eq!(ones, 1);
    });
}

/// Two threads use a new key concurrently, in vacant entries of several words.
#[test]
fn keyed_same_key_wide_vacant() {
    Scene::new(wide(1, 1), &[], &[&[(1, W)], &[(1, W)]])
        .of_two_entries()
        .run_and(BOUNDED, |limiter, admitted| {
            assert_eq!(admitted.concat().len(), 1);
            assert_eq!(limiter.len(), 1);
        });
}

/// Two threads use a new key concurrently, in idle entries of several words. An entry that one thread withdraws can
/// be used again.
#[test]
fn keyed_same_key_wide() {
    Scene::new(wide(1, 1), &[(2, 0), (3, 0)], &[&[(1, 3 * W)], &[(1, 3 * W)]])
        .of_two_entries()
        .run_and(BOUNDED.up_to(2), |limiter, admitted| {
            assert_eq!(admitted.concat().len(), 1);
            // A real table has vacant entries beside the two idle keys. The table under loom has two entries.
            let most = limiter.capacity().min(3) as u64;
            assert!((1..=most).contains(&limiter.len()));
        });
}

/// Key 1 finds the table full, and is about to be admitted by the catch-all. Meanwhile it gets an entry, uses it, and
/// loses it.
#[test]
fn keyed_full_share_and_gone() {
    Scene::new(
        packed(1, 1),
        &[(9, 0), (101, W)],
        &[&[(1, W + W / 2)], &[(1, 2 * W), (2, 4 * W)]],
    )
    .run(BOUNDED.up_to(1));
}

/// The catch-all has admitted key 1. A thread with an older reading asks for key 1, while the entries pass to other keys.
#[test]
fn keyed_full_share_and_unmarked() {
    // Marks end at multiples of 4,096 ns.
    const DROPPED: u64 = 4 * W + W / 2;
    Scene::new(
        packed(1, 1),
        &[(9, 2 * W), (101, 2 * W), (1, 2 * W + W / 2)],
        &[&[(1, 3 * W + W / 4)], &[(7, DROPPED), (8, DROPPED)]],
    )
    .of_two_entries()
    .without_spent()
    .run(BOUNDED.up_to(1));
}

/// An admission by the catch-all is refunded after the key has got an entry.
#[test]
fn keyed_full_refunded() {
    Scene::new(
        packed(2, 1),
        &[(9, 0), (101, 2 * W)],
        &[&[(1, 2 * W)], &[(1, 2 * W)]],
    )
    .run_and(BOUNDED.up_to(2), |limiter, admitted| {
        let shared = admitted
            .concat()
            .iter()
            .filter(|admission| admission.overflow)
            .count() as u64;
        limiter.clock().set(Nanos::new(2 * W));
        // The table is full for two cells.
        let peek = limiter.peek(&77);
        assert_eq!(admitted.concat().len(), 2);
        assert!(
            !peek.is_overflow() || peek.spent() == shared,
            "{} for {admitted:?}",
            peek.spent()
        );
    });
}

/// Key 1 charges two permits and refunds them. Key 2 gets its entry as fresh, and charges one permit. A decision of
/// key 1 that stalls meanwhile must not find the word that it has read, and charge key 2.
#[test]
fn keyed_forgotten_after_a_refund() {
    const LATER: Nanos = Nanos::new(2 * W);
    let quota = Quota::new(1, Duration::from_nanos(W)).unwrap();
    let bucket = Gcra::token_bucket(quota, 3).unwrap();
    let ring = CounterRing::builder(quota).cells(1).classic().build().unwrap();
    forgotten_after_a_refund(bucket, 2, LATER);
    forgotten_after_a_refund(ring, 1, LATER);
}

fn forgotten_after_a_refund<A: Reclaim + Clone + Send + Sync + 'static>(it: A, permits: u64, later: Nanos) {
    BOUNDED.up_to(2).explore(move || {
        let limiter = Arc::new(
            KeyedRateLimiter::builder(it.clone())
                .capacity(1)
                .on_full(OnFull::Forget)
                .build_with(ManualClock::new(), Plain)
                .unwrap(),
        );
        let entries = limiter.capacity() as u64;
        for key in 10..9 + entries {
            assert!(limiter.check_at(&key, later, it.max_request()).is_ok());
        }
        let taken = limiter
            .check_at(&1, Nanos::new(W), permits)
            .unwrap()
            .into_receipt();
        let other = {
            let limiter = Arc::clone(&limiter);
            thread::spawn(move || match limiter.check_at(&1, later, 1) {
                Ok(taken) => u64::from(!taken.is_overflow()),
                Err(_) => 0,
            })
        };
        let exact = limiter.refund(&1, taken) == ringgate::Settled::Exact;
        let own = limiter.check_at(&2, later, 1);
        let own = own.is_ok_and(|taken| !taken.is_overflow());
        let others = other.join().unwrap();
        limiter.clock().set(later);
        let spent = limiter.peek(&2).spent();
        // Key 2 still has the entry, and has inherited the charges of key 1 after the refund.
        if own && exact && limiter.reset(&2) {
            let forgotten = limiter.counts().forgotten + limiter.counts().reclaimed;
            let inherits = others > 0 && spent > 2;
            assert!(
                spent == 1 || inherits || forgotten > 1,
                "{spent} spent by key 2, {others} by key 1"
            );
        }
    });
}

/// Two keys claim the entry of key 1 concurrently.
#[test]
fn keyed_claimed_by_two() {
    Scene::new(
        packed(1, 1),
        &[(9, 0), (101, 3 * W)],
        &[&[(1, 3 * W)], &[(2, 3 * W)]],
    )
    .on_full(OnFull::Deny)
    .run_and(BOUNDED, |limiter, admitted| {
        assert_eq!(admitted.concat().len(), 1);
        assert_eq!(limiter.len(), limiter.capacity() as u64);
    });
}

/// A refund while another thread enters the same key.
#[test]
fn keyed_refund_beside_entering() {
    BOUNDED.explore(|| {
        let limiter = Arc::new(
            KeyedRateLimiter::builder(packed(2, 1))
                .capacity(2)
                .build_with(ManualClock::new(), Plain)
                .unwrap(),
        );
        let other = {
            let limiter = Arc::clone(&limiter);
            thread::spawn(move || {
                assert!(limiter.check_at(&1, Nanos::new(W), 1).is_ok());
            })
        };
        let taken = limiter.check_at(&1, Nanos::new(W), 1).unwrap().into_receipt();
        assert_eq!(limiter.refund(&1, taken), ringgate::Settled::Exact);
        other.join().unwrap();
    });
}

/// A table is saved while another thread decides about the key, or evicts it when it is idle. The file has at least the
/// current permits that were admitted before, and at most all admitted permits.
#[cfg(feature = "std")]
#[test]
fn keyed_save_beside_a_decision() {
    // The other thread's key, and the time of the save and of its decision.
    for (other_key, at) in [(1, W), (2, 9 * W)] {
        for wide_form in [false, true] {
            BOUNDED.explore(move || {
                let ring = if wide_form { wide(3, 1) } else { packed(3, 1) };
                let builder = KeyedRateLimiter::builder(ring).capacity(1).on_full(OnFull::Deny);
                let limiter = builder.clone().build_with(ManualClock::new(), Plain).unwrap();
                let limiter = Arc::new(limiter);
                assert!(limiter.check_at(&1, Nanos::new(W), 2).is_ok());
                limiter.clock().set(Nanos::new(at));
                let saving = {
                    let limiter = Arc::clone(&limiter);
                    thread::spawn(move || {
                        let mut file = Vec::new();
                        limiter.save(&mut file).unwrap();
                        file
                    })
                };
                assert!(limiter.check_at(&other_key, Nanos::new(at), 1).is_ok());
                let file = saving.join().unwrap();
                let restored = builder.restore_with(ManualClock::new(), Plain, &*file, Duration::ZERO);
                let restored = restored.unwrap();
                let spent = |key| restored.peek(&key).spent();
                match other_key {
                    1 => assert!((2..=3).contains(&spent(1)), "{}", spent(1)),
                    _ => assert!(spent(1) == 0 && spent(2) <= 1, "{}, {}", spent(1), spent(2)),
                }
            });
        }
    }
}

#[cfg(feature = "std")]
impl ringgate::keyed::SeededKeys for Plain {
    fn seeds(&self) -> [u64; 4] {
        [0; 4]
    }

    fn reseeded(self, _seeds: [u64; 4]) -> Self {
        self
    }

    fn sample(&self) -> u64 {
        1
    }
}

/// A key is reset while another thread decides about it, in the same cell or in a later one that it enters.
#[test]
fn keyed_reset() {
    for (wide_form, cell) in [(false, 1), (true, 1), (true, 3)] {
        BOUNDED.explore(move || {
            let ring = if wide_form { wide(1, 1) } else { packed(1, 1) };
            let limiter = Arc::new(
                KeyedRateLimiter::builder(ring)
                    .capacity(1)
                    .on_full(OnFull::Deny)
                    .build_with(ManualClock::new(), Plain)
                    .unwrap(),
            );
            limiter.clock().set(Nanos::new(W));
            assert!(limiter.check_at(&1, Nanos::new(W), 1).is_ok());
            let other = {
                let limiter = Arc::clone(&limiter);
                thread::spawn(move || limiter.check_at(&1, Nanos::new(cell * W), 1).is_ok())
            };
            assert!(limiter.reset(&1));
            let _ = other.join().unwrap();
            assert!(limiter.len() <= 1);
            // The entry can be used again.
            assert!(
                limiter.check_at(&2, Nanos::new(9 * W), 1).is_ok(),
                "wide {wide_form}"
            );
        });
    }
}

/// A key is refunded permits of an earlier cell, while it is reset and its entry passes to key 2, or to the key itself again.
/// The refund changes nothing in the later state, whatever it has read or written before.
#[test]
fn keyed_refund_beside_a_reset() {
    type Ring = fn(u64, u64) -> CounterRing;
    let cases: [(Ring, _, _); 4] = [
        (packed, 1, true),
        (wide, 1, true),
        (wide, 2, true),
        (wide, 2, false),
    ];
    for (ring, next, reset) in cases {
        BOUNDED.explore(move || {
            let builder = KeyedRateLimiter::builder(ring(2, 2))
                .capacity(1)
                .on_full(OnFull::Deny);
            let limiter = Arc::new(builder.build_with(ManualClock::new(), Plain).unwrap());
            let receipt = limiter.check_at(&1, Nanos::new(W), 1).unwrap().into_receipt();
            assert!(limiter.check_at(&1, Nanos::new(2 * W), 1).is_ok());
            // The entry of key 1 is the only one that is idle at 6 W.
            for key in 10..9 + limiter.capacity() as u64 {
                assert!(limiter.check_at(&key, Nanos::new(6 * W), 1).is_ok());
            }
            limiter.clock().set(Nanos::new(2 * W));
            let other = {
                let limiter = Arc::clone(&limiter);
                thread::spawn(move || limiter.refund(&1, receipt))
            };
            assert_eq!(reset, reset && limiter.reset(&1));
            assert!(limiter.check_at(&next, Nanos::new(6 * W), 2).is_ok());
            assert!(limiter.check_at(&next, Nanos::new(7 * W), 1).is_err());
            let _ = other.join().unwrap();
            for cell in 6..9 {
                limiter.clock().set(Nanos::new(cell * W));
                assert_eq!(limiter.peek(&next).spent(), 2, "in cell {cell}");
            }
        });
    }
}

/// A key is refunded permits of an earlier cell, while its entry passes to key 2 under `Forget`. Key 2 begins with the charges
/// of key 1, with or without the refunded permit. A permit of key 2 is never refunded.
#[test]
fn keyed_refund_beside_forgetting() {
    for wide_form in [false, true] {
        BOUNDED.explore(move || {
            let ring = if wide_form { wide(4, 2) } else { packed(4, 2) };
            let builder = KeyedRateLimiter::builder(ring)
                .capacity(1)
                .on_full(OnFull::Forget);
            let limiter = Arc::new(builder.build_with(ManualClock::new(), Plain).unwrap());
            // The entry of key 1 is the one with the fewest spent permits.
            for key in 10..9 + limiter.capacity() as u64 {
                assert!(limiter.check_at(&key, Nanos::new(2 * W), 4).is_ok());
            }
            let receipt = limiter.check_at(&1, Nanos::new(W), 1).unwrap().into_receipt();
            assert!(limiter.check_at(&1, Nanos::new(2 * W), 1).is_ok());
            let other = {
                let limiter = Arc::clone(&limiter);
                thread::spawn(move || limiter.refund(&1, receipt) == ringgate::Settled::Exact)
            };
            assert!(limiter.check_at(&2, Nanos::new(3 * W), 2).is_ok());
            let is_refunded = other.join().unwrap();
            // Of cells 1 to 3, of cells 2 to 4, and of cells 3 to 5.
            let spent = [3, 4, 5].map(|cell| {
                limiter.clock().set(Nanos::new(cell * W));
                limiter.peek(&2).spent()
            });
            let of_key_1 = 2 - u64::from(is_refunded);
            assert!(spent[0] == 2 + of_key_1 || spent[0] == 4, "{spent:?}");
            assert_eq!(spent[1..], [3, 2]);
        });
    }
}
