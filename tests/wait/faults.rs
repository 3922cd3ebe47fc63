//! Panics, stopped runtimes and runtimes without timers do not block other waiters.

use std::sync::mpsc;
use std::thread;

use super::*;
use ringgate::{ManualClock, Nanos};

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

fn log(quota: &str) -> Arc<Fair<RateLimiter<TimestampRing>>> {
    Arc::new(Fair::new(RateLimiter::new(
        TimestampRing::new(quota.parse().unwrap()).unwrap(),
    )))
}

/// Each thread has its own runtime, which is driven only while the thread waits.
#[test]
fn a_stopped_runtime_does_not_block_others() {
    let limiter = log("10/200ms");
    let (done, is_done) = mpsc::channel();
    for thread in 0..8 {
        let (limiter, done) = (Arc::clone(&limiter), done.clone());
        thread::spawn(move || {
            let runtime = current_thread();
            for _ in 0..10 {
                runtime.block_on(limiter.acquire(1)).unwrap();
                thread::sleep(ms(3 + thread));
            }
            done.send(()).unwrap();
            // Longer than the test, so that the runtime is neither driven nor dropped.
            thread::sleep(Duration::from_secs(120));
        });
    }
    for _ in 0..8 {
        is_done
            .recv_timeout(Duration::from_secs(60))
            .expect("never served");
    }
}

/// The waiter that is served does not set the capacity timer of the next waiter in its own runtime, which then stops.
#[test]
fn a_stopped_runtime_keeps_no_capacity_timer_of_others() {
    let limiter = log("2/200ms");
    let stopped = current_thread();
    let other = super::threaded();
    assert!(limiter.check(2).is_ok());
    let mut first = Arc::clone(&limiter).acquire_owned(1);
    let mut second = Arc::clone(&limiter).acquire_owned(1);
    stopped.block_on(async {
        assert!(poll(&mut first).is_pending());
        assert!(poll(&mut second).is_pending());
        // It is charged, and notifies the second.
        assert!(first.await.is_ok());
    });
    // It joins before the second is polled. (If this thread is stopped for longer than the grace period, it may be served
    // before it is seen in the queue.)
    let third = other.spawn(Arc::clone(&limiter).acquire_owned(1));
    while limiter.waiting() < 2 && !third.is_finished() {
        thread::yield_now();
    }
    assert!(stopped.block_on(second).is_ok());
    let third = other.block_on(async { tokio::time::timeout(Duration::from_secs(30), third).await });
    assert!(third.expect("never served").unwrap().is_ok());
}

/// The grace timer of a waiter of another runtime is not set in the runtime that advances the queue, which then stops.
#[test]
fn a_stopped_runtime_keeps_no_grace_timer_of_others() {
    let clock = ManualClock::new();
    let ring = TimestampRing::new("2/200ms".parse().unwrap()).unwrap();
    let limiter = Arc::new(Fair::new(RateLimiter::with_clock(ring, clock.clone())));
    let stopped = current_thread();
    let other = super::threaded();
    assert!(limiter.check(2).is_ok());
    let mut first = Arc::clone(&limiter).acquire_owned(1);
    let mut unpolled = Arc::clone(&limiter).acquire_owned(1);
    stopped.block_on(async {
        assert!(poll(&mut first).is_pending());
        assert!(poll(&mut unpolled).is_pending());
    });
    let third = other.spawn(Arc::clone(&limiter).acquire_owned(1));
    while limiter.waiting() < 3 {
        thread::yield_now();
    }
    // The first notifies itself and the second, and leaves the third waiting for the end of their grace period.
    clock.advance(ms(200));
    assert!(stopped.block_on(first).is_ok());
    // By now the second is overdue.
    clock.advance(ms(20));
    let third = other.block_on(async { tokio::time::timeout(Duration::from_secs(30), third).await });
    assert!(third.expect("never served").unwrap().is_ok());
}

