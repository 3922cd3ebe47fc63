use alloc::sync::Arc;
use core::fmt;

use smallvec::SmallVec;

use super::extractor::Extracted;
use super::held_slots::HeldSlots;
use super::rule_state::RuleState;
use super::rule_states::RuleStates;
use crate::receipt::{Receipt, Settled};
use crate::rules::condition::Cost;
use crate::rules::set::sharded_counts::{RuleEvent, ShardId};
use crate::time::Nanos;

/// The charges of an admitted request, and its slots in flight, for a later [`refund`](super::super::RuleSet::refund) or
/// [`settle`](super::super::RuleSet::settle).
///
/// If it is dropped, the permits stay charged. It borrows nothing, and can be settled after a reload. Then debt is charged to the
/// rules that are in force, and a charge to a state that was replaced is not refunded.
///
/// The slots of rules that limit [requests in flight](crate::Rule::in_flight) are released when it is dropped, refunded or settled,
/// once each, also by a panic, and also after a reload. A reservation that is leaked ([`core::mem::forget`]) never releases them.
///
/// # Examples
///
/// ```
/// use ringgate::rules::{Cost, RuleSetBuilder};
/// use ringgate::{ManualClock, Rule, Settled};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let tokens = Cost::new("tokens", |_: &str| 500);
/// let rules = RuleSetBuilder::new()
///     .rule(Rule::new("tokens", "10_000/min".parse()?).cost(&tokens))
///     .build_with(ManualClock::new(), [1, 2, 3, 4])?;
/// let reservation = rules.reserve("a question").expect("ten thousand are left");
/// // The answer has used fewer tokens than were reserved.
/// assert_eq!(rules.settle(reservation, &tokens, 180), Settled::Exact);
/// let peek = rules.peek("a question").next().expect("there is a rule");
/// assert_eq!(peek.remaining(), 9_820);
/// # Ok(())
/// # }
/// ```
#[must_use = "a refund needs the reservation"]
pub struct Reservation<R: ?Sized> {
    at: Nanos,
    charges: SmallVec<[StateCharge<R>; 4]>,
    slots: HeldSlots<R>,
}

/// The charge to one state.
pub(crate) struct StateCharge<R: ?Sized> {
    pub(crate) state: Arc<RuleState<R>>,
    pub(crate) extracted: Extracted,
    pub(crate) receipt: Receipt,
}

impl<R: ?Sized> Reservation<R> {
    pub(crate) const fn new(at: Nanos, charges: SmallVec<[StateCharge<R>; 4]>, slots: HeldSlots<R>) -> Self {
        Self { at, charges, slots }
    }

    /// Returns the reading of the clock that the decision used.
    #[must_use]
    pub const fn at(&self) -> Nanos {
        self.at
    }

    /// Returns whether any rule was charged, including rules in the shadow.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        !self.charges.is_empty() || self.holds_slots()
    }

    /// Returns whether it holds a slot of a rule that limits requests in flight.
    #[must_use]
    pub const fn holds_slots(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Takes the slots, in a reservation without charges.
    #[cfg(feature = "tower")]
    pub(crate) fn take_slots(&mut self) -> Self {
        let slots = core::mem::replace(&mut self.slots, HeldSlots::new());
        Self::new(self.at, SmallVec::new(), slots)
    }

    /// Replaces the charges of this cost, or all of them, by the `actual` amount.
    pub(crate) fn settle(
        self,
        cost: Option<&Cost<R>>,
        actual: u64,
        now: Nanos,
        in_force: &RuleStates<R>,
    ) -> Settled {
        let (mut forfeited, mut forgiven) = (0, 0);
        for charge in self.charges {
            if cost.is_none_or(|cost| charge.state.extractor.has_cost(cost)) {
                match charge.settle(actual, now, in_force) {
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

impl<R: ?Sized> StateCharge<R> {
    fn settle(self, actual: u64, now: Nanos, in_force: &RuleStates<R>) -> Settled {
        let Self {
            state,
            extracted,
            receipt,
        } = self;
        let Extracted {
            key, permits, limit, ..
        } = extracted;
        let is_in_force = in_force
            .states
            .iter()
            .any(|other| other.shares_storage_with(&state));
        if let Some(excess) = permits.checked_sub(actual) {
            // A charge to a replaced state is not refunded: its successors were charged the amount without a receipt.
            if excess == 0 || (is_in_force && state.refund(&extracted, &receipt, excess)) {
                return Settled::Exact;
            }
            state.count_state(ShardId::current(), RuleEvent::Forfeited(excess));
            return Settled::Forfeited(excess);
        }
        let debt = actual - permits;
        let charged = if is_in_force {
            state.charge_debt(key, limit, now, debt)
        } else {
            let successors = in_force
                .states
                .iter()
                .filter(|other| other.shares_counts_with(&state));
            let charged = successors
                .map(|successor| successor.charge_debt_of_any_tier(key, limit.lowered(), now, debt));
            // If there are several successors, the result is the least that one of them was charged. If there is none, nothing
            // is left to charge.
            charged.min().unwrap_or(debt)
        };
        match debt - charged {
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
            .field("slots", &self.slots)
            .finish_non_exhaustive()
    }
}
