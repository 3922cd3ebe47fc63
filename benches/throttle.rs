//! The cost of throttling: reads and writes of 8 KiB below the limit, compared with those of the inner stream.
//!
//! `cargo bench -p ringgate-benches --bench throttle` prints a table of ratios. No figure makes this bench fail.

extern crate alloc;

use alloc::sync::Arc;
use core::hint::black_box;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use std::io;

use ringgate::throttle::Throttled;
use ringgate::{ConfigError, CounterRing, Fair, QuantaClock, Quota, RateLimiter};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use ringgate_benches::{Case, Work, counted};

const BYTES: usize = 8 * 1024;

fn main() -> Result<(), ConfigError> {
    let clock = QuantaClock::new();
    // A limit that is never reached.
    let ring = CounterRing::builder(Quota::per_hour(Quota::MAX_LIMIT)?)
        .cells(5)
        .build()?;
    let limiter = || RateLimiter::with_clock(ring.clone(), clock.clone());
    let shared = || Arc::new(Fair::new(limiter()));
    let builder = || Throttled::builder(Memory::new());
    ringgate_benches::run(vec![
        case("read, 8 KiB", "bare", reads(Memory::new())),
        case("read, 8 KiB", "no limit", reads(builder().build()?)),
        case(
            "read, 8 KiB",
            "own limiter",
            reads(builder().read(limiter()).build()?),
        ),
        case(
            "read, 8 KiB",
            "shared limiter",
            reads(builder().read_shared(shared()).build()?),
        ),
        case("write, 8 KiB", "bare", writes(Memory::new())),
        case("write, 8 KiB", "no limit", writes(builder().build()?)),
        case(
            "write, 8 KiB",
            "own limiter",
            writes(builder().write(limiter()).build()?),
        ),
        case(
            "write, 8 KiB",
            "shared limiter",
            writes(builder().write_shared(shared()).build()?),
        ),
    ]);
    Ok(())
}

fn case(group: &'static str, name: &'static str, work: Work) -> Case {
    Case {
        group,
        name,
        target: None,
        work,
    }
}

/// The calls before the measurement, until the slow start of a shared limiter has ended.
const WARM_UP: usize = 50;

fn reads(mut inner: impl AsyncRead + Unpin + 'static) -> Work {
    let mut memory = vec![0; BYTES];
    let mut turn = move || {
        let mut buf = ReadBuf::new(&mut memory);
        let polled = pin!(&mut inner).poll_read(&mut Context::from_waker(Waker::noop()), &mut buf);
        polled.is_ready() && black_box(buf.filled()).len() == BYTES
    };
    for _ in 0..WARM_UP {
        black_box(turn());
    }
    counted(turn)
}

fn writes(mut inner: impl AsyncWrite + Unpin + 'static) -> Work {
    let memory = vec![7; BYTES];
    let mut turn = move || {
        let polled = pin!(&mut inner).poll_write(&mut Context::from_waker(Waker::noop()), black_box(&memory));
        matches!(polled, Poll::Ready(Ok(BYTES)))
    };
    for _ in 0..WARM_UP {
        black_box(turn());
    }
    counted(turn)
}

/// A stream that copies from and to memory, without a system call.
struct Memory(Vec<u8>);

impl Memory {
    fn new() -> Self {
        Self(vec![7; BYTES])
    }
}

impl AsyncRead for Memory {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let count = buf.remaining().min(BYTES);
        buf.put_slice(&self.0[..count]);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Memory {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let count = buf.len().min(BYTES);
        self.0[..count].copy_from_slice(&buf[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
