/// A rule of the protocol that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// A budget is granted beside the others, but not beside what is spent in the window.
    GrantsIgnoreTheWindow,
    /// A lease is granted beside the window, but not beside the other leases.
    GrantsIgnoreTheHolds,
    /// A lease may be granted fewer permits than it may have uncharged.
    GrantsIgnoreWhatIsUncharged,
    /// A request that the server decides needs room in the window, but not beside the leases.
    StrictIgnoresTheHolds,
    /// The permits of a silent node are kept for W, and not for W after the last moment at which it may have spent.
    HoldsAreKeptForAWindow,
    /// The permits of a silent node are kept for its term, and not until its uses have left every window.
    HoldsAreKeptForATerm,
    /// A copy of an answered report does not renew the lease, but the node continues from its answer.
    CopiesDoNotRenew,
    /// A copy of a report is charged again.
    CopiesAreCharged,
    /// A report is answered although a later one was answered before.
    OldQuestionsAreApplied,
    /// Charges count from when they were sent, by a clock that is behind.
    ChargesAreDatedByNodes,
    /// A server that has forgotten everything grants leases at once.
    GrantsAtOnceAfterAWipe,
    /// After the clock has gone back, charges that are dated ahead are forgotten.
    WhatIsAheadIsForgotten,
    /// After the clock has gone back, a lease takes back its permits where they no longer are.
    ErasAreNotCompared,
    /// After the clock has gone back, the permits of all leases end with the terms.
    HoldsEndWithTheirTerms,
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
    ClocksAreTakenToAgree,
    /// A node reports that it needs less, and keeps its budget until the answer.
    ShrinksWithoutStopping,
    /// An unanswered charge counts as made, and another report is sent.
    LostChargesAreForgotten,
    /// An answer is applied even if its report is not the pending one.
    OldAnswersAreHeard,
    /// A use may be refunded while its charge is pending.
    WhatIsAskedIsGivenBack,
    /// A use may be refunded although it was charged, out of permits that other requests have used since.
    WhatWasChargedIsGivenBack,
    /// After a crash the node goes on under its old name, with numbers from one.
    LivesHaveOneName,
    /// A budget is not kept below what may be pending.
    PendingIsIgnored,
    /// A node's decisions by the server do not count its own budget.
    StrictIgnoresItsOwnBudget,
}
