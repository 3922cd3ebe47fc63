//! Rules of this process.

use alloc::boxed::Box;
use alloc::sync::Arc;

use ::http::request::Parts;
use smallvec::SmallVec;

use super::{Decide, DecisionFuture, Grant, Outcome, Terms};
use crate::clock::Clock;
use crate::http::answer::{HeaderValues, QuotaHeaders, Rejection, policy};
use crate::rules::{
    Admitted, Cost, Denied, DeniedQuotas, KeyHashes, LiveRules, MissingCause, Reservation, RuleSet,
};
use crate::time::Nanos;
use crate::wait::{Fair, RulesGranted, WaitError};

/// The queue of requests that wait.
pub(in crate::http) type LocalQueue<C> = Arc<Fair<Arc<LiveRules<Parts, C>>>>;

/// A request that joins the queue.
pub(in crate::http) struct Queued;

/// The result of a wait.
type Waited = Result<LocalCharge, WaitError>;

/// The charge of an admitted request.
pub(in crate::http) enum LocalCharge {
    Final(Admitted),
    /// The response decides whether it is refunded.
    Reserved(Box<Reservation<Parts>>),
}

impl LocalCharge {
    const fn at(&self) -> Nanos {
        match self {
            Self::Final(charge) => charge.at(),
            Self::Reserved(charge) => charge.at(),
        }
    }

    fn is_limited(&self) -> bool {
        match self {
            Self::Final(charge) => charge.is_limited(),
            Self::Reserved(charge) => charge.is_limited(),
        }
    }

    /// Makes the grant. If the layer adds quota headers, this reads the state of each rule.
    #[inline]
    fn grant<C>(
        self,
        rules: &RuleSet<Parts, C>,
        headers: QuotaHeaders,
        head: &Parts,
        hashes: Option<&mut KeyHashes>,
    ) -> Grant<LiveRules<Parts, C>>
    where
        C: Clock + Clone + Send + Sync + 'static,
    {
        Grant {
            at: self.at(),
            limited: self.is_limited(),
            headers: hashes.map(|hashes| admitted_headers(headers, rules, head, self.at(), hashes)),
            charge: match self {
                Self::Final(_) => None,
                Self::Reserved(charge) => Some(charge),
            },
        }
    }
}

/// The rules in force decide whether a request holds slots. A reload may have replaced those that were in force when it began to wait.
impl RulesGranted<Parts> for LocalCharge {
    fn charge<C: Clock>(rules: &RuleSet<Parts, C>, head: &Parts) -> Option<Self> {
        if rules.has_slots() {
            let charge = Reservation::charge(rules, head)?;
            Some(Self::Reserved(Box::new(charge)))
        } else {
            Admitted::charge(rules, head).map(Self::Final)
        }
    }
}

