//! Zstandard with several frames in a row, as parallel and appending tools write it.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// A reader of all frames of a source.
pub(crate) struct Zstd<R> {
    source: R,
    frame: FrameDecoder,
    /// Whether a frame has begun and its checksum was not compared yet.
    open: bool,
}

impl<R> Zstd<R> {
    /// Whether `start` begins a frame.
    pub(crate) fn begins(start: &[u8]) -> bool {
        start.starts_with(b"\x28\xb5\x2f\xfd") || matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
    }
}

impl<R: BufRead> Zstd<R> {
    pub(crate) fn new(source: R) -> Self {
        Self {
            source,
            frame: FrameDecoder::new(),
            open: false,
        }
    }

    /// Begins the next frame; false at the end.
    fn begin(&mut self) -> io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.frame.reset(&mut self.source) {
                Ok(()) => {
                    self.open = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skipped = io::copy(&mut (&mut self.source).take(u64::from(length)), &mut io::sink())?;
                    if skipped < u64::from(length) {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.open && self.frame.can_collect() > 0 {
                return self.frame.read(buffer);
            }
            if self.open && !self.frame.is_finished() {
                self.frame
                    .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(io::Error::other)?;
                continue;
            }
            if self.open {
                self.open = false;
                let (said, seen) = (
                    self.frame.get_checksum_from_data(),
                    self.frame.get_calculated_checksum(),
                );
                if said.is_some() && seen.is_some() && said != seen {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "a zstd frame's checksum is wrong",
                    ));
                }
            }
            if buffer.is_empty() || !self.begin()? {
                return Ok(0);
            }
        }
    }
}
