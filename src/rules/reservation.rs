use alloc::sync::Arc;
use core::fmt;

use smallvec::SmallVec;

use super::Rules;
use super::counts::{Me, Outcome};
use super::group::{Group, Subject};
use super::key::Cost;
use crate::receipt::{Receipt, Settled};
use crate::time::Nanos;

/// What an admitted request was charged, rule by rule: to be handed back to
/// [`refund`](super::RuleSet::refund) or [`settle`](super::RuleSet::settle). Dropping it leaves the permits spent.
///
/// It borrows nothing, and outlives a reload: debt goes to the rules that are in force by then; what was charged to a
/// state that others have taken the place of is not given back.
///
/// # Examples
///
/// ```
/// use ringgate::{Cost, ManualClock, Rule, RuleSetBuilder, Settled};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let tokens = Cost::new("tokens", |_: &str| 500);
/// let rules = RuleSetBuilder::new()
///     .rule(Rule::new("tokens", "10_000/min".parse()?).cost(&tokens))
///     .build_with(ManualClock::new(), [1, 2, 3, 4])?;
/// let reservation = rules.reserve("a question").expect("ten thousand are free");
/// // It was less than thought.
/// assert_eq!(rules.settle(reservation, &tokens, 180), Settled::Exact);
/// let look = rules.peek("a question").next().expect("there is a rule");
/// assert_eq!(look.remaining(), 9_820);
/// # Ok(())
/// # }
/// ```
#[must_use = "a reservation is what a refund needs"]
pub struct Reservation<R: ?Sized> {
    at: Nanos,
    charges: SmallVec<[Charge<R>; 4]>,
}

/// The charge to one state.
pub(super) struct Charge<R: ?Sized> {
    pub(super) group: Arc<Group<R>>,
    pub(super) subject: Subject,
    pub(super) receipt: Receipt,
}

impl<R: ?Sized> Reservation<R> {
    pub(super) const fn new(at: Nanos, charges: SmallVec<[Charge<R>; 4]>) -> Self {
        Self { at, charges }
    }

    /// The reading that the request was judged at.
    #[must_use]
    pub const fn at(&self) -> Nanos {
        self.at
    }

    /// Whether any rule was charged, a shadow rule included.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        !self.charges.is_empty()
    }

    /// Settles the charges of this cost, or all of them, at the `actual` one, by the rules in force.
    pub(super) fn settle(self, cost: Option<&Cost<R>>, actual: u64, now: Nanos, rules: &Rules<R>) -> Settled {
        let (mut forfeited, mut forgiven) = (0, 0);
        for charge in self.charges {
            if cost.is_none_or(|cost| charge.group.has_cost(cost)) {
                match charge.settle(actual, now, rules) {
                    Settled::Exact => {}
                    Settled::Forfeited(permits) => forfeited = permits.max(forfeited),
                    Settled::Forgiven(permits) => forgiven = permits.max(forgiven),
                }
            }
        }
        match (forfeited, forgiven) {
            (0, 0) => Settled::Exact,
            (0, forgiven) => Settled::Forgiven(forgiven),
            (forfeited, _) => Settled::Forfeited(forfeited),
        }
    }
}

impl<R: ?Sized> Charge<R> {
    fn settle(self, actual: u64, now: Nanos, rules: &Rules<R>) -> Settled {
        let Self {
            group,
            subject,
            receipt,
        } = self;
        let Subject {
            key, permits, tier, ..
        } = subject;
        let in_force = rules.groups.iter().any(|other| other.has_state_of(&group));
        if let Some(excess) = permits.checked_sub(actual) {
            // What others have inherited is spent there.
            if excess == 0 || (in_force && group.give_back(&subject, &receipt, excess)) {
                return Settled::Exact;
            }
            group.count_here(Me::new(), Outcome::Forfeited(excess));
            return Settled::Forfeited(excess);
        }
        let debt = actual - permits;
        let booked = if in_force {
            group.charge(key, Some(tier), now, debt)
        } else {
            let heirs = rules.groups.iter().filter(|other| other.counts_for(&group));
            // Of several, the one that could book least; of none, nobody is there to be charged.
            let booked = heirs.map(|heir| heir.charge(key, None, now, debt));
            booked.min().unwrap_or(debt)
        };
        match debt - booked {
            0 => Settled::Exact,
            forgiven => Settled::Forgiven(forgiven),
        }
    }
}

impl<R: ?Sized> fmt::Debug for Reservation<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("at", &self.at)
            .field("states", &self.charges.len())
            .finish_non_exhaustive()
    }
}
