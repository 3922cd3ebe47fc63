use super::keys::Keys;
use super::limiter::KeyedRateLimiter;
use crate::algorithm::Reclaim;
use crate::clock::Clock;
use crate::decision::{Admitted, Denied};

/// Keys whose lines are prefetched at once: about as many loads as a core can have outstanding.
const AHEAD: usize = 16;

impl<A: Reclaim, C: Clock, K> KeyedRateLimiter<A, C, K> {
    /// Takes one permit of each of `keys`, one after the other, and hands each answer to `decided`.
    ///
    /// The decisions are those of one [`check`](Self::check) per key, in the order of the keys; a key that occurs twice
    /// is charged twice. The clock is read once for all keys, and the entries of sixteen keys are prefetched before the
    /// first of them is decided. This is for packet processors and proxies, which decide many keys at once and would
    /// wait for memory at each.
    ///
    /// The clock is read before the first key is taken from `keys`. So pass keys that are available at once. An
    /// iterator that waits for more keys makes the reading old, as
    /// [`RateLimiter::check_at`](crate::RateLimiter::check_at) describes.
    ///
    /// # Concurrency
    ///
    /// The decisions are separate: decisions of other threads may come in between. `decided` may call the limiter.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringgate::{CounterRing, KeyedRateLimiter, Quota};
    ///
    /// let limiter = KeyedRateLimiter::new(CounterRing::new(Quota::per_second(2)?)?, 1_000)?;
    /// let sources = [7_u64, 8, 7, 7];
    /// let mut passed = Vec::new();
    /// limiter.check_many(&sources, |_, answer| passed.push(answer.is_ok()));
    /// // The third of source 7 is one too many.
    /// assert_eq!(passed, [true, true, true, false]);
    /// # Ok::<(), ringgate::ConfigError>(())
    /// ```
    pub fn check_many<'a, 'k, Q: ?Sized + 'k>(
        &'a self,
        keys: impl IntoIterator<Item = &'k Q>,
        mut decided: impl FnMut(&'k Q, Result<Admitted<'a, A>, Denied<'a, A>>),
    ) where
        K: Keys<Q>,
    {
        let now = self.clock.now();
        let table = self.states.table();
        let mut keys = keys.into_iter();
        let mut ahead = [const { None }; AHEAD];
        loop {
            // Hashing, prefetching and deciding are separate loops. A core looks ahead by a limited number of
            // instructions, so fewer instructions between two loads let more loads run at once.
            let mut count = 0;
            for (slot, key) in ahead.iter_mut().zip(&mut keys) {
                *slot = Some((key, self.fingerprint(key)));
                count += 1;
            }
            for (_, fingerprint) in ahead[..count].iter().flatten() {
                table.prefetch(*fingerprint);
            }
            for (key, fingerprint) in ahead[..count].iter().flatten() {
                let found = table.find(*fingerprint);
                decided(key, self.decider(*key).decide_with(found, *fingerprint, now, 1));
            }
            if count < AHEAD {
                return;
            }
        }
    }
}
