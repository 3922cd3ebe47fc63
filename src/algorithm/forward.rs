//! Macros that write methods of the traits that several algorithms have in common.
//!
//! The argument of each is a macro that runs an expression on another value: the algorithm in an enum, the algorithm in a wrapper,
//! or the cells of a ring. A trait object cannot be that value, because the methods are generic over the words.
//!
//! | macro | methods | in |
//! |---|---|---|
//! | `forward_algorithm` | most of `Algorithm`, in permits | enums, `Lowered` |
//! | `forward_reclaim` | most of `Reclaim`, in permits | enums |
//! | `forward_first_word` | those of `Reclaim` about word 0 | enums, wrappers, rings |
//! | `forward_to_cells` | `Algorithm`, in cells | rings |
//! | `forward_reclaim_to_cells` | `Reclaim`, in cells | rings |

/// Writes the methods of [`Algorithm`](super::Algorithm) that enums of algorithms and [`Lowered`](super::Lowered) forward. `$each` is a macro that runs an
/// expression on the algorithm of any variant.
macro_rules! forward_algorithm {
    ($each:ident) => {
        fn words(&self) -> usize {
            $each!(self, it => it.words())
        }

        #[inline]
        fn max_request(&self) -> u64 {
            $each!(self, it => it.max_request())
        }

        fn bound(&self) -> u64 {
            $each!(self, it => it.bound())
        }

        fn window(&self) -> Duration {
            $each!(self, it => it.window())
        }

        fn ready_at<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
            $each!(self, it => it.ready_at(words, now, permits))
        }

        #[inline]
        fn earliest<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
            $each!(self, it => it.earliest(words, now, permits))
        }

        fn refund<W: Words>(&self, words: W, receipt: &Receipt, permits: u64) -> bool {
            $each!(self, it => it.refund(words, receipt, permits))
        }

        fn charge<W: Words>(&self, words: W, now: Nanos, permits: u64) -> u64 {
            $each!(self, it => it.charge(words, now, permits))
        }

        fn spent<W: Words>(&self, words: W, now: Nanos) -> u64 {
            $each!(self, it => it.spent(words, now))
        }

        fn idle_at<W: Words>(&self, words: W, now: Nanos) -> Option<Nanos> {
            $each!(self, it => it.idle_at(words, now))
        }

        fn restored_at(&self, now: Nanos, idle_after: Duration) -> Nanos {
            $each!(self, it => it.restored_at(now, idle_after))
        }

        fn restore<W: Words>(&self, words: W, at: Nanos, permits: u64) -> u64 {
            $each!(self, it => it.restore(words, at, permits))
        }
    };
}

/// Writes the methods of [`Reclaim`](super::Reclaim) about a value of word 0, as `forward_algorithm` does.
macro_rules! forward_first_word {
    ($each:ident) => {
        fn is_idle(&self, first: u64, now: Nanos) -> bool {
            $each!(self, it => it.is_idle(first, now))
        }

        fn advance(&self, first: u64, now: Nanos) -> Option<u64> {
            $each!(self, it => it.advance(first, now))
        }

        fn idle_from(&self, first: u64) -> Option<Nanos> {
            $each!(self, it => it.idle_from(first))
        }

        fn latest_time(&self, first: u64) -> Nanos {
            $each!(self, it => it.latest_time(first))
        }
    };
}

/// Runs an expression on the algorithm in a wrapper of one.
macro_rules! inner {
    ($wrapper:expr, $algorithm:ident => $work:expr) => {{
        let $algorithm = &$wrapper.algorithm;
        $work
    }};
}

/// Writes the methods of [`Reclaim`](super::Reclaim) that every enum of algorithms forwards, as `forward_algorithm` does.
macro_rules! forward_reclaim {
    ($each:ident) => {
        fn span(&self) -> Duration {
            $each!(self, it => it.span())
        }

        fn counts_until<W: Words>(&self, words: W, at: Nanos, permits: u64) -> Nanos {
            $each!(self, it => it.counts_until(words, at, permits))
        }

        $crate::algorithm::forward::forward_first_word!($each);

        fn finish_step<W: Words>(&self, words: W) {
            $each!(self, it => it.finish_step(words))
        }

        fn cells_and_unit(&self) -> Option<(u64, u64)> {
            $each!(self, it => it.cells_and_unit())
        }

        #[inline]
        fn lower_limits(&self) -> (u64, u64) {
            $each!(self, it => it.lower_limits())
        }
    };
}

/// Writes the methods of [`Algorithm`](super::Algorithm) that a ring makes by its cells. `$cells` is a macro that runs an
/// expression on the cells of the ring, in any representation.
macro_rules! forward_to_cells {
    ($cells:ident) => {
        #[inline(always)]
        fn decide<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Receipt> {
            if permits == 0 {
                return Some(Receipt::new(now, 0, 0));
            }
            $cells!(self, it => {
                let tick = it.tick(now);
                it.decide(words, tick, permits)
                    .map(|charged| Receipt::new(it.ticks().stamp(now, tick, charged), permits, charged))
            })
        }

        fn ready_at<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
            match permits {
                0 => Some(now),
                permits if permits > self.max_request() => None,
                permits => $cells!(self, it => it.ready_at(words, now, permits)),
            }
        }

        #[inline(always)]
        fn remaining<W: Words>(&self, words: W, now: Nanos) -> u64 {
            $cells!(self, it => it.remaining(words, now))
        }

        fn refund<W: Words>(&self, words: W, receipt: &Receipt, permits: u64) -> bool {
            if permits == 0 || permits > receipt.permits() {
                return permits == 0;
            }
            $cells!(self, it => it.refund(words, receipt, permits))
        }

        fn charge<W: Words>(&self, words: W, now: Nanos, permits: u64) -> u64 {
            if permits == 0 {
                return 0;
            }
            $cells!(self, it => it.charge(words, now, permits))
        }

        fn spent<W: Words>(&self, words: W, now: Nanos) -> u64 {
            $cells!(self, it => it.spent(words, now))
        }

        fn idle_at<W: Words>(&self, words: W, now: Nanos) -> Option<Nanos> {
            $cells!(self, it => it.idle_at(words, now))
        }

        fn restore<W: Words>(&self, words: W, at: Nanos, permits: u64) -> u64 {
            begin_and_charge(self, words, at, permits)
        }
    };
}

/// Writes the methods of [`Reclaim`](super::Reclaim) that a ring makes by its cells, as `forward_to_cells` does.
macro_rules! forward_reclaim_to_cells {
    ($cells:ident) => {
        #[inline(always)]
        fn attempt<W: Words>(&self, limit: Option<u64>, words: W, now: Nanos, permits: u64) -> Attempt {
            if permits == 0 {
                return Attempt::Admitted(Receipt::new(now, 0, 0));
            }
            $cells!(self, it => {
                let tick = it.tick(now);
                let limit = limit.unwrap_or(it.cell_window().limit());
                it.attempt_or_enter(limit, words, tick, permits)
                    .map(|charged| Receipt::new(it.ticks().stamp(now, tick, charged), permits, charged))
            })
        }

        $crate::algorithm::forward::forward_first_word!($cells);
    };
}

pub(super) use {
    forward_algorithm, forward_first_word, forward_reclaim, forward_reclaim_to_cells, forward_to_cells, inner,
};
