//! A store in memory, for tests and for single machines.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use self::counter::Counter;
use super::store::{
    CheckResult, CounterRequest, CounterStatus, CounterStore, Counting, LeaseFuture, LeaseGrant,
    LeaseRequest, LeaseStore, StoreFuture,
};
use crate::clock::{Clock, QuantaClock};

mod bucket;
mod cells;
mod counter;
mod leases;
mod slots;
mod violations;

/// A [`CounterStore`] in the memory of this process.
///
/// It keeps every promise of a store, in one process: several [`SharedRules`](super::SharedRules) over it are several
/// nodes. Use it in tests, and where one machine is enough today and several may come.
///
/// # Cost
///
/// Every call takes one lock. A counter takes about 200 bytes. Each permit time of a log adds 16 bytes, and each lease
/// whose term is not over adds about 150. Calls remove, from time to time, the counters whose permits have left every
/// window.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use std::sync::Arc;
///
/// use ringgate::ManualClock;
/// use ringgate::shared::{MemoryStore, SharedLimiter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let clock = Arc::new(ManualClock::new());
/// let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock)));
/// let logins = SharedLimiter::builder("login", "1/60s".parse()?).log().build(store)?;
/// assert!(logins.check("alice").await.is_ok());
/// assert!(logins.check("alice").await.is_err());
/// clock.advance(Duration::from_secs(60));
/// assert!(logins.check("alice").await.is_ok());
/// # Ok(())
/// # }
/// ```
pub struct MemoryStore {
    clock: Arc<dyn Clock + Send + Sync>,
    /// Held for a call, and never across an await.
    counters: Mutex<Counters>,
}

/// The name of a counter. Another counting, window, rule or period is another counter.
type Name = (u128, String, Option<u64>, usize, Counting, Duration);

/// The counters of the store, by their names.
#[derive(Debug, Default)]
struct Counters {
    by_name: HashMap<Name, Counter>,
    /// How many counters there may be before expired ones are removed.
    sweep_at: usize,
    /// The number of counters that were made.
    made: u64,
}

impl MemoryStore {
    /// Makes an empty store, which reads the default clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(QuantaClock::new())
    }

    /// Makes an empty store, which reads this clock.
    #[must_use]
    pub fn with_clock(clock: impl Clock + Send + Sync + 'static) -> Self {
        Self {
            clock: Arc::new(clock),
            counters: Mutex::default(),
        }
    }

    /// Acts at one instant: no other call comes in between.
    fn at_once<T>(&self, act: impl FnOnce(&mut Counters, u64) -> T) -> T {
        // No operation under the lock panics half way, so a poisoned lock protects whole values.
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock, so that readings are in the order of the calls.
        let now = self.clock.now().get();
        act(&mut counters, now)
    }

    fn decide_at_once(&self, requests: &[CounterRequest], charges: bool) -> CheckResult {
        self.at_once(|counters, now| {
            let mut statuses: Vec<CounterStatus> = requests
                .iter()
                .map(|request| counters.of(request, now).status(request, now))
                .collect();
            let denies = |(request, status): (&CounterRequest, &CounterStatus)| {
                let needed = request.permits().saturating_add(request.reserve());
                request.is_enforced() && (!status.has_room || needed > status.remaining)
            };
            let admitted = !requests.iter().zip(&statuses).any(denies);
            for (at, request) in requests.iter().enumerate() {
                // A rule in shadow mode is charged if all of its counters have room.
                let shadow_full = !request.is_enforced()
                    && requests.iter().zip(&statuses).any(|(other, status)| {
                        !other.is_enforced() && other.rule() == request.rule() && !status.has_room
                    });
                if statuses[at].has_room && shadow_full {
                    statuses[at] = statuses[at].not_charged();
                }
            }
            if admitted && charges {
                for (request, status) in requests.iter().zip(&mut statuses) {
                    let is_counted = request.counting() != Counting::Violations;
                    if status.is_charged && is_counted {
                        let receipt = counters.of(request, now).charge(request, now);
                        let left = status.remaining - request.permits();
                        *status = CounterStatus::with_room(left).with_receipt(receipt.0, receipt.1);
                    }
                }
            }
            if charges {
                counters.count_violations(requests, &mut statuses, now);
            }
            let at = now / 1000;
            match admitted {
                true => CheckResult::admitted(at, statuses),
                false => CheckResult::denied(at, statuses),
            }
        })
    }
}

