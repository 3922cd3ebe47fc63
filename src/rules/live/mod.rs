use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

#[cfg(feature = "config")]
use super::config::file_error::FileError;
use super::evaluate::rule_state::RuleState;
use super::evaluate::rule_states::RuleStates;
use super::migration::Migration;
use super::migration::carry_over::CarryOver;
use super::rule::error::RuleError;
use super::set::RuleSet;
use super::set::builder::RuleSetBuilder;
use crate::clock::{Clock, DefaultClock};
use crate::time::Nanos;

use published::{InUse, Published, Replaced};

mod published;

/// A rule set that can be replaced while it is in use, without a fresh budget for any key.
///
/// # Guarantees
///
/// - A decision does not wait for a reload.
/// - A rule continues an old rule if it has the same name, or was [renamed from](super::Rule::renamed_from) it, and their
///   keys have the same name. The counts are kept in one of two ways:
///   - *They are reused.* The new values hold from the next decision on. This is so after a change of:
///     - the limit of cells or of a fixed window, if its words can hold the new limit (a lowered limit can always be raised again);
///     - the rate of a token bucket, to a higher rate, or to a lower rate whose burst takes no longer to refill;
///     - the burst of a token bucket, up to the limit (a longer burst can grow to just below the next of 2, 4, 8, … times the
///       limit);
///     - the tiers of a ring;
///     - lists, percentages, condition, cost, or [`OnFull`](crate::keyed::OnFull). (The exception is a token bucket that changes to
///       or from [`Forget`](crate::keyed::OnFull::Forget). Its counts are charged to the new rule.)
///   - *They are charged to the new rule* after a change of:
///     - the window, algorithm, cells or capacity, or of the rules that share a state;
///     - the limit of a log, and any limit to one that needs wider words;
///     - the burst of a token bucket, to a much longer one;
///     - the form that a [sliding window](super::RuleAlgorithm::SlidingWindow) chooses, as for most limits of a rule in one word.
///
///     The permits that still count are charged as if they were spent at that moment, which is stricter. A token
///     bucket whose burst does not take longer to refill pays the debt of its old rate in the time in which the old bucket would have
///     paid it. Until the decisions in progress have ended, the old and the new limits are both enforced for the requests of the new
///     rule, and permits that are spent meanwhile count twice.
/// - Slots of rules that limit [requests in flight](crate::Rule::in_flight) are kept over a change of the limit, and released
///   once. A quota and such a limit do not continue each other.
/// - A new rule begins empty. So does a rule that was removed earlier, or whose key has another name. A removed rule is not
///   enforced from the next decision on.
/// - Over reloads that keep algorithm and window, no window admits more than the highest bound of the rules that were in force in
///   it. After any other reload, the permits that still counted and those that the new rule admits are together within the new
///   bound. The exception is that the old permits alone exceed it, because the old algorithm has admitted more than the new one
///   would.
///
/// The proof, and the models that check it, are in the documentation of the module [`rules`](super).
///
/// # Examples
///
/// ```
/// use ringgate::rules::RuleSetBuilder;
/// use ringgate::{LiveRules, ManualClock, Rule};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let rules = |quota: &str| -> Result<_, ringgate::ConfigError> {
///     Ok(RuleSetBuilder::<str>::new().rule(Rule::new("all", quota.parse()?)))
/// };
/// let live = LiveRules::new(rules("10/s")?.build_with(ManualClock::new(), [1, 2, 3, 4])?);
/// for _ in 0..10 {
///     assert!(live.load().check("request").is_ok());
/// }
/// live.store(&rules("12/s")?)?;
/// // Ten of the twelve permits are spent, so two are left.
/// assert!(live.load().check("request").is_ok());
/// assert!(live.load().check("request").is_ok());
/// assert!(live.load().check("request").is_err());
/// # Ok(())
/// # }
/// ```
pub struct LiveRules<R: ?Sized, C = DefaultClock> {
    current: Published<RuleSet<R, C>>,
    writer: Mutex<Writer<R, C>>,
}

/// The state of a reload, which one thread at a time changes.
struct Writer<R: ?Sized, C> {
    /// Replaced rule sets that a thread may still be using.
    previous: Vec<Replaced<RuleSet<R, C>>>,
    /// The carry-overs of the last reload that are not complete.
    carry_overs: Vec<CarryOver<R>>,
    /// The latest states that are no longer enforced, and whose permits did not all fit into their successors. Each has the time at
    /// which these permits expire.
    retained: Vec<(Arc<RuleState<R>>, Nanos)>,
}

