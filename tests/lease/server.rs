use alloc::collections::BTreeMap;

use super::fault::Fault;

pub(crate) const LIMIT: u64 = 60;

/// The lengths that all agree on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// W.
    pub(crate) window: u64,
    /// How long a budget may be spent from after its node's last word: D.
    pub(crate) term: u64,
}

/// The parameters of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A lease, which the server keeps free.
    Lease,
    /// A budget of so many permits at most, which it does not.
    Sync { pending: u64 },
}

/// A request of a node: renew the budget, charge these permits, and grant so many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    pub(crate) mode: Mode,
    pub(crate) lease_id: u64,
    pub(crate) sequence: u64,
    /// When this copy was sent, by the node's clock, and in true time.
    pub(crate) sent: u64,
    pub(crate) truly_sent: u64,
    pub(crate) charge: u64,
    /// No more than this may be uncharged from now on, until there is an answer.
    pub(crate) cap: u64,
    pub(crate) want: u64,
    /// Whether the node believes to be known.
    pub(crate) known: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) lease_id: u64,
    pub(crate) sequence: u64,
    /// When the copy was sent that this answers, by the node's clock.
    pub(crate) sent: u64,
    /// When it was executed, in true time. (Only the oracle knows.)
    pub(crate) executed: u64,
    /// `None`: the lease is unknown.
    pub(crate) budget: Option<u64>,
}

/// The record of a lease.
#[derive(Clone, Copy, Debug)]
struct Entry {
    mode: Mode,
    budget: u64,
    sequence: u64,
    until: u64,
}

/// The script and its state. Its clock may go back.
#[derive(Debug)]
pub(crate) struct Server {
    fault: Fault,
    times: Times,
    born: u64,
    entries: BTreeMap<u64, Entry>,
    charges: Vec<(u64, u64)>,
    /// How far its clock is behind true time.
    behind: u64,
}

impl Server {
    pub(crate) fn new(fault: Fault, times: Times) -> Self {
        Self {
            fault,
            times,
            born: 0,
            entries: BTreeMap::new(),
            charges: Vec::new(),
            behind: 0,
        }
    }

    /// Its clock goes back.
    pub(crate) fn step_back(&mut self, time: u64) {
        self.behind += time;
    }

    /// It comes back with nothing of what it had.
    pub(crate) fn wipe(&mut self, now: u64) {
        self.entries.clear();
        self.charges.clear();
        self.born = now - self.behind;
    }

    /// The permits that are registered for others.
    fn held_beside(&self, lease_id: u64, now: u64) -> u64 {
        let others = self
            .entries
            .iter()
            .filter(|(name, entry)| **name != lease_id && entry.mode == Mode::Lease && entry.until > now);
        others.map(|(_, entry)| entry.budget).sum()
    }

    /// In the window that ends now.
    fn spent(&self, now: u64) -> u64 {
        let counted = self
            .charges
            .iter()
            .filter(|charge| charge.0 + self.times.window > now);
        counted.map(|charge| charge.1).sum()
    }

    /// The beginning of every script: reads the time, and removes expired records.
    fn begin(&mut self, now: u64) -> u64 {
        let now = now - self.behind;
        let keep = self.times.term + self.times.window;
        self.born = self.born.min(now);
        if self.fault == Fault::WhatIsAheadIsForgotten {
            self.charges.retain(|charge| charge.0 <= now);
            self.entries.retain(|_, entry| entry.until <= now + keep);
        }
        let window = self.times.window;
        self.charges.retain(|charge| charge.0 + window > now);
        for charge in &mut self.charges {
            charge.0 = charge.0.min(now);
        }
        if self.fault != Fault::EndedHoldsStay {
            self.entries.retain(|_, entry| entry.until > now);
        }
        for entry in self.entries.values_mut() {
            entry.until = entry.until.min(now + keep);
        }
        now
    }

    /// Decides a request by itself: without a budget, or of a lease that may have one.
    pub(crate) fn decides(&mut self, now: u64, lease_id: Option<u64>, permits: u64) -> bool {
        let now = self.begin(now);
        let held = match self.fault {
            Fault::StrictIgnoresTheHolds => 0,
            _ => self.held_beside(u64::MAX, now),
        };
        // Registered permits are among those already.
        let own = lease_id.and_then(|lease_id| self.entries.get(&lease_id));
        let own = own
            .filter(|entry| entry.mode != Mode::Lease)
            .map_or(0, |entry| entry.budget);
        let own = if self.fault == Fault::StrictIgnoresItsOwnBudget {
            0
        } else {
            own
        };
        let has_room = self.spent(now) + held + own + permits <= LIMIT;
        if has_room {
            self.charges.push((now, permits));
        }
        has_room
    }

    pub(crate) fn answers(&mut self, truly: u64, asked: Question) -> Answer {
        let now = self.begin(truly);
        let mut answer = Answer {
            lease_id: asked.lease_id,
            sequence: asked.sequence,
            sent: asked.sent,
            executed: truly,
            budget: None,
        };
        let Times { window, term } = self.times;
        // Budgets are granted at once: only their node relies on them.
        let backing_off = asked.mode == Mode::Lease
            && now < self.born + window + term
            && self.fault != Fault::GrantsAtOnceAfterAWipe;
        let known = self.entries.get(&asked.lease_id);
        let mut entry = match known.filter(|entry| entry.until > now) {
            Some(entry) => *entry,
            None if asked.known || backing_off => return answer,
            None => Entry {
                mode: asked.mode,
                budget: 0,
                sequence: 0,
                until: 0,
            },
        };
        let keep = match self.fault {
            Fault::HoldsAreKeptForAWindow => window,
            Fault::HoldsAreKeptForATerm => term,
            _ => window + term,
        };
        let is_copy = match self.fault {
            Fault::OldQuestionsAreApplied => asked.sequence == entry.sequence,
            Fault::CopiesAreCharged => asked.sequence < entry.sequence,
            _ => asked.sequence <= entry.sequence,
        };
        if !is_copy || self.fault != Fault::CopiesDoNotRenew {
            entry.until = now + keep;
        }
        // A copy is answered as the first was, and changes nothing but that.
        if !is_copy {
            entry.sequence = asked.sequence;
            self.charge(now, asked);
            // The permits that may still be uncharged.
            let kept = entry.budget.min(asked.cap).saturating_sub(asked.charge);
            let spent = match self.fault {
                Fault::GrantsIgnoreTheWindow => 0,
                _ => self.spent(now),
            };
            let others = match self.fault {
                Fault::GrantsIgnoreTheHolds => 0,
                _ => self.held_beside(asked.lease_id, now),
            };
            let free = LIMIT.saturating_sub(spent + others);
            let most = match asked.mode {
                Mode::Sync { pending } if self.fault != Fault::PendingIsIgnored => pending,
                _ => LIMIT,
            };
            let grant = asked.want.min(free).min(most);
            entry.budget = match self.fault {
                Fault::GrantsIgnoreWhatIsUncharged => grant,
                _ => grant.max(kept),
            };
        }
        self.entries.insert(asked.lease_id, entry);
        answer.budget = Some(entry.budget);
        answer
    }

    fn charge(&mut self, now: u64, asked: Question) {
        let dated = match self.fault {
            Fault::ChargesAreDatedByNodes => now.min(asked.truly_sent.saturating_sub(self.behind + 60)),
            _ => now,
        };
        if asked.charge > 0 {
            self.charges.push((dated, asked.charge));
        }
    }
}
