//! Gzip with several members in a row, as appending tools write it.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// A reader of all members of a source.
pub(crate) struct Gzip<R> {
    /// The current member; `None` behind the last one.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Gzip<R> {
    pub(crate) fn new(source: R) -> Self {
        Self {
            member: Some(GzDecoder::new(source)),
        }
    }
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read = member.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            if let Some(mut source) = self.member.take().map(GzDecoder::into_inner)
                && !is_at_end(&mut source)?
            {
                self.member = Some(GzDecoder::new(source));
            }
        }
        Ok(0)
    }
}

/// Skips zeros between two compressed parts, and tells whether nothing follows. Tapes, disks and a loss of power leave zeros behind
/// a file.
pub(crate) fn is_at_end(source: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = source.fill_buf()?;
        match bytes.iter().take_while(|&&byte| byte == 0).count() {
            0 => return Ok(bytes.is_empty()),
            zeros => source.consume(zeros),
        }
    }
}
