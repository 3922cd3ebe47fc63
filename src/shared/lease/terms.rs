use crate::rules::evaluate::request_limit::RequestLimit;
use crate::shared::store::CounterRequest;

/// The counter of a lease, and its terms.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub(crate) counter: CounterRequest,
    /// Whether the store registers what it grants. Otherwise the permits are a budget.
    pub(crate) is_registered: bool,
    /// The most permits that are requested.
    pub(crate) most: u64,
    /// The time between two requests, in nanoseconds.
    pub(crate) period: u64,
    /// How long granted permits may be spent, in nanoseconds.
    pub(crate) term: u64,
    /// The part of the term that is left unused, since readings of the clock may be late.
    pub(crate) margin: u64,
    /// The limiter of this node that decides when the store does not answer: its state, and the key and limit there.
    /// `None`: another lease of the same request charges it.
    pub(crate) fallback: Option<(u16, u64, RequestLimit)>,
}