impl<C: Clock + Clone + Send + Sync + 'static> Decide for LiveRules<Parts, C> {
    /// The charge is boxed, so that a grant without a charge is small.
    type Charge = Box<Reservation<Parts>>;
    type Undecided = Queued;
    type Decided = Waited;
    type Queue = LocalQueue<C>;
    type States = SmallVec<[u64; 4]>;

    #[inline]
    fn decide<T>(
        self: &Arc<Self>,
        terms: &Terms<Self>,
        head: &Parts,
        reject: impl FnOnce(Rejection<'_>) -> T,
    ) -> Outcome<Self, T> {
        if let Some(wait) = &terms.wait {
            let charge = match terms.reserves {
                true => None,
                false => wait.queue.grant::<LocalCharge>(head),
            };
            return match charge {
                // If the request is never admitted, the queue returns the error.
                None => Outcome::Undecided(Queued),
                Some(charge) => {
                    let mut hashes = terms.headers.key_hashes();
                    Outcome::Admitted(charge.grant(&self.load(), terms.headers, head, hashes.as_mut()))
                }
            };
        }
        let rules = self.load();
        let mut hashes = terms.headers.key_hashes();
        let mut seen = DeniedQuotas::new();
        let decided = if terms.reserves || rules.has_slots() {
            reserve(&rules, head, &mut seen)
        } else {
            rules
                .check_with(head, hashes.as_mut(), &mut seen)
                .map(LocalCharge::Final)
        };
        match decided {
            Ok(charge) => Outcome::Admitted(charge.grant(&rules, terms.headers, head, hashes.as_mut())),
            Err(denied) => Outcome::Rejected(reject(rejection(&seen, &denied, head))),
        }
    }
    fn resume(self: &Arc<Self>, _: Queued, terms: &Terms<Self>, head: Arc<Parts>) -> DecisionFuture<Self> {
        let Some(wait) = &terms.wait else {
            // Without a queue, every request was decided by `decide`.
            return Box::pin(core::future::ready(Err(WaitError::Never)));
        };
        let queue = Arc::clone(&wait.queue);
        if terms.reserves {
            let waiting = queue.acquire_owned(head).within(wait.max_wait);
            Box::pin(async {
                waiting
                    .await
                    .map(|charge| LocalCharge::Reserved(Box::new(charge)))
            })
        } else {
            Box::pin(queue.grant_owned::<_, LocalCharge>(head).within(wait.max_wait))
        }
    }
    fn finish<T>(
        self: &Arc<Self>,
        decided: Waited,
        terms: &Terms<Self>,
        head: &Parts,
        reject: impl FnOnce(Rejection<'_>) -> T,
    ) -> Result<Grant<Self>, T> {
        let rules = self.load();
        match decided {
            Ok(charge) => {
                let mut hashes = terms.headers.key_hashes();
                Ok(charge.grant(&rules, terms.headers, head, hashes.as_mut()))
            }
            Err(error) => {
                let at = rules.clock().now();
                let policies = policy::exhausted(&rules, head, at);
                let mut rejection = Rejection::new(head, policies, None, at);
                rejection.retry_after = match error {
                    WaitError::Never => None,
                    // No time frees a slot.
                    _ if rejection.needs_slot() => None,
                    WaitError::TooLate { needed, .. } | WaitError::QueueFull { needed, .. } => Some(needed),
                };
                Err(reject(rejection))
            }
        }
    }

    fn take_slots(charge: &mut Box<Reservation<Parts>>) -> Option<Box<Reservation<Parts>>> {
        charge.holds_slots().then(|| Box::new(charge.take_slots()))
    }

    fn missing_cause(&self, head: &Parts) -> Option<MissingCause> {
        self.load().missing_cause(head)
    }

    fn refund(self: &Arc<Self>, charge: Box<Reservation<Parts>>) {
        self.load().refund(*charge);
    }

    fn settle(self: &Arc<Self>, charge: Box<Reservation<Parts>>, cost: &Cost<Parts>, actual: u64) {
        self.load().settle(*charge, cost, actual);
    }
    fn queue(self: &Arc<Self>, max_waiting: Option<usize>) -> Self::Queue {
        let queue = Fair::new(Arc::clone(self));
        Arc::new(match max_waiting {
            Some(max) => queue.max_waiting(max),
            None => queue,
        })
    }
    fn states_of(self: &Arc<Self>, charge: &Box<Reservation<Parts>>) -> Self::States {
        self.load().state_ids(charge)
    }
    fn recheck(queue: &Self::Queue, states: &Self::States) {
        queue.recheck_states(states);
    }
}

#[inline(never)]
fn reserve<'a, C: Clock>(
    rules: &'a RuleSet<Parts, C>,
    head: &'a Parts,
    seen: &mut DeniedQuotas<'a>,
) -> Result<LocalCharge, Denied<'a, Parts>> {
    rules
        .reserve_with(head, seen)
        .map(|charge| LocalCharge::Reserved(Box::new(charge)))
}

/// Returns the quota headers of an admitted request.
///
/// Not inlined, so that a request without headers needs no memory for the policies.
#[inline(never)]
fn admitted_headers<C: Clock>(
    headers: QuotaHeaders,
    rules: &RuleSet<Parts, C>,
    head: &Parts,
    at: Nanos,
    hashes: &mut KeyHashes,
) -> Box<HeaderValues> {
    let mut policies = policy::Policies::new();
    policy::add_policies(&mut policies, rules, head, at, hashes);
    headers.of_admission(&policies)
}

#[cold]
#[inline(never)]
fn rejection<'a>(seen: &DeniedQuotas<'a>, denied: &Denied<'a, Parts>, head: &'a Parts) -> Rejection<'a> {
    Rejection::new(head, policy::denied(seen), seen.retry_after(), denied.at())
}
