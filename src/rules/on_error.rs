/// What decides about a rule when the store that keeps it does not answer: it is away, slow, full, or refuses to write.
///
/// What may be admitted then is in the documentation of the module `redis`. When the rules of one request
/// differ, [`Deny`](Self::Deny) goes first, and then the limiters of this node that there are.
///
/// `Deny` is for what must never be exceeded (payments, codes); `Share` where the number of nodes is known and the load
/// is spread evenly; `Local` where to refuse costs more than to admit a limit for each node; `Admit` for what only
/// keeps things pleasant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnError {
    /// A limiter of this node's own with the whole quota: nobody is refused for the outage, and each node admits as much as
    /// all of them should.
    Local,
    /// A limiter of this node's own with the quota divided by the number of nodes that are expected (one, unless
    /// whoever builds the limits says more), and one permit at least. The default.
    #[default]
    Share,
    /// Nobody is admitted.
    Deny,
    /// Everybody is admitted.
    Admit,
}
