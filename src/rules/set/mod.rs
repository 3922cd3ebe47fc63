use core::fmt;

use crate::clock::Clock;
use crate::clock::DefaultClock;
use crate::receipt::Settled;
use crate::rules::condition::Cost;
use crate::rules::evaluate::decision::{Admitted, Denied};
#[cfg(feature = "tower")]
use crate::rules::evaluate::key_hashes::KeyHashes;
use crate::rules::evaluate::peek::RulePeek;
use crate::rules::evaluate::reservation::Reservation;
use crate::rules::evaluate::rule_states::{NamedCounts, RuleStates};
use crate::time::Nanos;

pub(crate) mod builder;
pub(crate) mod compile;
pub(crate) mod counts;
#[cfg(feature = "observe")]
pub(crate) mod live_counts;
pub(crate) mod sharded_counts;

use counts::RuleCounts;
#[cfg(feature = "observe")]
use live_counts::LiveCounts;

/// Several rules, decided as one: a request is charged to every rule that applies to it, or to none.
///
/// # Guarantees
///
/// - No rule admits more than the bound of its algorithm (the table in the [crate documentation](crate)), however
///   threads interleave.
/// - A denied request is charged to no rule, with one exception. Capacity of all rules is read before any is charged, and
///   another thread may take the last permits of one rule in between. The rules charged before it are then refunded, as
///   far as their algorithms can (a counter ring until a later cell is entered). The rest, at most the cost of the
///   request, is counted in [`RuleCounts::forfeited`].
/// - Rules with the same key, cost, condition, algorithm (counter, classic or fixed), cells, capacity and
///   [`OnFull`](crate::keyed::OnFull), and without tiers, lists or a percentage, share one state of up to sixteen quotas. So do the
///   quotas of one such rule, which may have all of these. One state is decided in one atomic step, and nothing in
///   it has to be refunded.
///
/// # Cost
///
/// One reading of the clock, and for each state the cost of a [`KeyedRateLimiter`](crate::KeyedRateLimiter), or of a
/// [`RateLimiter`](crate::RateLimiter) for a rule without a key. With more than one state, all are prefetched, then all
/// are read, then all are charged. Each rule that is charged adds two writes to memory that only this thread writes.
///
/// No allocation for an admission by up to 16 states, or a denial by up to eight quotas. A rule takes 8 KiB for its
/// counts, and with a key a table for its capacity (1.4 MB at the default, with one word a key). A reload to another window
/// holds two such tables until it is done.
///
/// # Caveats
///
/// - Functions of a request must be deterministic: a denial calls them again to name its rules.
/// - A key that is denied at its first request still gets an entry in the table, until that entry is idle.
///
/// # Examples
///
/// Two a second for each user, on an endpoint that takes 50 in ten seconds and 100 in a minute:
///
/// ```
/// use core::hash::Hash;
/// use ringgate::rules::RuleSetBuilder;
/// use ringgate::{Key, ManualClock, Rule};
///
/// struct Request {
///     user: &'static str,
/// }
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let user = Key::new("user", |request: &Request, key| request.user.hash(key));
/// let rules = RuleSetBuilder::new()
///     .rule(Rule::new("user", "2/s".parse()?).by(&user))
///     .rule(Rule::new("endpoint", "50/10s".parse()?).also("100/60s".parse()?))
///     .build_with(ManualClock::new(), [1, 2, 3, 4])?;
///
/// let request = Request { user: "alice" };
/// assert!(rules.check(&request).is_ok());
/// assert!(rules.check(&request).is_ok());
/// let denied = rules.check(&request).unwrap_err();
/// assert_eq!(denied.violations().next().unwrap().rule(), "user");
/// // The endpoint was charged two, not three.
/// let endpoint = rules.peek(&request).find(|peek| peek.rule() == "endpoint").unwrap();
/// assert_eq!(endpoint.remaining(), 48);
/// # Ok(())
/// # }
/// ```
pub struct RuleSet<R: ?Sized, C = DefaultClock> {
    pub(crate) states: RuleStates<R>,
    pub(crate) clock: C,
}

impl<R: ?Sized, C: Clock> RuleSet<R, C> {
    /// Charges the request to every rule that applies to it, or to none.
    ///
    /// # Errors
    ///
    /// When a rule has too little capacity left. The error names every such rule.
    ///
    /// # Concurrency
    ///
    /// Each state is charged by one instruction. Between the first and the last, another request may find a rule charged
    /// by a request that is refunded a moment later. It is then denied, never admitted, because of it.
    #[inline]
    pub fn check<'a>(&'a self, request: &'a R) -> Result<Admitted, Denied<'a, R>> {
        self.states.check(request, || self.clock.now(), None)
    }

