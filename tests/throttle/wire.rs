//! The inner stream of the tests, which does all that readers and writers may do, and an exact log of moved bytes.

use std::io;

use super::*;
use crate::windows::most_in_a_window;

/// How often, in 256 calls, the stream behaves in each way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Behavior {
    /// Returns `Pending` and wakes at once.
    pub(crate) pending: u8,
    /// Moves only a part.
    pub(crate) short: u8,
    /// Returns an error.
    pub(crate) error: u8,
}

impl Behavior {
    pub(crate) const fn new(pending: u8, short: u8, error: u8) -> Self {
        Self {
            pending,
            short,
            error,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Wire {
    behavior: Behavior,
    vectored: bool,
    random: Random,
    /// Position of the end of file.
    end: u64,
    read: u64,
    pub(crate) written: Arc<Mutex<Vec<u8>>>,
}

impl Wire {
    pub(crate) fn new(behavior: Behavior, seed: u64) -> Self {
        Self {
            behavior,
            vectored: true,
            random: Random::new(seed),
            end: u64::MAX,
            read: 0,
            written: Arc::default(),
        }
    }

    pub(crate) fn plain() -> Self {
        Self::new(Behavior::default(), 1)
    }

    pub(crate) fn ending(self, end: u64) -> Self {
        Self { end, ..self }
    }

    pub(crate) fn not_vectored(self) -> Self {
        Self {
            vectored: false,
            ..self
        }
    }

    /// The byte at a position of the input.
    pub(crate) fn byte(at: u64) -> u8 {
        (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
    }

    fn happens(&mut self, often: u8) -> bool {
        self.random.below(256) < u64::from(often)
    }

    /// Returns how many of `max` bytes are moved by this call.
    fn poll_count(&mut self, context: &Context<'_>, max: usize) -> Poll<io::Result<usize>> {
        if self.happens(self.behavior.pending) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.happens(self.behavior.error) {
            return Poll::Ready(Err(io::Error::other("injected")));
        }
        let short = max > 1 && self.happens(self.behavior.short);
        Poll::Ready(Ok(match short {
            true => 1 + self.random.index(max - 1),
            false => max,
        }))
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let left = usize::try_from(self.end - self.read).unwrap_or(usize::MAX);
        let max = buf.remaining().min(left);
        let Poll::Ready(count) = self.poll_count(context, max)? else {
            return Poll::Pending;
        };
        for at in self.read..self.read + count as u64 {
            buf.put_slice(&[Self::byte(at)]);
        }
        self.read += count as u64;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Poll::Ready(count) = self.poll_count(context, buf.len())? else {
            return Poll::Pending;
        };
        self.written.lock().unwrap().extend_from_slice(&buf[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        assert!(self.vectored, "not vectored");
        let all: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
        self.poll_write(context, &all)
    }

    fn is_write_vectored(&self) -> bool {
        self.vectored
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// An exact log of moved bytes with their times.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    origin: Instant,
    moved: Arc<Mutex<Vec<(Duration, u64)>>>,
}

impl Log {
    pub(crate) fn new() -> Self {
        Self {
            origin: Instant::now(),
            moved: Arc::default(),
        }
    }

    pub(crate) fn note(&self, bytes: usize) {
        self.moved
            .lock()
            .unwrap()
            .push((self.origin.elapsed(), bytes as u64));
    }

    pub(crate) fn sum(&self) -> u64 {
        self.moved.lock().unwrap().iter().map(|(_, bytes)| bytes).sum()
    }

    /// Returns the most bytes moved in any interval of length `window`.
    pub(crate) fn most_in(&self, window: Duration) -> u64 {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap();
        let moved = self.moved.lock().unwrap();
        assert!(moved.is_sorted_by_key(|(at, _)| *at));
        let mut moved: Vec<_> = moved.iter().map(|&(at, bytes)| (nanos(at), bytes)).collect();
        most_in_a_window(&mut moved, nanos(window))
    }
}
