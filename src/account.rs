#![doc = include_str!("account.md")]

use core::fmt;

use crate::sync::{AtomicU64, Ordering};

// Named, since the models are built of this file too, from elsewhere.
#[path = "account/notice.rs"]
mod notice;

use notice::{Notice, Shut};

/// The account of one key, on a cache line of its own: what a node may spend by itself, and what it has spent.
///
/// Deciders call [`look`](Self::look), [`spend`](Self::spend) and [`give_back`](Self::give_back), at any time. All else
/// is for one caller at a time, who holds the lock of the desk behind the account.
#[repr(align(64))]
#[derive(Debug)]
pub(crate) struct Account {
    balance: Balance,
    owner: Owner,
    term: Term,
    shut: Shut,
    more: More,
    missed: Missed,
}

/// What an account says to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// There is room: it was taken, if that was asked for.
    Room {
        /// In which epoch: what [`Account::give_back`] needs.
        epoch: u32,
        /// Whether it was this that brought the account to half of its budget or below.
        low: bool,
    },
    /// There is none, but the store may have some.
    Short,
    /// There is none here, nor at the store for as many; the store may have more at this time.
    Shut { left: u64, more: u64 },
    /// The account is another key's.
    NotYours,
}

/// What a node is to ask the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// What was spent and is to be charged.
    pub(crate) charge: u64,
    /// The most that may be uncharged until it is answered, the charge included.
    pub(crate) cap: u64,
}

impl Account {
    /// Nobody's account.
    pub(crate) fn new() -> Self {
        Self {
            balance: Balance(AtomicU64::new(0)),
            owner: Owner(AtomicU64::new(NOBODY)),
            term: Term(AtomicU64::new(0)),
            shut: Shut::new(),
            more: More(AtomicU64::new(0)),
            missed: Missed(AtomicU64::new(0)),
        }
    }

    /// Whose it is.
    #[inline]
    pub(crate) fn owner(&self) -> u64 {
        self.owner.read()
    }

    /// What it holds, and what was spent of it, at one instant.
    #[inline]
    pub(crate) fn balance(&self) -> Sheet {
        self.balance.read()
    }

    /// Says what [`spend`](Self::spend) would say.
    #[inline]
    pub(crate) fn look(&self, key: u64, permits: u64, now: u64) -> Said {
        loop {
            let seen = self.balance.read();
            if self.owner.read() != key {
                return Said::NotYours;
            }
            if let Some(said) = self.judge(seen, key, permits, now) {
                return said;
            }
        }
    }

    /// Takes permits of the budget, if there are so many and the term is not over at the reading of `now`.
    ///
    /// The balance is read before the clock, and nothing has happened to it when it is exchanged: so the use is made at
    /// that reading. Whoever sleeps in between finds another epoch.
    #[inline]
    pub(crate) fn spend(&self, key: u64, permits: u64, mut now: impl FnMut() -> u64) -> Said {
        loop {
            let seen = self.balance.read();
            if self.owner.read() != key {
                return Said::NotYours;
            }
            match self.judge(seen, key, permits, now()) {
                Some(Said::Room { .. }) if !self.balance.spend(seen, permits) => {}
                Some(said) => return said,
                None => {}
            }
        }
    }

    /// What is so while the balance is what was seen; `None`: it no longer is.
    #[inline]
    fn judge(&self, seen: Sheet, key: u64, permits: u64, now: u64) -> Option<Said> {
        if permits <= seen.room() && now < self.term.end() {
            let (left, half) = (seen.room() - permits, seen.budget() / 2);
            return Some(Said::Room {
                epoch: seen.epoch(),
                low: left <= half && seen.room() > half,
            });
        }
        self.judge_short(seen, key, permits, now)
    }

    #[cold]
    fn judge_short(&self, seen: Sheet, key: u64, permits: u64, now: u64) -> Option<Said> {
        let (said, more) = (self.shut.read(), self.more.read());
        // What the store has said may be about another key, if the account was passed on before we read it. If that was
        // begun before we saw the balance, we see another owner now. If after, another epoch: also when the account has
        // come back meanwhile. And it may be what came with a grant that we have not seen: then the balance is another,
        // or the term, if as much was granted as was held.
        if self.owner.read() != key {
            return Some(Said::NotYours);
        }
        if self.balance.read() != seen {
            return None;
        }
        match said.left_at(now) {
            Some(left) if permits > left => {
                let longer = permits <= seen.room() && now < self.term.end();
                (!longer).then_some(Said::Shut { left, more })
            }
            _ => Some(Said::Short),
        }
    }

