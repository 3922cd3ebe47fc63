//! An entry by itself, by other limits and algorithms: exact replays, key by key.

use ringgate::{Algorithm, AnyAlgorithm, ConfigError, Quota};

use crate::algorithm::Counting;
use crate::args::AlgorithmName;
use crate::by_key::{Asked, Visitor};
use crate::span::Span;
use crate::window::Window;
use crate::words::LazyWords;

/// Requests of a key that are held before they are replayed: a key with fewer is not replayed by limits that it
/// cannot reach.
const HELD: usize = 1 << 12;

/// The requests of the present key that were not replayed yet, and how many permits they are.
#[derive(Debug, Default)]
struct Held {
    asked: Vec<Asked>,
    permits: u128,
    /// Whether some of this key's were replayed already.
    begun: bool,
}

impl Held {
    /// Holds one more; true when they are to be replayed.
    #[inline]
    fn push(&mut self, asked: Asked) -> bool {
        self.asked.push(asked);
        self.permits += u128::from(asked.permits);
        self.asked.len() >= HELD
    }
}

/// One algorithm and its words for the present key.
#[derive(Debug)]
struct Alone {
    limit: u64,
    policy: AnyAlgorithm,
    words: LazyWords,
}

impl Alone {
    fn new(counting: Counting, quota: Quota) -> Result<Self, ConfigError> {
        Ok(Self {
            limit: quota.limit(),
            policy: counting.build(quota)?,
            words: LazyWords::default(),
        })
    }

    #[inline]
    fn admits(&self, span: Span, asked: Asked) -> bool {
        self.policy
            .decide(&self.words, span.reading(asked.time), asked.permits)
            .is_ok()
    }
}

/// What a limit would have denied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Denials {
    pub(crate) limit: u64,
    pub(crate) requests: u64,
    pub(crate) keys: u64,
}

/// Replays by several limits at once. One key's words for each limit are in memory at a time.
#[derive(Debug)]
pub(crate) struct WhatIf {
    counting: Counting,
    span: Span,
    limits: Vec<(Alone, Denials, bool)>,
    held: Held,
}

impl WhatIf {
    /// By those limits in the window that the algorithm can have.
    pub(crate) fn new(
        counting: Counting,
        window: core::time::Duration,
        limits: impl IntoIterator<Item = u64>,
        span: Span,
    ) -> Self {
        let limits = limits.into_iter().filter_map(|limit| {
            let alone = Alone::new(counting, Quota::new(limit, window).ok()?).ok()?;
            let none = Denials {
                limit,
                ..Denials::default()
            };
            Some((alone, none, false))
        });
        Self {
            counting,
            span,
            limits: limits.collect(),
            held: Held::default(),
        }
    }

    fn replay(&mut self) {
        let Held {
            asked,
            permits,
            begun,
        } = &mut self.held;
        for (alone, denials, denied) in &mut self.limits {
            // Known only as long as these are all.
            if !*begun && asked.len() < HELD && self.counting.never_refuses(alone.limit, *permits) {
                continue;
            }
            let before = denials.requests;
            for one in &*asked {
                denials.requests += u64::from(!alone.admits(self.span, *one));
            }
            *denied |= denials.requests > before;
        }
        asked.clear();
        *begun = true;
    }

    /// What each limit denied.
    pub(crate) fn denials(&self) -> impl Iterator<Item = Denials> {
        self.limits.iter().map(|(_, denials, _)| *denials)
    }
}

impl Visitor for WhatIf {
    #[inline]
    fn asked(&mut self, asked: Asked) {
        if self.held.push(asked) {
            self.replay();
        }
    }

    fn end(&mut self, _key: u64) {
        self.replay();
        (self.held.begun, self.held.permits) = (false, 0);
        for (alone, denials, denied) in &mut self.limits {
            denials.keys += u64::from(*denied);
            *denied = false;
            alone.words.clear();
        }
    }
}

/// What an algorithm would have done.
#[derive(Debug)]
pub(crate) struct Compared {
    pub(crate) algorithm: AlgorithmName,
    pub(crate) admitted: u64,
    pub(crate) denied: u64,
    /// The most permits that it admitted to a key in one window.
    pub(crate) worst: u64,
    pub(crate) bound: u64,
    /// Bytes of state of one key.
    pub(crate) bytes: u64,
    alone: Alone,
    window: Window,
}

/// Replays by all algorithms at once.
#[derive(Debug)]
pub(crate) struct Compare {
    span: Span,
    held: Held,
    pub(crate) algorithms: Vec<Compared>,
    /// Why an algorithm is left out.
    pub(crate) left_out: Vec<(AlgorithmName, ConfigError)>,
}

impl Compare {
    pub(crate) fn new(counting: Counting, quota: Quota, window: i64, span: Span) -> Self {
        let mut algorithms = Vec::new();
        let mut left_out = Vec::new();
        for algorithm in AlgorithmName::ALL {
            match Alone::new(counting.by(algorithm), quota) {
                Ok(alone) => algorithms.push(Compared {
                    algorithm,
                    admitted: 0,
                    denied: 0,
                    worst: 0,
                    bound: alone.policy.bound(),
                    bytes: 8 * alone.policy.words() as u64,
                    alone,
                    window: Window::new(window),
                }),
                Err(error) => left_out.push((algorithm, error)),
            }
        }
        Self {
            span,
            held: Held::default(),
            algorithms,
            left_out,
        }
    }

    fn replay(&mut self) {
        for one in &mut self.algorithms {
            for asked in &self.held.asked {
                if one.alone.admits(self.span, *asked) {
                    one.admitted += 1;
                    one.window.push(asked.time, asked.permits);
                } else {
                    one.denied += 1;
                }
            }
        }
        self.held.asked.clear();
    }
}

impl Visitor for Compare {
    #[inline]
    fn asked(&mut self, asked: Asked) {
        if self.held.push(asked) {
            self.replay();
        }
    }

    fn end(&mut self, _key: u64) {
        self.replay();
        for one in &mut self.algorithms {
            one.worst = one.worst.max(one.window.most());
            one.window.clear();
            one.alone.words.clear();
        }
    }
}

/// About so many limits from 1 to `top`, each a part larger than the one before; `own` is among them.
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
    // Where steps of a part are less than one, there are as many whole ones.
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
    fn limits_go_up_to_the_top_and_are_about_so_many() {
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
