use crate::algorithm::{AnyAlgorithm, Reclaim};
use crate::decision::Peek;

/// The limit of one request: that of its tier, or a lower one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestLimit {
    /// The index of the algorithm: 0 is the rule's own, n is its n-th tier.
    pub(crate) tier: usize,
    /// The limit that the request has instead of a higher one.
    pub(crate) at_most: u64,
}

impl RequestLimit {
    /// The limit of the rule.
    pub(crate) const OF_RULE: Self = Self {
        tier: 0,
        at_most: Self::NOT_LOWERED,
    };

    /// The value of `at_most` that lowers no limit.
    pub(crate) const NOT_LOWERED: u64 = u64::MAX;

    #[inline(always)]
    pub(crate) const fn is_lowered(self) -> bool {
        self.at_most != Self::NOT_LOWERED
    }

    /// The limit in permits of a request whose tier has the limit `of_tier`.
    pub(crate) fn permits(self, of_tier: u64) -> u64 {
        of_tier.min(self.at_most)
    }
}

/// Calls `decide` with the algorithm lowered to `at_most`.
///
/// It is never inlined, so that a request with the limit of its tier does not execute longer code.
#[inline(never)]
pub(super) fn with_lowered<T>(
    algorithm: &AnyAlgorithm,
    at_most: u64,
    decide: impl FnOnce(&AnyAlgorithm) -> T,
) -> T {
    decide(&lowered(algorithm, at_most))
}

/// The algorithm with the limit `at_most`, or with its own limit if that is lower.
pub(super) fn lowered(algorithm: &AnyAlgorithm, at_most: u64) -> AnyAlgorithm {
    // A limit of zero denies before the algorithm decides.
    let lowered = algorithm.with_limit(at_most.max(1));
    lowered.unwrap_or_else(|_| algorithm.clone())
}

/// A view of one state, with the limit of one request.
pub(crate) struct StatePeek<'a> {
    peek: Peek<'a, AnyAlgorithm>,
    /// The algorithm that replaces the one of `peek`.
    lowered: Option<AnyAlgorithm>,
}

impl<'a> StatePeek<'a> {
    pub(super) const fn new(peek: Peek<'a, AnyAlgorithm>, lowered: Option<AnyAlgorithm>) -> Self {
        Self { peek, lowered }
    }

    pub(crate) fn get(&self) -> Peek<'_, AnyAlgorithm> {
        let algorithm = self.lowered.as_ref().unwrap_or_else(|| self.peek.algorithm());
        self.peek.with_algorithm(algorithm)
    }
}
