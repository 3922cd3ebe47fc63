use alloc::boxed::Box;
use alloc::sync::Arc;
#[cfg(feature = "rules")]
use core::borrow::Borrow;
use core::fmt;

use super::own::Own;
use super::shared;
use super::side::Side;
use super::throttled::Throttled;
use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::error::ConfigError;
use crate::limiter::RateLimiter;
#[cfg(feature = "rules")]
use crate::rules::Cost;
use crate::wait::Fair;
#[cfg(feature = "rules")]
use crate::wait::Judge;

/// A [`Throttled`] reader or writer in the making: what limits each of its directions. A direction without a limiter is
/// not limited.
#[must_use = "a builder does nothing until it has built"]
pub struct ThrottledBuilder<T> {
    inner: T,
    read: Side,
    write: Side,
    quantum: Option<u64>,
}

impl<T> ThrottledBuilder<T> {
    pub(super) fn new(inner: T) -> Self {
        Self {
            inner,
            read: Side::default(),
            write: Side::default(),
            quantum: None,
        }
    }

    /// Limits reading by a limiter of the connection's own, a permit for each byte.
    pub fn read<A, C>(mut self, limiter: RateLimiter<A, C>) -> Self
    where
        A: Algorithm + Send + Sync + 'static,
        C: Clock + Send + Sync + 'static,
    {
        self.read.own = Some(Own::new(limiter));
        self
    }

    /// Limits writing by a limiter of the connection's own, a permit for each byte.
    pub fn write<A, C>(mut self, limiter: RateLimiter<A, C>) -> Self
    where
        A: Algorithm + Send + Sync + 'static,
        C: Clock + Send + Sync + 'static,
    {
        self.write.own = Some(Own::new(limiter));
        self
    }

    /// Limits reading by a limiter that others share, a permit for each byte: in place of one, or of rules, given
    /// before.
    pub fn read_shared<A, C>(mut self, limiter: Arc<Fair<RateLimiter<A, C>>>) -> Self
    where
        A: Algorithm + Send + Sync + 'static,
        C: Clock + Send + Sync + 'static,
    {
        self.read.shared = Some(Box::new(shared::by_limiter(limiter)));
        self
    }

    /// Limits writing by a limiter that others share, a permit for each byte: in place of one, or of rules, given
    /// before. With the same limiter as for reading, both directions together are limited.
    pub fn write_shared<A, C>(mut self, limiter: Arc<Fair<RateLimiter<A, C>>>) -> Self
    where
        A: Algorithm + Send + Sync + 'static,
        C: Clock + Send + Sync + 'static,
    {
        self.write.shared = Some(Box::new(shared::by_limiter(limiter)));
        self
    }

    /// Limits reading by rules that others share: in place of a shared limiter, or of rules, given before.
    ///
    /// Each turn is a request, which `request` makes of the bytes that it is for; `cost` is what takes them out of it
    /// again. Rules without that cost count turns.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::hash::Hash;
    /// use std::sync::Arc;
    /// use ringgate::{Cost, Fair, Key, Rule, RuleSet, Throttled};
    ///
    /// #[derive(Clone, Copy)]
    /// struct Transfer {
    ///     user: u32,
    ///     bytes: u64,
    /// }
    ///
    /// # #[cfg(feature = "quanta")]
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let user = Key::new("user", |transfer: &Transfer, key| transfer.user.hash(key));
    /// let bytes = Cost::new("bytes", |transfer: &Transfer| transfer.bytes);
    /// let rules = RuleSet::builder()
    ///     .rule(Rule::new("each user", "1_000_000/s".parse()?).by(&user).cost(&bytes))
    ///     .rule(Rule::new("all", "10_000_000/s".parse()?).cost(&bytes))
    ///     .build()?;
    /// let rules = Arc::new(Fair::new(rules));
    ///
    /// let upload = Throttled::builder(tokio::io::empty())
    ///     .read_rules(rules, &bytes, |bytes| Transfer { user: 7, bytes })
    ///     .build()?;
    /// # let _ = upload;
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "quanta"))]
    /// # fn main() {}
    /// ```
    #[cfg(feature = "rules")]
    pub fn read_rules<J, B>(
        mut self,
        rules: Arc<Fair<J>>,
        cost: &Cost<J::Request>,
        request: impl Fn(u64) -> B + Send + Sync + 'static,
    ) -> Self
    where
        J: Judge<Request: 'static> + Send + Sync + 'static,
        B: Borrow<J::Request> + Unpin + Send + 'static,
    {
        self.read.shared = Some(shared::by_rules(rules, cost.clone(), request));
        self
    }

    /// Limits writing by rules that others share, as [`read_rules`](Self::read_rules) limits reading.
    #[cfg(feature = "rules")]
    pub fn write_rules<J, B>(
        mut self,
        rules: Arc<Fair<J>>,
        cost: &Cost<J::Request>,
        request: impl Fn(u64) -> B + Send + Sync + 'static,
    ) -> Self
    where
        J: Judge<Request: 'static> + Send + Sync + 'static,
        B: Borrow<J::Request> + Unpin + Send + 'static,
    {
        self.write.shared = Some(shared::by_rules(rules, cost.clone(), request));
        self
    }

    /// Sets how many bytes a turn is for, in both directions.
    ///
    /// By a limiter of its own a connection waits until there is room for a turn, or for all that it has to move, so
    /// that it does not move a few bytes at a time. By a shared one it stands in line for each turn.
    ///
    /// When nothing is said, a turn is for what 10 ms allow, 1 KiB at the least and 64 KiB at the most, but no more
    /// than half of what is admitted at once (for GCRA, of the burst). By a shared limiter the first four are for 1 KiB
    /// at the most, and after every four they are for up to twice as much; the more others wait, the shorter, down to 1
    /// KiB, so that all have had one after about 100 ms. By rules: 8 KiB, or half of that as often as it takes where so
    /// much is never admitted at once.
    pub fn quantum(mut self, bytes: u64) -> Self {
        self.quantum = Some(bytes);
        self
    }

    /// Builds the throttled reader or writer.
    ///
    /// # Errors
    ///
    /// - `quantum`: zero, or more than one of the limiters ever admits at once.
    pub fn build(self) -> Result<Throttled<T>, ConfigError> {
        let Self {
            inner,
            mut read,
            mut write,
            quantum,
        } = self;
        if let Some(bytes) = quantum {
            read.set_quantum(bytes)?;
            write.set_quantum(bytes)?;
        }
        Ok(Throttled::new(inner, read, write))
    }
}

impl<T: fmt::Debug> fmt::Debug for ThrottledBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThrottledBuilder")
            .field("inner", &self.inner)
            .field("quantum", &self.quantum)
            .finish_non_exhaustive()
    }
}
