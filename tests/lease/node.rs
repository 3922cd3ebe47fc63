use super::fault::Fault;
use super::server::{Answer, Mode, Question};

/// Sixteenths of a tick, in which nodes count: their clocks go 14 to 18 of them in a tick.
const SIXTEENTHS: u64 = 16;

/// The word that a decider compares and exchanges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    lease_id: u64,
    /// The permits that may be uncharged.
    budget: u64,
    uncharged: u64,
}

/// A decider that has read the clock, and maybe the lease, and has not exchanged yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decider {
    pub(crate) permits: u64,
    /// When it goes on.
    pub(crate) wakes: u64,
    /// The word that it has read, unless it reads it when it wakes.
    pub(crate) read: Option<Lease>,
}

/// The permits that were used, as needed to refund them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receipt {
    lease_id: u64,
    sequence: u64,
    permits: u64,
}

/// A process: it has one lease after the other, and after a crash it is another.
#[derive(Debug)]
pub(crate) struct Node {
    fault: Fault,
    term: u64,
    mode: Mode,
    lease: Lease,
    /// Sixteenths in a tick.
    pace: u64,
    /// For how long its machine was suspended.
    suspended: u64,
    /// It may spend before this, by its clock.
    deadline: u64,
    sequence: u64,
    asked: Option<Question>,
    known: bool,
    /// When what it has heard last was executed. (Only the oracle knows.)
    executed: u64,
    pub(crate) deciders: Vec<Decider>,
    /// When it asks again.
    pub(crate) next: u64,
    /// Nothing comes through before this.
    pub(crate) cut_off: u64,
    /// Nothing happens in it before this.
    pub(crate) asleep: u64,
}

impl Node {
    pub(crate) fn new(fault: Fault, term: u64, mode: Mode, lease_id: u64, pace: u64, now: u64) -> Self {
        Self {
            fault,
            term,
            mode,
            lease: Lease {
                lease_id,
                budget: 0,
                uncharged: 0,
            },
            pace,
            suspended: 0,
            deadline: 0,
            sequence: 0,
            asked: None,
            known: false,
            executed: 0,
            deciders: Vec::new(),
            next: now,
            cut_off: 0,
            asleep: 0,
        }
    }

