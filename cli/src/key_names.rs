//! The names of keys by their hashes, in a temporary file, so that memory does not grow with their number.

use std::collections::{HashMap, HashSet};
use std::io::{BufReader, BufWriter, ErrorKind, Read, Seek, Write};

use tempfile::SpooledTempFile;

use crate::failure::Failure;

/// The names of all keys.
#[derive(Debug)]
pub(crate) struct KeyNames {
    /// Hashes that were written recently, so that few names are written twice.
    seen: HashSet<u64>,
    /// The number of written names; with very many keys some are written more than once.
    new: u64,
    file: BufWriter<SpooledTempFile>,
}

/// Hashes in memory, of 9 bytes each.
const REMEMBERED: usize = 1 << 20;

/// Bytes of names in memory before a file is created.
const IN_MEMORY: usize = 1 << 20;

impl KeyNames {
    pub(crate) fn new() -> Self {
        Self {
            seen: HashSet::new(),
            new: 0,
            file: BufWriter::with_capacity(1 << 16, SpooledTempFile::new(IN_MEMORY)),
        }
    }

    /// Whether the name of this key was written recently.
    #[inline]
    pub(crate) fn is_known(&self, hash: u64) -> bool {
        self.seen.contains(&hash)
    }

    /// Adds the name of a key.
    pub(crate) fn add(&mut self, hash: u64, name: &str) -> Result<(), Failure> {
        if self.seen.len() >= REMEMBERED {
            self.seen.clear();
        }
        self.seen.insert(hash);
        self.new += 1;
        // Names are much shorter.
        let length = u16::try_from(name.len()).unwrap_or(u16::MAX);
        let name = &name.as_bytes()[..usize::from(length)];
        let parts = [&hash.to_le_bytes()[..], &length.to_le_bytes(), name];
        parts
            .iter()
            .try_for_each(|part| self.file.write_all(part))
            .map_err(Failure::temporary)
    }

    /// An upper bound of the number of keys; exact up to a million.
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
    use super::KeyNames;
    use crate::failure::Failure;

    #[test]
    fn names_are_found_again() -> Result<(), Failure> {
        let mut names = KeyNames::new();
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
