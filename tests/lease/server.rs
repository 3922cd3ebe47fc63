use alloc::collections::BTreeMap;

use super::fault::Fault;

pub(crate) const LIMIT: u64 = 60;

/// The durations that the server and all nodes use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// The window W.
    pub(crate) window: u64,
    /// The term D: the time for which a budget may be spent after the node's last answered report.
    pub(crate) term: u64,
}

/// The mode of a node's budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A lease, whose permits the server reserves.
    Lease,
    /// A budget of at most `pending` permits, which the server does not reserve.
    Sync { pending: u64 },
}

/// A request of a node to renew its budget, to charge `charge` permits and to grant `want` permits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    pub(crate) mode: Mode,
    pub(crate) lease_id: u64,
    pub(crate) sequence: u64,
    /// The time at which this copy was sent, by the node's clock and in true time.
    pub(crate) sent: u64,
    pub(crate) truly_sent: u64,
    pub(crate) charge: u64,
    /// The most permits that may be uncharged until the answer.
    pub(crate) cap: u64,
    pub(crate) want: u64,
    /// Whether an earlier report of this lease was answered.
    pub(crate) known: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) lease_id: u64,
    pub(crate) sequence: u64,
    /// The time at which the answered copy was sent, by the node's clock.
    pub(crate) sent: u64,
    /// The true time at which the report was executed. Only the oracle uses it.
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
    registered: u64,
    registered_until: u64,
    era: u64,
}

/// The script and its state. Its clock may go back.
#[derive(Debug)]
pub(crate) struct Server {
    fault: Fault,
    times: Times,
    started: u64,
    /// The records of all leases. None is removed, since a store may remove them at any time after their ends.
    entries: BTreeMap<u64, Entry>,
    /// The registered permits of all leases, by the time at which they end.
    registered: BTreeMap<u64, u64>,
    /// The number of times that the clock was found to have gone back, and the reading of the last change of `registered`.
    era: u64,
    latest: u64,
    charges: Vec<(u64, u64)>,
    /// The time by which its clock is behind true time.
    behind: u64,
}

impl Server {
    pub(crate) fn new(fault: Fault, times: Times) -> Self {
        Self {
            fault,
            times,
            started: 0,
            entries: BTreeMap::new(),
            registered: BTreeMap::new(),
            era: 0,
            latest: 0,
            charges: Vec::new(),
            behind: 0,
        }
    }

    /// Sets its clock back.
    pub(crate) fn step_back(&mut self, time: u64) {
        self.behind += time;
    }

    /// Restarts it without its state.
    pub(crate) fn wipe(&mut self, now: u64) {
        self.entries.clear();
        self.registered.clear();
        self.era += 1;
        self.latest = 0;
        self.charges.clear();
        self.started = now - self.behind;
    }

    /// Returns the registered permits.
    fn registered(&self) -> u64 {
        self.registered.values().sum()
    }

    /// Returns a lease whose term has not ended, and whose registered permits are at the time in its record.
    fn find(&self, lease_id: u64, now: u64) -> Option<Entry> {
        let entry = *self.entries.get(&lease_id)?;
        let any_era = self.fault == Fault::ErasAreNotCompared;
        let is_held = entry.registered == 0 || entry.era == self.era || any_era;
        (entry.ends > now && is_held).then_some(entry)
    }

    /// Removes the registered permits of a lease.
    fn unregister(&mut self, entry: &Entry) {
        if let Some(registered) = self.registered.get_mut(&entry.registered_until) {
            *registered = registered.saturating_sub(entry.registered);
            if *registered == 0 {
                self.registered.remove(&entry.registered_until);
            }
        }
    }

    /// Returns the permits that were charged in the window that ends now.
    fn spent(&self, now: u64) -> u64 {
        let counted = self
            .charges
            .iter()
            .filter(|charge| charge.0 + self.times.window > now);
        counted.map(|charge| charge.1).sum()
    }

    /// Begins a script: reads the time, and removes charges and registered permits that have ended.
    fn begin(&mut self, now: u64) -> u64 {
        let now = now - self.behind;
        let Times { window, term } = self.times;
        self.started = self.started.min(now);
        if self.fault == Fault::FutureChargesAreRemoved {
            self.charges.retain(|charge| charge.0 <= now);
        }
        self.charges.retain(|charge| charge.0 + window > now);
        for charge in &mut self.charges {
            charge.0 = charge.0.min(now);
        }
        let before = self.registered.len();
        if self.latest > now + window / 16 {
            // The clock has gone back.
            let last = self.registered.keys().next_back().copied().unwrap_or(0);
            let until = match self.fault {
                Fault::RegistrationsEndWithTerms => now + term,
                _ => now + last.saturating_sub(self.latest),
            };
            self.registered.retain(|&until, _| until > now);
            let registered = self.registered();
            self.registered.clear();
            if registered > 0 && self.fault != Fault::FutureChargesAreRemoved {
                self.registered.insert(until, registered);
            }
            self.era += 1;
            self.latest = now;
        }
        self.registered.retain(|&until, _| until > now);
        if self.registered.len() < before {
            self.latest = now;
        }
        now
    }