    pub(crate) fn lease_id(&self) -> u64 {
        self.lease.lease_id
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    pub(crate) fn lease(&self) -> Lease {
        self.lease
    }

    /// Its clock, which counts what its machine was suspended for.
    fn clock(&self, now: u64) -> u64 {
        let counted = match self.fault {
            Fault::ClockStopsInSleep => now - self.suspended,
            _ => now,
        };
        counted * self.pace
    }

    /// Its machine is suspended until then.
    pub(crate) fn sleeps(&mut self, now: u64, until: u64) {
        self.suspended += until - now;
        self.asleep = until;
    }

    /// Whether the term is not over, which a decider asks before it exchanges.
    pub(crate) fn has_time(&self, now: u64) -> bool {
        self.clock(now) < self.deadline || self.fault == Fault::NoTerm
    }

    /// The exchange. The stamp of a use is its time, or if that was later than D after what the node has heard was
    /// executed, then that.
    pub(crate) fn uses(&mut self, now: u64, decider: Decider) -> Option<(u64, Receipt)> {
        let Decider { permits, read, .. } = decider;
        let seen = read.unwrap_or(self.lease);
        if seen != self.lease || seen.uncharged + permits > seen.budget {
            return None;
        }
        self.lease.uncharged += permits;
        let receipt = Receipt {
            lease_id: seen.lease_id,
            sequence: self.sequence,
            permits,
        };
        let late = matches!(
            self.fault,
            Fault::NoTerm | Fault::ClockStopsInSleep | Fault::ClocksAreTakenToAgree
        );
        let late = late || matches!(self.fault, Fault::TermFromTheAnswer | Fault::TermFromTheLastCopy);
        let stamp = if late {
            now
        } else {
            now.min(self.executed + self.term)
        };
        Some((stamp, receipt))
    }

    /// Gives back what was not used after all: exactly, if no question was asked since.
    pub(crate) fn gives_back(&mut self, receipt: Receipt) -> bool {
        let asked = self.asked.map_or(0, |asked| asked.charge);
        let has = receipt.lease_id == self.lease.lease_id
            && match self.fault {
                Fault::WhatIsAskedIsGivenBack => self.lease.uncharged >= receipt.permits,
                Fault::WhatWasChargedIsGivenBack => self.lease.uncharged >= receipt.permits + asked,
                _ => receipt.sequence == self.sequence,
            };
        if has {
            self.lease.uncharged -= receipt.permits;
        }
        has
    }

    /// The question that is open, once more, or a new one, with a cap of at least what is uncharged.
    pub(crate) fn asks(&mut self, now: u64, want: u64, cap: u64) -> Question {
        let sent = self.clock(now);
        if let Some(asked) = &mut self.asked {
            if self.fault != Fault::LostChargesAreForgotten {
                asked.sent = sent;
                asked.truly_sent = now;
                return *asked;
            }
            self.lease.uncharged -= asked.charge.min(self.lease.uncharged);
        }
        self.sequence += 1;
        // It keeps to it from here on.
        let cap = self.lease.budget.min(cap.max(self.lease.uncharged));
        if self.fault != Fault::ShrinksWithoutStopping {
            self.lease.budget = cap;
        }
        let asked = Question {
            mode: self.mode,
            lease_id: self.lease.lease_id,
            sequence: self.sequence,
            sent,
            truly_sent: now,
            charge: self.lease.uncharged,
            cap,
            want,
            known: self.known,
        };
        self.asked = Some(asked);
        asked
    }

    /// Returns whether its lease has ended.
    pub(crate) fn hears(&mut self, now: u64, answer: Answer) -> bool {
        let heard_late = self.fault == Fault::OldAnswersAreHeard;
        let asked = self
            .asked
            .filter(|asked| heard_late || asked.sequence == answer.sequence);
        let Some(asked) = asked.filter(|_| answer.lease_id == self.lease.lease_id) else {
            return false;
        };
        self.asked = None;
        let Some(budget) = answer.budget else {
            return true;
        };
        self.lease.uncharged -= asked.charge.min(self.lease.uncharged);
        self.lease.budget = budget;
        self.known = true;
        self.executed = self.executed.max(answer.executed);
        let from = match self.fault {
            Fault::TermFromTheAnswer => self.clock(now),
            Fault::TermFromTheLastCopy => asked.sent,
            _ => answer.sent,
        };
        // Clocks may differ by an eighth: in so much of its time, no more than D of the server's goes by.
        let term = match self.fault {
            Fault::ClocksAreTakenToAgree => self.term * SIXTEENTHS,
            _ => self.term * SIXTEENTHS * 7 / 8,
        };
        self.deadline = self.deadline.max(from + term);
        false
    }

    /// Begins another lease: the one before has ended. Its use is charged, or covered by registered permits for as long as
    /// it counts, or the next question charges it.
    pub(crate) fn begins(&mut self, lease_id: u64) {
        let carried = match self.mode {
            Mode::Sync { .. } if self.fault != Fault::EndedBudgetsAreNotCharged => self.lease.uncharged,
            _ => 0,
        };
        *self = Self {
            suspended: self.suspended,
            deciders: core::mem::take(&mut self.deciders),
            asleep: self.asleep,
            cut_off: self.cut_off,
            ..Self::new(self.fault, self.term, self.mode, lease_id, self.pace, self.next)
        };
        (self.lease.budget, self.lease.uncharged) = (carried, carried);
    }

    /// Whether nothing is missing when its lease ends: all is charged, and nothing more can be spent.
    pub(crate) fn is_idle(&self, now: u64) -> bool {
        let spent = self.lease.budget == 0 || !self.has_time(now);
        self.asked.is_none() && self.lease.uncharged == 0 && spent
    }
}
