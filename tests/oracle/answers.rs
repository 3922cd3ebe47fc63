//! The answers of a limiter are correct: the retry time, the remaining permits, and the time at which its state is
//! idle. A denial changes no answer.

use proptest::prelude::*;
use ringgate::{Algorithm, Nanos};

use super::walk::{
    Act, HORIZON, Move, Outcome, Walk, acts, anywhere, asks, back_and_forth, config, exact, forward, history,
    limiter_subject, nanos, size,
};
use crate::common::{Any, State};

/// All answers of a state at one time that do not change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answers {
    remaining: u64,
    pub(crate) spent: u64,
    idle_at: Option<Nanos>,
    ready_at: Vec<Option<Nanos>>,
}

impl Answers {
    pub(crate) fn at(it: &Any, state: &State, now: Nanos) -> Self {
        let most = it.max_request();
        let sizes = (0..8).chain([most / 3, most / 2, most - 1, most, most + 1, u64::MAX]);
        Self {
            remaining: it.remaining(state.shared(), now),
            spent: it.spent(state.shared(), now),
            idle_at: it.idle_at(state.shared(), now),
            ready_at: sizes
                .map(|permits| it.ready_at(state.shared(), now, permits))
                .collect(),
        }
    }

    /// The answers at `now` and at many later times, until long after all charges have left the window.
    pub(crate) fn from(it: &Any, state: &State, now: Nanos) -> Vec<Self> {
        advance(it, now).map(|then| Self::at(it, state, then)).collect()
    }
}

pub(crate) fn advance(it: &Any, now: Nanos) -> impl Iterator<Item = Nanos> {
    let window = nanos(it.window());
    let parts = (0..).map(move |part| window / 7 * part).take(16);
    [0, 1, window - 1, window, window + 1, 10 * window]
        .into_iter()
        .chain(parts)
        .map(move |nanos| Nanos::new(now.get().saturating_add(nanos)))
}

