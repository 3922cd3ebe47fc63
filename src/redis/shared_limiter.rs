use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::hash::Hash;
use core::num::NonZeroU32;
use core::time::Duration;

use super::answer::{Look, SharedPassed, SharedRefused};
use super::shared_rules::SharedRules;
use super::shared_rules_builder::SharedRulesBuilder;
use super::standing::Standing;
use super::store::Store;
use super::store_error::StoreError;
use crate::quota::Quota;
use crate::receipt::Settled;
use crate::rules::{Key, Mode, OnError, Rule, RuleAlgorithm, RuleError};

/// One limit for each of many keys, over counts that many machines share: a [`SharedRules`] of one rule.
///
/// For a limit of everybody together, always ask with the same key.
///
/// # Examples
///
/// A hundred logins a minute for each user, over all machines:
///
/// ```no_run
/// use std::sync::Arc;
///
/// use ringgate::redis::{OnError, RedisStore, SharedLimiter};
///
/// # async fn example() -> Result<(), Box<dyn core::error::Error>> {
/// let store = Arc::new(RedisStore::builder("redis://127.0.0.1:6379").build()?);
/// let logins = SharedLimiter::builder("login", "100/60s".parse()?)
///     // Each permit by itself, exactly.
///     .log()
///     .on_error(OnError::Deny)
///     .build(store)?;
/// if let Err(refused) = logins.check("alice").await {
///     println!("{refused}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SharedLimiter {
    rules: SharedRules<[u8]>,
}

/// What a [`SharedLimiter`] is built from.
#[must_use = "a builder does nothing until it is built"]
pub struct SharedLimiterBuilder {
    rule: Rule<[u8]>,
    rules: SharedRulesBuilder<[u8]>,
}

impl SharedLimiterBuilder {
    /// Allows `quota` too: a request is admitted when every quota has room.
    pub fn also(mut self, quota: Quota) -> Self {
        self.rule = self.rule.also(quota);
        self
    }

    /// Counts each permit by itself, exactly, for up to 100,000 of them.
    pub fn log(mut self) -> Self {
        self.rule = self.rule.algorithm(RuleAlgorithm::Log);
        self
    }

    /// Counts by so many cells to a window, which is up to a cell too strict:
    /// [`DEFAULT_CELLS`](crate::CounterRing::DEFAULT_CELLS) when nothing is said, 1000 at the most.
    pub fn cells(mut self, cells: u64) -> Self {
        self.rule = self.rule.algorithm(RuleAlgorithm::Counter).cells(cells);
        self
    }

    /// What decides when the store does not answer.
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.rule = self.rule.on_error(on_error);
        self
    }

    /// How many keys this node has room for in its own limiter, which decides when the store does not answer.
    pub fn capacity(mut self, keys: u64) -> Self {
        self.rule = self.rule.capacity(keys);
        self
    }

    /// As [`SharedRulesBuilder::nodes`].
    pub fn nodes(mut self, nodes: NonZeroU32) -> Self {
        self.rules = self.rules.nodes(nodes);
        self
    }

    /// As [`SharedRulesBuilder::secret`].
    pub fn secret(mut self, secret: [u8; 16]) -> Self {
        self.rules = self.rules.secret(secret);
        self
    }

    /// How far a node may decide by itself; [`Mode::Strict`], when nothing is said: not at all.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.rule = self.rule.mode(mode);
        self
    }

    /// As [`mode`](Self::mode), of [`Mode::Lease`].
    pub fn lease(self, permits: u64) -> Self {
        self.mode(Mode::Lease { permits })
    }

    /// As [`mode`](Self::mode), of [`Mode::Sync`].
    pub fn sync(self, period: Duration, pending: u64) -> Self {
        self.mode(Mode::Sync { period, pending })
    }

    /// As [`SharedRulesBuilder::term`].
    pub fn term(mut self, term: Duration) -> Self {
        self.rules = self.rules.term(term);
        self
    }

    /// As [`SharedRulesBuilder::period`].
    pub fn period(mut self, period: Duration) -> Self {
        self.rules = self.rules.period(period);
        self
    }

    /// As [`SharedRulesBuilder::accounts`].
    pub fn accounts(mut self, accounts: u64) -> Self {
        self.rules = self.rules.accounts(accounts);
        self
    }

    /// Builds the limiter over a store.
    ///
    /// # Errors
    ///
    /// As [`SharedRulesBuilder::build`].
    pub fn build(self, store: Arc<dyn Store>) -> Result<SharedLimiter, RuleError> {
        let rules = self.rules.rule(self.rule).build(store)?;
        Ok(SharedLimiter { rules })
    }
}