impl Counters {
    /// The counter that a request names, after permits that no longer count are removed.
    fn of(&mut self, request: &CounterRequest, now: u64) -> &mut Counter {
        if self.by_name.len() >= self.sweep_at {
            self.by_name.retain(|_, counter| !counter.is_expired(now));
            self.sweep_at = 2 * self.by_name.len() + 64;
        }
        let made = &mut self.made;
        let counter = self.by_name.entry(name(request)).or_insert_with(|| {
            *made += 1;
            Counter::new(request, *made)
        });
        counter.advance(now);
        counter
    }

    /// Counts a denied request as a violation of each rule that has denied it, or as a retry of a blocked key.
    fn count_violations(&mut self, requests: &[CounterRequest], statuses: &mut [CounterStatus], now: u64) {
        for (at, request) in requests.iter().enumerate() {
            let is_counted = request.counting() == Counting::Violations && request.permits() > 0;
            let has_denied = requests.iter().zip(&*statuses).any(|(other, status)| {
                other.is_enforced() && other.rule() == request.rule() && !status.has_room
            });
            if is_counted && has_denied {
                statuses[at] = self.of(request, now).violate(request, now);
            }
        }
    }
}

fn name(request: &CounterRequest) -> Name {
    let (counting, window) = match request.counting() {
        // A block keeps its counter when the window of its violations is changed, and nodes with different terms share their slots.
        counting @ (Counting::Violations | Counting::Slots) => (counting, Duration::ZERO),
        // A bucket keeps its counter when its burst is changed, as the other counters do when their limit is changed.
        Counting::Gcra(_) => (Counting::Gcra(0), request.window()),
        counting @ (Counting::Log | Counting::Cells(_)) => (counting, request.window()),
    };
    (
        request.key_hash(),
        String::from(request.rule()),
        request.period(),
        request.quota_index(),
        counting,
        window,
    )
}

impl CounterStore for MemoryStore {
    fn decide<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, CheckResult> {
        Box::pin(async move { Ok(self.decide_at_once(requests, true)) })
    }

    fn peek<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, CheckResult> {
        Box::pin(async move { Ok(self.decide_at_once(requests, false)) })
    }

    fn charge<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            self.at_once(|counters, now| {
                for request in requests {
                    counters.of(request, now).charge(request, now);
                }
            });
            Ok(())
        })
    }

    fn refund<'a>(
        &'a self,
        requests: &'a [CounterRequest],
        charged: &'a CheckResult,
    ) -> StoreFuture<'a, u64> {
        Box::pin(async move {
            if !charged.is_admitted {
                return Ok(0);
            }
            Ok(self.at_once(|counters, now| {
                let charged = requests.iter().zip(&charged.statuses);
                let charged = charged.filter(|(_, status)| status.is_charged);
                let lost = charged.map(|(request, status)| {
                    let refunded = counters.of(request, now).refund(request, status.receipt);
                    request.permits() - refunded
                });
                lost.sum()
            }))
        })
    }

    fn reset<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            self.at_once(|counters, now| {
                for request in requests {
                    counters.of(request, now).reset();
                }
            });
            Ok(())
        })
    }

    fn keeps_slots(&self) -> bool {
        true
    }

    fn keeps_blocks(&self) -> bool {
        true
    }

    fn leases(&self) -> Option<&dyn LeaseStore> {
        Some(self)
    }
}

impl LeaseStore for MemoryStore {
    fn renew<'a>(&'a self, requests: &'a [LeaseRequest]) -> LeaseFuture<'a> {
        Box::pin(async move {
            self.at_once(|counters, now| {
                let grants = requests.iter().map(|request| -> Result<LeaseGrant, _> {
                    Ok(counters.of(&request.counter, now).renew(request, now))
                });
                grants.collect()
            })
        })
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("MemoryStore")
            .field("counters", &counters.by_name.len())
            .finish_non_exhaustive()
    }
}
