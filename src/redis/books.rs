//! The accounts of a node: where a key's is, who looks after it, and what they all have in common.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crossbeam_utils::CachePadded;
use tokio::sync::Notify;

use super::desk::{Desk, Ticket, nanos};
use super::due::Due;
use super::standing::Standing;
use super::store::Store;
use super::store_error::StoreError;
use super::term_clock::TermClock;
use crate::account::{Account, NOBODY, Said};
use crate::rules::{LocalBooks, ShardId};
use crate::sync::Tally;

/// All accounts of a node.
pub(super) struct Books {
    pub(super) accounts: Box<[Account]>,
    /// Those that are not to wait for their period.
    pub(super) due: Due,
    /// Told when something is due at once. The flusher waits for it without holding anything else of this.
    pub(super) wake: Arc<Notify>,
    /// Told when an account was heard of, or was not answered: each one's is that of its place.
    pub(super) heard: [Notify; PLACES],
    pub(super) clock: TermClock,
    pub(super) store: Arc<dyn Store>,
    pub(super) stand_ins: LocalBooks,
    /// Held for a few instructions for each account, and never across an await. Who only spends does not need it.
    inside: Mutex<Inside>,
    counts: [CachePadded<Counts>; PLACES],
}

/// What is behind the lock.
pub(super) struct Inside {
    pub(super) desks: Box<[Desk]>,
    /// The accounts that there is something to look after.
    pub(super) watched: Vec<usize>,
    /// Of this node's lives, and how many there were.
    node: u64,
    lives: u64,
    /// Calls that are on their way.
    pub(super) calls: usize,
    pub(super) error: Option<StoreError>,
}

/// What has happened.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) refused: Tally,
    pub(super) asked: Tally,
}

/// The accounts that a key may have, side by side.
const SET: usize = 4;

/// Those who wait for one of so many accounts are told together.
const PLACES: usize = 64;

