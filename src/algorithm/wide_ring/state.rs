use crate::algorithm::entered_ring::State;
use crate::algorithm::entered_ring::word::TotalWord;
use crate::sync::Words;

/// The transitions of slots and bases.
impl<W: Words> State<W> {
    /// Replaces a slot or a base by `total`, unless its tick is that of `total` or newer.
    pub(super) fn publish_total(self, index: usize, total: TotalWord) {
        self.change(index, |raw| {
            let seen = self.layout.decode(raw);
            // Claim: counter_ring 2, a late helper leaves a newer word unchanged.
            (seen.tick() < total.tick()).then_some(total.raw())
        });
    }

    /// Exchanges a slot or a base `{ tick, x }` for `{ tick, x + permits }`, unless its tick is not `tick`. Within a tick, a word
    /// is only raised, once by each refund.
    pub(super) fn raise(self, index: usize, tick: u64, permits: u64) {
        self.change(index, |raw| {
            let seen = self.layout.decode(raw);
            (seen.tick() == tick).then(|| seen.plus(permits).raw())
        });
    }
}
