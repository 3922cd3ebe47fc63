#![doc = include_str!("rules.md")]

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use crate::clock::Clock;
#[cfg(feature = "quanta")]
use crate::clock::QuantaClock;
use crate::receipt::Settled;
use crate::time::Nanos;

mod builder;
#[cfg(feature = "config")]
mod config;
mod counts;
mod group;
mod judge;
mod key;
mod live;
#[cfg(feature = "observe")]
mod live_counts;
mod mode;
mod on_error;
mod peek;
mod policy;
mod refused;
mod reservation;
mod rule;
mod share;
#[cfg(feature = "redis")]
mod shared;
mod state;
mod succession;
mod view;
#[cfg(feature = "tokio")]
mod waited;
#[cfg(feature = "watch")]
mod watch;

pub use builder::RuleSetBuilder;
#[cfg(feature = "config")]
pub use config::{AnyExtractor, Extractors, FileError, FileProblem, Format, ReloadError};
pub use counts::RuleCounts;
pub use key::{Condition, Cost, Key, Missing, TierOf};
pub use live::{LiveRules, LoadedRules, Reloaded, ReplaceError};
#[cfg(feature = "observe")]
pub use live_counts::LiveCounts;
pub use mode::Mode;
pub use on_error::OnError;
pub use peek::RulePeek;
pub use refused::{Passed, Refused};
pub use reservation::Reservation;
pub use rule::{Rule, RuleAlgorithm, RuleError};
#[cfg(feature = "redis")]
pub use shared::KeyParts;
pub use view::RuleView;
#[cfg(feature = "watch")]
pub use watch::{RulesWatcher, WatchError};

#[cfg(any(feature = "observe", feature = "redis"))]
pub(crate) use counts::Me;
pub(crate) use counts::Tallies;
use group::{Group, Seeds};
#[cfg(feature = "redis")]
pub(crate) use shared::{
    Case, Full, LocalBooks, Outline, PaidHere, Plan, Planned, SharedPlan, Step, Taken, Way,
};
#[cfg(feature = "tokio")]
pub(crate) use waited::Waited;

/// Several rules, judged as one: a request is admitted when every rule that is about it admits it, and
/// otherwise charged to none.
///
/// # Guarantee
///
/// - Whatever the threads do, no rule admits more than its algorithm's bound (the table in the [crate
///   documentation](crate)).
/// - A refused request is charged nowhere, except when another thread took the last permits of one
///   rule between the look at it and the step that takes: then what other rules were charged
///   is given back, as far as their algorithms can (a counter ring while no later cell was entered), and
///   the rest, at most the request's own cost, is counted in [`RuleCounts::forfeited`].
/// - Rules with the same key, cost, condition, algorithm (counter, classic or fixed), cells, capacity and
///   [`OnFull`](crate::OnFull), without tiers, lists, shadow or share, are decided in one step, up to sixteen quotas; so
///   are the quotas of one such rule, whatever else it says. Nothing has to be given back between them.
///
/// # Cost
///
/// One reading of the clock, and for each state (of rules that are decided in one step) what a
/// [`KeyedRateLimiter`](crate::KeyedRateLimiter) needs, or a [`RateLimiter`](crate::RateLimiter) for a rule
/// without a key. With more than one state, all are looked at before anything is taken; their memory is asked for
/// at once. Two words of the thread's own are written for each rule that is charged. Nothing is allocated when a
/// request is admitted (by up to 16 states), nor when it is refused by up to eight quotas. A rule takes 8 KiB for its
/// counts, and with a key a table for its capacity (1.4 MB at the default, with one word a key); a reload with another
/// window takes that twice for a while.
///
/// # Caveats
///
/// - Functions of a request must answer the same when they are asked again: a refusal asks them to name its rules.
/// - A key that is refused at its first request has an entry in its rule's table all the same, until that is idle.
///
/// # Examples
///
/// Two a second for each user, on an endpoint that takes 50 in ten seconds and 100 in a minute:
///
/// ```
/// use core::hash::Hash;
/// use ringgate::{Key, ManualClock, Rule, RuleSetBuilder};
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
/// let refused = rules.check(&request).unwrap_err();
/// assert_eq!(refused.violations().next().unwrap().rule(), "user");
/// // The endpoint was charged two, not three.
/// let endpoint = rules.peek(&request).find(|peek| peek.rule() == "endpoint").unwrap();
/// assert_eq!(endpoint.remaining(), 48);
/// # Ok(())
/// # }
/// ```
pub struct RuleSet<R: ?Sized, #[cfg(feature = "quanta")] C = QuantaClock, #[cfg(not(feature = "quanta"))] C> {
    rules: Rules<R>,
    clock: C,
}

/// What a rule set consists of, apart from its clock.
pub(crate) struct Rules<R: ?Sized> {
    names: Box<[Named]>,
    groups: Box<[Arc<Group<R>>]>,
    seeds: Seeds,
}

/// A rule as it is seen from outside.
#[derive(Debug)]
struct Named {
    name: Arc<str>,
    tallies: Arc<Tallies>,
}

