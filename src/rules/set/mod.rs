use core::fmt;

use crate::algorithm::AnyAlgorithm;
use crate::clock::{Clock, DefaultClock};
use crate::quota::Quota;
use crate::receipt::Settled;
use crate::rules::condition::Cost;
use crate::rules::evaluate::admitted::Admitted;
use crate::rules::evaluate::denied::Denied;
use crate::rules::evaluate::peek::RulePeek;
use crate::rules::evaluate::reservation::Reservation;
use crate::rules::evaluate::rule_states::{NamedCounts, RuleStates};
use crate::time::Nanos;

pub(crate) mod builder;
pub(crate) mod clock_origin;
pub(crate) mod compile;
pub(crate) mod counts;
#[cfg(all(feature = "quanta", not(all(target_family = "wasm", target_os = "unknown"))))]
mod default_clock;
pub(crate) mod live_counts;
mod saved;
pub(crate) mod sharded_counts;
pub(crate) mod validate;

use counts::RuleCounts;
use live_counts::LiveCounts;

/// Several rules that decide together: a request is charged to every rule that applies to it, or to none.
///
/// # Guarantees
///
/// - No rule admits more than the bound of its algorithm (the table in the [crate documentation](crate)), for any interleaving of
///   threads.
/// - A denied request is charged to no rule, with one exception. The capacity of all rules is read before any is charged, and
///   another thread may take the last permits of one rule in between. The rules that were charged before it are then refunded, as
///   far as their algorithms can. At most the cost of the request stays charged in each of them, and is counted in
///   [`RuleCounts::forfeited`].
/// - The quotas of a rule share one state if its algorithm is sliding window, counter, classic or fixed. So do those of several such rules with the
///   same key, cost, condition, algorithm, cells, capacity and [`OnFull`](crate::keyed::OnFull), if these have no tiers, lists or
///   percentage. A state has up to sixteen quotas. It is decided in one atomic step, so nothing in it has to be refunded.
///
/// # Cost
///
/// A decision reads the clock once. Each state costs as much as a [`KeyedRateLimiter`](crate::KeyedRateLimiter), or as a
/// [`RateLimiter`](crate::RateLimiter) for a rule without a key. With several states, all are prefetched, then all are read, then all
/// are charged. Each charged rule adds two writes to memory that only this thread writes.
///
/// An admission by up to 16 states, and a denial by up to eight quotas, allocate nothing. A rule takes 8 KiB for its counts. A rule
/// with a key also has a table for its capacity (by default 2.1 MB with one word per key, and 42 MB with 60 cells). A reload to another window
/// holds two such tables until it is complete.
///
/// # Caveats
///
/// - Functions of a request must be deterministic, because a denial calls them again to find the violated rules.
/// - A key that is denied at its first request still gets an entry in the table, until that entry is idle.
///
/// # Examples
///
/// Each user can make two requests per second. The endpoint admits 50 requests in ten seconds and 100 in a minute:
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
/// assert_eq!(&*denied.violations().next().unwrap().rule, "user");
/// // The denied request was not charged to the endpoint.
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
    /// A rule that limits [requests in flight](crate::Rule::in_flight) is only read: it denies the request if no slot is free,
    /// and no slot is held. [`reserve`](Self::reserve) holds a slot.
    ///
    /// # Errors
    ///
    /// When a rule has too little capacity left. The error names every such rule.
    ///
    /// # Concurrency
    ///
    /// Each state is charged by one instruction, one after the other. Meanwhile a rule may count a charge that is refunded a moment
    /// later, because a later rule denies. Such a charge may cause the denial of another request, but never an admission.
    #[inline]
    pub fn check<'a>(&'a self, request: &'a R) -> Result<Admitted, Denied<'a, R>> {
        self.states.check(request, || self.clock.now(), &mut ())
    }

    /// Charges the request to every rule that applies to it or to none, at the time `now`, a reading of the rule set's
    /// [clock](Self::clock).
    ///
    /// # Errors
    ///
    /// When a rule has too little capacity left. The error names every such rule.
    #[inline]
    pub fn check_at<'a>(&'a self, request: &'a R, now: Nanos) -> Result<Admitted, Denied<'a, R>> {
        self.states.check(request, || now, &mut ())
    }

    /// Charges the request as [`check`](Self::check) does, and returns a reservation to [`refund`](Self::refund) or
    /// [`settle`](Self::settle) later.
    ///
    /// The reservation holds a reference to each charged state, and a slot of each rule that limits
    /// [requests in flight](crate::Rule::in_flight). It allocates for more than four states, and for slots.
    ///
    /// # Errors
    ///
    /// When a rule has too little capacity left. The error names every such rule.
    ///
    /// # Concurrency
    ///
    /// As for [`check`](Self::check), each state is charged by one instruction, one after the other.
    pub fn reserve<'a>(&'a self, request: &'a R) -> Result<Reservation<R>, Denied<'a, R>> {
        self.states.reserve(request, || self.clock.now(), &mut ())
    }

    /// Refunds a reservation to every rule that it was charged to, each under the conditions of
    /// [`RateLimiter::refund`](crate::RateLimiter::refund).
    ///
    /// If several rules could not refund all of it, the result is the largest amount that one of them has forfeited.
    ///
    /// # Concurrency
    ///
    /// The states are refunded one after the other. Meanwhile another request may be denied by a rule that is not refunded yet. No
    /// request is admitted too early.
    pub fn refund(&self, reservation: Reservation<R>) -> Settled {
        reservation.settle(None, 0, self.clock.now(), &self.states)
    }

    /// Replaces the reserved amount by the `actual` amount, for the rules with this cost.
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

    /// Removes the counts of the request's keys, in each rule with a key that applies to the request. Returns the number of states in
    /// which a key had an entry.
    ///
    /// Rules without a key keep their counts, because other requests share them. For this reason, the catch-all of a full table
    /// keeps its counts, too. Slots in flight of the keys are free again, and their release has no effect. Blocks
    /// stay: see [`unblock`](Self::unblock). As with [`KeyedRateLimiter::reset`](crate::KeyedRateLimiter::reset), a key whose table is full may get no new
    /// entry. A reservation of the key that is settled afterwards refunds nothing.
    ///
    /// # Concurrency
    ///
    /// The states are reset one after the other. A concurrent decision about a key takes effect before its reset or after it. While a
    /// reload carries counts over, a reset between reading and charging them does not undo the charge. Reset again after
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

    /// Forgets the violations of the request's keys, and ends their [blocks](crate::Rule::block), in each rule that applies to the
    /// request. Returns the number of rules that had blocked a key.
    ///
    /// # Concurrency
    ///
    /// A concurrent violation takes effect before this call or after it.
    pub fn unblock(&self, request: &R) -> usize {
        self.states.unblock(request, self.clock.now())
    }

    /// Returns the name of each rule with a [block](crate::Rule::block), and the number of its blocked keys.
    ///
    /// It reads the table of violations, 8 bytes for each key of the rule, so it is for a page of metrics and not for each request.
    pub fn blocked(&self) -> impl Iterator<Item = (&str, u64)> {
        self.states.blocked(self.clock.now())
    }

    /// Returns a read-only view of each quota that applies to the request, in the order of their states.
    ///
    /// The [block](crate::Rule::block) of a rule is one of the quotas while the key is blocked: see
    /// [`QuotaStatus::is_block`](crate::rules::QuotaStatus#structfield.is_block).
    ///
    /// While a reload is pending, a rule may occur twice: by its old state and by its new one.
    ///
    /// # Concurrency
    ///
    /// Each view reads its state when one of its methods is called, so two views may show different instants.
    pub fn peek<'a>(&'a self, request: &'a R) -> impl Iterator<Item = RulePeek<'a>> {
        self.states.peek(request, self.clock.now())
    }

    /// Returns the name and the counts of each rule, in the order in which the rules were added.
    ///
    /// It reads 8 KiB for each rule, so it is for a page of metrics and not for each request.
    ///
    /// # Concurrency
    ///
    /// The numbers are exact without concurrent decisions. Under load, they may be of slightly different instants.
    pub fn counts(&self) -> impl Iterator<Item = (&str, RuleCounts)> {
        self.states
            .rules
            .iter()
            .map(|rule| (&*rule.name, rule.counts.sum()))
    }

    /// Returns a handle to the current counts, for
    /// [`Observer::publish_counts`](crate::observe::Observer::publish_counts).
    pub fn live_counts(&self) -> LiveCounts<'_> {
        LiveCounts::new(&self.states)
    }

    /// Returns the name of the rule, the quota and the algorithm of each quota, in the order of the states. While a reload is pending, it
    /// lists the new rules. Quotas that share a state have one algorithm, and blocks have none.
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
    ///     .rule(Rule::new("users", "60/min".parse()?).by(&user))
    ///     .rule(Rule::new("all", "1000/min".parse()?))
    ///     .build_with(ManualClock::new(), [1, 2, 3, 4])?;
    /// let chosen = rules.algorithms().map(|(rule, _, algorithm)| format!("{rule}: {algorithm}"));
    /// let chosen: Vec<String> = chosen.collect();
    /// assert_eq!(chosen, ["users: one word of 16 cells in units of 4", "all: 60 cells"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn algorithms(&self) -> impl Iterator<Item = (&str, Quota, &AnyAlgorithm)> {
        let states = self.states.states.iter();
        let states = states.filter(|state| !state.retired && !state.is_block());
        states.flat_map(|state| {
            let algorithm = &state.algorithms.tiers[0];
            state
                .quotas
                .iter()
                .map(move |quota| (&*quota.name, quota.quota, algorithm))
        })
    }

    /// Returns the number of states. It is the number of atomic steps of a request to which all rules apply. A
    /// [block](crate::Rule::block) is a state that a request is not charged to.
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
