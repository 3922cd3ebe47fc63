//! Rules whose counts many machines share.

use alloc::boxed::Box;
use alloc::sync::Arc;

use ::http::request::Parts;
use smallvec::SmallVec;
use tokio::runtime::Handle;

use super::decision::{Admission, DecisionFuture, Delayed, Options, Outcome};
use super::{Queueable, RuleQueue};
use crate::http::admission::{Charge, Slots, slots};
use crate::http::answer::{QuotaHeaders, Rejection, policy};
use crate::rules::{Cost, MissingCause};
use crate::shared::{Admitted, Charges, CheckPlan, Denied, Reason, SharedRules};
use crate::wait::{SharedAdmission, SharedFair, SharedSource};

/// Shared rules, with the queues of requests that wait.
type SharedQueue<S> = Arc<SharedFair<S>>;

/// Shared rules in an `Arc`, which may be replaced while they are in use.
trait Source: SharedSource<Request = Parts> + Clone + Send + Sync + 'static {}

impl<S: SharedSource<Request = Parts> + Clone + Send + Sync + 'static> Source for S {}

impl<R: Send + Sync + 'static> Queueable for R
where
    Arc<R>: Source,
{
    type Queue = SharedQueue<Arc<R>>;

    fn with_queue(self: Arc<Self>, max_waiting: usize) -> SharedQueue<Arc<R>> {
        Arc::new(SharedFair::new(self).max_waiting(max_waiting))
    }
}

/// The plan by which a store decides a request, and the rules that made it.
type StorePlan = (Arc<SharedRules<Parts>>, Box<CheckPlan>);

/// The denial of a request, and the rules that have denied it.
pub(in crate::http) struct Refusal {
    rules: Arc<SharedRules<Parts>>,
    denied: Denied<'static>,
}

impl<S: Source> RuleQueue for SharedQueue<S> {
    /// `None`: it waits in a queue.
    type Undecided = Option<StorePlan>;
    type Refusal = Refusal;

    #[inline(never)]
    fn decide<T>(
        &self,
        options: &Options,
        head: &mut Parts,
        reject: impl FnOnce(Rejection<'_>) -> T,
    ) -> Outcome<T, Option<StorePlan>> {
        self.rules().with_rules(|rules| {
            let waits = options.max_wait.is_some();
            if waits && self.must_wait(rules, head) {
                return Outcome::Undecided(None);
            }
            match rules.decide_or_plan(head, 1) {
                Ok(Ok(admitted)) => {
                    let admission = admit(self, rules, options, head, admitted);
                    Outcome::Admitted(admission.record(options, head))
                }
                // The wait begins with a decision.
                _ if waits => Outcome::Undecided(None),
                Ok(Err(denied)) => Outcome::Rejected(self::reject(rules, &denied, head, reject)),
                Err(plan) => Outcome::Undecided(Some((Arc::clone(rules), plan))),
            }
        })
    }

    fn delay(&self, plan: Option<StorePlan>, options: Options, head: Parts) -> DecisionFuture<Refusal> {
        let queue = Arc::clone(self);
        match plan {
            None => Box::pin(wait(queue, options, head)),
            Some(plan) => Box::pin(ask(queue, plan, options, head)),
        }
    }

    fn reject<T>(
        &self,
        Refusal { rules, denied }: Refusal,
        head: &Parts,
        reject: impl FnOnce(Rejection<'_>) -> T,
    ) -> T {
        self::reject(&rules, &denied, head, reject)
    }

    fn waiting(&self) -> usize {
        SharedFair::waiting(self)
    }

    fn recheck(&self) {
        SharedFair::recheck(self);
    }

    fn missing_cause(&self, head: &Parts) -> Option<MissingCause> {
        self.rules().with_rules(|rules| rules.missing_cause(head))
    }
}

/// Waits until the request is admitted.
async fn wait<S: Source>(queue: SharedQueue<S>, options: Options, mut head: Parts) -> Delayed<Refusal> {
    let max_wait = options.max_wait.unwrap_or_default();
    let decided = match queue.wait_for(&head, max_wait).await {
        Ok(SharedAdmission { rules, admitted, .. }) => {
            let admission = admit(&queue, &rules, &options, &head, admitted);
            Ok(admission.record(&options, &mut head))
        }
        Err(ended) => Err(Refusal {
            rules: ended.rules,
            denied: ended.denied,
        }),
    };
    (head, decided)
}

/// Asks the store about a request that does not wait.
async fn ask<S: Source>(
    queue: SharedQueue<S>,
    (rules, plan): StorePlan,
    options: Options,
    mut head: Parts,
) -> Delayed<Refusal> {
    let decided = match rules.decide(*plan).await {
        Ok(admitted) => {
            let admission = admit(&queue, &rules, &options, &head, admitted);
            Ok(admission.record(&options, &mut head))
        }
        Err(denied) => Err(Refusal { rules, denied }),
    };
    (head, decided)
}

/// Passes the rejection of a request to `reject`.
#[cold]
fn reject<T>(
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
fn admit<S: Source>(
    queue: &SharedQueue<S>,
    rules: &Arc<SharedRules<Parts>>,
    options: &Options,
    head: &Parts,
    admitted: Admitted<Charges<Parts>>,
) -> Admission {
    let mut admission = Admission::new(admitted.is_limited());
    if options.headers != QuotaHeaders::Off {
        let statuses = rules.statuses_after(head, admitted.known_statuses(), admitted.decided_by());
        admission.add_headers(options.headers, &policy::of_statuses(&statuses));
    }
    if options.reserves() || admitted.holds_slots() {
        admission.reserve(SharedCharge {
            rules: Arc::clone(rules),
            admitted,
            plan: options.body_cost.as_ref().map(|_| rules.hashed_plan(head)),
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
struct SharedCharge<S: Source> {
    rules: Arc<SharedRules<Parts>>,
    admitted: Admitted<Charges<Parts>>,
    /// `None` if no cost is settled.
    plan: Option<CheckPlan>,
    /// `None` if no request waits.
    waiters: Option<Waiters<S>>,
    /// The runtime that calls the store. `None` if the request was decided outside of a runtime. Then the charges of
    /// the store stay.
    runtime: Option<Handle>,
}

/// The states whose first waiters ask again after a charge has ended.
#[derive(Clone)]
struct Waiters<S> {
    queue: SharedQueue<S>,
    states: SmallVec<[u64; 4]>,
}

impl<S: Source> Waiters<S> {
    fn recheck(waiters: Option<&Self>) {
        if let Some(Self { queue, states }) = waiters {
            queue.recheck_states(states);
        }
    }
}

impl<S: Source> Charge for SharedCharge<S> {
    fn take_slots(&mut self) -> Option<Slots> {
        self.admitted.holds_slots().then(|| {
            let (held, rules) = (self.admitted.take_slots(), Arc::clone(&self.rules));
            let (waiters, runtime) = (self.waiters.clone(), self.runtime.clone());
            slots(move || {
                drop(held);
                if let (Some(Waiters { queue, states }), Some(runtime)) = (waiters, runtime) {
                    runtime.spawn(async move { queue.after_release(&rules, &states).await });
                }
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
        let Self {
            rules,
            admitted,
            plan,
            waiters,
            runtime,
        } = *self;
        if let (Some(plan), Some(runtime)) = (plan, runtime) {
            let cost = cost.clone();
            runtime.spawn(async move {
                let _ = rules.settle_planned(admitted, &plan, &cost, actual).await;
                Waiters::recheck(waiters.as_ref());
            });
        }
    }
}