proptest! {
    #![proptest_config(config())]

    /// `ready_at` is the earliest time: the same request is admitted then, and denied one nanosecond earlier. A request without such
    /// a time is denied until time ends.
    #[test]
    fn a_retry_is_admitted_at_the_retry_time_and_no_earlier(
        subject in limiter_subject(),
        history in prop_oneof![history(back_and_forth(), acts()), history(anywhere(), acts())],
        more in size(),
    ) {
        let mut walk = Walk::new(&subject.algorithm);
        let it = walk.algorithm;
        for op in history {
            walk.step(op);
            let now = walk.at();
            for permits in [1, it.max_request() / 2, it.max_request(), more.of(it.max_request())] {
                let ready = it.ready_at(walk.state.shared(), now, permits);
                if let Some(ready) = ready {
                    prop_assert!(permits <= it.max_request() && ready >= now);
                    prop_assert_eq!(ready == now, permits <= it.remaining(walk.state.shared(), now));
                    prop_assert!(it.remaining(walk.state.shared(), ready) >= permits);
                    prop_assert!(it.decide(walk.state.clone().shared(), ready, permits).is_some());
                } else {
                    // Within the horizon, a request is never admitted only if it is too large or behind a debt of decades.
                    prop_assert!(permits > it.max_request() || walk.in_debt || walk.newest > HORIZON);
                }
                let before = ready.map_or(Nanos::MAX, |ready| Nanos::new(ready.get().saturating_sub(1)));
                if before >= now && ready != Some(now) {
                    prop_assert!(it.remaining(walk.state.shared(), before) < permits);
                    prop_assert!(it.decide(walk.state.clone().shared(), before, permits).is_none());
                    prop_assert!(it.decide(walk.state.clone().shared(), now, permits).is_none());
                }
            }
        }
    }

    /// `earliest` is never too late: requests for all permits are never admitted before it, however they are split
    /// and timed. For a bucket it is exact, except for rounding.
    #[test]
    fn many_requests_take_as_long_as_predicted(
        subject in limiter_subject(),
        history in history(forward(), asks()),
        many in 1..40_u64,
    ) {
        let walk = Walk::after(&subject.algorithm, history);
        let it = walk.algorithm;
        let (began, state) = (walk.at(), walk.state.clone());
        let earliest = |permits| it.earliest(walk.state.shared(), began, permits).expect("long before time ends");
        let mut now = began;
        for taken in 1..=many {
            now = it.ready_at(state.shared(), now, 1).expect("one is possible");
            prop_assert!(it.decide(state.shared(), now, 1).is_some());
            prop_assert!(earliest(taken) <= now, "{} by {:?} instead of {:?}", taken, now, earliest(taken));
            if matches!(it, Any::Gcra(_)) {
                // Each request comes at a whole nanosecond, up to one nanosecond late.
                prop_assert!(now.get() - earliest(taken).get() <= taken);
            }
        }
        // One request for all permits is admitted later, or never.
        if let Some(ready) = it.ready_at(walk.state.shared(), began, many) {
            prop_assert!(earliest(many) <= ready);
        }
    }

    /// `remaining` is the most that one request gets.
    #[test]
    fn one_request_gets_the_remaining_permits(subject in limiter_subject(), history in history(anywhere(), acts())) {
        let mut walk = Walk::new(&subject.algorithm);
        let it = walk.algorithm;
        for op in history {
            walk.step(op);
            let remaining = it.remaining(walk.state.shared(), walk.at());
            prop_assert!(remaining <= it.max_request());
            prop_assert!(it.decide(walk.state.clone().shared(), walk.at(), remaining).is_some());
            prop_assert!(it.decide(walk.state.clone().shared(), walk.at(), remaining + 1).is_none());
        }
    }

    /// A read-only method changes nothing. A denial changes no answer, now or later.
    #[test]
    fn a_denied_request_changes_nothing(subject in limiter_subject(), history in history(back_and_forth(), acts())) {
        let mut walk = Walk::new(&subject.algorithm);
        let it = walk.algorithm;
        for (step, act) in history {
            walk.go(step);
            let before = walk.state.clone();
            let answers = Answers::from(it, &walk.state, walk.at());
            prop_assert_eq!(format!("{:?}", &before), format!("{:?}", &walk.state));
            if matches!(walk.act(act), Outcome::Denied(_)) {
                prop_assert_eq!(Answers::from(it, &walk.state, walk.at()), answers);
                // A denial does not even write to a single word, or to a log.
                if it.words() == 1 || matches!(it, Any::Log(_)) {
                    prop_assert_eq!(format!("{:?}", &before), format!("{:?}", &walk.state));
                }
            }
        }
    }

    /// From `idle_at` on, every answer equals that of a fresh limiter. One nanosecond earlier, a permit still counts.
    #[test]
    fn an_idle_state_is_equal_to_a_fresh_one(subject in limiter_subject(), history in history(back_and_forth(), acts())) {
        let mut walk = Walk::new(&subject.algorithm);
        let it = walk.algorithm;
        let fresh = State::fresh(it);
        for op in history {
            walk.step(op);
            let Some(idle) = it.idle_at(walk.state.shared(), walk.at()) else {
                prop_assert!(walk.in_debt);
                continue;
            };
            prop_assert!(idle >= walk.at());
            prop_assert_eq!(idle == walk.at(), it.spent(walk.state.shared(), walk.at()) == 0);
            prop_assert_eq!(it.spent(walk.state.shared(), idle), 0);
            // The newest reading may be ahead of the caller's. The next reading is not older than it.
            let idle = idle.max(Nanos::new(walk.newest));
            prop_assert_eq!(Answers::from(it, &walk.state, idle), Answers::from(it, &fresh, idle));
            if it.spent(walk.state.shared(), walk.at()) > 0 {
                let idle = it.idle_at(walk.state.shared(), walk.at()).expect("as above");
                prop_assert!(it.spent(walk.state.shared(), Nanos::new(idle.get() - 1)) > 0);
            }
        }
    }

    /// Every later decision includes a charge above the limit. A state in debt never admits more than a state without
    /// the debt, and admits nothing before the debt fits.
    #[test]
    fn debt_is_seen_by_every_later_decision(
        subject in exact(),
        history in history(forward(), asks()),
        debt in size(),
        after in history(forward(), asks()),
    ) {
        let mut walk = Walk::after(&subject.algorithm, history);
        let it = walk.algorithm;
        let mut twin = State::clone(&walk.state);
        let left = it.remaining(walk.state.shared(), walk.at());
        let debt = debt.of(it.max_request());
        walk.act(Act::Charge(super::walk::Size::Exactly(debt)));
        prop_assert_eq!(it.remaining(walk.state.shared(), walk.at()), left.saturating_sub(debt));
        for (step, act) in after {
            walk.go(step);
            let Act::Ask(size) = act else { continue };
            prop_assert!(
                it.remaining(walk.state.shared(), walk.at()) <= it.remaining(twin.shared(), walk.at())
            );
            let permits = size.of(it.max_request());
            // The other state admits each request that the state in debt admits, and then both are charged.
            if walk.ask(permits) == Outcome::Admitted(permits) {
                prop_assert!(it.decide(twin.exclusive(), walk.at(), permits).is_some());
            }
        }
    }

    /// A fresh state that is charged with `spent` is at least as strict, at all later times.
    #[test]
    fn the_spent_permits_describe_the_whole_state(
        subject in exact(),
        before in history(forward(), acts()),
        after in history(forward(), asks()),
    ) {
        let mut walk = Walk::after(&subject.algorithm, before);
        let it = walk.algorithm;
        let spent = it.spent(walk.state.shared(), walk.at());
        let mut restored = Walk::new(it);
        restored.go(Move::To(walk.now));
        restored.act(Act::Charge(super::walk::Size::Exactly(spent)));
        for (step, act) in after {
            restored.go(step);
            walk.go(step);
            let Act::Ask(size) = act else { continue };
            let permits = size.of(it.max_request());
            prop_assert!(
                it.remaining(restored.state.shared(), restored.at())
                    <= it.remaining(walk.state.shared(), walk.at())
            );
            if restored.ask(permits) == Outcome::Admitted(permits) {
                prop_assert_eq!(walk.ask(permits), Outcome::Admitted(permits));
            }
        }
    }
}
