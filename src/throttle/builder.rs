use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use super::direction::Direction;
use super::local_limit::LocalLimit;
use super::shared_limit;
use super::throttled::Throttled;
use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::error::ConfigError;
use crate::limiter::RateLimiter;
use crate::wait::Fair;

/// A builder of a [`Throttled`] reader or writer. A direction without a limiter is not limited.
#[must_use = "a builder does nothing until `build` is called"]
pub struct ThrottledBuilder<T> {
    inner: T,
    pub(super) read: Direction,
    pub(super) write: Direction,
    quantum: Option<u64>,
}

impl<T> Throttled<T> {
    /// Returns a builder without limits.
    pub fn builder(inner: T) -> ThrottledBuilder<T> {
        ThrottledBuilder {
            inner,
            read: Direction::default(),
            write: Direction::default(),
            quantum: None,
        }
    }
}

impl<T> ThrottledBuilder<T> {
    /// Limits reading by a limiter that this connection owns, one permit per byte: a [`RateLimiter`], or an
    /// [`InlineLimiter`](crate::InlineLimiter) that shares its policy with other connections.
    pub fn read(mut self, limiter: impl Into<LocalLimit>) -> Self {
        self.read.local = Some(limiter.into());
        self
    }

    /// Limits writing by a limiter that this connection owns, one permit per byte: a [`RateLimiter`], or an
    /// [`InlineLimiter`](crate::InlineLimiter) that shares its policy with other connections.
    pub fn write(mut self, limiter: impl Into<LocalLimit>) -> Self {
        self.write.local = Some(limiter.into());
        self
    }

    /// Limits reading by a limiter that connections share, one permit per byte. Replaces a shared limiter or shared
    /// rules that were set before.
    pub fn read_shared<A, C>(mut self, limiter: Arc<Fair<RateLimiter<A, C>>>) -> Self
    where
        A: Algorithm + Send + Sync + 'static,
        C: Clock + Send + Sync + 'static,
    {
        self.read.shared = Some(Box::new(shared_limit::from_limiter(limiter)));
        self
    }

    /// Limits writing by a limiter that connections share, one permit per byte. Replaces a shared limiter or shared
    /// rules that were set before.
    ///
    /// To limit both directions together, pass one limiter here and to [`read_shared`](Self::read_shared).
    pub fn write_shared<A, C>(mut self, limiter: Arc<Fair<RateLimiter<A, C>>>) -> Self
    where
        A: Algorithm + Send + Sync + 'static,
        C: Clock + Send + Sync + 'static,
    {
        self.write.shared = Some(Box::new(shared_limit::from_limiter(limiter)));
        self
    }

    /// Sets the bytes of one turn, for both directions.
    ///
    /// With a limiter that only this connection uses, the connection waits for the capacity of one turn, or of all its bytes if
    /// these are fewer. So it does not move a few bytes at a time. With a shared limiter, it queues for each turn.
    ///
    /// The default depends on the limiter:
    ///
    /// - A turn has the bytes of 10 ms at the limiter's rate, at least 1 KiB and at most 64 KiB. It is at most half of the
    ///   largest request (for GCRA, of the burst).
    /// - With a shared limiter, the first four turns have 1 KiB, and the size doubles after every four turns. With many waiters
    ///   turns are smaller, down to 1 KiB, so that each waiter has a turn within about 100 ms.
    /// - With rules, a turn has 8 KiB. This is halved until it is a request that the rules can admit.
    pub fn quantum(mut self, bytes: u64) -> Self {
        self.quantum = Some(bytes);
        self
    }

    /// Builds the throttled reader or writer.
    ///
    /// # Errors
    ///
    /// `quantum` is zero, or larger than the largest request of one of the limiters.
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
