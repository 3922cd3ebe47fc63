use super::fault::Fault;
use super::server::{Answer, Mode, Report};

/// The units of a node's clock in a tick. Clocks advance by 14 to 18 units, because they run at different rates.
const SIXTEENTHS: u64 = 16;

/// The word that a decider compares and exchanges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lease {
    lease_id: u64,
    /// The permits that may be uncharged.
    budget: u64,
    uncharged: u64,
}

/// A decider between its reading of the clock and its exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decider {
    pub(crate) permits: u64,
    /// The time of the exchange.
    pub(crate) wakes: u64,
    /// The word that the decider has read. `None`: it reads the word at the exchange.
    pub(crate) read: Option<Lease>,
}

/// The permits of an admission, for a refund.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receipt {
    lease_id: u64,
    sequence: u64,
    permits: u64,
}

/// A process, which has one lease at a time. After a crash, another node replaces it.
#[derive(Debug)]
pub(crate) struct Node {
    fault: Fault,
    term: u64,
    mode: Mode,
    lease: Lease,
    /// The units of its clock in a tick.
    pace: u64,
    /// The time for which its machine was suspended.
    suspended: u64,
    /// The end of the term, by its clock.
    deadline: u64,
    sequence: u64,
    /// The report without an answer.
    unanswered: Option<Report>,
    known: bool,
    /// The true time at which the server executed the newest report that was answered. Only the oracle uses it.
    executed: u64,
    pub(crate) deciders: Vec<Decider>,
    /// The time of the next report.
    pub(crate) next: u64,
    /// The time until which the network delivers no message of the node.
    pub(crate) cut_off: u64,
    /// The time until which its machine is suspended.
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
            unanswered: None,
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

    /// Returns the reading of its clock, which includes the time in suspension.
    fn clock(&self, now: u64) -> u64 {
        let counted = match self.fault {
            Fault::ClockStopsInSleep => now - self.suspended,
            _ => now,
        };
        counted * self.pace
    }

    /// Suspends its machine until `until`.
    pub(crate) fn suspend(&mut self, now: u64, until: u64) {
        self.suspended += until - now;
        self.asleep = until;
    }

    /// Returns whether the term has not ended. A decider checks this before its exchange.
    pub(crate) fn is_in_term(&self, now: u64) -> bool {
        self.clock(now) < self.deadline || self.fault == Fault::NoTerm
    }

    /// Makes the exchange. Returns the time of the admission, which is at most D after the execution of the newest answered
    /// report, and its receipt.
    pub(crate) fn spend(&mut self, now: u64, decider: Decider) -> Option<(u64, Receipt)> {
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
            Fault::NoTerm | Fault::ClockStopsInSleep | Fault::ClocksAreAssumedEqual
        );
        let late = late || matches!(self.fault, Fault::TermFromTheAnswer | Fault::TermFromTheLastCopy);
        let stamp = if late {
            now
        } else {
            now.min(self.executed + self.term)
        };
        Some((stamp, receipt))
    }

    /// Refunds permits, if no report was sent since they were spent. Returns whether they were refunded.
    pub(crate) fn refund(&mut self, receipt: Receipt) -> bool {
        let report = self.unanswered.map_or(0, |report| report.charge);
        let has = receipt.lease_id == self.lease.lease_id
            && match self.fault {
                Fault::PendingChargesAreRefunded => self.lease.uncharged >= receipt.permits,
                Fault::PastChargesAreRefunded => self.lease.uncharged >= receipt.permits + report,
                _ => receipt.sequence == self.sequence,
            };
        if has {
            self.lease.uncharged -= receipt.permits;
        }
        has
    }

    /// Returns the unanswered report, or a new one whose cap is at least the uncharged permits.
    pub(crate) fn report(&mut self, now: u64, want: u64, cap: u64) -> Report {
        let sent = self.clock(now);
        if let Some(report) = &mut self.unanswered {
            if self.fault != Fault::UnansweredChargesAreForgotten {
                report.sent = sent;
                report.truly_sent = now;
                return *report;
            }
            self.lease.uncharged -= report.charge.min(self.lease.uncharged);
        }
        self.sequence += 1;
        // The node keeps to the cap from now on.
        let cap = self.lease.budget.min(cap.max(self.lease.uncharged));
        if self.fault != Fault::ShrinksAfterTheAnswer {
            self.lease.budget = cap;
        }
        let report = Report {
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
        self.unanswered = Some(report);
        report
    }

    /// Applies an answer. Returns whether the lease has ended.
    pub(crate) fn apply(&mut self, now: u64, answer: Answer) -> bool {
        let applies_any = self.fault == Fault::OldAnswersAreApplied;
        let report = self
            .unanswered
            .filter(|report| applies_any || report.sequence == answer.sequence);
        let Some(report) = report.filter(|_| answer.lease_id == self.lease.lease_id) else {
            return false;
        };
        self.unanswered = None;
        let Some(budget) = answer.budget else {
            return true;
        };
        self.lease.uncharged -= report.charge.min(self.lease.uncharged);
        self.lease.budget = budget;
        self.known = true;
        self.executed = self.executed.max(answer.executed);
        let from = match self.fault {
            Fault::TermFromTheAnswer => self.clock(now),
            Fault::TermFromTheLastCopy => report.sent,
            _ => answer.sent,
        };
        // Rates of clocks may differ by an eighth. So at most D of the server's time passes in 7/8 of D by this clock.
        let term = match self.fault {
            Fault::ClocksAreAssumedEqual => self.term * SIXTEENTHS,
            _ => self.term * SIXTEENTHS * 7 / 8,
        };
        self.deadline = self.deadline.max(from + term);
        false
    }

    /// Begins another lease after the end of the last one. Permits spent from that one are charged, or covered by
    /// registered permits while they count, or charged by the next report.
    pub(crate) fn begin_lease(&mut self, lease_id: u64) {
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

    /// Returns whether the lease can end without a loss: all permits are charged, and no more can be spent.
    pub(crate) fn is_idle(&self, now: u64) -> bool {
        let spent = self.lease.budget == 0 || !self.is_in_term(now);
        self.unanswered.is_none() && self.lease.uncharged == 0 && spent
    }
}
