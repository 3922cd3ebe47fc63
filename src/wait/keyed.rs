use alloc::sync::Arc;
use core::borrow::Borrow;
use core::convert::identity;
use core::marker::PhantomData;
use core::ops::Deref;
use core::time::Duration;

use super::ask::{Ask, Case, Claim, Claims};
use super::error::TurnError;
use super::fair::Fair;
use super::room::Room;
use super::runtime::Runtime;
use super::until::Until;
use crate::algorithm::Reclaim;
use crate::clock::Clock;
use crate::keyed::{KeyedRateLimiter, Keys};
use crate::receipt::{Receipt, Settled};
use crate::time::Nanos;

impl<A: Reclaim, C: Clock, K, T: Runtime> Fair<KeyedRateLimiter<A, C, K>, T> {
    /// Takes one permit of `key` if there is room and nobody waits for the same key.
    ///
    /// # Errors
    ///
    /// When there is no room, or others wait for it. Nothing was taken.
    ///
    /// # Concurrency
    ///
    /// Whoever stood in line before this call goes before it. Who enters it at the same moment may come after.
    pub fn check<Q: ?Sized>(&self, key: &Q) -> Result<Receipt, TurnError>
    where
        K: Keys<Q>,
    {
        self.check_n(key, 1)
    }

    /// Takes `permits` permits of `key` if there is room for all of them and nobody waits for the same key.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    pub fn check_n<Q: ?Sized>(&self, key: &Q, permits: u64) -> Result<Receipt, TurnError>
    where
        K: Keys<Q>,
    {
        if self.gives_way(&OfKey::new(self, key, permits, drop)) {
            return Err(TurnError::Queued);
        }
        match self.limiter.check_n(key, permits) {
            Ok(admitted) => Ok(admitted.into_receipt()),
            Err(denied) => Err(TurnError::Denied(denied.retry_after())),
        }
    }

    /// Takes one permit of `key`, as soon as it is its turn among those who wait for the same key, and there is room.
    ///
    /// # Errors
    ///
    /// When it cannot wait, or waits no longer: [`WaitError`](super::WaitError) says why. Nothing was taken.
    pub fn until_ready<'a, Q: ?Sized>(
        &'a self,
        key: &'a Q,
    ) -> Until<impl Ask<Taken = (), Runtime = T> + Unpin + use<'a, A, C, K, T, Q>>
    where
        K: Keys<Q>,
    {
        self.until_n_ready(key, 1)
    }

    /// Takes `permits` permits of `key` at once, as soon as it is its turn and there is room for all of them.
    ///
    /// # Errors
    ///
    /// As [`until_ready`](Self::until_ready). More than the limit (for an even ring, than the largest share; for GCRA,
    /// than the burst) is refused at once.
    pub fn until_n_ready<'a, Q: ?Sized>(
        &'a self,
        key: &'a Q,
        permits: u64,
    ) -> Until<impl Ask<Taken = (), Runtime = T> + Unpin + use<'a, A, C, K, T, Q>>
    where
        K: Keys<Q>,
    {
        Until::new(OfKey::new(self, key, permits, drop))
    }

    /// As [`until_n_ready`](Self::until_n_ready), with what is needed to give the permits back later.
    ///
    /// # Errors
    ///
    /// As [`until_n_ready`](Self::until_n_ready).
    pub fn acquire<'a, Q: ?Sized>(
        &'a self,
        key: &'a Q,
        permits: u64,
    ) -> Until<impl Ask<Taken = Receipt, Runtime = T> + Unpin + use<'a, A, C, K, T, Q>>
    where
        K: Keys<Q>,
    {
        Until::new(OfKey::new(self, key, permits, identity))
    }

    /// As [`acquire`](Self::acquire), with the limiter by its `Arc` and a key of its own: for a task that is spawned.
    ///
    /// # Errors
    ///
    /// As [`until_n_ready`](Self::until_n_ready).
    pub fn acquire_owned<Q: Unpin>(
        self: Arc<Self>,
        key: Q,
        permits: u64,
    ) -> Until<impl Ask<Taken = Receipt, Runtime = T> + Unpin + use<A, C, K, T, Q>>
    where
        K: Keys<Q>,
    {
        Until::new(OfKey::new(self, key, permits, identity))
    }

    /// Gives back what was taken of `key`, as [`KeyedRateLimiter::refund`]; those who wait for the same key look again.
    pub fn refund<Q: ?Sized>(&self, key: &Q, taken: impl Into<Receipt>) -> Settled
    where
        K: Keys<Q>,
    {
        let taken = taken.into();
        let permits = taken.permits();
        let settled = self.limiter.refund(key, taken);
        if permits > 0 && settled == Settled::Exact {
            self.room.given_back(&OfKey::new(self, key, permits, drop));
        }
        settled
    }
}

/// A request for one key, which is borrowed or its own.
struct OfKey<H, B, Q: ?Sized, L, O> {
    fair: H,
    key: B,
    permits: u64,
    state: u64,
    /// What is made of the receipt.
    answer: fn(Receipt) -> O,
    held: PhantomData<fn(&Q, &L)>,
}

impl<H, B, Q, A, C, K, T, O> OfKey<H, B, Q, KeyedRateLimiter<A, C, K>, O>
where
    H: Deref<Target = Fair<KeyedRateLimiter<A, C, K>, T>>,
    B: Borrow<Q>,
    Q: ?Sized,
    A: Reclaim,
    C: Clock,
    K: Keys<Q>,
    T: Runtime,
{
    fn new(fair: H, key: B, permits: u64, answer: fn(Receipt) -> O) -> Self {
        let state = fair.limiter.fingerprint(key.borrow());
        Self {
            fair,
            key,
            permits,
            state,
            answer,
            held: PhantomData,
        }
    }
}

impl<H, B, Q, A, C, K, T, O> Case for OfKey<H, B, Q, KeyedRateLimiter<A, C, K>, O>
where
    H: Deref<Target = Fair<KeyedRateLimiter<A, C, K>, T>>,
    B: Borrow<Q>,
    Q: ?Sized,
    A: Reclaim,
    C: Clock,
    K: Keys<Q>,
    T: Runtime,
{
    type Taken = O;
    type Runtime = T;

    fn room(&self) -> &Room<T> {
        &self.fair.room
    }

    fn now(&self) -> Nanos {
        self.fair.limiter.clock().now()
    }

    fn claims(&self) -> Claims {
        let Self { state, permits, .. } = *self;
        let needed = (permits > 0).then_some(Claim { state, permits });
        needed.into_iter().collect()
    }

    fn take(&self) -> Option<O> {
        let answer = self.fair.limiter.check_n(self.key.borrow(), self.permits);
        Some((self.answer)(answer.ok()?.into_receipt()))
    }

    fn ready_in(&self, _: u64, permits: u64) -> Option<Duration> {
        self.fair.limiter.peek(self.key.borrow()).retry_after(permits)
    }

    fn earliest_in(&self, _: u64, before: u64, permits: u64) -> Option<Duration> {
        let all = before.saturating_add(permits);
        self.fair.limiter.peek(self.key.borrow()).earliest_after(all)
    }
}
