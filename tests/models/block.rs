//! Models of blocks after violations.
//!
//! Each execution asserts that a key is denied from the denial that blocks it until the end of the block, that the block begins
//! once, and that no other key is blocked.

use core::hash::Hash;
use core::time::Duration;

use ringgate::rules::{Block, Cost, RuleSetBuilder};
use ringgate::{Key, ManualClock, Nanos, Quota, Rule, RuleSet};

#[cfg(not(ringgate_loom))]
use alloc::sync::Arc;
#[cfg(ringgate_loom)]
use loom::{sync::Arc, thread};
#[cfg(not(ringgate_loom))]
use std::thread;

use super::harness::{BOUNDED, Model};

const SECOND: u64 = 1_000_000_000;

type Set = RuleSet<u64, ManualClock>;

/// A rule that denies each request, and blocks the key for a minute after this many denials in ten seconds.
fn rules(violations: u64) -> Arc<Set> {
    let key = Key::new("key", |request: &u64, key| request.hash(key));
    let quota = Quota::new(1, Duration::from_secs(3600)).unwrap();
    let after = Quota::new(violations, Duration::from_secs(10)).unwrap();
    let two = Cost::new("two", |_: &u64| 2);
    let rule = Rule::new("a", quota).cells(1).by(&key).cost(&two).capacity(1);
    let rule = rule.block(Block::new(after, Duration::from_secs(60)));
    let rules = RuleSetBuilder::new().rule(rule);
    Arc::new(rules.build_with(ManualClock::new(), [1, 2, 3, 4]).unwrap())
}

/// The time until the end of the block that denies the key at `now`, or zero.
fn deny(rules: &Set, key: u64, now: u64) -> Duration {
    let denied = rules
        .check_at(&key, Nanos::new(now))
        .expect_err("two are too many");
    let block = denied.violations().find(|violation| violation.is_block);
    block.and_then(|block| block.retry_after).unwrap_or_default()
}

fn blocks(rules: &Set) -> u64 {
    rules.counts().map(|(_, counts)| counts.blocks).sum()
}

#[cfg(not(ringgate_loom))]
fn explore(model: Model, test: impl Fn() + Send + Sync + 'static) {
    model.explore(test);
}

/// The stack of loom's first thread has 32 KiB, which is too small for rules that are built and evict an entry in one thread.
#[cfg(ringgate_loom)]
fn explore(model: Model, test: impl Fn() + Send + Sync + 'static) {
    let test = alloc::sync::Arc::new(test);
    model.explore(move || {
        let test = alloc::sync::Arc::clone(&test);
        let large = thread::Builder::new().stack_size(1 << 17);
        large.spawn(move || test()).unwrap().join().unwrap();
    });
}

const NOW: u64 = 10_000 * SECOND;

/// Two denials reach the number, or exceed it. After both, the key is blocked, and the block has begun once.
#[test]
fn block_begins_once() {
    for violations in [1, 2] {
        explore(BOUNDED.up_to(2), move || {
            let rules = rules(violations);
            let theirs = {
                let rules = Arc::clone(&rules);
                thread::spawn(move || {
                    deny(&rules, 1, NOW);
                    // With one violation, the own denial has blocked the key, or found it blocked.
                    violations > 1 || !deny(&rules, 1, NOW).is_zero()
                })
            };
            deny(&rules, 1, NOW);
            let own = violations > 1 || !deny(&rules, 1, NOW).is_zero();
            assert!(theirs.join().unwrap() && own, "a denial was forgotten");
            assert_eq!(deny(&rules, 1, NOW), Duration::from_secs(60));
            assert_eq!(blocks(&rules), 1);
        });
    }
}

/// A violation with an older reading, beside one that begins a new window: none is lost, and no block is shorter.
#[test]
fn block_beside_an_older_reading() {
    explore(BOUNDED.up_to(2), || {
        let rules = rules(2);
        let later = NOW + 20 * SECOND;
        let theirs = {
            let rules = Arc::clone(&rules);
            thread::spawn(move || deny(&rules, 1, NOW))
        };
        deny(&rules, 1, later);
        theirs.join().unwrap();
        // If the older violation came second, it counts in the later window, whose block lasts from its beginning.
        let was_blocked = blocks(&rules) == 1;
        let left = deny(&rules, 1, later);
        assert_eq!(!left.is_zero(), was_blocked);
        assert_eq!(deny(&rules, 1, later), Duration::from_secs(60));
    });
}

/// A violation of a key whose entry passes to another key meanwhile. Neither key is blocked by the violation of the other.
#[test]
fn block_of_a_reused_entry() {
    explore(BOUNDED.up_to(2), || {
        let rules = rules(2);
        // The violations of other keys fill the table. They are idle at the later time.
        let others = if cfg!(ringgate_loom) { 1 } else { 12 };
        for key in 100..100 + others {
            assert!(deny(&rules, key, NOW).is_zero());
        }
        let later = NOW + 11 * SECOND;
        let theirs = {
            let rules = Arc::clone(&rules);
            // With its older reading it is the second violation of the key, unless the key has lost the entry.
            thread::spawn(move || deny(&rules, 100, NOW))
        };
        let own = deny(&rules, 1, later);
        theirs.join().unwrap();
        assert_eq!(own, Duration::ZERO, "blocked by the violations of another key");
        let after = deny(&rules, 1, later);
        assert!(after.is_zero() || after >= Duration::from_secs(50), "{after:?}");
        assert!(blocks(&rules) <= 2);
    });
}