/// A waiter in a runtime without timers panics when it needs one; the others are served.
#[test]
fn a_runtime_without_timers_does_not_block_others() {
    let limiter = log("3/200ms");
    let good = super::threaded();
    let timeless = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    assert!(limiter.check(3).is_ok());
    let mut tasks = Vec::new();
    for (number, runtime) in [&good, &timeless, &good, &good, &good, &good]
        .into_iter()
        .enumerate()
    {
        let own = Arc::clone(&limiter);
        let task = runtime.spawn(async move { own.acquire(1).await.is_ok() });
        tasks.push(task);
        // Until all of them are queued. (If this thread is stopped for a window, some have completed already.)
        let completed = || tasks.iter().filter(|task| task.is_finished()).count();
        while limiter.waiting() + completed() <= number {
            thread::yield_now();
        }
    }
    drop(tasks.remove(1));
    good.block_on(async {
        for task in tasks {
            let served = tokio::time::timeout(Duration::from_secs(60), task).await;
            assert!(served.expect("never served").unwrap());
        }
    });
}

/// A function of the user panics at any of its calls.
#[test]
fn a_panic_does_not_block_others() {
    for fatal in 0..60 {
        let runtime = super::paused();
        runtime.block_on(async {
            let left = Arc::new(AtomicU64::new(u64::MAX));
            let counted = Arc::clone(&left);
            let cost = Cost::new("cost", move |user: &u32| {
                if *user == 66 && counted.fetch_sub(1, Ordering::Relaxed) == 0 {
                    panic!("as the test demands");
                }
                1
            });
            let rule = Rule::new("all", "2/1s".parse().unwrap())
                .algorithm(RuleAlgorithm::Log)
                .cost(&cost);
            let rules = super::fair_rules(RuleSetBuilder::new().rule(rule));
            for _ in 0..2 {
                assert!(rules.check(0).is_ok());
            }
            left.store(fatal, Ordering::Relaxed);
            let mut tasks = Vec::new();
            for user in [66_u32, 1, 2, 66, 3, 4] {
                let own = Arc::clone(&rules);
                let task = tokio::spawn(async move { own.acquire(&user).await.is_ok() });
                tokio::time::sleep(ms(1)).await;
                tasks.push((user, task));
            }
            for (user, task) in tasks {
                let served = tokio::time::timeout(Duration::from_secs(100), task)
                    .await
                    .expect("never served");
                assert!(served.unwrap_or(user == 66), "{user}");
            }
            assert_eq!(rules.waiting(), 0, "at call {fatal}");
        });
    }
}

/// Waiters see the larger limit of a reload after `recheck`.
#[test]
fn recheck_applies_a_reload_at_once() {
    let runtime = super::paused();
    runtime.block_on(async {
        let rules = |quota: &str| RuleSetBuilder::<str>::new().rule(Rule::new("all", quota.parse().unwrap()));
        let live = LiveRules::new(rules("1/h").build_with(TokioClock::new(), [1, 2, 3, 4]).unwrap());
        let live = Arc::new(Fair::new(live));
        assert!(live.check("request").is_ok());
        let own = Arc::clone(&live);
        let waits = tokio::spawn(async move { own.acquire("request").await.is_ok() });
        settle().await;
        let began = Instant::now();
        live.limiter().store(&rules("100/h")).unwrap();
        live.recheck();
        assert!(waits.await.unwrap());
        assert_eq!(began.elapsed(), Duration::ZERO);
    });
}

/// A wait needs a timer, which is said at once and not by a wait without an end.
#[test]
#[should_panic(expected = "timers are disabled")]
fn a_wait_without_a_timer_panics() {
    let runtime = Builder::new_current_thread().build().unwrap();
    let limiter = log("1/1s");
    assert!(limiter.check(1).is_ok());
    let _ = runtime.block_on(limiter.acquire(1));
}

/// A runtime whose number the test sets. It notes the numbers in which timers are set, and fires none.
#[derive(Clone, Default)]
struct Numbered(Arc<(AtomicU64, Mutex<Vec<u64>>)>);

