use alloc::vec::Vec;

/// Bytes that were read and are not delivered yet, for want of room.
#[derive(Debug, Default)]
pub(super) struct Stash {
    bytes: Vec<u8>,
    /// How many of them were delivered.
    delivered: usize,
}

impl Stash {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.delivered..]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// Adds some; only when there are none.
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Forgets the first `count`; the memory goes with the last.
    pub(super) fn consume(&mut self, count: usize) {
        self.delivered += count;
        if self.is_empty() {
            *self = Self::default();
        }
    }
}
