//! What an account is waited for: until a budget was pushed, a hold was asked for, or what was in the way has been heard of.

use core::time::Duration;

use tokio::time::timeout;

use super::asking::Case;
use super::{Held, shut};
use crate::account::Said;
use crate::redis::answer::Look;
use crate::redis::desk::{Ticket, nanos};
use crate::redis::looks::part;
use crate::redis::shared_rules::{NodeBooks, SharedRules};
use crate::redis::store_error::{StoreError, StoreErrorKind};
use crate::rules::{Mode, Planned, Step, Way};

/// What became of a part that an account is to decide.
pub(super) enum Outcome {
    Held,
    Full(Look),
    /// The store decides, and leaves so much of the limit alone.
    Ask {
        reserve: u64,
    },
    Failed(StoreError),
}

/// What the account of a part says that the store has refused.
pub(super) enum OwnHold {
    HasRoom,
    WasInTheWay,
    IsNotInTheWay,
}

/// How often somebody waits for an account of a budget, before the store decides about it like about any other.
const ROUNDS: u32 = 8;

/// The longest that an account may not be heard of while somebody waits: calls end long before.
const PATIENCE: Duration = Duration::from_secs(1);

impl<R: ?Sized> SharedRules<R> {
    /// Takes a part of its account, and waits for that if it is of a budget.
    pub(super) async fn by_account(
        &self,
        planned: &Planned<'_>,
        step: &Step,
        quota: usize,
        held: &mut Held<'_, R>,
    ) -> Outcome {
        let Some(node) = &self.books else {
            return Outcome::Ask { reserve: 0 };
        };
        let (books, part, key) = (&node.books, step.first + quota, step.account(quota));
        let permits = step.permits;
        let full = |left, more| Outcome::Full(shut(planned, left, more, books.clock.now()));
        let (mut at, said) = held.spend(books, part, key, permits);
        match said {
            Said::Room { .. } => return Outcome::Held,
            Said::Shut { left, more } => return full(left, more),
            Said::Short => {}
            Said::NotYours => match books.find_or_make(key, || ticket(planned, node)) {
                Some(made) => {
                    at = made;
                    books.miss(at, permits);
                }
                None => return Outcome::Ask { reserve: 0 },
            },
        }
        let Mode::Sync { pending, .. } = planned.mode else {
            return self.by_hold(planned, (at, part, key), permits, held).await;
        };
        let reserve = pending.min(planned.limit);
        if permits > reserve {
            // No budget is ever so large. What this node may have of one is left alone.
            return Outcome::Ask { reserve };
        }
        let failures = books.lock().desks[at].failures();
        for _ in 0..ROUNDS {
            // Before the look: whoever is heard of after it tells us.
            let heard = books.heard_of(at).notified();
            match held.spend(books, part, key, permits).1 {
                Said::Room { .. } => return Outcome::Held,
                Said::Shut { left, more } => return full(left, more),
                Said::NotYours => return Outcome::Ask { reserve },
                Said::Short => books.miss(at, permits),
            }
            books.nudge(at, true);
            if timeout(PATIENCE, heard).await.is_err() {
                let detail = "an account was not heard of";
                return Outcome::Failed(StoreError::new(StoreErrorKind::TimedOut, detail));
            }
            let inside = books.lock();
            if inside.desks[at].failures() != failures
                && let Some(error) = &inside.error
            {
                return Outcome::Failed(error.clone());
            }
        }
        Outcome::Ask { reserve }
    }

    /// Waits for the question about an account that many ask for, once and for no longer than a period: one call for all of
    /// them, instead of one for each.
    async fn by_hold(
        &self,
        planned: &Planned<'_>,
        (at, part, key): (usize, usize, u64),
        permits: u64,
        held: &mut Held<'_, R>,
    ) -> Outcome {
        let Some(node) = &self.books else {
            return Outcome::Ask { reserve: 0 };
        };
        let books = &node.books;
        let is_hot = books.lock().desks[at].is_hot(&books.accounts[at]);
        if !is_hot || books.accounts[at].is_shut(books.clock.now()) {
            return Outcome::Ask { reserve: 0 };
        }
        // Before the look: whoever is heard of after it tells us.
        let heard = books.heard_of(at).notified();
        match held.spend(books, part, key, permits).1 {
            Said::Room { .. } => return Outcome::Held,
            Said::Shut { left, more } => return Outcome::Full(shut(planned, left, more, books.clock.now())),
            Said::NotYours => return Outcome::Ask { reserve: 0 },
            Said::Short => {}
        }
        books.miss(at, permits);
        books.nudge(at, true);
        let _ = timeout(Duration::from_nanos(node.period), heard).await;
        match held.spend(books, part, key, permits).1 {
            Said::Room { .. } => Outcome::Held,
            Said::Shut { left, more } => Outcome::Full(shut(planned, left, more, books.clock.now())),
            Said::Short | Said::NotYours => Outcome::Ask { reserve: 0 },
        }
    }

    /// Looks at the account of a part that the store has refused: what was in the way may be what this very node holds, or
    /// is about to be granted, or to give back. Nobody is refused for that.
    pub(super) async fn own_hold(&self, case: &Case<'_>, part: usize, held: &mut Held<'_, R>) -> OwnHold {
        let step = case.step_of(part);
        let (Some(node), Mode::Lease { .. }, Way::Accounts) =
            (&self.books, case.planned[part].mode, step.way)
        else {
            return OwnHold::IsNotInTheWay;
        };
        let (books, key) = (&node.books, step.account(part - step.first));
        let Some(at) = books.find(key) else {
            return OwnHold::IsNotInTheWay;
        };
        // Before the look: whoever is heard of after it tells us.
        let heard = books.heard_of(at).notified();
        match held.spend(books, part, key, step.permits).1 {
            Said::Room { .. } => return OwnHold::HasRoom,
            Said::Shut { .. } | Said::NotYours => return OwnHold::IsNotInTheWay,
            Said::Short => {}
        }
        if !books.lock().desks[at].is_asking() {
            return OwnHold::IsNotInTheWay;
        }
        let _ = timeout(Duration::from_nanos(node.period), heard).await;
        match held.spend(books, part, key, step.permits).1 {
            Said::Room { .. } => OwnHold::HasRoom,
            Said::Shut { .. } | Said::NotYours => OwnHold::IsNotInTheWay,
            Said::Short => OwnHold::WasInTheWay,
        }
    }
}

/// What an account is made for.
fn ticket(planned: &Planned<'_>, node: &NodeBooks) -> Ticket {
    let (is_hold, most, period) = match planned.mode {
        Mode::Sync { period, pending } => (false, pending, nanos(period)),
        Mode::Lease { permits } => (true, permits, node.period),
        // Which need none.
        Mode::Local | Mode::Strict => (true, 0, node.period),
    };
    // A budget must outlast some pushes.
    let term = if is_hold {
        node.term
    } else {
        node.term.max(4 * period)
    };
    Ticket {
        part: part(planned),
        is_hold,
        most: most.min(planned.limit),
        period,
        term,
        margin: node.books.clock.margin(term),
        // Of several quotas that are judged by one state, one charges it.
        stand_in: (planned.place == 0).then_some((planned.group, planned.key, planned.tier)),
    }
}
