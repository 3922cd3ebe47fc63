//! Zstandard with several frames in a row, as parallel and appending tools write it.

use core::error::Error;
use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::input::gzip::is_at_end;

/// A reader of all frames of a source.
pub(crate) struct Zstd<R> {
    source: R,
    frame: FrameDecoder,
    /// Whether a frame has begun and its checksum was not compared yet.
    open: bool,
    /// The error at the end of a source that was cut. It is returned behind all whole blocks.
    cut: Option<io::Error>,
}

/// An empty last block and a checksum. The decoder keeps the last blocks of a frame back until the frame ends.
const END: &[u8] = &[1, 0, 0, 0, 0, 0, 0];

impl<R> Zstd<R> {
    /// Whether `start` begins a frame.
    pub(crate) fn begins(start: &[u8]) -> bool {
        start.starts_with(b"\x28\xb5\x2f\xfd") || matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
    }
}

/// The error of a decoder. If the source ended too early, the kind says so.
fn of_decoder(error: FrameDecoderError) -> io::Error {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(error) = cause {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        if kind == Some(io::ErrorKind::UnexpectedEof) {
            return io::Error::new(io::ErrorKind::UnexpectedEof, "unexpected end of file");
        }
        cause = error.source();
    }
    io::Error::other(error)
}

impl<R: BufRead> Zstd<R> {
    pub(crate) fn new(source: R) -> Self {
        Self {
            source,
            frame: FrameDecoder::new(),
            open: false,
            cut: None,
        }
    }

    /// Begins the next frame; false at the end.
    fn begin(&mut self) -> io::Result<bool> {
        loop {
            if is_at_end(&mut self.source)? {
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
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::BadMagicNumber(_))) => {
                    return Err(io::Error::other("no zstd frame where the last one ends"));
                }
                Err(error) => return Err(of_decoder(error)),
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
                let one = BlockDecodingStrategy::UptoBlocks(1);
                if let Err(error) = self.frame.decode_blocks(&mut self.source, one) {
                    let error = of_decoder(error);
                    if error.kind() != io::ErrorKind::UnexpectedEof {
                        return Err(error);
                    }
                    if !self.frame.is_finished() {
                        let one = BlockDecodingStrategy::UptoBlocks(1);
                        self.frame.decode_blocks(END, one).map_err(of_decoder)?;
                    }
                    self.cut = Some(error);
                }
                continue;
            }
            if let Some(error) = self.cut.take() {
                self.open = false;
                return Err(error);
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
