//! Rules whose counts many machines share, and which are replaced while they are in use.

use alloc::boxed::Box;
use alloc::sync::Arc;

use ::http::request::Parts;
#[cfg(feature = "tokio")]
use tokio::sync::Semaphore;

use super::shared::{SharedCharge, Undecided, decide_in_store};
use super::{Decide, DecisionFuture, Grant, Outcome, Terms};
use crate::http::answer::Rejection;
use crate::rules::{Cost, MissingCause};
use crate::shared::{Admitted, Denied, LiveSharedRules, SharedRules};

/// Each value has the rules that it belongs to: those in force when the request was planned or decided.
impl Decide for LiveSharedRules<Parts> {
    type Charge = (Arc<SharedRules<Parts>>, Box<SharedCharge>);
    type Undecided = (Arc<SharedRules<Parts>>, Undecided);
    type Decided = (Arc<SharedRules<Parts>>, Result<Admitted<Parts>, Denied>);
    #[cfg(feature = "tokio")]
    type Queue = Arc<Semaphore>;
    #[cfg(feature = "tokio")]
    type States = ();

    fn decide<T>(
        self: &Arc<Self>,
        terms: &Terms<Self>,
        head: &Parts,
        reject: impl FnOnce(Rejection<'_>) -> T,
    ) -> Outcome<Self, T> {
        let rules = self.load();
        match rules.decide(&terms.of(), head, reject) {
            Outcome::Admitted(granted) => Outcome::Admitted(grant(rules, granted)),
            Outcome::Rejected(rejected) => Outcome::Rejected(rejected),
            Outcome::Undecided(undecided) => Outcome::Undecided((rules, undecided)),
        }
    }

    fn resume(
        self: &Arc<Self>,
        (rules, undecided): Self::Undecided,
        terms: &Terms<Self>,
        head: Arc<Parts>,
    ) -> DecisionFuture<Self> {
        #[cfg(feature = "tokio")]
        if let Some(wait) = terms.wait.clone() {
            let live = Arc::clone(self);
            return Box::pin(async move {
                super::shared::wait_until_decided(rules, undecided, wait, head, || live.load()).await
            });
        }
        let _ = (terms, head);
        Box::pin(async move {
            let decided = decide_in_store(&rules, undecided).await;
            (rules, decided)
        })
    }

    fn finish<T>(
        self: &Arc<Self>,
        (rules, decided): Self::Decided,
        terms: &Terms<Self>,
        head: &Parts,
        reject: impl FnOnce(Rejection<'_>) -> T,
    ) -> Result<Grant<Self>, T> {
        let granted = rules.finish(decided, &terms.of(), head, reject)?;
        Ok(grant(rules, granted))
    }

    fn take_slots((rules, charge): &mut Self::Charge) -> Option<Self::Charge> {
        let slots = <SharedRules<Parts> as Decide>::take_slots(charge)?;
        Some((Arc::clone(rules), slots))
    }

    fn missing_cause(&self, head: &Parts) -> Option<MissingCause> {
        self.load().missing_cause(head)
    }

    fn refund(self: &Arc<Self>, (rules, charge): Self::Charge) {
        Decide::refund(&rules, charge);
    }

    fn settle(self: &Arc<Self>, (rules, charge): Self::Charge, cost: &Cost<Parts>, actual: u64) {
        Decide::settle(&rules, charge, cost, actual);
    }

    #[cfg(feature = "tokio")]
    fn queue(self: &Arc<Self>, max_waiting: Option<usize>) -> Arc<Semaphore> {
        self.load().queue(max_waiting)
    }

    #[cfg(feature = "tokio")]
    fn states_of(self: &Arc<Self>, _: &Self::Charge) {}

    /// Does nothing, because a waiting request is decided again after its retry time.
    #[cfg(feature = "tokio")]
    fn recheck(_: &Arc<Semaphore>, (): &()) {}
}

/// The grant, with the rules that its charge belongs to.
fn grant(
    rules: Arc<SharedRules<Parts>>,
    granted: Grant<SharedRules<Parts>>,
) -> Grant<LiveSharedRules<Parts>> {
    Grant {
        charge: granted.charge.map(|charge| (rules, charge)),
        at: granted.at,
        limited: granted.limited,
        headers: granted.headers,
    }
}
