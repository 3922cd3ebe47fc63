/// A rule of the protocol that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// A grant leaves the other leases free, but not the permits spent in the window.
    GrantsIgnoreTheWindow,
    /// A grant leaves the permits spent in the window free, but not the other leases.
    GrantsIgnoreOtherLeases,
    /// A grant may be smaller than the uncharged permits of the lease.
    GrantsIgnoreUnchargedPermits,
    /// A decision by the server counts the permits spent in the window, but not the leases.
    StrictIgnoresLeases,
    /// Permits are registered for W, instead of for W after the end of the term.
    RegistrationsLastAWindow,
    /// Permits are registered for the term, instead of until the permits spent in it have left every window.
    RegistrationsLastATerm,
    /// A copy of an answered report does not renew the lease, but the node continues from its answer.
    CopiesDoNotRenew,
    /// A copy of a report is charged again.
    CopiesAreCharged,
    /// A report is applied although a later one was applied before.
    OldReportsAreApplied,
    /// Charges count from the time at which they were sent, by a clock that is behind.
    ChargesAreDatedByNodes,
    /// A server that has lost its state grants leases at once.
    GrantsAtOnceAfterAWipe,
    /// After the clock has gone back, charges with a later time are removed.
    FutureChargesAreRemoved,
    /// After the clock has gone back, a renewal removes registered permits at a time at which they no longer are.
    ErasAreNotCompared,
    /// After the clock has gone back, the permits of all leases end with the terms.
    RegistrationsEndWithTerms,
    /// The time at which permits end is rounded down.
    EndsAreRoundedDown,
    /// A node whose budget has ended forgets its uncharged use.
    EndedBudgetsAreNotCharged,
    /// The term of a node ends D after the answer, instead of D after its report.
    TermFromTheAnswer,
    /// The term ends D after the last copy of the report, although an earlier copy was answered.
    TermFromTheLastCopy,
    /// A node spends until an answer says that its lease has ended.
    NoTerm,
    /// The term is measured by a clock that stops while the machine is suspended.
    ClockStopsInSleep,
    /// The term is measured by the node's clock as if that ran as fast as the server's.
    ClocksAreAssumedEqual,
    /// A node reports that it needs less, and keeps its budget until the answer.
    ShrinksAfterTheAnswer,
    /// An unanswered charge counts as made, and another report is sent.
    UnansweredChargesAreForgotten,
    /// An answer is applied even if its report is not the pending one.
    OldAnswersAreApplied,
    /// Permits are refunded while their charge is pending.
    PendingChargesAreRefunded,
    /// Permits are refunded after their charge, out of permits that other requests have spent since.
    PastChargesAreRefunded,
    /// After a crash the node continues with its old lease id, and with sequence numbers from one.
    LeaseIdsAreReused,
    /// A budget may exceed `pending`.
    PendingIsIgnored,
    /// A decision by the server does not count the budget of the node that sent the request.
    StrictIgnoresItsOwnBudget,
}
