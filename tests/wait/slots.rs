//! Waits for slots in flight and for refunds of shared rules.

use std::thread::{self, ThreadId};

use super::shared_store::{Request, Store, builder, fair, log, timed};
use super::*;
use ringgate::shared::{CounterStore, Mode};
use ringgate::wait::{Runtime, SharedFair};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

/// A refund, and a settlement, let the first waiter ask at once.
#[tokio::test(start_paused = true)]
async fn a_refund_wakes_the_first_waiter() {
    let cost = Cost::new("cost", |request: &Request| request.1);
    let all = Rule::new("all", "3/1h".parse().unwrap())
        .algorithm(RuleAlgorithm::Log)
        .cost(&cost);
    let fair = fair(&Store::slow(10), [all]);
    let charged = fair.acquire(&(0, 2)).await.unwrap();
    let more = fair.acquire(&(0, 1)).await.unwrap();
    let waits = [(); 2].map(|()| timed(&fair, (0, 1)));
    sleep(ms(100)).await;
    fair.settle(charged, &(0, 2), &cost, 1).await.unwrap();
    sleep(ms(100)).await;
    assert_eq!(waits.iter().filter(|wait| wait.is_finished()).count(), 1);
    fair.refund(more).await.unwrap();
    for wait in waits {
        assert!(wait.await.unwrap().unwrap() < 400);
    }
}

/// The slot of this node is taken as soon as it is released through the queues, and one of another node within a second.
#[tokio::test(start_paused = true)]
async fn a_released_slot_is_taken() {
    for mode in [Mode::Strict, Mode::Local] {
        let store = Store::new();
        let slots = || [Rule::in_flight("slots", 1).mode(mode)];
        let nodes = [(); 2].map(|()| fair(&store, slots()));
        let held = nodes[0].acquire(&(0, 1)).await.unwrap();
        let waits = timed(&nodes[0], (0, 1));
        sleep(ms(1500)).await;
        nodes[0].refund(held).await.unwrap();
        let waited = waits.await.unwrap().unwrap();
        assert!((1500..1510).contains(&waited), "{mode:?}: {waited} ms");
        if mode == Mode::Strict {
            let held = nodes[1].acquire(&(0, 1)).await.unwrap();
            let waits = timed(&nodes[0], (0, 1));
            sleep(ms(1500)).await;
            drop(held);
            let waited = waits.await.unwrap().unwrap();
            assert!((1500..2600).contains(&waited), "{waited} ms");
        }
    }
}

/// A slot that is released in time is taken also by a wait of less than a second, and a wait for none ends at its deadline.
#[tokio::test(start_paused = true)]
async fn a_short_wait_for_a_slot_lasts_until_its_deadline() {
    for mode in [Mode::Strict, Mode::Local] {
        let fair = fair(&Store::new(), [Rule::in_flight("slots", 1).mode(mode)]);
        let held = fair.acquire(&(0, 1)).await.unwrap();
        for within in [400, 1_500] {
            let began = Instant::now();
            let late = fair.acquire_within(&(0, 1), ms(within)).await.map(drop);
            // No time frees a slot, so none is needed.
            assert_eq!(late, Err(too_late(Duration::ZERO, Duration::ZERO)), "{mode:?}");
            let (waited, least) = (began.elapsed(), ms(within));
            assert!((least..least + ms(10)).contains(&waited), "{mode:?}: {waited:?}");
        }
        let other = Arc::clone(&fair);
        let began = Instant::now();
        let waits = tokio::spawn(async move { other.acquire_within(&(0, 1), ms(900)).await.map(drop) });
        sleep(ms(100)).await;
        fair.refund(held).await.unwrap();
        assert_eq!(waits.await.unwrap(), Ok(()), "{mode:?}");
        assert!(began.elapsed() < ms(110), "{mode:?}: {:?}", began.elapsed());
    }
}

