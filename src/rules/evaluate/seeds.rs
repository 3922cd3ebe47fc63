use crate::keyed::SeededState;

/// The hash seeds of a rule set.
#[derive(Clone, Debug)]
pub(crate) struct Seeds {
    /// For tables and lists of keys. A client that knew them could choose colliding keys.
    pub(crate) tables: SeededState,
    /// For [`Rule::enforce_percent`](crate::rules::Rule::enforce_percent): fixed, so that each process enforces a rule
    /// for the same keys.
    pub(crate) percent: SeededState,
}

impl Seeds {
    pub(crate) fn new(seeds: [u64; 4]) -> Self {
        Self {
            tables: SeededState::with_seeds(seeds),
            percent: SeededState::with_seeds([1, 2, 3, 4]),
        }
    }
}