/// The rules that were in force at the time of [`LiveRules::load`].
///
/// Hold it for a few decisions only. While it is held, a reload that changes windows leaves the old windows enforced, in addition to
/// the new ones.
///
/// # Examples
///
/// ```
/// use ringgate::rules::RuleSetBuilder;
/// use ringgate::{LiveRules, ManualClock, Rule};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let rules = RuleSetBuilder::<str>::new().rule(Rule::new("all", "1/s".parse()?));
/// let live = LiveRules::new(rules.build_with(ManualClock::new(), [1, 2, 3, 4])?);
/// // A denial borrows the loaded rules. Drop both as soon as the result is known.
/// let loaded = live.load();
/// assert!(loaded.check("request").is_ok());
/// let wait = loaded.check("request").map_err(|denied| denied.retry_after());
/// drop(loaded);
/// assert!(wait.is_err());
/// # Ok(())
/// # }
/// ```
pub struct LoadedRules<R: ?Sized, C>(InUse<RuleSet<R, C>>);

impl<R: ?Sized, C> Deref for LoadedRules<R, C> {
    type Target = RuleSet<R, C>;

    #[inline]
    fn deref(&self) -> &RuleSet<R, C> {
        &self.0
    }
}

impl<R: ?Sized, C: fmt::Debug> fmt::Debug for LoadedRules<R, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// The result of a successful reload.
///
/// # Examples
///
/// ```
/// use ringgate::rules::{Reloaded, RuleSetBuilder};
/// use ringgate::{LiveRules, ManualClock, Rule};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let rules = |quota: &str| -> Result<_, ringgate::ConfigError> {
///     Ok(RuleSetBuilder::<str>::new().rule(Rule::new("all", quota.parse()?)))
/// };
/// let live = LiveRules::new(rules("10/s")?.build_with(ManualClock::new(), [1, 2, 3, 4])?);
/// // A decision is in progress.
/// let loaded = live.load();
/// assert_eq!(live.store(&rules("100/min")?)?, Reloaded::Pending(1));
/// drop(loaded);
/// assert_eq!(live.finish(), Reloaded::Done);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reloaded {
    /// Only the new rules are enforced.
    Done,
    /// The new rules are enforced, and this number of old states too, whose counts are not charged to the new states yet. A decision
    /// by old rules is still in progress. [`LiveRules::finish`] completes the reload.
    Pending(usize),
}

/// The error of a reload. The rules have not changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReloadError {
    /// The file of the new rules cannot be read, or is invalid.
    #[cfg(feature = "config")]
    File(FileError),
    /// The new rules are invalid.
    Rules(RuleError),
    /// Too many old states (64 or more) are still enforced, because loaded rules are held for long. A single reload that changes
    /// the windows of many rules can leave so many.
    Pending(usize),
}

/// The number of enforced old states from which on a reload is rejected.
const MAX_PENDING: usize = 64;

/// The maximum number of states that are retained for one new state. The latest ones are kept.
const MAX_RETAINED: usize = 8;

/// The number of times that a reload yields to threads with old rules before it returns [`Reloaded::Pending`].
const MAX_YIELDS: usize = 100;

impl<R: ?Sized, C: Clock + Clone> LiveRules<R, C> {
    /// Creates live rules with a first rule set.
    pub fn new(rules: RuleSet<R, C>) -> Self {
        Self {
            current: Published::new(rules),
            writer: Mutex::new(Writer {
                previous: Vec::new(),
                carry_overs: Vec::new(),
                retained: Vec::new(),
            }),
        }
    }

    /// Returns the rules in force. This is wait-free, except for the first call of a thread.
    ///
    /// A [`Denied`](super::Denied) borrows the returned value, so keep the value in a variable while you use the denial. Do not hold
    /// either across an `.await`.
    #[inline]
    pub fn load(&self) -> LoadedRules<R, C> {
        LoadedRules(self.current.load())
    }

