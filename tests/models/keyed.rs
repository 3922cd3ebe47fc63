//! Models of the table of keys.
//!
//! Under loom a bucket is one entry. A table for one key has one; one for two keys has two, the primary and the alternate
//! entry of every key (by turns); one for three keys has a backyard of one more; one for four has three in the front. With
//! real threads a key has at most 20 entries. Each model asserts of every execution:
//!
//! - *bound*: no interval of one window holds more permits of a key than the bound, whether its own entry or the
//!   catch-all decided;
//! - *books*: the permits that are spent in a key's own entry in the end are those that the key was admitted there, so
//!   that none was charged to another key, and none was lost;
//! - *one entry*: as many entries are in use as keys have one;
//! - *room*: after a long silence a new key can get every entry.

use core::time::Duration;

use ringgate::algorithm::Reclaim;
use ringgate::keyed::{KeyedBuilder, Keys, OnFull};
use ringgate::{CounterRing, Gcra, KeyedRateLimiter, ManualClock, Nanos, Quota, RateLimiter, TimestampRing};

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

/// A limiter, the calls of each thread, and the assertions about them.
struct Scene<A> {
    algorithm: A,
    on_full: OnFull,
    before: &'static [Call],
    threads: &'static [&'static [Call]],
    /// Keys that come first and are reset.
    resets: &'static [u64],
    /// Entries of the table, under loom.
    entries: u64,
    /// Whether a key's own state is compared with its admissions in the end.
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

    /// With two entries for each key, where one entry does not tell.
    fn of_two_entries(self) -> Self {
        self.of_entries(2)
    }

    fn of_entries(self, entries: u64) -> Self {
        Self { entries, ..self }
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
                    .capacity(self.entries)
                    .on_full(self.on_full)
                    .build_with(ManualClock::new(), Plain)
                    .unwrap(),
            );
            let mut admitted = vec![play(&limiter, &occupied(self.before, limiter.capacity()))];
            for key in self.resets {
                assert!(limiter.reset(key));
            }
            // The last thread is this one: one fewer for the model checker to switch between. It begins, so a
            // single preemption puts it to sleep for as long as the others run.
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
            self.judge(&limiter, &admitted.concat());
            judge(&limiter, &admitted[1..]);
            self.judge_room(&limiter);
        });
    }

    fn judge(&self, limiter: &Limiter<A>, admitted: &[Admission]) {
        let calls = || self.threads.iter().copied().flatten().chain(self.before);
        let last = calls().map(|&(_, now)| now).max().unwrap();
        limiter.clock().set(Nanos::new(last));
        let window = u64::try_from(self.algorithm.window().as_nanos()).unwrap();
        // Those that were admitted nothing, too: what others were admitted may have been charged to them.
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

    /// Asserts that after a long silence new keys get every entry.
    fn judge_room(&self, limiter: &Limiter<A>) {
        let later = Nanos::new(100 * W);
        limiter.clock().set(later);
        // A key may have three of the entries: only so many are sure to be found.
        for key in 0..self.entries.min(3) {
            let answer = limiter.check_at(&(50_000 + key), later, 1);
            assert!(
                answer.is_ok_and(|taken| !taken.is_overflow()),
                "room for {key} of {} only",
                self.entries
            );
        }
    }
}

/// Adapts calls to the size of the table: a key above 100 stands for as many keys as leave one entry.
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

/// A counter ring in several words.
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

/// Two threads see a key for the first time at once: one enters it into the vacant entry, and both decide there.
#[test]
fn keyed_same_key() {
    Scene::new(packed(1, 1), &[], &[&[(1, W)], &[(1, W)]])
        .of_two_entries()
        .run_and(FULL, |limiter, admitted| {
            assert_eq!(admitted.concat().len(), 1);
            assert_eq!(limiter.len(), 1);
        });
}

/// The primary entry of the key is another's, so both threads enter the key into the alternate one.
#[test]
fn keyed_same_key_in_the_alternate_bucket() {
    Scene::new(packed(1, 1), &[(4, W)], &[&[(1, W)], &[(1, W)]])
        .of_two_entries()
        .run_and(FULL, |limiter, admitted| {
            assert_eq!(admitted.concat().len(), 1);
            assert_eq!(limiter.len(), 2);
        });
}

