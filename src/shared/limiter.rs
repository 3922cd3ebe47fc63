use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::hash::Hash;
use core::num::NonZeroU32;
use core::time::Duration;

use super::charges::Decision;
use super::rules::SharedRules;
use super::rules_builder::SharedRulesBuilder;
use super::store::{CounterStore, StoreError};
use crate::quota::Quota;
use crate::rules::{Key, Mode, OnError, QuotaStatus, Rule, RuleAlgorithm, RuleError};

/// One limit for each of many keys, over counts that many machines share: [`SharedRules`] of one rule.
///
/// For one limit that all requests share, always pass the same key.
///
/// # Examples
///
/// A hundred logins a minute for each user:
///
/// ```
/// use std::sync::Arc;
///
/// use ringgate::shared::{MemoryStore, OnError, SharedLimiter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn core::error::Error>> {
/// // Over several machines, a store such as `redis::RedisStore`.
/// let store = Arc::new(MemoryStore::new());
/// let logins = SharedLimiter::builder("login", "100/60s".parse()?)
///     // Each permit with its time, exactly.
///     .log()
///     .on_error(OnError::Deny)
///     .build(store)?;
/// if let Err(denied) = logins.check("alice").await {
///     println!("{denied}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SharedLimiter {
    rules: SharedRules<[u8]>,
}

/// Builds a [`SharedLimiter`].
#[must_use = "a builder does nothing until it is built"]
pub struct SharedLimiterBuilder {
    rule: Rule<[u8]>,
    rules: SharedRulesBuilder<[u8]>,
}

impl SharedLimiterBuilder {
    /// Adds a quota. A request is admitted if every quota has room.
    pub fn also(mut self, quota: Quota) -> Self {
        self.rule = self.rule.also(quota);
        self
    }

    /// Counts each permit with its time, exactly, for limits up to 100,000.
    pub fn log(mut self) -> Self {
        self.rule = self.rule.algorithm(RuleAlgorithm::Log);
        self
    }

    /// Counts by this number of cells in a window, up to a cell too strict:
    /// [`DEFAULT_CELLS`](crate::CounterRing::DEFAULT_CELLS) by default, at most 1000. Each cell in which a key was charged
    /// takes the store's memory.
    pub fn cells(mut self, cells: u64) -> Self {
        self.rule = self.rule.algorithm(RuleAlgorithm::Counter).cells(cells);
        self
    }

    /// Counts by a token bucket that holds `burst` permits and is refilled by the limit in a window: at most `burst` + L − 1
    /// permits in any window.
    pub fn gcra(mut self, burst: u64) -> Self {
        self.rule = self.rule.algorithm(RuleAlgorithm::Gcra).burst(burst);
        self
    }

    /// Sets what decides when the store does not answer.
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.rule = self.rule.on_error(on_error);
        self
    }

    /// Sets the number of keys that this node's own limiter has room for. It decides when the store does not answer.
    pub fn capacity(mut self, keys: u64) -> Self {
        self.rule = self.rule.capacity(keys);
        self
    }

    /// Sets the number of nodes: see [`SharedRulesBuilder::nodes`].
    pub fn nodes(mut self, nodes: NonZeroU32) -> Self {
        self.rules = self.rules.nodes(nodes);
        self
    }

    /// Sets the secret that keys are hashed with: see [`SharedRulesBuilder::secret`].
    pub fn secret(mut self, secret: [u8; 16]) -> Self {
        self.rules = self.rules.secret(secret);
        self
    }

    /// Sets how far a node may decide by itself: not at all by default ([`Mode::Strict`]).
    pub fn mode(mut self, mode: Mode) -> Self {
        self.rule = self.rule.mode(mode);
        self
    }

    /// Sets the [mode](Self::mode) to [`Mode::Lease`].
    pub fn lease(self, permits: u64) -> Self {
        self.mode(Mode::Lease { permits })
    }

    /// Sets the [mode](Self::mode) to [`Mode::Sync`].
    pub fn sync(self, period: Duration, pending: u64) -> Self {
        self.mode(Mode::Sync { period, pending })
    }

    /// Sets the term of leases: see [`SharedRulesBuilder::term`].
    pub fn term(mut self, term: Duration) -> Self {
        self.rules = self.rules.term(term);
        self
    }

    /// Sets the time between two requests about a lease: see [`SharedRulesBuilder::period`].
    pub fn period(mut self, period: Duration) -> Self {
        self.rules = self.rules.period(period);
        self
    }

    /// Sets the most leases of this node: see [`SharedRulesBuilder::leases`].
    pub fn leases(mut self, leases: u64) -> Self {
        self.rules = self.rules.leases(leases);
        self
    }

    /// Builds the limiter over a store.
    ///
    /// # Errors
    ///
    /// The errors of [`SharedRulesBuilder::build`].
    pub fn build(self, store: Arc<dyn CounterStore>) -> Result<SharedLimiter, RuleError> {
        let rules = self.rules.rule(self.rule).build(store)?;
        Ok(SharedLimiter { rules })
    }
}

