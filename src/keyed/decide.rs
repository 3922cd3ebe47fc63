use core::cell::Cell;

use super::KeyedRateLimiter;
use super::counts::Event;
use super::on_full::OnFull;
use super::search::{Place, Search};
use crate::algorithm::Reclaim;
use crate::answer::{Admitted, Denied, Held, answer};
use crate::decision::{Payer, Receipt, Refusal};
use crate::sync::Shared;
use crate::table::{Entry, Seat};
use crate::time::Nanos;

impl<A: Reclaim, C, K> KeyedRateLimiter<A, C, K> {
    pub(super) fn search<'a>(&'a self, algorithm: &'a A, key: u64, now: Nanos) -> Search<'a, A> {
        Search {
            table: &self.table,
            algorithm,
            counts: &self.counts,
            key,
            now,
        }
    }

    #[inline(always)]
    pub(super) fn decide<'a>(
        &'a self,
        algorithm: &'a A,
        key: u64,
        now: impl FnOnce() -> Nanos,
        permits: u64,
    ) -> Result<Admitted<'a, A>, Denied<'a, A>> {
        let found = self.table.find(key);
        // Read only now, so that the entry is on its way meanwhile.
        let now = now();
        if let Some(entry) = found
            && let Some(decision) = self.attempt(algorithm, entry, key, now, permits)
        {
            return answer(algorithm, Held::Entry(entry, key), decision);
        }
        self.enter(algorithm, key, now, permits)
    }

    /// Decides with an entry; `None`: the key has lost it, or somebody else was faster.
    #[inline(always)]
    fn attempt(
        &self,
        algorithm: &A,
        entry: Entry<'_>,
        key: u64,
        now: Nanos,
        permits: u64,
    ) -> Option<Result<Receipt, Refusal>> {
        let seen = Cell::new(Seat::UNSEEN);
        let decision = algorithm.attempt(Seat::new(entry, key, &seen), now, permits)?;
        match decision {
            Ok(receipt) => Some(Ok(receipt.paid_by(Payer::Entry(entry.number(), self.generation)))),
            // It may be of the zeros of a lost entry, or of the word of a key that had the entry in between: the
            // fingerprint that was read after it was its own only if the word still stands.
            Err(_) if seen.get() != Seat::UNSEEN && !entry.still(seen.get()) => None,
            Err(refusal) => Some(Err(refusal)),
        }
    }

    /// Decides for a key that has no entry, as it seems, or that many ask for.
    #[cold]
    #[inline(never)]
    fn enter<'a>(
        &'a self,
        algorithm: &'a A,
        key: u64,
        now: Nanos,
        permits: u64,
    ) -> Result<Admitted<'a, A>, Denied<'a, A>> {
        if permits == 0 || permits > algorithm.most() {
            // The same for every state, so none is needed.
            let decision = match permits {
                0 => Ok(Receipt::new(now, 0, 0)),
                _ => Err(Refusal::new(now, permits)),
            };
            return answer(algorithm, Held::Fresh, decision);
        }
        let search = self.search(algorithm, key, now);
        loop {
            let (held, decision) = match search.enter(self.on_full == OnFull::Forget) {
                Place::Entry(entry) => (
                    Held::Entry(entry, key),
                    self.attempt(algorithm, entry, key, now, permits),
                ),
                Place::Full(now) => {
                    let held = self.overflow(&search);
                    (held, self.decide_without_entry(&search, held, now, permits))
                }
                Place::Barred(now, until) => {
                    let held = Held::NoRoom(Some(until));
                    (held, self.decide_without_entry(&search, held, now, permits))
                }
            };
            if let Some(decision) = decision {
                return answer(algorithm, held, decision);
            }
        }
    }

    /// What stands in for the entry of a key that gets none.
    pub(super) fn overflow<'a>(&'a self, search: &Search<'a, A>) -> Held<'a> {
        match self.on_full {
            // Forget comes here when every entry is changing hands at this instant.
            OnFull::Share | OnFull::Forget => Held::Shared(self.shared.get()),
            OnFull::Deny => Held::NoRoom(search.room_at()),
            OnFull::Admit => Held::Unlimited,
        }
    }

    /// Decides for a key that gets no entry; `None`: it has one by now.
    fn decide_without_entry(
        &self,
        search: &Search<'_, A>,
        held: Held<'_>,
        now: Nanos,
        permits: u64,
    ) -> Option<Result<Receipt, Refusal>> {
        let decision = match held {
            Held::Shared(_) => self.decide_with_others(search, now, permits)?,
            Held::Unlimited => Ok(Receipt::new(now, permits, 0).paid_by(Payer::Nobody)),
            _ => Err(Refusal::new(now, permits)),
        };
        self.counts.add(search.key, Event::Overflowed);
        Some(decision)
    }

    /// Decides by the catch-all. The key gets no entry of its own before the admission has stopped
    /// counting; if it got one meanwhile, the admission is taken back.
    fn decide_with_others(
        &self,
        search: &Search<'_, A>,
        now: Nanos,
        permits: u64,
    ) -> Option<Result<Receipt, Refusal>> {
        let algorithm = search.algorithm;
        let words = Shared::new(self.shared.get());
        let decision = algorithm.decide(words, now, permits);
        if let Ok(receipt) = &decision {
            // Before the look: somebody who is entering the key sees this, or is seen.
            let end = receipt.at().saturating_add(algorithm.span());
            self.table.home(search.key).share(search.key, now, end);
        }
        if !search.is_entered_since(now) {
            return Some(decision.map(|receipt| receipt.paid_by(Payer::Shared)));
        }
        if let Ok(receipt) = decision {
            // What cannot be given back stays spent, which makes the catch-all stricter.
            algorithm.refund(words, &receipt, permits);
        }
        None
    }
}