/// Two threads enter one key while a third enters another one, which may take the primary entry of both.
#[test]
fn keyed_same_key_beside_another() {
    Scene::new(packed(1, 1), &[], &[&[(4, W)], &[(1, W)], &[(1, W)]])
        .of_two_entries()
        .run_and(BOUNDED, |limiter, admitted| {
            assert_eq!(admitted.concat().len(), 2);
            assert_eq!(limiter.len(), 2);
        });
}

/// The primary entry is idle for one thread, and in use for the other, whose reading is an instant older. The alternate
/// one is vacant: both go there.
#[test]
fn keyed_idle_beside_a_vacancy() {
    Scene::new(packed(1, 1), &[(4, 0)], &[&[(1, 2 * W)], &[(1, 2 * W - 1)]])
        .of_two_entries()
        .run_and(BOUNDED, |limiter, admitted| {
            assert_eq!(admitted.concat().len(), 1);
            assert_eq!(limiter.counts().reclaimed, 0);
        });
}

/// The primary entry has a tombstone that is idle for one thread only.
#[test]
fn keyed_tombstone_beside_a_vacancy() {
    let scene = Scene::new(packed(1, 1), &[(4, 0)], &[&[(1, 2 * W)], &[(1, 2 * W - 1)]]);
    let scene = Scene {
        resets: &[4],
        ..scene
    };
    scene.of_two_entries().run_and(BOUNDED, |limiter, admitted| {
        assert_eq!(admitted.concat().len(), 1);
        assert_eq!(limiter.len(), 1);
    });
}

/// Key 1 loses its primary entry at 3 W to key 5, whose other entry is in use. A thread with a reading of before enters
/// key 1 into its alternate entry, which is vacant.
#[test]
fn keyed_older_reading_beside_a_vacancy() {
    Scene::new(
        packed(1, 1),
        &[(1, W / 2), (3, 3 * W)],
        &[&[(1, W)], &[(5, 3 * W)]],
    )
    .of_entries(4)
    .run(BOUNDED);
}

/// Two threads with two permits and two calls of one.
#[test]
fn keyed_same_key_twice() {
    Scene::new(packed(2, 1), &[], &[&[(1, W), (1, W)], &[(1, W)]])
        .of_two_entries()
        .run_and(BOUNDED, |limiter, admitted| {
            assert_eq!(admitted.concat().len(), 2);
            assert_eq!(limiter.len(), 1);
        });
}

/// Two threads see a key for the first time at once, where both of its entries are idle: they agree on one.
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

/// One thread enters a key into the only entry; the other finds none, and asks the catch-all.
#[test]
fn keyed_shared_while_entered() {
    Scene::new(packed(1, 1), &[], &[&[(1, W)], &[(1, W)]]).run(BOUNDED);
}

