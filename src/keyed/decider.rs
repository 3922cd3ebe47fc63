use super::key_states::KeyStates;
use super::on_full::OnFull;
use crate::algorithm::{Attempt, Reclaim};
use crate::decision::{Admitted, Denied, NextEntry, Peek, StateRef, answer, answer_at};
use crate::receipt::{ChargedTo, Receipt};
use crate::sync::Shared;
use crate::table::{Entry, Event, InsertOutcome, Insertion, NoEntry, OccupiedWords, SeenWord, View};
use crate::time::Nanos;

/// Decides about keys: their states, an algorithm, and a policy for keys without an entry.
#[derive(Debug)]
pub(crate) struct Decider<'a, A> {
    pub(super) states: &'a KeyStates,
    pub(super) algorithm: &'a A,
    /// Only read for a key without an entry. By reference, so that no other decision loads it.
    pub(super) on_full: &'a OnFull,
}

/// A charge to the state of a key.
pub(crate) struct Charged {
    pub(crate) receipt: Receipt,
    /// Whether the overflow policy decided, because the key found no entry.
    pub(crate) overflow: bool,
}

/// The capacity that was read for one request.
#[derive(Clone, Copy)]
pub(crate) struct CapacityLeft {
    /// The most permits that the request would be granted. Another thread may take them first.
    pub(crate) permits: u64,
    /// Whether the overflow policy would decide, because the key found no entry.
    pub(crate) overflow: bool,
}

impl<A> Clone for Decider<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Decider<'_, A> {}

impl<'a, A> Decider<'a, A> {
    #[inline(always)]
    pub(crate) const fn new(states: &'a KeyStates, algorithm: &'a A, on_full: &'a OnFull) -> Self {
        Self {
            states,
            algorithm,
            on_full,
        }
    }
}

