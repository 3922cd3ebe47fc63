use alloc::boxed::Box;
use core::task::{Context, Poll, Waker, ready};
use std::io;

use super::own::{Own, Room};
use super::shared::Shared;
use crate::error::ConfigError;
use crate::time::Nanos;
use crate::wait::WaitError;

/// What limits one direction of a connection.
#[derive(Default)]
pub(super) struct Side {
    pub(super) own: Option<Own>,
    pub(super) shared: Option<Box<dyn Shared>>,
    forfeited: u64,
}

/// How many bytes may be moved now, and the time at which they are charged to the connection's own limiter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leave {
    pub(super) at: Nanos,
    pub(super) bytes: usize,
}

impl Side {
    pub(super) fn set_quantum(&mut self, bytes: u64) -> Result<(), ConfigError> {
        let own = self.own.as_mut().map(Own::quantum);
        let shared = self.shared.as_mut().map(|shared| shared.quantum());
        for quantum in own.into_iter().chain(shared) {
            let most = quantum.most().unwrap_or(u64::MAX);
            if bytes == 0 || bytes > most {
                return Err(ConfigError::new(
                    "quantum",
                    alloc::format!("{bytes} bytes"),
                    alloc::format!("1 to {most} bytes, the most that the limiter admits at once"),
                ));
            }
            *quantum = quantum.fixed(bytes);
        }
        Ok(())
    }

    pub(super) const fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    pub(super) const fn forfeited(&self) -> u64 {
        self.forfeited
    }

    /// The bytes of a turn of the shared limiter, as of now.
    pub(super) fn turn(&self) -> usize {
        self.shared
            .as_ref()
            .map_or(usize::MAX, |shared| to_usize(shared.turn()))
    }

    /// Waits until the connection's own limiter has room; takes nothing.
    pub(super) fn poll_room(&mut self, want: usize, waker: &Waker) -> Poll<io::Result<Leave>> {
        let Some(own) = &mut self.own else {
            return Poll::Ready(Ok(Leave {
                at: Nanos::ZERO,
                bytes: want,
            }));
        };
        let polled = own.poll_room(want as u64, waker);
        if !matches!(polled, Poll::Ready(Ok(_))) {
            // It has no use for its turn.
            self.leave();
        }
        let Room { at, bytes } = ready!(polled)?;
        Poll::Ready(Ok(Leave {
            at,
            bytes: to_usize(bytes),
        }))
    }

    /// Takes a turn of the shared limiter, for up to `want` bytes; to be followed by [`moved`](Self::moved) in the same
    /// poll.
    pub(super) fn poll_take(&mut self, want: usize, context: &Context<'_>) -> Poll<io::Result<usize>> {
        let Some(shared) = &mut self.shared else {
            return Poll::Ready(Ok(want));
        };
        let taken = ready!(shared.poll_take(want as u64, context)).map_err(refusal)?;
        Poll::Ready(Ok(to_usize(taken).min(want)))
    }

    /// Charges what was moved, and no more than that.
    pub(super) fn moved(&mut self, at: Nanos, bytes: usize) {
        if let Some(own) = &mut self.own {
            own.charge(at, bytes as u64);
        }
        if let Some(shared) = &mut self.shared {
            let forfeited = shared.settle(bytes as u64);
            self.forfeited = self.forfeited.saturating_add(forfeited);
        }
    }

    /// Takes no turn, if it stands in line for one.
    pub(super) fn leave(&mut self) {
        if let Some(shared) = &mut self.shared {
            shared.leave();
        }
    }
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Why nothing is moved, as readers and writers say it.
pub(super) fn refusal(error: WaitError) -> io::Error {
    let kind = match error {
        WaitError::QueueFull { .. } => io::ErrorKind::ResourceBusy,
        _ => io::ErrorKind::QuotaExceeded,
    };
    io::Error::new(kind, error)
}
