use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::hash::Hash;

use super::key::{Condition, Cost, Key, TierOf};
use super::mode::Mode;
use super::on_error::OnError;
use crate::algorithm::{CounterRing, Gcra};
use crate::keyed::{KeyHasher, KeyedBuilder, OnFull};
use crate::quota::Quota;

/// How a rule counts.
///
/// # Examples
///
/// ```
/// use ringgate::{ManualClock, Rule, RuleAlgorithm, RuleSetBuilder};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// // Paced: one at a time, a hundred a second.
/// let rule = Rule::new("all", "100/s".parse()?).algorithm(RuleAlgorithm::Gcra).burst(1);
/// let rules = RuleSetBuilder::<str>::new().rule(rule).build_with(ManualClock::new(), [1, 2, 3, 4])?;
/// assert!(rules.check("request").is_ok());
/// assert!(rules.check("request").is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleAlgorithm {
    /// The sliding window counter, strict: [`CounterRing::new`]. The default.
    #[default]
    Counter,
    /// The sliding window counter over N cells: [`classic`](crate::CounterRingBuilder::classic).
    Classic,
    /// The sliding window counter with a share for each cell: [`even`](crate::CounterRingBuilder::even).
    Even,
    /// The fixed window: [`CounterRing::fixed_window`].
    Fixed,
    /// The sliding log: [`TimestampRing`](crate::TimestampRing).
    Log,
    /// The token bucket: [`Gcra`].
    Gcra,
}

/// One rule of a [`RuleSet`](super::RuleSet): how much of what is allowed, and to whom.
///
/// When nothing is said, a rule is about every request, counts them all together, one permit each, by a
/// strict [`CounterRing`].
///
/// # Examples
///
/// ```
/// use core::hash::Hash;
/// use ringgate::{Cost, Key, Rule};
///
/// struct Upload {
///     user: String,
///     bytes: u64,
/// }
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let user = Key::new("user", |upload: &Upload, key| upload.user.hash(key));
/// // Ten uploads a second and a hundred a minute for each user, decided in one step.
/// let uploads = Rule::new("uploads", "10/s".parse()?).also("100/min".parse()?).by(&user);
/// // A gigabyte an hour for all users together.
/// let volume = Rule::new("volume", "1_000_000_000/h".parse()?)
///     .cost(&Cost::new("bytes", |upload: &Upload| upload.bytes));
/// # let _ = (uploads, volume);
/// # Ok(())
/// # }
/// ```
#[must_use = "a rule does nothing until it is in a rule set"]
pub struct Rule<R: ?Sized> {
    pub(super) name: Arc<str>,
    pub(super) was: Option<Arc<str>>,
    pub(super) quotas: Vec<Quota>,
    pub(super) algorithm: RuleAlgorithm,
    pub(super) cells: Option<u64>,
    pub(super) burst: Option<u64>,
    pub(super) key: Option<Key<R>>,
    pub(super) cost: Option<Cost<R>>,
    pub(super) when: Option<Condition<R>>,
    pub(super) tier_of: Option<TierOf<R>>,
    pub(super) tiers: Vec<(Arc<str>, u64)>,
    pub(super) capacity: Option<u64>,
    pub(super) on_full: OnFull,
    pub(super) enforced: Enforced,
    pub(super) allow: Vec<Listed>,
    pub(super) deny: Vec<Listed>,
    pub(super) on_error: OnError,
    pub(super) mode: Mode,
}

/// For how many of the keys a rule is enforced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Enforced {
    All,
    None,
    /// So many in a hundred.
    Percent(f64),
}

/// A key on a list: feeds itself into a hasher.
pub(super) type Listed = Arc<dyn Fn(&mut KeyHasher) + Send + Sync>;

impl<R: ?Sized> Rule<R> {
    /// Allows `quota`.
    pub fn new(name: impl Into<Arc<str>>, quota: Quota) -> Self {
        Self {
            name: name.into(),
            was: None,
            quotas: alloc::vec![quota],
            algorithm: RuleAlgorithm::Counter,
            cells: None,
            burst: None,
            key: None,
            cost: None,
            when: None,
            tier_of: None,
            tiers: Vec::new(),
            capacity: None,
            on_full: OnFull::default(),
            enforced: Enforced::All,
            allow: Vec::new(),
            deny: Vec::new(),
            on_error: OnError::default(),
            mode: Mode::default(),
        }
    }

