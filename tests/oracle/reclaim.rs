//! Words that pass to another key equal fresh words, and a lowered limit equals a limit of that size.

use core::cell::Cell;
use core::sync::atomic::Ordering;

use proptest::prelude::*;
use ringgate::algorithm::{Attempt, Reclaim};
use ringgate::sync::Words;
use ringgate::{Algorithm, Nanos};

use super::answers::Answers;
use super::walk::{
    Act, HORIZON, Ring, Walk, acts, anywhere, asks, back_and_forth, config, exact, forward, history, nanos,
    ring, size, subject,
};
use crate::common::{Any, State, unit};

/// The bits of word 0 that belong to a table.
const TABLE: u64 = 3 << 62;

pub(crate) fn first(state: &State) -> u64 {
    state.shared().load(0, Ordering::Relaxed)
}

/// Copies the words, with another word 0.
pub(crate) fn with_first(state: &State, first: u64) -> State {
    let copy = state.clone();
    let seen = copy.shared().load(0, Ordering::Relaxed);
    let set = copy.shared().exchange(0, seen, first, Ordering::Relaxed);
    assert!(set.is_ok());
    copy
}

/// Words with any values, which no exchange changes. Loads and exchanges are counted.
#[derive(Clone, Copy)]
struct Stone<'a> {
    words: &'a [u64],
    steps: &'a Cell<usize>,
}

impl Words for Stone<'_> {
    fn load(self, index: usize, _: Ordering) -> u64 {
        self.steps.set(self.steps.get() + 1);
        self.words[index]
    }

    fn exchange(self, index: usize, _: u64, _: u64, _: Ordering) -> Result<u64, u64> {
        self.steps.set(self.steps.get() + 1);
        Err(self.words[index])
    }
}