impl SharedLimiter {
    /// A limiter of this name, which allows `quota` to each key.
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

    /// Takes one permit of the key's if there is room.
    ///
    /// # Errors
    ///
    /// As [`SharedRules::check`].
    pub async fn check(&self, key: impl AsRef<[u8]> + Send) -> Result<SharedPassed, SharedRefused> {
        self.check_n(key, 1).await
    }

    /// Takes `permits` permits of the key's if there is room for all of them.
    ///
    /// # Errors
    ///
    /// As [`SharedRules::check`].
    pub async fn check_n(
        &self,
        key: impl AsRef<[u8]> + Send,
        permits: u64,
    ) -> Result<SharedPassed, SharedRefused> {
        self.rules.check_times(key.as_ref(), permits).await
    }

    /// Takes one permit of the key's, if that can be decided on this node at once. `None`: nothing was done, and the
    /// store must be asked, by [`check`](Self::check).
    ///
    /// # Errors
    ///
    /// As [`SharedRules::check`].
    #[must_use]
    pub fn check_now(&self, key: impl AsRef<[u8]>) -> Option<Result<SharedPassed, SharedRefused>> {
        self.check_n_now(key, 1)
    }

    /// As [`check_now`](Self::check_now), for `permits` permits.
    ///
    /// # Errors
    ///
    /// As [`SharedRules::check`].
    #[must_use]
    pub fn check_n_now(
        &self,
        key: impl AsRef<[u8]>,
        permits: u64,
    ) -> Option<Result<SharedPassed, SharedRefused>> {
        self.rules.check_times_now(key.as_ref(), permits)
    }

    /// How many permits more than the limit all nodes together may admit in a window, when there are so many, while the
    /// store answers and forgets nothing. `None`: there is no bound that a number can hold.
    #[must_use]
    pub fn max_overshoot(&self, nodes: u64) -> Option<u64> {
        self.rules.max_overshoot(nodes).next().and_then(|(_, most)| most)
    }

    /// As [`SharedRules::flush`].
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    pub async fn flush(&self) -> Result<(), StoreError> {
        self.rules.flush().await
    }

    /// How the accounts are.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.rules.standing()
    }

    /// Looks at the key's quotas for one permit, and changes nothing.
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    pub async fn peek(&self, key: impl AsRef<[u8]> + Send) -> Result<Vec<Look>, StoreError> {
        self.rules.peek(key.as_ref()).await
    }

    /// As [`SharedRules::reset`].
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    pub async fn reset(&self, key: impl AsRef<[u8]> + Send) -> Result<(), StoreError> {
        self.rules.reset(key.as_ref()).await
    }

    /// As [`SharedRules::refund`].
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    pub async fn refund(&self, passed: SharedPassed) -> Result<Settled, StoreError> {
        self.rules.refund(passed).await
    }

    #[cfg(feature = "observe")]
    pub(super) fn books(&self) -> Option<&Arc<super::books::Books>> {
        self.rules.books()
    }

    /// As [`SharedRules::live_counts`].
    #[cfg(feature = "observe")]
    pub fn live_counts(&self) -> crate::rules::LiveCounts<'_> {
        self.rules.live_counts()
    }
}

impl fmt::Debug for SharedLimiterBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedLimiterBuilder")
            .field("rule", &self.rule)
            .finish_non_exhaustive()
    }
}