impl<'a, A: Reclaim> Decider<'a, A> {
    #[inline(always)]
    pub(super) fn insertion(self, key: u64, now: Nanos) -> Insertion<'a, A> {
        Insertion::new(&self.states.table, self.algorithm, key, now)
    }

    /// Takes `permits` of `key`, all or none of them.
    #[inline(always)]
    pub(crate) fn decide(
        self,
        key: u64,
        now: impl FnOnce() -> Nanos,
        permits: u64,
    ) -> Result<Admitted<'a, A>, Denied<'a, A>> {
        // The lookup starts before the clock is read, because reading the clock holds back later instructions. A cache miss
        // then overlaps with the reading.
        let found = self.states.table.find_in_primary(key);
        self.decide_with(found, key, now(), permits)
    }

    /// Takes `permits` of `key`, all or none of them. `found` is the key's entry, if the caller has found one.
    #[inline(always)]
    pub(crate) fn decide_with(
        self,
        found: Option<Entry<'a>>,
        key: u64,
        now: Nanos,
        permits: u64,
    ) -> Result<Admitted<'a, A>, Denied<'a, A>> {
        // With `is_inline` before the read, a decision by a `SlidingWindow` executes a tenth more instructions.
        if let Some(entry) = found
            && let Some(seen) = SeenWord::read(entry, key)
            && self.algorithm.is_inline()
            && let Some(receipt) = self.charge(entry, key, seen, now, permits)
        {
            let state = StateRef::Entry(entry, key);
            return answer(self.algorithm, state, now, permits, receipt);
        }
        Self::decide_inserting::<true>(self.states, self.algorithm, self.on_full, key, now, permits)
    }

    /// Charges `permits` of `key`, all or none of them, as [`decide_with`](Self::decide_with) decides. An error is a denial:
    /// `true` if it is by the overflow policy, because the key had no entry.
    #[inline(always)]
    pub(crate) fn charge_with(
        self,
        found: Option<Entry<'a>>,
        key: u64,
        now: Nanos,
        permits: u64,
    ) -> Result<Charged, bool> {
        match self.charge_found(found, key, now, permits) {
            Some(Some(receipt)) => Ok(Charged {
                receipt,
                overflow: false,
            }),
            Some(None) => Err(false),
            None => Self::charge_inserting(self.states, self.algorithm, self.on_full, key, now, permits),
        }
    }

    /// Charges by [`decide_inserting`](Self::decide_inserting). This answer, unlike that one, takes no memory of the caller.
    #[cold]
    #[inline(never)]
    pub(crate) fn charge_inserting(
        states: &'a KeyStates,
        algorithm: &'a A,
        on_full: &'a OnFull,
        key: u64,
        now: Nanos,
        permits: u64,
    ) -> Result<Charged, bool> {
        match Self::decide_inserting::<true>(states, algorithm, on_full, key, now, permits) {
            Ok(admitted) => Ok(Charged {
                overflow: admitted.is_overflow(),
                receipt: admitted.into_receipt(),
            }),
            Err(denied) => Err(denied.is_overflow()),
        }
    }

    /// Charges the entry that was found. `Some(None)` is a denial. `None` if none was found, the key has lost it, or another
    /// thread has changed the state first.
    ///
    /// A rule that is decided alone calls this and [`charge_inserting`](Self::charge_inserting), and not
    /// [`charge_with`](Self::charge_with): it needs no receipt, and joining the receipts of both takes 2 % more instructions.
    #[inline(always)]
    pub(crate) fn charge_found(
        self,
        found: Option<Entry<'a>>,
        key: u64,
        now: Nanos,
        permits: u64,
    ) -> Option<Option<Receipt>> {
        let entry = found?;
        self.charge(entry, key, SeenWord::read(entry, key)?, now, permits)
    }

    /// Charges an entry whose first word was read as `seen`. `Some(None)` is a denial. `None` if the key has lost the
    /// entry, or another thread has changed the state first.
    #[inline(always)]
    fn charge(
        self,
        entry: Entry<'a>,
        key: u64,
        seen: SeenWord,
        now: Nanos,
        permits: u64,
    ) -> Option<Option<Receipt>> {
        let words = OccupiedWords::new(entry, key, &seen);
        match self.algorithm.attempt(None, words, now, permits) {
            Attempt::Admitted(receipt) => {
                let charged_to = ChargedTo::Entry(entry.number(), self.states.generation);
                Some(Some(receipt.with_charged_to(charged_to)))
            }
            // A denial changes nothing, so no exchange has validated it.
            // Claim: table 5, a denial is validated.
            Attempt::Denied if words.are_valid() => Some(None),
            Attempt::Denied | Attempt::Retry => None,
        }
    }

    /// Finds or inserts the key, and decides. Callers use this for a key that was not found in its primary bucket, after another
    /// thread has changed the state, and for an algorithm that is [not inlined](Reclaim::is_inline). The fields of the decider
    /// are separate arguments, because the compiler would pass the decider in memory.
    ///
    /// The `FIRST` search is for common cases, and is a function of its own: in a loop, the compiler would compute before it all
    /// that any search may need. If the first search were for all cases, a new key would execute 1.3 times the instructions.
    #[cold]
    #[inline(never)]
    fn decide_inserting<const FIRST: bool>(
        states: &'a KeyStates,
        algorithm: &'a A,
        on_full: &'a OnFull,
        key: u64,
        reading: Nanos,
        permits: u64,
    ) -> Result<Admitted<'a, A>, Denied<'a, A>> {
        let decider = Self::new(states, algorithm, on_full);
        // A request for no permits, or for more than `max_request`, has the same answer in every state, so the key needs no entry.
        let needs_no_entry = || permits == 0 || permits > algorithm.max_request();
        if FIRST && (!algorithm.is_inline() || needs_no_entry()) {
            if let Some(entry) = states.table.find(key)
                && let Some(receipt) = decider.charge_found(Some(entry), key, reading, permits)
            {
                return answer(algorithm, StateRef::Entry(entry, key), reading, permits, receipt);
            }
            if needs_no_entry() {
                let receipt = (permits == 0).then(|| Receipt::new(reading, 0, 0));
                return answer(algorithm, StateRef::Fresh, reading, permits, receipt);
            }
        }
        let insertion = decider.insertion(key, reading);
        // The search starts over only after a step of another thread has succeeded.
        loop {
            match insertion.find_or_insert::<FIRST>(*on_full == OnFull::Forget) {
                InsertOutcome::Entry(entry, first, now) => {
                    if let Some(receipt) = decider.charge(entry, key, SeenWord::known(first), now, permits) {
                        let state = StateRef::Entry(entry, key);
                        return answer_at(algorithm, state, now, reading, permits, receipt);
                    }
                }
                InsertOutcome::NoEntry(no_entry) => {
                    let decision = Self::decide_without_entry(
                        states, algorithm, on_full, key, reading, permits, no_entry,
                    );
                    if let Some(decision) = decision {
                        return decision;
                    }
                }
                InsertOutcome::Retry => {}
            }
            if FIRST {
                return Self::decide_inserting::<false>(states, algorithm, on_full, key, reading, permits);
            }
        }
    }

    /// Decides for a key that gets no entry. `None`: the key has one by now. The fields of the decider are separate
    /// arguments, because a reference to it, or to the insertion, would keep both in memory during the search.
    #[inline(never)]
    fn decide_without_entry(
        states: &'a KeyStates,
        algorithm: &'a A,
        on_full: &'a OnFull,
        key: u64,
        reading: Nanos,
        permits: u64,
        no_entry: NoEntry,
    ) -> Option<Result<Admitted<'a, A>, Denied<'a, A>>> {
        let decider = Self::new(states, algorithm, on_full);
        let insertion = &decider.insertion(key, reading);
        let now = no_entry.now;
        let state = decider.state_without_entry(insertion, no_entry);
        match decider.attempt_without_entry(insertion, state, key, now, permits) {
            Attempt::Admitted(receipt) => Some(answer(algorithm, state, now, permits, Some(receipt))),
            Attempt::Denied => {
                let state = decider.with_next_entry(state, insertion);
                Some(answer_at(algorithm, state, now, reading, permits, None))
            }
            Attempt::Retry => None,
        }
    }

    /// The state that decides in place of an entry, for a key that gets none.
    fn state_without_entry(self, insertion: &Insertion<'a, A>, no_entry: NoEntry) -> StateRef<'a> {
        if no_entry.barred_until.is_some() {
            return StateRef::Denied(no_entry.barred_until);
        }
        match *self.on_full {
            // With `Forget` this happens only if no entry in the buckets of the key can be evicted at this instant.
            OnFull::Share | OnFull::Forget => {
                StateRef::CatchAll(self.states.catch_all.get(), NextEntry::UNKNOWN)
            }
            OnFull::Deny => StateRef::Denied(insertion.evictable_at()),
            OnFull::Admit => StateRef::Unlimited,
        }
    }

    /// Adds to a denial the time at which a barred key can get an entry. The denial of any other key stays as it is: that key
    /// may get an entry as soon as one is evictable, and a fresh entry admits whatever the catch-all admits.
    fn with_next_entry(self, state: StateRef<'a>, insertion: &Insertion<'a, A>) -> StateRef<'a> {
        match (state, insertion.barred_until()) {
            (StateRef::CatchAll(words, _), Some(entered)) => {
                let free = match *self.on_full {
                    // The key can take an entry over before it is idle.
                    OnFull::Forget => Some(Nanos::ZERO),
                    OnFull::Share | OnFull::Deny | OnFull::Admit => insertion.evictable_at(),
                };
                StateRef::CatchAll(words, NextEntry { free, entered })
            }
            (StateRef::Denied(until), Some(entered)) => {
                StateRef::Denied(until.map(|until| until.max(entered)))
            }
            (state, _) => state,
        }
    }

    /// Attempts a decision for a key that gets no entry. `Retry`: the key has one by now.
    fn attempt_without_entry(
        self,
        insertion: &Insertion<'_, A>,
        state: StateRef<'_>,
        key: u64,
        now: Nanos,
        permits: u64,
    ) -> Attempt {
        let decision = match state {
            StateRef::CatchAll(..) => self.attempt_by_catch_all(insertion, key, now, permits),
            StateRef::Unlimited => {
                Attempt::Admitted(Receipt::new(now, permits, 0).with_charged_to(ChargedTo::Uncounted))
            }
            StateRef::Denied(_)
            | StateRef::Own(_)
            | StateRef::Inline(_)
            | StateRef::Entry(..)
            | StateRef::Fresh => Attempt::Denied,
        };
        if decision != Attempt::Retry {
            self.states.table.counts().add(key, Event::Overflowed);
        }
        decision
    }

    /// Attempts a decision by the catch-all. The mark keeps the key from getting an entry while the admission counts. If
    /// the key got one before the mark, the admission is refunded.
    fn attempt_by_catch_all(
        self,
        insertion: &Insertion<'_, A>,
        key: u64,
        now: Nanos,
        permits: u64,
    ) -> Attempt {
        let algorithm = self.algorithm;
        let words = Shared::new(self.states.catch_all.get());
        let receipt = algorithm.decide(words, now, permits);
        if let Some(receipt) = &receipt {
            // Before the lookup of an entry: a thread that inserts the key sees this mark, or the lookup finds its
            // entry.
            let end = algorithm.counts_until(words, receipt.at(), 0);
            self.states.table.region(key).mark_overflow(key, now, end);
        }
        if !insertion.may_have_entry_since(now) {
            return match receipt {
                Some(receipt) => {
                    Attempt::Admitted(receipt.with_charged_to(ChargedTo::CatchAll(self.states.generation)))
                }
                None => Attempt::Denied,
            };
        }
        if let Some(receipt) = receipt {
            // If the refund fails, the permits stay spent, which makes the catch-all stricter.
            algorithm.refund(words, &receipt, permits);
        }
        Attempt::Retry
    }

    /// The capacity that is left for one request of `key`. `found` is the key's entry, if the caller has found one.
    #[inline(always)]
    pub(crate) fn capacity_left(self, found: Option<Entry<'a>>, key: u64, now: Nanos) -> CapacityLeft {
        if let Some(entry) = found
            && let Some(seen) = SeenWord::read(entry, key)
        {
            let words = OccupiedWords::new(entry, key, &seen);
            let permits = self.algorithm.remaining(words, now);
            // If the word is unchanged, the entry belonged to the key while the capacity was read. Otherwise the capacity may be that
            // of another key.
            if words.are_valid() {
                let overflow = false;
                return CapacityLeft { permits, overflow };
            }
        }
        Self::capacity_left_without_entry(self.states, self.algorithm, self.on_full, key, now)
    }

    /// The fields are separate arguments, so that the caller does not have to store them in memory.
    #[cold]
    #[inline(never)]
    fn capacity_left_without_entry(
        states: &'a KeyStates,
        algorithm: &'a A,
        on_full: &'a OnFull,
        key: u64,
        now: Nanos,
    ) -> CapacityLeft {
        let decider = Self::new(states, algorithm, on_full);
        let peek = decider.peek(key, now);
        CapacityLeft {
            permits: peek.remaining(),
            overflow: peek.is_overflow(),
        }
    }

    /// Returns a view of the state of `key`. Changes nothing, and does not enter the key.
    #[inline(never)]
    pub(crate) fn peek(self, key: u64, reading: Nanos) -> Peek<'a, A> {
        let insertion = self.insertion(key, reading);
        let (state, now) = match insertion.peek(*self.on_full == OnFull::Forget) {
            View::Entry(entry, owner, now) => (StateRef::Entry(entry, owner), now),
            View::Fresh(now) => (StateRef::Fresh, now),
            View::NoEntry(no_entry) => {
                let state = self.state_without_entry(&insertion, no_entry);
                (self.with_next_entry(state, &insertion), no_entry.now)
            }
        };
        Peek::read_at(self.algorithm, state, now, reading)
    }

    /// Takes the key's entry from it. Returns false if it has none, or if time has ended.
    pub(crate) fn reset(self, key: u64, now: Nanos) -> bool {
        self.insertion(key, now).reset()
    }
}
