//! Waits that are dropped at any time charge nothing and block no other wait.

use super::*;
use proptest::prelude::*;
use ringgate::Receipt;
use ringgate::wait::Acquire;

/// One step of a history of several waits.
#[derive(Clone, Debug)]
enum Step {
    /// Begins a wait for a number of permits.
    Wait(u64),
    /// Polls the wait with this index, if it exists.
    Poll(usize),
    /// Drops the wait with this index, if it exists.
    Drop(usize),
    /// Checks without waiting.
    Check(u64),
    /// Advances time by milliseconds.
    Sleep(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (1_u64..=5).prop_map(Step::Wait),
        4 => (0_usize..8).prop_map(Step::Poll),
        3 => (0_usize..8).prop_map(Step::Drop),
        1 => (1_u64..=5).prop_map(Step::Check),
        3 => (1_u64..=1500).prop_map(Step::Sleep),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// The limiter has charged what the waits returned, in every window, and the remaining waits complete within one window
    /// each.
    #[test]
    fn dropped_waits_charge_nothing(steps in steps()) {
        let runtime = super::paused();
        runtime.block_on(run(steps));
    }
}

const LIMIT: u64 = 5;

async fn run(steps: Vec<Step>) {
    let limiter = log("5/1s");
    let mut waits: Vec<Pin<Box<Acquire<_>>>> = Vec::new();
    let mut taken: Vec<(Instant, u64)> = Vec::new();
    let mut note = |receipt: Receipt| taken.push((Instant::now(), receipt.permits()));
    for step in steps {
        match step {
            Step::Wait(permits) => {
                let mut wait = Box::pin(Arc::clone(&limiter).acquire_owned(permits));
                match poll(&mut wait) {
                    Poll::Ready(receipt) => note(receipt.unwrap()),
                    Poll::Pending => waits.push(wait),
                }
            }
            Step::Poll(which) if which < waits.len() => {
                if let Poll::Ready(receipt) = poll(&mut waits[which]) {
                    note(receipt.unwrap());
                    drop(waits.remove(which));
                }
            }
            Step::Drop(which) if which < waits.len() => drop(waits.remove(which)),
            Step::Poll(_) | Step::Drop(_) => {}
            Step::Check(permits) => {
                if let Ok(receipt) = limiter.check(permits) {
                    note(receipt);
                }
            }
            Step::Sleep(time) => tokio::time::sleep(ms(time)).await,
        }
    }
    assert_eq!(limiter.waiting(), waits.len());
    let (left, began) = (waits.len() as u64, Instant::now());
    let mut tasks = Vec::new();
    for wait in waits {
        tasks.push(tokio::spawn(async move {
            let receipt = wait.await.unwrap();
            (Instant::now(), receipt.permits())
        }));
    }
    for task in tasks {
        taken.push(task.await.unwrap());
    }
    // At most one window each, and the grace period.
    assert!(
        began.elapsed() <= ms(1010) * u32::try_from(left).unwrap(),
        "{left} took {:?}",
        began.elapsed()
    );
    assert_eq!(limiter.waiting(), 0);
    for (at, _) in &taken {
        let window = taken
            .iter()
            .filter(|(other, _)| other <= at && at.duration_since(*other) < ms(1000));
        assert!(
            window.map(|(_, permits)| permits).sum::<u64>() <= LIMIT,
            "{taken:?}"
        );
    }
    // The limiter has not charged more than the waits returned.
    let now = Instant::now();
    let counted = taken.iter().filter(|(at, _)| now.duration_since(*at) < ms(1000));
    let spent: u64 = counted.map(|(_, permits)| permits).sum();
    assert_eq!(limiter.limiter().peek().remaining(), LIMIT - spent);
}

/// The leader is dropped outside of any runtime.
#[test]
fn a_wait_can_be_dropped_outside_of_any_runtime() {
    let runtime = super::paused();
    let limiter = runtime.block_on(async { log("1/1s") });
    let (mut first, second) = (
        Arc::clone(&limiter).acquire_owned(1),
        Arc::clone(&limiter).acquire_owned(1),
    );
    let second = runtime.spawn(second);
    runtime.block_on(async {
        assert!(limiter.check(1).is_ok());
        assert!(poll(&mut first).is_pending());
        settle().await;
    });
    drop(first);
    assert_eq!(limiter.waiting(), 1);
    assert!(runtime.block_on(second).unwrap().is_ok());
}

/// A runtime ends after one of its tasks has advanced the queue to a task of another runtime.
#[test]
fn a_runtime_can_end_before_others() {
    let runtime = || super::threaded();
    let (early, late) = (runtime(), runtime());
    let ring = ringgate::TimestampRing::new("1/200ms".parse().unwrap()).unwrap();
    let limiter = Arc::new(ringgate::Fair::new(ringgate::RateLimiter::with_clock(
        ring,
        TokioClock::new(),
    )));
    assert!(limiter.check(1).is_ok());
    let owned = || Arc::clone(&limiter).acquire_owned(1);
    // The first is charged, and wakes the second, which sets its own timer. (If this thread is stopped for a window, the
    // first completes before it is seen in the queue.)
    let first = early.spawn(owned());
    while limiter.waiting() < 1 && !first.is_finished() {
        std::thread::yield_now();
    }
    let second = late.spawn(owned());
    while limiter.waiting() < 2 && !first.is_finished() {
        std::thread::yield_now();
    }
    assert!(early.block_on(first).unwrap().is_ok());
    drop(early);
    assert!(late.block_on(second).unwrap().is_ok());
    assert_eq!(limiter.waiting(), 0);
}

/// A waker that owns another wait.
struct OwningWaker(#[expect(dead_code, reason = "held until it is dropped")] std::sync::Mutex<Box<dyn Send>>);

impl alloc::task::Wake for OwningWaker {
    fn wake(self: Arc<Self>) {}
}

/// Dropping a waker or a timer may drop another wait of the same limiter, which locks the queues.
#[test]
fn a_waker_can_own_another_wait() {
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = super::paused();
        runtime.block_on(async {
            let limiter = log("1/1s");
            assert!(limiter.check(1).is_ok());
            let held = || {
                let mut wait = Arc::clone(&limiter).acquire_owned(1);
                assert!(poll(&mut wait).is_pending());
                Waker::from(Arc::new(OwningWaker(std::sync::Mutex::new(Box::new(wait)))))
            };
            // Wakers are dropped of a leader and of later waiters: when replaced, when leaving, and when served.
            let mut waits: Vec<_> = (0..3).map(|_| Arc::clone(&limiter).acquire_owned(1)).collect();
            for wait in &mut waits {
                assert!(
                    Pin::new(wait)
                        .poll(&mut Context::from_waker(&held()))
                        .is_pending()
                );
            }
            for wait in &mut waits {
                assert!(
                    Pin::new(wait)
                        .poll(&mut Context::from_waker(&held()))
                        .is_pending()
                );
            }
            drop(waits.pop());
            for wait in waits {
                assert!(wait.await.is_ok());
            }
            assert_eq!(limiter.waiting(), 0);
        });
        done.send(()).unwrap();
    });
    is_done
        .recv_timeout(core::time::Duration::from_secs(10))
        .expect("deadlock");
}

/// The futures can be named in a struct, sent and kept.
#[test]
fn waits_can_be_named_sent_and_kept() {
    struct Connection(Option<Acquire<Log>>);
    fn any(wait: impl Future + Send + Unpin + 'static) -> impl Send {
        wait
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let limiter = runtime.block_on(async { log("1/1s") });
    let connection = Connection(Some(Arc::clone(&limiter).acquire_owned(1)));
    drop(connection.0.map(any));
    assert_eq!(limiter.limiter().peek().remaining(), 1);
}
