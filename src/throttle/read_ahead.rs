use alloc::vec::Vec;

/// Bytes that were read and are not delivered yet, because the limiters had no capacity.
#[derive(Debug, Default)]
pub(super) struct ReadAhead {
    bytes: Vec<u8>,
    delivered: usize,
}

impl ReadAhead {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.delivered..]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// Stores bytes. It must be empty.
    pub(super) fn store(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Removes the first `count` bytes, and frees the memory with the last.
    pub(super) fn consume(&mut self, count: usize) {
        self.delivered += count;
        if self.is_empty() {
            *self = Self::default();
        }
    }
}