impl<R: ?Sized> Clone for Rules<R> {
    fn clone(&self) -> Self {
        let named = |rule: &Named| Named {
            name: Arc::clone(&rule.name),
            tallies: Arc::clone(&rule.tallies),
        };
        Self {
            names: self.names.iter().map(named).collect(),
            groups: self.groups.clone(),
            seeds: self.seeds.clone(),
        }
    }
}

#[cfg(feature = "quanta")]
impl<R: ?Sized> RuleSet<R> {
    /// A rule set without rules yet.
    pub fn builder() -> RuleSetBuilder<R> {
        RuleSetBuilder::new()
    }
}

impl<R: ?Sized, C: Clock> RuleSet<R, C> {
    /// Takes what the request costs of every rule that is about it, if all of them have room.
    ///
    /// # Errors
    ///
    /// When one has not, or more; says which.
    ///
    /// # Concurrency
    ///
    /// Each state is charged at one instruction. Between the first and the last of them another request may
    /// find a rule charged by one that is given back a moment later, and be refused for it; never admitted.
    #[inline]
    pub fn check<'a>(&'a self, request: &'a R) -> Result<Passed, Refused<'a, R>> {
        self.rules.check(request, || self.clock.now())
    }

    /// As [`check`](Self::check), at the time `now`, which the caller has read from this rule set's
    /// [clock](Self::clock).
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    #[inline]
    pub fn check_at<'a>(&'a self, request: &'a R, now: Nanos) -> Result<Passed, Refused<'a, R>> {
        self.rules.check(request, || now)
    }

    /// As [`check`](Self::check), with what is needed to give the charge back or to settle it at its actual
    /// cost later.
    ///
    /// Allocates when more than four states are charged, and counts a reference to each.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    ///
    /// # Concurrency
    ///
    /// As [`check`](Self::check).
    pub fn reserve<'a>(&'a self, request: &'a R) -> Result<Reservation<R>, Refused<'a, R>> {
        self.rules.reserve(request, || self.clock.now())
    }

    /// Gives back what a reservation was charged, with the conditions of
    /// [`RateLimiter::refund`](crate::RateLimiter::refund) for each rule; of several that could not give all
    /// back, says the most.
    ///
    /// # Concurrency
    ///
    /// Each state gets its permits back at one instruction, one state after the other: another request may meanwhile be
    /// refused by a rule whose turn is yet to come, and never be admitted for it.
    pub fn refund(&self, reservation: Reservation<R>) -> Settled {
        reservation.settle(None, 0, self.clock.now(), &self.rules)
    }

    /// Settles the rules with this cost at the `actual` one: what was taken too much is given back as by
    /// [`refund`](Self::refund), what was taken too little is charged now, as debt. Other rules keep
    /// their charge.
    ///
    /// # Concurrency
    ///
    /// As [`refund`](Self::refund).
    pub fn settle(&self, reservation: Reservation<R>, cost: &Cost<R>, actual: u64) -> Settled {
        reservation.settle(Some(cost), actual, self.clock.now(), &self.rules)
    }

    /// Looks at the rules that are about the request, and changes nothing: one look for each quota, in the order of their
    /// states. While a reload is pending, a rule may come twice.
    ///
    /// # Concurrency
    ///
    /// Each look is taken when it is asked: of two rules, they may be of different instants.
    pub fn peek<'a>(&'a self, request: &'a R) -> impl Iterator<Item = RulePeek<'a>> {
        self.rules.peek(request, self.clock.now())
    }

    /// As [`peek`](Self::peek), at a time that was read from the rule set's clock.
    #[cfg(feature = "tower")]
    pub(crate) fn peek_at<'a>(&'a self, request: &'a R, now: Nanos) -> impl Iterator<Item = RulePeek<'a>> {
        self.rules.peek(request, now)
    }

    /// What each rule has done so far, by its name, in the order in which they were given.
    ///
    /// Looks at 8 KiB for each rule: for a page that is asked for now and then, not for each request.
    ///
    /// # Concurrency
    ///
    /// Exact when nobody decides; read under load, the numbers may be of slightly different instants.
    pub fn counts(&self) -> impl Iterator<Item = (&str, RuleCounts)> {
        self.rules
            .names
            .iter()
            .map(|rule| (&*rule.name, rule.tallies.sum()))
    }

    /// The same as they go on, for [`Observer::publish_counts`](crate::Observer::publish_counts).
    #[cfg(feature = "observe")]
    pub fn live_counts(&self) -> LiveCounts<'_> {
        LiveCounts::new(&self.rules.names)
    }

    /// How many states the rules are decided by: as few steps does a request need that all rules are about.
    #[must_use]
    pub fn states(&self) -> usize {
        self.rules.groups.len()
    }

    /// The clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }
}

impl<R: ?Sized, C: fmt::Debug> fmt::Debug for RuleSet<R, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self
            .rules
            .names
            .iter()
            .map(|rule| (&rule.name, rule.tallies.sum()));
        f.debug_struct("RuleSet")
            .field("rules", &names.collect::<alloc::vec::Vec<_>>())
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}
