use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io::{self, IoSlice};

use smallvec::SmallVec;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::builder::ThrottledBuilder;
use super::side::{Leave, Side};
use super::stash::Stash;

/// A reader, a writer or both, that moves no more bytes per window than limiters allow in each direction: limiters of
/// its own, limiters that many connections share, or both.
///
/// Made by [`Throttled::builder`]. It reads if what is inside reads, and writes if that writes; flushing and
/// shutting down are not limited. For halves use `tokio::io::split`, or throttle the halves of a connection.
///
/// # Guarantee
///
/// - In any window, no more bytes are moved than the limiter's [`bound`](crate::RateLimiter::bound): in each direction
///   by a limiter of its own, and by all connections together by a shared one or by rules. It is measured by the
///   readings of the decisions: a byte is moved in the poll that charges it, never in a later one.
/// - A byte is charged once, and none that is not moved: when the inner reader or writer has nothing to do, or fails,
///   or has come to its end, nothing stays charged. A writer takes its turn of a shared limiter before it knows how
///   much is written, and gives the rest back at once; where that is not exact any more it stays spent
///   ([`forfeited`](Self::forfeited)): of a sliding log always, of a counter ring when a new cell was entered in
///   between, of GCRA when somebody else was admitted in between.
/// - Connections that share a limiter get equal parts, as long as each of them has enough to move:
///   [`Fair`](crate::Fair) serves first whoever came first, and turns are equally long
///   ([`quantum`](ThrottledBuilder::quantum)).
/// - Bytes are read ahead only while a shared limiter has no room for them, and no more than one turn: they are kept,
///   and count as moved when they are delivered.
///
/// # Cost
///
/// A read or write by a limiter of its own is one reading of the clock, a look and a decision without any locked
/// instruction ([`check_at_mut`](crate::RateLimiter::check_at_mut)); a wait allocates an alarm. By a shared one it is
/// what the wait of a
/// [`Fair`](crate::Fair) limiter costs, and three locks of its own, for moments, which nobody else wants; a wait also
/// a task for 10 ms, and where it is for reading a copy of what was read. A connection takes 100 bytes or so for each
/// limiter of its own (and what the limiter takes), and 500 for each that it shares.
///
/// Uninitialized memory that is read into is zeroed first, up to a turn, unless there is room for all of it by a
/// limiter of its own.
///
/// # Which limiter
///
/// A permit is a byte, so that 10 MB/s is the quota `"10_000_000/s"`.
///
/// | for | choose | worst in any second, at 10 MB/s |
/// |---|---|---|
/// | a steady rate | [`Gcra::token_bucket`](crate::Gcra::token_bucket), a burst of 10 ms, here 100 kB | 10.1 MB |
/// | the same, of a connection's own beside a shared one | a burst of 100 ms, here 1 MB | 11 MB |
/// | a hard limit | [`CounterRing`](crate::CounterRing), strict; at least five sixths of the rate | 10 MB |
/// | a hard limit, nearly all of the rate | [`even`](crate::CounterRingBuilder::even), with 100 cells | 10.1 MB |
/// | volume, as in a gigabyte a day | [`CounterRing`](crate::CounterRing) | the volume, in any day |
///
/// A burst shorter than that loses throughput: tokio's alarms are to the millisecond, and a bucket that is full
/// meanwhile runs over. A limiter of its own must also hold what may be moved while the connection stands in line for a
/// shared one. A counter ring over a second counts up to 268 MB with five cells, and less with more; a sliding log
/// takes eight bytes of memory for each byte of its limit.
///
/// # Cancel safety
///
/// Dropping a future that reads or writes at any time loses nothing and charges nothing, since all state is in here.
/// The place in line is kept until its turn comes, and passed on if it is not taken up within 10 ms. That needs a tokio
/// runtime to be entered when it is polled.
///
/// # Errors
///
/// Those of what is inside, as they are. Besides, with a [`WaitError`](crate::WaitError) as their cause, and nothing
/// lost or charged: [`ResourceBusy`](io::ErrorKind::ResourceBusy) when the line of a shared limiter is full, and
/// [`QuotaExceeded`](io::ErrorKind::QuotaExceeded) when not one byte will ever be admitted.
///
/// # Panics
///
/// Where it has to wait outside of a tokio runtime with a time driver, as [`tokio::time::sleep`] does.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use ringgate::{Fair, Gcra, Quota, RateLimiter, Throttled};
/// use tokio::io::AsyncWriteExt;
///
/// # #[cfg(feature = "quanta")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn core::error::Error>> {
/// // Ten megabytes a second for all connections together, in bursts of a hundredth of that.
/// let all = Gcra::token_bucket(Quota::per_second(10_000_000)?, 100_000)?;
/// let all = Arc::new(Fair::new(RateLimiter::new(all)));
///
/// // One megabyte a second for what this one is sent.
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
/// # #[cfg(not(feature = "quanta"))]
/// # fn main() {}
/// ```
pub struct Throttled<T> {
    inner: T,
    read: Side,
    write: Side,
    stash: Stash,
}

