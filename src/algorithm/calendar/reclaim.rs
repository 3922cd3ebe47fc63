use core::time::Duration;

use super::Calendar;
use super::word::Word;
use crate::algorithm::attempt::Attempt;
use crate::algorithm::traits::{Reclaim, lowered_limit};
use crate::error::ConfigError;
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::Nanos;

impl Reclaim for Calendar {
    /// The length of the longest period.
    fn span(&self) -> Duration {
        self.longest
    }

    /// The end of the period that is charged.
    fn counts_until<W: Words>(&self, words: W, at: Nanos, _permits: u64) -> Nanos {
        let current = self.current(words, at);
        self.start_of(current.period() + 1).unwrap_or(Nanos::MAX)
    }

    #[inline]
    fn attempt<W: Words>(&self, limit: Option<u64>, words: W, now: Nanos, permits: u64) -> Attempt {
        if permits == 0 {
            return Attempt::Admitted(Receipt::new(now, 0, 0));
        }
        self.attempt_once(limit.unwrap_or(self.limit), words, now, permits)
            .map(|period| self.receipt(now, permits, period))
    }

    fn is_idle(&self, first: u64, now: Nanos) -> bool {
        Word(first).period() < self.period_at(now)
    }

    /// The period of `now`, or the next one if the word has that of `now` already.
    fn advance(&self, first: u64, now: Nanos) -> Option<u64> {
        let (seen, current) = (Word(first).period(), self.period_at(now));
        if seen > current {
            return None;
        }
        let period = current.max(seen + 1);
        self.start_of(period)?;
        Some(Word::new(period, 0).0)
    }

    fn idle_from(&self, first: u64) -> Option<Nanos> {
        match Word(first).period() {
            0 => Some(Nanos::ZERO),
            period => self.start_of(period + 1),
        }
    }

    fn latest_time(&self, first: u64) -> Nanos {
        self.start_of(Word(first).period()).unwrap_or(Nanos::ZERO)
    }

    fn with_limit(&self, limit: u64) -> Result<Self, ConfigError> {
        lowered_limit(limit, self.limit)?;
        Ok(Self {
            limit,
            ..self.clone()
        })
    }

    fn lower_limits(&self) -> (u64, u64) {
        (1, self.limit)
    }
}
