//! Random histories of one key, decided at equal times by a limiter of one process, by the store in memory, and by another
//! store.

use alloc::sync::Arc;
use core::future::Future;
use core::pin::pin;
use core::slice::from_ref;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use ringgate::shared::{CheckResult, CounterRequest, CounterStore, Counting, MemoryStore};
use ringgate::{
    AnyAlgorithm, CounterRing, Gcra, ManualClock, Nanos, Quota, RateLimiter, Receipt, Settled, TimestampRing,
};

use crate::random::Random;

/// A counter: how it counts, its limit, and its window in microseconds.
pub(crate) type Case = (Counting, u64, u64);

/// Times of permits with and without a remainder, short bursts and long ones.
pub(crate) const CASES: &[Case] = &[
    (Counting::Log, 8, 1_000),
    (Counting::Log, 1, 1_000),
    (Counting::Cells(1), 8, 1_000),
    (Counting::Cells(5), 20, 1_000),
    (Counting::Cells(100), 20, 1_000),
    (Counting::Gcra(1), 8, 1_000),
    (Counting::Gcra(7), 7, 1_000),
    (Counting::Gcra(30), 7, 1_000),
    (Counting::Gcra(3), 1_000_000, 1_000),
    (Counting::Gcra(1_000), 3, 10_000_000),
    (Counting::Gcra(100_000), 999_999_999, 31_622_400_000_000),
];

/// The time in microseconds at which a bucket of one process ends, after fifteen years.
const END: u64 = 15 * 366 * 24 * 3600 * 1_000_000;

/// A step of a history, at a time in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Take(u64),
    /// Refunds the last admission, of this number of permits.
    Refund(u64),
}

/// The answer to a step: whether it is admitted or refunded, the permits left, and the wait in microseconds.
pub(crate) type Answer = (bool, u64, Option<u64>);

/// The algorithm of one process that a store's counting stands for.
fn algorithm((counting, limit, window): Case) -> AnyAlgorithm {
    let quota = Quota::new(limit, Duration::from_micros(window)).expect("a quota");
    match counting {
        Counting::Log => TimestampRing::new(quota).expect("a log").into(),
        Counting::Cells(cells) => {
            let ring = CounterRing::builder(quota).cells(cells);
            ring.build().expect("a ring").into()
        }
        Counting::Gcra(burst) => Gcra::token_bucket(quota, burst).expect("a bucket").into(),
        other => unreachable!("{other:?}"),
    }
}

/// The output of a future that never waits.
fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("a store in memory does not wait"),
    }
}

fn answer(result: &CheckResult) -> Answer {
    let status = result.statuses[0];
    let wait = status.retry_after.map(|wait| {
        let micros = wait.as_nanos().div_ceil(1_000);
        u64::try_from(micros).expect("a wait")
    });
    (result.is_admitted, status.remaining, wait)
}

/// Follows a random history of so many steps. `other` answers each step at its time in microseconds.
pub(crate) fn follow(case: Case, seed: u64, steps: u64, mut other: impl FnMut(u64, Step) -> Option<Answer>) {
    let (counting, limit, window) = case;
    let process = RateLimiter::new(algorithm(case));
    let clock = Arc::new(ManualClock::new());
    let memory = MemoryStore::with_clock(Arc::clone(&clock));
    let counter = CounterRequest::new("equal", 1, counting, limit, Duration::from_micros(window));
    let most = counter.capacity();
    let permit = (window / limit).max(1);
    let mut random = Random::new(seed);
    let mut draw = |end| random.below(end);
    let mut now = 1_000_000;
    let mut last: Option<(Receipt, CheckResult, u64)> = None;
    let mut admitted = [0_u64; 2];
    for step in 0..steps {
        now += match draw(12) {
            0..5 => 0,
            5..9 => draw(2 * permit),
            9..11 => draw(window / 2),
            _ => draw(2 * window),
        };
        if now >= END {
            return;
        }
        clock.set(Nanos::new(now * 1_000));
        if let Some((receipt, charged, permits)) = last.take()
            && matches!(counting, Counting::Gcra(_))
            && draw(8) == 0
        {
            let request = counter.clone().with_permits(permits);
            let lost = ready(memory.refund(from_ref(&request), &charged)).expect("an answer");
            let is_exact = process.refund(receipt) == Settled::Exact;
            assert_eq!(lost == 0, is_exact, "{case:?}, step {step}");
            if let Some((other, ..)) = other(now, Step::Refund(permits)) {
                assert_eq!(other, is_exact, "{case:?}, step {step}");
            }
            continue;
        }
        let permits = match draw(4) {
            0 => 1 + draw(most),
            1 => 1 + draw(most.div_ceil(4)),
            _ => 1,
        };
        let request = counter.clone().with_permits(permits);
        let result = ready(memory.decide(from_ref(&request))).expect("an answer");
        let receipt: Option<Receipt> = process
            .check_at(Nanos::new(now * 1_000), permits)
            .ok()
            .map(Into::into);
        let case = format!("{case:?}, seed {seed}, step {step}: {permits} permits at {now}");
        assert_eq!(result.is_admitted, receipt.is_some(), "{case}");
        if let Some(other) = other(now, Step::Take(permits)) {
            assert_eq!(other, answer(&result), "{case}");
        }
        admitted[usize::from(result.is_admitted)] += 1;
        if let Some(receipt) = receipt {
            last = Some((receipt, result, permits));
        }
    }
    assert!(
        steps < 1_000 || admitted.iter().all(|&each| each * 50 > steps),
        "{case:?}: {admitted:?}"
    );
}
