//! Callers that continue whatever happens, and the results of their calls.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::time::Instant;

use ringgate::shared::{DecidedBy, SharedLimiter, StoreErrorKind};

use crate::oracle::{most_calls_in_a_window, most_in_a_window};

/// One call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) began: Instant,
    pub(crate) ended: Instant,
    pub(crate) admitted: bool,
    pub(crate) by: DecidedBy,
    /// Whether it was decided without a wait.
    pub(crate) at_once: bool,
    /// The time of the decision by the server's clock, if the server decided.
    pub(crate) at: Option<u64>,
    pub(crate) error: Option<StoreErrorKind>,
}

pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    /// The permits that leases have admitted.
    here: Arc<AtomicU64>,
    tasks: Vec<tokio::task::JoinHandle<Vec<Call>>>,
}

/// The time after which a call counts as hanging.
const HANGS: Duration = Duration::from_secs(10);

impl Load {
    /// Starts this number of callers, all with one key.
    pub(crate) fn new(callers: usize, limiter: &Arc<SharedLimiter>) -> Self {
        let (stop, here) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let task = || {
            let (stop, here, limiter) = (Arc::clone(&stop), Arc::clone(&here), Arc::clone(limiter));
            tokio::spawn(async move {
                let mut calls = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let call = call(&limiter).await;
                    calls.push(call);
                    let by_lease = call.admitted && call.by == DecidedBy::Local;
                    here.fetch_add(u64::from(by_lease), Ordering::Relaxed);
                    if !call.admitted {
                        // Denials and errors come at once, and more of them would test nothing new.
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
                calls
            })
        };
        let tasks = (0..callers).map(|_| task()).collect();
        Self { stop, here, tasks }
    }

    /// The number of calls that leases have admitted so far.
    pub(crate) fn here(&self) -> u64 {
        self.here.load(Ordering::Relaxed)
    }

    /// The results of all calls.
    pub(crate) async fn end(self) -> Vec<Call> {
        self.stop.store(true, Ordering::Relaxed);
        let mut calls = Vec::new();
        for task in self.tasks {
            calls.extend(task.await.expect("no panic"));
        }
        calls
    }
}

/// The calls of several loads.
pub(crate) async fn end_all(loads: Vec<Load>) -> Vec<Call> {
    let mut calls = Vec::new();
    for load in loads {
        calls.extend(load.end().await);
    }
    calls
}

/// One call, which ends.
pub(crate) async fn call(limiter: &SharedLimiter) -> Call {
    let began = Instant::now();
    let now = limiter.check_now("key");
    let at_once = now.is_some();
    let answer = match now {
        Some(answer) => answer,
        None => tokio::time::timeout(HANGS, limiter.check("key"))
            .await
            .expect("no call hangs"),
    };
    let ended = Instant::now();
    let (admitted, decided_by, at, error) = match &answer {
        Ok(passed) => (true, passed.decided_by(), passed.store_time(), passed.error()),
        Err(refused) => (false, refused.decided_by(), refused.store_time(), refused.error()),
    };
    assert_eq!(at.is_some(), decided_by == DecidedBy::Store);
    assert_eq!(error.is_some(), decided_by == DecidedBy::Fallback);
    Call {
        began,
        ended,
        admitted,
        by: decided_by,
        at_once,
        at,
        error: error.map(ringgate::shared::StoreError::kind),
    }
}

/// The most that the server has admitted in a window of its own time.
pub(crate) fn most_by_stamps(calls: &[Call], window: Duration) -> u64 {
    let admitted = calls.iter().filter(|call| call.admitted);
    let mut stamps: Vec<_> = admitted.filter_map(|call| Some((call.at?, 1))).collect();
    most_in_a_window(&mut stamps, u64::try_from(window.as_micros()).expect("a window"))
}

/// The most admitted calls that lie within a window.
pub(crate) fn most_by_calls(calls: &[Call], window: Duration) -> usize {
    let admitted = calls.iter().filter(|call| call.admitted);
    let calls: Vec<_> = admitted.map(|call| (call.began, call.ended)).collect();
    most_calls_in_a_window(&calls, window)
}
