pub(super) mod held_slots;
pub(super) mod state_charge;

use core::fmt;

use smallvec::SmallVec;

use self::held_slots::HeldSlots;
use self::state_charge::StateCharge;
use crate::receipt::Settled;
use crate::rules::condition::Cost;
use crate::rules::evaluate::key_hashes::Seeds;
use crate::rules::evaluate::rule_states::RuleStates;
use crate::rules::set::sharded_counts::{RuleEvent, ShardId};
use crate::time::Nanos;

/// The charges of an admitted request, and its slots in flight, for a later [`refund`](crate::RuleSet::refund) or
/// [`settle`](crate::RuleSet::settle).
///
/// If it is dropped, the permits stay charged. It borrows nothing, and can be settled after a reload. Then debt is charged to the
/// rules that are in force, and a charge to a state that was replaced is not refunded.
///
/// The slots of rules that limit [requests in flight](crate::Rule::in_flight) are released when it is dropped, refunded or
/// settled, also after a reload, and once each. A panic drops it. A reservation that is leaked ([`core::mem::forget`]) never
/// releases them.
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

    /// Moves the slots to a reservation of their own, which has no charges.
    pub(crate) fn take_slots(&mut self) -> Self {
        let slots = core::mem::replace(&mut self.slots, HeldSlots::new());
        Self::new(self.at, SmallVec::new(), slots)
    }

    /// The states that it was charged to, as waiters of a request name them. `None` if one of the charges was made to a catch-all,
    /// which decides requests of several keys.
    pub(crate) fn state_ids(&self, seeds: &Seeds) -> Option<SmallVec<[u64; 4]>> {
        let charges = self.charges.iter().chain(self.slots.charges());
        charges
            .map(|charge| {
                let of_key = !charge.receipt.is_of_catch_all();
                of_key.then(|| charge.state.id(&charge.extracted, seeds))
            })
            .collect()
    }

    /// Counts the admission of a request whose other charges were made, too.
    pub(crate) fn count_admitted(&self) {
        let shard = ShardId::current();
        for charge in self.charges.iter().chain(self.slots.charges()) {
            let permits = charge.extracted.permits;
            charge.state.count(shard, RuleEvent::Admitted(permits));
        }
    }

    /// Refunds the charges of a request that is not admitted, and releases its slots.
    pub(crate) fn undo(self) {
        let shard = ShardId::current();
        for charge in self.charges.iter().rev() {
            charge.state.undo(shard, &charge.extracted, &charge.receipt);
        }
    }

    /// Returns this reservation with the slots of another one, whose charges are not refunded.
    pub(crate) fn with_slots_of(mut self, other: Self) -> Self {
        self.slots.append(other.slots);
        self
    }

    /// Replaces the charges of `cost`, or all charges if it is `None`, by the `actual` amount.
    pub(crate) fn settle(
        self,
        cost: Option<&Cost<R>>,
        actual: u64,
        now: Nanos,
        in_force: &RuleStates<R>,
    ) -> Settled {
        let charges = self.charges.into_iter();
        let of_cost = charges.filter(|charge| cost.is_none_or(|cost| charge.state.extractor.has_cost(cost)));
        let settled = of_cost.map(|charge| charge.settle(actual, now, in_force));
        settled.max().unwrap_or(Settled::Exact)
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
