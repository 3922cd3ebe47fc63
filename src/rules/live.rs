use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use super::builder::RuleSetBuilder;
use super::group::{Group, Seeds};
use super::rule::RuleError;
use super::succession::{self, Retiring, Succession};
use super::{RuleSet, Rules};
use crate::clock::Clock;
#[cfg(feature = "quanta")]
use crate::clock::QuantaClock;
use crate::sync::{InUse, Published, Replaced};
use crate::time::Nanos;

/// A rule set that can be replaced while others decide by it, without a fresh budget for anybody.
///
/// # Guarantee
///
/// - Whoever decides never waits, neither for a reload nor because of one.
/// - A rule is the same before and after when it has the same name (or says what [it was](super::Rule::was) called) and
///   its key has the same name. Its counts go on:
///   - with another limit of a counter ring or fixed window, as far as its words have room for it (a limit that was
///     lowered can always be raised again), with a higher rate of a token bucket, or a lower one whose burst takes no
///     longer to refill, and with other tiers of a ring, lists, shares or [`OnFull`](crate::OnFull): they are kept as they
///     are, and what is new holds from the next decision on. So it is with another condition or cost;
///   - with another window, algorithm, cells or capacity, what still counts under the old rule is charged to the new one,
///     as if all of it had been spent at that moment, which is stricter. Until that is done the old and the new
///     rule both hold, and what is spent then counts twice. The same goes for a limit that needs larger words, for
///     the limit of a log, and where rules begin or cease to be decided in one step.
/// - A rule that is added begins fresh, and so does one that is removed and comes back later, and one whose key is
///   another. A rule that is removed no longer holds from the next decision on.
/// - Over reloads that leave algorithm and window alone, no window admits more than the bound of the more generous of the
///   rules that were in force in it. After any other, what still counted under the old rule and what the new one
///   admits are together within the new one's bound, unless more had been spent already. (A looser algorithm may
///   have admitted more than still counts when a stricter one takes its place.)
///
/// Why that is so, and the models that check it, is in the source, in `src/rules.md`.
///
/// # Examples
///
/// ```
/// use ringgate::{LiveRules, ManualClock, Rule, RuleSetBuilder};
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
/// // Two more, not twelve.
/// assert!(live.load().check("request").is_ok());
/// assert!(live.load().check("request").is_ok());
/// assert!(live.load().check("request").is_err());
/// # Ok(())
/// # }
/// ```
pub struct LiveRules<R: ?Sized, #[cfg(feature = "quanta")] C = QuantaClock, #[cfg(not(feature = "quanta"))] C>
{
    current: Published<RuleSet<R, C>>,
    writer: Mutex<Writer<R, C>>,
}

/// What only whoever replaces the rules knows.
struct Writer<R: ?Sized, C> {
    /// Rule sets that were in force, and that somebody may still decide by.
    previous: Vec<Replaced<RuleSet<R, C>>>,
    /// Groups in force only until others have been charged what they have counted.
    retiring: Vec<Retiring<R>>,
    /// Groups that hold no longer, but have counted more than what came after them can remember: until that time.
    remembered: Vec<(Arc<Group<R>>, Nanos)>,
}

/// The rules in force when they were loaded.
///
/// Meant for a decision or a few: as long as somebody holds one, a reload that changes windows keeps the
/// old windows in force beside the new.
///
/// # Examples
///
/// ```
/// use ringgate::{LiveRules, ManualClock, Rule, RuleSetBuilder};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let rules = RuleSetBuilder::<str>::new().rule(Rule::new("all", "1/s".parse()?));
/// let live = LiveRules::new(rules.build_with(ManualClock::new(), [1, 2, 3, 4])?);
/// // Kept as long as the answer is looked at, and no longer.
/// let loaded = live.load();
/// assert!(loaded.check("request").is_ok());
/// let wait = loaded.check("request").map_err(|refused| refused.retry_after());
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

/// What became of a reload.
///
/// # Examples
///
/// ```
/// use ringgate::{LiveRules, ManualClock, Reloaded, Rule, RuleSetBuilder};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let rules = |quota: &str| -> Result<_, ringgate::ConfigError> {
///     Ok(RuleSetBuilder::<str>::new().rule(Rule::new("all", quota.parse()?)))
/// };
/// let live = LiveRules::new(rules("10/s")?.build_with(ManualClock::new(), [1, 2, 3, 4])?);
/// // Somebody is in the middle of a decision.
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
    /// The new rules hold, and no others.
    Done,
    /// The new rules hold, and beside them so many old states whose counts are yet to be charged to them:
    /// somebody is in the middle of a decision by rules from before. [`LiveRules::finish`] does the rest.
    Pending(usize),
}

/// Rules could not be replaced. Those from before hold.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// The new rules are wrong.
    Rules(RuleError),
    /// Too many states of old rules, so many, are still in force: 64 or more, because somebody holds rules that were
    /// loaded before. (One reload that changes the windows of many rules can leave as many.)
    Pending(usize),
}

/// With so many states still in force beside the rules that replaced them, no other rules are accepted.
const MOST_PENDING: usize = 64;

/// So many states that hold no longer are remembered, for what came after them could not remember all that they had
/// counted: the last ones.
const MOST_REMEMBERED: usize = 8;