    /// Gives back what was spent in this epoch; false: it is being charged, or was lost.
    pub(crate) fn give_back(&self, epoch: u32, permits: u64) -> bool {
        self.balance.give_back(epoch, permits)
    }

    /// Begins a question: what was spent leaves the account to be charged, and no more than `max_request` is uncharged from now
    /// on, unless more is already.
    pub(crate) fn ask(&self, most: u64) -> Question {
        self.balance.ask(most)
    }

    /// Ends a question: what was granted may be spent until `end`.
    pub(crate) fn hear(&self, granted: u64, end: u64) {
        self.term.extend(end);
        self.balance.grant(granted);
    }

    /// Ends the life of the account, with all that it holds and has spent.
    pub(crate) fn lose(&self) {
        self.balance.lose();
    }

    /// Says that nobody gets more than `left` before this time, and when the store may have more.
    pub(crate) fn shut(&self, until: u64, left: u64, more: u64) {
        self.more.write(more);
        self.shut.write(Notice::new(until, left));
    }

    /// Says that the store may have room.
    pub(crate) fn reopen(&self) {
        self.shut.write(Notice::new(0, 0));
    }

    /// Whether it is shut at this time.
    pub(crate) fn is_shut(&self, now: u64) -> bool {
        self.shut.read().left_at(now).is_some()
    }

    /// Notes permits that were asked for and not had.
    pub(crate) fn miss(&self, permits: u64) {
        self.missed.add(permits);
    }

    /// What was noted since the last time.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.take()
    }

    /// Gives the account to another key, if nothing was spent that is not charged. The caller knows that it holds
    /// nothing, or that its term is over, or that what it holds is registered nowhere.
    pub(crate) fn pass_on(&self, key: u64) -> bool {
        if !self.balance.clear() {
            return false;
        }
        // Another key's term may be longer. Whoever has read it fails at the exchange.
        self.term.end_now();
        self.shut.write(Notice::new(0, 0));
        self.missed.take();
        self.owner.write(key);
        true
    }
}

/// The owner of an account that is nobody's.
pub(crate) const NOBODY: u64 = 0;

/// The word that orders everything, as a value. From the lowest bit:
///
/// | bits | field | meaning |
/// |---|---|---|
/// | 20 | used | permits that were spent in this epoch |
/// | 20 | budget | the most that may be |
/// | 24 | epoch | questions and lives so far, modulo 2^24 |
///
/// Whoever sleeps through exactly 2^24 questions of one account, and finds the same budget and the same use, takes the
/// one for the other: at a question a millisecond, that is a sleep of four hours and forty minutes, to the millisecond.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sheet(u64);

impl Sheet {
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

    /// What may still be spent.
    #[inline]
    const fn room(self) -> u64 {
        self.budget().saturating_sub(self.used())
    }

    /// `{ e, b, u }` → `{ e, b, u + permits }`; `permits` are no more than the room.
    #[inline]
    const fn spent(self, permits: u64) -> Self {
        Self(self.0 + permits)
    }

    /// `{ e, b, u }` → `{ e + 1, budget, 0 }`.
    const fn next(self, budget: u64) -> Self {
        Self::new(self.epoch().wrapping_add(1), budget, 0)
    }

    /// `{ e, b, u }` → `{ e, budget, u }`, the budget no less than what was used, and no more than there are bits for.
    const fn granted(self, budget: u64) -> Self {
        let budget = if budget > Self::FIELD { Self::FIELD } else { budget };
        let budget = if budget < self.used() { self.used() } else { budget };
        Self::new(self.epoch(), budget, self.used())
    }
}

impl fmt::Debug for Sheet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sheet")
            .field("epoch", &self.epoch())
            .field("budget", &self.budget())
            .field("used", &self.used())
            .finish()
    }
}

/// The word of a [`Sheet`].
#[derive(Debug)]
struct Balance(AtomicU64);

impl Balance {
    #[inline]
    fn read(&self) -> Sheet {
        // Acquire: pairs with the Release in `change`; whoever sees a budget sees the term and the owner that it is for.
        Sheet(self.0.load(Ordering::Acquire))
    }

