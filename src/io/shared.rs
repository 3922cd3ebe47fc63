#[cfg(feature = "rules")]
use alloc::boxed::Box;
use alloc::sync::Arc;
#[cfg(feature = "rules")]
use core::borrow::Borrow;
use core::future::Future;
use core::task::{Context, Poll};

use super::place::Place;
use super::quantum::Quantum;
use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::limiter::RateLimiter;
use crate::receipt::{Receipt, Settled};
#[cfg(feature = "rules")]
use crate::rules::{Cost, Reservation};
#[cfg(feature = "rules")]
use crate::wait::Judge;
use crate::wait::{Fair, WaitError};

/// What one side of a connection has to do with a limiter that it shares with others.
pub(super) trait Shared: Send + Sync {
    fn quantum(&mut self) -> &mut Quantum;

    /// The bytes of a turn, as of now.
    fn turn(&self) -> u64;

    /// Takes a turn for up to `want` bytes, once it has come; says for how many it is, which may be more when more was
    /// wanted while it stood in line.
    fn poll_take(&mut self, want: u64, context: &Context<'_>) -> Poll<Result<u64, WaitError>>;

    /// Settles what was taken at what was moved; says how many bytes stay charged that were not moved.
    fn settle(&mut self, moved: u64) -> u64;

    /// Takes no turn, if it stands in line for one.
    fn leave(&mut self);
}

/// Turns of one side of a connection.
struct Turns<W, A, S, U, G> {
    quantum: Quantum,
    /// How many wait.
    waiting: W,
    /// Stands in line for a number of bytes.
    ask: A,
    settle: S,
    place: Arc<Place<U>>,
    /// The bytes that it stands in line for.
    asked: u64,
    /// Turns that it has had.
    turns: u32,
    /// The most bytes to ask for: half of what was refused for good, and more again when that is admitted.
    fits: u64,
    taken: Option<(u64, G)>,
}

/// Turns by a limiter.
pub(super) fn by_limiter<A, C>(limiter: Arc<Fair<RateLimiter<A, C>>>) -> impl Shared
where
    A: Algorithm + Send + Sync + 'static,
    C: Clock + Send + Sync + 'static,
{
    let (asked, settled) = (Arc::clone(&limiter), Arc::clone(&limiter));
    Turns::new(
        Quantum::of(limiter.limiter()),
        move || limiter.waiting(),
        move |bytes| Arc::clone(&asked).acquire_owned(bytes),
        move |taken: Receipt, _, moved| settled.settle(taken, moved),
    )
}

/// Turns by rules, each of them one request.
#[cfg(feature = "rules")]
pub(super) fn by_rules<J, B>(
    rules: Arc<Fair<J>>,
    cost: Cost<J::Request>,
    request: impl Fn(u64) -> B + Send + Sync + 'static,
) -> Box<dyn Shared>
where
    J: Judge<Request: 'static> + Send + Sync + 'static,
    B: Borrow<J::Request> + Unpin + Send + 'static,
{
    let (asked, settled) = (Arc::clone(&rules), Arc::clone(&rules));
    let request = Arc::new(request);
    let asking = Arc::clone(&request);
    Box::new(Turns::new(
        Quantum::by_rules(),
        move || rules.waiting(),
        move |bytes| Arc::clone(&asked).acquire_owned(asking(bytes)),
        move |taken: Reservation<J::Request>, excess, moved| {
            settled.settle(taken, request(excess).borrow(), &cost, moved)
        },
    ))
}

impl<W, A, S, U, G> Turns<W, A, S, U, G>
where
    W: Fn() -> usize,
    A: Fn(u64) -> U,
    S: Fn(G, u64, u64) -> Settled,
    U: Future<Output = Result<G, WaitError>> + Unpin + Send + 'static,
{
    fn new(quantum: Quantum, waiting: W, ask: A, settle: S) -> Self {
        Self {
            quantum,
            waiting,
            ask,
            settle,
            place: Place::new(),
            asked: 0,
            turns: 0,
            fits: u64::MAX,
            taken: None,
        }
    }
}

impl<W, A, S, U, G> Shared for Turns<W, A, S, U, G>
where
    W: Fn() -> usize + Send + Sync,
    A: Fn(u64) -> U + Send + Sync,
    S: Fn(G, u64, u64) -> Settled + Send + Sync,
    U: Future<Output = Result<G, WaitError>> + Unpin + Send + 'static,
    G: Send + Sync,
{
    fn quantum(&mut self) -> &mut Quantum {
        &mut self.quantum
    }

    fn turn(&self) -> u64 {
        self.quantum.among(self.turns, (self.waiting)()).min(self.fits)
    }

    fn poll_take(&mut self, want: u64, context: &Context<'_>) -> Poll<Result<u64, WaitError>> {
        loop {
            if !self.place.is_taken() {
                self.asked = want.min(self.turn());
            }
            let asked = self.asked;
            match self.place.poll(|| (self.ask)(asked), context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(taken)) => {
                    self.taken = Some((asked, taken));
                    self.turns = self.turns.saturating_add(1);
                    self.fits = self.fits.max(asked.saturating_mul(2));
                    return Poll::Ready(Ok(asked));
                }
                // Fewer may be admitted: rules say nothing of how many.
                Poll::Ready(Err(WaitError::Never)) if asked > 1 => self.fits = asked / 2,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn settle(&mut self, moved: u64) -> u64 {
        let Some((asked, taken)) = self.taken.take() else {
            return 0;
        };
        match asked.saturating_sub(moved) {
            0 => 0,
            excess => match (self.settle)(taken, excess, moved) {
                Settled::Forfeited(bytes) => bytes,
                Settled::Exact | Settled::Forgiven(_) => 0,
            },
        }
    }

    fn leave(&mut self) {
        self.place.leave();
    }
}

impl<W, A, S, U, G> Drop for Turns<W, A, S, U, G> {
    fn drop(&mut self) {
        // Those who would call it hold the place too.
        self.place.leave();
    }
}
