//! Rules of this process.

use alloc::boxed::Box;
use alloc::sync::Arc;

use ::http::request::Parts;

use super::{Decide, DecisionFuture, Grant, Outcome, Settings};
use crate::clock::Clock;
use crate::http::answer::{HeaderValues, QuotaHeaders, Rejection, policy};
use crate::rules::{
    Admitted, Cost, Denied, DeniedQuotas, KeyHashes, LiveRules, MissingCause, Reservation, RuleSet,
};
use crate::time::Nanos;
use crate::wait::{Fair, WaitError};

/// The queue of requests that wait.
pub(in crate::http) type LocalQueue<C> = Arc<Fair<Arc<LiveRules<Parts, C>>>>;

/// The charge of an admitted request.
enum LocalCharge {
    Final(Admitted),
    /// The response decides whether it is refunded.
    Reserved(Box<Reservation<Parts>>),
}

impl LocalCharge {
    fn reserved(charge: Reservation<Parts>) -> Self {
        Self::Reserved(Box::new(charge))
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
        let (at, limited) = match &self {
            Self::Final(charge) => (charge.at(), charge.is_limited()),
            Self::Reserved(charge) => (charge.at(), charge.is_limited()),
        };
        Grant {
            at,
            limited,
            headers: hashes.map(|hashes| admitted_headers(headers, rules, head, at, hashes)),
            charge: match self {
                Self::Final(_) => None,
                Self::Reserved(charge) => Some(charge),
            },
        }
    }
}

impl<C: Clock + Clone + Send + Sync + 'static> Decide for LiveRules<Parts, C> {
    /// The charge is boxed, so that a grant without a charge is small.
    type Charge = Box<Reservation<Parts>>;
    /// The request joins the queue.
    type Undecided = ();
    type Decided = Result<Reservation<Parts>, WaitError>;
    type Queue = LocalQueue<C>;

    #[inline]
    fn decide<T>(
        self: &Arc<Self>,
        settings: &Settings<Self>,
        head: &Parts,
        reject: impl FnOnce(Rejection<'_>) -> T,
    ) -> Outcome<Self, T> {
        let rules = self.load();
        let reserves = settings.reserves || rules.has_slots();
        let mut hashes = settings.headers.key_hashes();
        if settings.max_wait.is_some() {
            let charge = match settings.queue.must_queue(&head) {
                true => None,
                false if reserves => rules.reserve_waiting(head).map(LocalCharge::reserved),
                false => rules.check_waiting(head).map(LocalCharge::Final),
            };
            return match charge {
                // If the request is never admitted, the queue returns the error.
                None => Outcome::Undecided(()),
                Some(charge) => {
                    Outcome::Admitted(charge.grant(&rules, settings.headers, head, hashes.as_mut()))
                }
            };
        }
        let mut seen = DeniedQuotas::new();
        let decided = if reserves {
            reserve(&rules, head, &mut seen)
        } else {
            rules
                .check_with(head, hashes.as_mut(), &mut seen)
                .map(LocalCharge::Final)
        };
        match decided {
            Ok(charge) => Outcome::Admitted(charge.grant(&rules, settings.headers, head, hashes.as_mut())),
            Err(denied) => Outcome::Rejected(reject(rejection(&seen, &denied, head))),
        }
    }

    fn resume(self: &Arc<Self>, (): (), settings: &Settings<Self>, head: Arc<Parts>) -> DecisionFuture<Self> {
        let queue = Arc::clone(&settings.queue);
        Box::pin(
            queue
                .acquire_owned(head)
                .within(settings.max_wait.unwrap_or_default()),
        )
    }

    fn finish<T>(
        self: &Arc<Self>,
        decided: Result<Reservation<Parts>, WaitError>,
        settings: &Settings<Self>,
        head: &Parts,
        reject: impl FnOnce(Rejection<'_>) -> T,
    ) -> Result<Grant<Self>, T> {
        let rules = self.load();
        match decided {
            Ok(charge) => {
                let mut hashes = settings.headers.key_hashes();
                let keeps = settings.reserves || charge.holds_slots();
                let mut grant =
                    LocalCharge::reserved(charge).grant(&rules, settings.headers, head, hashes.as_mut());
                grant.charge = grant.charge.filter(|_| keeps);
                Ok(grant)
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

    fn refund(self: &Arc<Self>, queue: &LocalQueue<C>, charge: Box<Reservation<Parts>>) {
        queue.refund(*charge);
    }

    fn settle(
        self: &Arc<Self>,
        queue: &LocalQueue<C>,
        charge: Box<Reservation<Parts>>,
        cost: &Cost<Parts>,
        actual: u64,
    ) {
        queue.settle(*charge, (cost, actual));
    }

    fn release(queue: &LocalQueue<C>, slots: Box<Reservation<Parts>>) {
        queue.refund(*slots);
    }

    fn queue(self: &Arc<Self>, max_waiting: Option<usize>) -> LocalQueue<C> {
        let queue = Fair::new(Arc::clone(self));
        Arc::new(match max_waiting {
            Some(max) => queue.max_waiting(max),
            None => queue,
        })
    }
}

#[inline(never)]
fn reserve<'a, C: Clock>(
    rules: &'a RuleSet<Parts, C>,
    head: &'a Parts,
    seen: &mut DeniedQuotas<'a>,
) -> Result<LocalCharge, Denied<'a, Parts>> {
    rules.reserve_with(head, seen).map(LocalCharge::reserved)
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
