use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io::{self, IoSlice};

use smallvec::SmallVec;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::direction::Direction;
use super::local_limit::ByteBudget;
use super::read_ahead::ReadAhead;

/// A reader, writer or both that moves at most a limited number of bytes per window in each direction.
///
/// Each direction has a *local* limiter that only this connection uses, a *shared* limiter or shared rules, or both. Create it
/// by [`Throttled::builder`]. It implements `AsyncRead` and `AsyncWrite` if the inner value does. Flushing and shutting down are
/// not limited. For halves, use `tokio::io::split`, or wrap the halves of a connection.
///
/// # Guarantees
///
/// - The [`bound`](crate::RateLimiter::bound) of a local limiter holds for its direction of the connection. The bound of a
///   shared limiter or of shared rules holds for all connections together. It is measured by the readings of the decisions, and
///   a byte is moved in the poll that charges it.
/// - A byte is charged once, and only if it is moved. The exception is a writer with a shared limiter: it is charged for a turn
///   before it knows how much is written, and refunds the rest at once. If the refund is not exact, the rest stays charged, and
///   [`forfeited`](Self::forfeited) counts it. The refund of a sliding log is never exact. That of a counter ring is exact unless
///   a new cell was entered since, and that of GCRA unless another request was admitted since.
/// - Connections that share a limiter get equal parts as long as each has enough to move, because
///   [`Fair`](crate::Fair) serves them in order of arrival and turns are of equal length
///   ([`quantum`](crate::throttle::ThrottledBuilder::quantum)).
/// - Bytes are read ahead only while a shared limiter has no capacity for them, at most one turn. They are kept in
///   memory, and charged when they are delivered.
///
/// # Cost
///
/// With a local limiter, a read or write costs one reading of the clock, and a check and a decision without a locked instruction
/// ([`check_at_mut`](crate::RateLimiter::check_at_mut)). If it waits, it allocates a timer. The limiter is in a heap block:
/// 16 bytes for an [`InlineLimiter`](crate::InlineLimiter), which shares its policy with other connections, and 192 bytes or more
/// for a [`RateLimiter`](crate::RateLimiter).
///
/// With a shared limiter, a read or write costs a wait of [`Fair`](crate::Fair) and three uncontended locks. If it is queued, it
/// also spawns a task that lives for 10 ms, and copies the bytes that were read ahead. For a shared limiter, a
/// connection uses about 500 bytes.
///
/// Uninitialized memory of a read buffer is zeroed first, up to one turn, unless a local limiter has capacity for the whole
/// buffer.
///
/// # Which limiter
///
/// A permit is a byte, so 10 MB/s is the quota `"10_000_000/s"`.
///
/// | for | choose | most in any second, at 10 MB/s |
/// |---|---|---|
/// | a steady rate | [`Gcra::token_bucket`](crate::Gcra::token_bucket) with a burst of 10 ms, 100 kB | 10.1 MB |
/// | a steady rate of one connection that also has a shared limiter | a burst of 100 ms, 1 MB | 11 MB |
/// | a hard limit | [`CounterRing`](crate::CounterRing), strict: about 98 % of the rate | 10 MB |
/// | a hard limit with nearly all of the rate | [`even`](crate::algorithm::CounterRingBuilder::even) with 100 cells | 10.1 MB |
/// | a volume, such as a gigabyte per day | [`CounterRing`](crate::CounterRing) | the volume, in any day |
///
/// A shorter burst loses throughput: tokio's timers have a resolution of one millisecond, in which a full bucket overflows. A
/// local limiter of a connection that also has a shared limiter needs a longer burst, for the bytes that it accrues while the
/// connection is queued for the shared limiter.
///
/// A counter ring over a second counts up to 16 MB with the default of 60 cells, and 268 MB with five cells. For faster
/// connections, up to 400 Gbit/s, count in [units](crate::algorithm::InUnits). A sliding log uses eight bytes of memory for each
/// byte of its limit.
///
/// # Cancel safety
///
/// Dropping a future that reads or writes loses and charges nothing, because all state is in this value. The position in the
/// queue is kept until the turn. If the value is not polled within 10 ms then, the next waiter has its turn. For this, it must be
/// polled within a tokio runtime.
///
/// # Errors
///
/// Errors of the inner value are returned unchanged. Two further errors have a [`WaitError`](crate::wait::WaitError) as their
/// source. They lose and charge nothing:
///
/// - [`ResourceBusy`](io::ErrorKind::ResourceBusy): the queue of a shared limiter is full.
/// - [`QuotaExceeded`](io::ErrorKind::QuotaExceeded): a request for one byte is never admitted.
///
/// # Panics
///
/// A wait panics outside of a tokio runtime with a time driver, as [`tokio::time::sleep`] does.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use ringgate::throttle::Throttled;
/// use ringgate::{Fair, Gcra, Quota, RateLimiter};
/// use tokio::io::AsyncWriteExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn core::error::Error>> {
/// // 10 MB/s for all connections together, in bursts of 10 ms.
/// let all = Gcra::token_bucket(Quota::per_second(10_000_000)?, 100_000)?;
/// let all = Arc::new(Fair::new(RateLimiter::new(all)));
///
/// // 1 MB/s for writes of this connection.
/// let each = Gcra::token_bucket(Quota::per_second(1_000_000)?, 100_000)?;
/// let (client, _server) = tokio::io::duplex(64 * 1024);
/// let mut client = Throttled::builder(client)
///     .write(RateLimiter::new(each))
///     .read_shared(Arc::clone(&all))
///     .write_shared(all)
///     .build()?;
/// client.write_all(b"hello").await?;
/// # Ok(())
/// # }
/// ```
pub struct Throttled<T> {
    inner: T,
    read: Direction,
    write: Direction,
    read_ahead: ReadAhead,
}

