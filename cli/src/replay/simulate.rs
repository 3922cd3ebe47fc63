//! Exact replays of one quota with other limits and algorithms, key by key, on several threads.

use ringgate::{Algorithm, AnyAlgorithm, Quota};

use crate::failure::Failure;
use crate::progress::Progress;
use crate::replay::batch::{Batch, RequestOfKey, on_threads};
use crate::replay::by_key::ByKey;
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
        for (part, requests) in batch.parts() {
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

/// Runs all simulations over the requests, each on one thread.
///
/// # Errors
///
/// When a temporary file fails.
pub(crate) fn simulate(
    mut simulations: Vec<Simulation>,
    by_key: &mut ByKey,
    progress: &mut Progress,
    what: &'static str,
) -> Result<Vec<Simulation>, Failure> {
    by_key.visit(progress, what, |batch| {
        on_threads(&mut simulations, |_, simulation| simulation.replay(batch));
    })?;
    Ok(simulations)
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
