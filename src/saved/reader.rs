use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use std::io::{ErrorKind, Read};

use super::error::RestoreError;
use super::header::{BUFFER, Header, MAGIC, MAX_DESCRIPTION, VERSION};
use crate::limiter::SavedState;

/// Reads a saved state, and verifies its checksums.
pub(crate) struct Reader<R> {
    from: R,
    buffer: Box<[u8]>,
    /// How many bytes of the buffer were taken, and how many it holds.
    taken: usize,
    filled: usize,
    /// How many bytes of the buffer the checksum has included or skipped.
    counted: usize,
    checksum: crc32fast::Hasher,
    /// How many bytes were read in total.
    read: u64,
}

impl<R: Read> Reader<R> {
    /// Reads the header of a saved state.
    pub(crate) fn new(from: R) -> Result<(Self, Header), RestoreError> {
        let mut reader = Self {
            from,
            buffer: alloc::vec![0; BUFFER].into_boxed_slice(),
            taken: 0,
            filled: 0,
            counted: 0,
            checksum: crc32fast::Hasher::new(),
            read: 0,
        };
        let header = reader.take_header()?;
        Ok((reader, header))
    }

    fn take_header(&mut self) -> Result<Header, RestoreError> {
        if self.take()? != MAGIC {
            return Err(RestoreError::Format);
        }
        let version = self.take_u32()?;
        if version != VERSION {
            return Err(RestoreError::Version(version));
        }
        let length = self.take_u32()?;
        if length > MAX_DESCRIPTION {
            return Err(RestoreError::Description(length));
        }
        // The length is not verified yet, so memory grows only with the bytes that the file has.
        let mut of = Vec::new();
        for _ in 0..length {
            of.push(self.take::<1>()?[0]);
        }
        let seeds = self.take_numbers()?;
        let sample = self.take_u64()?;
        self.verify()?;
        Ok(Header {
            of: String::from_utf8_lossy(&of).into_owned(),
            seeds,
            sample,
        })
    }

    /// Verifies the last checksum, and that the file ends with it.
    pub(crate) fn finish(mut self) -> Result<(), RestoreError> {
        self.verify()?;
        match self.fill(1) {
            Ok(()) => Err(RestoreError::Trailing),
            Err(RestoreError::Truncated { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    #[inline]
    pub(crate) fn take_u64(&mut self) -> Result<u64, RestoreError> {
        self.take().map(u64::from_le_bytes)
    }

    pub(crate) fn take_u32(&mut self) -> Result<u32, RestoreError> {
        self.take().map(u32::from_le_bytes)
    }

    pub(crate) fn take_u16(&mut self) -> Result<u16, RestoreError> {
        self.take().map(u16::from_le_bytes)
    }

    /// Takes a key and its record. The record of the catch-all, after the last key, has the key zero.
    #[inline]
    pub(crate) fn take_key(&mut self) -> Result<(u64, SavedState), RestoreError> {
        let [key, spent, idle_after_nanos] = self.take_numbers()?;
        let state = SavedState {
            spent,
            idle_after_nanos,
        };
        Ok((key, state))
    }

    pub(crate) fn take_record(&mut self) -> Result<SavedState, RestoreError> {
        let [spent, idle_after_nanos] = self.take_numbers()?;
        Ok(SavedState {
            spent,
            idle_after_nanos,
        })
    }

    #[inline]
    fn take_numbers<const N: usize>(&mut self) -> Result<[u64; N], RestoreError> {
        if self.filled - self.taken < 8 * N {
            self.fill(8 * N)?;
        }
        let bytes = &self.buffer[self.taken..self.taken + 8 * N];
        self.taken += 8 * N;
        let numbers = bytes.as_chunks().0;
        Ok(core::array::from_fn(|index| u64::from_le_bytes(numbers[index])))
    }

    #[inline]
    fn take<const N: usize>(&mut self) -> Result<[u8; N], RestoreError> {
        if self.filled - self.taken < N {
            self.fill(N)?;
        }
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.buffer[self.taken..self.taken + N]);
        self.taken += N;
        Ok(bytes)
    }

    /// Reads until the buffer holds at least `least` bytes that were not taken.
    #[cold]
    fn fill(&mut self, least: usize) -> Result<(), RestoreError> {
        self.count();
        self.buffer.copy_within(self.taken..self.filled, 0);
        self.filled -= self.taken;
        (self.taken, self.counted) = (0, 0);
        while self.filled < least {
            match self.from.read(&mut self.buffer[self.filled..]) {
                Ok(0) => return Err(RestoreError::Truncated { bytes: self.read }),
                Ok(more) => {
                    self.filled += more;
                    self.read += more as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(RestoreError::Read(error)),
            }
        }
        Ok(())
    }

    /// Adds the bytes that were taken to the checksum.
    fn count(&mut self) {
        self.checksum.update(&self.buffer[self.counted..self.taken]);
        self.counted = self.taken;
    }

    /// Takes a checksum, and compares it with that of all bytes before, except checksums.
    fn verify(&mut self) -> Result<(), RestoreError> {
        self.count();
        let expected = self.checksum.clone().finalize();
        let found = self.take_u32()?;
        // A checksum is not part of later checksums.
        self.counted = self.taken;
        if found == expected {
            Ok(())
        } else {
            Err(RestoreError::Checksum { found, expected })
        }
    }
}
