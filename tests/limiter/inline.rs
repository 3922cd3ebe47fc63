//! Limiters that share their policy.

use alloc::rc::Rc;
use alloc::sync::Arc;
use core::time::Duration;

use proptest::prelude::*;
use ringgate::limiter::Policy;
use ringgate::{
    AnyAlgorithm, CounterRing, Gcra, InlineLimiter, ManualClock, Nanos, Quota, RateLimiter, Settled,
    TimestampRing,
};

use super::quota;

/// Every kind of algorithm that has one word.
fn of_one_word() -> Vec<AnyAlgorithm> {
    let ten = quota("10/s");
    let ring = || CounterRing::builder(ten).cells(5);
    vec![
        Gcra::new(ten).expect("a bucket").into(),
        Gcra::token_bucket(ten, 3).expect("a bucket").into(),
        CounterRing::fixed_window(ten).expect("a ring").into(),
        ring().build().expect("a ring").into(),
        ring().classic().build().expect("a ring").into(),
    ]
}

fn policy(algorithm: AnyAlgorithm) -> Policy<AnyAlgorithm, ManualClock> {
    Policy::with_clock(algorithm, ManualClock::new()).expect("one word")
}

proptest! {
    /// Each decision, its time and the answers of a peek are those of a limiter with a policy of its own.
    #[test]
    fn it_decides_as_a_rate_limiter(steps in prop::collection::vec((0..400_u64, 0..5_u64, any::<bool>()), 1..60)) {
        for algorithm in of_one_word() {
            let policy = policy(algorithm.clone());
            let mut inline = InlineLimiter::new(&policy);
            let alone = RateLimiter::with_clock(algorithm, policy.clock().clone());
            for &(millis, permits, exclusive) in &steps {
                policy.clock().advance(Duration::from_millis(millis));
                let expected = alone.check_n(permits);
                let decided = if exclusive { inline.check_n_mut(permits) } else { inline.check_n(permits) };
                match (decided, expected) {
                    (Ok(ours), Ok(theirs)) => {
                        prop_assert_eq!(ours.permits(), theirs.permits());
                        prop_assert_eq!((ours.at(), ours.remaining()), (theirs.at(), theirs.remaining()));
                    }
                    (Err(ours), Err(theirs)) => {
                        prop_assert_eq!(ours.permits(), theirs.permits());
                        prop_assert_eq!((ours.at(), ours.retry_after()), (theirs.at(), theirs.retry_after()));
                    }
                    (ours, theirs) => prop_assert!(false, "{:?} and {:?}", ours.is_ok(), theirs.is_ok()),
                }
                let (ours, theirs) = (inline.peek(), alone.peek());
                prop_assert_eq!((ours.spent(), ours.remaining()), (theirs.spent(), theirs.remaining()));
                prop_assert_eq!(ours.retry_after(3), theirs.retry_after(3));
            }
        }
    }
}

#[test]
fn limiters_with_one_policy_have_separate_states() {
    for algorithm in of_one_word() {
        let policy = Arc::new(policy(algorithm));
        let limiters: Vec<_> = (0..3).map(|_| InlineLimiter::new(Arc::clone(&policy))).collect();
        let burst = limiters[0].peek().remaining();
        assert!(limiters[0].check_n(burst).is_ok() && limiters[0].check().is_err());
        assert!(limiters[1].check_n(burst - 1).is_ok());
        let found = limiters.iter().map(|it| it.peek().remaining()).sum::<u64>();
        assert_eq!(found, 1 + burst);
    }
}

#[test]
fn one_clock_reading_serves_many_limiters() {
    let policy = policy(of_one_word().swap_remove(0));
    let mut limiters: Vec<_> = (0..4).map(|_| InlineLimiter::new(&policy)).collect();
    let now = Nanos::from_duration(Duration::from_secs(7));
    for limiter in &mut limiters {
        assert_eq!(limiter.check_at(now, 9).expect("ten are free").at(), now);
        assert!(limiter.check_at_mut(now, 1).is_ok() && limiter.check_at_mut(now, 1).is_err());
    }
}

/// An algorithm of several words is an error of the policy.
#[test]
fn several_words_are_refused() {
    let minute = quota("60/min");
    let ring = |cells| super::built(CounterRing::builder(minute).cells(cells).unpacked());
    let log = |quota| TimestampRing::new(quota).expect("a ring");
    let cases: [(AnyAlgorithm, usize); 5] = [
        (ring(60).into(), 62),
        (ring(1).into(), 3),
        (ring(5).into(), 7),
        (log(quota("1/s")).into(), 2),
        (log(minute).into(), 61),
    ];
    for (algorithm, words) in cases {
        let error = Policy::with_clock(algorithm, ManualClock::new()).expect_err("several words");
        let expected = "expected 1 word, as a Gcra or a fixed window has";
        let found = error.to_string();
        assert_eq!(found, format!("invalid algorithm: {words} words ({expected})"));
    }
}

/// A receipt names no limiter, so a `RateLimiter` does not refund it.
#[test]
fn its_receipts_are_of_no_other_limiter() {
    let bucket = Gcra::new(Quota::per_second(10).expect("a quota")).expect("a bucket");
    let policy = Policy::with_clock(bucket.clone(), ManualClock::new()).expect("one word");
    let inline = InlineLimiter::new(&policy);
    let other = RateLimiter::with_clock(bucket, policy.clock().clone());
    assert!(other.check_n(4).is_ok());
    let admitted = inline.check_n(4).expect("ten are free");
    assert_eq!(other.refund(admitted), Settled::Forfeited(4));
    assert_eq!((other.peek().spent(), inline.peek().spent()), (4, 4));
}

#[test]
fn it_takes_16_bytes_with_the_reference() {
    type Shared = Policy<Gcra, ManualClock>;
    assert_eq!(size_of::<InlineLimiter<&Shared>>(), 16);
    assert_eq!(size_of::<InlineLimiter<Arc<Shared>>>(), 16);
    assert_eq!(size_of::<InlineLimiter<Rc<Shared>>>(), 16);
}
