//! The sources of lines: files and standard input, plain or compressed.

use alloc::rc::Rc;
use core::cell::Cell;
use std::fs::{File, Metadata};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use crate::failure::Failure;
use crate::input::zstd::Zstd;

/// One input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    File(PathBuf),
    StandardInput,
}

/// Bytes of the read buffer.
const BUFFER: usize = 1 << 18;

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
        let Ok(other) = path.metadata() else {
            return false;
        };
        match self {
            Self::File(own) => {
                let same_path = own.canonicalize().ok().zip(path.canonicalize().ok());
                same_path.is_some_and(|(own, path)| own == path)
                    || own.metadata().is_ok_and(|own| is_same(&own, &other))
            }
            Self::StandardInput => standard_input().is_some_and(|own| is_same(&own, &other)),
        }
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
        let mut reader = BufReader::with_capacity(BUFFER, Counted { reader: raw, read });
        // A pipe may return fewer bytes than the magic number has.
        let mut start = [0; 6];
        let mut length = 0;
        while length < start.len() {
            let read = reader
                .get_mut()
                .read(&mut start[length..])
                .or_else(|error| match error.kind() {
                    io::ErrorKind::Interrupted => Ok(usize::MAX),
                    _ => Err(self.failure(error)),
                })?;
            match read {
                0 => break,
                usize::MAX => {}
                read => length += read,
            }
        }
        let start = &start[..length];
        if let Some((_, name)) = OTHERS.iter().find(|(magic, _)| start.starts_with(magic)) {
            return Err(Failure::argument(
                format!("{}: compression", self.name()),
                name,
                "gzip, zstd, or no compression",
            ));
        }
        let whole = io::Cursor::new(start.to_vec()).chain(reader);
        Ok(if start.starts_with(b"\x1f\x8b") {
            Box::new(MultiGzDecoder::new(whole))
        } else if Zstd::<io::Empty>::begins(start) {
            Box::new(Zstd::new(whole))
        } else {
            Box::new(Plain(whole))
        })
    }
}

/// Whether both are one file.
#[cfg(unix)]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Unknown here; paths are compared.
#[cfg(not(unix))]
fn is_same(_one: &Metadata, _other: &Metadata) -> bool {
    false
}

#[cfg(unix)]
fn standard_input() -> Option<Metadata> {
    use std::os::fd::AsFd;
    let input = io::stdin().as_fd().try_clone_to_owned().ok()?;
    File::from(input).metadata().ok()
}

#[cfg(not(unix))]
fn standard_input() -> Option<Metadata> {
    None
}

/// The bytes that were read ahead, then the rest, without another copy.
struct Plain<R>(io::Chain<io::Cursor<Vec<u8>>, BufReader<R>>);

impl<R: Read> Read for Plain<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (first, rest) = self.0.get_mut();
        match first.read(buffer)? {
            0 if rest.buffer().is_empty() => rest.get_mut().read(buffer),
            0 => rest.read(buffer),
            read => Ok(read),
        }
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
