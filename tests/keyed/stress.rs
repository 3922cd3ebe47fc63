//! Real threads and the real clock. Some of many keys get far more requests than others. Afterwards, the log of each
//! key is checked.

use std::thread;

use super::*;
use crate::common::Log;
use crate::random::Random;
use ringgate::{QuantaClock, Settled};

const KEYS: usize = 100_000;
const THREADS: u64 = 4;
const WINDOW: Duration = Duration::from_millis(2);

/// Draws keys, of which number i occurs in proportion to 1/i.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(keys: usize) -> Self {
        let mut sum = 0.0;
        let weigh = |rank: usize| {
            sum += 1.0 / (rank + 1) as f64;
            sum
        };
        Self((0..keys).map(weigh).collect())
    }

    fn draw(&self, random: &mut Random) -> u64 {
        let all = self.0[self.0.len() - 1];
        let at = random.bits() as f64 / u64::MAX as f64 * all;
        self.0.partition_point(|&sum| sum < at).min(self.0.len() - 1) as u64
    }
}

/// One admission: its key, the times at which its call began and ended, its reading, and the permits that were not
/// refunded.
#[derive(Clone, Copy, Debug)]
struct Call {
    key: u64,
    before: Nanos,
    after: Nanos,
    at: Nanos,
    permits: u64,
    overflow: bool,
}

/// The fewest calls of one thread. A thread may first run after the end.
const LEAST_CALLS: u64 = 1_000;

type Table = KeyedRateLimiter<Any, QuantaClock>;

/// The calls of one thread: the admissions, and the number of all calls.
fn ask(limiter: &Table, zipf: &Zipf, thread: u64, end: Nanos) -> (Vec<Call>, u64) {
    let mut random = Random::new(thread);
    let (mut calls, mut asked) = (Vec::new(), 0);
    loop {
        let before = limiter.clock().now();
        if before >= end && asked >= LEAST_CALLS {
            return (calls, asked);
        }
        let key = zipf.draw(&mut random);
        let permits = 1 + random.below(2);
        asked += 1;
        let Ok(taken) = limiter.check_n(&key, permits) else {
            continue;
        };
        let mut call = Call {
            key,
            before,
            after: before,
            at: taken.at(),
            permits,
            overflow: taken.is_overflow(),
        };
        if random.one_in(7) && limiter.refund(&key, taken) == Settled::Exact {
            call.permits = 0;
        }
        call.after = limiter.clock().now();
        calls.push(call);
    }
}

/// The most permits of calls that begin and end within an interval of this length, in the order of their beginnings.
fn worst_by_calls(calls: &[Call], interval: Duration) -> u64 {
    let mut worst = 0;
    for (index, first) in calls.iter().enumerate() {
        let end = first.before.saturating_add(interval);
        let begun = calls[index..].iter().take_while(|call| call.before <= end);
        let inside = begun.filter(|call| call.after <= end);
        worst = worst.max(inside.map(|call| call.permits).sum());
    }
    worst
}

fn run(subject: &Subject, capacity: u64, on_full: OnFull, zipf: &Zipf) -> TableCounts {
    let table = sized(subject.algorithm.clone(), capacity, on_full);
    let limiter = build(table, QuantaClock::new(), AnyKey::random());
    let end = limiter.clock().now().saturating_add(40 * WINDOW);
    let (mut calls, mut asked) = (Vec::new(), 0);
    thread::scope(|scope| {
        let spawn = |thread| {
            let limiter = &limiter;
            scope.spawn(move || ask(limiter, zipf, thread, end))
        };
        let threads: Vec<_> = (0..THREADS).map(spawn).collect();
        for thread in threads {
            let (more, count) = thread.join().expect("no panic");
            calls.extend(more);
            asked += count;
        }
    });
    let name = format!("{}, {capacity} keys, {on_full:?}", subject.name);
    let counts = limiter.counts();
    assert!(counts.tracked <= limiter.capacity() as u64, "{name}: {counts:?}");
    assert_eq!(counts.forgotten, 0, "{name}");
    assert!(counts.overflowed <= asked, "{name}: {counts:?}");
    let overflowed = calls.iter().filter(|call| call.overflow).count() as u64;
    assert!(overflowed <= counts.overflowed, "{name}: {counts:?}");
    // As in `stress.rs`, for the check by calls the interval is shorter by the error of the clock at both ends.
    let error = 2 * limiter.clock().error(Duration::ZERO) + Duration::from_nanos(1);
    calls.sort_unstable_by_key(|call| (call.key, call.before));
    let mut kept = 0;
    for of_key in calls.chunk_by(|one, other| one.key == other.key) {
        let mut log = Log::default();
        for call in of_key {
            log.add(call.at, call.permits);
            kept += call.permits;
        }
        assert_eq!(subject.broken(&log), None, "{name}, key {}", of_key[0].key);
        let key = of_key[0].key;
        for &(window, bound) in subject.bounds.iter().filter(|_| key < 5) {
            let worst = worst_by_calls(of_key, window - error);
            assert!(worst <= bound, "{name}, key {key}: {worst} by the calls");
        }
    }
    assert!(kept > 0, "{name}");
    every_key_is_as_good_as_new(&limiter, &calls, &name);
    counts
}