    /// Decides a request of a node whose budget of at most `own` permits is not registered.
    pub(crate) fn decide(&mut self, now: u64, own: u64, permits: u64) -> bool {
        let now = self.begin(now);
        let registered = match self.fault {
            Fault::StrictIgnoresLeases => 0,
            _ => self.registered(),
        };
        let own = match self.fault {
            Fault::StrictIgnoresItsOwnBudget => 0,
            _ => own,
        };
        let has_capacity = self.spent(now) + registered + own + permits <= LIMIT;
        if has_capacity {
            self.charges.push((now, permits));
        }
        has_capacity
    }

    /// Executes a report.
    pub(crate) fn answer(&mut self, truly: u64, report: Report) -> Answer {
        let now = self.begin(truly);
        let mut answer = Answer {
            lease_id: report.lease_id,
            sequence: report.sequence,
            sent: report.sent,
            executed: truly,
            budget: None,
        };
        let Times { window, term } = self.times;
        // Budgets are granted at once, because no other node relies on them.
        let backing_off = report.mode == Mode::Lease
            && now < self.started + window + term
            && self.fault != Fault::GrantsAtOnceAfterAWipe;
        let mut entry = match self.find(report.lease_id, now) {
            Some(entry) => entry,
            None if report.known || backing_off => return answer,
            None => Entry {
                budget: 0,
                sequence: 0,
                ends: 0,
                registered: 0,
                registered_until: 0,
                era: 0,
            },
        };
        let is_copy = match self.fault {
            Fault::OldReportsAreApplied => report.sequence == entry.sequence,
            Fault::CopiesAreCharged => report.sequence < entry.sequence,
            _ => report.sequence <= entry.sequence,
        };
        let renews = !is_copy || self.fault != Fault::CopiesDoNotRenew;
        if renews {
            entry.ends = now + term;
            self.unregister(&entry);
        }
        // A copy gets the same answer, and has no other effect than the renewal.
        if !is_copy {
            entry.sequence = report.sequence;
            self.charge(now, report);
            // The permits that may still be uncharged.
            let kept = entry.budget.min(report.cap).saturating_sub(report.charge);
            let spent = match self.fault {
                Fault::GrantsIgnoreTheWindow => 0,
                _ => self.spent(now),
            };
            let others = match self.fault {
                Fault::GrantsIgnoreOtherLeases => 0,
                _ => self.registered(),
            };
            let free = LIMIT.saturating_sub(spent + others);
            let most = match report.mode {
                Mode::Sync { pending } if self.fault != Fault::PendingIsIgnored => pending,
                _ => LIMIT,
            };
            let grant = report.want.min(free).min(most);
            entry.budget = match self.fault {
                Fault::GrantsIgnoreUnchargedPermits => grant,
                _ => grant.max(kept),
            };
        }
        if renews {
            entry.registered = if report.mode == Mode::Lease {
                entry.budget
            } else {
                0
            };
            self.register(&mut entry, now);
        }
        self.entries.insert(report.lease_id, entry);
        answer.budget = Some(entry.budget);
        answer
    }

    /// Registers the permits of a lease until all permits that are spent in its term have left every window.
    fn register(&mut self, entry: &mut Entry, now: u64) {
        let Times { window, term } = self.times;
        if entry.registered > 0 {
            let part = (window + term).div_ceil(16);
            entry.registered_until = match self.fault {
                Fault::RegistrationsLastAWindow => now + window,
                Fault::RegistrationsLastATerm => now + term,
                Fault::EndsAreRoundedDown => (now + window + term) / part * part,
                _ => (now + window + term).div_ceil(part) * part,
            };
            entry.era = self.era;
            *self.registered.entry(entry.registered_until).or_default() += entry.registered;
        }
        self.latest = now;
    }

    fn charge(&mut self, now: u64, report: Report) {
        let dated = match self.fault {
            Fault::ChargesAreDatedByNodes => now.min(report.truly_sent.saturating_sub(self.behind + 60)),
            _ => now,
        };
        if report.charge > 0 {
            self.charges.push((dated, report.charge));
        }
    }
}
