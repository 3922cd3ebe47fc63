//! Histories of any calls, compared with a single ring and with a log of the calls.

use super::*;

/// Moves the clock by one of the pauses 0 to 5. Returns the reading, and the permits of the call, which are mostly few.
fn step(clock: &ManualClock, permits: u64, pause: u32) -> (Nanos, u64) {
    clock.advance(Duration::from_nanos(match pause {
        0..3 => 0,
        3 => 3_000,
        4 => 700_000,
        _ => 1_500_000 * permits / 4,
    }));
    (clock.now(), if permits > 10 { permits } else { 1 + permits % 2 })
}

proptest! {
    #[test]
    fn one_caller_is_admitted_as_often_as_by_a_single_ring(
        (limit, stripes, batch) in shapes(),
        worker in 0..100_usize,
        step in 0..10_000_u64,
    ) {
        let (limiter, clock) = striped(limit, stripes, batch);
        // Steps that stay within the window.
        let step = Duration::from_nanos(step.min(9_000_000 / limit));
        let here = passed(|| {
            clock.advance(step);
            limiter.as_worker(worker).check().is_ok()
        });
        let (ring, clock) = plain(limit);
        let there = passed(|| {
            clock.advance(step);
            ring.check().is_ok()
        });
        prop_assert_eq!(here, there);
        prop_assert_eq!(here, limit);
        prop_assert_eq!(limiter.remaining(), 0);
        prop_assert_eq!(limiter.bound(), limit);
    }

    /// After a denial and a long silence, the whole limit is available, because the denial makes uncharged counts
    /// expire.
    #[test]
    fn after_a_denial_and_a_silence_the_whole_limit_is_admitted(
        (limit, stripes, batch) in shapes(),
        workers in (0..100_usize, 0..100_usize),
    ) {
        let (limiter, clock) = striped(limit, stripes, batch);
        for worker in [workers.0, workers.1, workers.0] {
            prop_assert_eq!(passed(|| limiter.as_worker(worker).check().is_ok()), limit);
            // A window, a cell, and the period by which times of stripes are rounded up.
            clock.advance(WINDOW + CELL + WINDOW / 8);
        }
    }

    /// Without a denial, at most the batches of the stripes are missing.
    #[test]
    fn after_a_silence_nearly_the_whole_limit_is_admitted(
        (limit, stripes, batch) in shapes(),
        uses in proptest::collection::vec(0..100_usize, 0..300),
    ) {
        let (limiter, clock) = striped(limit, stripes, batch);
        for worker in uses {
            let _ = limiter.as_worker(worker).check();
        }
        clock.advance(10 * WINDOW);
        let passed = passed(|| limiter.as_worker(0).check().is_ok());
        prop_assert!(passed <= limit);
        prop_assert!(passed >= limit - stripes * batch, "{} of {}", passed, limit);
    }

    /// In any history of one caller, no window holds more than the limit. A request is denied only if nearly the
    /// whole limit was used within a window and a cell.
    #[test]
    fn histories_keep_the_bound_and_deny_for_a_reason(
        (limit, stripes, batch) in shapes(),
        calls in proptest::collection::vec((0..70_usize, 1..40_u64, 0..6_u32), 1..600),
    ) {
        let (limiter, clock) = striped(limit, stripes, batch);
        let mut log = Log::default();
        for (worker, permits, pause) in calls {
            let (now, permits) = step(&clock, permits, pause);
            match limiter.as_worker(worker).check_n(permits) {
                Ok(()) => log.add(now, permits),
                Err(denied) => {
                    prop_assert_eq!(denied.at(), now);
                    let used = log.count(now.get(), (WINDOW + CELL + WINDOW / 8).as_nanos() as u64);
                    // Each stripe may have a batch that was charged late, and an idle part that is too small.
                    let reason = (limit + 1).saturating_sub(2 * stripes * batch + permits);
                    prop_assert!(used >= reason, "{} permits, {} used of {}", permits, used, limit);
                    if permits > limiter.max_request() {
                        prop_assert_eq!(denied.retry_after(), None);
                    } else {
                        let after = denied.retry_after().expect("not too many");
                        prop_assert!(after > Duration::ZERO);
                        prop_assert!(after <= WINDOW + CELL, "{:?}", after);
                    }
                }
            }
        }
        prop_assert!(log.worst(WINDOW) <= limit, "{} of {}", log.worst(WINDOW), limit);
    }

    /// A local stripe admits as many requests as a single ring, again after each silence, and leaves the rest to the
    /// other workers.
    #[test]
    fn a_local_stripe_admits_as_many_as_a_single_ring(
        (limit, stripes, batch) in shapes(),
        worker in 0..100_usize,
        early in 0..50_u64,
    ) {
        let (limiter, clock) = striped(limit, stripes, batch);
        prop_assert_eq!(limiter.as_worker(worker).local_stripe().has_claim(), stripes > 0);
        for _ in 0..3 {
            let mut own = limiter.as_worker(worker).local_stripe();
            let here = (0..early.min(limit)).filter(|_| own.check().is_ok()).count() as u64;
            prop_assert_eq!(here, early.min(limit));
            drop(own);
            let others = passed(|| limiter.as_worker(worker + 1).check().is_ok());
            prop_assert_eq!(here + others, limit);
            // A window, a cell, and the period by which times of stripes are rounded up.
            clock.advance(WINDOW + CELL + WINDOW / 8);
            let mut own = limiter.as_worker(worker).local_stripe();
            let all = passed(|| own.check().is_ok());
            prop_assert_eq!(all, limit);
            prop_assert_eq!(limiter.remaining(), 0);
            clock.advance(WINDOW + CELL + WINDOW / 8);
        }
    }

    /// In any history with some local stripes, no window holds more than the limit.
    #[test]
    fn local_stripes_keep_the_bound(
        (limit, stripes, batch) in shapes(),
        calls in proptest::collection::vec((0..6_usize, 0..4_usize, 1..40_u64, 0..6_u32), 1..600),
    ) {
        let (limiter, clock) = striped(limit, stripes, batch);
        let mut workers = [const { None }; 4];
        let mut log = Log::default();
        for (what, worker, permits, pause) in calls {
            let (now, permits) = step(&clock, permits, pause);
            let admitted = match (what, &mut workers[worker]) {
                (0, local) => {
                    *local = local.is_none().then(|| limiter.as_worker(worker).local_stripe());
                    continue;
                }
                (_, Some(own)) => own.check_n(permits).is_ok(),
                (_, None) => limiter.as_worker(worker).check_n(permits).is_ok(),
            };
            if admitted {
                log.add(now, permits);
            }
        }
        prop_assert!(log.worst(WINDOW) <= limit, "{} of {}", log.worst(WINDOW), limit);
    }

    /// Readings decades ahead and long ago.
    #[test]
    fn no_reading_causes_a_panic_or_unlimited_admissions(
        readings in proptest::collection::vec((any::<u64>(), 0..64_u32, 0..8_usize), 0..200),
    ) {
        let (limiter, clock) = striped(100, 4, 5);
        for (reading, bits, worker) in readings {
            clock.set(Nanos::new(reading >> bits));
            let _ = limiter.as_worker(worker).check_n(1 + reading % 7);
            let _ = limiter.as_worker(worker).check();
            let _ = limiter.remaining();
        }
        clock.set(Nanos::MAX);
        prop_assert!(passed(|| limiter.as_worker(0).check().is_ok()) <= 100);
    }
}
