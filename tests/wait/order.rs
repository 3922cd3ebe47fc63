//! The order in which waiters are served.

use super::*;
use ringgate::Settled;

#[tokio::test(start_paused = true)]
async fn waiters_are_served_in_order_of_arrival() {
    let limiter = log("3/1s");
    let served = Arc::new(Mutex::new(Vec::new()));
    let began = Instant::now();
    let mut tasks = Vec::new();
    for number in 0..10 {
        let (limiter, served) = (Arc::clone(&limiter), Arc::clone(&served));
        tasks.push(tokio::spawn(async move {
            limiter.acquire(1).await.unwrap();
            served.lock().unwrap().push((number, began.elapsed().as_secs()));
        }));
        tokio::task::yield_now().await;
    }
    for task in tasks {
        task.await.unwrap();
    }
    let served = served.lock().unwrap();
    let expected: Vec<_> = (0..10).map(|number| (number, number / 3)).collect();
    assert_eq!(*served, expected);
}

/// A request for 50 permits among requests for one.
#[tokio::test(start_paused = true)]
async fn a_large_request_waits_only_for_earlier_ones() {
    let bucket = Gcra::token_bucket(Quota::per_second(100).unwrap(), 50).unwrap();
    let limiter = fair(bucket);
    assert!(limiter.check(50).is_ok());
    for _ in 0..20 {
        let limiter = Arc::clone(&limiter);
        tokio::spawn(async move {
            loop {
                limiter.acquire(1).await.unwrap();
            }
        });
    }
    settle().await;
    let before = limiter.waiting();
    assert_eq!(before, 20);
    let began = Instant::now();
    limiter.acquire(50).await.unwrap();
    let due = Duration::from_millis(10) * (50 + 20);
    let took = began.elapsed();
    assert!(took <= due + Duration::from_millis(1), "{took:?}");
    assert!(took >= due - Duration::from_millis(10), "{took:?}");
}

#[tokio::test]
async fn loops_get_equal_parts_of_available_permits() {
    let ring = CounterRing::new(Quota::per_hour(1000).unwrap()).unwrap();
    within_five_percent(shares(Arc::new(Fair::new(RateLimiter::new(ring)))).await);
}

async fn shares(limiter: Arc<Fair<RateLimiter<CounterRing>>>) -> [u64; 8] {
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let limiter = Arc::clone(&limiter);
        tasks.push(tokio::spawn(async move {
            let mut mine = 0;
            while limiter.acquire(1).within(Duration::from_secs(5)).await.is_ok() {
                mine += 1;
            }
            mine
        }));
    }
    let mut shares = [0; 8];
    for (share, task) in shares.iter_mut().zip(tasks) {
        *share = task.await.unwrap();
    }
    shares
}

fn within_five_percent(shares: [u64; 8]) {
    println!("{shares:?}");
    assert_eq!(shares.iter().sum::<u64>(), 1000);
    assert!(
        shares.iter().all(|share| (119..=131).contains(share)),
        "{shares:?}"
    );
}

#[tokio::test]
async fn loops_get_equal_parts_of_arriving_permits() {
    within_five_percent(shares(paced()).await);
}

/// A thousand permits, twenty at a time, of which none is available at the start: the task that runs first gets no more.
fn paced() -> Arc<Fair<RateLimiter<CounterRing>>> {
    let twenty = Quota::new(20, Duration::from_millis(20)).unwrap();
    let ring = CounterRing::builder(Quota::per_hour(1020).unwrap())
        .also(twenty)
        .build()
        .unwrap();
    let limiter = Fair::new(RateLimiter::new(ring));
    assert!(limiter.check(20).is_ok());
    Arc::new(limiter)
}

/// Permits become available one at a time, so the speed of a thread makes no difference.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loops_on_several_threads_get_equal_parts() {
    let limiter = Gcra::token_bucket(Quota::per_second(2000).unwrap(), 1).unwrap();
    let limiter = Arc::new(Fair::new(RateLimiter::new(limiter)));
    let left = Arc::new(AtomicU64::new(1000));
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let (limiter, left) = (Arc::clone(&limiter), Arc::clone(&left));
        tasks.push(tokio::spawn(async move {
            let mut mine = 0;
            loop {
                limiter.acquire(1).await.unwrap();
                let before =
                    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
                if before.is_err() {
                    return mine;
                }
                mine += 1;
            }
        }));
    }
    let mut shares = [0; 8];
    for (share, task) in shares.iter_mut().zip(tasks) {
        *share = task.await.unwrap();
    }
    within_five_percent(shares);
}

