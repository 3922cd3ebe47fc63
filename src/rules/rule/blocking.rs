use super::Rule;
use super::block::Block;

impl<R: ?Sized, K> Rule<R, K> {
    /// Blocks a key after it has violated the rule too often. The rule needs a [key](Self::by).
    ///
    /// [`RuleSet::unblock`](crate::RuleSet::unblock) ends a block, and [`RuleSet::blocked`](crate::RuleSet::blocked) counts blocked
    /// keys. A denial's retry time includes the block.
    ///
    /// # Cost
    ///
    /// A decision about a key that is not blocked reads one word more. The violations are kept in a table of their own, for a quarter
    /// of the keys of the rule: up to 11 bytes for each key of the rule, with a filter. If that table is full of blocked keys and of recent
    /// violations, further violations are not counted.
    ///
    /// # Caveats
    ///
    /// Blocks are kept over a reload in which the rule keeps its name and key, and are not saved. In `shared::SharedRules`, a store
    /// counts the violations on all machines, and a blocked key is denied on each of them.
    pub fn block(mut self, block: Block) -> Self {
        self.block = Some(block);
        self
    }
}
