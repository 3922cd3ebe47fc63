//! Requests put aside, in case their order turns out not to be that of time.

use std::io::{self, BufReader, BufWriter, Read, Seek, Write};

use tempfile::SpooledTempFile;

use crate::failure::Failure;
use crate::requests::Request;

/// A copy of the requests of an input that cannot be read twice: 12 bytes each, in an unnamed temporary file
/// once they are many.
#[derive(Debug)]
pub(crate) struct Spool {
    file: BufWriter<SpooledTempFile>,
    requests: usize,
}

/// Bytes of one request: its second, its key.
const RECORD: usize = 8 + 4;

/// Bytes that are kept in memory before there is a file.
const IN_MEMORY: usize = 1 << 20;

const BUFFER: usize = 1 << 16;

impl Spool {
    pub(crate) fn new() -> Self {
        Self {
            file: BufWriter::with_capacity(BUFFER, SpooledTempFile::new(IN_MEMORY)),
            requests: 0,
        }
    }

    /// Puts a request aside.
    pub(crate) fn write(&mut self, request: Request) -> Result<(), Failure> {
        let mut record = [0; RECORD];
        let (second, key) = record.split_at_mut(8);
        second.copy_from_slice(&request.second.to_le_bytes());
        key.copy_from_slice(&request.key.to_le_bytes());
        self.requests += 1;
        self.file.write_all(&record).map_err(failure)
    }

    /// All requests, in the order in which they were written.
    pub(crate) fn into_requests(self) -> Result<Vec<Request>, Failure> {
        let mut file = self
            .file
            .into_inner()
            .map_err(|error| failure(error.into_error()))?;
        file.rewind().map_err(failure)?;
        let mut file = BufReader::with_capacity(BUFFER, file);
        let mut requests = Vec::with_capacity(self.requests);
        for _ in 0..self.requests {
            let (mut second, mut key) = ([0; 8], [0; 4]);
            file.read_exact(&mut second).map_err(failure)?;
            file.read_exact(&mut key).map_err(failure)?;
            requests.push(Request {
                second: i64::from_le_bytes(second),
                key: u32::from_le_bytes(key),
            });
        }
        Ok(requests)
    }
}

fn failure(error: io::Error) -> Failure {
    Failure::io("the temporary file for sorting cannot be used", error)
}

#[cfg(test)]
mod tests {
    use super::{IN_MEMORY, RECORD, Spool};
    use crate::failure::Failure;
    use crate::requests::Request;

    #[test]
    fn what_is_put_aside_comes_back() -> Result<(), Failure> {
        for count in [0, 1, 2 * IN_MEMORY / RECORD] {
            let expected: Vec<Request> = (0..count)
                .map(|number| {
                    let key = u32::try_from(number).unwrap_or(u32::MAX);
                    Request {
                        second: -1 - (i64::from(key) << 33),
                        key: key.reverse_bits(),
                    }
                })
                .collect();
            let mut spool = Spool::new();
            expected.iter().try_for_each(|&request| spool.write(request))?;
            assert_eq!(spool.file.get_ref().is_rolled(), count > 1, "a file for many");
            assert!(spool.into_requests()? == expected);
        }
        Ok(())
    }
}
