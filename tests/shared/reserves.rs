//! No request is denied because of permits that its own node holds: the permits of a lease, or the reserve that the store leaves for a
//! budget.

use alloc::sync::Arc;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;

use ringgate::Rule;
use ringgate::rules::{Cost, DecidedBy, RuleAlgorithm};
use ringgate::shared::{
    CheckResult, CounterRequest, CounterStore, LeaseFuture, LeaseRequest, LeaseStore, MemoryStore, Mode,
    OnError, SharedLimiter, SharedRules, StoreError, StoreErrorKind, StoreFuture,
};
use tokio::time::{Instant, sleep};

use crate::many::Paused;
use crate::memory;
use crate::pausing::Pausing;

const PERIOD: Duration = Duration::from_millis(100);

fn limiter(store: &Arc<MemoryStore>, pending: u64) -> SharedLimiter {
    SharedLimiter::builder("all", "200/h".parse().expect("a quota"))
        .sync(PERIOD, pending)
        .on_error(OnError::Deny)
        .build(store.clone())
        .expect("a limiter")
}

/// Requests of one task each, all at once: the permits of a request, and how many are admitted of 200 permits.
#[tokio::test]
async fn every_free_permit_is_admitted() {
    for (pending, permits, tasks) in [
        (20, 1, 200),
        (1, 1, 300),
        (3, 2, 100),
        (20, 20, 10),
        (20, 21, 9),
        (20, 25, 9),
        (5, 40, 5),
        (150, 199, 1),
        (200, 200, 2),
        (1000, 1, 250),
    ] {
        let limiter = Arc::new(limiter(&Arc::new(MemoryStore::new()), pending));
        let ask = |permits| {
            let limiter = Arc::clone(&limiter);
            tokio::spawn(async move { limiter.check_n("key", permits).await })
        };
        let asked: Vec<_> = (0..tasks).map(|_| ask(permits)).collect();
        let mut left = 200;
        for asked in asked {
            match asked.await.expect("no panic") {
                Ok(_) => left -= permits,
                // The permits that are free are fewer than these.
                Err(denied) => assert!(denied.error().is_none(), "{denied:?}"),
            }
        }
        assert_eq!(
            left,
            200 % permits + 200_u64.saturating_sub(permits * tasks) / permits * permits
        );
        // The rest is admitted, to the last permit.
        for _ in 0..left {
            ask(1).await.expect("no panic").expect("a free permit");
        }
        let denied = ask(1).await.expect("no panic").expect_err("no permit is free");
        let wait = denied.retry_after().expect("a time");
        assert!(wait > Duration::from_secs(3500), "pending {pending}: {wait:?}");
    }
}

fn length() -> Cost<str> {
    Cost::new("length", |text: &str| text.len() as u64)
}

/// A denial names the rules that have no room, and no rule whose reserve was in the way of nothing.
#[tokio::test]
async fn a_denial_names_the_full_rule_only() {
    let sync = |name: &'static str, quota: &str| {
        let rule: Rule<str> = Rule::new(name, quota.parse().expect("a quota"));
        let rule = rule.mode(Mode::Sync {
            period: PERIOD,
            pending: 5,
        });
        rule.on_error(OnError::Deny).cost(&length())
    };
    let strict = |quota: &str| Rule::new("strict", quota.parse().expect("a quota")).cost(&length());
    // With the reserve of 5 permits, each rule of the mode `Sync` has no room for a third request of 9 permits.
    for (wide, strict_quota, expected) in [
        ("30/h", "20/min", &["strict"][..]),
        ("30/h", "26/min", &["strict"]),
        ("26/h", "30/min", &["wide"]),
        ("26/h", "26/min", &["wide", "strict"]),
        ("30/h", "30/min", &[]),
        ("27/h", "27/min", &[]),
    ] {
        let rules = SharedRules::builder()
            .rule(sync("wide", wide))
            .rule(strict(strict_quota))
            .build(Arc::new(MemoryStore::new()))
            .expect("rules");
        for _ in 0..2 {
            rules.check("xxxxxxxxx").await.expect("room");
        }
        let full: Vec<String> = match rules.check("xxxxxxxxx").await {
            Ok(_) => Vec::new(),
            Err(denied) => denied
                .violations()
                .map(|status| status.rule.to_string())
                .collect(),
        };
        assert_eq!(full, expected, "{wide}, {strict_quota}");
    }
}

