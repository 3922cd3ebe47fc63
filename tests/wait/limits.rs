//! Deadlines, full queues, jitter, and requests that are never admitted.

use alloc::sync::Arc;
use core::time::Duration;

use ringgate::wait::{TokioClock, WaitError};
use ringgate::{CounterRing, Fair, Gcra, Quota, RateLimiter};
use tokio::time::Instant;

use super::{bare_log, log, ms, poll, settle};

#[tokio::test(start_paused = true)]
async fn a_deadline_that_cannot_be_met_fails_at_once() {
    let limiter = log("2/1s");
    assert!(limiter.check_n(2).is_ok());
    let began = Instant::now();
    // No waiter is ahead, and the permits are due in one second.
    let (needed, allowed) = (ms(1000), ms(999));
    let refused = limiter.until_ready().within(allowed).await;
    assert_eq!(refused, Err(WaitError::TooLate { needed, allowed }));
    assert_eq!(began.elapsed(), Duration::ZERO);
    let mut waits: Vec<_> = (0..5).map(|_| limiter.acquire(1)).collect();
    for wait in &mut waits {
        assert!(poll(wait).is_pending());
    }
    // Five waiters are ahead, at two permits per second.
    let refused = limiter.until_ready().within(ms(2999)).await;
    let (needed, allowed) = (ms(3000), ms(2999));
    assert_eq!(refused, Err(WaitError::TooLate { needed, allowed }));
    assert_eq!(began.elapsed(), Duration::ZERO);
    // Three leave, so two are ahead.
    waits.truncate(2);
    let refused = limiter.until_ready().within(ms(1999)).await;
    let (needed, allowed) = (ms(2000), ms(1999));
    assert_eq!(refused, Err(WaitError::TooLate { needed, allowed }));
    drop(waits);
    limiter.until_ready().within(ms(1000)).await.unwrap();
    assert_eq!(began.elapsed(), ms(1000));
}

/// The estimate of a bucket is the time of its refill, to the nanosecond.
#[tokio::test(start_paused = true)]
async fn a_bucket_estimates_the_wait_exactly() {
    let bucket = Gcra::token_bucket(Quota::per_second(100).unwrap(), 3).unwrap();
    let limiter = Arc::new(Fair::new(RateLimiter::with_clock(bucket, TokioClock::new())));
    assert!(limiter.check_n(3).is_ok());
    let mut waits: Vec<_> = (0..10).map(|_| limiter.acquire(1)).collect();
    for wait in &mut waits {
        assert!(poll(wait).is_pending());
    }
    let refused = limiter.until_n_ready(2).within(ms(119)).await;
    let (needed, allowed) = (ms(120), ms(119));
    assert_eq!(refused, Err(WaitError::TooLate { needed, allowed }));
}