proptest! {
    #![proptest_config(config())]

    /// Word 0 is below 2^62, and is 0 only before the first write.
    #[test]
    fn the_first_word_uses_only_its_bits(subject in subject(), history in history(anywhere(), acts())) {
        let mut walk = Walk::new(&subject.algorithm);
        let mut written = false;
        for op in history {
            let before = first(&walk.state);
            walk.step(op);
            let word = first(&walk.state);
            written |= word != before;
            prop_assert_eq!(word & TABLE, 0);
            prop_assert!(!written || word != 0);
        }
    }

    /// An advanced word is greater than the current word and every word before it, and stays within its bits.
    #[test]
    fn an_advanced_word_is_above_every_earlier_word(subject in subject(), history in history(anywhere(), acts())) {
        let mut walk = Walk::new(&subject.algorithm);
        let it = walk.algorithm;
        let mut highest = 0;
        for op in history {
            walk.step(op);
            let word = first(&walk.state);
            highest = highest.max(word);
            let now = walk.at();
            let later = it.advance(word, now);
            if it.is_idle(word, now) {
                prop_assert!(later.is_some_and(|later| later > highest));
            }
            if let Some(later) = later {
                prop_assert!(later > word && later & TABLE == 0);
                // A bucket that is not idle is only above its current word.
                prop_assert!(later > highest || matches!(it, Any::Gcra(_)));
            }
        }
    }

    /// A state is idle from `idle_at` on, and not a nanosecond earlier.
    #[test]
    fn idle_at_is_the_first_idle_time(subject in subject(), history in history(anywhere(), acts())) {
        let mut walk = Walk::new(&subject.algorithm);
        let it = walk.algorithm;
        for op in history {
            walk.step(op);
            let word = first(&walk.state);
            let Some(from) = it.idle_from(word) else {
                prop_assert!(!it.is_idle(word, walk.at()));
                continue;
            };
            prop_assert!(it.is_idle(word, from), "{:?}", from);
            if from > Nanos::ZERO {
                prop_assert!(!it.is_idle(word, Nanos::new(from.get() - 1)), "{:?}", from);
            }
        }
    }

    /// An idle state was renewed at some reading. A request with an older reading is decided at that reading, or
    /// denied.
    #[test]
    fn a_renewed_state_does_not_go_back_in_time(
        subject in subject(),
        history in history(forward(), acts()),
        silence in forward(),
        back in 0_u64..4,
    ) {
        let mut walk = Walk::after(&subject.algorithm, history);
        let it = walk.algorithm;
        walk.go(silence);
        let word = first(&walk.state);
        if !it.is_idle(word, walk.at()) {
            walk.now = walk.newest + 2 * nanos(it.span()) + nanos(it.window());
            // Debt counts for longer.
            prop_assume!(it.is_idle(word, walk.at()));
        }
        let later = it.advance(word, walk.at()).expect("it is idle");
        let reached = it.latest_time(later);
        prop_assert!(reached <= walk.at());
        let cell = nanos(it.span());
        prop_assert!(reached.get() + cell > walk.now);
        let state = with_first(&walk.state, later);
        let older = Nanos::new(walk.now.saturating_sub(back * nanos(it.window()) / 3));
        // A bucket is ahead of an older reading, and has room only for permits that have drained.
        let room = it.remaining(state.shared(), older);
        match it.decide(state.shared(), older, room.max(1)) {
            Some(receipt) if matches!(it, Any::Gcra(_)) => prop_assert!(receipt.at() == older),
            Some(receipt) => prop_assert!(receipt.at() >= reached),
            None => prop_assert_eq!(room, 0),
        }
    }

    /// An idle state answers and decides as a fresh one, both with the advanced word and with its own.
    #[test]
    fn an_idle_state_is_a_fresh_one(
        subject in subject(),
        before in history(back_and_forth(), acts()),
        silence in forward(),
        after in history(forward(), acts()),
    ) {
        let mut walk = Walk::after(&subject.algorithm, before);
        let it = walk.algorithm;
        walk.now = walk.newest;
        walk.go(silence);
        if !it.is_idle(first(&walk.state), walk.at()) {
            walk.now = walk.newest + 2 * nanos(it.span()) + nanos(it.window());
            // Debt counts for longer.
            prop_assume!(it.is_idle(first(&walk.state), walk.at()));
        }
        let later = it.advance(first(&walk.state), walk.at()).expect("it is idle");
        let begin = walk.now;
        let used = walk.state.clone();
        for state in [used.clone(), with_first(&used, later)] {
            let (mut one, mut fresh) = (Walk::new(it), Walk::new(it));
            one.state = state;
            (one.now, fresh.now) = (begin, begin);
            prop_assert_eq!(Answers::from(it, &one.state, one.at()), Answers::from(it, &fresh.state, fresh.at()));
            for &op in &after {
                prop_assert_eq!(one.step(op), fresh.step(op));
                prop_assert_eq!(Answers::at(it, &one.state, one.at()), Answers::at(it, &fresh.state, fresh.at()));
            }
        }
    }

    /// After a silence of `span`, the words equal fresh ones. A bucket reports this later.
    #[test]
    fn an_admission_counts_for_no_longer_than_its_span(
        subject in subject(),
        history in history(forward(), asks()),
    ) {
        let walk = Walk::after(&subject.algorithm, history);
        let it = walk.algorithm;
        let then = walk.at().saturating_add(it.span());
        prop_assert_eq!(it.idle_at(walk.state.shared(), then), Some(then));
        if !matches!(it, Any::Gcra(_)) {
            prop_assert!(it.is_idle(first(&walk.state), then));
        }
        let then = then.saturating_add(it.span()).saturating_add(it.window());
        prop_assert!(it.is_idle(first(&walk.state), then));
    }

    /// A live state remains as strict: it admits the requests that it would have admitted at the next tick, and no
    /// others.
    #[test]
    fn a_live_state_stays_as_strict(
        subject in exact(),
        before in history(back_and_forth(), acts()),
        after in prop::collection::vec((forward(), size()), 1..20),
    ) {
        let mut walk = Walk::after(&subject.algorithm, before);
        let it = walk.algorithm;
        walk.now = walk.newest;
        let Some(later) = it.advance(first(&walk.state), walk.at()) else { return Ok(()) };
        let (one, other) = (with_first(&walk.state, later), walk.state.clone());
        // From the beginning of the next tick, both states have the same time.
        let tick = match it {
            Any::Counter(ring) => nanos(ring.cell()),
            Any::Log(ring) => 2 * unit(ring.max_request()),
            _ => 0,
        };
        walk.now = walk.newest + tick;
        for (step, size) in after {
            walk.go(step);
            let permits = size.of(it.max_request());
            let taken = it.decide(one.shared(), walk.at(), permits).is_some();
            prop_assert!(!taken || it.decide(other.shared(), walk.at(), permits).is_some());
        }
    }

    /// Repeating `attempt` until there is an answer equals `decide`.
    #[test]
    fn attempts_end_in_a_decision(subject in subject(), history in history(anywhere(), asks())) {
        let it = &subject.algorithm;
        let (one, other) = (State::fresh(it), State::fresh(it));
        let window = nanos(it.window());
        let mut now = 0;
        for (step, act) in history {
            now = step.apply(now, window, window.div_ceil(5));
            let Act::Ask(size) = act else { continue };
            let (at, permits) = (Nanos::new(now), size.of(it.max_request()));
            // Without other threads, only the entry of a cell needs one more attempt.
            let tried = match it.attempt(None, one.shared(), at, permits) {
                Attempt::Retry => it.attempt(None, one.shared(), at, permits),
                decided => decided,
            };
            let expected = it.decide(other.shared(), at, permits);
            prop_assert_eq!(tried, expected.map_or(Attempt::Denied, Attempt::Admitted));
            prop_assert_eq!(format!("{one:?}"), format!("{other:?}"));
        }
    }

    /// An attempt ends with any words, even if no word can be written. Over zeros, read-only methods and refunds end,
    /// too.
    #[test]
    fn an_attempt_ends_over_any_words(
        subject in subject(),
        garbage in prop::collection::vec(prop_oneof![Just(0), any::<u64>(), 0..1_000_u64], 1..40),
        now in prop_oneof![Just(0), 0..1_u64 << 60, any::<u64>()],
        size in size(),
    ) {
        let it = &subject.algorithm;
        let (now, permits) = (Nanos::new(now), size.of(it.max_request()));
        let steps = Cell::new(0);
        let zeros = vec![0; it.words()];
        let garbage: Vec<u64> = garbage.iter().cycle().take(it.words()).map(|word| word & !TABLE).collect();
        for words in [&zeros, &garbage] {
            let words = Stone { words, steps: &steps };
            steps.set(0);
            let tried = it.attempt(None, words, now, permits);
            prop_assert!(permits == 0 || !matches!(tried, Attempt::Admitted(_)));
            prop_assert!(steps.get() <= 10 + 4 * it.words(), "{} steps", steps.get());
        }
        let words = Stone { words: &zeros, steps: &steps };
        let receipt = ringgate::Receipt::new(now, permits, garbage[0]);
        prop_assert!(!it.refund(words, &receipt, permits) || permits == 0);
        it.remaining(words, now);
        it.spent(words, now);
        it.ready_at(words, now, 1);
        it.idle_at(words, now);
    }

    /// A lower limit over the same cells has the terms of a ring that was built with it, and the words of the own one. Its
    /// decisions are those of the definition (`every_algorithm_equals_its_definition`).
    #[test]
    fn a_lowered_ring_is_a_ring_with_that_limit(ring in ring(), part in 0..=1000_u64) {
        let limit = (ring.limit * part / 1000).max(1);
        let lowered = ring.build().with_limit(limit).expect("at most its own");
        let built = Ring { limit, ..ring }.build();
        prop_assert_eq!(
            (lowered.bound(), lowered.max_request(), lowered.window(), lowered.span()),
            (built.bound(), built.max_request(), built.window(), built.span())
        );
        prop_assert_eq!(lowered.words(), ring.build().words());
    }

    /// The first word of a new key.
    #[test]
    fn fresh_words_are_idle_at_any_time(subject in subject(), now in prop_oneof![0..2_u64, 0..=HORIZON]) {
        let (it, now) = (&subject.algorithm, Nanos::new(now));
        prop_assert!(it.is_idle(0, now));
        let later = it.advance(0, now).expect("time goes on");
        prop_assert!(later > 0 && later & TABLE == 0);
        let fresh = State::fresh(it);
        let handed = with_first(&fresh, later);
        prop_assert_eq!(Answers::from(it, &handed, now), Answers::from(it, &fresh, now));
    }
}
