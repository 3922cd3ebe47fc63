/// The decision of a shared rule when its store does not answer: it is unreachable, slow, full, or read-only.
///
/// The module `redis` documents the bounds that hold then. If the rules of one request differ, [`Deny`](Self::Deny) wins,
/// then the limiters of this node, then [`Admit`](Self::Admit).
///
/// `Deny` is for limits that must never be exceeded (payments, one-time codes). `Share` suits a known number of nodes with
/// evenly spread load. `Local` suits limits whose denials cost more than admitting the quota once per node. `Admit` is for
/// limits that only smooth the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnError {
    /// A limiter of this node with the whole quota: an outage denies no request that one node would admit, and all nodes
    /// together may admit the quota once each.
    Local,
    /// A limiter of this node with the quota divided by the expected number of nodes, at least one permit. The default.
    ///
    /// The expected number of nodes is one unless the builder of the shared limits is given another.
    #[default]
    Share,
    /// Denies every request.
    Deny,
    /// Admits every request.
    Admit,
}
