//! The task that asks the store about accounts: what is due, together, and again until it is answered.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::time::Duration;
use std::time::Instant;

use tokio::time::timeout;

use super::accounts::{Ask, Told};
use super::books::{Books, Inside};
use super::store::Counting;
use super::store_error::{StoreError, StoreErrorKind};
use super::supervisor::jittered;

/// Runs for as long as somebody else holds the books: it holds them only while it works, and a call for as long as that
/// takes.
pub(super) async fn run(books: Weak<Books>, period: Duration) {
    let Some(wake) = books.upgrade().map(|books| Arc::clone(&books.wake)) else {
        return;
    };
    let mut next = Instant::now();
    loop {
        let now = Instant::now();
        let in_time = now >= next;
        if in_time {
            // Of half to one and a half, so that not all nodes ask in one moment.
            next = now + jittered(period);
        }
        match books.upgrade() {
            Some(books) => books.round(in_time),
            None => return,
        }
        // Whether it was woken or not, there is a round.
        let _ = timeout(next.saturating_duration_since(Instant::now()), wake.notified()).await;
    }
}

/// The most questions in one call, and what a log's charge counts for beside them: a script is not to keep the server
/// from others for long.
const TOGETHER: u64 = 32;
const LOGGED: u64 = 8;

/// The most calls that are on their way.
const CALLS: usize = 8;

/// A question that is to be sent, and whose account it is about.
type Sent = (usize, Ask);

impl Books {
    /// Asks what is due: of all accounts that are looked after when it is time, and otherwise of those that were noted.
    fn round(self: &Arc<Self>, in_time: bool) {
        let now = self.clock.exact();
        let mut inside = self.lock();
        let mut asks: Vec<Sent> = Vec::new();
        // Of those that have to wait for a call to end, the next round is told again.
        let room = |inside: &Inside, asks: &Vec<Sent>| {
            asks.len() < (CALLS - inside.calls.min(CALLS)) * TOGETHER as usize
        };
        let mut late: Vec<usize> = Vec::new();
        self.due.drain(|at| {
            inside.watch(at);
            if room(&inside, &asks) {
                asks.extend(self.ask(&mut inside, at, now, true));
            } else {
                late.push(at);
            }
        });
        for at in late {
            self.due.note(at);
        }
        if in_time {
            let mut watched = core::mem::take(&mut inside.watched);
            watched.retain(|&at| {
                if room(&inside, &asks) {
                    asks.extend(self.ask(&mut inside, at, now, false));
                } else {
                    self.due.note(at);
                }
                let busy = inside.desks[at].is_busy(&self.accounts[at]);
                inside.desks[at].watched = busy;
                busy
            });
            inside.watched = watched;
        }
        let mut batch: Vec<Sent> = Vec::new();
        let mut weight = 0;
        for (at, ask) in asks {
            let logged = match ask.part().counting() {
                Counting::Log => ask.charge() / LOGGED,
                Counting::Cells(_) => 0,
            };
            if !batch.is_empty() && weight + logged >= TOGETHER {
                self.send(&mut inside, core::mem::take(&mut batch), now);
                weight = 0;
            }
            weight += 1 + logged;
            batch.push((at, ask));
        }
        if !batch.is_empty() {
            self.send(&mut inside, batch, now);
        }
    }

    /// The question that is due about an account; charges the stand-in by the way.
    fn ask(&self, inside: &mut Inside, at: usize, now: u64, nudged: bool) -> Option<Sent> {
        let life = inside.life();
        let (desk, account) = (&mut inside.desks[at], &self.accounts[at]);
        match desk.ask(account, now, nudged, || life) {
            Some((ask, warm)) => {
                self.charge_stand_in(desk, warm);
                Some((at, ask))
            }
            None => {
                self.warm(inside, at);
                None
            }
        }
    }

    /// Sends questions that were made at `sent`, in a task of their own.
    fn send(self: &Arc<Self>, inside: &mut Inside, batch: Vec<Sent>, sent: u64) {
        inside.calls += 1;
        let books = Arc::clone(self);
        tokio::spawn(async move {
            let asks: Vec<Ask> = batch.iter().map(|(_, ask)| ask.clone()).collect();
            let mut told = match books.store.accounts() {
                Some(accounts) => accounts.settle(&asks).await,
                None => Vec::new(),
            };
            let missing = || {
                let detail = "fewer answers than questions";
                Err(StoreError::new(StoreErrorKind::Confused, detail))
            };
            told.resize_with(batch.len(), missing);
            books.hear(&batch, told, sent);
        });
    }

    fn hear(&self, batch: &[Sent], told: Vec<Result<Told, StoreError>>, sent: u64) {
        let now = self.clock.exact();
        {
            let mut inside = self.lock();
            inside.calls -= 1;
            for ((at, ask), told) in batch.iter().zip(told) {
                let life = inside.life();
                let desk = &mut inside.desks[*at];
                match told {
                    Ok(told) => {
                        let heard = (sent, now);
                        desk.tell(&self.accounts[*at], (ask, told), heard, || life);
                    }
                    Err(error) => {
                        desk.fail(ask);
                        inside.error = Some(error);
                    }
                }
            }
        }
        for (at, _) in batch {
            self.heard_of(*at).notify_waiters();
        }
        // What had to wait for a call to end.
        self.wake.notify_one();
    }
}