impl<T> Throttled<T> {
    pub(super) fn new(inner: T, read: Direction, write: Direction) -> Self {
        Self {
            inner,
            read,
            write,
            read_ahead: ReadAhead::default(),
        }
    }

    /// Returns the inner reader or writer.
    #[must_use]
    pub const fn get_ref(&self) -> &T {
        &self.inner
    }

    /// Returns the inner reader or writer mutably.
    ///
    /// Bytes that are moved through it are neither limited nor charged. Bytes that are read from it overtake those in
    /// the [`buffer`](Self::buffer).
    pub const fn get_mut(&mut self) -> &mut T {
        &mut self.inner
    }

    /// Removes the limits and returns the inner reader or writer. Bytes in the [`buffer`](Self::buffer) are lost.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.inner
    }

    /// Returns the bytes that were read ahead and not delivered yet: at most one turn, and only while a shared limiter of
    /// the read direction has no capacity.
    #[must_use]
    pub fn buffer(&self) -> &[u8] {
        self.read_ahead.bytes()
    }

    /// Returns the number of bytes that stay charged to a shared limiter although they were not moved, because their
    /// refund was not exact.
    ///
    /// Reads forfeit none, with two exceptions. While the connection is queued, a smaller buffer may follow a larger one, or the
    /// capacity of the local limiter may decrease, as in an even ring.
    #[must_use]
    pub const fn forfeited(&self) -> u64 {
        self.write.forfeited().saturating_add(self.read.forfeited())
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Throttled<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if buf.remaining() == 0 {
            return match this.read_ahead.is_empty() {
                true => Pin::new(&mut this.inner).poll_read(context, buf),
                false => Poll::Ready(Ok(())),
            };
        }
        if this.read_ahead.is_empty() {
            this.poll_read_inner(context, buf)
        } else {
            this.poll_deliver(context, buf)
        }
    }
}

