//! The names of keys, beside their hashes: in a temporary file, so that memory does not grow with their number.

use core::hash::{BuildHasherDefault, Hasher};
use std::collections::{HashMap, HashSet};
use std::io::{BufReader, BufWriter, ErrorKind, Read, Seek, Write};

use tempfile::SpooledTempFile;

use crate::failure::Failure;

/// Names of keys that were met.
#[derive(Debug)]
pub(crate) struct Names {
    /// Hashes that were written lately, so that few are written twice.
    seen: HashSet<u64, BuildHasherDefault<Hashed>>,
    /// How many were new, some of them more than once when there are very many.
    new: u64,
    file: BufWriter<SpooledTempFile>,
}

/// Hashes are as good as new ones of them.
#[derive(Clone, Copy, Debug, Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Not for hashes, which come as a number.
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        // The low bits say the place in the set: all bits are mixed into them, whatever the hash is. (The odd number is
        // of the golden ratio's bits.)
        self.0 = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

/// Hashes that are remembered: 9 bytes each.
const REMEMBERED: usize = 1 << 20;

/// Bytes of names that are kept in memory before there is a file.
const IN_MEMORY: usize = 1 << 20;

impl Names {
    pub(crate) fn new() -> Self {
        Self {
            seen: HashSet::default(),
            new: 0,
            file: BufWriter::with_capacity(1 << 16, SpooledTempFile::new(IN_MEMORY)),
        }
    }

    /// Whether a key was met before, as far as that is remembered.
    #[inline]
    pub(crate) fn is_known(&self, hash: u64) -> bool {
        self.seen.contains(&hash)
    }

    /// Takes the name of a key.
    pub(crate) fn add(&mut self, hash: u64, name: &str) -> Result<(), Failure> {
        if self.seen.len() >= REMEMBERED {
            self.seen.clear();
        }
        self.seen.insert(hash);
        self.new += 1;
        // Names are cut far below this.
        let length = u16::try_from(name.len()).unwrap_or(u16::MAX);
        let name = &name.as_bytes()[..usize::from(length)];
        let parts = [&hash.to_le_bytes()[..], &length.to_le_bytes(), name];
        parts
            .iter()
            .try_for_each(|part| self.file.write_all(part))
            .map_err(Failure::temporary)
    }

    /// How many keys there are: exact up to a million, and no less than there are beyond.
    pub(crate) const fn at_most(&self) -> u64 {
        self.new
    }

    /// The names of these keys.
    pub(crate) fn find(&mut self, hashes: &HashSet<u64>) -> Result<HashMap<u64, String>, Failure> {
        self.file.flush().map_err(Failure::temporary)?;
        let file = self.file.get_mut();
        file.rewind().map_err(Failure::temporary)?;
        let mut found = HashMap::new();
        let mut reader = BufReader::with_capacity(1 << 16, file);
        let mut name = Vec::new();
        loop {
            let (mut hash, mut length) = ([0; 8], [0; 2]);
            match reader.read_exact(&mut hash) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(found),
                Err(error) => return Err(Failure::temporary(error)),
            }
            reader.read_exact(&mut length).map_err(Failure::temporary)?;
            name.resize(usize::from(u16::from_le_bytes(length)), 0);
            reader.read_exact(&mut name).map_err(Failure::temporary)?;
            let hash = u64::from_le_bytes(hash);
            if hashes.contains(&hash) && !found.contains_key(&hash) {
                found.insert(hash, String::from_utf8_lossy(&name).into_owned());
            }
            if found.len() == hashes.len() {
                return Ok(found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Names;
    use crate::failure::Failure;

    #[test]
    fn names_are_found_again() -> Result<(), Failure> {
        let mut names = Names::new();
        for number in 0..200_000_u64 {
            if !names.is_known(number % 150_000) {
                names.add(number % 150_000, &format!("name {}", number % 150_000))?;
            }
        }
        assert_eq!(names.at_most(), 150_000);
        assert!(names.file.get_ref().is_rolled(), "a file for many");
        let found = names.find(&[0, 7, 149_999, 150_000].into())?;
        assert_eq!(found.len(), 3);
        assert_eq!(found[&149_999], "name 149999");
        Ok(())
    }
}
