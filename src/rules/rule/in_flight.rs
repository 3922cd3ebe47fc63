use alloc::sync::Arc;

use super::Rule;
use super::kind::InFlight;
use crate::keyed::OnFull;
use crate::quota::Quota;

impl<R: ?Sized> Rule<R> {
    /// Creates a rule that admits up to `limit` requests at a time, 1 to 1,048,575. An admitted request holds a slot until its
    /// work is done.
    ///
    /// [`RuleSet::reserve`](crate::RuleSet::reserve) returns a [`Reservation`](crate::rules::Reservation), which holds the slot until it
    /// is dropped, refunded or settled. A [`check`](crate::RuleSet::check) holds nothing: it is denied if no slot is free. In the
    /// [HTTP layer](crate::http), a request holds its slot until the response, or until the end of the response body. A handler that upgrades the
    /// connection can hold it longer: see `http::InFlightSlot`.
    ///
    /// The rule can have a [key](Self::by), a condition, tiers, a limit by request and lists, and it can be in the shadow. It has
    /// no algorithm, cells, burst or further quota, and no [cost](Self::cost): each request holds one slot. If the table of keys
    /// is full of held slots, further keys are denied, unless the rule has [`admit_on_full`](Rule::admit_on_full).
    ///
    /// Nothing but a release frees a slot, so a denial has no retry time. A slot whose reservation is leaked
    /// ([`core::mem::forget`]) is held until the rule is removed, or its key is [reset](crate::RuleSet::reset). Slots are not
    /// saved. In `shared::SharedRules`, a store counts the slots of many machines, and the slots of a machine that vanishes are free
    /// within a term.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::hash::Hash;
    /// use ringgate::rules::RuleSetBuilder;
    /// use ringgate::{Key, ManualClock, Rule};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let user = Key::new("user", |user: &str, key| user.hash(key));
    /// let rules = RuleSetBuilder::new()
    ///     .rule(Rule::in_flight("exports", 2).by(&user))
    ///     .build_with(ManualClock::new(), [1, 2, 3, 4])?;
    /// let first = rules.reserve("alice").expect("a slot");
    /// let second = rules.reserve("alice").expect("a slot");
    /// assert!(rules.reserve("alice").is_err() && rules.reserve("bob").is_ok());
    /// // The first export has ended.
    /// drop(first);
    /// assert!(rules.reserve("alice").is_ok());
    /// # drop(second);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "concurrency")]
    pub fn in_flight(name: impl Into<Arc<str>>, limit: u64) -> Rule<R, InFlight> {
        let limit = Quota::in_flight(limit);
        Rule::of_kind(name, InFlight { limit }, OnFull::Deny)
    }
}

impl<R: ?Sized> Rule<R, InFlight> {
    /// Admits a key that finds the rule's table full of held slots, without a limit. By default it is denied.
    pub fn admit_on_full(mut self) -> Self {
        self.on_full = OnFull::Admit;
        self
    }
}
