#![doc = include_str!("protocol.md")]

mod balance;
mod notice;
mod words;

use balance::BalanceWord;
pub(crate) use balance::{Balance, UsageReport};
use notice::{Notice, NoticeWord, RetryTime};
pub(crate) use words::VACANT;
use words::{Left, Owner, RetryWord, Shortage, Term};

/// The lease of one key on one node, on a cache line of its own: the permits that the node may spend, and those that it
/// has spent.
///
/// Deciders call [`peek`](Self::peek), [`spend`](Self::spend) and [`refund`](Self::refund) at any time. Every other
/// method is for the holder of the lock of the lease's manager.
#[repr(align(64))]
#[derive(Debug)]
pub(crate) struct LeaseState {
    balance: BalanceWord,
    owner: Owner,
    term: Term,
    notice: NoticeWord,
    /// The retry times of two denials by the store: of the one with the fewest permits since the notice began, and of the latest. A
    /// request for as many permits as one of them, or for a number in between, is denied with the time of the larger one.
    retry_at: [RetryWord; 2],
    shortage: Shortage,
    left: Left,
}

/// A lease's answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpendResult {
    /// The lease covers the request. [`LeaseState::spend`] has taken the permits.
    Covered {
        /// The epoch, which a refund needs.
        epoch: u32,
        /// Whether at most half of the budget is left since this request.
        reached_half: bool,
    },
    /// The lease does not cover the request, and the store may.
    NotCovered,
    /// Neither the lease nor the store covers the request. The store has denied this number of permits, and may have room at
    /// `retry_at`. Or it has denied fewer and more: then `retry_at` is the time of the larger number, and it may have room earlier.
    Closed { left: u64, retry_at: u64 },
    /// The lease belongs to another key.
    NotOwner,
}

impl LeaseState {
    /// A lease without an owner.
    pub(crate) fn new() -> Self {
        Self {
            balance: BalanceWord::new(),
            owner: Owner::new(),
            term: Term::new(),
            notice: NoticeWord::new(),
            retry_at: [RetryWord::new(), RetryWord::new()],
            shortage: Shortage::new(),
            left: Left::new(),
        }
    }

    /// The key that the lease belongs to.
    #[inline]
    pub(crate) fn owner(&self) -> u64 {
        self.owner.read()
    }

    /// The budget and its use, at one instant.
    #[inline]
    pub(crate) fn balance(&self) -> Balance {
        self.balance.read()
    }

    /// Returns the result that [`spend`](Self::spend) would return, and takes nothing.
    #[inline]
    pub(crate) fn peek(&self, key: u64, permits: u64, now: u64) -> SpendResult {
        loop {
            let seen = self.balance.read();
            if self.owner.read() != key {
                return SpendResult::NotOwner;
            }
            if let Some(result) = self.evaluate(seen, key, permits, now) {
                return result;
            }
        }
    }

    /// Takes permits of the budget, if it has that many and the term is not over at the reading of `now`.
    ///
    /// The balance is read before the clock and is unchanged at the exchange, so the permits are spent at that reading.
    /// If the decider was suspended during a report or a reassignment, the epoch differs and the exchange fails.
    #[inline]
    pub(crate) fn spend(&self, key: u64, permits: u64, mut now: impl FnMut() -> u64) -> SpendResult {
        loop {
            let seen = self.balance.read();
            // Claim: lease 5, the owner is compared after the balance was read.
            if self.owner.read() != key {
                return SpendResult::NotOwner;
            }
            match self.evaluate(seen, key, permits, now()) {
                Some(SpendResult::Covered { .. }) if !self.balance.spend(seen, permits) => {}
                Some(result) => return result,
                None => {}
            }
        }
    }

    /// Returns the result that holds while the balance is `seen`. `None`: the balance or the term has changed.
    #[inline]
    fn evaluate(&self, seen: Balance, key: u64, permits: u64, now: u64) -> Option<SpendResult> {
        // Claim: lease 3, a permit is spent before the term ends.
        if permits <= seen.room() && now < self.term.end() {
            let (left, half) = (seen.room() - permits, seen.budget() / 2);
            return Some(SpendResult::Covered {
                epoch: seen.epoch(),
                reached_half: left <= half && seen.room() > half,
            });
        }
        self.evaluate_not_covered(seen, key, permits, now)
    }

