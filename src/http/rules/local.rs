//! Rules of this process.

use alloc::boxed::Box;
use alloc::sync::Arc;

use ::http::request::Parts;

use super::decision::{Admission, DecisionFuture, Delayed, Options, Outcome};
use super::{Queueable, RuleQueue};
use crate::clock::Clock;
use crate::http::admission::{Charge, OnResponse, Slots, slots};
use crate::http::answer::{Decision, QuotaHeaders, Rejection, policy};
use crate::rules::{
    Admitted, Cost, Denied, DeniedQuotas, KeyDecision, KeyHashes, LiveRules, MissingCause, Reservation,
    RuleSet,
};
use crate::time::Nanos;
use crate::wait::{Fair, WaitError};

/// The rules of this process, with the queue of requests that wait.
pub(in crate::http) type LocalQueue<C> = Arc<Fair<Arc<LiveRules<Parts, C>>>>;

impl<C: Clock + Clone + Send + Sync + 'static> Queueable for LiveRules<Parts, C> {
    type Queue = LocalQueue<C>;

    fn with_queue(self: Arc<Self>, max_waiting: usize) -> LocalQueue<C> {
        Arc::new(Fair::new(self).max_waiting(max_waiting))
    }
}

impl<C: Clock + Clone + Send + Sync + 'static> RuleQueue for LocalQueue<C> {
    /// It waits in the queue.
    type Undecided = ();
    type Refusal = WaitError;

    #[inline(always)]
    fn decide<T>(
        &self,
        options: &Options,
        head: &mut Parts,
        reject: impl FnOnce(Rejection<'_>) -> T,
    ) -> Outcome<T, ()> {
        let rules = self.limiter().load();
        let mut decided = None;
        if options.decides_at_once() {
            decided = rules.states.decide_by_key(head, || rules.clock.now());
            if let Some(decided) = &decided
                && let Some(at) = decided.admitted_at()
            {
                options.record(Decision::Admitted, head);
                return Outcome::Admitted(match options.headers {
                    QuotaHeaders::Off => None,
                    headers => Some(headers_by_key(headers, &rules, decided, at)),
                });
            }
        }
        decide_by_more((self, &rules), options, decided, head, reject)
    }

    fn delay(&self, (): (), options: Options, head: Parts) -> DecisionFuture<WaitError> {
        Box::pin(wait(Arc::clone(self), options, head))
    }

    fn reject<T>(&self, error: WaitError, head: &Parts, reject: impl FnOnce(Rejection<'_>) -> T) -> T {
        let rules = self.limiter().load();
        let at = rules.clock().now();
        let mut rejection = Rejection::new(head, policy::exhausted(&rules, head, at), None, at);
        rejection.retry_after = match error {
            WaitError::Never | WaitError::Unavailable => None,
            // No time frees a slot. `Retry-After` is then the time that the layer states for slots.
            _ if rejection.awaits_slot() => None,
            // The queue's time is a lower bound, so it may be earlier than the time at which all rules admit the request.
            WaitError::TooLate { needed, .. } | WaitError::QueueFull { needed, .. } => {
                rules.states.retry_after(head, at).max(Some(needed))
            }
        };
        reject(rejection)
    }

    fn waiting(&self) -> usize {
        Fair::waiting(self)
    }

    fn recheck(&self) {
        Fair::recheck(self);
    }

    fn missing_cause(&self, head: &Parts) -> Option<MissingCause> {
        self.limiter().load().states.missing_cause(head)
    }
}

/// Returns the quota headers for a request that was admitted by its key alone.
#[inline(never)]
fn headers_by_key<C: Clock>(
    headers: QuotaHeaders,
    rules: &RuleSet<Parts, C>,
    decided: &KeyDecision,
    at: Nanos,
) -> Box<OnResponse> {
    let mut policies = policy::Policies::new();
    rules
        .states
        .quotas_by_key(decided, at, |values| policy::add(&mut policies, values));
    let mut on_response = Box::<OnResponse>::default();
    headers.write_admission(&policies, &mut on_response.headers);
    on_response
}

/// Decides a request that was not admitted by its key alone, or completes the decision `by_key`.
#[inline(never)]
fn decide_by_more<C: Clock + Clone + Send + Sync + 'static, T>(
    (queue, rules): (&LocalQueue<C>, &RuleSet<Parts, C>),
    options: &Options,
    by_key: Option<KeyDecision>,
    head: &mut Parts,
    reject: impl FnOnce(Rejection<'_>) -> T,
) -> Outcome<T, ()> {
    let reserves = options.reserves() || rules.states.has_slots;
    let mut hashes = options.headers.key_hashes();
    let (at, mut admission) = if options.max_wait.is_some() {
        let head = &*head;
        let admission = match queue.must_queue(&head) {
            true => None,
            false if reserves => rules.reserve_waiting(head).map(|charge| reserved(queue, charge)),
            false => rules.check_waiting(head).map(charged),
        };
        match admission {
            Some(admission) => admission,
            // If the request is never admitted, the queue returns the error.
            None => return Outcome::Undecided(()),
        }
    } else {
        let (head, mut seen) = (&*head, DeniedQuotas::new());
        let decided = match by_key {
            Some(by_key) => rules.states.conclude_by_key(by_key, head, &mut seen).map(charged),
            None if reserves => reserve(queue, rules, head, &mut seen),
            None => rules
                .states
                .check_by_more(head, || rules.clock.now(), hashes.as_mut(), &mut seen)
                .map(charged),
        };
        match decided {
            Ok(admission) => admission,
            Err(denied) => return Outcome::Rejected(reject(rejection(&seen, &denied, head))),
        }
    };
    if let Some(hashes) = &mut hashes {
        add_headers(&mut admission, options, (rules, at), head, hashes);
    }
    Outcome::Admitted(admission.record(options, head))
}

/// The time of the decision, and the admission.
fn charged(charge: Admitted) -> (Nanos, Admission) {
    (charge.at(), Admission::new(charge.is_limited()))
}

/// Waits until the request is admitted.
async fn wait<C: Clock + Clone + Send + Sync + 'static>(
    queue: LocalQueue<C>,
    options: Options,
    mut head: Parts,
) -> Delayed<WaitError> {
    let max_wait = options.max_wait.unwrap_or_default();
    let waited = queue.acquire(&head).within(max_wait).await;
    let charge = match waited {
        Ok(charge) => charge,
        Err(error) => return (head, Err(error)),
    };
    let (at, mut admission) = match options.reserves() || charge.holds_slots() {
        true => reserved(&queue, charge),
        false => (charge.at(), Admission::new(charge.is_limited())),
    };
    if let Some(hashes) = &mut options.headers.key_hashes() {
        add_headers(
            &mut admission,
            &options,
            (&queue.limiter().load(), at),
            &head,
            hashes,
        );
    }
    let on_response = admission.record(&options, &mut head);
    (head, Ok(on_response))
}

