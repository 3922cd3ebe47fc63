//! The sources of lines: files and standard input, plain or compressed.

use alloc::rc::Rc;
use core::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use same_file::Handle;

use crate::failure::Failure;
use crate::input::gzip::Gzip;
use crate::input::zstd::Zstd;

/// One input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    File(PathBuf),
    StandardInput,
}

/// Bytes of the read buffer.
const BUFFER: usize = 1 << 18;

/// The bytes that tell a compression.
const MAGIC: u64 = 6;

/// The first bytes of unsupported compressions.
const OTHERS: [(&[u8], &str); 4] = [
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\0", "xz"),
    (b"PK\x03\x04", "zip"),
    (b"\x04\x22\x4d\x18", "lz4"),
];

/// The content that begins with these bytes after decompression, if it is not text in UTF-8.
fn foreign(start: &[u8]) -> Option<&'static str> {
    match start {
        [0x1f, 0x8b, ..] => Some("gzip within another compression"),
        _ if Zstd::<io::Empty>::begins(start) => Some("zstd within another compression"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("text in UTF-16"),
        _ if start.get(257..262) == Some(b"ustar") => Some("an archive of tar"),
        _ => None,
    }
}

impl Source {
    /// Refuses an input whose content is not text.
    ///
    /// # Errors
    ///
    /// When the content is compressed twice, an archive, or text in UTF-16.
    pub(crate) fn check(&self, start: &[u8]) -> Result<(), Failure> {
        match foreign(start) {
            None => Ok(()),
            Some(content) => Err(Failure::argument(
                format!("content of {}", self.name()),
                content,
                "lines of text in UTF-8, as gzip, zstd or not compressed",
            )),
        }
    }

    /// The source of a path; `-` is standard input.
    pub(crate) fn of(path: &Path) -> Self {
        if path == Path::new("-") {
            Self::StandardInput
        } else {
            Self::File(path.to_path_buf())
        }
    }

    /// The name for reports.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::StandardInput => "standard input".into(),
        }
    }

    /// Whether the source is the file at a path, also by a link or as a redirected standard input.
    pub(crate) fn is_file(&self, path: &Path) -> bool {
        let is_same_path = |own: &Path| {
            own.canonicalize()
                .ok()
                .is_some_and(|own| path.canonicalize().ok() == Some(own))
        };
        // Opening a pipe would wait for its writer.
        let handle = |path: &Path| path.is_file().then(|| Handle::from_path(path).ok()).flatten();
        let own = match self {
            Self::File(own) if is_same_path(own) => return true,
            Self::File(own) => handle(own),
            Self::StandardInput => Handle::stdin().ok(),
        };
        own.is_some() && own == handle(path)
    }

    /// Whether both are one input.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self == other
            || match (self, other) {
                (one, Self::File(path)) | (Self::File(path), one) => one.is_file(path),
                (Self::StandardInput, Self::StandardInput) => true,
            }
    }

    /// The size of the file in bytes; `None` if unknown.
    pub(crate) fn size(&self) -> Option<u64> {
        match self {
            Self::File(path) => path.metadata().ok().filter(|of| of.is_file()).map(|of| of.len()),
            Self::StandardInput => None,
        }
    }

    pub(crate) fn failure(&self, error: io::Error) -> Failure {
        Failure::io(format!("cannot read {}", self.name()), &error)
    }

    /// Opens the source and decompresses it. `read` counts the bytes before decompression.
    ///
    /// # Errors
    ///
    /// When the source cannot be read, or has an unsupported compression.
    pub(crate) fn open(&self, read: Rc<Cell<u64>>) -> Result<Box<dyn Read>, Failure> {
        let raw: Box<dyn Read> = match self {
            Self::File(path) => Box::new(File::open(path).map_err(|error| self.failure(error))?),
            Self::StandardInput => Box::new(io::stdin().lock()),
        };
        let mut raw = Counted { reader: raw, read };
        // A pipe may return fewer bytes at once than the magic number has.
        let mut start = Vec::new();
        let ahead = raw.by_ref().take(MAGIC).read_to_end(&mut start);
        ahead.map_err(|error| self.failure(error))?;
        if let Some((_, name)) = OTHERS.iter().find(|(magic, _)| start.starts_with(magic)) {
            return Err(Failure::argument(
                format!("{}: compression", self.name()),
                name,
                "gzip, zstd, or no compression",
            ));
        }
        let (is_gzip, is_zstd) = (start.starts_with(b"\x1f\x8b"), Zstd::<io::Empty>::begins(&start));
        // A read of this length or more bypasses the buffer, so plain text is not copied.
        let whole = io::Cursor::new(start).chain(BufReader::with_capacity(BUFFER, raw));
        Ok(if is_gzip {
            Box::new(Gzip::new(whole))
        } else if is_zstd {
            Box::new(Zstd::new(whole))
        } else {
            Box::new(whole)
        })
    }
}

/// A reader that counts its bytes.
struct Counted<R> {
    reader: R,
    read: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
}
