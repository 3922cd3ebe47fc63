use core::fmt;

use super::counts::{Counts, Event};
use super::forward::Forward;
use super::on_full::OnFull;
use super::search::{Place, Search, View};
#[cfg(feature = "rules")]
use crate::algorithm::{Algorithm, AnyAlgorithm};
use crate::algorithm::{Attempt, Reclaim};
use crate::decision::{Admitted, Denied, NextEntry, Peek, StateRef, answer};
use crate::error::ConfigError;
use crate::own_words::OwnWords;
use crate::receipt::{Payer, Receipt, Settled};
#[cfg(feature = "rules")]
use crate::sync::Ordering;
use crate::sync::Shared;
use crate::table::{Entry, Seat, Table};
use crate::time::Nanos;

/// What is known of each key: the table, and what keys without an entry share.
pub(crate) struct Store {
    table: Table,
    /// The catch-all that keys without an entry share.
    shared: OwnWords,
    counts: Counts,
    /// How often the table was cleared.
    generation: u32,
}

impl Store {
    /// Room for `capacity` keys of `words` words each.
    pub(crate) fn new(capacity: u64, words: usize) -> Result<Self, ConfigError> {
        Ok(Self {
            table: Table::new(capacity, words)?,
            shared: OwnWords::new(words),
            counts: Counts::new(),
            generation: 0,
        })
    }

    /// As new.
    pub(crate) fn clear(&mut self) {
        self.table.clear();
        self.shared = OwnWords::new(self.shared.get().len());
        self.counts = Counts::new();
        self.generation = self.generation.wrapping_add(1);
    }

    pub(crate) const fn table(&self) -> &Table {
        &self.table
    }

    pub(super) const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Hands over the fingerprint of every key that has an entry.
    #[cfg(feature = "rules")]
    pub(crate) fn for_each(&self, key: impl FnMut(u64)) {
        self.table.for_each_key(key);
    }

    /// From now on no key begins earlier than at `now`, whatever reading it comes with.
    #[cfg(feature = "rules")]
    pub(crate) fn begin_after(&self, now: Nanos) {
        self.table.begin_after(now);
    }

    /// Charges the catch-all what that of `from` has counted, and bars the keys that may have spent it from
    /// entries of their own until that no longer counts here.
    #[cfg(feature = "rules")]
    pub(crate) fn inherit_overflow(
        &self,
        from: &Self,
        booker: &AnyAlgorithm,
        gauge: &AnyAlgorithm,
        old: &AnyAlgorithm,
        now: Nanos,
    ) -> Inherited {
        // Relaxed: what the caller is to see of it was seen before.
        let first = from.shared.get()[0].load(Ordering::Relaxed);
        let at = match old {
            AnyAlgorithm::Gcra(_) => now,
            old => now.max(old.latest_time(first)),
        };
        let spent = old.spent(Shared::new(from.shared.get()), at);
        let shared = Shared::new(self.shared.get());
        if spent > 0 {
            booker.charge(shared, at, spent);
            let end = at.saturating_add(booker.span());
            self.table.inherit_marks(&from.table, now, end);
        }
        Inherited {
            spent: (spent > 0).then_some((spent, at)),
            is_remembered: gauge.spent(shared, at) >= spent,
        }
    }

    /// Whether the key may have been admitted by the catch-all, as far as that still counts.
    #[cfg(feature = "rules")]
    pub(crate) fn is_marked(&self, key: u64, now: Nanos) -> bool {
        self.table.home(key).shared(key) > now
    }

    /// The first word of the key's state, 0 if it has none.
    #[cfg(feature = "rules")]
    pub(crate) fn first_word(&self, key: u64) -> u64 {
        self.table.first_word(key)
    }

    /// The key's bits as the table knows them: never those that stand for nobody.
    #[inline]
    pub(crate) const fn fingerprint(hash: u64) -> u64 {
        match hash {
            Entry::NOBODY | Entry::UNSPENT => 1,
            hash => hash,
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("table", &self.table)
            .field("counts", &self.counts.sum())
            .finish_non_exhaustive()
    }
}

/// What one catch-all has taken over from another.
#[cfg(feature = "rules")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inherited {
    /// What was spent there, and when it was charged here.
    pub(crate) spent: Option<(u64, Nanos)>,
    /// Whether all of it was.
    pub(crate) is_remembered: bool,
}

