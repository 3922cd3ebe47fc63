//! Waits for shared rules.

use super::dropped::Cut;
use super::shared_store::{Behaviour, Request, Store, builder, charge, fair, log, timed, user};
use super::*;
use ringgate::shared::{CounterStore, LiveSharedRules, Mode, SharedRules};
use ringgate::wait::SharedFair;
use tokio::time::{sleep, timeout};

/// A request for 50 permits among requests for one, which would take each permit that becomes free.
#[tokio::test(start_paused = true)]
async fn a_large_request_waits_only_for_earlier_ones() {
    let store = Store::slow(2);
    let bucket = log("all", "100/1s").algorithm(RuleAlgorithm::Gcra).burst(50);
    let fair = fair(&store, [bucket]);
    charge(&fair, (0, 50)).await;
    for _ in 0..20 {
        let fair = Arc::clone(&fair);
        tokio::spawn(async move {
            loop {
                drop(fair.acquire(&(0, 1)).await.unwrap());
            }
        });
    }
    sleep(ms(100)).await;
    let began = Instant::now();
    drop(fair.acquire(&(0, 50)).await.unwrap());
    // The permits of the 20 requests before it, and its own, with a round trip or two for each of them.
    let took = began.elapsed();
    assert!((ms(500)..ms(1000)).contains(&took), "{took:?}");
}

/// A waiter of an exhausted user delays no other user, and one of an exhausted common rule delays all.
#[tokio::test(start_paused = true)]
async fn a_queue_delays_only_requests_that_need_its_state() {
    let rules = [log("user", "1/10s").by(&user()), log("all", "3/1s")];
    let fair = fair(&Store::new(), rules);
    charge(&fair, (1, 1)).await;
    let waits = timed(&fair, (1, 1));
    settle().await;
    assert_eq!(fair.waiting(), 1);
    charge(&fair, (2, 1)).await;
    charge(&fair, (3, 1)).await;
    let behind = timed(&fair, (4, 1)).await.unwrap().unwrap();
    assert!((1000..1010).contains(&behind), "{behind} ms");
    let waited = waits.await.unwrap().unwrap();
    assert!((10_000..10_010).contains(&waited), "{waited} ms");
}

/// The permits of a window are taken by more waiters in each round trip, and few asks are denied.
#[tokio::test(start_paused = true)]
async fn free_permits_are_taken_in_few_round_trips() {
    const PERMITS: u64 = 64;
    let store = Store::slow(10);
    let fair = fair(&store, [log("all", "64/10s")]);
    charge(&fair, (0, PERMITS)).await;
    let waits: Vec<_> = (0..PERMITS + 10).map(|_| timed(&fair, (0, 1))).collect();
    sleep(ms(1000)).await;
    assert_eq!(fair.waiting(), 74);
    let (before, mut times) = (store.decisions(), Vec::new());
    sleep(ms(10_000)).await;
    let asked = store.decisions() - before;
    for wait in waits {
        times.push(wait.await.unwrap().unwrap());
    }
    times.sort_unstable();
    let served = times[PERMITS as usize - 1] - times[0];
    println!("{PERMITS} permits in {served} ms, {asked} asks");
    // One waiter asks first, and then 1, 2, 4 .. 32 together.
    assert!(served <= 80, "{served} ms");
    assert!(asked <= 2 * PERMITS + 1, "{asked} asks");
}

/// For each permit that becomes free, one waiter asks in vain, and not all of them.
#[tokio::test(start_paused = true)]
async fn few_asks_are_denied() {
    let store = Store::slow(10);
    let fair = fair(&store, [log("all", "1/1s")]);
    charge(&fair, (0, 1)).await;
    let waits: Vec<_> = (0..50).map(|_| timed(&fair, (0, 1))).collect();
    sleep(ms(500)).await;
    let before = store.decisions();
    sleep(ms(10_000)).await;
    assert_eq!(waits.iter().filter(|wait| wait.is_finished()).count(), 10);
    let asked = store.decisions() - before;
    assert!(asked <= 21, "{asked} asks");
}

