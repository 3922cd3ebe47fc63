//! A store of the tests without slots, blocks and leases.

use ringgate::shared::{CounterStore, MemoryStore};

/// A store that keeps counters, and nothing else.
#[derive(Debug, Default)]
pub(crate) struct Plain(pub(crate) MemoryStore);

impl CounterStore for Plain {
    forward!(0: decide peek charge refund reset);
    forward!(keeps);
}