/// A wait for a slot and for a rate does not outlast the hope for the rate.
#[tokio::test(start_paused = true)]
async fn a_wait_for_a_slot_and_a_rate_ends_at_once_for_the_rate() {
    let slots = Rule::in_flight("slots", 1).into_any();
    let fair = fair(&Store::new(), [slots, log("all", "1/500ms").into_any()]);
    let _held = fair.acquire(&(0, 1)).await.unwrap();
    match fair.acquire_within(&(0, 1), ms(300)).await.map(drop) {
        Err(WaitError::TooLate { needed, allowed }) => assert!(needed > ms(490) && allowed == ms(300)),
        other => panic!("{other:?}"),
    }
}

type Work = Option<(ThreadId, Box<dyn FnOnce() + Send>)>;

/// Timers that never fire, and work that is done once after a wake-up by this thread. Another may still be in its own first poll.
#[derive(Default)]
struct AfterWakes(Arc<Mutex<Work>>);

impl Runtime for AfterWakes {
    type Timer = ();

    fn set_timer(&self, _: Duration, _: &Waker) {}

    fn wake_all(&self, wakers: impl Iterator<Item = Waker>) {
        wakers.for_each(Waker::wake);
        let is_here = |work: &mut (ThreadId, _)| work.0 == thread::current().id();
        let work = self.0.lock().unwrap().take_if(is_here);
        if let Some((_, work)) = work {
            work();
        }
    }
}

/// The first recheck of a refund comes too early for its waiter, and the store releases the slot before the refund waits for that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_is_taken_that_is_released_during_its_refund() {
    let store = Store::new();
    let rules: Arc<dyn CounterStore> = store.clone();
    let rules = builder([Rule::in_flight("slots", 1)]).build(rules).unwrap();
    let runtime = AfterWakes::default();
    let work = Arc::clone(&runtime.0);
    let fair = Arc::new(SharedFair::with_runtime(Arc::new(rules), runtime));
    let held = fair.acquire(&(0, 1)).await.unwrap();
    let other = Arc::clone(&fair);
    let waits = tokio::spawn(async move { other.acquire(&(0, 1)).await.map(drop) });
    while fair.waiting() == 0 {
        tokio::task::yield_now().await;
    }
    store.keeps_refunds.store(true, Ordering::Relaxed);
    let (asks, other, runtime) = (store.decisions(), Arc::clone(&fair), Handle::current());
    let released = move || {
        // The waiter asks, and returns to its queue.
        while store.decisions() == asks || other.waiting() == 0 {
            thread::yield_now();
        }
        store.keeps_refunds.store(false, Ordering::Relaxed);
        let released = thread::spawn(move || runtime.block_on(other.rules().flush()));
        released.join().unwrap().unwrap();
    };
    *work.lock().unwrap() = Some((thread::current().id(), Box::new(released)));
    fair.refund(held).await.unwrap();
    let waited = timeout(ms(20_000), waits).await;
    assert_eq!(waited.expect("a slot is slept through").unwrap(), Ok(()));
}

/// A slot that is held is renewed in time, although a thousand others are released in each second, in calls of 10 ms.
#[tokio::test(start_paused = true)]
async fn waits_for_releases_delay_no_renewal() {
    let store = Store::slow(10);
    let fair = fair(&store, [Rule::in_flight("slots", 1000)]);
    let held = fair.acquire(&(0, 1)).await.unwrap();
    let mut tasks = Vec::new();
    for _ in 0..10_000 {
        let fair = Arc::clone(&fair);
        tasks.push(tokio::spawn(async move {
            let admission = fair.acquire(&(0, 1)).await.unwrap();
            fair.refund(admission).await.unwrap();
        }));
        sleep(ms(1)).await;
    }
    for task in tasks {
        // The call that was sent before, and its own.
        let ended = timeout(ms(25), task).await;
        ended.expect("a wait is behind others").unwrap();
    }
    let mut times = store.renewals.lock().unwrap().clone();
    times.push(Instant::now());
    let longest = times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    let count = times.len();
    assert!(longest < ms(1000) && count > 10, "{longest:?}, {count} times");
    drop(held);
}
