use core::fmt;

use super::account::Account;
use crate::sync::{AtomicU64, Ordering};
use crate::time::Nanos;

/// One stripe: its account, and the newest time that a caller has given. Every atomic operation on
/// them is here.
pub(super) struct Stripe {
    account: AtomicU64,
    given: AtomicU64,
}

/// What became of an attempt to use a stripe's hold.
#[derive(Clone, Copy, Debug)]
pub(super) enum Use {
    /// Used.
    Done,
    /// Used, and the stripe is full: it is claimed by the caller, who must charge it.
    Filled(Account),
    /// Not used: the hold has too little room, or somebody has claimed the stripe.
    Short,
}

impl Stripe {
    pub(super) fn new() -> Self {
        Self {
            account: AtomicU64::new(0),
            given: AtomicU64::new(0),
        }
    }

    /// The account as it is.
    #[inline]
    pub(super) fn look(&self) -> Account {
        // Relaxed: a guess, which every exchange below validates.
        Account::from_raw(self.account.load(Ordering::Relaxed))
    }

    /// Uses `permits` of the hold, and claims the stripe in the same step if that fills it; as long as they are no more than
    /// the `room` of account and hold.
    #[inline(always)]
    pub(super) fn take(&self, permits: u64, hold: u64, room: impl Fn(Account, u64) -> u64) -> Use {
        let mut seen = self.look();
        loop {
            if permits > room(seen, hold) {
                return Use::Short;
            }
            let used = seen.used(permits, hold);
            // Release: pairs with the Acquire in `claim` and below; puts the use, and the caller's
            // `note`, before the reading of the clock that it is charged at.
            // Acquire, for the one that fills: pairs with the Release here and in `release`; puts all
            // earlier uses before that reading.
            match self
                .account
                // Relaxed on failure: as in `look`.
                .compare_exchange(seen.raw(), used.raw(), Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) if used.is_claimed() => return Use::Filled(used),
                Ok(_) => return Use::Done,
                Err(newer) => seen = Account::from_raw(newer),
            }
        }
    }

    /// Claims the stripe, to charge what `seen` says; `None` when it has changed.
    pub(super) fn claim(&self, seen: Account) -> Option<Account> {
        let claimed = seen.claimed();
        // Acquire: pairs with the Release in `take` and `release`; puts all uses before the reading of
        // the clock that they are charged at. Nothing is published: `release` does that.
        // Relaxed on failure: as in `look`.
        self.account
            .compare_exchange(seen.raw(), claimed.raw(), Ordering::Acquire, Ordering::Relaxed)
            .ok()
            .map(|_| claimed)
    }

    /// Ends a claim. A store will do: who has claimed the stripe is the only one to write.
    pub(super) fn release(&self, account: Account) {
        // Release: pairs with the Acquire in `take` and `claim`; whoever uses what is free again comes
        // after the charge, and whoever charges what was kept reads the clock after its use.
        self.account.store(account.raw(), Ordering::Release);
    }

    /// Empties the stripe of uses that no longer count; false when it has changed.
    pub(super) fn forget(&self, seen: Account) -> bool {
        // Release: pairs with the Acquire in `take` and `claim`; whoever charges what is used from
        // now on finds the ring no earlier than the forgetter did.
        // Relaxed on failure: as in `look`.
        self.account
            .compare_exchange(
                seen.raw(),
                seen.forgotten().raw(),
                Ordering::Release,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Notes a time that a caller has given, before it uses the stripe.
    #[inline]
    pub(super) fn note(&self, given: Nanos) {
        // Relaxed: only a guess whether there is anything to do. An older value costs one step more.
        if self.given.load(Ordering::Relaxed) < given.get() {
            // Relaxed: `take` publishes it.
            self.given.fetch_max(given.get(), Ordering::Relaxed);
        }
    }

    /// The newest time given for anything that was used before the stripe was claimed.
    pub(super) fn noted(&self) -> Nanos {
        // Relaxed: the Acquire in `claim` or `take`, which came before, pairs with the Release in `take`.
        Nanos::new(self.given.load(Ordering::Relaxed))
    }
}

impl fmt::Debug for Stripe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stripe")
            .field("account", &self.look())
            .field("given", &self.noted())
            .finish()
    }
}
