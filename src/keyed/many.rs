use super::KeyedRateLimiter;
use super::keys::Keys;
use crate::algorithm::Reclaim;
use crate::clock::Clock;
use crate::decision::{Admitted, Denied};

/// Keys whose lines are on the way at once: about as many as a core can wait for.
const AHEAD: usize = 16;

impl<A: Reclaim, C: Clock, K> KeyedRateLimiter<A, C, K> {
    /// Takes one permit of each of `keys`, one after the other, and hands each answer to `decided`.
    ///
    /// As so many calls of [`check`](Self::check), in the order of the keys (one that comes twice is charged twice),
    /// with one reading of the clock for all, and with the memory of sixteen keys asked for before the first of them is
    /// decided: for packet processors and proxies, which have many decisions to make at once and would wait for memory
    /// at each.
    ///
    /// The clock is read before the first key is taken from `keys`. So hand over what is there already: an iterator
    /// that waits for more makes the reading old, as at [`RateLimiter::check_at`](crate::RateLimiter::check_at).
    ///
    /// # Concurrency
    ///
    /// Each decision is one by itself: others may come in between. `decided` may call the limiter.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringgate::{CounterRing, KeyedRateLimiter, Quota};
    ///
    /// # #[cfg(feature = "quanta")]
    /// # fn main() -> Result<(), ringgate::ConfigError> {
    /// let limiter = KeyedRateLimiter::new(CounterRing::new(Quota::per_second(2)?)?, 1_000)?;
    /// let sources = [7_u64, 8, 7, 7];
    /// let mut passed = Vec::new();
    /// limiter.check_many(&sources, |_, answer| passed.push(answer.is_ok()));
    /// // The third of source 7 is one too many.
    /// assert_eq!(passed, [true, true, true, false]);
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "quanta"))]
    /// # fn main() {}
    /// ```
    pub fn check_many<'a, 'k, Q: ?Sized + 'k>(
        &'a self,
        keys: impl IntoIterator<Item = &'k Q>,
        mut decided: impl FnMut(&'k Q, Result<Admitted<'a, A>, Denied<'a, A>>),
    ) where
        K: Keys<Q>,
    {
        let now = self.clock.now();
        let table = self.store.table();
        let mut keys = keys.into_iter();
        let mut ahead = [const { None }; AHEAD];
        loop {
            // In steps of their own: what a core can look ahead is counted in instructions, so the fewer there are between
            // two reads of memory, the more of them are on their way at once.
            let mut count = 0;
            for (slot, key) in ahead.iter_mut().zip(&mut keys) {
                let fingerprint = self.fingerprint(key);
                *slot = Some((key, fingerprint, table.places(fingerprint)));
                count += 1;
            }
            let mut found = [None; AHEAD];
            for (found, (_, fingerprint, places)) in found.iter_mut().zip(ahead[..count].iter().flatten()) {
                *found = table.ask_for(*places, *fingerprint);
            }
            for (found, (key, fingerprint, _)) in found.iter().zip(ahead[..count].iter().flatten()) {
                let found = found.or_else(|| table.find_far(*fingerprint));
                decided(key, self.desk(*key).decide_with(found, *fingerprint, now, 1));
            }
            if count < AHEAD {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::algorithm::CounterRing;
    use crate::clock::ManualClock;
    use crate::keyed::KeyedBuilder;
    use crate::quota::Quota;

    /// Keys as they are.
    struct Plain;

    impl Keys<u64> for Plain {
        fn hash(&self, key: &u64) -> u64 {
            *key
        }
    }

    /// Whether it took an entry that was free or one that was idle, with states of one word or of several, and whatever
    /// the hasher.
    #[test]
    fn a_key_that_has_an_entry_is_found_near() {
        let count = if cfg!(miri) { 20 } else { 1_000 };
        let quota = Quota::per_second(2).expect("a quota");
        let one = CounterRing::builder(quota).build().expect("a ring");
        let several = CounterRing::builder(quota).unpacked().build().expect("a ring");
        for (ring, shift) in [(&one, 0), (&several, 0), (&one, 16), (&one, 32)] {
            let limiter = KeyedBuilder::new(ring.clone())
                .capacity(2 * count)
                .build_with(ManualClock::new(), Plain)
                .expect("a table");
            let table = limiter.store.table();
            // Nobody is led to the backyard.
            let is_led_to = |key| table.find_near(key).is_some() || table.find_in_backyard(key).is_some();
            for part in 0..8 {
                limiter.clock().advance(Duration::from_secs(60));
                for number in part * count..(part + 1) * count {
                    let key = (number + 1) << shift;
                    assert!(limiter.check(&key).is_ok());
                    assert!(is_led_to(key), "{number} << {shift}");
                }
                // The hints beside theirs are as they were.
                let mut keys = (part * count..(part + 1) * count).map(|number| (number + 1) << shift);
                assert!(keys.all(is_led_to), "part {part} << {shift}");
            }
            assert!(limiter.counts().reclaimed > 0);
        }
    }
}
