//! Futures that are dropped at every await lose no permit, leave the limiter in a valid state, and delay no later
//! call.

use alloc::sync::Arc;
use core::cell::Cell;

use crate::cut::{CALLS, Cut, LIMIT, MODES, PATIENCE, drop_one, limiter, warm};
use crate::pausing::Pausing;

#[tokio::test]
async fn every_call_may_be_dropped_at_every_await() {
    for mode in MODES {
        for call in CALLS {
            for when_woken in [false, true] {
                for polls in 0.. {
                    let limiter = limiter(Arc::new(Pausing::default()), mode);
                    let cut = Cut { polls, when_woken };
                    let (ready, least, most) = drop_one(&limiter, mode, call, cut).await;
                    let left = limiter.peek("key").await.expect("an answer")[0].remaining;
                    let charged = LIMIT - left;
                    assert!(
                        (least..=most).contains(&charged),
                        "{mode:?} {call:?} {cut:?}: {charged} charged, {least} to {most} admitted"
                    );
                    if ready {
                        assert!(polls < 100, "{call:?} has {polls} await points");
                        break;
                    }
                }
            }
        }
    }
}

/// A flush that is dropped after its first poll completes in the background.
#[tokio::test]
async fn a_dropped_flush_is_completed() {
    for mode in [MODES[1], MODES[2], MODES[3]] {
        let limiter = limiter(Arc::new(Pausing::default()), mode);
        warm(&limiter, mode).await;
        let dropped = Cut {
            polls: 1,
            when_woken: false,
        }
        .off(limiter.rules().flush())
        .await;
        assert!(dropped.is_none());
        let carried_out = async {
            while (
                limiter.rules().lease_stats().uncharged,
                limiter.rules().lease_stats().held,
            ) != (0, 0)
            {
                tokio::task::yield_now().await;
            }
        };
        let carried_out = tokio::time::timeout(PATIENCE, carried_out).await;
        carried_out.expect("it is carried out");
        warm(&limiter, mode).await;
    }
}

/// A loop of resets or flushes does not starve requests of the same key. A request gets its answer within a bounded number of them.
/// The clock of the runtime stands still while a task is ready, so no time limit ends a wait on a busy machine.
#[tokio::test(start_paused = true)]
async fn resets_and_flushes_do_not_starve_requests() {
    const MOST: u32 = 1000;
    for mode in MODES {
        for flushes in [false, true] {
            let limiter = limiter(Arc::new(Pausing::default()), mode);
            let during_check = Cell::new(0);
            let checks = async {
                for _ in 0..200 {
                    during_check.set(0);
                    if let Err(denied) = limiter.check("key").await {
                        panic!("{mode:?}, flushes: {flushes}: {denied}, {:?}", denied.error());
                    }
                    tokio::task::yield_now().await;
                }
            };
            let ends = async {
                loop {
                    let ended = match flushes {
                        true => limiter.rules().flush().await,
                        false => limiter.reset("key").await,
                    };
                    ended.expect("the store answers");
                    during_check.set(during_check.get() + 1);
                    assert!(during_check.get() < MOST, "{mode:?}, flushes: {flushes}: starved");
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

/// After a reset the key has capacity at once, although the store has reported that the limit was reached.
#[tokio::test]
async fn a_reset_opens_a_full_lease() {
    for mode in MODES {
        let limiter = limiter(Arc::new(Pausing::default()), mode);
        let mut admitted = 0;
        while limiter.check("key").await.is_ok() {
            admitted += 1;
        }
        assert_eq!(admitted, LIMIT, "{mode:?}");
        limiter.reset("key").await.expect("the store answers");
        limiter
            .check("key")
            .await
            .unwrap_or_else(|denied| panic!("{mode:?}: {denied}"));
    }
}