impl Books {
    pub(super) fn new(
        capacity: u64,
        clock: TermClock,
        store: Arc<dyn Store>,
        stand_ins: LocalBooks,
        node: u64,
    ) -> Self {
        let sets = usize::try_from(capacity).unwrap_or(usize::MAX).div_ceil(SET);
        let all = sets * SET;
        Self {
            accounts: (0..all).map(|_| Account::new()).collect(),
            due: Due::new(all),
            wake: Arc::default(),
            heard: [(); PLACES].map(|()| Notify::new()),
            clock,
            store,
            stand_ins,
            inside: Mutex::new(Inside {
                desks: (0..all).map(|_| Desk::default()).collect(),
                watched: Vec::new(),
                node,
                lives: 0,
                calls: 0,
                error: None,
            }),
            counts: [(); PLACES].map(|()| CachePadded::default()),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inside> {
        // Nothing that is done under the lock can fail, so what a panic has left is whole.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn set_of(&self, key: u64) -> usize {
        let sets = (self.accounts.len() / SET) as u128;
        // Below the number of sets.
        ((u128::from(key) * sets) >> 64) as usize * SET
    }

    /// Where the key's account is, if it has one.
    #[inline]
    pub(super) fn find(&self, key: u64) -> Option<usize> {
        let first = self.set_of(key);
        let own = |account: &Account| account.owner() == key;
        let at = self.accounts[first..first + SET].iter().position(own)?;
        Some(first + at)
    }

    /// What the key's account says at this time, without taking anything.
    #[inline]
    pub(super) fn look(&self, key: u64, permits: u64, now: u64) -> Said {
        match self.find(key) {
            Some(at) => self.accounts[at].look(key, permits, now),
            None => Said::NotYours,
        }
    }

    /// Takes permits of the key's account. With where that is.
    #[inline(always)]
    pub(super) fn spend(&self, key: u64, permits: u64) -> (usize, Said) {
        let Some(at) = self.find(key) else {
            return (0, Said::NotYours);
        };
        let said = self.accounts[at].spend(key, permits, || self.clock.now());
        if let Said::Room { low: true, .. } = said {
            self.nudge(at, true);
        }
        (at, said)
    }

    /// Where this thread counts what happens.
    pub(super) fn counts(&self) -> &Counts {
        &self.counts[ShardId::current().index() % PLACES]
    }

    /// What tells of the account.
    pub(super) fn heard_of(&self, at: usize) -> &Notify {
        &self.heard[at % PLACES]
    }

    /// Has the flusher look at the account before its period is over: at once, if it is to be woken.
    #[cold]
    pub(super) fn nudge(&self, at: usize, wake: bool) {
        self.due.note(at);
        if wake {
            self.wake.notify_one();
        }
    }

    /// Notes that permits of the account were wanted and not had.
    #[cold]
    pub(super) fn miss(&self, at: usize, permits: u64) {
        let account = &self.accounts[at];
        account.miss(permits.min(crate::rules::Mode::MAX_PERMITS));
        // A key that nobody has asked for lately can wait.
        self.nudge(at, account.balance().budget() > 0);
    }

    /// Where the key's account is; one is made, if there is a place for it.
    #[cold]
    pub(super) fn find_or_make(&self, key: u64, ticket: impl FnOnce() -> Ticket) -> Option<usize> {
        if let Some(at) = self.find(key) {
            return Some(at);
        }
        let now = self.clock.now();
        let mut inside = self.lock();
        // Somebody may have been faster; from here on nobody is.
        if let Some(at) = self.find(key) {
            return Some(at);
        }
        let first = self.set_of(key);
        let free = |at: &usize| inside.desks[*at].is_free(&self.accounts[*at], now);
        let at = (first..first + SET)
            .filter(free)
            .min_by_key(|&at| (self.accounts[at].owner() != NOBODY, inside.desks[at].heat()))?;
        // What was spent of it and is not charged to the stand-in.
        self.warm(&mut inside, at);
        if !self.accounts[at].pass_on(key) {
            return None;
        }
        let life = inside.life();
        inside.desks[at].open(ticket(), life, now);
        Some(at)
    }

    /// Charges the stand-in what the account has admitted so far.
    pub(super) fn warm(&self, inside: &mut Inside, at: usize) {
        let more = inside.desks[at].warm(&self.accounts[at]);
        self.charge_stand_in(&inside.desks[at], more);
    }

    pub(super) fn charge_stand_in(&self, desk: &Desk, permits: u64) {
        if let Some(ticket) = desk.ticket()
            && let Some((group, key, tier)) = ticket.stand_in
            && permits > 0
        {
            self.stand_ins.charge(group, key, tier, permits);
        }
    }

    /// The same, for a key that is to be decided by the stand-in.
    pub(super) fn warm_key(&self, key: u64) {
        if let Some(at) = self.find(key) {
            self.warm(&mut self.lock(), at);
        }
    }

    /// That the store has no room for so many permits, until it has.
    pub(super) fn shut(&self, key: u64, left: u64, after: Duration) {
        let Some(at) = self.find(key) else { return };
        let now = self.clock.now();
        let inside = self.lock();
        // The account may have been passed on; from here on it is not.
        if self.accounts[at].owner() == key
            && let Some(ticket) = inside.desks[at].ticket()
        {
            let after = nanos(after);
            let until = now.saturating_add(after.min(ticket.period));
            self.accounts[at].shut(until, left, now.saturating_add(after));
        }
    }

    /// That the store may have room for these keys again.
    pub(super) fn reopen(&self, keys: impl IntoIterator<Item = u64>) {
        for key in keys {
            let Some(at) = self.find(key) else { continue };
            let _inside = self.lock();
            // The account may have been passed on; from here on it is not.
            if self.accounts[at].owner() == key {
                self.accounts[at].reopen();
            }
        }
    }

    pub(super) fn standing(&self) -> Standing {
        let now = self.clock.now();
        let mut standing = Standing {
            capacity: self.accounts.len() as u64,
            refused: self.counts.iter().map(|counts| counts.refused.get()).sum(),
            asked: self.counts.iter().map(|counts| counts.asked.get()).sum(),
            ..Standing::default()
        };
        let inside = self.lock();
        for (account, desk) in self.accounts.iter().zip(&inside.desks) {
            if account.owner() == NOBODY {
                continue;
            }
            let (sheet, asked) = (account.balance(), desk.asked());
            standing.accounts += 1;
            standing.uncharged += sheet.used() + asked;
            standing.held += sheet.budget() + asked;
            if sheet.budget() + asked > 0 {
                let stale = Duration::from_nanos(now.saturating_sub(desk.heard_at()));
                standing.stale = standing.stale.max(Some(stale));
            }
        }
        standing
    }
}

impl Inside {
    /// A number that no other life has had, on any node.
    pub(super) fn life(&mut self) -> u128 {
        self.lives += 1;
        u128::from(self.node) << 64 | u128::from(self.lives)
    }

    pub(super) fn watch(&mut self, at: usize) {
        if !self.desks[at].watched {
            self.desks[at].watched = true;
            self.watched.push(at);
        }
    }
}

impl fmt::Debug for Books {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Books").field(&self.standing()).finish()
    }
}