/// How often a reload gives way to those who decide before it leaves the rest for later.
const PATIENCE: usize = 100;

impl<R: ?Sized, C: Clock + Clone> LiveRules<R, C> {
    /// Puts rules in force.
    pub fn new(rules: RuleSet<R, C>) -> Self {
        Self {
            current: Published::new(rules),
            writer: Mutex::new(Writer {
                previous: Vec::new(),
                retiring: Vec::new(),
                remembered: Vec::new(),
            }),
        }
    }

    /// The rules in force. Wait-free, but for what a thread's first call sets up.
    ///
    /// A [`Refused`](crate::Refused) borrows what this returned: keep it in a variable where you look at the refusal, take
    /// out what you answer with, and do not hold either across an `.await`.
    #[inline]
    pub fn load(&self) -> LoadedRules<R, C> {
        LoadedRules(self.current.load())
    }

    /// Puts other rules in force, with what was counted by those from before.
    ///
    /// Waits for other threads that do the same, and never for those that decide. Whoever changes windows often should
    /// know that each time every key of the old table is looked at.
    ///
    /// # Errors
    ///
    /// When the rules are wrong, or 64 or more states of old rules are still in force. Nothing has changed then.
    pub fn store(&self, rules: &RuleSetBuilder<R>) -> Result<Reloaded, StoreError> {
        let mut writer = self.writer();
        if let Reloaded::Pending(states) = self.settle(&mut writer)
            && states >= MOST_PENDING
        {
            return Err(StoreError::Pending(states));
        }
        let current = self.current.load();
        let now = current.clock.now();
        writer.remembered.retain(|(_, until)| *until > now);
        let remembered: Vec<_> = writer.remembered.iter().map(|(old, _)| Arc::clone(old)).collect();
        let seeds: Seeds = current.rules.seeds.clone();
        let Succession {
            rules,
            retiring,
            remembered,
        } = succession::follow(rules, Some(&current.rules), &remembered, seeds).map_err(StoreError::Rules)?;
        drop(current);
        let until = writer.remembered.drain(..).map(|(_, until)| until);
        let renamed = remembered.into_iter().zip(until);
        writer.remembered = renamed.filter_map(|(old, until)| Some((old?, until))).collect();
        let mut beside: Vec<Arc<Group<R>>> = Vec::new();
        for old in retiring.iter().flat_map(Retiring::beside) {
            if !beside.iter().any(|other| other.has_state_of(old)) {
                beside.push(Arc::clone(old));
            }
        }
        for retiring in &retiring {
            retiring.anticipate(now);
        }
        let groups = rules.groups.iter().cloned().chain(beside).collect();
        self.replace(&mut writer, Rules { groups, ..rules });
        writer.retiring = retiring;
        for _ in 0..PATIENCE {
            if self.settle(&mut writer) == Reloaded::Done {
                break;
            }
            thread::yield_now();
        }
        Ok(self.settle(&mut writer))
    }

    /// Does what a reload has left, if nobody decides by rules from before it any more.
    pub fn finish(&self) -> Reloaded {
        self.settle(&mut self.writer())
    }

    fn writer(&self) -> MutexGuard<'_, Writer<R, C>> {
        // A panic leaves old rules in force beside new ones, which is stricter.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Charges the new groups what the old have counted, if everybody charges the new ones by now.
    fn settle(&self, writer: &mut Writer<R, C>) -> Reloaded {
        writer.previous.retain_mut(|set| !set.is_free());
        if writer.retiring.is_empty() {
            return Reloaded::Done;
        }
        if !writer.previous.is_empty() {
            return Reloaded::Pending(writer.retiring.iter().flat_map(Retiring::beside).count());
        }
        let current = self.current.load();
        let now = current.clock.now();
        let mut remembered = Vec::new();
        for retiring in &writer.retiring {
            if !retiring.settle(now) {
                let until = |old: &Arc<Group<R>>| now.saturating_add(old.span());
                remembered.extend(retiring.beside().map(|old| (Arc::clone(old), until(old))));
            }
        }
        writer.remembered.extend(remembered);
        let too_many = writer.remembered.len().saturating_sub(MOST_REMEMBERED);
        writer.remembered.drain(..too_many);
        let rules = current.rules.clone();
        drop(current);
        let groups = rules.groups.iter().filter(|group| !group.is_retiring());
        let groups = groups.cloned().collect();
        self.replace(writer, Rules { groups, ..rules });
        writer.retiring.clear();
        Reloaded::Done
    }

    fn replace(&self, writer: &mut Writer<R, C>, rules: Rules<R>) {
        let clock = self.current.load().clock.clone();
        let replaced = self.current.replace(RuleSet { rules, clock });
        writer.previous.push(replaced);
    }
}

impl<R: ?Sized, C: fmt::Debug> fmt::Debug for LiveRules<R, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LiveRules").field(&*self.current.load()).finish()
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rules(error) => error.fmt(f),
            Self::Pending(states) => write!(
                f,
                "{states} old states are still in force, but allowed are fewer than {MOST_PENDING}: somebody holds rules \
                 that were loaded before"
            ),
        }
    }
}

impl core::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Rules(error) => Some(error),
            Self::Pending(_) => None,
        }
    }
}
