use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::keyed::{DEFAULT_CAPACITY, OnFull};
use crate::quota::Quota;
use crate::rules::condition::{Condition, Cost, LimitBy, TierOf};
use crate::rules::key::Key;

pub(crate) mod algorithm;
pub(crate) mod block;
mod blocking;
mod calendar;
pub(crate) mod enforcement;
pub(crate) mod error;
mod in_flight;
pub mod kind;
mod limit_by;
pub(crate) mod mode;
pub(crate) mod on_error;
pub(crate) mod view;

use algorithm::RuleAlgorithm;
use block::Block;
use enforcement::Enforcement;
use kind::{AnyKind, PermitKind, Rate};
use mode::Mode;
use on_error::OnError;

/// One rule of a [`RuleSet`](super::RuleSet): a limit, the requests that it applies to, and how they are counted.
///
/// By default a rule applies to every request, counts all requests together, charges one permit for each, and admits at most the
/// limit in any interval of one window ([`RuleAlgorithm::SlidingWindow`]).
///
/// The type parameter `K` is the [kind] of the rule: a [`Rate`], a [`Calendar`](kind::Calendar) or
/// [`InFlight`](kind::InFlight). A rule has only the methods of its kind.
///
/// # Examples
///
/// ```
/// use core::hash::Hash;
/// use ringgate::rules::Cost;
/// use ringgate::{Key, Rule};
///
/// struct Upload {
///     user: String,
///     bytes: u64,
/// }
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let user = Key::new("user", |upload: &Upload, key| upload.user.hash(key));
/// // Each user can make ten uploads per second and a hundred per minute. Both are decided in one step.
/// let uploads = Rule::new("uploads", "10/s".parse()?).also("100/min".parse()?).by(&user);
/// // All users together can upload a gigabyte per hour.
/// let volume = Rule::new("volume", "1_000_000_000/h".parse()?)
///     .cost(&Cost::new("bytes", |upload: &Upload| upload.bytes));
/// # let _ = (uploads, volume);
/// # Ok(())
/// # }
/// ```
#[must_use = "a rule does nothing until it is in a rule set"]
pub struct Rule<R: ?Sized, K = Rate> {
    pub(crate) name: Arc<str>,
    pub(crate) renamed_from: Option<Arc<str>>,
    pub(crate) kind: K,
    pub(crate) key: Option<Key<R>>,
    pub(crate) cost: Option<Cost<R>>,
    pub(crate) when: Option<Condition<R>>,
    pub(crate) tier_of: Option<TierOf<R>>,
    pub(crate) tiers: Vec<(Arc<str>, u64)>,
    pub(crate) limit_by: Option<LimitBy<R>>,
    pub(crate) capacity: Option<u64>,
    pub(crate) on_full: OnFull,
    pub(crate) enforced: Enforcement,
    pub(crate) allow: Vec<String>,
    pub(crate) deny: Vec<String>,
    pub(crate) on_error: OnError,
    pub(crate) mode: Mode,
    pub(crate) block: Option<Block>,
}

