//! Rules whose counts many machines share.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::time::Duration;

use super::{Decide, DecisionFuture, Grant, Outcome, Settings};
use crate::http::answer::{QuotaHeaders, Rejection, policy};
use crate::rules::{Cost, MissingCause};
use crate::shared::CheckPlan;
use crate::shared::{Admitted, Charges, Decision, Denied, Reason, SharedRules};
use crate::wait::DEFAULT_MAX_WAITING;
use ::http::request::Parts;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

/// The charge of an admitted request, and the values that are needed to settle it.
pub(in crate::http) struct SharedCharge {
    admitted: Admitted<Charges<Parts>>,
    plan: CheckPlan,
    /// The runtime that calls the store. `None` if the request was decided outside of a runtime. Then the charges of
    /// the store stay.
    runtime: Option<Handle>,
}

/// A request that this node could not admit at once.
pub(in crate::http) enum Undecided {
    /// The store decides.
    AskStore(Box<CheckPlan>),
    /// The request waits until it may be admitted.
    Denied(Denied<'static>),
}

/// The shortest wait between two decisions about a request.
const LEAST_WAIT: Duration = Duration::from_millis(1);

impl Decide for SharedRules<Parts> {
    /// The charge is boxed, so that a grant without a charge is small.
    type Charge = Box<SharedCharge>;
    type Undecided = Undecided;
    type Decided = Decision<Parts>;
    /// A permit for each request that waits.
    type Queue = Arc<Semaphore>;

