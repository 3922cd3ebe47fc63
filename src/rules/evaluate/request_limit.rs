use crate::algorithm::{AnyAlgorithm, Lowered, Reclaim};
use crate::debug::debug_fields;
use crate::decision::Peek;

/// The limit of one request: that of its tier, or a lower one. It is one word, so that an extraction stays small.
///
/// | bits, from the top | field | meaning |
/// |---|---|---|
/// | 40 | `lowered` | the limit that the request has instead of a higher one, plus one; 0 if there is none |
/// | 24 | `tier` | the index of the algorithm: 0 is the rule's own, n is its n-th tier |
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestLimit(u64);

impl RequestLimit {
    pub(crate) const OF_RULE: Self = Self::of_tier(0);

    /// The maximum number of tiers.
    pub(crate) const MAX_TIERS: usize = (1 << Self::TIER_BITS) - 1;

    const TIER_BITS: u32 = 24;

    /// The limit of the tier with this number, at most [`MAX_TIERS`](Self::MAX_TIERS).
    #[inline(always)]
    pub(crate) const fn of_tier(tier: usize) -> Self {
        Self(tier as u64)
    }

    /// The limit `at_most`, which is below the limit of the tier.
    pub(crate) const fn lowered_to(self, at_most: u64) -> Self {
        Self((at_most + 1) << Self::TIER_BITS | self.tier() as u64)
    }

    #[inline(always)]
    pub(crate) const fn tier(self) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "24 bits, on targets of at least 32"
        )]
        let tier = (self.0 & Self::MAX_TIERS as u64) as usize;
        tier
    }

    /// The limit that replaces that of the tier.
    #[inline(always)]
    pub(crate) const fn lowered(self) -> Option<u64> {
        (self.0 >> Self::TIER_BITS).checked_sub(1)
    }

    /// The limit in permits of a request whose tier has the limit `of_tier`.
    pub(crate) fn permits(self, of_tier: u64) -> u64 {
        self.lowered().map_or(of_tier, |lowered| lowered.min(of_tier))
    }
}

debug_fields!(RequestLimit { tier, lowered });

/// The algorithm with the limit `at_most`, or with its own limit if that is lower.
///
/// It is never inlined, so that a request with the limit of its tier does not execute longer code.
#[inline(never)]
pub(super) fn lowered(algorithm: &AnyAlgorithm, at_most: u64) -> AnyAlgorithm {
    let limit = Lowered::at_most(algorithm, at_most).limit();
    algorithm.with_limit(limit).unwrap_or_else(|_| algorithm.clone())
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