/// Requests that wait while the budget is given back are admitted afterwards, and a dropped request withholds nothing.
#[tokio::test]
async fn a_dropped_request_withholds_nothing() {
    let store = Arc::new(MemoryStore::new());
    let limiter = limiter(&store, 20);
    limiter.check_n("key", 165).await.expect("room");
    for polls in 0..20 {
        let mut large = Box::pin(limiter.check_n("key", 30));
        let mut is_ready = false;
        for _ in 0..polls {
            is_ready |= core::future::poll_fn(|context| {
                core::task::Poll::Ready(large.as_mut().poll(context).is_ready())
            })
            .await;
            if is_ready {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(large);
        limiter.rules().flush().await.expect("an answer");
        limiter.reset("key").await.expect("an answer");
        limiter.check_n("key", 165).await.expect("room");
        // The budget is granted as before, and not withheld for ever.
        let admitted = limiter.check_n("key", 20).await.expect("room");
        assert_eq!(admitted.decided_by(), DecidedBy::Local, "{polls}");
        limiter.reset("key").await.expect("an answer");
        limiter.check_n("key", 165).await.expect("room");
    }
}

/// A reserve is in the way of no request either if its key has lost its budget, and finds no free lease to withhold.
#[tokio::test(start_paused = true)]
async fn a_reserve_without_a_budget_is_in_the_way_of_no_request() {
    for keys in [6, 12, 24] {
        let store = Arc::new(Pausing::slow(Duration::from_millis(2)));
        let limiter = SharedLimiter::builder("all", "200/h".parse().expect("a quota"))
            .sync(PERIOD, 20)
            .on_error(OnError::Deny)
            .leases(4)
            .build(store)
            .expect("a limiter");
        let limiter = Arc::new(limiter);
        for key in 0..keys {
            limiter.check_n(format!("{key}"), 165).await.expect("room");
        }
        let ask = |key| {
            let limiter = Arc::clone(&limiter);
            tokio::spawn(async move { limiter.check_n(format!("{key}"), 30).await.map(|_| ()) })
        };
        for asked in (0..keys).map(ask).collect::<Vec<_>>() {
            let answer = asked.await.expect("no panic");
            assert!(answer.is_ok(), "{keys} keys: {answer:?}");
        }
    }
}

/// Rules of the mode `Lease` whose requests are their costs.
fn leased(quota: &str, permits: u64, store: Arc<dyn CounterStore>, on_error: OnError) -> SharedRules<u64> {
    let rule = Rule::new("cost", quota.parse().expect("a quota"))
        .cost(&Cost::new("cost", |cost: &u64| *cost))
        .algorithm(RuleAlgorithm::Log)
        .mode(Mode::Lease { permits })
        .on_error(on_error);
    let builder = SharedRules::builder()
        .leases(4)
        .term_clock(Paused(Instant::now()));
    builder.rule(rule).build(store).expect("rules")
}

/// The last permits of a limit are those of the node's lease and those that the store has left, in any proportion.
#[tokio::test(start_paused = true)]
async fn a_request_takes_all_that_the_lease_and_the_store_have_left() {
    let mut held = 0;
    for time in [0, 5] {
        for singles in 1..100 {
            let store: Arc<dyn CounterStore> = match time {
                0 => memory(),
                time => Arc::new(Pausing::slow(Duration::from_millis(time))),
            };
            let rules = leased("100/60s", 50, store, OnError::Share);
            for _ in 0..singles {
                rules.check(&1).await.expect("room");
                sleep(Duration::from_millis(3)).await;
            }
            held += rules.lease_stats().held;
            let rest = rules.check(&(100 - singles)).await;
            assert!(rest.is_ok(), "{time} ms, after {singles}: {rest:?}, {rules:?}");
            let denied = rules.check(&1).await.expect_err("the limit is reached");
            assert!(denied.retry_after() > Some(Duration::from_secs(59)), "{denied:?}");
        }
    }
    assert!(held > 100, "leases hold permits");
}

/// The store has denied a request, and then refuses renewals. Its denial stands, whatever `OnError` says.
#[tokio::test(start_paused = true)]
async fn a_denial_of_the_store_stands_if_a_lease_cannot_be_given_back() {
    for on_error in [OnError::Admit, OnError::Local, OnError::Share, OnError::Deny] {
        let store = Arc::new(Pausing::default());
        let rules = leased("100/60s", 50, store.clone(), on_error);
        for _ in 0..40 {
            rules.check(&1).await.expect("room");
            sleep(Duration::from_millis(3)).await;
        }
        let held = rules.lease_stats().held;
        assert!(held > 10, "{held}");
        store.refuses.store(true, Relaxed);
        // The lease and the rest of the limit cover it, but the lease is not given back.
        let denied = rules.check(&50).await.expect_err("the lease is in the way");
        let violated = denied.violations().map(|quota| quota.rule.to_string());
        assert_eq!(violated.collect::<Vec<_>>(), ["cost"]);
        assert_eq!(
            (denied.decided_by(), denied.error().is_none()),
            (DecidedBy::Store, true),
            "{on_error:?}"
        );
    }
}

/// Two nodes compete for the permits of two rules with budgets. Each denial names a rule without room.
#[tokio::test(start_paused = true)]
async fn every_denial_names_a_rule_without_room() {
    for offset in 0..40 {
        let store = Arc::new(Pausing::slow(Duration::from_millis(5)));
        let node = || {
            let rule = |name: &'static str, cost: fn(&[u64; 2]) -> u64| {
                let rule = Rule::new(name, "60/h".parse().expect("a quota")).cost(&Cost::new(name, cost));
                rule.mode(Mode::Sync {
                    period: PERIOD,
                    pending: 5,
                })
            };
            SharedRules::builder()
                .rule(rule("one", |costs| costs[0]).on_error(OnError::Deny))
                .rule(rule("other", |costs| costs[1]).on_error(OnError::Deny))
                .build(store.clone())
                .expect("rules")
        };
        let (first, second) = (Arc::new(node()), Arc::new(node()));
        first.check(&[49, 40]).await.expect("room");
        let spawn = |rules: &Arc<SharedRules<[u64; 2]>>, after: u64, costs: [u64; 2]| {
            let rules = Arc::clone(rules);
            tokio::spawn(async move {
                sleep(Duration::from_millis(after)).await;
                rules.check(&costs).await.map(|_| ())
            })
        };
        let asked = [
            spawn(&first, 0, [8, 8]),
            spawn(&second, offset, [1, 7]),
            spawn(&first, offset / 2, [2, 3]),
        ];
        for asked in asked {
            if let Err(denied) = asked.await.expect("no panic") {
                assert!(denied.violations().next().is_some(), "{offset}: {denied:?}");
            }
        }
    }
}

/// Requests that obey their retry times get the limit in each window, although the lease of their node takes permits in between.
#[tokio::test(start_paused = true)]
async fn retry_times_lose_no_permits() {
    for (limit, permits, cost) in [
        (8, 8, 5),
        (100, 50, 40),
        (100, 30, 29),
        (1000, 300, 300),
        (1000, 100, 90),
    ] {
        let rules = leased(&format!("{limit}/1s"), permits, memory(), OnError::Share);
        let (began, mut admitted) = (Instant::now(), 0);
        while began.elapsed() < Duration::from_secs(31) {
            let wait = match rules.check(&cost).await {
                Ok(_) => Duration::from_millis(10),
                Err(denied) => denied.retry_after().expect("a time"),
            };
            admitted += u64::from(wait == Duration::from_millis(10));
            sleep(wait).await;
        }
        assert!(
            admitted >= 30 * (limit / cost),
            "{admitted} times {cost} of {limit}"
        );
    }
}

/// A report of the budget has failed, and is sent again a period later. A request that is denied because of the budget alone does not
/// wait for that.
#[tokio::test(start_paused = true)]
async fn no_request_waits_for_a_report_that_has_failed() {
    let store = Arc::new(Pausing::default());
    store.refuses.store(true, Relaxed);
    let limiter = SharedLimiter::builder("all", "200/h".parse().expect("a quota"))
        .sync(PERIOD, 20)
        .on_error(OnError::Deny)
        .build(store)
        .expect("a limiter");
    let denied = limiter.check("key").await.expect_err("no budget");
    assert!(denied.error().is_some());
    // More permits than a budget has are asked of the store, which leaves 20 permits free.
    assert!(limiter.check_n("key", 165).await.is_ok());
    let began = Instant::now();
    let denied = limiter
        .check_n("key", 30)
        .await
        .expect_err("the budget is in the way");
    assert!(denied.error().is_some());
    assert_eq!(Instant::now(), began);
}

/// A store that answers about the leases of counters with this limit only.
#[derive(Debug)]
struct OneLimit {
    store: MemoryStore,
    limit: u64,
}

impl CounterStore for OneLimit {
    forward!(store: peek charge refund reset);

    forward!(keeps leases);

    fn decide<'a>(&'a self, _: &'a [CounterRequest]) -> StoreFuture<'a, CheckResult> {
        Box::pin(async { Err(StoreError::new(StoreErrorKind::TimedOut, "no answer")) })
    }
}

impl LeaseStore for OneLimit {
    fn renew<'a>(&'a self, requests: &'a [LeaseRequest]) -> LeaseFuture<'a> {
        Box::pin(async move {
            let mut answers = self.store.renew(requests).await;
            for (request, answer) in requests.iter().zip(&mut answers) {
                if request.counter.limit() != self.limit {
                    *answer = Err(StoreError::new(StoreErrorKind::TimedOut, "no answer"));
                }
            }
            answers
        })
    }
}

/// A budget covers one quota of a rule, and the store does not answer about the other. The state of this node is charged once for each
/// request that it decides about.
#[tokio::test(start_paused = true)]
async fn a_fallback_is_charged_once_where_a_budget_covers_one_quota() {
    let store = Arc::new(OneLimit {
        store: MemoryStore::new(),
        limit: 20,
    });
    let quota = |text: &str| text.parse().expect("a quota");
    let rule = Rule::new("two", quota("20/h")).also(quota("1000/24h"));
    let mode = Mode::Sync {
        period: PERIOD,
        pending: 5,
    };
    let rules = SharedRules::<()>::builder()
        .rule(rule.mode(mode).on_error(OnError::Local))
        .build(store)
        .expect("rules");
    let mut admitted = 0;
    while let Ok(passed) = rules.check(&()).await {
        assert_eq!(passed.decided_by(), DecidedBy::Fallback);
        admitted += 1;
    }
    assert_eq!(admitted, 20);
}
