use crate::keyed::SeededState;
use crate::rules::key::Key;

/// Hashes of the keys of one request, so that rules with the same key extract it once.
#[derive(Debug)]
pub(crate) struct KeyHashes {
    hashes: [(usize, Option<u64>); KEPT],
    len: usize,
}

/// The number of different keys that are kept. Further keys are hashed by each rule.
const KEPT: usize = 4;

impl KeyHashes {
    #[inline]
    pub(crate) const fn new() -> Self {
        Self {
            hashes: [(0, None); KEPT],
            len: 0,
        }
    }

    /// Hashes the key of the request. `None` if it has no key. All calls must have the same request and seeds.
    #[inline]
    pub(crate) fn hash<R: ?Sized>(&mut self, key: &Key<R>, request: &R, seeds: &SeededState) -> Option<u64> {
        let id = key.id();
        // The minimum removes a bounds check.
        for &(other, hash) in &self.hashes[..self.len.min(KEPT)] {
            if other == id {
                return hash;
            }
        }
        let hash = key.hash(request, seeds);
        if let Some(vacant) = self.hashes.get_mut(self.len) {
            *vacant = (id, hash);
            self.len += 1;
        }
        hash
    }
}

/// The hash seeds of a rule set.
#[derive(Clone, Debug)]
pub(crate) struct Seeds {
    /// For tables and lists of keys. A client that knew them could choose colliding keys.
    pub(crate) tables: SeededState,
    /// For [`Rule::enforce_percent`](crate::rules::Rule::enforce_percent). These seeds are fixed, so that each process enforces a
    /// rule for the same keys.
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
