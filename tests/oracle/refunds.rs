//! A successful refund leaves no trace, and a rejected refund changes nothing.

use proptest::prelude::*;
use ringgate::algorithm::Reclaim;
use ringgate::{Algorithm, CounterRing, Nanos, Quota};

use super::answers::Answers;
use super::walk::{
    Act, Move, Walk, asks, back_and_forth, config, exact, forward, history, limiter_subject, nanos, size,
};
use crate::common::{Any, State};

proptest! {
    #![proptest_config(config())]

    /// The twin is charged only the kept permits, and makes only the admitted requests. The clock does not step back,
    /// because the time of a charge remains published after a refund.
    #[test]
    fn a_refund_leaves_no_trace(
        subject in exact(),
        before in history(forward(), asks()),
        permits in 1..9_u64,
        part in prop_oneof![Just(1000), 0..1000_u64],
        between in prop::collection::vec((forward(), size()), 0..3),
        after in history(forward(), asks()),
    ) {
        let mut walk = Walk::after(&subject.algorithm, before);
        let it = walk.algorithm;
        let twin = walk.state.clone();
        let Some(receipt) = it.decide(walk.state.shared(), walk.at(), permits) else {
            return Ok(());
        };
        let back = permits * part / 1000;
        let kept = permits - back;
        prop_assert!(kept == 0 || it.decide(twin.shared(), walk.at(), kept).is_some());
        for (step, size) in between {
            walk.go(step);
            let more = size.of(it.max_request());
            if it.decide(walk.state.shared(), walk.at(), more).is_some() {
                prop_assert!(it.decide(twin.shared(), walk.at(), more).is_some());
            }
        }
        let untouched = walk.state.clone();
        if !it.refund(walk.state.shared(), &receipt, back) {
            prop_assert_eq!(format!("{:?}", &walk.state), format!("{untouched:?}"));
            return Ok(());
        }
        prop_assert_eq!(Answers::from(it, &walk.state, walk.at()), Answers::from(it, &twin, walk.at()));
        for (step, act) in after {
            walk.go(step);
            let Act::Ask(size) = act else { continue };
            let permits = size.of(it.max_request());
            prop_assert_eq!(
                it.decide(walk.state.shared(), walk.at(), permits).is_some(),
                it.decide(twin.shared(), walk.at(), permits).is_some()
            );
        }
    }

    /// An immediate refund always succeeds, except with a log.
    #[test]
    fn an_immediate_refund_is_always_accepted(
        subject in limiter_subject(),
        history in history(back_and_forth(), asks()),
    ) {
        let mut walk = Walk::new(&subject.algorithm);
        let it = walk.algorithm;
        for (step, act) in history {
            walk.go(step);
            let Act::Ask(size) = act else { continue };
            let permits = size.of(it.max_request());
            let left = it.remaining(walk.state.shared(), walk.at());
            if let Some(receipt) = it.decide(walk.state.shared(), walk.at(), permits) {
                if matches!(it, Any::Log(_)) {
                    // A log never moves back.
                    prop_assert_eq!(it.refund(walk.state.shared(), &receipt, permits), permits == 0);
                    continue;
                }
                prop_assert!(it.refund(walk.state.shared(), &receipt, permits));
                let again = it.remaining(walk.state.shared(), Nanos::new(walk.newest));
                prop_assert!(again >= left.min(permits) || walk.now < walk.newest);
            }
            walk.ask(1);
        }
    }

    /// A refund cannot exceed the permits of its receipt.
    #[test]
    fn a_refund_above_the_charge_is_rejected(
        subject in limiter_subject(),
        others in 0..3_u64,
        permits in 0..3_u64,
        excess in 1..4_u64,
    ) {
        let it = &subject.algorithm;
        let (state, now) = (State::fresh(it), Nanos::new(1_000_000));
        let _: Option<_> = it.decide(state.shared(), now, others);
        if let Some(receipt) = it.decide(state.shared(), now, permits) {
            let before = format!("{state:?}");
            prop_assert!(!it.refund(state.shared(), &receipt, permits + excess));
            prop_assert_eq!(format!("{state:?}"), before);
        }
    }

    /// Expired permits are not refunded. Algorithms other than counter rings reject a refund after any later charge,
    /// because later decisions counted the refunded permits.
    #[test]
    fn a_refund_of_an_expired_charge_is_rejected(
        subject in limiter_subject(),
        history in history(forward(), asks()),
    ) {
        let mut walk = Walk::after(&subject.algorithm, history);
        let it = walk.algorithm;
        if let Some(receipt) = it.decide(walk.state.shared(), walk.at(), 1) {
            walk.go(Move::NextCell);
            walk.go(match it {
                Any::Counter(_) => Move::Nanos(nanos(it.span())),
                _ => Move::Window(0),
            });
            if it.decide(walk.state.shared(), walk.at(), 1).is_some() {
                let before = format!("{:?}", walk.state);
                prop_assert!(!it.refund(walk.state.shared(), &receipt, 1));
                prop_assert_eq!(format!("{:?}", walk.state), before);
            }
        }
    }
}

/// The first window need not have the narrowest cells, so a refund must use the cell of its own window. Totals wrap
/// after eight permits here, so that a wrong cell soon shows as a wrong count.
#[test]
fn rings_of_several_windows_refund_in_any_order_of_windows() {
    let quota = |text: &str| text.parse::<Quota>().expect("a quota");
    for [first, second] in [["3/2s", "2/1s"], ["2/1s", "3/2s"]] {
        let ring = CounterRing::builder(quota(first))
            .also(quota(second))
            .cells(3)
            .build();
        let it = Any::from(ring.expect("a ring"));
        let mut walk = Walk::new(&it);
        for step in 0..3_000 {
            walk.go(Move::Nanos(step * step % 31 * 113_000_000));
            if let Some(receipt) = it.decide(walk.state.shared(), walk.at(), 1) {
                assert!(
                    it.refund(walk.state.shared(), &receipt, 1),
                    "{first} and {second} at step {step}"
                );
            }
            walk.ask(1);
        }
    }
}