impl SharedLimiter {
    /// Begins a limiter of this name, which allows `quota` to each key.
    pub fn builder(name: impl Into<Arc<str>>, quota: Quota) -> SharedLimiterBuilder {
        let key = Key::new("key", |key: &[u8], hasher| key.hash(hasher));
        let key = key.shared_as(|key, parts| {
            parts.part(key);
        });
        SharedLimiterBuilder {
            rule: Rule::new(name, quota).by(&key),
            rules: SharedRules::builder(),
        }
    }

    /// Charges one permit to the key, if there is room.
    ///
    /// # Errors
    ///
    /// When there is no room: see [`SharedRules::check`].
    pub async fn check(&self, key: impl AsRef<[u8]> + Send) -> Decision<[u8]> {
        self.check_n(key, 1).await
    }

    /// Charges `permits` permits to the key, if there is room for all of them.
    ///
    /// # Errors
    ///
    /// When there is no room: see [`SharedRules::check`].
    pub async fn check_n(&self, key: impl AsRef<[u8]> + Send, permits: u64) -> Decision<[u8]> {
        self.rules.check_times(key.as_ref(), permits).await
    }

    /// Charges one permit to the key if this node can decide at once. `None`: nothing was charged, and the store must be
    /// asked by [`check`](Self::check).
    ///
    /// # Errors
    ///
    /// When there is no room.
    #[must_use]
    pub fn check_now(&self, key: impl AsRef<[u8]>) -> Option<Decision<[u8]>> {
        self.check_n_now(key, 1)
    }

    /// Charges `permits` permits to the key if this node can decide at once. `None`: nothing was charged, and the store
    /// must be asked by [`check_n`](Self::check_n).
    ///
    /// # Errors
    ///
    /// When there is no room.
    #[must_use]
    pub fn check_n_now(&self, key: impl AsRef<[u8]>, permits: u64) -> Option<Decision<[u8]>> {
        self.rules.check_times_now(key.as_ref(), permits)
    }

    /// Returns the status of the key's quotas for one permit, and changes nothing.
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    pub async fn peek(&self, key: impl AsRef<[u8]> + Send) -> Result<Vec<QuotaStatus>, StoreError> {
        self.rules.peek(key.as_ref()).await
    }

    /// Forgets what was charged to the key: see [`SharedRules::reset`].
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    pub async fn reset(&self, key: impl AsRef<[u8]> + Send) -> Result<(), StoreError> {
        self.rules.reset(key.as_ref()).await
    }

    /// Returns the rules of the limiter. Their requests are the keys.
    ///
    /// They have the methods that the limiter lacks: [`ready`](SharedRules::ready), [`refund`](SharedRules::refund),
    /// [`settle`](SharedRules::settle), [`flush`](SharedRules::flush), [`max_overshoot`](SharedRules::max_overshoot),
    /// [`lease_stats`](SharedRules::lease_stats) and, with the feature `observe`, `live_counts`.
    #[must_use]
    pub const fn rules(&self) -> &SharedRules<[u8]> {
        &self.rules
    }
}

impl fmt::Debug for SharedLimiterBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedLimiterBuilder")
            .field("rule", &self.rule)
            .finish_non_exhaustive()
    }
}
