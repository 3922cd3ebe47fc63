//! The algorithms of the block of a rule.

use super::StateAlgorithms;
use super::word_layout::WordLayout;
use crate::algorithm::AnyAlgorithm;
use crate::rules::rule::block::Block;

impl StateAlgorithms {
    /// The algorithms that count violations and block keys.
    pub(crate) fn block(block: &Block) -> Self {
        let violations = AnyAlgorithm::from(block.violations());
        let tiers = alloc::vec![violations.clone()];
        Self::over_words(tiers, violations, WordLayout::Violations)
    }

    /// Whether a retry extends a block.
    pub(crate) fn extends_blocks(&self) -> bool {
        matches!(&self.usage, AnyAlgorithm::Violations(violations) if violations.extends())
    }
}