impl ringgate::wait::Runtime for Numbered {
    type Timer = ();

    fn set_timer(&self, _: Duration, _: &Waker) {
        let number = self.0.0.load(Ordering::Relaxed);
        self.0.1.lock().unwrap().push(number);
    }

    fn runtime_id(&self) -> Option<u64> {
        Some(self.0.0.load(Ordering::Relaxed))
    }
}

impl Numbered {
    fn enter(&self, number: u64) {
        self.0.0.store(number, Ordering::Relaxed);
    }

    /// The numbers in which timers were set since the last call.
    fn timers(&self) -> Vec<u64> {
        core::mem::take(&mut self.0.1.lock().unwrap())
    }
}

#[derive(Debug, Default)]
struct Count(AtomicU64);

impl alloc::task::Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A combinator passes the same waker on, whatever runtime polls it.
#[test]
fn a_wait_moves_to_another_runtime_with_its_waker() {
    let (clock, runtime, count) = (ManualClock::new(), Numbered::default(), Arc::<Count>::default());
    let ring = TimestampRing::new("1/1h".parse().unwrap()).unwrap();
    let limiter = Fair::with_runtime(RateLimiter::with_clock(ring, clock.clone()), runtime.clone());
    let limiter = Arc::new(limiter);
    assert!(limiter.check(1).is_ok());
    let waker = Waker::from(Arc::clone(&count));
    let woken = || count.0.swap(0, Ordering::Relaxed);
    let poll =
        |wait: &mut Pin<Box<dyn Future<Output = bool>>>| wait.as_mut().poll(&mut Context::from_waker(&waker));
    let [mut first, mut second] = [(); 2].map(|()| {
        let wait = Arc::clone(&limiter).acquire_owned(1);
        Box::pin(async move { wait.await.is_ok() }) as Pin<Box<dyn Future<Output = bool>>>
    });
    runtime.enter(1);
    assert!(poll(&mut first).is_pending() && poll(&mut second).is_pending());
    assert_eq!(runtime.timers(), [1]);
    runtime.enter(2);
    for _ in 0..3 {
        assert!(poll(&mut first).is_pending());
        assert_eq!((runtime.timers(), woken()), (vec![2], 0));
    }
    // The second was polled in the second runtime last, so the first one, which is served in the first, sets no timer for it.
    assert!(poll(&mut second).is_pending());
    runtime.enter(1);
    clock.advance(Duration::from_secs(3600));
    assert!(poll(&mut first).is_ready());
    assert_eq!((runtime.timers(), woken()), (vec![], 1));
    runtime.enter(2);
    assert!(poll(&mut second).is_pending());
    assert_eq!((runtime.timers(), woken()), (vec![2], 0));
}

/// A notified waiter that is not polled delays the next one for ten milliseconds, also if the clock was set back meanwhile.
#[test]
fn a_grace_period_ends_after_the_clock_was_set_back() {
    let (clock, runtime) = (ManualClock::new(), Numbered::default());
    clock.advance(Duration::from_secs(100));
    let ring = TimestampRing::new("2/1s".parse().unwrap()).unwrap();
    let limiter = Fair::with_runtime(RateLimiter::with_clock(ring, clock.clone()), runtime);
    let limiter = Arc::new(limiter);
    assert!(limiter.check(1).is_ok());
    let [mut unpolled, mut next, mut last] =
        [2, 1, 1].map(|permits| Arc::clone(&limiter).acquire_owned(permits));
    assert!(poll(&mut unpolled).is_pending() && poll(&mut next).is_pending());
    clock.advance(ms(1020));
    // It notifies the first, because no timer has woken it.
    assert!(poll(&mut last).is_pending());
    clock.set(Nanos::from_duration(Duration::from_secs(50)));
    assert!(poll(&mut next).is_pending());
    clock.advance(ms(11));
    assert!(poll(&mut next).is_ready());
}
