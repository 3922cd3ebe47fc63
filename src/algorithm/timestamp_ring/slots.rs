//! Claims in the slots: the protocol over words that are never reused for another key.

use core::sync::atomic::Ordering;

use super::TimestampRing;
use super::word::{ClaimWord, LogLayout};
use crate::algorithm::attempt::{Attempt, until_decided};
use crate::sync::Words;
use crate::time::Nanos;

/// The words of one limiter, and their transitions.
#[derive(Clone, Copy)]
struct Slots<W> {
    words: W,
    layout: LogLayout,
}

/// The next position to be claimed.
#[derive(Clone, Copy)]
struct NextPosition {
    /// Its slot.
    index: u64,
    /// The slot before it.
    before: u64,
    /// The claim of the position before it.
    newest: ClaimWord,
    /// The claim in its slot, which the claim of this position replaces.
    oldest: ClaimWord,
}

impl<W: Words> Slots<W> {
    const HINT: usize = 0;

    #[inline]
    fn new(words: W, layout: LogLayout) -> Self {
        Self { words, layout }
    }

    /// The slot at which the search for the next position begins: that of the newest claim, unless threads claim at the same time.
    #[inline]
    fn hint(self) -> u64 {
        // Relaxed: the search is right from every slot, since it compares the slots themselves.
        self.words.load(Self::HINT, Ordering::Relaxed)
    }

    #[inline]
    fn set_hint(self, index: u64) {
        self.words.store_hint(Self::HINT, index);
    }

    #[inline]
    fn after(self, index: u64) -> u64 {
        let next = index + 1;
        if next == self.layout.slots() { 0 } else { next }
    }

    /// The slot that is `offset` slots after `index`. `offset` is at most L.
    #[inline]
    fn at_offset(self, index: u64, offset: u64) -> u64 {
        let sum = index + offset;
        if sum < self.layout.slots() {
            sum
        } else {
            sum - self.layout.slots()
        }
    }

    #[inline]
    fn slot(self, index: u64) -> ClaimWord {
        // Acquire: pairs with the Release in `claim`. A thread that observes the claim of a position observes all earlier
        // claims, because each claimer has observed the claim before. So it never reads a value that is two laps old.
        // Claim: timestamp_ring slots 2, a thread that reads a slot observes the claim before it.
        let raw = self.words.load(Self::word_index(index), Ordering::Acquire);
        ClaimWord::decode(raw, self.layout)
    }

    #[inline]
    fn claim(self, index: u64, seen: ClaimWord, new: ClaimWord) -> bool {
        // Release: pairs with the Acquire in `slot`; publishes the earlier claims as the claimer has observed them.
        // Claim: timestamp_ring slots 2, a claim publishes the claims that its thread has observed.
        // Claim: timestamp_ring slots 3, a claim expects the slot that was read.
        self.words
            .exchange(Self::word_index(index), seen.raw(), new.raw(), Ordering::Release)
            .is_ok()
    }

    #[inline]
    fn word_index(index: u64) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "below the number of slots, which are in memory"
        )]
        let index = index as usize;
        index + 1
    }

    /// Searches for the next position from the hint on. `None` after two laps, during which other threads have claimed.
    fn next_position(self) -> Option<NextPosition> {
        let mut index = self.hint();
        let mut newest = self.slot(index);
        for _ in 0..=2 * self.layout.slots() {
            let before = index;
            index = self.after(index);
            let oldest = self.slot(index);
            if !oldest.follows(newest, index == 0) {
                return Some(NextPosition {
                    index,
                    before,
                    newest,
                    oldest,
                });
            }
            newest = oldest;
        }
        None
    }

    /// Claims the rest of the positions of a request, which has made the claim `newest` of the slot `index`. Any thread may do
    /// that, because every thread writes the same words.
    fn claim_rest(self, mut index: u64, mut newest: ClaimWord) {
        for _ in 0..newest.rest() {
            let next = self.after(index);
            let seen = self.slot(next);
            if seen.follows(newest, next == 0) {
                newest = seen;
            } else if newest.rest() > 0 {
                let claimed = seen.next(newest.time(), newest.rest() - 1);
                // If this fails, another thread has made this claim.
                self.claim(next, seen, claimed);
                newest = claimed;
            } else {
                // The claim `newest` is of a later request, so all positions of this one are claimed.
                break;
            }
            index = next;
        }
        self.set_hint(index);
    }
}

/// Whether `word` follows `before`, whose time is not later. In a separate function, because the times seldom are equal.
#[cold]
#[inline(never)]
fn same_time_follows(word: ClaimWord, before: ClaimWord, is_first: bool) -> bool {
    word.follows(before, is_first)
}

impl TimestampRing {
    fn slots<W: Words>(&self, words: W) -> Slots<W> {
        Slots::new(words, self.layout)
    }

