/// The decision of a shared rule if its store does not answer: it is unreachable, slow, full, or read-only.
///
/// The module `shared` documents the bounds that hold then. If the rules of one request differ, [`Deny`](Self::Deny) has
/// precedence, then the limiters of this node, then [`Admit`](Self::Admit).
///
/// `Deny` is for limits that must never be exceeded (payments, one-time codes). `Share` suits a known number of nodes with
/// evenly spread load. `Local` suits limits whose denials cost more than admitting the quota once per node. `Admit` is for
/// limits that only smooth the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnError {
    /// A limiter of this node decides, with the whole quota. An outage denies no request that a single node would admit. Each node
    /// may admit the whole quota.
    Local,
    /// A limiter of this node decides, with the quota divided by the expected number of nodes, and at least one permit. This is the
    /// default.
    ///
    /// The expected number of nodes is one, unless the builder of the shared limits sets another.
    #[default]
    Share,
    /// Denies every request.
    Deny,
    /// Admits every request.
    Admit,
}
