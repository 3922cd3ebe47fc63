//! A pause of a limiter with waiters.

use super::*;

/// Pauses the limiter until `after` from now.
fn pause(log: &Log, after: Duration) {
    let limiter = log.limiter();
    limiter.pause_until(limiter.peek().at().saturating_add(after));
}

/// A pause alone, and one of which the end is after that of the window.
#[tokio::test(start_paused = true)]
async fn a_wait_ends_with_the_pause_and_a_deadline_before_that_fails_at_once() {
    for spent in [0, 2] {
        let log = log("2/100ms");
        log.acquire(spent).await.expect("the window is empty");
        pause(&log, ms(500));
        assert!(log.check(1).is_err());
        let start = Instant::now();
        assert!(log.acquire(1).within(ms(499)).await.is_err());
        assert_eq!(start.elapsed(), ms(0));
        log.acquire(1).within(ms(500)).await.expect("the pause ends");
        assert_eq!(start.elapsed(), ms(500));
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_delays_the_waits_that_have_begun() {
    let log = log("2/100ms");
    log.acquire(2).await.expect("the window is empty");
    let start = Instant::now();
    let waits: Vec<_> = (0..2)
        .map(|_| {
            let log = Arc::clone(&log);
            tokio::spawn(async move {
                log.acquire(1).await.expect("a turn");
                Instant::now()
            })
        })
        .collect();
    settle().await;
    assert_eq!(log.waiting(), 2);
    pause(&log, ms(700));
    for wait in waits {
        assert_eq!(wait.await.expect("no panic") - start, ms(700));
    }
}

#[tokio::test(start_paused = true)]
async fn resume_wakes_the_waiters() {
    let log = log("2/100ms");
    pause(&log, ms(60_000));
    let waiter = Arc::clone(&log);
    let wait = tokio::spawn(async move { waiter.acquire(1).await.map(|_| Instant::now()) });
    settle().await;
    assert_eq!(log.waiting(), 1);
    let start = Instant::now();
    log.resume();
    assert_eq!(wait.await.expect("no panic").expect("capacity"), start);
}
