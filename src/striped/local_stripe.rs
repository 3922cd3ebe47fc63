use core::fmt;

use super::denied::StripedDenied;
use super::limiter::StripedLimiter;
use super::stripe::Stripe;
use super::thread_index;
use super::word::StripeWord;
use crate::clock::Clock;

/// A stripe of a [`StripedLimiter`] that one thread owns. An admission is a subtraction, without a locked instruction
/// and without a clock reading.
///
/// This is for runtimes with one thread per core, whose threads keep their stripes as long as they run.
/// [`StripedLimiter::local_stripe`] claims the stripe of the current thread. The value can be sent to another thread, and one
/// thread at a time can use it.
///
/// # Guarantee
///
/// The bound of the limiter is unchanged: the batch of a stripe is reserved from the limit, whether the stripe is owned
/// or shared.
///
/// # Trade-offs
///
/// The remaining permits of the batch are for the owner only, because other threads cannot share a count that is written
/// without locked instructions. Up to [`batch`](StripedLimiter::batch) permits of each owned stripe can be idle while other
/// callers are denied. Uncharged permits are missing from the limit until the owner makes a request or drops
/// the stripe. If the value is leaked ([`core::mem::forget`]), its stripe and its permits are lost permanently.
///
/// If the ring is full, the stripe is released for all callers. Requests are then decided as by
/// [`StripedLimiter::check`] until there is capacity again. The same happens while another thread has claimed the stripe.
///
/// # Cost
///
/// An admission is a comparison and a subtraction. The admission that fills the batch also reads the clock and charges
/// the ring. Nothing is allocated.
///
/// # Examples
///
/// ```
/// use ringgate::{Quota, StripedLimiter};
///
/// let limiter = StripedLimiter::builder(Quota::per_second(100_000)?).stripes(4).build()?;
/// let admitted: usize = std::thread::scope(|scope| {
///     let work = || {
///         // Created by the thread that uses it, and kept as long as it runs.
///         let mut stripe = limiter.local_stripe();
///         (0..10_000).filter(|_| stripe.check().is_ok()).count()
///     };
///     let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
///     workers.into_iter().map(|worker| worker.join().unwrap()).sum()
/// });
/// assert_eq!(admitted, 40_000);
/// # Ok::<(), ringgate::ConfigError>(())
/// ```
#[must_use = "it keeps its stripe from other callers"]
pub struct LocalStripe<'a, C: Clock> {
    limiter: &'a StripedLimiter<C>,
    thread_index: usize,
    /// The remaining permits of the batch. Zero while the stripe is not claimed by this value.
    left: u64,
    /// The stripe word at the claim, without the admissions since.
    claimed: Option<StripeWord>,
}

impl<'a, C: Clock> LocalStripe<'a, C> {
    fn new(limiter: &'a StripedLimiter<C>, thread_index: usize) -> Self {
        let mut stripe = Self {
            limiter,
            thread_index,
            left: 0,
            claimed: None,
        };
        if !limiter.stripes.is_empty() {
            stripe.claim(1);
        }
        stripe
    }