/// A deadline that could be met passes if other calls bypass the queue.
#[tokio::test(start_paused = true)]
async fn a_deadline_ends_the_wait() {
    let limiter = log("1/1s");
    assert!(limiter.check().is_ok());
    let began = Instant::now();
    let mut first = limiter.acquire(1).within(ms(1500));
    assert!(poll(&mut first).is_pending());
    let second = tokio::spawn(Arc::clone(&limiter).acquire_owned(1));
    tokio::time::advance(ms(1000)).await;
    assert!(limiter.limiter().check().is_ok());
    let allowed = Duration::ZERO;
    let needed = ms(500);
    assert_eq!(first.await, Err(WaitError::TooLate { needed, allowed }));
    assert_eq!(began.elapsed(), ms(1500));
    // It was the leader, and wakes the next waiter.
    assert!(second.await.unwrap().is_ok());
    assert_eq!(began.elapsed(), ms(2000));
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_is_an_error() {
    let limiter = Arc::new(Fair::new(bare_log("1/1s")).max_waiting(2));
    assert!(limiter.check().is_ok());
    let mut waits: Vec<_> = (0..2).map(|_| limiter.acquire(1)).collect();
    for wait in &mut waits {
        assert!(poll(wait).is_pending());
    }
    assert_eq!(
        limiter.until_ready().await,
        Err(WaitError::QueueFull {
            max_waiting: 2,
            needed: ms(3000)
        })
    );
    drop(waits.pop());
    let mut third = limiter.acquire(1);
    assert!(poll(&mut third).is_pending());
    // Without a limit of its own, it has a million.
    let limiter = Fair::new(bare_log("1/1s"));
    assert!(limiter.check().is_ok());
    let mut waits: Vec<_> = (0..1_000_000).map(|_| limiter.acquire(1)).collect();
    for wait in &mut waits {
        assert!(poll(wait).is_pending());
    }
    let refused = limiter.until_ready().await;
    assert!(matches!(
        refused,
        Err(WaitError::QueueFull {
            max_waiting: 1_000_000,
            ..
        })
    ));
    // No request may wait, and the first does not have to.
    let limiter = Fair::new(bare_log("1/1s")).max_waiting(0);
    assert_eq!(limiter.until_ready().await, Ok(()));
    assert_eq!(
        limiter.until_ready().await,
        Err(WaitError::QueueFull {
            max_waiting: 0,
            needed: ms(1000)
        })
    );
}

#[tokio::test(start_paused = true)]
async fn more_than_the_limit_does_not_wait() {
    let limiter = log("3/1s");
    assert_eq!(limiter.until_n_ready(4).await, Err(WaitError::Never));
    // Also behind other waiters.
    assert!(limiter.check_n(3).is_ok());
    let mut wait = limiter.acquire(1);
    assert!(poll(&mut wait).is_pending());
    assert_eq!(limiter.until_n_ready(4).await, Err(WaitError::Never));
    // Zero permits are always available.
    limiter.until_n_ready(0).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn jitter_delays_and_does_not_reorder() {
    let limiter = Arc::new(Fair::new(bare_log("1/1s")).jitter(ms(400)));
    assert!(limiter.check().is_ok());
    let began = Instant::now();
    let mut times = Vec::new();
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let limiter = Arc::clone(&limiter);
            tokio::spawn(async move {
                limiter.until_ready().await.unwrap();
                began.elapsed()
            })
        })
        .collect();
    settle().await;
    for task in tasks {
        times.push(task.await.unwrap());
    }
    let mut before = Duration::ZERO;
    let mut delays = Vec::new();
    for time in times {
        let delay = time.checked_sub(before + ms(1000)).expect("served early");
        assert!(delay <= ms(401), "{delay:?}");
        delays.push(delay);
        before = time;
    }
    delays.sort();
    delays.dedup();
    assert!(delays.len() > 5, "not random: {delays:?}");
}

/// A completed wait that is polled again waits for the same permits again.
#[tokio::test(start_paused = true)]
async fn a_wait_can_be_used_again() {
    let limiter = log("1/1s");
    let began = Instant::now();
    let mut wait = limiter.until_ready();
    for second in 0..3 {
        (&mut wait).await.unwrap();
        assert_eq!(began.elapsed(), ms(1000 * second));
    }
}

/// Permits that were refunded to the wrapped limiter are found by a waiter at its deadline, though it is not first.
#[tokio::test(start_paused = true)]
async fn a_later_waiter_checks_for_capacity_at_its_deadline() {
    let ring = CounterRing::new("2/10s".parse().unwrap()).unwrap();
    let limiter = Arc::new(Fair::new(RateLimiter::with_clock(ring, TokioClock::new())));
    assert!(limiter.check_n(2).is_ok());
    let mut first = limiter.acquire(1);
    assert!(poll(&mut first).is_pending());
    let second = tokio::spawn({
        let limiter = Arc::clone(&limiter);
        async move { limiter.until_ready().within(Duration::from_secs(15)).await }
    });
    settle().await;
    // A call bypasses the queue, so that the leader sleeps longer, and its permits are refunded without the queue.
    tokio::time::advance(Duration::from_secs(12)).await;
    let taken = limiter.limiter().check_n(2).unwrap().into_receipt();
    assert!(poll(&mut first).is_pending());
    assert_eq!(limiter.limiter().refund(taken), ringgate::Settled::Exact);
    assert_eq!(second.await.unwrap(), Ok(()));
}
