use alloc::string::String;

/// The bytes that every saved state begins with.
pub(super) const MAGIC: [u8; 8] = *b"ringgate";

/// The version of the format. Another version is refused.
pub(super) const VERSION: u32 = 1;

/// The maximum length of the description in bytes. A reader keeps it in memory before its checksum is verified.
pub(super) const MAX_DESCRIPTION: u32 = 1 << 24;

/// Bytes that are read or written at once.
pub(super) const BUFFER: usize = 1 << 16;

/// The origin of a saved state. A restore compares it with the limiter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The algorithm and its quotas, or the rules, as text.
    pub(crate) of: String,
    /// The seeds of the hashes of keys.
    pub(crate) seeds: [u64; 4],
    /// The hash of a fixed value, which differs where the hash function does.
    pub(crate) sample: u64,
}
