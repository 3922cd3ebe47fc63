//! One limiter, and a table of keys, by the methods that both have.

use ringgate::keyed::Keys;
use ringgate::{
    Admitted, Algorithm, Denied, KeyedRateLimiter, ManualClock, Nanos, RateLimiter, Receipt, Settled,
};

use crate::common::Any;

/// The hash of a key is the key itself, so that its buckets are the same in each run.
#[derive(Clone, Debug)]
pub(crate) struct Plain;

impl Keys<u64> for Plain {
    fn hash(&self, key: &u64) -> u64 {
        key.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// A decision without its borrow. The number is that of the remaining permits, and the time is the retry time.
#[derive(Debug)]
pub(crate) enum Answer {
    Admitted(Receipt, u64),
    Denied(Option<Nanos>, u64),
}

impl Answer {
    fn new<A: Algorithm>(answer: Result<Admitted<'_, A>, Denied<'_, A>>) -> Self {
        match answer {
            Ok(admitted) => {
                let remaining = admitted.remaining();
                Self::Admitted(admitted.into_receipt(), remaining)
            }
            Err(denied) => {
                let retry = denied.retry_after();
                let retry = retry.map(|after| denied.at().saturating_add(after));
                Self::Denied(retry, denied.remaining())
            }
        }
    }
}

/// A limiter whose methods take a limit, which is the limiter's own if it is `None`.
pub(crate) trait Target {
    fn decide(&self, key: u64, limit: Option<u64>, now: Nanos, permits: u64) -> Answer;
    fn remaining(&self, key: u64, limit: Option<u64>) -> u64;
    fn settle(&self, key: u64, limit: Option<u64>, receipt: Receipt, actual: u64) -> Settled;
    /// Resets the key, if the limiter has keys.
    fn reset(&self, key: u64) -> bool;
    /// Pauses the limiter, if it can be paused.
    fn pause_until(&self, time: Nanos) -> bool;
    fn resume(&self);
}

const RANGE: &str = "a limit that is not above the limiter's";

impl Target for RateLimiter<Any, ManualClock> {
    fn decide(&self, _: u64, limit: Option<u64>, now: Nanos, permits: u64) -> Answer {
        match limit {
            None => Answer::new(self.check_at(now, permits)),
            Some(limit) => Answer::new(self.with_limit(limit).expect(RANGE).check_at(now, permits)),
        }
    }

    fn remaining(&self, _: u64, limit: Option<u64>) -> u64 {
        match limit {
            None => self.peek().remaining(),
            Some(limit) => self.with_limit(limit).expect(RANGE).peek().remaining(),
        }
    }

    fn settle(&self, _: u64, limit: Option<u64>, receipt: Receipt, actual: u64) -> Settled {
        match limit {
            None => Self::settle(self, receipt, actual),
            Some(limit) => self.with_limit(limit).expect(RANGE).settle(receipt, actual),
        }
    }

    fn reset(&self, _: u64) -> bool {
        false
    }

    fn pause_until(&self, time: Nanos) -> bool {
        Self::pause_until(self, time);
        true
    }

    fn resume(&self) {
        Self::resume(self);
    }
}

impl Target for KeyedRateLimiter<Any, ManualClock, Plain> {
    fn decide(&self, key: u64, limit: Option<u64>, now: Nanos, permits: u64) -> Answer {
        match limit {
            None => Answer::new(self.check_at(&key, now, permits)),
            Some(limit) => {
                let lowered = self.with_limit(limit).expect(RANGE);
                Answer::new(lowered.check_at(&key, now, permits))
            }
        }
    }

    fn remaining(&self, key: u64, limit: Option<u64>) -> u64 {
        match limit {
            None => self.peek(&key).remaining(),
            Some(limit) => self.with_limit(limit).expect(RANGE).peek(&key).remaining(),
        }
    }

    fn settle(&self, key: u64, limit: Option<u64>, receipt: Receipt, actual: u64) -> Settled {
        match limit {
            None => Self::settle(self, &key, receipt, actual),
            Some(limit) => self.with_limit(limit).expect(RANGE).settle(&key, receipt, actual),
        }
    }

    fn reset(&self, key: u64) -> bool {
        Self::reset(self, &key)
    }

    fn pause_until(&self, _: Nanos) -> bool {
        false
    }

    fn resume(&self) {}
}