impl<T: AsyncRead + Unpin> Throttled<T> {
    /// Reads from the inner reader, delivers the bytes that the limits admit, and keeps the rest.
    fn poll_read_inner(&mut self, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let want = buf.remaining();
        let ByteBudget { at, bytes } = ready!(self.read.poll_local(want, context.waker()))?;
        let inner = Pin::new(&mut self.inner);
        if bytes == want && !self.read.has_shared() {
            let before = buf.filled().len();
            let polled = inner.poll_read(context, buf);
            self.read.charge(at, buf.filled().len().saturating_sub(before));
            return polled;
        }
        let max = bytes.min(self.read.turn_bytes());
        let mut part = ReadBuf::new(buf.initialize_unfilled_to(max));
        ready!(inner.poll_read(context, &mut part))?;
        let read = part.filled().len();
        if read == 0 {
            return Poll::Ready(Ok(()));
        }
        // The bytes are read now, and delivered only if they can be charged now.
        // Claim: throttle 3, a reader is charged for the bytes that it has read.
        let polled = self.read.poll_turn(read, context);
        let admitted = match polled {
            Poll::Ready(Ok(admitted)) => admitted,
            Poll::Ready(Err(_)) | Poll::Pending => 0,
        };
        // Claim: throttle 5, bytes that were read ahead are kept.
        self.read_ahead
            .store(&buf.initialize_unfilled_to(read)[admitted..]);
        buf.advance(admitted);
        self.read.charge(at, admitted);
        polled.map_ok(drop)
    }
}

impl<T> Throttled<T> {
    /// Delivers bytes that were read ahead.
    fn poll_deliver(&mut self, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let want = self.read_ahead.bytes().len().min(buf.remaining());
        let ByteBudget { at, bytes } = ready!(self.read.poll_local(want, context.waker()))?;
        let admitted = ready!(self.read.poll_turn(bytes, context))?;
        buf.put_slice(&self.read_ahead.bytes()[..admitted]);
        self.read_ahead.consume(admitted);
        self.read.charge(at, admitted);
        Poll::Ready(Ok(()))
    }

    /// Calls `write` with the number of bytes that may be written, at most `want`.
    fn poll_write_limited(
        &mut self,
        context: &mut Context<'_>,
        want: usize,
        write: impl FnOnce(&mut T, &mut Context<'_>, usize) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let ByteBudget { at, bytes } = ready!(self.write.poll_local(want, context.waker()))?;
        let admitted = ready!(self.write.poll_turn(bytes, context))?;
        let polled = write(&mut self.inner, context, admitted);
        let written = match polled {
            // A faulty writer may report more bytes than it was given, but it cannot have written them.
            Poll::Ready(Ok(written)) => written.min(admitted),
            Poll::Ready(Err(_)) | Poll::Pending => 0,
        };
        // Claim: throttle 4, bytes that were not written are refunded.
        self.write.charge(at, written);
        polled
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Throttled<T> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if buf.is_empty() {
            return Pin::new(&mut this.inner).poll_write(context, buf);
        }
        this.poll_write_limited(context, buf.len(), |inner, context, max| {
            Pin::new(inner).poll_write(context, &buf[..max])
        })
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if !this.inner.is_write_vectored() {
            let first = bufs.iter().find(|buf| !buf.is_empty());
            return Pin::new(this).poll_write(context, first.map_or(&[][..], |buf| buf));
        }
        let all = bufs.iter().map(|buf| buf.len()).fold(0, usize::saturating_add);
        if all == 0 {
            return Pin::new(&mut this.inner).poll_write_vectored(context, bufs);
        }
        this.poll_write_limited(context, all, |inner, context, max| {
            let inner = Pin::new(inner);
            if max == all {
                inner.poll_write_vectored(context, bufs)
            } else {
                inner.poll_write_vectored(context, &first_bytes(bufs, max))
            }
        })
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.write.leave();
        Pin::new(&mut this.inner).poll_shutdown(context)
    }
}

/// Returns the first `count` bytes of the slices.
fn first_bytes<'a>(bufs: &'a [IoSlice<'_>], count: usize) -> SmallVec<[IoSlice<'a>; 16]> {
    let mut left = count;
    let mut first = SmallVec::new();
    for buf in bufs {
        if left == 0 {
            break;
        }
        let part = &buf[..buf.len().min(left)];
        left -= part.len();
        first.push(IoSlice::new(part));
    }
    first
}

impl<T: fmt::Debug> fmt::Debug for Throttled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Throttled")
            .field("inner", &self.inner)
            .field("read_ahead", &self.buffer().len())
            .field("forfeited", &self.forfeited())
            .finish_non_exhaustive()
    }
}
