//! Queues of keys.

use super::*;
use ringgate::keyed::AnyKey;
use ringgate::{KeyedRateLimiter, Receipt};

pub(super) type Keyed<A> = Fair<KeyedRateLimiter<A, TokioClock>>;

pub(super) fn keyed<A: ringgate::algorithm::Reclaim>(algorithm: A, capacity: u64) -> Arc<Keyed<A>> {
    let builder = KeyedRateLimiter::builder(algorithm).capacity(capacity);
    let keys = AnyKey::with_seeds([1, 2, 3, 4]);
    Arc::new(Fair::new(builder.build_with(TokioClock::new(), keys).unwrap()))
}

#[tokio::test(start_paused = true)]
async fn each_key_has_its_own_queue() {
    let ring = TimestampRing::new("1/1s".parse().unwrap()).unwrap();
    let limiter = keyed(ring, 100);
    for _ in 0..3 {
        limiter.acquire(&1_u32).within(Duration::ZERO).await.ok();
    }
    let began = Instant::now();
    let mut tasks = Vec::new();
    for (number, key) in [1_u32, 1, 2, 2, 1, 2].into_iter().enumerate() {
        let limiter = Arc::clone(&limiter);
        tasks.push(tokio::spawn(async move {
            limiter.acquire(&key).await.unwrap();
            (number, began.elapsed().as_millis())
        }));
        settle().await;
    }
    assert_eq!(limiter.waiting(), 5);
    // A key without waiters is not delayed.
    assert!(limiter.check(&3_u32).is_ok());
    assert_eq!(limiter.check(&2_u32), Err(CheckError::Queued));
    let mut served = Vec::new();
    for task in tasks {
        served.push(task.await.unwrap());
    }
    assert_eq!(
        served,
        [(0, 1000), (1, 2000), (2, 0), (3, 1000), (4, 3000), (5, 2000)]
    );
    // A key that had waiters is not delayed by waiters of another key.
    tokio::time::sleep(ms(1000)).await;
    assert!(limiter.check(&3_u32).is_ok());
    let mut other = limiter.acquire((&3_u32, 1));
    assert!(poll(&mut other).is_pending());
    assert!(limiter.check(&1_u32).is_ok());
    drop(other);
    let owned = Arc::clone(&limiter).acquire_owned("alice").await.unwrap();
    assert_eq!(Receipt::from(owned).permits(), 1);
    // The same key, borrowed.
    assert_eq!(limiter.acquire(("alice", 2)).await, Err(WaitError::Never));
    assert!(matches!(limiter.check("alice"), Err(CheckError::Denied(Some(_)))));
}

#[tokio::test(start_paused = true)]
async fn permits_refunded_to_a_key_are_available_at_once() {
    let ring = CounterRing::new("1/h".parse().unwrap()).unwrap();
    let keyed = keyed(ring, 100);
    let taken = keyed.acquire(("key", 1)).await.unwrap();
    let waits = tokio::spawn(Arc::clone(&keyed).acquire_owned(&String::from("key")));
    settle().await;
    let began = Instant::now();
    assert_eq!(keyed.refund(taken), ringgate::Settled::Exact);
    assert!(waits.await.unwrap().is_ok());
    assert_eq!(began.elapsed(), Duration::ZERO);
}

/// Keys without an entry share a budget, so what one of them gives back serves the waiters of another.
#[tokio::test(start_paused = true)]
async fn a_refund_to_the_catch_all_wakes_the_waiters_of_other_keys() {
    let limiter = keyed(CounterRing::new("2000/1h".parse().unwrap()).unwrap(), 1);
    let overflowing = (0_u32..1000).filter(|key| limiter.limiter().check(key).unwrap().is_overflow());
    assert!(overflowing.count() > 900);
    let rest = limiter.limiter().peek(&1000_u32).remaining();
    let charge = limiter.acquire((&1000_u32, rest)).await.unwrap();
    let waiting = {
        let limiter = Arc::clone(&limiter);
        let began = Instant::now();
        tokio::spawn(async move {
            limiter.acquire((&1001_u32, rest)).await.unwrap();
            began.elapsed()
        })
    };
    settle().await;
    assert_eq!(limiter.waiting(), 1);
    limiter.refund(charge);
    assert!(waiting.await.unwrap() < Duration::from_secs(1));
}