    /// The rule's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name that the rule had before a reload, so that it keeps its counts under the new one.
    pub fn was(mut self, name: impl Into<Arc<str>>) -> Self {
        self.was = Some(name.into());
        self
    }

    /// Allows `quota` too: a request is admitted when every quota has room.
    pub fn also(mut self, quota: Quota) -> Self {
        self.quotas.push(quota);
        self
    }

    /// Counts in another way than by a strict ring.
    pub fn algorithm(mut self, algorithm: RuleAlgorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    /// Cells per window of a counter, classic or even rule, [`CounterRing::DEFAULT_CELLS`] when nothing is
    /// said.
    pub fn cells(mut self, cells: u64) -> Self {
        self.cells = Some(cells);
        self
    }

    /// The burst of a [`Gcra`] rule, in permits; the limit when nothing is said.
    pub fn burst(mut self, permits: u64) -> Self {
        self.burst = Some(permits);
        self
    }

    /// Allows the quota to each key, not to all requests together.
    pub fn by(mut self, key: &Key<R>) -> Self {
        self.key = Some(key.clone());
        self
    }

    /// Charges a request what it costs, not one permit.
    pub fn cost(mut self, cost: &Cost<R>) -> Self {
        self.cost = Some(cost.clone());
        self
    }

    /// Is about requests that meet the condition, and no others.
    pub fn when(mut self, condition: &Condition<R>) -> Self {
        self.when = Some(condition.clone());
        self
    }

    /// Says which tier a request is in; [`tier`](Self::tier) says what that is.
    pub fn tier_of(mut self, tier_of: &TierOf<R>) -> Self {
        self.tier_of = Some(tier_of.clone());
        self
    }

    /// Adds a tier with a limit of its own, in the rule's window: lower or higher than the rule's. All tiers
    /// share the counts, so a key that changes its tier keeps what it has spent. Of a gcra rule, a tier's burst is the
    /// rule's in proportion to the limits, and one at least. Needs [`tier_of`](Self::tier_of); not for a log rule, nor for
    /// one with several quotas.
    pub fn tier(mut self, name: impl Into<Arc<str>>, limit: u64) -> Self {
        self.tiers.push((name.into(), limit));
        self
    }

    /// How many keys there is room for at once, 1 to 2^32; [`KeyedBuilder::DEFAULT_CAPACITY`] when
    /// nothing is said.
    pub fn capacity(mut self, keys: u64) -> Self {
        self.capacity = Some(keys);
        self
    }

    /// What becomes of a key that finds the rule's table full.
    pub fn on_full(mut self, on_full: OnFull) -> Self {
        self.on_full = on_full;
        self
    }

    /// Judges and counts, and never refuses: to see what a rule would do.
    ///
    /// A shadow rule is charged what it would have admitted, and nothing for what it would have refused.
    pub fn shadow(mut self) -> Self {
        self.enforced = Enforced::None;
        self
    }

    /// Refuses for so many in a hundred of the keys, and is in the shadow for the others: for gradual roll-out.
    ///
    /// Which keys these are does not change from one process to the next on machines of one kind, and
    /// those of a smaller share are among those of a larger one. The rule must have a [key](Self::by).
    pub fn enforce_percent(mut self, percent: f64) -> Self {
        self.enforced = Enforced::Percent(percent);
        self
    }

    /// Never limits, nor charges, this key.
    pub fn allow(mut self, key: impl Hash + Send + Sync + 'static) -> Self {
        self.allow.push(Arc::new(move |hasher| key.hash(hasher)));
        self
    }

    /// Refuses this key whatever it has spent, where the rule is about the request and is enforced for the key: not in the
    /// shadow.
    pub fn deny(mut self, key: impl Hash + Send + Sync + 'static) -> Self {
        self.deny.push(Arc::new(move |hasher| key.hash(hasher)));
        self
    }

    /// What decides when the store of rules that many machines share does not answer (feature `redis`). In a rule set of
    /// one process it means nothing.
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.on_error = on_error;
        self
    }

    /// How far a node may decide by itself, when the counts are kept by a store that many machines share (feature
    /// `redis`). In a rule set of one process it means nothing.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// What [`mode`](Self::mode) has said.
    #[cfg(feature = "redis")]
    pub(crate) const fn mode_of(&self) -> Mode {
        self.mode
    }