    #[inline]
    fn decide<T>(
        self: &Arc<Self>,
        settings: &Settings<Self>,
        head: &Parts,
        reject: impl FnOnce(Rejection<'_>) -> T,
    ) -> Outcome<Self, T> {
        match self.decide_or_plan(head, 1) {
            Ok(Ok(admitted)) => Outcome::Admitted(grant(self, settings, head, admitted)),
            Ok(Err(denied)) if settings.max_wait.is_some() => Outcome::Undecided(Undecided::Denied(denied)),
            Ok(Err(denied)) => Outcome::Rejected(reject_denied(self, &denied, head, reject)),
            Err(plan) => Outcome::Undecided(Undecided::AskStore(plan)),
        }
    }

    fn resume(
        self: &Arc<Self>,
        undecided: Undecided,
        settings: &Settings<Self>,
        head: Arc<Parts>,
    ) -> DecisionFuture<Self> {
        let rules = Arc::clone(self);
        if let Some(max_wait) = settings.max_wait {
            let (same, queue) = (Arc::clone(self), Arc::clone(&settings.queue));
            return Box::pin(async move {
                let in_force = || Arc::clone(&same);
                let waited = wait_until_decided(rules, undecided, queue, max_wait, head, in_force);
                waited.await.1
            });
        }
        Box::pin(async move { decide_in_store(&rules, undecided).await })
    }

    fn finish<T>(
        self: &Arc<Self>,
        decided: Decision<Parts>,
        settings: &Settings<Self>,
        head: &Parts,
        reject: impl FnOnce(Rejection<'_>) -> T,
    ) -> Result<Grant<Self>, T> {
        match decided {
            Ok(admitted) => Ok(grant(self, settings, head, admitted)),
            Err(denied) => Err(reject_denied(self, &denied, head, reject)),
        }
    }

    fn missing_cause(&self, head: &Parts) -> Option<MissingCause> {
        Self::missing_cause(self, head)
    }

    fn take_slots(charge: &mut Box<SharedCharge>) -> Option<Box<SharedCharge>> {
        charge.admitted.holds_slots().then(|| {
            Box::new(SharedCharge {
                admitted: charge.admitted.take_slots(),
                // Slots are not settled.
                plan: core::iter::empty().collect(),
                runtime: charge.runtime.clone(),
            })
        })
    }

    fn refund(self: &Arc<Self>, _: &Arc<Semaphore>, charge: Box<SharedCharge>) {
        let SharedCharge {
            admitted, runtime, ..
        } = *charge;
        let rules = Arc::clone(self);
        // The other charges are refunded by the store. If it does not answer, the permits stay charged, which is stricter.
        if let (Some(rest), Some(runtime)) = (rules.refund_on_node(admitted), &runtime) {
            runtime.spawn(async move { SharedRules::refund(&rules, rest).await });
        }
    }

    fn settle(
        self: &Arc<Self>,
        _: &Arc<Semaphore>,
        charge: Box<SharedCharge>,
        cost: &Cost<Parts>,
        actual: u64,
    ) {
        let SharedCharge {
            admitted,
            plan,
            runtime,
        } = *charge;
        let (rules, cost) = (Arc::clone(self), cost.clone());
        if let Some(runtime) = runtime {
            runtime.spawn(async move { rules.settle_planned(admitted, &plan, &cost, actual).await });
        }
    }
    /// Wakes no request, because one that waits is decided again after its retry time.
    fn release(_: &Arc<Semaphore>, slots: Box<SharedCharge>) {
        drop(slots);
    }

    fn queue(self: &Arc<Self>, max_waiting: Option<usize>) -> Arc<Semaphore> {
        let max_waiting = max_waiting.unwrap_or(DEFAULT_MAX_WAITING);
        Arc::new(Semaphore::new(max_waiting.min(Semaphore::MAX_PERMITS)))
    }
}

/// Decides a request that does not wait.
pub(super) async fn decide_in_store(rules: &SharedRules<Parts>, undecided: Undecided) -> Decision<Parts> {
    match undecided {
        Undecided::AskStore(plan) => SharedRules::decide(rules, *plan).await,
        Undecided::Denied(denied) => Err(denied),
    }
}

/// Decides a request that waits until it is admitted, by the rules that it was planned for at first, and after each wait by those
/// that are then in force. Returns the rules that have decided.
pub(super) async fn wait_until_decided(
    mut rules: Arc<SharedRules<Parts>>,
    undecided: Undecided,
    queue: Arc<Semaphore>,
    max_wait: Duration,
    head: Arc<Parts>,
    in_force: impl Fn() -> Arc<SharedRules<Parts>>,
) -> (Arc<SharedRules<Parts>>, Decision<Parts>) {
    let deadline = Instant::now() + max_wait;
    let mut decided = match undecided {
        Undecided::AskStore(mut plan) => {
            // A request that waits is not denied yet, so it violates no rule.
            plan.violates = false;
            SharedRules::decide(&rules, *plan).await
        }
        Undecided::Denied(denied) => Err(denied),
    };
    let mut place = None;
    loop {
        let denied = match decided {
            Ok(admitted) => return (rules, Ok(admitted)),
            Err(denied) => denied,
        };
        let Some(after) = denied.retry_after().map(|after| after.max(LEAST_WAIT)) else {
            return (rules, Err(denied));
        };
        if place.is_none() {
            place = Arc::clone(&queue).try_acquire_owned().ok();
        }
        if place.is_none() || Instant::now() + after > deadline {
            return (rules, Err(denied));
        }
        sleep(after).await;
        rules = in_force();
        decided = rules.check_waiting(&head).await;
    }
}

#[inline]
fn grant(
    rules: &SharedRules<Parts>,
    settings: &Settings<SharedRules<Parts>>,
    head: &Parts,
    admitted: Admitted<Charges<Parts>>,
) -> Grant<SharedRules<Parts>> {
    Grant {
        at: rules.now(),
        limited: admitted.is_limited(),
        headers: match settings.headers {
            QuotaHeaders::Off => None,
            QuotaHeaders::Standard | QuotaHeaders::Legacy | QuotaHeaders::Both => {
                let statuses = rules.statuses_after(head, admitted.known_statuses(), admitted.decided_by());
                Some(settings.headers.of_admission(&policy::of_statuses(&statuses)))
            }
        },
        charge: (settings.reserves || admitted.holds_slots()).then(|| {
            Box::new(SharedCharge {
                admitted,
                plan: rules.hashed_plan(head),
                runtime: Handle::try_current().ok(),
            })
        }),
    }
}

#[cold]
fn reject_denied<T>(
    rules: &SharedRules<Parts>,
    denied: &Denied<'static>,
    head: &Parts,
    reject: impl FnOnce(Rejection<'_>) -> T,
) -> T {
    let statuses = rules.statuses_after(head, denied.known_statuses(), denied.decided_by());
    let policies = policy::of_denial(&statuses, denied);
    let rejection = Rejection::new(head, policies, denied.retry_after(), denied.at());
    reject(rejection.with_unavailable(denied.reason() == Reason::Unavailable))
}