/// The time of the decision, and the admission, which keeps the charge.
fn reserved<C: Clock + Clone + Send + Sync + 'static>(
    queue: &LocalQueue<C>,
    charge: Reservation<Parts>,
) -> (Nanos, Admission) {
    let (at, queue) = (charge.at(), Arc::clone(queue));
    let mut admission = Admission::new(charge.is_limited());
    admission.reserve(LocalCharge { queue, charge });
    (at, admission)
}

#[inline(never)]
fn reserve<'a, C: Clock + Clone + Send + Sync + 'static>(
    queue: &LocalQueue<C>,
    rules: &'a RuleSet<Parts, C>,
    head: &'a Parts,
    seen: &mut DeniedQuotas<'a>,
) -> Result<(Nanos, Admission), Denied<'a, Parts>> {
    let charge = rules.states.reserve(head, || rules.clock.now(), seen)?;
    Ok(reserved(queue, charge))
}

/// Adds the quota headers of a request that was admitted at this time, for which it reads the state of each rule.
///
/// Not inlined, so that a request without headers needs no memory for the policies.
#[inline(never)]
fn add_headers<C: Clock>(
    admission: &mut Admission,
    options: &Options,
    (rules, at): (&RuleSet<Parts, C>, Nanos),
    head: &Parts,
    hashes: &mut KeyHashes,
) {
    let mut policies = policy::Policies::new();
    policy::add_policies(&mut policies, rules, head, at, false, hashes);
    admission.add_headers(options.headers, &policies);
}

#[cold]
#[inline(never)]
fn rejection<'a>(seen: &DeniedQuotas<'a>, denied: &Denied<'a, Parts>, head: &'a Parts) -> Rejection<'a> {
    Rejection::new(head, policy::denied(seen), seen.retry_after(), denied.at())
}

/// A charge of local rules. Refunding it wakes the requests that wait for its states.
struct LocalCharge<C> {
    queue: LocalQueue<C>,
    charge: Reservation<Parts>,
}

impl<C: Clock + Clone + Send + Sync + 'static> Charge for LocalCharge<C> {
    fn take_slots(&mut self) -> Option<Slots> {
        self.charge.holds_slots().then(|| {
            let (queue, held) = (Arc::clone(&self.queue), self.charge.take_slots());
            slots(move || {
                queue.refund(held);
            })
        })
    }

    fn refund(self: Box<Self>) {
        self.queue.refund(self.charge);
    }

    fn settle(self: Box<Self>, cost: &Cost<Parts>, actual: u64) {
        self.queue.settle(self.charge, (cost, actual));
    }
}
