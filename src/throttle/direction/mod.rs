#![doc = include_str!("protocol.md")]

use alloc::boxed::Box;
use core::task::{Context, Poll, Waker, ready};
use std::io;

use super::error::to_io_error;
use super::local_limit::{ByteBudget, LocalLimit, to_usize};
use super::shared_limit::SharedLimit;
use crate::error::ConfigError;
use crate::time::Nanos;

/// The limits of one direction of a connection.
#[derive(Default)]
pub(super) struct Direction {
    pub(super) local: Option<LocalLimit>,
    pub(super) shared: Option<Box<dyn SharedLimit>>,
    forfeited: u64,
}

impl Direction {
    pub(super) fn set_quantum(&mut self, bytes: u64) -> Result<(), ConfigError> {
        let local = self.local.as_mut().map(LocalLimit::quantum);
        let shared = self.shared.as_mut().map(|shared| shared.quantum());
        for quantum in local.into_iter().chain(shared) {
            let max = quantum.max_request().unwrap_or(u64::MAX);
            if bytes == 0 || bytes > max {
                return Err(ConfigError::new(
                    "quantum",
                    alloc::format!("{bytes} bytes"),
                    alloc::format!("1 to {max} bytes, the largest request of the limiter"),
                ));
            }
            *quantum = quantum.fixed(bytes);
        }
        Ok(())
    }

    pub(super) const fn has_shared(&self) -> bool {
        self.shared.is_some()
    }

    pub(super) const fn forfeited(&self) -> u64 {
        self.forfeited
    }

    /// The bytes of the next turn of the shared limit, by the current number of waiters.
    pub(super) fn turn_bytes(&self) -> usize {
        self.shared
            .as_ref()
            .map_or(usize::MAX, |shared| to_usize(shared.turn_bytes()))
    }

    /// Waits until the local limit has capacity. Charges nothing.
    pub(super) fn poll_local(&mut self, want: usize, waker: &Waker) -> Poll<io::Result<ByteBudget>> {
        let Some(local) = &mut self.local else {
            return Poll::Ready(Ok(ByteBudget {
                at: Nanos::ZERO,
                bytes: want,
            }));
        };
        let polled = local.poll_capacity(want, waker);
        if !matches!(polled, Poll::Ready(Ok(_))) {
            // Without local capacity, the connection could not use its turn.
            self.leave();
        }
        polled
    }

    /// Waits for a turn of the shared limit of up to `want` bytes. The same poll must call [`charge`](Self::charge).
    pub(super) fn poll_turn(&mut self, want: usize, context: &Context<'_>) -> Poll<io::Result<usize>> {
        let Some(shared) = &mut self.shared else {
            return Poll::Ready(Ok(want));
        };
        // Claim: throttle 2, the bytes of a poll are admitted by the shared limit.
        let bytes = ready!(shared.poll_turn(want as u64, context)).map_err(to_io_error)?;
        Poll::Ready(Ok(to_usize(bytes).min(want)))
    }

    /// Charges the bytes that were moved to the local limit, and settles the turn of the shared limit by them.
    pub(super) fn charge(&mut self, at: Nanos, bytes: usize) {
        if let Some(local) = &mut self.local {
            // Claim: throttle 1, the moved bytes are charged to the local limit.
            local.charge(at, bytes as u64);
        }
        if let Some(shared) = &mut self.shared {
            let forfeited = shared.settle(bytes as u64);
            self.forfeited = self.forfeited.saturating_add(forfeited);
        }
    }

    /// Leaves the queue of the shared limit.
    pub(super) fn leave(&mut self) {
        if let Some(shared) = &mut self.shared {
            shared.leave();
        }
    }
}