/// Three threads enter one key.
#[test]
fn keyed_three_of_one_key() {
    Scene::new(packed(1, 1), &[], &[&[(1, W)], &[(1, W)], &[(1, W)]])
        .of_two_entries()
        .run_and(BOUNDED, |_, admitted| {
            assert_eq!(admitted.concat().len(), 1);
        });
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
    .run(BOUNDED.up_to(1));
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

/// A thread publishes an entry, and sleeps while the key gets another, uses it, and loses it.
#[test]
fn keyed_older_reading_published() {
    Scene::new(
        packed(1, 1),
        &[(8, 0), (9, 0)],
        &[&[(1, 3 * W + W / 2), (2, 6 * W)], &[(1, 3 * W)]],
    )
    .of_two_entries()
    .run(BOUNDED.up_to(2));
}

/// Every entry is in use. Key 1 is served by the catch-all, while an entry comes free for it.
#[test]
fn keyed_full_share() {
    Scene::new(
        packed(1, 1),
        &[(9, 0), (101, 2 * W)],
        &[&[(1, W + W / 2)], &[(1, 2 * W)]],
    )
    .run(BOUNDED.up_to(2));
}

/// Two threads find the table full, and ask the catch-all.
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

/// A key with an entry keeps it while its window runs, except by `Forget`.
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

/// Key 1 loses its entry to key 2, which uses all of its limit, and gets it back. A decision of key 1 that
/// sleeps through this must not be denied for what key 2 has spent.
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

/// One thread finds the front full and enters the key in the backyard; the other, whose reading is an instant
/// later, finds the front idle.
#[test]
fn keyed_backyard() {
    Scene::new(
        packed(1, 1),
        &[(3, W / 2), (5, W / 2)],
        &[&[(1, 2 * W)], &[(1, 2 * W - 1)]],
    )
    .of_entries(3)
    .run_and(BOUNDED, |_, admitted| {
        let ones = admitted.concat().iter().filter(|it| it.key == 1).count();
        assert_eq!(ones, 1);
    });
}

/// Two threads see a key for the first time at once, in vacant entries of several words.
#[test]
fn keyed_same_key_wide_vacant() {
    Scene::new(wide(1, 1), &[], &[&[(1, W)], &[(1, W)]])
        .of_two_entries()
        .run_and(BOUNDED, |limiter, admitted| {
            assert_eq!(admitted.concat().len(), 1);
            assert_eq!(limiter.len(), 1);
        });
}

/// Two threads see a key for the first time at once, in idle entries of several words: an entry that one of them gives
/// up can be had again.
#[test]
fn keyed_same_key_wide() {
    Scene::new(wide(1, 1), &[(2, 0), (3, 0)], &[&[(1, 3 * W)], &[(1, 3 * W)]])
        .of_two_entries()
        .run_and(BOUNDED.up_to(2), |limiter, admitted| {
            assert_eq!(admitted.concat().len(), 1);
            // A real table has room beside the two idle keys; that of loom has two entries.
            let most = limiter.capacity().min(3) as u64;
            assert!((1..=most).contains(&limiter.len()));
        });
}

/// Key 1 finds the table full, and is about to be admitted by the catch-all; meanwhile it gets an entry, uses it,
/// and loses it.
#[test]
fn keyed_full_share_and_gone() {
    Scene::new(
        packed(1, 1),
        &[(9, 0), (101, W)],
        &[&[(1, W + W / 2)], &[(1, 2 * W), (2, 4 * W)]],
    )
    .run(BOUNDED.up_to(1));
}

/// An admission by the catch-all is refunded after the key has got an entry.
#[test]
fn keyed_full_given_back() {
    Scene::new(
        packed(2, 1),
        &[(9, 0), (101, 2 * W)],
        &[&[(1, 2 * W)], &[(1, 2 * W)]],
    )
    .run_and(BOUNDED, |limiter, admitted| {
        let shared = admitted
            .concat()
            .iter()
            .filter(|admission| admission.overflow)
            .count() as u64;
        limiter.clock().set(Nanos::new(2 * W));
        // A key that finds the table full, as it is for two cells.
        let peek = limiter.peek(&77);
        assert_eq!(admitted.concat().len(), 2);
        assert!(
            !peek.is_overflow() || peek.spent() == shared,
            "{} for {admitted:?}",
            peek.spent()
        );
    });
}

/// Key 1 has taken two permits and gives them back; key 2 takes over its entry as fresh, and takes one permit. A decision
/// of key 1 that sleeps through this must not find the word that it has read and charge key 2.
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
    BOUNDED.explore(move || {
        let limiter = Arc::new(
            KeyedBuilder::new(it.clone())
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
        // Of key 2, whose entry it is still; it has inherited what key 1 had taken after the refund.
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

/// The entry that key 1 leaves is claimed by two keys at once.
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
            KeyedBuilder::new(packed(2, 1))
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

/// A key is reset while another thread decides about it.
#[test]
fn keyed_reset() {
    for wide_form in [false, true] {
        BOUNDED.explore(move || {
            let ring = if wide_form { wide(1, 1) } else { packed(1, 1) };
            let limiter = Arc::new(
                KeyedBuilder::new(ring)
                    .capacity(1)
                    .on_full(OnFull::Deny)
                    .build_with(ManualClock::new(), Plain)
                    .unwrap(),
            );
            limiter.clock().set(Nanos::new(W));
            assert!(limiter.check_at(&1, Nanos::new(W), 1).is_ok());
            let other = {
                let limiter = Arc::clone(&limiter);
                thread::spawn(move || limiter.check_at(&1, Nanos::new(W), 1).is_ok())
            };
            assert!(limiter.reset(&1));
            let _ = other.join().unwrap();
            assert!(limiter.len() <= 1);
            // The entry can be had again.
            assert!(
                limiter.check_at(&2, Nanos::new(9 * W), 1).is_ok(),
                "wide {wide_form}"
            );
        });
    }
}
