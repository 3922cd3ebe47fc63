//! Futures that are dropped at every await point: nothing is lost, no limiter is left in a state of its own, and no
//! later call waits for them.

use alloc::sync::Arc;
use core::future::poll_fn;
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

use ringgate::redis::{DecidedBy, Mode, OnError, RedisStore, SharedLimiter, Store};

use crate::memory::Memory;
use crate::server::{PATIENCE, Server};

const LIMIT: u64 = 1000;
const PERIOD: Duration = Duration::from_millis(20);

/// Where a future is dropped: after so many polls, at once or when it is woken again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) polls: usize,
    pub(crate) when_woken: bool,
}

impl Cut {
    /// Polls the future and drops it there. `Some`: it was ready before.
    pub(crate) async fn off<F: Future>(self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut polls = 0;
        poll_fn(|context| {
            if polls == self.polls {
                return Poll::Ready(None);
            }
            polls += 1;
            match future.as_mut().poll(context) {
                Poll::Ready(output) => Poll::Ready(Some(output)),
                Poll::Pending if polls == self.polls && !self.when_woken => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }
}

/// The calls that are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Check,
    CheckMany,
    Flush,
    Peek,
    Refund,
    Reset,
}

const CALLS: [Call; 6] = [
    Call::Check,
    Call::CheckMany,
    Call::Flush,
    Call::Peek,
    Call::Refund,
    Call::Reset,
];

const MODES: [Mode; 4] = [
    Mode::Strict,
    Mode::Lease { permits: 100 },
    Mode::Sync {
        period: Duration::from_secs(10),
        pending: 100,
    },
    // No request is ever the store's, so only a budget can admit it.
    Mode::Sync {
        period: Duration::from_secs(10),
        pending: LIMIT,
    },
];

fn limiter(store: Arc<dyn Store>, mode: Mode) -> SharedLimiter {
    SharedLimiter::builder("dropped", "1000/h".parse().expect("a quota"))
        .mode(mode)
        .term(Duration::from_secs(40))
        .period(PERIOD)
        .on_error(OnError::Deny)
        .build(store)
        .expect("a limiter")
}

/// Asks until an account decides, and returns how many requests were admitted: each must be.
async fn warm(limiter: &SharedLimiter, mode: Mode) -> u64 {
    let wanted = match mode {
        Mode::Lease { .. } | Mode::Sync { .. } => DecidedBy::Account,
        _ => DecidedBy::Store,
    };
    for asked in 1..=200 {
        let checked = tokio::time::timeout(PATIENCE, limiter.check("key")).await;
        let passed = checked.expect("no call hangs").unwrap_or_else(|refused| {
            panic!("{mode:?}: {refused}, {:?}", limiter.standing());
        });
        if passed.decided_by() == wanted {
            return asked;
        }
        // Several requests in a period are worth a hold.
        if asked % 20 == 0 {
            tokio::time::sleep(PERIOD).await;
        }
    }
    panic!("{mode:?}: {wanted:?} never decides: {:?}", limiter.standing());
}

/// Drops one call, and says whether it was ready before that.
async fn drop_one(limiter: &SharedLimiter, mode: Mode, call: Call, cut: Cut) -> (bool, u64, u64) {
    let mut admitted = warm(limiter, mode).await;
    for _ in 0..10 {
        admitted += u64::from(limiter.check("key").await.is_ok());
    }
    // What may be charged beside what was admitted, and what need not be any more.
    let (mut beyond, mut less) = (0, 0);
    let ready = match call {
        Call::Check | Call::CheckMany => {
            let permits = if call == Call::Check { 1 } else { 150 };
            let passed = cut.off(limiter.check_n("key", permits)).await;
            match &passed {
                Some(Ok(_)) => admitted += permits,
                Some(Err(refused)) => panic!("{refused}"),
                None => beyond = permits,
            }
            passed.is_some()
        }
        Call::Flush => cut.off(limiter.flush()).await.is_some(),
        Call::Peek => cut.off(limiter.peek("key")).await.is_some(),
        Call::Refund => {
            let passed = limiter.check_n("key", 5).await.expect("room");
            admitted += 5;
            less = 5;
            cut.off(limiter.refund(passed)).await.is_some()
        }
        Call::Reset => {
            less = admitted;
            cut.off(limiter.reset("key")).await.is_some()
        }
    };
    admitted += warm(limiter, mode).await;
    let flushed = tokio::time::timeout(PATIENCE, limiter.flush()).await;
    flushed.expect("no flush hangs").expect("the store answers");
    let standing = limiter.standing();
    assert_eq!(
        (standing.uncharged, standing.held),
        (0, 0),
        "{mode:?} {call:?} {cut:?}"
    );
    // And all of it once more.
    admitted += warm(limiter, mode).await;
    let flushed = tokio::time::timeout(PATIENCE, limiter.flush()).await;
    flushed.expect("no flush hangs").expect("the store answers");
    (ready, admitted - less, admitted + beyond)
}

#[tokio::test]
async fn every_call_may_be_dropped_at_every_await() {
    for mode in MODES {
        for call in CALLS {
            for when_woken in [false, true] {
                for polls in 0.. {
                    let store = Arc::new(Memory::default());
                    let limiter = limiter(store.clone(), mode);
                    let cut = Cut { polls, when_woken };
                    let (ready, least, most) = drop_one(&limiter, mode, call, cut).await;
                    let charged = store.charged();
                    assert!(
                        (least..=most).contains(&charged),
                        "{mode:?} {call:?} {cut:?}: {charged} charged, {least} to {most} admitted"
                    );
                    assert_eq!(store.held(), 0, "{mode:?} {call:?} {cut:?}");
                    if ready {
                        assert!(polls < 100, "{call:?} has {polls} await points");
                        break;
                    }
                }
            }
        }
    }
}

/// The same calls over a real server, and what a store of Redis has beside.
#[tokio::test]
async fn every_call_to_a_server_may_be_dropped_at_every_await() {
    let Some(server) = Server::start() else { return };
    let mut client = server.client();
    let info: String = redis::cmd("INFO")
        .arg("server")
        .query(&mut client)
        .expect("an answer");
    let run = info
        .lines()
        .find_map(|line| line.strip_prefix("run_id:"))
        .expect("a run");
    let mut number = 0;
    for mode in MODES {
        for call in CALLS {
            for when_woken in [false, true] {
                for polls in 0.. {
                    number += 1;
                    let prefix = format!("dropped{number}");
                    // As if the server had run for longer than a window, so that it grants holds.
                    let old: String = redis::cmd("SET")
                        .arg(format!("{prefix}:era"))
                        .arg(format!("{run} 1"))
                        .query(&mut client)
                        .expect("an answer");
                    assert_eq!(old, "OK");
                    let store = crate::server::patient(RedisStore::builder(&server.url()));
                    let store = store.prefix(prefix).build().expect("a store");
                    let cut = Cut { polls, when_woken };
                    // Dropping the wait for a connection ends no connection.
                    let _ = cut.off(store.ready(PATIENCE)).await;
                    store.ready(PATIENCE).await.expect("a connection");
                    let store = Arc::new(store);
                    let limiter = limiter(store.clone(), mode);
                    let (ready, least, most) = drop_one(&limiter, mode, call, cut).await;
                    let left = limiter.peek("key").await.expect("an answer")[0].remaining();
                    let charged = LIMIT - left;
                    assert!(
                        (least..=most).contains(&charged),
                        "{mode:?} {call:?} {cut:?}: {charged} charged, {least} to {most} admitted"
                    );
                    assert_eq!(store.health().in_flight, 0);
                    if ready {
                        assert!(polls < 100, "{call:?} has {polls} await points");
                        break;
                    }
                }
            }
        }
    }
}

/// A caller that gives up at once, again and again, is a caller like any other.
#[tokio::test]
async fn a_flush_that_is_given_up_is_carried_out() {
    for mode in [MODES[1], MODES[2], MODES[3]] {
        let store = Arc::new(Memory::default());
        let limiter = limiter(store.clone(), mode);
        warm(&limiter, mode).await;
        let given_up = Cut {
            polls: 1,
            when_woken: false,
        }
        .off(limiter.flush())
        .await;
        assert!(given_up.is_none());
        crate::server::until("it is carried out", || {
            let standing = limiter.standing();
            (standing.uncharged, standing.held, store.held()) == (0, 0, 0)
        })
        .await;
        warm(&limiter, mode).await;
    }
}

/// A loop of resets, or of flushes, starves no request of the same key.
#[tokio::test]
async fn resets_and_flushes_do_not_starve_requests() {
    for mode in MODES {
        for flushes in [false, true] {
            let limiter = limiter(Arc::new(Memory::default()), mode);
            let checks = async {
                for _ in 0..200 {
                    let checked = tokio::time::timeout(PATIENCE, limiter.check("key")).await;
                    if let Err(refused) = checked.expect("no call hangs") {
                        panic!("{mode:?}, flushes: {flushes}: {refused}, {:?}", refused.error());
                    }
                    tokio::task::yield_now().await;
                }
            };
            let ends = async {
                loop {
                    let ended = match flushes {
                        true => limiter.flush().await,
                        false => limiter.reset("key").await,
                    };
                    ended.expect("the store answers");
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                () = checks => {}
                () = ends => {}
            }
        }
    }
}

/// A reset makes room at once: what an account was told before does not outlast it.
#[tokio::test]
async fn a_reset_opens_a_full_account() {
    for mode in MODES {
        let limiter = limiter(Arc::new(Memory::default()), mode);
        let mut admitted = 0;
        while limiter.check("key").await.is_ok() {
            admitted += 1;
        }
        assert_eq!(admitted, LIMIT, "{mode:?}");
        limiter.reset("key").await.expect("the store answers");
        limiter
            .check("key")
            .await
            .unwrap_or_else(|refused| panic!("{mode:?}: {refused}"));
    }
}
