use crate::rules::evaluate::request_limit::RequestLimit;
use crate::shared::store::CounterRequest;

/// The counter of a lease, and its terms.
///
/// The modes `Lease` and `Sync` are one protocol with two parameters: whether the store registers the permits, and how many permits
/// a lease may have. These methods are the consequences of the first parameter.
///
/// | | registered (`Lease`) | a budget (`Sync`) |
/// |---|---|---|
/// | [`wanted_permits`](Self::wanted_permits) | those in demand | always the most, because they are taken from no other node |
/// | [`is_asked_for`](Self::is_asked_for) | by lasting demand | by each caller that waits |
/// | [`holds`](Self::holds) | the store keeps them from other nodes | nothing |
/// | [`covers_ended_use`](Self::covers_ended_use) | yes, for a window | no: the next lease charges it |
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub(crate) counter: CounterRequest,
    /// Whether the store registers what it grants. Otherwise the permits are a budget.
    pub(crate) is_registered: bool,
    /// The most permits that are requested.
    pub(crate) most_permits: u64,
    /// The time between two requests, in nanoseconds.
    pub(crate) period: u64,
    /// How long granted permits may be spent, in nanoseconds.
    pub(crate) term: u64,
    /// The part of the term that is left unused, since readings of the clock may be late.
    pub(crate) margin: u64,
    /// The limiter of this node that decides when the store does not answer: the number of its state, and the key and limit there.
    /// `None`: another lease of the same request charges it.
    pub(crate) fallback: Option<(u16, u64, RequestLimit)>,
}

/// The lowest target for which a key gets registered permits. With less demand, a lease would save no calls of the store.
const WORTH_A_LEASE: u64 = 4;

impl Lease {
    /// The permits to ask for. `target`: twice the permits that a period demands.
    pub(super) fn wanted_permits(&self, target: u64) -> u64 {
        match self.is_registered {
            true => target.min(self.most_permits),
            false => self.most_permits,
        }
    }

    /// Whether a grant would save a call of the store.
    pub(super) const fn is_worth_asking(&self, target: u64) -> bool {
        !self.is_registered || target >= WORTH_A_LEASE
    }

    /// Whether permits are to be asked for. `unmet`: the permits that callers wait for.
    pub(super) const fn is_asked_for(&self, target: u64, unmet: u64) -> bool {
        match self.is_registered {
            true => self.is_worth_asking(target),
            false => unmet > 0,
        }
    }

    /// Whether a budget of this size is kept from other nodes, until it is given back or its term is over.
    pub(super) const fn holds(&self, budget: u64) -> bool {
        self.is_registered && budget > 0
    }

    /// Whether registered permits cover the use of a lease that the store has ended.
    pub(super) const fn covers_ended_use(&self) -> bool {
        self.is_registered
    }
}
