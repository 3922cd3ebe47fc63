//! Exact replays of one quota with other limits and algorithms, key by key, on several threads.

use alloc::sync::Arc;
use core::num::NonZeroUsize;
use std::panic;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use ringgate::{Algorithm, AnyAlgorithm, Quota};

use crate::failure::Failure;
use crate::progress::Progress;
use crate::replay::by_key::{ByKey, Visitor};
use crate::replay::key_request::RequestOfKey;
use crate::replay::lazy_words::LazyWords;
use crate::replay::span::Span;
use crate::replay::window::Window;
use crate::rules::algorithm::AlgorithmSpec;

/// One algorithm with one limit, and its results so far. It holds the words of one key at a time.
#[derive(Debug)]
pub(crate) struct Simulation {
    counting: AlgorithmSpec,
    pub(crate) limit: u64,
    pub(crate) policy: AnyAlgorithm,
    words: LazyWords,
    span: Span,
    pub(crate) admitted: u64,
    pub(crate) denied: u64,
    pub(crate) keys_denied: u64,
    /// The most permits that were admitted to a key in one window, if measured.
    pub(crate) worst: u64,
    admitted_in_window: Option<Window>,
    /// Whether the key that is replayed now had a denial.
    key_was_denied: bool,
}

impl Simulation {
    /// Creates a simulation of a policy with this limit. `measured_window` is the window in which to measure the most admitted
    /// permits.
    pub(crate) fn new(
        counting: AlgorithmSpec,
        policy: AnyAlgorithm,
        limit: u64,
        span: Span,
        measured_window: Option<i64>,
    ) -> Self {
        Self {
            counting,
            limit,
            policy,
            words: LazyWords::default(),
            span,
            admitted: 0,
            denied: 0,
            keys_denied: 0,
            worst: 0,
            admitted_in_window: measured_window.map(Window::new),
            key_was_denied: false,
        }
    }

    fn replay(&mut self, batch: &Batch) {
        let mut start = 0;
        for part in &batch.parts {
            let requests = &batch.requests[start..part.end];
            start = part.end;
            if self.admitted_in_window.is_none()
                && self
                    .counting
                    .never_denies(&self.policy, self.limit, part.peak_in_two)
            {
                self.admitted += requests.len() as u64;
                continue;
            }
            for one in requests {
                if self.admits(*one) {
                    self.admitted += 1;
                    if let Some(window) = &mut self.admitted_in_window {
                        window.push(one.time, one.permits);
                    }
                } else {
                    self.denied += 1;
                    self.key_was_denied = true;
                }
            }
            if part.ends {
                self.next_key();
            }
        }
    }

    #[inline]
    fn admits(&self, request: RequestOfKey) -> bool {
        let now = self.span.reading(request.time);
        self.policy.decide(&self.words, now, request.permits).is_some()
    }

    fn next_key(&mut self) {
        self.keys_denied += u64::from(self.key_was_denied);
        self.key_was_denied = false;
        if let Some(window) = &mut self.admitted_in_window {
            self.worst = self.worst.max(window.most());
            window.clear();
        }
        self.words.clear();
    }
}

/// Requests of several keys in a row. The first key may continue from the batch before.
#[derive(Debug, Default)]
struct Batch {
    requests: Vec<RequestOfKey>,
    parts: Vec<PartTally>,
}

/// Requests of one key.
#[derive(Clone, Copy, Debug)]
struct PartTally {
    /// The end of the requests in the batch.
    end: usize,
    /// The most permits that the key requests in two windows.
    peak_in_two: u64,
    /// Whether the key has no more requests.
    ends: bool,
}

/// Requests of one batch.
const BATCH: usize = 1 << 14;

/// Batches in the queue of a thread.
const WAITING: usize = 2;

/// The largest number of threads.
const THREADS: usize = 8;

/// Forms batches, and sends each to all threads.
struct Batcher {
    batch: Batch,
    peak_in_two: u64,
    threads: Vec<SyncSender<Arc<Batch>>>,
}

impl Batcher {
    fn part(&mut self, ends: bool) {
        self.batch.parts.push(PartTally {
            end: self.batch.requests.len(),
            peak_in_two: self.peak_in_two,
            ends,
        });
        if self.batch.requests.len() >= BATCH {
            self.send();
        }
    }

