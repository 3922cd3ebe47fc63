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
    budget: u64,
    sequence: u64,
    /// The end of its term.
    ends: u64,
    /// The registered permits, the time at which they end, and the era of that time.
    held: u64,
    held_until: u64,
    era: u64,
}

/// The script and its state. Its clock may go back.
#[derive(Debug)]
pub(crate) struct Server {
    fault: Fault,
    times: Times,
    born: u64,
    /// The records of all leases. None is removed, since a store may remove them at any time after their ends.
    entries: BTreeMap<u64, Entry>,
    /// The registered permits of all leases, by the time at which they end.
    held: BTreeMap<u64, u64>,
    /// The number of times that the clock was found to have gone back, and the reading of the last change of `held`.
    era: u64,
    latest: u64,
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
            held: BTreeMap::new(),
            era: 0,
            latest: 0,
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
        self.held.clear();
        self.era += 1;
        self.latest = 0;
        self.charges.clear();
        self.born = now - self.behind;
    }

    /// The permits that are registered.
    fn held(&self) -> u64 {
        self.held.values().sum()
    }

    /// A lease whose term is not over, and whose permits are where its record says.
    fn find(&self, lease_id: u64, now: u64) -> Option<Entry> {
        let entry = *self.entries.get(&lease_id)?;
        let any_era = self.fault == Fault::ErasAreNotCompared;
        let is_held = entry.held == 0 || entry.era == self.era || any_era;
        (entry.ends > now && is_held).then_some(entry)
    }

    /// Takes back the permits that are registered for a lease.
    fn take_back(&mut self, entry: &Entry) {
        if let Some(held) = self.held.get_mut(&entry.held_until) {
            *held = held.saturating_sub(entry.held);
            if *held == 0 {
                self.held.remove(&entry.held_until);
            }
        }
    }

    /// In the window that ends now.
    fn spent(&self, now: u64) -> u64 {
        let counted = self
            .charges
            .iter()
            .filter(|charge| charge.0 + self.times.window > now);
        counted.map(|charge| charge.1).sum()
    }

    /// The beginning of every script: reads the time, and removes what has ended.
    fn begin(&mut self, now: u64) -> u64 {
        let now = now - self.behind;
        let Times { window, term } = self.times;
        self.born = self.born.min(now);
        if self.fault == Fault::WhatIsAheadIsForgotten {
            self.charges.retain(|charge| charge.0 <= now);
        }
        self.charges.retain(|charge| charge.0 + window > now);
        for charge in &mut self.charges {
            charge.0 = charge.0.min(now);
        }
        let before = self.held.len();
        if self.latest > now + window / 16 {
            // The clock has gone back.
            let last = self.held.keys().next_back().copied().unwrap_or(0);
            let until = match self.fault {
                Fault::HoldsEndWithTheirTerms => now + term,
                _ => now + last.saturating_sub(self.latest),
            };
            self.held.retain(|&until, _| until > now);
            let held = self.held();
            self.held.clear();
            if held > 0 && self.fault != Fault::WhatIsAheadIsForgotten {
                self.held.insert(until, held);
            }
            self.era += 1;
            self.latest = now;
        }
        self.held.retain(|&until, _| until > now);
        if self.held.len() < before {
            self.latest = now;
        }
        now
    }

    /// Decides a request by itself: without a budget, or beside a budget of so many permits that is not registered.
    pub(crate) fn decides(&mut self, now: u64, own: u64, permits: u64) -> bool {
        let now = self.begin(now);
        let held = match self.fault {
            Fault::StrictIgnoresTheHolds => 0,
            _ => self.held(),
        };
        let own = match self.fault {
            Fault::StrictIgnoresItsOwnBudget => 0,
            _ => own,
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
        let mut entry = match self.find(asked.lease_id, now) {
            Some(entry) => entry,
            None if asked.known || backing_off => return answer,
            None => Entry {
                budget: 0,
                sequence: 0,
                ends: 0,
                held: 0,
                held_until: 0,
                era: 0,
            },
        };
        let is_copy = match self.fault {
            Fault::OldQuestionsAreApplied => asked.sequence == entry.sequence,
            Fault::CopiesAreCharged => asked.sequence < entry.sequence,
            _ => asked.sequence <= entry.sequence,
        };
        let renews = !is_copy || self.fault != Fault::CopiesDoNotRenew;
        if renews {
            entry.ends = now + term;
            self.take_back(&entry);
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
                _ => self.held(),
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
        if renews {
            entry.held = if asked.mode == Mode::Lease {
                entry.budget
            } else {
                0
            };
            self.register(&mut entry, now);
        }
        self.entries.insert(asked.lease_id, entry);
        answer.budget = Some(entry.budget);
        answer
    }

    /// Keeps the registered permits of a lease until everything that is spent in its term has left every window.
    fn register(&mut self, entry: &mut Entry, now: u64) {
        let Times { window, term } = self.times;
        if entry.held > 0 {
            let part = (window + term).div_ceil(16);
            entry.held_until = match self.fault {
                Fault::HoldsAreKeptForAWindow => now + window,
                Fault::HoldsAreKeptForATerm => now + term,
                Fault::EndsAreRoundedDown => (now + window + term) / part * part,
                _ => (now + window + term).div_ceil(part) * part,
            };
            entry.era = self.era;
            *self.held.entry(entry.held_until).or_default() += entry.held;
        }
        self.latest = now;
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