/// An algorithm that decides about the keys of a store.
#[derive(Debug)]
pub(crate) struct Desk<'a, A> {
    pub(crate) store: &'a Store,
    pub(crate) algorithm: &'a A,
    pub(crate) on_full: OnFull,
}

impl<A> Clone for Desk<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Desk<'_, A> {}

impl<'a, A: Reclaim> Desk<'a, A> {
    fn search(self, key: u64, now: Nanos) -> Search<'a, A> {
        Search {
            table: &self.store.table,
            algorithm: self.algorithm,
            counts: &self.store.counts,
            key,
            now,
        }
    }

    /// Takes `permits` of `key`, all or none of them.
    #[inline(always)]
    pub(crate) fn decide(
        self,
        key: u64,
        now: impl FnOnce() -> Nanos,
        permits: u64,
    ) -> Result<Admitted<'a, A>, Denied<'a, A>> {
        let table = &self.store.table;
        // What reads the clock waits for what is begun before it, and lets nothing begin that comes after: so hints are read
        // before, and memory that is far away is asked for. Which key has the entry shows when it is used.
        let found = table.find_far(key).or_else(|| table.guess_near(key));
        self.decide_with(found, key, now(), permits)
    }

    /// The same, where the entry that the key seems to have was found before.
    #[inline(always)]
    pub(crate) fn decide_with(
        self,
        found: Option<Entry<'a>>,
        key: u64,
        now: Nanos,
        permits: u64,
    ) -> Result<Admitted<'a, A>, Denied<'a, A>> {
        // For nothing no word of the entry would be read, and so not show whose it is.
        if permits > 0
            && let Some(entry) = found
            && let Some(decision) = self.decide_by_entry(entry, key, now, permits)
        {
            return decision;
        }
        Self::enter(self.store, self.algorithm, self.on_full, key, now, permits)
    }

    /// Decides with an entry. `None` if the key has lost it, or another thread was faster.
    #[inline(always)]
    fn decide_by_entry(
        self,
        entry: Entry<'a>,
        key: u64,
        now: Nanos,
        permits: u64,
    ) -> Option<Result<Admitted<'a, A>, Denied<'a, A>>> {
        let receipt = match self.attempt(entry, key, now, permits) {
            Attempt::Admitted(receipt) => Some(receipt),
            Attempt::Denied => None,
            Attempt::Retry => return None,
        };
        let held = StateRef::Entry(entry, key);
        Some(answer(self.algorithm, held, now, permits, receipt))
    }

    /// Decides with an entry; `Retry`: the key has lost it, or another thread was faster.
    #[inline(always)]
    fn attempt(self, entry: Entry<'_>, key: u64, now: Nanos, permits: u64) -> Attempt {
        let seat = Seat::new(entry, key);
        match self.algorithm.attempt(&seat, now, permits) {
            Attempt::Admitted(receipt) => Attempt::Admitted(self.charged(receipt, entry)),
            Attempt::Retry => Attempt::Retry,
            // It may be of the zeros of a lost entry, or of the word of a key that had the entry in between: the
            // fingerprint that was read after it was its own only if the word still stands.
            Attempt::Denied if seat.seen() != Seat::UNSEEN && !entry.still(seat.seen()) => Attempt::Retry,
            Attempt::Denied => Attempt::Denied,
        }
    }

    /// The receipt for what was charged to an entry.
    #[inline(always)]
    fn charged(self, receipt: Receipt, entry: Entry<'_>) -> Receipt {
        receipt.paid_by(Payer::Entry(entry.number(), self.store.generation))
    }

    /// Decides for a key that has no entry, as it seems, or that many ask for. With each part of the desk by itself: a desk
    /// that is handed over has to be in memory, and be put there by every decision.
    #[cold]
    #[inline(never)]
    fn enter(
        store: &'a Store,
        algorithm: &'a A,
        on_full: OnFull,
        key: u64,
        now: Nanos,
        permits: u64,
    ) -> Result<Admitted<'a, A>, Denied<'a, A>> {
        Desk {
            store,
            algorithm,
            on_full,
        }
        .enter_key(key, now, permits)
    }

    #[inline]
    fn enter_key(self, key: u64, now: Nanos, permits: u64) -> Result<Admitted<'a, A>, Denied<'a, A>> {
        let search = self.search(key, now);
        // Otherwise the answer is the same for every state, so none is needed.
        let matters = permits > 0 && permits <= self.algorithm.max_request();
        if matters && let Some((entry, receipt)) = search.enter_unused(permits) {
            let held = StateRef::Entry(entry, key);
            if let Some(receipt) = receipt {
                let receipt = self.charged(receipt, entry);
                return answer(self.algorithm, held, now, permits, Some(receipt));
            }
            if let Some(decision) = self.decide_by_entry(entry, key, now, permits) {
                return decision;
            }
        }
        let table = &self.store.table;
        if let Some(entry) = table.find_in_front(key).or_else(|| table.find_in_backyard(key))
            && let Some(decision) = self.decide_by_entry(entry, key, now, permits)
        {
            return decision;
        }
        if !matters {
            let receipt = (permits == 0).then(|| Receipt::new(now, 0, 0));
            return answer(self.algorithm, StateRef::Fresh, now, permits, receipt);
        }
        self.enter_anywhere(&search, permits)
    }

    /// Decides for a key that has no entry, as it seems, and finds none that was never used.
    #[inline(never)]
    fn enter_anywhere(self, search: &Search<'a, A>, permits: u64) -> Result<Admitted<'a, A>, Denied<'a, A>> {
        let (key, now) = (search.key, search.now);
        loop {
            let (held, now) = match search.enter(self.on_full == OnFull::Forget) {
                Place::Entry(entry) => match self.decide_by_entry(entry, key, now, permits) {
                    Some(decision) => return decision,
                    None => continue,
                },
                Place::Full(now) => (self.overflow(search), now),
                Place::Barred(now, until) => (StateRef::NoRoom(Some(until)), now),
            };
            match self.decide_without_entry(search, held, now, permits) {
                Attempt::Admitted(receipt) => {
                    return answer(self.algorithm, held, now, permits, Some(receipt));
                }
                Attempt::Denied => {
                    let held = self.with_next_entry(held, search);
                    return answer(self.algorithm, held, now, permits, None);
                }
                Attempt::Retry => {}
            }
        }
    }

    /// What stands in for the entry of a key that gets none.
    fn overflow(self, search: &Search<'a, A>) -> StateRef<'a> {
        match self.on_full {
            // Forget comes here when every entry is changing hands at this instant.
            OnFull::Share | OnFull::Forget => StateRef::Shared(self.store.shared.get(), NextEntry::UNKNOWN),
            OnFull::Deny => StateRef::NoRoom(search.room_at()),
            OnFull::Admit => StateRef::Unlimited,
        }
    }

    /// The state that denies the key, with the time at which a key that is barred gets an entry. No other key is worse off
    /// with an entry than with the catch-all.
    fn with_next_entry(self, held: StateRef<'a>, search: &Search<'a, A>) -> StateRef<'a> {
        match (held, search.barred_until()) {
            (StateRef::Shared(words, _), Some(entered)) => {
                let free = match self.on_full {
                    // The key can take an entry over before it is idle.
                    OnFull::Forget => Nanos::ZERO,
                    OnFull::Share | OnFull::Deny | OnFull::Admit => search.room_at().unwrap_or(Nanos::MAX),
                };
                StateRef::Shared(words, NextEntry { free, entered })
            }
            (StateRef::NoRoom(until), Some(entered)) => {
                StateRef::NoRoom(until.map(|until| until.max(entered)))
            }
            (held, _) => held,
        }
    }

    /// Decides for a key that gets no entry; `Retry`: it has one by now.
    fn decide_without_entry(
        self,
        search: &Search<'_, A>,
        held: StateRef<'_>,
        now: Nanos,
        permits: u64,
    ) -> Attempt {
        let decision = match held {
            StateRef::Shared(..) => self.decide_with_others(search, now, permits),
            StateRef::Unlimited => Attempt::Admitted(Receipt::new(now, permits, 0).paid_by(Payer::Nobody)),
            _ => Attempt::Denied,
        };
        if !matches!(decision, Attempt::Retry) {
            self.store.counts.add(search.key, Event::Overflowed);
        }
        decision
    }

    /// Decides by the catch-all. The key gets no entry of its own before the admission has stopped
    /// counting; if it got one meanwhile, the admission is taken back.
    fn decide_with_others(self, search: &Search<'_, A>, now: Nanos, permits: u64) -> Attempt {
        let algorithm = self.algorithm;
        let words = Shared::new(self.store.shared.get());
        let receipt = algorithm.decide(words, now, permits);
        if let Some(receipt) = &receipt {
            // Before the look: somebody who is entering the key sees this, or is seen.
            let end = receipt.at().saturating_add(algorithm.span());
            self.store.table.home(search.key).share(search.key, now, end);
        }
        if !search.is_entered_since(now) {
            return match receipt {
                Some(receipt) => Attempt::Admitted(receipt.paid_by(Payer::Shared(self.store.generation))),
                None => Attempt::Denied,
            };
        }
        if let Some(receipt) = receipt {
            // What cannot be given back stays spent, which makes the catch-all stricter.
            algorithm.refund(words, &receipt, permits);
        }
        Attempt::Retry
    }

    /// Looks at the state of `key`, and changes nothing: it is not entered.
    pub(crate) fn peek(self, key: u64, now: Nanos) -> Peek<'a, A> {
        let search = self.search(key, now);
        let (held, now) = match search.peek(self.on_full == OnFull::Forget) {
            View::Entry(entry, owner, now) => (StateRef::Entry(entry, owner), now),
            View::Fresh(now) => (StateRef::Fresh, now),
            View::Full(now) => (self.with_next_entry(self.overflow(&search), &search), now),
            View::Barred(now, until) => (StateRef::NoRoom(Some(until)), now),
        };
        Peek::new(self.algorithm, held, now)
    }

    /// Gives back what was taken of `key`; false if that can no longer be done.
    pub(crate) fn refund(self, key: u64, receipt: &Receipt, permits: u64) -> bool {
        match receipt.payer() {
            _ if permits == 0 => true,
            Payer::Nobody => true,
            Payer::Shared(generation) => {
                let words = Shared::new(self.store.shared.get());
                // After clearing, the catch-all is fresh and holds nothing of the charge.
                generation == self.store.generation && self.algorithm.refund(words, receipt, permits)
            }
            Payer::Entry(number, generation) => {
                let own = self.search(key, receipt.at()).own_entry();
                own.is_some_and(|look| {
                    let entry = look.entry();
                    let seat = Seat::new(entry, key);
                    // A key that has begun anew elsewhere, or after all was cleared, has not paid for it.
                    (number, generation) == (entry.number(), self.store.generation)
                        && match self.on_full {
                            OnFull::Forget => {
                                let words = Forward::new(self.algorithm, &seat);
                                self.algorithm.refund(&words, receipt, permits)
                            }
                            OnFull::Share | OnFull::Deny | OnFull::Admit => {
                                self.algorithm.refund(&seat, receipt, permits)
                            }
                        }
                })
            }
            // The charge is not in this table.
            Payer::Words | Payer::Limiter(_) => false,
        }
    }

    /// Gives all of a receipt back, as far as that can be done.
    pub(crate) fn give_back(self, key: u64, receipt: &Receipt) -> Settled {
        match receipt.permits() {
            permits if self.refund(key, receipt, permits) => Settled::Exact,
            permits => Settled::Forfeited(permits),
        }
    }

    /// Keeps a key without an entry from having one for as long as what is charged now counts.
    #[cfg(feature = "rules")]
    pub(crate) fn bar(self, key: u64, now: Nanos) {
        let end = now.saturating_add(self.algorithm.span());
        self.store.table.home(key).share(key, now, end);
    }

    /// Takes the key's entry from it; false if it has none.
    pub(crate) fn leave(self, key: u64, now: Nanos) -> bool {
        self.search(key, now).leave()
    }
}
