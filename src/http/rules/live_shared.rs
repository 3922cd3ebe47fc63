//! Rules whose counts many machines share, and which are replaced while they are in use.

use alloc::boxed::Box;
use alloc::sync::Arc;

use ::http::request::Parts;
use tokio::sync::Semaphore;

use super::shared::{SharedCharge, Undecided, decide_in_store};
use super::{Decide, DecisionFuture, Grant, Outcome, Settings};
use crate::http::answer::Rejection;
use crate::rules::{Cost, MissingCause};
use crate::shared::{Decision, LiveSharedRules, SharedRules};

/// Each value has the rules that it belongs to: those in force when the request was planned or decided.
impl Decide for LiveSharedRules<Parts> {
    type Charge = (Arc<SharedRules<Parts>>, Box<SharedCharge>);
    type Undecided = (Arc<SharedRules<Parts>>, Undecided);
    type Decided = (Arc<SharedRules<Parts>>, Decision<Parts>);
    type Queue = Arc<Semaphore>;

    fn decide<T>(
        self: &Arc<Self>,
        settings: &Settings<Self>,
        head: &Parts,
        reject: impl FnOnce(Rejection<'_>) -> T,
    ) -> Outcome<Self, T> {
        let rules = self.load();
        match rules.decide(&settings.of(), head, reject) {
            Outcome::Admitted(granted) => Outcome::Admitted(grant(rules, granted)),
            Outcome::Rejected(rejected) => Outcome::Rejected(rejected),
            Outcome::Undecided(undecided) => Outcome::Undecided((rules, undecided)),
        }
    }

    fn resume(
        self: &Arc<Self>,
        (rules, undecided): Self::Undecided,
        settings: &Settings<Self>,
        head: Arc<Parts>,
    ) -> DecisionFuture<Self> {
        if let Some(max_wait) = settings.max_wait {
            let (live, queue) = (Arc::clone(self), Arc::clone(&settings.queue));
            return Box::pin(async move {
                let in_force = || live.load();
                super::shared::wait_until_decided(rules, undecided, queue, max_wait, head, in_force).await
            });
        }
        Box::pin(async move {
            let decided = decide_in_store(&rules, undecided).await;
            (rules, decided)
        })
    }

    fn finish<T>(
        self: &Arc<Self>,
        (rules, decided): Self::Decided,
        settings: &Settings<Self>,
        head: &Parts,
        reject: impl FnOnce(Rejection<'_>) -> T,
    ) -> Result<Grant<Self>, T> {
        let granted = rules.finish(decided, &settings.of(), head, reject)?;
        Ok(grant(rules, granted))
    }

    fn take_slots((rules, charge): &mut Self::Charge) -> Option<Self::Charge> {
        let slots = <SharedRules<Parts> as Decide>::take_slots(charge)?;
        Some((Arc::clone(rules), slots))
    }

    fn missing_cause(&self, head: &Parts) -> Option<MissingCause> {
        self.load().missing_cause(head)
    }

    fn refund(self: &Arc<Self>, queue: &Arc<Semaphore>, (rules, charge): Self::Charge) {
        Decide::refund(&rules, queue, charge);
    }

    fn settle(
        self: &Arc<Self>,
        queue: &Arc<Semaphore>,
        (rules, charge): Self::Charge,
        cost: &Cost<Parts>,
        actual: u64,
    ) {
        Decide::settle(&rules, queue, charge, cost, actual);
    }

    fn release(_: &Arc<Semaphore>, slots: Self::Charge) {
        drop(slots);
    }
    fn queue(self: &Arc<Self>, max_waiting: Option<usize>) -> Arc<Semaphore> {
        self.load().queue(max_waiting)
    }
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
