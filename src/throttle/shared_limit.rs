use alloc::sync::Arc;
use core::future::Future;
use core::task::{Context, Poll};

use super::pending_turn::PendingTurn;
use super::quantum::Quantum;
use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::limiter::RateLimiter;
use crate::receipt::Settled;
use crate::wait::{Fair, WaitError};

/// A limiter that connections share, for one direction of one connection.
pub(super) trait SharedLimit: Send + Sync {
    fn quantum(&mut self) -> &mut Quantum;

    /// The bytes of the next turn, by the current number of waiters.
    fn turn_bytes(&self) -> u64;

    /// Waits for a turn of up to `want` bytes, and returns its bytes. They are more than `want` if the wait joined the queue for
    /// more bytes.
    fn poll_turn(&mut self, want: u64, context: &Context<'_>) -> Poll<Result<u64, WaitError>>;

    /// Settles the turn by the bytes that were moved. Returns the bytes that stay charged although they were not moved.
    fn settle(&mut self, moved: u64) -> u64;

    fn leave(&mut self);
}

/// The turns of one direction of a connection.
pub(super) struct Turns<W, J, S, U, G> {
    quantum: Quantum,
    /// Returns the number of waiters.
    waiting: W,
    /// Joins the queue for a number of bytes.
    join: J,
    /// Settles a grant by the bytes that were moved.
    settle: S,
    pending: Arc<PendingTurn<U>>,
    /// The bytes for which the pending turn joined the queue.
    pending_bytes: u64,
    /// The number of turns so far.
    turns: u32,
    /// The maximum size of a turn. It is half of the last request that could never be admitted, and doubles when a turn of this
    /// size is admitted.
    max_bytes: u64,
    /// The turn that was charged and is not settled yet.
    current: Option<(u64, G)>,
}

pub(super) fn from_limiter<A, C>(limiter: Arc<Fair<RateLimiter<A, C>>>) -> impl SharedLimit
where
    A: Algorithm + Send + Sync + 'static,
    C: Clock + Send + Sync + 'static,
{
    let (joined, settled) = (Arc::clone(&limiter), Arc::clone(&limiter));
    Turns::new(
        Quantum::of(limiter.limiter().algorithm()),
        move || limiter.waiting(),
        move |bytes| Arc::clone(&joined).acquire_owned(bytes),
        move |receipt, moved| settled.settle(receipt, moved),
    )
}

impl<W, J, S, U, G> Turns<W, J, S, U, G>
where
    W: Fn() -> usize,
    J: Fn(u64) -> U,
    S: Fn(G, u64) -> Settled,
    U: Future<Output = Result<G, WaitError>> + Unpin + Send + 'static,
{
    pub(super) fn new(quantum: Quantum, waiting: W, join: J, settle: S) -> Self {
        Self {
            quantum,
            waiting,
            join,
            settle,
            pending: PendingTurn::new(),
            pending_bytes: 0,
            turns: 0,
            max_bytes: u64::MAX,
            current: None,
        }
    }
}

impl<W, J, S, U, G> SharedLimit for Turns<W, J, S, U, G>
where
    W: Fn() -> usize + Send + Sync,
    J: Fn(u64) -> U + Send + Sync,
    S: Fn(G, u64) -> Settled + Send + Sync,
    U: Future<Output = Result<G, WaitError>> + Unpin + Send + 'static,
    G: Send + Sync,
{
    fn quantum(&mut self) -> &mut Quantum {
        &mut self.quantum
    }

    fn turn_bytes(&self) -> u64 {
        self.quantum
            .shared(self.turns, (self.waiting)())
            .min(self.max_bytes)
    }

    fn poll_turn(&mut self, want: u64, context: &Context<'_>) -> Poll<Result<u64, WaitError>> {
        loop {
            if !self.pending.is_queued() {
                self.pending_bytes = want.min(self.turn_bytes());
            }
            let bytes = self.pending_bytes;
            match self.pending.poll(|| (self.join)(bytes), context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(grant)) => {
                    self.current = Some((bytes, grant));
                    self.turns = self.turns.saturating_add(1);
                    self.max_bytes = self.max_bytes.max(bytes.saturating_mul(2));
                    return Poll::Ready(Ok(bytes));
                }
                // Rules do not report their largest request, so this tries half as many bytes.
                Poll::Ready(Err(WaitError::Never)) if bytes > 1 => self.max_bytes = bytes / 2,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn settle(&mut self, moved: u64) -> u64 {
        let Some((bytes, grant)) = self.current.take() else {
            return 0;
        };
        match bytes.saturating_sub(moved) {
            0 => 0,
            _ => match (self.settle)(grant, moved) {
                Settled::Forfeited(bytes) => bytes,
                Settled::Exact | Settled::Forgiven(_) => 0,
            },
        }
    }

    fn leave(&mut self) {
        self.pending.leave();
    }
}

impl<W, J, S, U, G> Drop for Turns<W, J, S, U, G> {
    fn drop(&mut self) {
        // The queue also holds `pending`, as a waker. So dropping this reference would not end the wait.
        self.pending.leave();
    }
}