    /// Replaces the rules, and keeps the counts of rules that continue.
    ///
    /// This call waits for other threads in this method or in [`finish`](Self::finish). It does not wait for decisions. A change of
    /// windows reads every key of the old table.
    ///
    /// # Errors
    ///
    /// Returns an error if the rules are invalid, or if 64 or more old states are still enforced, and never
    /// [`File`](ReloadError::File). The rules are unchanged then.
    pub fn store(&self, rules: &RuleSetBuilder<R>) -> Result<Reloaded, ReloadError> {
        let mut writer = self.writer();
        if let Reloaded::Pending(states) = self.complete(&mut writer)
            && states >= MAX_PENDING
        {
            return Err(ReloadError::Pending(states));
        }
        let current = self.current.load();
        let (now, clock) = (current.clock.now(), current.clock.clone());
        writer.retained.retain(|&(_, until)| until > now);
        let retained: Vec<_> = writer.retained.iter().map(|(old, _)| Arc::clone(old)).collect();
        let Migration {
            mut states,
            retired,
            carry_overs,
            retained,
        } = rules.migrate(&current, &retained).map_err(ReloadError::Rules)?;
        drop(current);
        // Claim: rules 5, the old state is enforced beside the new one.
        states.states = states.states.into_iter().chain(retired).collect();
        self.publish(&mut writer, states, clock);
        let until = writer.retained.drain(..).map(|(_, until)| until);
        let retained = retained.into_iter().zip(until);
        writer.retained = retained.filter_map(|(old, until)| Some((old?, until))).collect();
        writer.carry_overs = carry_overs;
        for _ in 0..MAX_YIELDS {
            if self.complete(&mut writer) == Reloaded::Done {
                break;
            }
            thread::yield_now();
        }
        Ok(self.complete(&mut writer))
    }

    /// Completes a pending reload if no decision by old rules is in progress any more.
    pub fn finish(&self) -> Reloaded {
        self.complete(&mut self.writer())
    }

    fn writer(&self) -> MutexGuard<'_, Writer<R, C>> {
        // A poisoned lock is used: a panic leaves old states enforced in addition to new ones, which is stricter.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Charges the new states and removes the old ones, if every thread uses the new states.
    fn complete(&self, writer: &mut Writer<R, C>) -> Reloaded {
        // Claim: rules 4, grace lasts while a thread holds an earlier set.
        writer.previous.retain_mut(|set| !set.is_free());
        if writer.carry_overs.is_empty() {
            return Reloaded::Done;
        }
        if !writer.previous.is_empty() {
            let old = writer.carry_overs.iter().flat_map(CarryOver::enforced);
            return Reloaded::Pending(old.count());
        }
        let current = self.current.load();
        let (mut states, now) = (current.states.clone(), current.clock.now());
        // The clone is code of the user, so it runs before the steps that a panic would leave half done.
        let clock = current.clock.clone();
        drop(current);
        let mut has_barred = false;
        for carry_over in &mut writer.carry_overs {
            has_barred |= carry_over.bar_keys(now);
        }
        if has_barred {
            // Claim: rules 6, the keys are read after every thread sees the marks.
            self.publish(writer, states, clock);
            return self.complete(writer);
        }
        for carry_over in writer.carry_overs.drain(..) {
            if !carry_over.complete(now) {
                let until = |old: &Arc<RuleState<R>>| now.saturating_add(old.span());
                // Claim: rules reloading, permits that do not fit are retained.
                let states = carry_over.enforced().take(MAX_RETAINED);
                let retained = states.map(|old| (Arc::clone(old), until(old)));
                writer.retained.extend(retained);
            }
        }
        let all = states.states.into_iter();
        states.states = all.filter(|state| !state.retired).collect();
        self.publish(writer, states, clock);
        Reloaded::Done
    }

    fn publish(&self, writer: &mut Writer<R, C>, states: RuleStates<R>, clock: C) {
        let replaced = self.current.replace(RuleSet { states, clock });
        writer.previous.push(replaced);
    }
}

impl<R: ?Sized, C: fmt::Debug> fmt::Debug for LiveRules<R, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LiveRules")
            .field(&LoadedRules(self.current.load()))
            .finish()
    }
}

impl fmt::Display for ReloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            #[cfg(feature = "config")]
            Self::File(error) => error.fmt(f),
            Self::Rules(error) => error.fmt(f),
            Self::Pending(states) => write!(
                f,
                "{states} old states are still enforced (expected fewer than {MAX_PENDING}): loaded rules are held"
            ),
        }
    }
}

impl core::error::Error for ReloadError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            #[cfg(feature = "config")]
            Self::File(error) => Some(error),
            Self::Rules(error) => Some(error),
            Self::Pending(_) => None,
        }
    }
}
