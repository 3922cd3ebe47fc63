use alloc::vec::Vec;
use std::io::{self, Write};

use super::error::RestoreError;
use super::header::{BUFFER, Header, MAGIC, MAX_DESCRIPTION, VERSION};
use crate::limiter::SavedState;

/// Writes a saved state, and its checksums.
pub(crate) struct SavedWriter<W> {
    to: W,
    /// The bytes that are not written yet.
    buffer: Vec<u8>,
    checksum: crc32fast::Hasher,
}

impl<W: Write> SavedWriter<W> {
    /// Writes the header of a saved state.
    pub(crate) fn new(to: W, header: &Header) -> io::Result<Self> {
        let mut writer = Self {
            to,
            buffer: Vec::with_capacity(BUFFER),
            checksum: crc32fast::Hasher::new(),
        };
        let length = u32::try_from(header.of.len()).unwrap_or(u32::MAX);
        if length > MAX_DESCRIPTION {
            return Err(io::Error::other(RestoreError::Description(length)));
        }
        writer.put(&MAGIC)?;
        writer.put(&VERSION.to_le_bytes())?;
        writer.put(&length.to_le_bytes())?;
        writer.put(header.of.as_bytes())?;
        writer.put_numbers(header.seeds)?;
        writer.put_numbers([header.sample])?;
        writer.put_checksum()?;
        Ok(writer)
    }

    /// Writes the last checksum.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.put_checksum()?;
        self.to.flush()
    }

    #[inline]
    pub(crate) fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.len() + bytes.len() > BUFFER {
            self.write()?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes a key and its record. The record of the catch-all, after the last key, has the key zero.
    #[inline]
    pub(crate) fn put_key(&mut self, key: u64, state: SavedState) -> io::Result<()> {
        self.put_numbers([key, state.spent, state.idle_after_nanos])
    }

    pub(crate) fn put_record(&mut self, state: SavedState) -> io::Result<()> {
        self.put_numbers([state.spent, state.idle_after_nanos])
    }

    #[inline]
    fn put_numbers<const N: usize>(&mut self, numbers: [u64; N]) -> io::Result<()> {
        self.put(numbers.map(u64::to_le_bytes).as_flattened())
    }

    fn write(&mut self) -> io::Result<()> {
        self.checksum.update(&self.buffer);
        self.to.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// Writes the checksum of all bytes before it, except earlier checksums.
    fn put_checksum(&mut self) -> io::Result<()> {
        self.write()?;
        self.to.write_all(&self.checksum.clone().finalize().to_le_bytes())
    }
}
