//! Throttled readers and writers keep their limits and lose no bytes.
#![cfg(all(feature = "wait", not(any(miri, ringgate_loom))))]

use alloc::sync::Arc;
use core::pin::Pin;
use core::sync::atomic::Ordering;
use core::task::{Context, Poll};
use core::time::Duration;
use std::io::IoSlice;
use std::sync::Mutex;

use random::Random;
use ringgate::throttle::Throttled;
use ringgate::wait::TokioClock;
use ringgate::{AnyAlgorithm, CounterRing, Fair, Gcra, Nanos, Quota, RateLimiter};
use spy::{KINDS, both_ways, kind, limiter, paused, shared, steady, writer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::{Instant, timeout};
use wire::{Behavior, Log, Wire};

extern crate alloc;

#[path = "common/random.rs"]
mod random;
#[path = "throttle/spy.rs"]
mod spy;
#[path = "common/windows.rs"]
mod windows;
#[path = "throttle/wire.rs"]
mod wire;

#[path = "throttle/bounds.rs"]
mod bounds;
#[path = "throttle/cancel.rs"]
mod cancel;
#[path = "throttle/edges.rs"]
mod edges;
#[path = "throttle/rates.rs"]
mod rates;
#[cfg(all(feature = "quanta", feature = "rules"))]
#[path = "throttle/rules.rs"]
mod rules;
#[path = "throttle/turns.rs"]
mod turns;
