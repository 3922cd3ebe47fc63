//! What is throttled in tests: it has as many bytes as are asked for, and does what inner readers and writers may do.

use alloc::sync::Arc;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::io::{self, IoSlice};
use std::sync::Mutex;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::windows::most_in_a_window;

/// What it does, and how often, in 256.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Habits {
    /// Has nothing yet, and wakes at once.
    pub(crate) pending: u8,
    /// Moves a part.
    pub(crate) short: u8,
    /// Fails.
    pub(crate) error: u8,
}

#[derive(Debug)]
pub(crate) struct Wire {
    habits: Habits,
    vectored: bool,
    random: u64,
    /// After so many bytes there are no more to read.
    end: u64,
    read: u64,
    pub(crate) written: Arc<Mutex<Vec<u8>>>,
}

impl Wire {
    pub(crate) fn new(habits: Habits, seed: u64) -> Self {
        Self {
            habits,
            vectored: true,
            random: seed | 1,
            end: u64::MAX,
            read: 0,
            written: Arc::default(),
        }
    }

    pub(crate) fn plain() -> Self {
        Self::new(Habits::default(), 1)
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

    /// The byte at this place of what is read.
    pub(crate) fn byte(at: u64) -> u8 {
        (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
    }

    fn next(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    fn happens(&mut self, often: u8) -> bool {
        (self.next() >> 20) as u8 <= often && often > 0
    }

    /// How many of `max_request` bytes are moved this time.
    fn poll_count(&mut self, context: &Context<'_>, most: usize) -> Poll<io::Result<usize>> {
        if self.happens(self.habits.pending) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.happens(self.habits.error) {
            return Poll::Ready(Err(io::Error::other("as tests go")));
        }
        let short = most > 1 && self.happens(self.habits.short);
        Poll::Ready(Ok(match short {
            true => 1 + (self.next() as usize >> 8) % (most - 1),
            false => most,
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
        let most = buf.remaining().min(left);
        let Poll::Ready(count) = self.poll_count(context, most)? else {
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
        assert!(self.vectored, "it does not say that it can");
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

/// What was moved, and when: the exact log.
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

    /// The most bytes moved in any interval of so long.
    pub(crate) fn most_in(&self, window: Duration) -> u64 {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap();
        let moved = self.moved.lock().unwrap();
        assert!(moved.is_sorted_by_key(|(at, _)| *at));
        let mut moved: Vec<_> = moved.iter().map(|&(at, bytes)| (nanos(at), bytes)).collect();
        most_in_a_window(&mut moved, nanos(window))
    }
}