/// A check is denied while others wait, unless barging is allowed.
#[tokio::test(start_paused = true)]
async fn checks_do_not_overtake_waiters() {
    let limiter = log("2/1s");
    assert!(limiter.check(1).is_ok());
    let both = tokio::spawn({
        let limiter = Arc::clone(&limiter);
        async move { limiter.acquire(2).await }
    });
    settle().await;
    // One permit is available, and the waiter needs two.
    assert_eq!(limiter.check(1), Err(CheckError::Queued));
    assert_eq!(limiter.check(0).map(|none| none.permits()), Ok(0));
    assert!(limiter.limiter().peek().remaining() == 1);
    both.await.unwrap().unwrap();
    assert_eq!(limiter.check(1), Err(CheckError::Denied(Some(ms(1000)))));

    let limiter = Arc::new(Fair::new(bare_log("2/1s")).allow_barging());
    assert!(limiter.check(1).is_ok());
    let mut both = limiter.acquire(2);
    assert!(poll(&mut both).is_pending());
    assert!(limiter.check(1).is_ok());
}

/// A check of the wrapped limiter bypasses the queue. The waiter is served later.
#[tokio::test(start_paused = true)]
async fn bypassing_the_queue_only_delays_it() {
    let limiter = log("1/1s");
    assert!(limiter.check(1).is_ok());
    let began = Instant::now();
    let mut waits = limiter.acquire(1);
    assert!(poll(&mut waits).is_pending());
    tokio::time::advance(ms(1000)).await;
    assert!(limiter.limiter().check().is_ok());
    assert!(waits.await.is_ok());
    assert_eq!(began.elapsed(), ms(2000));
}

/// An unpolled leader delays the waiters behind it until another request joins. It is then passed over.
#[tokio::test(start_paused = true)]
async fn an_unpolled_leader_is_passed_over() {
    let limiter = log("4/1s");
    assert!(limiter.check(4).is_ok());
    let mut unpolled = limiter.acquire(4);
    assert!(poll(&mut unpolled).is_pending());
    let others: Vec<_> = (0..2).map(|_| tokio::spawn(timed(&limiter))).collect();
    tokio::time::sleep(ms(1500)).await;
    assert!(others.iter().all(|other| !other.is_finished()));
    let late: Vec<_> = (0..2).map(|_| tokio::spawn(timed(&limiter))).collect();
    let mut took = Vec::new();
    for other in others.into_iter().chain(late) {
        let other = tokio::time::timeout(ms(60_000), other)
            .await
            .expect("never served");
        took.push(other.unwrap().as_millis());
    }
    assert_eq!(took, [1510, 1510, 10, 10]);
    // It is still queued, and first.
    assert_eq!(limiter.waiting(), 1);
    let began = Instant::now();
    let served = tokio::time::timeout(ms(60_000), unpolled).await;
    assert!(served.expect("never served").is_ok());
    assert_eq!(began.elapsed(), ms(1000));
}

/// A notified waiter that is not polled delays the others by the grace period.
#[tokio::test(start_paused = true)]
async fn an_unpolled_notified_waiter_is_passed_over() {
    let limiter = log("3/1s");
    assert!(limiter.check(3).is_ok());
    let first = tokio::spawn(timed(&limiter));
    settle().await;
    let mut notified = limiter.acquire(1);
    assert!(poll(&mut notified).is_pending());
    assert_eq!(first.await.unwrap(), ms(1000));
    let later = tokio::spawn(timed(&limiter));
    assert_eq!(later.await.unwrap(), ms(10));
    assert!(poll(&mut notified).is_ready());
}

/// Waits for one permit, and returns the duration of the wait.
fn timed(limiter: &Log) -> impl Future<Output = Duration> + use<> {
    let limiter = Arc::clone(limiter);
    async move {
        let began = Instant::now();
        limiter.acquire(1).await.unwrap();
        began.elapsed()
    }
}

/// Permits that are settled through the `Fair` go to the waiter at once.
#[tokio::test(start_paused = true)]
async fn refunded_permits_are_available_at_once() {
    let ring = CounterRing::new(Quota::per_hour(2).unwrap()).unwrap();
    let limiter = fair(ring);
    let taken = limiter.acquire(2).await.unwrap();
    let waits = tokio::spawn({
        let limiter = Arc::clone(&limiter);
        async move { limiter.acquire(1).within(Duration::from_secs(3 * 3600)).await }
    });
    settle().await;
    tokio::time::sleep(ms(5)).await;
    let began = Instant::now();
    assert_eq!(limiter.settle(taken, 1), Settled::Exact);
    waits.await.unwrap().unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
}

/// A task that is admitted without waiting lets others run after four admissions.
#[tokio::test(start_paused = true)]
async fn a_task_yields_after_four_admissions() {
    let limiter = log("100/1s");
    let admissions = tokio::spawn(async move {
        core::future::poll_fn(|context| {
            let mut admissions = 0;
            while Pin::new(&mut limiter.acquire(1)).poll(context).is_ready() {
                admissions += 1;
            }
            Poll::Ready(admissions)
        })
        .await
    });
    assert_eq!(admissions.await.unwrap(), 4);
}
