//! The word that orders everything that happens to a lease.

use crate::debug::debug_fields;
use crate::sync::{AtomicU64, Ordering};

/// The balance of a lease as a value. From the lowest bit:
///
/// | bits | field | meaning |
/// |---|---|---|
/// | 20 | used | permits that were spent in this epoch |
/// | 20 | budget | permits that may be spent in this epoch |
/// | 24 | epoch | reports and leases so far, modulo 2^24 |
///
/// The epoch wraps around. A decider that is suspended during exactly 2^24 reports of one lease, and finds equal
/// budgets and equal use, mistakes one epoch for the other. At one report per millisecond that is a suspension of four
/// hours and forty minutes, exact to the millisecond.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Balance(u64);

impl Balance {
    const BITS: u32 = 20;
    const FIELD: u64 = (1 << Self::BITS) - 1;
    const EPOCHS: u64 = u64::MAX >> (2 * Self::BITS);

    const fn new(epoch: u32, budget: u64, used: u64) -> Self {
        Self((epoch as u64 & Self::EPOCHS) << (2 * Self::BITS) | budget << Self::BITS | used)
    }

    pub(crate) const fn used(self) -> u64 {
        self.0 & Self::FIELD
    }

    pub(crate) const fn budget(self) -> u64 {
        self.0 >> Self::BITS & Self::FIELD
    }

    pub(crate) const fn epoch(self) -> u32 {
        // 24 bits.
        (self.0 >> (2 * Self::BITS)) as u32
    }

    /// The permits that may still be spent.
    #[inline]
    pub(super) const fn room(self) -> u64 {
        self.budget().saturating_sub(self.used())
    }

    /// `{ e, b, u }` → `{ e, b, u + permits }`; `permits` are at most the room.
    #[inline]
    const fn spent(self, permits: u64) -> Self {
        Self(self.0 + permits)
    }

    /// `{ e, b, u }` → `{ e + 1, budget, 0 }`.
    const fn next(self, budget: u64) -> Self {
        // Claim: lease 2, a report begins an epoch.
        Self::new(self.epoch().wrapping_add(1), budget, 0)
    }

    /// `{ e, b, u }` → `{ e, budget, u }`, the budget at least u and at most what its field holds.
    const fn granted(self, budget: u64) -> Self {
        let budget = if budget > Self::FIELD { Self::FIELD } else { budget };
        let budget = if budget < self.used() { self.used() } else { budget };
        Self::new(self.epoch(), budget, self.used())
    }
}

debug_fields!(Balance { epoch, budget, used });

/// A node's report to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UsageReport {
    /// The permits that were spent, and are to be charged.
    pub(crate) charge: u64,
    /// The most permits that stay uncharged until the answer, the charge included.
    pub(crate) cap: u64,
}

/// The word of a [`Balance`].
#[derive(Debug)]
pub(super) struct BalanceWord(AtomicU64);

impl BalanceWord {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    #[inline]
    pub(super) fn read(&self) -> Balance {
        // Acquire: pairs with the Release in `change`; a reader of a budget reads its term and its owner.
        // Claim: lease 4, a thread that reads a budget reads its term and its owner.
        Balance(self.0.load(Ordering::Acquire))
    }

    /// Takes permits, if the balance still is `seen`.
    #[inline]
    pub(super) fn spend(&self, seen: Balance, permits: u64) -> bool {
        // Release: pairs with the Acquire in `change`; the clock was read before, so the charge that follows is later.
        let success = Ordering::Release;
        // Relaxed: the caller reads again.
        let failure = Ordering::Relaxed;
        self.0
            .compare_exchange(seen.0, seen.spent(permits).0, success, failure)
            .is_ok()
    }

    pub(super) fn refund(&self, epoch: u32, permits: u64) -> bool {
        let refunded = self.change(|seen| {
            // Claim: lease 6, a refund is of its own epoch.
            let covers = seen.epoch() == epoch && seen.used() >= permits;
            covers.then(|| Balance::new(epoch, seen.budget(), seen.used() - permits))
        });
        refunded.is_some()
    }

    pub(super) fn report(&self, max_cap: u64) -> UsageReport {
        let cap = |seen: Balance| max_cap.min(seen.budget()).max(seen.used());
        // Claim: lease 1, a report leaves no more than its cap.
        let seen = self.change(|seen| Some(seen.next(cap(seen) - seen.used())));
        // The closure always returns a balance, so the change succeeds.
        let seen = seen.unwrap_or(Balance(0));
        UsageReport {
            charge: seen.used(),
            cap: cap(seen),
        }
    }

    pub(super) fn grant(&self, budget: u64) {
        self.change(|seen| Some(seen.granted(budget)));
    }

    pub(super) fn lose(&self) -> u64 {
        // The closure always returns a balance, so the change succeeds.
        self.change(|seen| Some(seen.next(0))).map_or(0, Balance::used)
    }

    pub(super) fn clear(&self) -> bool {
        self.change(|seen| (seen.used() == 0).then(|| seen.next(0)))
            .is_some()
    }

    /// Replaces the balance by the one that `make` returns, and returns the old one. `None`: `make` returned none.
    fn change(&self, make: impl Fn(Balance) -> Option<Balance>) -> Option<Balance> {
        // Relaxed: only a guess, the exchange below validates it.
        let mut seen = Balance(self.0.load(Ordering::Relaxed));
        loop {
            let made = make(seen)?;
            // Acquire: pairs with the Release in `spend`; every use so far precedes the charge that follows. Release:
            // pairs with the Acquire in `read`.
            let success = Ordering::AcqRel;
            // Relaxed: as above.
            let failure = Ordering::Relaxed;
            match self.0.compare_exchange(seen.0, made.0, success, failure) {
                Ok(_) => return Some(seen),
                Err(other) => seen = Balance(other),
            }
        }
    }
}