    fn send(&mut self) {
        let batch = Arc::new(core::mem::take(&mut self.batch));
        for thread in &self.threads {
            // Sending fails only if the thread has panicked, which its join reports.
            let _gone = thread.send(Arc::clone(&batch));
        }
    }
}

impl Visitor for Batcher {
    fn begin(&mut self, peak_in_two: u64) {
        self.peak_in_two = peak_in_two;
    }

    #[inline]
    fn request(&mut self, request: RequestOfKey) {
        self.batch.requests.push(request);
        if self.batch.requests.len() >= BATCH {
            self.part(false);
        }
    }

    fn end(&mut self, _key: u64) -> Result<(), Failure> {
        self.part(true);
        Ok(())
    }
}

/// Runs all simulations over the requests, each on one thread.
///
/// # Errors
///
/// When a temporary file fails.
pub(crate) fn simulate(
    simulations: Vec<Simulation>,
    by_key: &mut ByKey,
    progress: &mut Progress,
    what: &'static str,
) -> Result<Vec<Simulation>, Failure> {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = cores.min(THREADS).min(simulations.len()).max(1);
    // Alternating, since lower limits take more time.
    let mut shares: Vec<Vec<(usize, Simulation)>> = (0..threads).map(|_| Vec::new()).collect();
    for (number, simulation) in simulations.into_iter().enumerate() {
        shares[number % threads].push((number, simulation));
    }
    thread::scope(|scope| {
        let (senders, running): (Vec<_>, Vec<_>) = shares
            .into_iter()
            .map(|share| {
                let (sender, batches) = sync_channel(WAITING);
                (sender, scope.spawn(move || work(share, &batches)))
            })
            .unzip();
        let mut feeder = Batcher {
            batch: Batch::default(),
            peak_in_two: 0,
            threads: senders,
        };
        let visited = by_key.visit(&mut feeder, progress, what);
        feeder.send();
        drop(feeder);
        let mut done = Vec::new();
        for thread in running {
            done.extend(
                thread
                    .join()
                    .unwrap_or_else(|panicked| panic::resume_unwind(panicked)),
            );
        }
        visited?;
        done.sort_unstable_by_key(|(number, _)| *number);
        Ok(done.into_iter().map(|(_, simulation)| simulation).collect())
    })
}

fn work(mut share: Vec<(usize, Simulation)>, batches: &Receiver<Arc<Batch>>) -> Vec<(usize, Simulation)> {
    for batch in batches {
        for (_, simulation) in &mut share {
            simulation.replay(&batch);
        }
    }
    share
}

/// Approximately `count` limits from 1 to `top` in geometric steps, and `own`.
pub(crate) fn ladder(top: u64, own: u64, count: u32) -> Vec<u64> {
    let top = top.clamp(1, Quota::MAX_LIMIT);
    let mut limits: Vec<u64> = (0..count)
        .map(|step| {
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "steps for people to look at; both ends are put right below"
            )]
            let limit = (top as f64).powf(f64::from(step) / f64::from(count - 1)).round() as u64;
            limit.clamp(1, top)
        })
        .collect();
    // Where geometric steps are less than 1, all whole numbers are limits.
    let count = u64::from(count);
    limits.extend(1..=if top <= count { top } else { count / 3 });
    limits.extend([1, top, own]);
    limits.sort_unstable();
    limits.dedup();
    limits
}

#[cfg(test)]
mod tests {
    use super::ladder;

    #[test]
    fn the_ladder_has_its_ends_and_length() {
        assert_eq!(ladder(0, 5, 60), [1, 5]);
        assert_eq!(ladder(3, 2, 60), [1, 2, 3]);
        for top in [60, 1_000, 1_000_000, 999_999_999_999] {
            let limits = ladder(top, 77, 60);
            assert_eq!(
                (limits[0], limits.contains(&77), limits.contains(&top)),
                (1, true, true)
            );
            assert!((40..=75).contains(&limits.len()), "{top}: {}", limits.len());
            assert!(limits.is_sorted());
        }
    }
}
