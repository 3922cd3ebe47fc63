//! Rules whose counts many machines share.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::time::Duration;

use ::http::request::Parts;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use super::decision::{Admission, Options, Outcome, Refusal, Undecided};
use super::shared_queue::SharedQueue;
use crate::http::admission::{Charge, Slots};
use crate::http::answer::{QuotaHeaders, Rejection, policy};
use crate::rules::Cost;
use crate::shared::{Admitted, Charges, CheckPlan, Denied, Reason, SharedRules};

/// The shortest wait between two decisions about a request.
const LEAST_WAIT: Duration = Duration::from_millis(1);

#[inline]
pub(super) fn decide<C, T>(
    queue: &SharedQueue,
    options: Options,
    head: &Parts,
    reject: impl FnOnce(Rejection<'_>) -> T,
) -> Outcome<C, T> {
    queue.with_rules(|rules| {
        let denied = match rules.decide_or_plan(head, 1) {
            Ok(Ok(admitted)) => return Outcome::Admitted(admit(rules, options, head, admitted)),
            Ok(Err(denied)) if options.max_wait.is_none() => {
                return Outcome::Rejected(self::reject(rules, &denied, head, reject));
            }
            Ok(Err(denied)) => Ok(Box::new(denied)),
            Err(plan) => Err(plan),
        };
        Outcome::Undecided(Undecided::Shared(queue.clone(), Arc::clone(rules), denied))
    })
}

/// Decides a request by the rules that it was planned by. A request that may wait is decided again after each retry time, by the
/// rules that are then in force.
pub(super) async fn wait<C>(
    queue: SharedQueue,
    mut rules: Arc<SharedRules<Parts>>,
    denied: Result<Box<Denied<'static>>, Box<CheckPlan>>,
    options: Options,
    head: Parts,
) -> (Parts, Result<Admission, Refusal<C>>) {
    let deadline = options.max_wait.map(|max_wait| Instant::now() + max_wait);
    let mut decided = match denied {
        Ok(denied) => Err(*denied),
        Err(mut plan) => {
            // A request that waits is not denied yet, so it violates no rule.
            plan.violates &= deadline.is_none();
            rules.decide(*plan).await
        }
    };
    let mut place = None;
    loop {
        let denied = match decided {
            Ok(admitted) => {
                let admission = admit(&rules, options, &head, admitted);
                return (head, Ok(admission));
            }
            Err(denied) => denied,
        };
        let after = denied.retry_after().map(|after| after.max(LEAST_WAIT));
        let after =
            after.filter(|after| deadline.is_some_and(|deadline| Instant::now() + *after <= deadline));
        if place.is_none() && after.is_some() {
            place = Arc::clone(&queue.places).try_acquire_owned().ok();
        }
        let (Some(after), Some(_)) = (after, &place) else {
            return (head, Err(Refusal::Shared(rules, denied)));
        };
        sleep(after).await;
        rules = queue.with_rules(Arc::clone);
        decided = rules.check_waiting(&head).await;
    }
}

/// Passes the rejection of a request to `reject`.
#[cold]
pub(super) fn reject<T>(
    rules: &SharedRules<Parts>,
    denied: &Denied<'static>,
    head: &Parts,
    reject: impl FnOnce(Rejection<'_>) -> T,
) -> T {
    let statuses = rules.statuses_after(head, denied.known_statuses(), denied.decided_by());
    let policies = policy::of_denial(&statuses, denied);
    let mut rejection = Rejection::new(head, policies, denied.retry_after(), denied.at());
    rejection.unavailable = denied.reason() == Reason::Unavailable;
    reject(rejection)
}

#[inline]
fn admit(
    rules: &Arc<SharedRules<Parts>>,
    options: Options,
    head: &Parts,
    admitted: Admitted<Charges<Parts>>,
) -> Admission {
    let mut admission = Admission::new(rules.now(), admitted.is_limited());
    if options.headers != QuotaHeaders::Off {
        let statuses = rules.statuses_after(head, admitted.known_statuses(), admitted.decided_by());
        admission.add_headers(options.headers, &policy::of_statuses(&statuses));
    }
    if options.reserves || admitted.holds_slots() {
        admission.reserve(SharedCharge {
            rules: Arc::clone(rules),
            admitted,
            plan: rules.hashed_plan(head),
            runtime: Handle::try_current().ok(),
        });
    }
    admission
}

/// A charge of shared rules, and the values that are needed to settle it.
struct SharedCharge {
    rules: Arc<SharedRules<Parts>>,
    admitted: Admitted<Charges<Parts>>,
    plan: CheckPlan,
    /// The runtime that calls the store. `None` if the request was decided outside of a runtime. Then the charges of
    /// the store stay.
    runtime: Option<Handle>,
}

impl Charge for SharedCharge {
    /// No request is woken when the slots are released, because one that waits is decided again after its retry time.
    fn take_slots(&mut self) -> Option<Slots> {
        let holds = self.admitted.holds_slots();
        holds.then(|| -> Slots { Arc::new(self.admitted.take_slots()) })
    }

    fn refund(self: Box<Self>) {
        let Self {
            rules,
            admitted,
            runtime,
            ..
        } = *self;
        // The other charges are refunded by the store. If it does not answer, the permits stay charged, which is stricter.
        if let (Some(rest), Some(runtime)) = (rules.refund_on_node(admitted), &runtime) {
            runtime.spawn(async move { rules.refund(rest).await });
        }
    }

    fn settle(self: Box<Self>, cost: &Cost<Parts>, actual: u64) {
        if let Some(runtime) = self.runtime.clone() {
            let cost = cost.clone();
            runtime.spawn(async move {
                let Self {
                    rules,
                    admitted,
                    plan,
                    ..
                } = *self;
                rules.settle_planned(admitted, &plan, &cost, actual).await
            });
        }
    }
}