    /// Takes permits of what was seen, if it still is so.
    #[inline]
    fn spend(&self, seen: Sheet, permits: u64) -> bool {
        // Release: pairs with the Acquire in `change`; the clock was read before, so what is charged after is charged
        // later.
        let success = Ordering::Release;
        // Relaxed: the caller reads again.
        let failure = Ordering::Relaxed;
        self.0
            .compare_exchange(seen.0, seen.spent(permits).0, success, failure)
            .is_ok()
    }

    fn give_back(&self, epoch: u32, permits: u64) -> bool {
        let given = self.change(|seen| {
            let here = seen.epoch() == epoch && seen.used() >= permits;
            here.then(|| Sheet::new(epoch, seen.budget(), seen.used() - permits))
        });
        given.is_some()
    }

    fn ask(&self, most: u64) -> Question {
        let cap = |seen: Sheet| most.min(seen.budget()).max(seen.used());
        let seen = self.change(|seen| Some(seen.next(cap(seen) - seen.used())));
        // It always changes.
        let seen = seen.unwrap_or(Sheet(0));
        Question {
            charge: seen.used(),
            cap: cap(seen),
        }
    }

    fn grant(&self, budget: u64) {
        self.change(|seen| Some(seen.granted(budget)));
    }

    fn lose(&self) {
        self.change(|seen| Some(seen.next(0)));
    }

    fn clear(&self) -> bool {
        self.change(|seen| (seen.used() == 0).then(|| seen.next(0)))
            .is_some()
    }

    /// Makes another of what it is, and says what it was; nothing, if that cannot be made.
    fn change(&self, make: impl Fn(Sheet) -> Option<Sheet>) -> Option<Sheet> {
        // Relaxed: only a guess, the exchange below validates it.
        let mut seen = Sheet(self.0.load(Ordering::Relaxed));
        loop {
            let made = make(seen)?;
            // Acquire: pairs with the Release in `spend`; all that was spent was spent before what comes now. Release:
            // pairs with the Acquire in `read`.
            let success = Ordering::AcqRel;
            // Relaxed: as above.
            let failure = Ordering::Relaxed;
            match self.0.compare_exchange(seen.0, made.0, success, failure) {
                Ok(_) => return Some(seen),
                Err(other) => seen = Sheet(other),
            }
        }
    }
}

/// Whose the account is.
#[derive(Debug)]
struct Owner(AtomicU64);

impl Owner {
    #[inline]
    fn read(&self) -> u64 {
        // Acquire: pairs with the Release in `write`; who sees a key finds nothing that was another's.
        self.0.load(Ordering::Acquire)
    }

    fn write(&self, key: u64) {
        // Release: pairs with the Acquire in `read`.
        self.0.store(key, Ordering::Release);
    }
}

/// When the account may no longer be spent from, in nanoseconds of the node's clock.
#[derive(Debug)]
struct Term(AtomicU64);

impl Term {
    #[inline]
    fn end(&self) -> u64 {
        // Relaxed: no older than the balance that was read before it, by that one's Acquire. A newer one is of a copy
        // that was answered: the store covers until then whatever the balance allowed until the answer was heard.
        self.0.load(Ordering::Relaxed)
    }

    /// Ends it for good, before another owner comes.
    fn end_now(&self) {
        // Relaxed: published with the owner.
        self.0.store(0, Ordering::Relaxed);
    }

    /// Moves the end on. (Two answers are heard one after the other, by the desk's lock.)
    fn extend(&self, end: u64) {
        // Relaxed, both: published by the exchange of the balance that follows.
        if end > self.0.load(Ordering::Relaxed) {
            self.0.store(end, Ordering::Relaxed);
        }
    }
}

/// When the store may have more, in nanoseconds of the node's clock.
#[derive(Debug)]
struct More(AtomicU64);

impl More {
    fn read(&self) -> u64 {
        // Relaxed: read after the notice that it belongs to; a newer one does no harm.
        self.0.load(Ordering::Relaxed)
    }

    fn write(&self, at: u64) {
        // Relaxed: published with the notice.
        self.0.store(at, Ordering::Relaxed);
    }
}

/// Permits that were asked for and not had.
#[derive(Debug)]
struct Missed(AtomicU64);

impl Missed {
    fn add(&self, permits: u64) {
        // Relaxed: how much is wanted is a guess.
        self.0.fetch_add(permits, Ordering::Relaxed);
    }

    fn take(&self) -> u64 {
        // Relaxed: as in `add`.
        self.0.swap(0, Ordering::Relaxed)
    }
}