    /// Charges the request as [`check`](Self::check) does. Keys whose hashes are known are not extracted again.
    #[cfg(feature = "tower")]
    #[inline]
    pub(crate) fn check_with<'a>(
        &'a self,
        request: &'a R,
        hashes: Option<&mut KeyHashes>,
    ) -> Result<Admitted, Denied<'a, R>> {
        self.states.check(request, || self.clock.now(), hashes)
    }

    /// Charges the request to every rule that applies to it, or to none, at a time that the caller has read from the
    /// rule set's [clock](Self::clock).
    ///
    /// # Errors
    ///
    /// When a rule has too little capacity left. The error names every such rule.
    #[inline]
    pub fn check_at<'a>(&'a self, request: &'a R, now: Nanos) -> Result<Admitted, Denied<'a, R>> {
        self.states.check(request, || now, None)
    }

    /// Charges the request as [`check`](Self::check) does, and returns what a later [`refund`](Self::refund) or
    /// [`settle`](Self::settle) needs.
    ///
    /// Allocates when more than four states are charged, and holds a reference to each.
    ///
    /// # Errors
    ///
    /// When a rule has too little capacity left. The error names every such rule.
    ///
    /// # Concurrency
    ///
    /// As for [`check`](Self::check), each state is charged by one instruction, one after the other.
    pub fn reserve<'a>(&'a self, request: &'a R) -> Result<Reservation<R>, Denied<'a, R>> {
        self.states.reserve(request, || self.clock.now())
    }

    /// Refunds a reservation to every rule that it was charged to, each under the conditions of
    /// [`RateLimiter::refund`](crate::RateLimiter::refund).
    ///
    /// If several rules could not refund all of it, the result is the largest amount that one of them has forfeited.
    ///
    /// # Concurrency
    ///
    /// The states are refunded one after the other. Meanwhile another request may be denied by a rule
    /// that is not refunded yet; none is admitted too early.
    pub fn refund(&self, reservation: Reservation<R>) -> Settled {
        reservation.settle(None, 0, self.clock.now(), &self.states)
    }

    /// Replaces the reserved amount by the `actual` one, for the rules with this cost.
    ///
    /// An excess is refunded as by [`refund`](Self::refund). A shortfall is charged now, as debt. Rules with another cost
    /// keep their charge.
    ///
    /// # Concurrency
    ///
    /// Each state is settled by one instruction, one after the other.
    pub fn settle(&self, reservation: Reservation<R>, cost: &Cost<R>, actual: u64) -> Settled {
        reservation.settle(Some(cost), actual, self.clock.now(), &self.states)
    }

    /// Forgets what the keys of the request have spent, in each rule with a key that applies to it. Returns the number of
    /// states in which a key had an entry.
    ///
    /// Rules without a key keep their counts, because other requests share them. So do permits that the catch-all of a full
    /// table has admitted. As with [`KeyedRateLimiter::reset`](crate::KeyedRateLimiter::reset), a key whose table is full may
    /// find no new entry. A reservation of the key that is settled afterwards refunds nothing.
    ///
    /// # Concurrency
    ///
    /// Each state is reset by itself. A concurrent decision about a key takes effect before its reset or after it. While a
    /// reload carries counts over, a reset between reading and charging them does not undo the charge: reset again after
    /// [`LiveRules::finish`](crate::LiveRules::finish).
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
    ///     .rule(Rule::new("login", "1/h".parse()?).by(&user))
    ///     .build_with(ManualClock::new(), [1, 2, 3, 4])?;
    /// assert!(rules.check("alice").is_ok() && rules.check("alice").is_err());
    /// // The user has confirmed the address.
    /// assert_eq!(rules.reset("alice"), 1);
    /// assert!(rules.check("alice").is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub fn reset(&self, request: &R) -> usize {
        self.states.reset(request, self.clock.now())
    }

    /// Returns a read-only view of each quota that applies to the request, in the order of their states.
    ///
    /// While a reload is pending, a rule may occur twice: by its old state and by its new one.
    ///
    /// # Concurrency
    ///
    /// Each view reads its state when one of its methods is called, so two views may show different instants.
    pub fn peek<'a>(&'a self, request: &'a R) -> impl Iterator<Item = RulePeek<'a>> {
        self.states.peek(request, self.clock.now())
    }

    /// Passes the views of [`peek`](Self::peek), at a time that was read from the rule set's clock, to `view`. Keys whose
    /// hashes are known are not extracted again.
    #[cfg(feature = "tower")]
    pub(crate) fn peek_each<'a>(
        &'a self,
        request: &R,
        now: Nanos,
        hashes: &mut KeyHashes,
        view: impl FnMut(RulePeek<'a>),
    ) {
        self.states.peek_each(request, now, hashes, view);
    }

    /// Returns the name and the counts of each rule, in the order in which the rules were added.
    ///
    /// Reads 8 KiB for each rule: meant for a page of metrics, not for each request.
    ///
    /// # Concurrency
    ///
    /// Exact while no thread decides. Under load, the numbers may be of slightly different instants.
    pub fn counts(&self) -> impl Iterator<Item = (&str, RuleCounts)> {
        self.states
            .rules
            .iter()
            .map(|rule| (&*rule.name, rule.counts.sum()))
    }

    /// Returns a handle to the counts as they go on, for
    /// [`Observer::publish_counts`](crate::observe::Observer::publish_counts).
    #[cfg(feature = "observe")]
    pub fn live_counts(&self) -> LiveCounts<'_> {
        LiveCounts::new(&self.states.rules)
    }

    /// Returns the number of states: the atomic steps of a request to which all rules apply.
    #[must_use]
    pub fn states(&self) -> usize {
        self.states.states.len()
    }

    /// Returns the clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }
}

impl<R: ?Sized, C: fmt::Debug> fmt::Debug for RuleSet<R, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = |rule: &NamedCounts| (alloc::sync::Arc::clone(&rule.name), rule.counts.sum());
        let rules: alloc::vec::Vec<_> = self.states.rules.iter().map(counts).collect();
        f.debug_struct("RuleSet")
            .field("rules", &rules)
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}