/// The waiter behind a dropped one is served as soon as a permit is free. At most the request that the dropped one asked for is
/// charged, and only by the store.
#[tokio::test(start_paused = true)]
async fn a_wait_that_is_dropped_at_any_point() {
    for (when_woken, within) in [(false, false), (true, false), (false, true), (true, true)] {
        for polls in 0.. {
            assert!(polls < 100, "{polls} await points");
            let cut = Cut { polls, when_woken };
            let store = Store::slow(10);
            let fair = fair(&store, [log("all", "1/1s")]);
            charge(&fair, (0, 1)).await;
            let began = Instant::now();
            let dropped = async {
                match within {
                    true => cut.off(fair.acquire_within(&(0, 1), ms(30_000))).await,
                    false => cut.off(fair.acquire(&(0, 1))).await,
                }
            };
            let behind = async {
                sleep(ms(1)).await;
                drop(fair.acquire(&(0, 1)).await.unwrap());
                began.elapsed().as_millis()
            };
            let both = async { tokio::join!(dropped, behind) };
            let (is_served, at) = timeout(ms(60_000), both).await.expect("a waiter is forgotten");
            // The dropped call may have charged the first permit. Then the next one is a second later.
            let windows = if is_served { 2..=2 } else { 1..=2 };
            assert!(
                windows.contains(&(at / 1000)) && at % 1000 < 100,
                "{cut:?}: {at} ms"
            );
            assert_eq!(fair.waiting(), 0);
            // No ask is left, so a request asks at once.
            let before = (Instant::now(), store.decisions());
            drop(fair.acquire(&(0, 1)).await.unwrap());
            assert!(before.0.elapsed() < ms(1100), "{cut:?}: {:?}", before.0.elapsed());
            if is_served {
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_cannot_succeed_ends_at_once() {
    let store = Store::new();
    let fair = fair(&store, [log("all", "2/10s")]);
    assert_eq!(fair.acquire(&(0, 3)).await.map(drop), Err(WaitError::Never));
    charge(&fair, (0, 2)).await;
    let before = store.decisions();
    match fair.acquire_within(&(0, 1), ms(100)).await.map(drop) {
        Err(WaitError::TooLate { needed, allowed }) => assert!(needed > ms(9900) && allowed <= ms(100)),
        other => panic!("{other:?}"),
    }
    // The first decision is the only one.
    assert_eq!(store.decisions() - before, 1);
    // A denied key, and a slot in flight of a denied key, are never admitted.
    let user = Key::text("user", |user: &str| Some(user));
    for rule in [
        Rule::new("rate", "9/1s".parse().unwrap()).into_any(),
        Rule::in_flight("slots", 1).into_any(),
    ] {
        let rules = SharedRules::<str>::builder().rule(rule.by(&user).deny("eve"));
        let rules = Arc::new(SharedFair::new(Arc::new(rules.build(store.clone()).unwrap())));
        assert_eq!(rules.acquire("eve").await.map(drop), Err(WaitError::Never));
        assert!(rules.acquire("alice").await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_is_an_error() {
    let store = Store::new();
    let rules: Arc<dyn CounterStore> = store.clone();
    let rules = Arc::new(builder([log("all", "1/1s")]).build(rules).unwrap());
    let fair = Arc::new(SharedFair::new(rules).max_waiting(2));
    charge(&fair, (0, 1)).await;
    let waits = [(); 2].map(|()| timed(&fair, (0, 1)));
    settle().await;
    match fair.acquire(&(0, 1)).await.map(drop) {
        Err(WaitError::QueueFull {
            max_waiting: 2,
            needed,
        }) => assert!(needed <= ms(1001)),
        other => panic!("{other:?}"),
    }
    for wait in waits {
        assert!(wait.await.unwrap().is_ok());
    }
}

/// A deadline ends a wait also while rechecks let it ask again and again.
#[tokio::test(start_paused = true)]
async fn a_deadline_ends_a_wait_despite_rechecks() {
    let store = Store::slow(20);
    let fair = fair(&store, [log("all", "10/1h")]);
    charge(&fair, (0, 10)).await;
    let other = Arc::clone(&fair);
    let rechecks = tokio::spawn(async move {
        loop {
            sleep(ms(10)).await;
            other.recheck();
        }
    });
    let (before, began) = (store.decisions(), Instant::now());
    let wait = timeout(ms(10_000), fair.acquire_within(&(0, 5), ms(50)));
    match wait.await.expect("the wait goes on").map(drop) {
        Err(WaitError::TooLate { allowed, .. }) => assert_eq!(allowed, Duration::ZERO),
        other => panic!("{other:?}"),
    }
    // The call that is made at the deadline is the last one.
    let took = began.elapsed();
    assert!((ms(50)..ms(75)).contains(&took), "{took:?}");
    assert_eq!(store.decisions() - before, 3);
    rechecks.abort();
}

/// A waiter that was denied without a named quota asks again after a second, and before later requests.
#[tokio::test(start_paused = true)]
async fn a_denial_that_names_no_quota_is_not_overtaken() {
    let store = Store::with(Behaviour {
        denies: true,
        ..Behaviour::default()
    });
    let fair = fair(&store, [log("all", "2/1h")]);
    let first = timed(&fair, (0, 1));
    settle().await;
    store.set(Behaviour::default());
    let later = timed(&fair, (0, 1));
    settle().await;
    assert_eq!((store.decisions(), fair.waiting()), (1, 2));
    assert!(first.await.unwrap().unwrap() >= 1000);
    assert!(later.await.unwrap().is_ok());
}

/// Refunds to one user cause no further asks of others, whose denials they do not concern. States whose rechecks have one number are
/// few.
#[tokio::test(start_paused = true)]
async fn a_refund_causes_no_ask_for_another_state() {
    let store = Store::slow(20);
    let fair = fair(&store, [log("user", "1/1h").by(&user())]);
    for user in 0..40 {
        charge(&fair, (user, 1)).await;
    }
    let mut asks = 0;
    for user in 0..40 {
        let other = Arc::clone(&fair);
        let charged = fair.acquire(&(100, 1)).await.unwrap();
        let before = store.decisions();
        let refund = tokio::spawn(async move { other.refund(charged).await });
        // It takes effect while the store decides.
        sleep(ms(10)).await;
        let denied = fair.acquire_within(&(user, 1), ms(50)).await.map(drop);
        assert!(denied.is_err() && refund.await.unwrap().is_ok());
        asks += store.decisions() - before;
    }
    assert!((40..50).contains(&asks), "{asks} asks");
}

/// A recheck of all states that comes between the first ask of a request and its denial makes it ask again.
#[tokio::test(start_paused = true)]
async fn a_recheck_reaches_a_first_ask() {
    let store = Store::slow(20);
    let fair = fair(&store, [log("all", "1/1h")]);
    charge(&fair, (0, 1)).await;
    let waits = timed(&fair, (0, 1));
    sleep(ms(10)).await;
    let before = store.decisions();
    fair.recheck();
    sleep(ms(100)).await;
    assert_eq!((store.decisions() - before, fair.waiting()), (1, 1));
    waits.abort();
}

/// A bucket of 50 permits, of which one comes back every 100 ms.
fn bucket() -> Rule<Request> {
    log("all", "10/1s").algorithm(RuleAlgorithm::Gcra).burst(50)
}

/// A large request that leaves, at its deadline or because it is dropped, does not keep those behind it from asking.
#[tokio::test(start_paused = true)]
async fn a_request_that_leaves_closes_nothing() {
    for within in [Some(900), Some(1_000), None] {
        let fair = fair(&Store::new(), [bucket()]);
        charge(&fair, (0, 50)).await;
        let first = timed(&fair, (0, 1));
        settle().await;
        let large = Arc::clone(&fair);
        let large = tokio::spawn(async move {
            let within = ms(within.unwrap_or(1_000_000));
            large.acquire_within(&(0, 50), within).await.map(drop)
        });
        settle().await;
        let behind = timed(&fair, (0, 1));
        sleep(ms(110)).await;
        assert_eq!(first.await.unwrap(), Ok(100));
        if within.is_none() {
            // It waits for its permits.
            assert_eq!(fair.waiting(), 2);
            large.abort();
        }
        settle().await;
        assert!(large.await.is_err_and(|error| error.is_cancelled()) || within.is_some());
        sleep(ms(1_100)).await;
        let waited = behind.await.unwrap().unwrap();
        assert!(waited <= 202, "{within:?}: {waited} ms");
        assert_eq!(fair.waiting(), 0);
    }
}

/// Large requests of a user that is exhausted for long wait there, and not in front of other users. So does one that the common rule has
/// denied, if another one waits for the user by the time of the answer.
#[tokio::test(start_paused = true)]
async fn a_wait_closes_only_the_state_where_it_waits() {
    let store = Store::slow(200);
    let per_user = log("user", "50/1h").by(&user());
    let fair = fair(&store, [per_user, bucket()]);
    charge(&fair, (0, 50)).await;
    // Decided 100 ms later, when the user has enough, and answered after another 100 ms.
    let late = timed(&fair, (1, 50));
    settle().await;
    store.set(Behaviour::default());
    sleep(ms(150)).await;
    charge(&fair, (1, 1)).await;
    let large = timed(&fair, (1, 50));
    settle().await;
    assert_eq!(fair.waiting(), 1);
    sleep(ms(51)).await;
    assert_eq!(fair.waiting(), 2);
    for _ in 0..5 {
        let waited = timed(&fair, (2, 1)).await.unwrap().unwrap();
        assert!(waited <= 102, "{waited} ms");
    }
    late.abort();
    large.abort();
}

/// A denied waiter returns to its queue, though another wait has filled the queue meanwhile.
#[tokio::test(start_paused = true)]
async fn a_denied_waiter_returns_to_a_full_queue() {
    let store = Store::slow(200);
    let rules = builder([log("all", "1/1s")]).build(store.clone()).unwrap();
    let fair = Arc::new(SharedFair::new(Arc::new(rules)).max_waiting(1));
    charge(&fair, (0, 1)).await;
    let first = timed(&fair, (0, 1));
    sleep(ms(300)).await;
    assert_eq!(fair.waiting(), 1);
    while fair.waiting() > 0 {
        sleep(ms(1)).await;
    }
    // It asks, and before the store decides, another call takes the permit.
    store.set(Behaviour::default());
    assert!(fair.rules().check(&(0, 1)).await.is_ok());
    let second = timed(&fair, (0, 1));
    settle().await;
    assert_eq!(fair.waiting(), 1);
    sleep(ms(200)).await;
    assert_eq!(fair.waiting(), 2);
    assert!(first.await.unwrap().is_ok() && second.await.unwrap().is_ok());
}

/// A large request whose denial arrives late is behind the waiters that joined before.
#[tokio::test(start_paused = true)]
async fn a_late_denial_closes_nothing_for_earlier_waiters() {
    let store = Store::new();
    let fair = fair(&store, [bucket()]);
    charge(&fair, (0, 50)).await;
    let slow = Behaviour {
        half: ms(100),
        ..Behaviour::default()
    };
    store.set(slow);
    let large = timed(&fair, (0, 50));
    settle().await;
    store.set(Behaviour::default());
    let first = timed(&fair, (0, 1));
    sleep(ms(50)).await;
    let second = timed(&fair, (0, 1));
    settle().await;
    store.set(slow);
    // At 100 ms the first one asks, and has its answer 200 ms later. Meanwhile the large one has.
    sleep(ms(200)).await;
    store.set(Behaviour::default());
    assert!(first.await.unwrap().unwrap() <= 310);
    let waited = second.await.unwrap().unwrap();
    assert!(waited <= 310, "{waited} ms");
    assert!(large.await.unwrap().unwrap() <= 6_000);
}

/// Waiters are decided by the rules that are in force when they ask, which is at once after a recheck.
#[tokio::test(start_paused = true)]
async fn a_reload_applies_to_waiters() {
    let store: Arc<dyn CounterStore> = Store::new();
    let live: LiveSharedRules<Request> = builder([log("all", "1/1h")]).build_live(store).unwrap();
    let fair = Arc::new(SharedFair::new(Arc::new(live)));
    drop(fair.acquire(&(0, 1)).await.unwrap());
    let waits = [(); 3].map(|()| timed(&fair, (0, 1)));
    sleep(ms(100)).await;
    let reload = |[first, second]: [Rule<Request>; 2]| {
        let rules = RuleSetBuilder::new().rule(first).rule(second);
        fair.rules().store(rules).unwrap();
        fair.recheck();
    };
    // A larger limit, of which one permit is spent, and a rule that was not there.
    reload([log("all", "2/1h"), log("other", "9/1h")]);
    sleep(ms(100)).await;
    let finished = waits.iter().filter(|wait| wait.is_finished()).count();
    assert_eq!((finished, fair.waiting()), (1, 2));
    // Another rule decides, so the wait is for other states.
    reload([log("new", "1/1s"), log("other", "9/1h")]);
    let mut times = Vec::new();
    for wait in waits {
        times.push(wait.await.unwrap().unwrap());
    }
    for (time, from) in times.into_iter().zip([100, 200, 1200]) {
        assert!((from..from + 10).contains(&time), "{time} of {from}");
    }
}

/// Waiters over leases are served, and a lease decides some of them.
#[tokio::test(start_paused = true)]
async fn waits_over_leases() {
    let (period, pending) = (ms(100), 10);
    for mode in [Mode::Lease { permits: 10 }, Mode::Sync { period, pending }] {
        let store: Arc<dyn CounterStore> = Store::slow(2);
        let rules = builder([log("all", "20/1s").mode(mode)]).term_clock(TokioClock::new());
        let fair = Arc::new(SharedFair::new(Arc::new(rules.build(store).unwrap())));
        let began = Instant::now();
        let waits: Vec<_> = (0..60).map(|_| timed(&fair, (0, 1))).collect();
        for wait in waits {
            ended(wait).await.unwrap();
        }
        // Three windows. A budget admits 10 more in each, and a report leaves its window up to a period later.
        let took = began.elapsed();
        assert!((ms(1000)..ms(5000)).contains(&took), "{mode:?}: {took:?}");
        assert_eq!(fair.waiting(), 0);
    }
}

/// Waiters for a local rule of a node, whose time is not paused.
#[tokio::test]
async fn waits_for_a_local_rule() {
    let fair = fair(&Store::new(), [log("all", "10/50ms").mode(Mode::Local)]);
    let waits: Vec<_> = (0..30).map(|_| timed(&fair, (0, 1))).collect();
    for wait in waits {
        assert!(wait.await.unwrap().is_ok());
    }
    assert_eq!(fair.waiting(), 0);
}

/// One permit is passed from thread to thread by refunds, of which none is slept through.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_permit_is_passed_on_by_refunds() {
    for yields in [false, true] {
        let store = Store::with(Behaviour {
            yields,
            ..Behaviour::default()
        });
        let fair = fair(&store, [log("all", "1/1h")]);
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let fair = Arc::clone(&fair);
                tokio::spawn(async move {
                    for _ in 0..100 {
                        let admission = fair.acquire(&(0, 1)).await.unwrap();
                        fair.refund(admission).await.unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            ended(task).await;
        }
        assert_eq!(fair.waiting(), 0);
    }
}

/// Two nodes over one store: random waits, of which some are dropped. No window holds more than the limit, and all waits end.
#[tokio::test(start_paused = true)]
async fn two_nodes_wait_for_one_store() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let store = Store::slow(random.below(4));
        let rules = || [log("user", "3/100ms").by(&user()), log("all", "5/100ms")];
        let nodes = [(); 2].map(|()| fair(&store, rules()));
        let admitted = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for _ in 0..200 {
            let (fair, admitted) = (Arc::clone(&nodes[random.index(2)]), Arc::clone(&admitted));
            let request = (random.below(3) as u32, 1 + random.below(2));
            let is_short = random.one_in(4);
            let patience = ms(if is_short { random.below(300) } else { 1_000_000 });
            tasks.push(tokio::spawn(async move {
                let admission = timeout(patience, fair.acquire(&request)).await;
                if let Ok(admission) = admission {
                    let at = admission.unwrap().admitted().store_time();
                    let at = at.expect("the store decides");
                    admitted.lock().unwrap().push((at, request.1));
                }
            }));
            if random.one_in(3) {
                sleep(ms(random.below(20))).await;
            }
        }
        for task in tasks {
            ended(task).await;
        }
        assert_eq!(nodes.each_ref().map(|node| node.waiting()), [0, 0]);
        let admitted = admitted.lock().unwrap();
        for &(from, _) in &*admitted {
            let is_within = |at: &u64| (from..from + 100_000).contains(at);
            let window = admitted.iter().filter(|(at, _)| is_within(at));
            let permits: u64 = window.map(|&(_, permits)| permits).sum();
            assert!(permits <= 5, "{permits} permits in a window");
        }
        assert!(admitted.len() > 100, "seed {seed}: {}", admitted.len());
    }
}
