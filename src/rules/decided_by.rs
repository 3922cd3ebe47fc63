/// Where a decision by rules was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecidedBy {
    /// By the store of shared rules, for all machines.
    Store,
    /// In this process: by rules of its own, or as the [modes](super::Mode) of shared rules allow, by leases or local rules.
    Local,
    /// On this node, because the store did not answer: by [`OnError`](super::OnError).
    Fallback,
    /// By the rules alone: none applies to the request, or a list of keys decided.
    Rules,
}

/// Why rules have denied a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// A limit has no room.
    Spent,
    /// The key is on a rule's list of keys that are always denied, its limit is 0, or the request lacks a key that it must have
    /// ([`OnMissingKey::Deny`](super::OnMissingKey)).
    Listed,
    /// The store does not answer, and the rule denies requests then.
    Unavailable,
}