impl<T> Throttled<T> {
    /// Begins a throttled reader or writer, without limits so far.
    pub fn builder(inner: T) -> ThrottledBuilder<T> {
        ThrottledBuilder::new(inner)
    }

    pub(super) fn new(inner: T, read: Side, write: Side) -> Self {
        Self {
            inner,
            read,
            write,
            stash: Stash::default(),
        }
    }

    /// What is throttled.
    #[must_use]
    pub const fn get_ref(&self) -> &T {
        &self.inner
    }

    /// What is throttled. What is read from it or written to it directly is neither limited nor charged, and what is
    /// read overtakes what is in the [`buffer`](Self::buffer).
    pub const fn get_mut(&mut self) -> &mut T {
        &mut self.inner
    }

    /// Takes the limits off, and gives back what was throttled. What is in the [`buffer`](Self::buffer) is lost.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.inner
    }

    /// What was read and is not delivered yet: up to a turn, and only while a shared limiter that limits reading has no
    /// room.
    #[must_use]
    pub fn buffer(&self) -> &[u8] {
        self.stash.bytes()
    }

    /// Bytes that stay charged to a shared limiter although they were not moved, since what was taken could not be
    /// given back.
    ///
    /// Reading has none, unless a smaller buffer comes after a larger one while it stands in line, or the connection's
    /// own room has become less meanwhile, as in an even ring.
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
            return match this.stash.is_empty() {
                true => Pin::new(&mut this.inner).poll_read(context, buf),
                false => Poll::Ready(Ok(())),
            };
        }
        if this.stash.is_empty() {
            this.poll_read_on(context, buf)
        } else {
            this.poll_deliver(context, buf)
        }
    }
}

impl<T: AsyncRead + Unpin> Throttled<T> {
    /// Reads from what is throttled, and delivers what there is room for.
    fn poll_read_on(&mut self, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let want = buf.remaining();
        let Leave { at, bytes } = ready!(self.read.poll_room(want, context.waker()))?;
        let inner = Pin::new(&mut self.inner);
        if bytes == want && !self.read.is_shared() {
            let before = buf.filled().len();
            let polled = inner.poll_read(context, buf);
            self.read.moved(at, buf.filled().len().saturating_sub(before));
            return polled;
        }
        let most = bytes.min(self.read.turn());
        let mut part = ReadBuf::new(buf.initialize_unfilled_to(most));
        ready!(inner.poll_read(context, &mut part))?;
        let read = part.filled().len();
        if read == 0 {
            return Poll::Ready(Ok(()));
        }
        // What is read is there, but not delivered before it is charged.
        let polled = self.read.poll_take(read, context);
        let taken = match polled {
            Poll::Ready(Ok(taken)) => taken,
            Poll::Ready(Err(_)) | Poll::Pending => 0,
        };
        self.stash.put(&buf.initialize_unfilled_to(read)[taken..]);
        buf.advance(taken);
        self.read.moved(at, taken);
        polled.map_ok(drop)
    }
}

impl<T> Throttled<T> {
    /// Delivers what was read before.
    fn poll_deliver(&mut self, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let want = self.stash.bytes().len().min(buf.remaining());
        let Leave { at, bytes } = ready!(self.read.poll_room(want, context.waker()))?;
        let taken = ready!(self.read.poll_take(bytes, context))?;
        buf.put_slice(&self.stash.bytes()[..taken]);
        self.stash.consume(taken);
        self.read.moved(at, taken);
        Poll::Ready(Ok(()))
    }

    /// Has `write` write up to so many bytes as it is told, of `want`.
    fn poll_write_by(
        &mut self,
        context: &mut Context<'_>,
        want: usize,
        write: impl FnOnce(&mut T, &mut Context<'_>, usize) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let Leave { at, bytes } = ready!(self.write.poll_room(want, context.waker()))?;
        let taken = ready!(self.write.poll_take(bytes, context))?;
        let polled = write(&mut self.inner, context, taken);
        let written = match polled {
            // A writer that claims more than it was given has not written it.
            Poll::Ready(Ok(written)) => written.min(taken),
            Poll::Ready(Err(_)) | Poll::Pending => 0,
        };
        self.write.moved(at, written);
        polled
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Throttled<T> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if buf.is_empty() {
            return Pin::new(&mut this.inner).poll_write(context, buf);
        }
        this.poll_write_by(context, buf.len(), |inner, context, most| {
            Pin::new(inner).poll_write(context, &buf[..most])
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
        this.poll_write_by(context, all, |inner, context, most| {
            let inner = Pin::new(inner);
            if most == all {
                inner.poll_write_vectored(context, bufs)
            } else {
                inner.poll_write_vectored(context, &first_bytes(bufs, most))
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

/// The first so many bytes of the slices.
fn first_bytes<'a>(bufs: &'a [IoSlice<'_>], most: usize) -> SmallVec<[IoSlice<'a>; 16]> {
    let mut left = most;
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
            .field("buffered", &self.buffer().len())
            .field("forfeited", &self.forfeited())
            .finish_non_exhaustive()
    }
}