    /// As [`allow`](Self::allow) and [`deny`](Self::deny), for a key that is written as text.
    ///
    /// # Errors
    ///
    /// What is wrong with the text, for the rule's key.
    #[cfg(feature = "config")]
    pub(super) fn list_text(mut self, text: &str, allowed: bool) -> Result<Self, String> {
        let Some(key) = &self.key else {
            return Err(String::from("the rule has no key"));
        };
        let hash = key.hash_of_text();
        hash(text, &mut KeyHasher::unseeded())?;
        let text = String::from(text);
        let listed: Listed = Arc::new(move |hasher| {
            // It was right above, and what it feeds does not depend on the hasher.
            let _ = hash(&text, hasher);
        });
        if allowed {
            self.allow.push(listed);
        } else {
            self.deny.push(listed);
        }
        Ok(self)
    }

    /// Whether both are decided by one state, if their algorithms allow.
    pub(super) fn shares_with(&self, other: &Self) -> bool {
        fn same<T>(one: Option<&T>, other: Option<&T>, is: impl Fn(&T, &T) -> bool) -> bool {
            match (one, other) {
                (Some(one), Some(other)) => is(one, other),
                (None, None) => true,
                _ => false,
            }
        }
        let plain = |rule: &Self| {
            rule.is_mergeable()
                && rule.enforced == Enforced::All
                && rule.tiers.is_empty()
                && rule.allow.is_empty()
                && rule.deny.is_empty()
        };
        if self.name == other.name {
            return self.is_mergeable();
        }
        plain(self)
            && plain(other)
            && self.algorithm == other.algorithm
            && self.cells == other.cells
            // Which neither may have: alone, the rule at fault is refused.
            && self.burst == other.burst
            && self.capacity == other.capacity
            && self.on_full == other.on_full
            && self.on_error == other.on_error
            && self.mode == other.mode
            && same(self.key.as_ref(), other.key.as_ref(), Key::is)
            && same(self.cost.as_ref(), other.cost.as_ref(), |one, other| {
                one.0.is(&other.0)
            })
            && same(self.when.as_ref(), other.when.as_ref(), |one, other| {
                one.0.is(&other.0)
            })
    }

    /// Whether several windows of the rule are decided in one step.
    pub(super) const fn is_mergeable(&self) -> bool {
        matches!(
            self.algorithm,
            RuleAlgorithm::Counter | RuleAlgorithm::Classic | RuleAlgorithm::Fixed
        )
    }

    pub(super) fn keys(&self) -> u64 {
        self.capacity.unwrap_or(KeyedBuilder::<Gcra>::DEFAULT_CAPACITY)
    }

    pub(super) fn cells_or_default(&self) -> u64 {
        self.cells.unwrap_or(CounterRing::DEFAULT_CELLS)
    }
}

impl<R: ?Sized> Clone for Rule<R> {
    fn clone(&self) -> Self {
        Self {
            name: Arc::clone(&self.name),
            was: self.was.clone(),
            quotas: self.quotas.clone(),
            algorithm: self.algorithm,
            cells: self.cells,
            burst: self.burst,
            key: self.key.clone(),
            cost: self.cost.clone(),
            when: self.when.clone(),
            tier_of: self.tier_of.clone(),
            tiers: self.tiers.clone(),
            capacity: self.capacity,
            on_full: self.on_full,
            enforced: self.enforced,
            allow: self.allow.clone(),
            deny: self.deny.clone(),
            on_error: self.on_error,
            mode: self.mode,
        }
    }
}

impl<R: ?Sized> fmt::Debug for Rule<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule")
            .field("name", &self.name)
            .field("quotas", &self.quotas)
            .field("algorithm", &self.algorithm)
            .field("key", &self.key)
            .field("cost", &self.cost)
            .field("when", &self.when)
            .field("tiers", &self.tiers)
            .field("on_full", &self.on_full)
            .field("enforced", &self.enforced)
            .finish_non_exhaustive()
    }
}

/// A rule set that was asked for cannot be built: which rule is wrong, and what is wrong with it.
///
/// # Examples
///
/// ```
/// use ringgate::{ManualClock, Rule, RuleSetBuilder};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let rules = RuleSetBuilder::<str>::new().rule(Rule::new("all", "10/s".parse()?).cells(0));
/// let error = rules.build_with(ManualClock::new(), [1, 2, 3, 4]).unwrap_err();
/// assert_eq!(error.to_string(), r#"rule "all": cells is 0 cells, but allowed is 1 to 4096 cells"#);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleError {
    /// The name of the rule at fault.
    pub rule: String,
    /// What is wrong with it.
    pub error: crate::error::ConfigError,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {:?}: {}", self.rule, self.error)
    }
}

impl core::error::Error for RuleError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.error)
    }
}
