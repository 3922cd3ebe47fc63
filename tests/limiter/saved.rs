//! States that are saved and restored.

use super::*;

#[test]
fn the_saved_state_holds_the_spent_permits() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, clock) = by_hand(algorithm.clone());
        let fresh = SavedState {
            spent: 0,
            idle_after_nanos: 0,
        };
        assert_eq!(limiter.save(), fresh, "{name}");
        assert!(limiter.check_n(7).is_ok());
        let saved = limiter.save();
        assert_eq!(saved.spent, 7, "{name}");
        let idle_after = Duration::from_nanos(saved.idle_after_nanos);
        assert!(
            idle_after > Duration::ZERO && idle_after <= Duration::from_millis(1_200),
            "{name}"
        );
        clock.advance(idle_after - Duration::from_nanos(1));
        assert!(limiter.save().spent > 0, "{name}");
        clock.advance(Duration::from_nanos(1));
        assert_eq!(limiter.save().spent, 0, "{name}");

        // Restored into a process whose clock begins at zero: at once, and just before and just
        // after it is idle.
        for (elapsed, spent) in [
            (Duration::ZERO, 7),
            (idle_after - Duration::from_nanos(1), 7),
            (idle_after, 0),
            (Duration::MAX, 0),
        ] {
            let restored = RateLimiter::with_clock(algorithm.clone(), ManualClock::new());
            restored.restore(&saved, elapsed);
            assert_eq!(restored.peek().spent(), spent, "{name} after {elapsed:?}");
            let found = restored.peek().remaining();
            assert_eq!(found, 10 - spent, "{name} after {elapsed:?}");
        }
    }
}

/// A limit below the spent permits is used up. A larger limit keeps the difference.
#[test]
fn a_saved_state_is_charged_to_another_quota() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, _clock) = by_hand(algorithm);
        assert!(limiter.check_n(8).is_ok());
        let saved = limiter.save();
        for (other, remaining) in [("5/s", 0), ("8/s", 0), ("20/s", 12)] {
            for successor in subjects(quota(other)) {
                let (restored, _clock) = by_hand(successor.algorithm);
                restored.restore(&saved, Duration::ZERO);
                let found = restored.peek().remaining();
                assert_eq!(found, remaining, "{name} to {} {other}", successor.name);
            }
        }
    }
}

#[cfg(feature = "serde")]
#[test]
fn a_saved_state_is_written_and_read_back() {
    let (limiter, _clock) = by_hand(TimestampRing::new(quota("100/min")).expect("a ring"));
    assert!(limiter.check_n(12).is_ok());
    let saved = limiter.save();
    let text = serde_json::to_string(&saved).expect("text");
    assert_eq!(text, r#"{"spent":12,"idle_after_nanos":60000000000}"#);
    assert_eq!(serde_json::from_str::<SavedState>(&text).expect("a state"), saved);
    let documented = r#"{"spent": 12, "idle_after_nanos": 48000000000}"#;
    let read: SavedState = serde_json::from_str(documented).expect("a state");
    assert_eq!((read.spent, read.idle_after_nanos), (12, 48_000_000_000));
    assert!(serde_json::from_str::<SavedState>(r#"{"spent":1,"idle_after_nanos":1,"more":1}"#).is_err());
    assert!(serde_json::from_str::<SavedState>(r#"{"spent":1}"#).is_err());
    assert!(serde_json::from_str::<SavedState>(r#"{"spent":-1,"idle_after_nanos":1}"#).is_err());
}
