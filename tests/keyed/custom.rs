//! Algorithms that are not the crate's own, as far as a table checks them.

use core::sync::atomic::AtomicU64;

use super::*;
use ringgate::ConfigError;
use ringgate::algorithm::{Attempt, InUnits};

/// A bucket that says something else of itself.
#[derive(Clone)]
struct Bucket {
    it: Gcra,
    most: u64,
    words: usize,
    finish_calls: Arc<AtomicU64>,
}

impl Bucket {
    fn new(it: Gcra, most: u64, words: usize) -> Self {
        let finish_calls = Arc::default();
        Self {
            it,
            most,
            words,
            finish_calls,
        }
    }
}

impl Algorithm for Bucket {
    fn words(&self) -> usize {
        self.words
    }

    fn max_request(&self) -> u64 {
        self.most
    }

    fn bound(&self) -> u64 {
        self.it.bound()
    }

    fn window(&self) -> Duration {
        self.it.window()
    }

    fn decide<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Receipt> {
        self.it.decide(words, now, permits)
    }

    fn ready_at<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        self.it.ready_at(words, now, permits)
    }

    fn remaining<W: Words>(&self, words: W, now: Nanos) -> u64 {
        self.it.remaining(words, now)
    }

    fn refund<W: Words>(&self, words: W, receipt: &Receipt, permits: u64) -> bool {
        self.it.refund(words, receipt, permits)
    }

    fn charge<W: Words>(&self, words: W, now: Nanos, permits: u64) -> u64 {
        self.it.charge(words, now, permits)
    }

    fn spent<W: Words>(&self, words: W, now: Nanos) -> u64 {
        self.it.spent(words, now)
    }

    fn idle_at<W: Words>(&self, words: W, now: Nanos) -> Option<Nanos> {
        self.it.idle_at(words, now)
    }
}

impl Reclaim for Bucket {
    fn span(&self) -> Duration {
        self.it.span()
    }

    fn attempt<W: Words>(&self, limit: Option<u64>, words: W, now: Nanos, permits: u64) -> Attempt {
        if let Some(limit) = limit {
            let lower = self.with_limit(limit).expect("a valid limit");
            return lower.attempt(None, words, now, permits);
        }
        self.it.attempt(None, words, now, permits)
    }

    fn finish_step<W: Words>(&self, _: W) {
        self.finish_calls.fetch_add(1, Ordering::Relaxed);
    }

    fn is_idle(&self, first: u64, now: Nanos) -> bool {
        self.it.is_idle(first, now)
    }

    fn advance(&self, first: u64, now: Nanos) -> Option<u64> {
        // Also `None` for a word that is ahead of the clock, as the trait permits.
        if self.it.latest_time(first) > now {
            return None;
        }
        self.it.advance(first, now)
    }

    fn idle_from(&self, first: u64) -> Option<Nanos> {
        self.it.idle_from(first)
    }

    fn latest_time(&self, first: u64) -> Nanos {
        self.it.latest_time(first)
    }

    /// A limit above that of the bucket is accepted, and changes only what the bucket says of itself.
    fn with_limit(&self, limit: u64) -> Result<Self, ConfigError> {
        if limit == 0 {
            return Err(self.it.with_limit(0).expect_err("no permits"));
        }
        Ok(Self {
            it: self.it.with_limit(limit).unwrap_or_else(|_| self.it.clone()),
            most: limit,
            ..self.clone()
        })
    }
}

fn built(most: u64, words: usize) -> Result<(), ConfigError> {
    let it = Gcra::new(quota("10/s")).expect("a bucket");
    sized(Bucket::new(it, most, words), 10, OnFull::Share)
        .build_with(ManualClock::new(), AnyKey::with_seeds([1, 2, 3, 4]))
        .map(|limiter| assert!(limiter.check("key").is_ok()))
}

/// An algorithm that only makes copies with a lower limit decides by these copies, in a table and alone.
#[test]
fn a_lower_limit_needs_no_method_of_its_own() {
    let it = Gcra::new(quota("10/s")).expect("a bucket");
    let bucket = Bucket::new(it, 10, 1);
    let keyed = build(sized(bucket.clone(), 1, OnFull::Share), ManualClock::new(), Plain);
    let one = RateLimiter::with_clock(bucket, ManualClock::new());
    assert!(one.with_limit(0).is_err() && keyed.with_limit(0).is_err());
    let (one, keyed) = (one.with_limit(3).expect("three"), keyed.with_limit(3));
    let keyed = keyed.expect("three");
    for left in [2, 1, 0] {
        assert_eq!(one.check().expect("up to three").remaining(), left);
        assert_eq!(keyed.check(&1).expect("up to three").remaining(), left);
    }
    assert!(one.check().is_err() && keyed.check(&1).is_err());
}

/// The result for a limit can be shared by threads, as the limiter can.
#[test]
fn a_lower_limit_can_be_shared() {
    fn shared<T: Send + Sync>(_: &T) {}
    let it = Gcra::new(quota("10/s")).expect("a bucket");
    let one = RateLimiter::with_clock(it.clone(), ManualClock::new());
    shared(&one.with_limit(3).expect("three"));
    let keyed = build(sized(it, 1, OnFull::Share), ManualClock::new(), Plain);
    shared(&keyed.with_limit(3).expect("three"));
}

#[test]
fn a_table_rejects_an_algorithm_without_words() {
    assert_eq!(built(10, 0).expect_err("no state").field, "algorithm");
    assert_eq!(built(10, 1), Ok(()));
    assert_eq!(built(u64::MAX, 1), Ok(()));
}

/// A peek of a key without an entry reads entries of other keys, and finishes no step of other threads.
#[test]
fn a_peek_finishes_no_step() {
    let bucket = Bucket::new(Gcra::new(quota("10/s")).expect("a bucket"), 10, 1);
    let finish_calls = Arc::clone(&bucket.finish_calls);
    let table = sized(bucket, 1, OnFull::Deny);
    let limiter = build(table, ManualClock::new(), Plain);
    for key in 0..limiter.capacity() as u64 {
        assert!(limiter.check(&(1_000 + key)).is_ok());
    }
    let before = finish_calls.load(Ordering::Relaxed);
    assert!(limiter.peek(&1).is_overflow());
    assert_eq!(finish_calls.load(Ordering::Relaxed), before);
    // A decision calls it for an entry that does not advance.
    assert!(limiter.check(&1).is_err());
    assert!(finish_calls.load(Ordering::Relaxed) > before);
    // So does one with a lower limit, and one of an algorithm in units.
    let before = finish_calls.load(Ordering::Relaxed);
    let lower = limiter.with_limit(5).expect("a lower limit");
    assert!(lower.check(&1).is_err());
    assert!(finish_calls.load(Ordering::Relaxed) > before);
    let in_units = InUnits::new(quota("10/s"), |_, _| Ok(limiter.algorithm().clone()));
    let table = sized(in_units.expect("an algorithm"), 1, OnFull::Deny);
    let limiter = build(table, ManualClock::new(), Plain);
    let before = finish_calls.load(Ordering::Relaxed);
    for key in 0..=limiter.capacity() as u64 {
        assert_eq!(
            limiter.check(&(1_000 + key)).is_ok(),
            key < limiter.capacity() as u64
        );
    }
    assert!(finish_calls.load(Ordering::Relaxed) > before);
}
