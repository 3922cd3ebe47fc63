//! The methods of an enum of algorithms that call the same method of the algorithm in it.

/// Writes the methods of [`Algorithm`](super::Algorithm) that no enum of algorithms makes in a way of its own. `$each` is a macro that
/// runs an expression on the algorithm of any variant.
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

/// Writes the methods of [`Reclaim`](super::Reclaim) that no enum of algorithms makes in a way of its own, as `forward_algorithm` does.
macro_rules! forward_reclaim {
    ($each:ident) => {
        fn span(&self) -> Duration {
            $each!(self, it => it.span())
        }

        fn counts_until<W: Words>(&self, words: W, at: Nanos, permits: u64) -> Nanos {
            $each!(self, it => it.counts_until(words, at, permits))
        }

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

        fn cells_and_unit(&self) -> Option<(u64, u64)> {
            $each!(self, it => it.cells_and_unit())
        }

        #[inline]
        fn validate_limit(&self, limit: u64) -> Result<(), ConfigError> {
            $each!(self, it => it.validate_limit(limit))
        }
    };
}

pub(super) use {forward_algorithm, forward_reclaim};
