//! A hundred thousand waiters of one limiter.

use super::*;

const WAITERS: u64 = 100_000;

/// Counts the polls of a future.
struct Counted<F>(F, Arc<AtomicU64>);

impl<F: Future + Unpin> Future for Counted<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Pin::new(&mut self.0).poll(context)
    }
}

/// Each is polled once to join, and woken about once. Prints the memory of a wait.
#[tokio::test(start_paused = true)]
async fn each_waiter_is_woken_about_once() {
    let quota = Quota::new(1_000, ms(100)).unwrap();
    let ring = CounterRing::new(quota).unwrap();
    let limiter = fair(ring);
    let polls = Arc::new(AtomicU64::new(0));
    let mut tasks = Vec::new();
    let mut waits = Vec::with_capacity(WAITERS as usize);
    let mut context = Context::from_waker(core::task::Waker::noop());
    let memory = allocation_counter::measure(|| {
        for _ in 0..WAITERS {
            let mut wait = Arc::clone(&limiter).acquire_owned(1);
            let _ = Pin::new(&mut wait).poll(&mut context);
            waits.push(wait);
        }
    });
    let queued = memory.bytes_current.unsigned_abs() / WAITERS;
    println!(
        "a wait: {} bytes, and {queued} in the queue",
        size_of_val(&waits[0])
    );
    // The documentation states about 100 bytes.
    assert!(queued <= 110, "{queued} bytes");
    drop(waits);
    assert_eq!(limiter.waiting(), 0);
    tokio::time::sleep(ms(1000)).await;

    for _ in 0..WAITERS {
        let wait = Counted(Arc::clone(&limiter).acquire_owned(1), Arc::clone(&polls));
        tasks.push(tokio::spawn(wait));
    }
    for task in tasks {
        assert!(task.await.unwrap().is_ok());
    }
    let wakes = polls.load(Ordering::Relaxed) - WAITERS;
    println!("{:.3} wakes a permit", wakes as f64 / WAITERS as f64);
    assert!(wakes <= WAITERS * 105 / 100, "{wakes} wakes");
}

/// With capacity for 1000 waiters, the first one is served and wakes 63 others.
#[tokio::test(start_paused = true)]
async fn at_most_64_waiters_are_woken_together() {
    let ring = TimestampRing::new(Quota::new(1000, ms(100)).unwrap()).unwrap();
    let limiter = fair(ring);
    assert!(limiter.check(1000).is_ok());
    let wakes = Arc::new(Wakes(AtomicU64::new(0)));
    let waker = Waker::from(Arc::clone(&wakes));
    let mut context = Context::from_waker(&waker);
    let mut waits: Vec<_> = (0..200).map(|_| limiter.acquire(1)).collect();
    for wait in &mut waits {
        assert!(Pin::new(wait).poll(&mut context).is_pending());
    }
    tokio::time::sleep(ms(101)).await;
    let before = wakes.0.load(Ordering::Relaxed);
    assert!(Pin::new(&mut waits[0]).poll(&mut context).is_ready());
    assert_eq!(wakes.0.load(Ordering::Relaxed) - before, 63);
}

/// Counts wakes.
struct Wakes(AtomicU64);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Permits become available one by one, and each served waiter sets the timer of the next.
#[tokio::test(start_paused = true)]
async fn each_waiter_of_single_permits_is_woken_about_once() {
    let bucket = Gcra::token_bucket(Quota::per_second(100).unwrap(), 1).unwrap();
    let limiter = fair(bucket);
    let polls = Arc::new(AtomicU64::new(0));
    let waits = (0..1000).map(|_| Counted(Arc::clone(&limiter).acquire_owned(1), Arc::clone(&polls)));
    let tasks: Vec<_> = waits.map(tokio::spawn).collect();
    for task in tasks {
        assert!(task.await.unwrap().is_ok());
    }
    let wakes = polls.load(Ordering::Relaxed) - 1000;
    println!("{:.3} wakes a permit, one after the other", wakes as f64 / 1000.0);
    assert!(wakes <= 1050, "{wakes} wakes");
}
