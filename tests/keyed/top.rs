//! The keys that come up most often, against an exact count.

use core::hash::{Hash, Hasher};
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::HashMap;
use std::panic;
use std::thread;

use ringgate::TopKeys;

/// Keys of which number i comes up about in proportion to 1/i, the same every time.
fn stream(keys: u64) -> impl Iterator<Item = u64> {
    // Marsaglia's xorshift.
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    core::iter::repeat_with(move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let part = random as f64 / u64::MAX as f64;
        (keys as f64).powf(part) as u64
    })
}

/// All that the guarantee says, of `top` and what was added.
fn judge(top: &TopKeys<u64>, exact: &HashMap<u64, u64>, followed: usize) {
    let all: u64 = exact.values().sum();
    let found = top.top(usize::MAX);
    assert_eq!(found.len(), exact.len().min(followed));
    assert!(found.is_sorted_by(|one, other| one.count >= other.count));
    // Nothing is counted twice, and nothing is left out.
    assert_eq!(found.iter().map(|it| it.count).sum::<u64>(), all);
    let found: HashMap<u64, (u64, u64)> = found.iter().map(|it| (it.key, (it.count, it.error))).collect();
    assert_eq!(found.len(), exact.len().min(followed), "each key once");
    let least = found.values().map(|&(count, _)| count).min().unwrap_or(0);
    for (key, &times) in exact {
        match found.get(key) {
            Some(&(count, error)) => {
                assert!(
                    count - error <= times && times <= count,
                    "{key}: {times} of {count} - {error}"
                );
                assert!(error <= all / followed as u64, "{key}: {error}");
            }
            None => {
                assert!(times * followed as u64 <= all, "{key} has {times} of {all}");
                assert!(times <= least, "{key} has {times}");
            }
        }
    }
}

#[test]
fn frequent_keys_are_found_and_counts_are_right_within_their_error() {
    // Miri: a step takes a hundredth of a second.
    let (keys, calls) = if cfg!(miri) { (50, 300) } else { (10_000, 50_000) };
    for followed in [1, 2, 3, 10, 100, 1_000] {
        let top = TopKeys::new(followed).expect("so many can be followed");
        let mut exact = HashMap::new();
        for (turn, key) in stream(keys).take(calls).enumerate() {
            top.add(&key);
            *exact.entry(key).or_insert(0) += 1;
            if (turn + 1).is_power_of_two() {
                judge(&top, &exact, followed);
            }
        }
        judge(&top, &exact, followed);
    }
}

/// The worst order: every key that is not followed takes the place of another.
#[test]
fn a_key_of_more_than_its_part_survives_a_stream_of_new_ones() {
    let calls = if cfg!(miri) { 100 } else { 10_000 };
    let top = TopKeys::new(10).expect("ten can be followed");
    let mut exact = HashMap::new();
    for turn in 0..calls {
        // One in nine, which is more than one in ten.
        let key = if turn % 9 == 0 { 0 } else { 1 + turn };
        top.add(&key);
        *exact.entry(key).or_insert(0) += 1;
    }
    judge(&top, &exact, 10);
    assert!(top.top(10).iter().any(|it| it.key == 0));
}

#[test]
fn as_many_keys_as_are_followed_are_counted_exactly() {
    let top = TopKeys::new(100).expect("a hundred can be followed");
    for turn in 0..100_u64 {
        for key in turn..100 {
            top.add(&key);
        }
    }
    for most in [0, 1, 7, 100, 101] {
        let found = top.top(most);
        assert_eq!(found.len(), most.min(100));
        for (key, it) in (0..100).rev().zip(&found) {
            assert_eq!((it.key, it.count, it.error), (key, key + 1, 0));
        }
    }
}

