//! Rules whose counts many machines share.

use alloc::boxed::Box;
use alloc::sync::Arc;

use ::http::request::Parts;
use smallvec::SmallVec;
use tokio::runtime::Handle;

use super::decision::{Admission, Ask, Delayed, Options, Outcome, Refusal, Undecided};
use super::queue::{Queueable, RuleQueue};
use super::shared_queue::{SharedQueue, Source};
use crate::clock::DefaultClock;
use crate::http::admission::{Charge, Slots};
use crate::http::answer::{QuotaHeaders, Rejection, policy};
use crate::rules::Cost;
use crate::shared::{Admitted, Charges, CheckPlan, Denied, LiveSharedRules, Reason, SharedRules};
use crate::wait::{SharedAdmission, SharedFair};

impl Queueable for SharedRules<Parts> {
    // The rules have their own clock.
    type Clock = DefaultClock;

    fn with_queue(self: Arc<Self>, max_waiting: usize) -> RuleQueue<DefaultClock> {
        shared_queue(Source::Fixed(self), max_waiting)
    }
}

impl Queueable for LiveSharedRules<Parts> {
    type Clock = DefaultClock;

    fn with_queue(self: Arc<Self>, max_waiting: usize) -> RuleQueue<DefaultClock> {
        shared_queue(Source::Live(self), max_waiting)
    }
}

fn shared_queue(rules: Source, max_waiting: usize) -> RuleQueue<DefaultClock> {
    RuleQueue::Shared(Arc::new(SharedFair::new(rules).max_waiting(max_waiting)))
}

#[inline(never)]
pub(super) fn decide<T>(
    queue: &SharedQueue,
    options: &Options,
    head: &mut Parts,
    reject: impl FnOnce(Rejection<'_>) -> T,
) -> Outcome<T> {
    queue.rules().with_rules(|rules| {
        let waits = options.max_wait.is_some();
        if waits && queue.must_wait(rules, head) {
            return Outcome::Undecided(Undecided::Waits);
        }
        match rules.decide_or_plan(head, 1) {
            Ok(Ok(admitted)) => {
                let admission = admit(queue, rules, options, head, admitted);
                Outcome::Admitted(admission.record(options, head))
            }
            // The wait begins with a decision.
            _ if waits => Outcome::Undecided(Undecided::Waits),
            Ok(Err(denied)) => Outcome::Rejected(self::reject(rules, &denied, head, reject)),
            Err(plan) => {
                let (queue, rules) = (Arc::clone(queue), Arc::clone(rules));
                Outcome::Undecided(Undecided::Asks(Box::new(Ask { queue, rules, plan })))
            }
        }
    })
}

/// Waits until the request is admitted.
pub(super) async fn wait<C>(queue: SharedQueue, options: Options, mut head: Parts) -> (Parts, Delayed<C>) {
    let max_wait = options.max_wait.unwrap_or_default();
    let decided = match queue.wait_for(&head, max_wait).await {
        Ok(SharedAdmission { rules, admitted, .. }) => {
            let admission = admit(&queue, &rules, &options, &head, admitted);
            Ok(admission.record(&options, &mut head))
        }
        Err(ended) => Err(Refusal::Shared(ended.rules, ended.denied)),
    };
    (head, decided)
}

/// Asks the store about a request that does not wait.
pub(super) async fn ask<C>(ask: Box<Ask>, options: Options, mut head: Parts) -> (Parts, Delayed<C>) {
    let Ask { queue, rules, plan } = *ask;
    let decided = match rules.decide(*plan).await {
        Ok(admitted) => {
            let admission = admit(&queue, &rules, &options, &head, admitted);
            Ok(admission.record(&options, &mut head))
        }
        Err(denied) => Err(Refusal::Shared(rules, denied)),
    };
    (head, decided)
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
    queue: &SharedQueue,
    rules: &Arc<SharedRules<Parts>>,
    options: &Options,
    head: &Parts,
    admitted: Admitted<Charges<Parts>>,
) -> Admission {
    let mut admission = Admission::new(rules.now(), admitted.is_limited());
    if options.headers != QuotaHeaders::Off {
        let statuses = rules.statuses_after(head, admitted.known_statuses(), admitted.decided_by());
        admission.add_headers(options.headers, &policy::of_statuses(&statuses));
    }
    if options.reserves() || admitted.holds_slots() {
        admission.reserve(SharedCharge {
            rules: Arc::clone(rules),
            admitted,
            plan: rules.hashed_plan(head),
            waiters: options.max_wait.map(|_| Waiters {
                queue: Arc::clone(queue),
                states: rules.needed_states(head),
            }),
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
    /// `None` if no request waits.
    waiters: Option<Waiters>,
    /// The runtime that calls the store. `None` if the request was decided outside of a runtime. Then the charges of
    /// the store stay.
    runtime: Option<Handle>,
}

/// The states whose first waiters ask again after a charge has ended.
#[derive(Clone)]
struct Waiters {
    queue: SharedQueue,
    states: SmallVec<[u64; 4]>,
}

impl Waiters {
    fn recheck(waiters: Option<&Self>) {
        if let Some(Self { queue, states }) = waiters {
            queue.recheck_states(states);
        }
    }
}

impl Charge for SharedCharge {
    fn take_slots(&mut self) -> Option<Slots> {
        let holds = self.admitted.holds_slots();
        holds.then(|| -> Slots {
            Arc::new(SharedSlots {
                held: Some(self.admitted.take_slots()),
                rules: Arc::clone(&self.rules),
                waiters: self.waiters.clone(),
                runtime: self.runtime.clone(),
            })
        })
    }

    fn refund(self: Box<Self>) {
        let Self {
            rules,
            admitted,
            waiters,
            runtime,
            ..
        } = *self;
        let rest = rules.refund_on_node(admitted);
        Waiters::recheck(waiters.as_ref());
        // The other charges are refunded by the store. If it does not answer, the permits stay charged, which is stricter.
        if let (Some(rest), Some(runtime)) = (rest, &runtime) {
            runtime.spawn(async move {
                let _ = rules.refund(rest).await;
                Waiters::recheck(waiters.as_ref());
            });
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
                    waiters,
                    ..
                } = *self;
                let _ = rules.settle_planned(admitted, &plan, &cost, actual).await;
                Waiters::recheck(waiters.as_ref());
            });
        }
    }
}

/// Slots in flight of shared rules, which are released when this is dropped.
struct SharedSlots {
    held: Option<Admitted<Charges<Parts>>>,
    rules: Arc<SharedRules<Parts>>,
    waiters: Option<Waiters>,
    runtime: Option<Handle>,
}

impl Drop for SharedSlots {
    fn drop(&mut self) {
        drop(self.held.take());
        if let (Some(Waiters { queue, states }), Some(runtime)) = (self.waiters.take(), &self.runtime) {
            let rules = Arc::clone(&self.rules);
            runtime.spawn(async move { queue.after_release(&rules, &states).await });
        }
    }
}