    #[cold]
    fn evaluate_not_covered(&self, seen: Balance, key: u64, permits: u64, now: u64) -> Option<SpendResult> {
        // The notice is read first, and `close` writes it last, so the retry times are of this notice or of a later one.
        let notice = self.notice.read();
        let [fewest, latest] = self.retry_at.each_ref().map(RetryWord::read);
        // The notice may be newer than `seen`, so owner and balance are compared again. After a reassignment that began before `seen`
        // was read, the owner differs. After a later reassignment the epoch differs, even if the lease is this key's again. After a
        // grant the balance differs, unless the grant equals the former one. Then only the term differs, which is read below.
        if self.owner.read() != key {
            return Some(SpendResult::NotOwner);
        }
        // Claim: lease 5, a notice is believed only while the balance is unchanged.
        if self.balance.read() != seen {
            return None;
        }
        let Some(left) = notice.left_at(now).filter(|&left| permits > left) else {
            return Some(SpendResult::NotCovered);
        };
        if permits <= seen.room() && now < self.term.end() {
            // An equal grant has extended the term since the attempt.
            return None;
        }
        // For more permits than the store has denied, and for fewer, the retry time differs, so the store decides.
        let is_known = |time: &RetryTime| permits <= time.permits() && now < time.at();
        let known = [fewest, latest].into_iter().find(is_known);
        let known = known.filter(|_| permits >= fewest.permits());
        Some(known.map_or(SpendResult::NotCovered, |time| SpendResult::Closed {
            left,
            retry_at: time.at(),
        }))
    }

    /// Refunds permits that were spent in this epoch. Returns false if the epoch has ended: then the permits were reported,
    /// or ended with their lease.
    pub(crate) fn refund(&self, epoch: u32, permits: u64) -> bool {
        self.balance.refund(epoch, permits)
    }

    /// Begins a report: the use leaves the state to be charged, and another epoch begins. The budget of that epoch is at most
    /// `max_cap` less the use.
    pub(crate) fn report(&self, max_cap: u64) -> UsageReport {
        self.balance.report(max_cap)
    }

    /// Ends a report: the granted permits may be spent until `end`.
    pub(crate) fn grant(&self, granted: u64, end: u64) {
        self.term.extend(end);
        self.balance.grant(granted);
    }

    /// Ends the lease, and returns its use of this epoch.
    pub(crate) fn lose(&self) -> u64 {
        self.balance.lose()
    }

    /// Publishes that the store has at most `left` permits from `now` until `until`, and may have room for `permits` at `retry_at`.
    pub(crate) fn close(&self, (now, until): (u64, u64), left: u64, (permits, retry_at): (u64, u64)) {
        let time = RetryTime::new(retry_at, permits);
        let [fewest, latest] = &self.retry_at;
        if !self.is_closed(now) || permits <= fewest.read().permits() {
            fewest.write(time);
        }
        latest.write(time);
        self.notice.write(Notice::new(until, left));
    }

    /// Publishes that the store may have room.
    pub(crate) fn reopen(&self) {
        self.notice.write(Notice::new(0, 0));
    }

    /// Whether the store is known to have no room at this time.
    pub(crate) fn is_closed(&self, now: u64) -> bool {
        self.notice.read().left_at(now).is_some()
    }

    /// Stores how many permits the store had left for others when it answered.
    pub(crate) fn note_left(&self, left: u64) {
        self.left.write(left);
    }

    /// The permits that may be spent at this time, and those that the store had left. No decision depends on it.
    pub(crate) fn remaining(&self, now: u64) -> u64 {
        let balance = self.balance.read();
        let own = if now < self.term.end() { balance.room() } else { 0 };
        own.saturating_add(self.left.read())
    }

    /// Counts permits that were requested and not covered.
    pub(crate) fn note_shortage(&self, permits: u64) {
        self.shortage.add(permits);
    }

    /// Whether permits were requested and not covered, since the count was taken.
    pub(crate) fn has_shortage(&self) -> bool {
        self.shortage.is_some()
    }

    /// Takes the count of permits that were not covered.
    pub(crate) fn take_shortage(&self) -> u64 {
        self.shortage.take()
    }

    /// Gives the lease to another key. Returns false if some use is uncharged.
    ///
    /// The caller has checked that the budget is 0, or that its term is over, or that no store has registered it.
    pub(crate) fn reassign(&self, key: u64) -> bool {
        if !self.balance.clear() {
            return false;
        }
        // From here on, a decider of the former key may read the next key's longer term, but its exchange fails.
        self.term.end_now();
        self.notice.write(Notice::new(0, 0));
        self.shortage.take();
        self.left.write(0);
        self.owner.write(key);
        true
    }
}