    /// Decides once, about one permit, if no slot is unused. `Retry`: the hint is not that of the newest claim, another thread
    /// has claimed the next position, or time has ended.
    ///
    /// Times are compared in place, above the lower fields of their words, because each variable shift takes two instructions.
    #[inline(always)]
    pub(super) fn attempt_one_in_slots<W: Words>(&self, words: W, now: Nanos) -> Attempt<u64> {
        let slots = self.slots(words);
        let hint = slots.hint();
        let index = slots.after(hint);
        let (newest, oldest) = (slots.slot(hint), slots.slot(index));
        let below_time = self.in_place.below_time;
        let newest_time = newest.raw() & !below_time;
        let is_next = oldest.raw() < newest_time || !same_time_follows(oldest, newest, index == 0);
        // The bits below the time are `rest` and one bit for `lap`.
        let has_rest = newest.raw() - newest_time > 1;
        if has_rest || !is_next || now > self.in_place.last_reading {
            return Attempt::Retry;
        }
        // When `oldest` was read, this was the next position. It is denied if its slot is too young at `decision_time`, the later
        // of the reading and the unit before the newest time. The lower bits of `old_at` are those of `oldest`. They change
        // neither comparison, because `time + below_time` has all of them set, and `newest_time` has none.
        let units = self.unit.quotient(now.get());
        let time = self.layout.in_place(units + self.origin);
        let old_at = oldest.raw() + self.in_place.window;
        if old_at > time + below_time && old_at >= newest_time {
            return Attempt::Denied;
        }
        // Rounded up, as in `record_time`.
        let time = if units * self.unit.divisor() < now.get() {
            time + below_time + 1
        } else {
            time
        };
        // Claim: timestamp_ring slots 4, a recorded time is not before the newest one.
        let claimed = oldest.next_in_place(time.max(newest_time));
        if !slots.claim(index, oldest, claimed) {
            return Attempt::Retry;
        }
        slots.set_hint(index);
        Attempt::Admitted(claimed.raw())
    }

    /// Repeats the attempt until it decides.
    #[cold]
    #[inline(never)]
    pub(super) fn take_in_slots<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<u64> {
        until_decided(|| self.attempt_in_slots(self.quota.limit(), words, now, permits))
    }

    /// Decides once, about any number of permits, with the limit `limit`, which is at most the number of slots. `Retry`: another
    /// thread has claimed the next position, or this call has claimed the rest of the positions of another request.
    #[inline(never)]
    pub(super) fn attempt_in_slots<W: Words>(
        &self,
        limit: u64,
        words: W,
        now: Nanos,
        permits: u64,
    ) -> Attempt<u64> {
        if permits > limit {
            return Attempt::Denied;
        }
        let slots = self.slots(words);
        let Some(next) = slots.next_position() else {
            return Attempt::Retry;
        };
        // Claim: timestamp_ring slots 7, a thread claims the rest of a suspended request.
        if next.newest.rest() > 0 {
            slots.claim_rest(next.before, next.newest);
            return Attempt::Retry;
        }
        // The times of the slots increase from `oldest` on, so the last of the slots that must be old enough decides.
        // Claim: timestamp_ring slots 5, a lower limit leaves slots after those of the request unused.
        let last = permits + (self.layout.slots() - limit) - 1;
        let latest = slots.slot(slots.at_offset(next.index, last)).time();
        let newest = next.newest.time();
        if latest + self.window > self.decision_time(now, newest) {
            // Claim: timestamp_ring slots 6, a denial has read the next slot twice.
            return if slots.slot(next.index) == next.oldest {
                // The slots were read while the next position was not claimed.
                Attempt::Denied
            } else {
                Attempt::Retry
            };
        }
        let claimed = next.oldest.next(self.record_time(now, newest), permits - 1);
        if !slots.claim(next.index, next.oldest, claimed) {
            return Attempt::Retry;
        }
        slots.claim_rest(next.index, claimed);
        Attempt::Admitted(claimed.raw())
    }

    /// Calls `query` with a consistent state of the words: repeats it until the next position is unchanged afterwards. The
    /// arguments are the newest time and the times of the slots, oldest first. The positions that a request has not claimed yet
    /// have the time of its claim.
    pub(super) fn observe_in_slots<W: Words, T>(
        &self,
        words: W,
        mut query: impl FnMut(u64, &mut dyn Iterator<Item = u64>) -> T,
    ) -> T {
        let slots = self.slots(words);
        loop {
            let Some(next) = slots.next_position() else {
                continue;
            };
            let (newest, rest) = (next.newest.time(), next.newest.rest());
            let mut times = (rest..rest + self.layout.slots()).map(|offset| {
                if offset < self.layout.slots() {
                    slots.slot(slots.at_offset(next.index, offset)).time()
                } else {
                    newest
                }
            });
            let result = query(newest, &mut times);
            if slots.slot(next.index) == next.oldest {
                return result;
            }
        }
    }

    /// Claims `permits` positions, one at a time, whatever the ages of their slots are. Returns `permits`.
    pub(super) fn charge_in_slots<W: Words>(&self, words: W, now: Nanos, permits: u64) -> u64 {
        let slots = self.slots(words);
        let mut charged = 0;
        while charged < permits {
            let Some(next) = slots.next_position() else {
                continue;
            };
            if next.newest.rest() > 0 {
                slots.claim_rest(next.before, next.newest);
                continue;
            }
            let time = self.record_time(now, next.newest.time());
            // Claim: timestamp_ring slots 1, a charge stores no time twice in a slot.
            if next.oldest.time() >= time {
                // Every slot already has this time, so a further charge changes no decision.
                return permits;
            }
            if slots.claim(next.index, next.oldest, next.oldest.next(time, 0)) {
                slots.set_hint(next.index);
                charged += 1;
            }
        }
        charged
    }
}
