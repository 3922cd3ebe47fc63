use core::fmt;

use crate::algorithm::{Algorithm, AnyAlgorithm, Reclaim};
use crate::error::ConfigError;
use crate::own_words::OwnWords;
use crate::sync::{Ordering, Shared};
use crate::table::{Entry, Table};
use crate::time::Nanos;

/// The states of many keys: a table, and the catch-all that keys without an entry share.
pub(crate) struct KeyStates {
    pub(super) table: Table,
    pub(super) catch_all: OwnWords,
    /// How often the table was cleared.
    pub(super) generation: u32,
}

impl KeyStates {
    /// Makes states for `capacity` keys of `words` words each.
    pub(crate) fn new(capacity: u64, words: usize) -> Result<Self, ConfigError> {
        Ok(Self {
            table: Table::new(capacity, words)?,
            catch_all: OwnWords::new(words),
            generation: 0,
        })
    }

    /// Makes all states fresh.
    pub(crate) fn clear(&mut self) {
        self.table.clear();
        self.catch_all = OwnWords::new(self.catch_all.len());
        self.generation = self.generation.wrapping_add(1);
    }

    pub(crate) const fn table(&self) -> &Table {
        &self.table
    }

    /// The permits that count in the catch-all, and the time at which they were counted: `now`, or the latest time in its words.
    /// The caller charges them elsewhere at this time or later.
    pub(crate) fn overflow(&self, usage: &AnyAlgorithm, now: Nanos) -> (u64, Nanos) {
        // Relaxed: the caller has synchronized with every thread whose charges it needs.
        let first = self.catch_all.get()[0].load(Ordering::Relaxed);
        // The word of a bucket is the time at which it will be full.
        let at = if usage.is_bucket() {
            now
        } else {
            now.max(usage.latest_time(first))
        };
        (usage.spent(Shared::new(self.catch_all.get()), at), at)
    }

    /// Charges the catch-all, at the time `at`, the `permits` that the catch-all of `from` has admitted. The keys that may have
    /// spent them get no entry of their own until the permits no longer count here.
    pub(crate) fn inherit_overflow(
        &self,
        from: &Self,
        charger: &AnyAlgorithm,
        permits: u64,
        at: Nanos,
        now: Nanos,
    ) {
        let catch_all = Shared::new(self.catch_all.get());
        charger.charge(catch_all, at, permits);
        let end = charger.counts_until(catch_all, at, 0);
        self.table.inherit_marks(&from.table, now, end);
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

impl fmt::Debug for KeyStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyStates")
            .field("table", &self.table)
            .field("counts", &self.table.counts().sum())
            .finish_non_exhaustive()
    }
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
        let states = &KeyStates::new(1, algorithm.words()).expect("a table");
        let decider = Decider::new(states, algorithm, &OnFull::Deny);
        let decide = |key| decider.decide_with(None, key, Nanos::new(1_000), 1).is_ok();
        let entered = (1..100)
            .filter(|&key| decide(key))
            .collect::<alloc::vec::Vec<_>>();
        assert_eq!(entered.len(), states.table.entries());
        assert!(entered.into_iter().all(decide));
    }

    /// A key that the catch-all has admitted waits for an idle entry and for the end of that admission. After a change of the
    /// policy, its denial states the later of the two times.
    #[test]
    fn a_key_that_the_former_policy_admitted_is_told_when_it_gets_an_entry() {
        let algorithm = &CounterRing::new(Quota::per_hour(2).expect("a quota")).expect("a ring");
        let states = &KeyStates::new(1, algorithm.words()).expect("a table");
        let at = |minutes: u64| Nanos::ZERO.saturating_add(Duration::from_secs(60 * minutes));
        let decide = |on_full, key, now| match Decider::new(states, algorithm, on_full).decide(key, || now, 1)
        {
            Ok(_) => Ok(()),
            Err(denied) => Err(denied.retry_after().expect("time does not end before")),
        };
        assert!((1..13).all(|key| decide(&OnFull::Share, key, at(600)).is_ok()));
        assert!(decide(&OnFull::Share, 100, at(630)).is_ok());
        let wait = |key| decide(&OnFull::Deny, key, at(640)).expect_err("every entry is in use");
        assert!(wait(100) > wait(101) + Duration::from_secs(20 * 60));
        let ready = at(640).saturating_add(wait(100));
        assert_eq!(decide(&OnFull::Deny, 100, ready), Ok(()));
    }

    /// Between the lookup of an entry and the read of its words, the key may lose the entry, and use up its limit in another one.
    #[test]
    fn capacity_is_not_read_from_an_entry_that_the_key_has_lost() {
        let algorithm = &CounterRing::new(Quota::per_hour(2).expect("a quota")).expect("a ring");
        let states = &KeyStates::new(1, algorithm.words()).expect("a table");
        let decider = Decider::new(states, algorithm, &OnFull::Deny);
        let at = |minutes: u64| Nanos::ZERO.saturating_add(Duration::from_secs(60 * minutes));
        let charge = |key, minutes, permits| decider.charge_with(None, key, at(minutes), permits).is_ok();
        assert!(charge(1, 60, 1));
        let lost = states.table().find(1).expect("its entry");
        let left = |minutes| decider.capacity_left(Some(lost), 1, at(minutes));
        assert_eq!(left(60).permits, 1);
        assert!(decider.reset(1, at(60)));
        // Other keys take all twelve entries. One of these entries becomes idle before the others.
        assert!(charge(2, 560, 1) && (3..14).all(|key| charge(key, 600, 1)) && !charge(14, 600, 1));
        assert!(charge(1, 650, 2));
        assert_ne!(states.table().find(1).expect("another").number(), lost.number());
        assert_eq!(left(650).permits, 0);
    }
}
