use core::fmt;

use crate::algorithm::{Algorithm, AnyAlgorithm, Reclaim};
use crate::error::ConfigError;
use crate::own_words::OwnWords;
use crate::sync::{Ordering, Shared};
use crate::table::{Entry, Table};
use crate::time::Nanos;

/// The states of many keys: a table, and the catch-all that keys without an entry share.
pub(crate) struct Store {
    pub(super) table: Table,
    /// The catch-all that keys without an entry share.
    pub(super) catch_all: OwnWords,
    /// How often the table was cleared.
    pub(super) generation: u32,
}

impl Store {
    /// Makes a store for `capacity` keys of `words` words each.
    pub(crate) fn new(capacity: u64, words: usize) -> Result<Self, ConfigError> {
        Self::with_table(Table::new(capacity, words, false)?, words)
    }

    /// Makes a store for `capacity` keys of `words` words each, which can inherit the counts of another store.
    pub(crate) fn inheriting(capacity: u64, words: usize) -> Result<Self, ConfigError> {
        Self::with_table(Table::new(capacity, words, true)?, words)
    }

    fn with_table(table: Table, words: usize) -> Result<Self, ConfigError> {
        Ok(Self {
            table,
            catch_all: OwnWords::new(words),
            generation: 0,
        })
    }

    /// Makes the store as empty as a new one.
    pub(crate) fn clear(&mut self) {
        self.table.clear();
        self.catch_all = OwnWords::new(self.catch_all.len());
        self.generation = self.generation.wrapping_add(1);
    }

    pub(crate) const fn table(&self) -> &Table {
        &self.table
    }

    /// Charges the catch-all the permits that count in the catch-all of `from`. The keys that may have spent them get
    /// no entry of their own until the permits no longer count here.
    ///
    /// `old` reads the permits of `from`, `carried` returns how many are charged for them, `charger` charges them here, and `usage`
    /// reads whether all of them were charged.
    pub(crate) fn inherit_overflow(
        &self,
        from: &Self,
        charger: &AnyAlgorithm,
        usage: &AnyAlgorithm,
        old: &AnyAlgorithm,
        carried: impl FnOnce(u64) -> u64,
        now: Nanos,
    ) -> Inherited {
        // Relaxed: the caller has synchronized with every thread whose charges it needs.
        let first = from.catch_all.get()[0].load(Ordering::Relaxed);
        let at = if old.is_bucket() {
            now
        } else {
            now.max(old.latest_time(first))
        };
        let spent = carried(old.spent(Shared::new(from.catch_all.get()), at));
        let shared = Shared::new(self.catch_all.get());
        if spent > 0 {
            charger.charge(shared, at, spent);
            let end = charger.counts_until(shared, at, 0);
            self.table.inherit_marks(&from.table, now, end);
        }
        Inherited {
            spent: (spent > 0).then_some((spent, at)),
            is_complete: usage.spent(shared, at) >= spent,
        }
    }

    /// Whether the catch-all may have admitted the key, and the admission still counts.
    pub(crate) fn is_marked(&self, key: u64, now: Nanos) -> bool {
        self.table.region(key).overflow_until(key) > now
    }

    /// The fingerprint of a key with the hash `hash`. A hash that stands for no key in the table becomes 1.
    #[inline]
    pub(crate) const fn fingerprint(hash: u64) -> u64 {
        match hash {
            hash if Entry::is_key(hash) => hash,
            _ => 1,
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("table", &self.table)
            .field("counts", &self.table.counts().sum())
            .finish_non_exhaustive()
    }
}

/// The permits that one catch-all has taken over from another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inherited {
    /// The permits that were charged to the new catch-all for those of the old one, and the time of the charge.
    pub(crate) spent: Option<(u64, Nanos)>,
    /// Whether all of them were charged.
    pub(crate) is_complete: bool,
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::algorithm::{Algorithm, CounterRing};
    use crate::keyed::decider::Decider;
    use crate::keyed::on_full::OnFull;
    use crate::quota::Quota;
    use crate::time::Nanos;

    /// A thread that missed the key's entry decides with it, although every bucket is full.
    #[test]
    fn a_key_that_was_entered_since_its_lookup_is_found() {
        let algorithm = &CounterRing::new(Quota::per_hour(2).expect("a quota")).expect("a ring");
        let store = &Store::new(1, algorithm.words()).expect("a table");
        let decider = Decider::new(store, algorithm, OnFull::Deny);
        let decide = |key| decider.decide_with(None, key, Nanos::new(1_000), 1).is_ok();
        let entered = (1..100)
            .filter(|&key| decide(key))
            .collect::<alloc::vec::Vec<_>>();
        assert_eq!(entered.len(), store.table.entries());
        assert!(entered.into_iter().all(decide));
    }

    /// A key that the catch-all has admitted waits for an idle entry and for the end of that admission. After a change of the
    /// policy, its denial states the later of the two times.
    #[test]
    fn a_key_that_the_former_policy_admitted_is_told_when_it_gets_an_entry() {
        let algorithm = &CounterRing::new(Quota::per_hour(2).expect("a quota")).expect("a ring");
        let store = &Store::new(1, algorithm.words()).expect("a table");
        let at = |minutes: u64| Nanos::ZERO.saturating_add(Duration::from_secs(60 * minutes));
        let decide = |on_full, key, now| match Decider::new(store, algorithm, on_full).decide(key, || now, 1)
        {
            Ok(_) => Ok(()),
            Err(denied) => Err(denied.retry_after().expect("time does not end before")),
        };
        assert!((1..13).all(|key| decide(OnFull::Share, key, at(600)).is_ok()));
        assert!(decide(OnFull::Share, 100, at(630)).is_ok());
        let wait = |key| decide(OnFull::Deny, key, at(640)).expect_err("every entry is in use");
        assert!(wait(100) > wait(101) + Duration::from_secs(20 * 60));
        let ready = at(640).saturating_add(wait(100));
        assert_eq!(decide(OnFull::Deny, 100, ready), Ok(()));
    }

    /// Between the lookup of an entry and the read of its words, the key may lose the entry, and use up its limit in another one.
    #[test]
    fn capacity_is_not_read_from_an_entry_that_the_key_has_lost() {
        let algorithm = &CounterRing::new(Quota::per_hour(2).expect("a quota")).expect("a ring");
        let store = &Store::new(1, algorithm.words()).expect("a table");
        let decider = Decider::new(store, algorithm, OnFull::Deny);
        let at = |minutes: u64| Nanos::ZERO.saturating_add(Duration::from_secs(60 * minutes));
        let charge = |key, minutes, permits| decider.charge_with(None, key, at(minutes), permits).is_ok();
        assert!(charge(1, 60, 1));
        let lost = store.table().find(1).expect("its entry");
        let left = |minutes| decider.capacity_left(Some(lost), 1, at(minutes));
        assert_eq!(left(60).permits, 1);
        assert!(decider.reset(1, at(60)));
        // Other keys take all twelve entries. One of these entries becomes idle before the others.
        assert!(charge(2, 560, 1) && (3..14).all(|key| charge(key, 600, 1)) && !charge(14, 600, 1));
        assert!(charge(1, 650, 2));
        assert_ne!(store.table().find(1).expect("another").number(), lost.number());
        assert_eq!(left(650).permits, 0);
    }
}
