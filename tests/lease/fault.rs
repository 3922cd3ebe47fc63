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
    /// The lease of a silent node is kept for W, and not for W after the last moment at which it may have spent.
    HoldsAreKeptForAWindow,
    /// It is kept for as long as the node may spend, and not until that has left every window.
    HoldsAreKeptForATerm,
    /// A copy of a question that was answered does not renew the lease, but the node goes on from its answer.
    CopiesDoNotRenew,
    /// A copy of a question is charged again.
    CopiesAreCharged,
    /// A question is answered though a later one has been.
    OldQuestionsAreApplied,
    /// Charges count from when they were sent, by a clock that is behind.
    ChargesAreDatedByNodes,
    /// A server that has forgotten all grants what it is asked for.
    GrantsAtOnceAfterAWipe,
    /// A clock that has gone back: what is dated ahead is forgotten.
    WhatIsAheadIsForgotten,
    /// Ended records are kept, and count again when the clock goes back.
    EndedHoldsStay,
    /// A node may spend until D after the answer, and not after its question.
    TermFromTheAnswer,
    /// It may spend until D after the last copy of its question, though an earlier one was answered.
    TermFromTheLastCopy,
    /// It may spend until it hears otherwise.
    NoTerm,
    /// It measures the term by a clock that stops while the machine is suspended.
    ClockStopsInSleep,
    /// It measures the term by its clock as if that went as fast as the server's.
    ClocksAreTakenToAgree,
    /// It says that it needs less, and goes on with what it has until it is answered.
    ShrinksWithoutStopping,
    /// A charge that was not answered is taken to be made, and a new question is asked.
    LostChargesAreForgotten,
    /// An answer is heard whatever it answers.
    OldAnswersAreHeard,
    /// A use may be given back though it is being charged.
    WhatIsAskedIsGivenBack,
    /// A use may be given back though it was charged, out of what others have used since.
    WhatWasChargedIsGivenBack,
    /// After a crash the node goes on under its old name, with numbers from one.
    LivesHaveOneName,
    /// A budget is not kept below what may be pending.
    PendingIsIgnored,
    /// A node's decisions by the server do not count its own budget.
    StrictIgnoresItsOwnBudget,
}