/// Afterwards, no permit is stuck: when the windows have passed, each key is admitted its whole limit in one of the
/// next cells.
fn every_key_is_as_good_as_new(limiter: &Table, calls: &[Call], name: &str) {
    let later = limiter.clock().now().saturating_add(50 * WINDOW);
    let most = limiter.algorithm().max_request();
    for of_key in calls.chunk_by(|one, other| one.key == other.key).take(2_000) {
        let key = of_key[0].key;
        let fresh = (0..10).any(|part| {
            let at = later.saturating_add(WINDOW / 5 * part);
            // In a small table, the earlier keys have taken all entries.
            let answer = limiter.check_at(&key, at, most);
            answer.map_or_else(|it| it.is_overflow(), |_| true)
        });
        assert!(fresh, "{name}, key {key}");
    }
}

#[test]
fn no_window_of_any_key_holds_more_than_the_bound() {
    let zipf = Zipf::new(KEYS);
    let (mut reclaimed, mut overflowed) = (0, 0);
    for subject in subjects(Quota::new(6, WINDOW).expect("a quota")) {
        let shared = [KEYS as u64, 5_000, 16].map(|capacity| (capacity, OnFull::Share));
        for (capacity, on_full) in shared.into_iter().chain([(500, OnFull::Deny)]) {
            let counts = run(&subject, capacity, on_full, &zipf);
            reclaimed += counts.reclaimed;
            overflowed += counts.overflowed;
        }
    }
    // The test is meaningful only if keys lose entries and some get none.
    assert!(reclaimed > 0 && overflowed > 0);
}

/// In one window that does not end, every key with more requests than its limit is admitted exactly its limit by all
/// threads. Together the keys are admitted the sum.
#[test]
fn all_keys_together_are_admitted_the_sum_of_their_limits() {
    const EACH: u64 = 3;
    for Subject { name, algorithm, .. } in
        subjects(Quota::new(EACH, Duration::from_secs(3_600)).expect("a quota"))
    {
        if name.starts_with("even") {
            // The shares of this algorithm are for cells of twelve minutes.
            continue;
        }
        let table = sized(algorithm.clone(), 20_000, OnFull::Deny);
        let limiter = build(table, QuantaClock::new(), AnyKey::random());
        let now = limiter.clock().now();
        let admitted = |thread: u64| {
            let mut admitted = vec![0_u64; 10_000];
            for turn in 0..2 * 10_000 {
                // Threads start with different keys, and meet.
                let key = (turn + thread * 7) % 10_000;
                let taken = limiter.check_at(&key, now, 1);
                admitted[key as usize] += u64::from(taken.is_ok());
            }
            admitted
        };
        let all: Vec<Vec<u64>> = thread::scope(|scope| {
            let spawn = |thread| scope.spawn(move || admitted(thread));
            let threads: Vec<_> = (0..THREADS).map(spawn).collect();
            let joined = threads.into_iter().map(|thread| thread.join().expect("no panic"));
            joined.collect()
        });
        assert_eq!(
            (limiter.counts().overflowed, limiter.len()),
            (0, 10_000),
            "{name}"
        );
        for key in 0..10_000_u64 {
            let sum: u64 = all.iter().map(|admitted| admitted[key as usize]).sum();
            assert_eq!(
                (sum, limiter.peek(&key).spent()),
                (EACH, EACH),
                "{name}, key {key}"
            );
        }
    }
}