    /// Admits a request for one permit if there is capacity, see [`StripedLimiter::check`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`StripedLimiter::check`].
    #[inline(always)]
    pub fn check(&mut self) -> Result<(), StripedDenied<'a, C>> {
        self.check_n(1)
    }

    /// Admits a request for `permits` permits if there is capacity for all of them, see [`StripedLimiter::check_n`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`StripedLimiter::check_n`].
    #[inline(always)]
    pub fn check_n(&mut self, permits: u64) -> Result<(), StripedDenied<'a, C>> {
        if permits < self.left {
            self.left -= permits;
            return Ok(());
        }
        self.decide(permits)
    }

    /// Returns whether this value has claimed its stripe.
    #[must_use]
    pub const fn has_claim(&self) -> bool {
        self.claimed.is_some()
    }

    /// Decides a request for at least the remaining permits of the batch. Without the claim, no permits remain.
    #[cold]
    #[inline(never)]
    fn decide(&mut self, permits: u64) -> Result<(), StripedDenied<'a, C>> {
        // Only the owner can charge the count of its stripe, so the published denial does not concern an owner.
        if !self.has_claim()
            && let Some(now) = self.limiter.denied_at(permits)
        {
            return Err(StripedDenied::new(self.limiter, now, permits));
        }
        if permits > 0 && permits <= self.limiter.batch {
            // A value with a claim frees capacity by charging its count. A value without one claims the stripe, if the batch
            // has capacity beyond the current count.
            let is_taken = self.take(permits) || {
                let ready = if self.has_claim() {
                    self.charge()
                } else {
                    self.claim(permits)
                };
                ready && self.take(permits)
            };
            if is_taken {
                return Ok(());
            }
        }
        self.limiter.decide(self.thread_index, permits)
    }

    /// Takes `permits` from the batch if the stripe is claimed by this value and enough permits remain. Charges a full batch.
    fn take(&mut self, permits: u64) -> bool {
        if self.claimed.is_none() || permits > self.left {
            return false;
        }
        self.left -= permits;
        if self.left == 0 {
            self.charge();
        }
        true
    }

    /// Charges the count, or releases the stripe if the ring has no capacity. Returns whether the stripe is still claimed by
    /// this value.
    fn charge(&mut self) -> bool {
        let Some(word) = self.word() else {
            return false;
        };
        if word.count() == 0 {
            return true;
        }
        let charged_before = word.tick();
        match self.limiter.charge_keeping_claim(word) {
            Ok((at, charged)) => {
                self.set_claimed(charged.claimed());
                self.limiter.charge_old_stripes(charged_before, at);
                true
            }
            Err(kept) => {
                self.release(kept);
                false
            }
        }
    }

    /// Claims the stripe if no other thread has, and if its batch has capacity for `permits` after an expired count is removed.
    fn claim(&mut self, permits: u64) -> bool {
        let stripe = self.stripe();
        if stripe.load().is_expiring() {
            self.limiter.forget(stripe, self.limiter.clock.now());
        }
        let seen = stripe.load();
        if permits > seen.capacity(self.limiter.batch) {
            return false;
        }
        let claimed = stripe.claim(seen);
        if let Some(word) = claimed {
            self.set_claimed(word);
        }
        claimed.is_some()
    }

    fn set_claimed(&mut self, word: StripeWord) {
        self.left = self.limiter.batch - word.count();
        self.claimed = Some(word);
    }

    /// Returns the stripe word with the admissions since the claim.
    fn word(&self) -> Option<StripeWord> {
        let claimed = self.claimed?;
        let used = self.limiter.batch - claimed.count() - self.left;
        Some(if used == 0 {
            claimed
        } else {
            claimed.used(used, self.limiter.batch)
        })
    }

    fn release(&mut self, word: StripeWord) {
        self.claimed = None;
        self.left = 0;
        self.limiter.end_claim(self.stripe(), word);
    }

    fn stripe(&self) -> &'a Stripe {
        &self.limiter.stripes[self.limiter.stripe_of(self.thread_index)]
    }
}

impl<C: Clock> StripedLimiter<C> {
    /// Claims the stripe of the current thread, which then admits without locked instructions. Dropping the result ends
    /// the claim.
    ///
    /// # Concurrency
    ///
    /// If another thread has claimed the stripe, a later request claims it once it is free. Threads are assigned to
    /// stripes in turn, so two threads can have one stripe, which only one of them can claim at a time: see
    /// [`LocalStripe::has_claim`]. A runtime that numbers its threads prevents that by
    /// [`set_thread_index`](super::set_thread_index). Leave some stripes
    /// ([`StripedBuilder::stripes`](super::StripedBuilder::stripes)) unclaimed for other callers. If all are claimed, the
    /// ring decides the requests of those callers.
    #[inline]
    pub fn local_stripe(&self) -> LocalStripe<'_, C> {
        LocalStripe::new(self, thread_index::get())
    }
}

impl<C: Clock> Drop for LocalStripe<'_, C> {
    /// Releases the stripe with its uncharged count, which other callers can charge.
    fn drop(&mut self) {
        if let Some(word) = self.word() {
            self.release(word.released());
        }
    }
}

impl<C: Clock> fmt::Debug for LocalStripe<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalStripe")
            .field("thread_index", &self.thread_index)
            .field("word", &self.word())
            .finish_non_exhaustive()
    }
}
