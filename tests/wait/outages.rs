//! Waits for shared rules whose store does not answer.

use super::shared_store::{Behaviour, Store, builder, charge, fair, log, timed};
use super::*;
use ringgate::shared::OnError;
use ringgate::wait::SharedFair;
use tokio::time::{sleep, timeout};

/// The wait ends with an error if the store fails and the rule denies then, also for the waiters behind, without a round trip each.
#[tokio::test(start_paused = true)]
async fn a_store_that_fails_ends_the_waits() {
    let store = Store::slow(10);
    let fair = fair(&store, [log("all", "1/1s").on_error(OnError::Deny)]);
    charge(&fair, (0, 1)).await;
    let waits: Vec<_> = (0..100).map(|_| timed(&fair, (0, 1))).collect();
    sleep(ms(500)).await;
    assert_eq!(fair.waiting(), 100);
    store.set(Behaviour {
        half: ms(5),
        fails: true,
        ..Behaviour::default()
    });
    let began = Instant::now();
    for wait in waits {
        assert_eq!(wait.await.unwrap(), Err(WaitError::Unavailable));
    }
    // The rest of the retry time, and two round trips.
    assert!(began.elapsed() < ms(600), "{:?}", began.elapsed());
    let found = WaitError::Unavailable.to_string();
    assert_eq!(found, "store of the limits does not answer");
    store.set(Behaviour::default());
    charge(&fair, (0, 1)).await;
}

/// If the rule admits without the store, the waiters are admitted. If the node's limiter decides, they wait for it.
#[tokio::test(start_paused = true)]
async fn the_rule_decides_when_the_store_fails() {
    let store = Store::new();
    let fair = fair(&store, [log("all", "1/10s").on_error(OnError::Admit)]);
    charge(&fair, (0, 1)).await;
    let waits: Vec<_> = (0..10).map(|_| timed(&fair, (0, 1))).collect();
    settle().await;
    store.fail();
    for wait in waits {
        let waited = wait.await.unwrap().unwrap();
        assert!((10_000..10_100).contains(&waited), "{waited} ms");
    }
}

/// In an outage, the limiter of this node denies for an hour, or for ever what is more than its share. A waiter is served within
/// seconds after the store is back.
#[tokio::test(start_paused = true)]
async fn an_outage_delays_no_wait_beyond_its_end() {
    for (quota, spent, cost) in [
        ("1/1h", 1, 1),
        ("3/1h", 1, 2),
        ("100/1s", 0, 50),
        ("100/1h", 25, 100),
    ] {
        let store = Store::new();
        let rules = builder([log("all", quota)]).nodes(core::num::NonZeroU32::new(4).unwrap());
        let fair = Arc::new(SharedFair::new(Arc::new(rules.build(store.clone()).unwrap())));
        store.fail();
        for _ in 0..spent {
            let _ = fair.acquire_within(&(0, 1), Duration::ZERO).await;
        }
        let waits = [(); 2].map(|()| timed(&fair, (0, cost)));
        sleep(ms(20_000)).await;
        let [first, second] = waits;
        assert!(!first.is_finished(), "{quota}: {:?}", first.await);
        store.set(Behaviour::default());
        // The breaker of the store asks again after a while, too.
        let waited = timeout(ms(10_000), first).await.expect(quota).unwrap();
        assert!(waited.is_ok(), "{quota}: {waited:?}");
        second.abort();
    }
}

/// A short wait that the limiter of this node has denied in an outage lasts until its deadline, because the store may be back
/// before.
#[tokio::test(start_paused = true)]
async fn a_short_wait_in_an_outage_lasts_until_its_deadline() {
    let store = Store::new();
    let fair = fair(&store, [log("all", "1/1h")]);
    store.fail();
    charge(&fair, (0, 1)).await;
    let began = Instant::now();
    let late = fair.acquire_within(&(0, 1), ms(900)).await.map(drop);
    assert_eq!(late, Err(too_late(Duration::ZERO, Duration::ZERO)));
    assert!(
        (ms(900)..ms(910)).contains(&began.elapsed()),
        "{:?}",
        began.elapsed()
    );
}

/// In an outage, a request waits for the share of this node in a calendar, whose periods have several lengths, and does not spin.
#[cfg(feature = "calendar")]
#[test]
fn a_calendar_keeps_a_wait_in_an_outage() {
    use std::time::SystemTime;
    // June, February, and a year of 365 days.
    for (quota, day) in [
        ("2/month", 20_620),
        ("2/month", 20_500),
        ("2/year", 20_500),
        ("2/day", 20_500),
    ] {
        let (ended, end) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_time().build().unwrap();
            runtime.block_on(async {
                let store = Store::with(Behaviour {
                    fails: true,
                    ..Behaviour::default()
                });
                let rules = builder([Rule::calendar("all", quota.parse().unwrap())]);
                let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(day * 86_400);
                let rules = rules.wall_clock(move || wall).build(store).unwrap();
                let fair = Arc::new(SharedFair::new(Arc::new(rules)));
                let mut waited = Ok(());
                for _ in 0..3 {
                    waited = fair.acquire_within(&(0, 1), ms(100)).await.map(drop);
                }
                ended.send(waited).unwrap();
            });
        });
        let waited = end.recv_timeout(ms(20_000)).expect("the wait spins");
        assert!(
            matches!(waited, Err(WaitError::TooLate { .. })),
            "{quota}: {waited:?}"
        );
    }
}

/// While a call hangs, the waiters behind ask after a second, and deadlines hold in the queue.
#[tokio::test(start_paused = true)]
async fn a_store_that_never_answers() {
    let store = Store::new();
    let fair = fair(&store, [log("all", "1/1s")]);
    charge(&fair, (0, 1)).await;
    let waits = [(); 3].map(|()| timed(&fair, (0, 1)));
    settle().await;
    store.set(Behaviour {
        hangs: true,
        ..Behaviour::default()
    });
    // The first asks after a second, and does not get an answer.
    sleep(ms(1500)).await;
    assert_eq!(fair.waiting(), 2);
    let began = Instant::now();
    match fair.acquire_within(&(0, 1), ms(300)).await.map(drop) {
        Err(WaitError::TooLate { allowed, .. }) => assert_eq!(allowed, Duration::ZERO),
        other => panic!("{other:?}"),
    }
    let waited = began.elapsed();
    assert!((ms(300)..ms(310)).contains(&waited), "{waited:?}");
    store.set(Behaviour::default());
    let [first, others @ ..] = waits;
    for wait in others {
        assert!(ended(wait).await.is_ok());
    }
    first.abort();
    assert!(first.await.is_err());
    assert!(timed(&fair, (0, 1)).await.unwrap().unwrap() <= 1001);
}