/// A rule of any [kind], for lists of rules of different kinds.
///
/// # Examples
///
/// ```
/// use ringgate::rules::{AnyRule, RuleSetBuilder};
/// use ringgate::Rule;
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let rules: [AnyRule<str>; 2] = [
///     Rule::new("requests", "100/min".parse()?).into_any(),
///     Rule::in_flight("exports", 2).into_any(),
/// ];
/// let builder = rules.into_iter().fold(RuleSetBuilder::new(), RuleSetBuilder::rule);
/// assert_eq!(builder.rules().len(), 2);
/// # Ok(())
/// # }
/// ```
pub type AnyRule<R> = Rule<R, AnyKind>;

impl<R: ?Sized> Rule<R> {
    /// Creates a rule that admits up to `quota`.
    pub fn new(name: impl Into<Arc<str>>, quota: Quota) -> Self {
        Self::of_kind(name, Rate::new(quota), OnFull::default())
    }

    /// Adds a quota. A request is admitted when all quotas have enough capacity left.
    pub fn also(mut self, quota: Quota) -> Self {
        self.kind.quotas.push(quota);
        self
    }

    /// Sets the algorithm. The default is [`RuleAlgorithm::SlidingWindow`].
    pub fn algorithm(mut self, algorithm: RuleAlgorithm) -> Self {
        self.kind.algorithm = algorithm;
        self
    }

    /// Sets the cells per window of a sliding window, counter, classic or even rule.
    ///
    /// A sliding window with cells is a counter rule. Without cells it [chooses](RuleAlgorithm::SlidingWindow) how it counts:
    /// most rules with a key count in one word. The default for a counter rule is
    /// [`CounterRing::DEFAULT_CELLS`](crate::CounterRing::DEFAULT_CELLS), which take 640 bytes for each key and quota. The
    /// default for a classic or even rule is [`CounterRing::DEFAULT_CLASSIC_CELLS`](crate::CounterRing::DEFAULT_CLASSIC_CELLS).
    /// The documentation of [`CounterRing`](crate::CounterRing) has a table of sizes.
    pub fn cells(mut self, cells: u64) -> Self {
        self.kind.cells = Some(cells);
        self
    }

    /// Sets the burst of a [`Gcra`](crate::Gcra) rule in permits. The default is the limit.
    pub fn burst(mut self, permits: u64) -> Self {
        self.kind.burst = Some(permits);
        self
    }
}

impl<R: ?Sized, K: PermitKind> Rule<R, K> {
    /// Charges a request its cost. The default is one permit.
    ///
    /// A rule with a cost also accepts a limit that is too large to count single permits, such as `25Gbit/s`. It counts units of
    /// 2^k permits, as [`InUnits`](crate::algorithm::InUnits) does: each cost is rounded up to whole units, and the limit, the
    /// burst and the limits of tiers are rounded down. Such a rule cannot have [`limit_by`](Self::limit_by). If it is shared, its
    /// mode must be `Local`.
    pub fn cost(mut self, cost: &Cost<R>) -> Self {
        self.cost = Some(cost.clone());
        self
    }

    /// Sets the decision about a key that finds the rule's table full.
    pub fn on_full(mut self, on_full: OnFull) -> Self {
        self.on_full = on_full;
        self
    }
}

impl<R: ?Sized, K> Rule<R, K> {
    fn of_kind(name: impl Into<Arc<str>>, kind: K, on_full: OnFull) -> Self {
        Self {
            name: name.into(),
            renamed_from: None,
            kind,
            key: None,
            cost: None,
            when: None,
            tier_of: None,
            tiers: Vec::new(),
            limit_by: None,
            capacity: None,
            on_full,
            enforced: Enforcement::All,
            allow: Vec::new(),
            deny: Vec::new(),
            on_error: OnError::default(),
            mode: Mode::default(),
            block: None,
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sets the name that the rule had before a reload, so that it keeps its counts.
    pub fn renamed_from(mut self, name: impl Into<Arc<str>>) -> Self {
        self.renamed_from = Some(name.into());
        self
    }

    /// Returns the rule as one of any kind, for a list of rules of different kinds.
    pub fn into_any(self) -> AnyRule<R>
    where
        K: Into<AnyKind>,
    {
        Rule {
            name: self.name,
            renamed_from: self.renamed_from,
            kind: self.kind.into(),
            key: self.key,
            cost: self.cost,
            when: self.when,
            tier_of: self.tier_of,
            tiers: self.tiers,
            limit_by: self.limit_by,
            capacity: self.capacity,
            on_full: self.on_full,
            enforced: self.enforced,
            allow: self.allow,
            deny: self.deny,
            on_error: self.on_error,
            mode: self.mode,
            block: self.block,
        }
    }

    /// Counts each key separately.
    pub fn by(mut self, key: &Key<R>) -> Self {
        self.key = Some(key.clone());
        self
    }

    /// Applies the rule only to requests that meet the condition. A second call replaces the condition.
    pub fn when(mut self, condition: &Condition<R>) -> Self {
        self.when = Some(condition.clone());
        self
    }

    /// Sets the function that returns the tier of a request, for [`tier`](Self::tier).
    pub fn tier_of(mut self, tier_of: &TierOf<R>) -> Self {
        self.tier_of = Some(tier_of.clone());
        self
    }

    /// Adds a tier with another limit in the rule's window, which may be lower or higher than the rule's limit.
    ///
    /// All tiers share the counts, so a key whose tier changes keeps its counts. The burst of a gcra rule is scaled with the limit,
    /// to at least one permit. If a key changes between tiers of a gcra rule, a window may exceed the bound by rounding: by 0.05 %
    /// at a million permits per second, and in proportion at other rates.
    ///
    /// The rule needs [`tier_of`](Self::tier_of). A log rule, or a rule with several quotas, cannot have tiers.
    pub fn tier(mut self, name: impl Into<Arc<str>>, limit: u64) -> Self {
        self.tiers.push((name.into(), limit));
        self
    }

    /// Sets the number of keys that the rule's table can hold, 1 to 2^32. The default is 65,536.
    pub fn capacity(mut self, keys: u64) -> Self {
        self.capacity = Some(keys);
        self
    }

    /// Makes the rule decide and count without denying, to try it out.
    ///
    /// A rule in the shadow is charged for requests that it would have admitted, and not for those that it would have
    /// denied.
    pub fn shadow(mut self) -> Self {
        self.enforced = Enforcement::None;
        self
    }

    /// Enforces the rule for this percentage of its keys, and leaves it in the shadow for the other keys, for a gradual roll-out.
    ///
    /// Every process selects the same keys, on machines of one kind. A larger percentage includes the keys of a smaller one. The
    /// rule needs a [key](Self::by).
    pub fn enforce_percent(mut self, percent: f64) -> Self {
        self.enforced = Enforcement::Percent(percent);
        self
    }

    /// Never limits or charges this key.
    ///
    /// The key reads the entry from its text when the rule set is built. If it cannot, that is an error with the field `allow`. For
    /// addresses, an entry may be a network: see [`Key::address`].
    ///
    /// # Examples
    ///
    /// ```
    /// use core::net::IpAddr;
    /// use ringgate::rules::RuleSetBuilder;
    /// use ringgate::{Key, ManualClock, Rule};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let client = Key::address("client", |address: &IpAddr| Some(*address));
    /// let rule = Rule::new("client", "1/min".parse()?).by(&client).allow("10.0.0.0/8");
    /// assert!(RuleSetBuilder::new().rule(rule.clone()).build_with(ManualClock::new(), [1; 4]).is_ok());
    ///
    /// let misspelled = RuleSetBuilder::new().rule(rule.allow("localhost"));
    /// let error = misspelled.build_with(ManualClock::new(), [1; 4]).unwrap_err();
    /// assert_eq!(error.error.field, "allow");
    /// # Ok(())
    /// # }
    /// ```
    pub fn allow(mut self, key: impl fmt::Display) -> Self {
        self.allow.push(key.to_string());
        self
    }

    /// Always denies this key, if the rule applies to the request and is enforced.
    ///
    /// The key reads the entry from its text when the rule set is built. If it cannot, that is an error with the field `deny`. For
    /// addresses, an entry may be a network, and an address stands for its client: see [`Key::address`].
    pub fn deny(mut self, key: impl fmt::Display) -> Self {
        self.deny.push(key.to_string());
        self
    }

    /// Sets the decision of a shared rule if the store does not answer (feature `shared`). A local rule set ignores it.
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.on_error = on_error;
        self
    }

    /// Sets which decisions about a shared rule a node makes without the store (feature `shared`). A local rule set ignores it.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    pub(crate) fn tier_limits(&self) -> Vec<u64> {
        self.tiers.iter().map(|&(_, limit)| limit).collect()
    }

    pub(crate) fn keys(&self) -> u64 {
        self.capacity.unwrap_or(DEFAULT_CAPACITY)
    }
}

impl<R: ?Sized> AnyRule<R> {
    /// Whether quotas of both rules can share a state.
    pub(crate) fn shares_state_with(&self, other: &Self) -> bool {
        fn same<T>(one: Option<&T>, other: Option<&T>, is: impl Fn(&T, &T) -> bool) -> bool {
            match (one, other) {
                (Some(one), Some(other)) => is(one, other),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            }
        }
        // All fields, so that the compiler asks about each new one. A block has a state of its own.
        let Self {
            name,
            renamed_from: _,
            kind,
            key,
            cost,
            when,
            tier_of: _,
            tiers: _,
            limit_by: _,
            capacity,
            on_full,
            enforced: _,
            allow: _,
            deny: _,
            on_error,
            mode,
            block: _,
        } = self;
        let (Some(own), Some(others)) = (kind.rate(), other.kind.rate()) else {
            return false;
        };
        let treats_all_alike = |rule: &Self| {
            rule.enforced == Enforcement::All
                && rule.tiers.is_empty()
                && rule.limit_by.is_none()
                && rule.allow.is_empty()
                && rule.deny.is_empty()
        };
        if !own.is_one_state() {
            return false;
        }
        if *name == other.name {
            return true;
        }
        treats_all_alike(self)
            && treats_all_alike(other)
            && own.algorithm == others.algorithm
            && own.cells == others.cells
            && *capacity == other.capacity
            && *on_full == other.on_full
            && *on_error == other.on_error
            && *mode == other.mode
            && same(key.as_ref(), other.key.as_ref(), Key::is_same)
            && same(cost.as_ref(), other.cost.as_ref(), |one, other| {
                one.0.is(&other.0)
            })
            && same(when.as_ref(), other.when.as_ref(), |one, other| {
                one.0.is(&other.0)
            })
    }
}

impl<R: ?Sized, K: Clone> Clone for Rule<R, K> {
    fn clone(&self) -> Self {
        Self {
            name: Arc::clone(&self.name),
            renamed_from: self.renamed_from.clone(),
            kind: self.kind.clone(),
            key: self.key.clone(),
            cost: self.cost.clone(),
            when: self.when.clone(),
            tier_of: self.tier_of.clone(),
            tiers: self.tiers.clone(),
            limit_by: self.limit_by.clone(),
            capacity: self.capacity,
            on_full: self.on_full,
            enforced: self.enforced,
            allow: self.allow.clone(),
            deny: self.deny.clone(),
            on_error: self.on_error,
            mode: self.mode,
            block: self.block.clone(),
        }
    }
}

impl<R: ?Sized, K: fmt::Debug> fmt::Debug for Rule<R, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("key", &self.key)
            .field("cost", &self.cost)
            .field("when", &self.when)
            .field("tiers", &self.tiers)
            .field("limit_by", &self.limit_by)
            .field("on_full", &self.on_full)
            .field("enforced", &self.enforced)
            .field("block", &self.block)
            .finish_non_exhaustive()
    }
}