/// A key takes over the smallest count, and with it the error.
#[test]
fn the_rarest_key_makes_room() {
    let top = TopKeys::<String>::new(2).expect("two can be followed");
    for key in ["alice", "alice", "alice", "bob", "carol"] {
        top.add(key);
    }
    let found = top.top(2);
    let told = |index: usize| (found[index].key.as_str(), found[index].count, found[index].error);
    assert_eq!((told(0), told(1)), (("alice", 3, 0), ("carol", 2, 1)));
    // And again, by the one that it took the place of.
    top.add("bob");
    let found = top.top(1);
    assert_eq!(
        (found[0].key.as_str(), found[0].count, found[0].error),
        ("bob", 3, 2)
    );
}

#[test]
fn cleared_follows_anew() {
    let top = TopKeys::new(2).expect("two can be followed");
    for key in [1_u64, 1, 2, 3] {
        top.add(&key);
    }
    top.clear();
    assert!(top.top(10).is_empty());
    for key in [4_u64, 5, 5] {
        top.add(&key);
    }
    let found: Vec<_> = top
        .top(10)
        .iter()
        .map(|it| (it.key, it.count, it.error))
        .collect();
    assert_eq!(found, [(5, 2, 0), (4, 1, 0)]);
}

#[test]
fn one_to_2_to_the_20_can_be_followed() {
    for followed in [0, (1 << 20) + 1, usize::MAX] {
        let error = TopKeys::<u64>::new(followed).expect_err("out of range");
        assert_eq!(error.field, "followed");
        assert_eq!(
            error.to_string(),
            format!("invalid followed: {followed} (expected 1 to 1048576 keys)")
        );
    }
    assert_eq!(TopKeys::<u64>::MOST_FOLLOWED, 1 << 20);
    for followed in [1, 1 << 20] {
        assert!(TopKeys::<u64>::new(followed).is_ok());
    }
}

/// Nothing is replaced, so nothing is lost.
#[test]
fn threads_that_add_at_once_sum_up() {
    let (keys, rounds) = if cfg!(miri) { (5, 10) } else { (100, 1_000) };
    let top = TopKeys::new(100).expect("a hundred can be followed");
    thread::scope(|scope| {
        for turn in 0..2 {
            let top = &top;
            scope.spawn(move || {
                for step in 0..keys * rounds {
                    let key = if turn == 0 {
                        step % keys
                    } else {
                        keys - 1 - step % keys
                    };
                    top.add(&key);
                }
            });
        }
    });
    let found = top.top(usize::MAX);
    assert_eq!(found.len() as u64, keys);
    assert!(
        found.iter().all(|it| (it.count, it.error) == (2 * rounds, 0)),
        "{found:?}"
    );
}

/// A key whose clones fail when the counter says so.
#[derive(Debug)]
struct Fragile<'a>(u64, &'a AtomicU64);

impl Clone for Fragile<'_> {
    fn clone(&self) -> Self {
        let left = self.1.fetch_sub(1, Ordering::Relaxed);
        assert!(left > 0, "it cannot be cloned");
        Self(self.0, self.1)
    }
}

impl PartialEq for Fragile<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Fragile<'_> {}

impl Hash for Fragile<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// Wherever that happens, what is counted afterwards is right but for that key.
#[test]
fn a_key_that_panics_leaves_the_others_followed() {
    for clones in 0..2 {
        for followed in [2, 4] {
            let budget = AtomicU64::new(u64::MAX / 2);
            let top = TopKeys::new(followed).expect("so many can be followed");
            for key in [1, 1, 1, 2, 2] {
                top.add(&Fragile(key, &budget));
            }
            budget.store(clones, Ordering::Relaxed);
            let add = panic::AssertUnwindSafe(|| top.add(&Fragile(3, &budget)));
            assert!(panic::catch_unwind(add).is_err());
            budget.store(u64::MAX / 2, Ordering::Relaxed);
            for key in [1, 2, 2] {
                top.add(&Fragile(key, &budget));
            }
            let found = top.top(4);
            assert_eq!(found.iter().filter(|it| it.key.0 == 1).count(), 1);
            assert_eq!(found.iter().filter(|it| it.key.0 == 2).count(), 1);
            for it in found {
                let times = if it.key.0 < 3 { 4 } else { 0 };
                assert!(it.count - it.error <= times && times <= it.count, "{it:?}");
            }
        }
    }
}
