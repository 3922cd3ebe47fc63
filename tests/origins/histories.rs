//! Known histories, by number.

use super::*;

/// The four classics, each by its name, each with the bound that it states, which an adversary reaches.
#[test]
fn o3_the_four_classics_state_their_bounds_and_reach_them() {
    let around_the_edge = [(millis(999), 50), (millis(1), 50)];
    let after_silence = [(millis(999), 50), (millis(1), 1), (millis(998), 50)];

    let fixed = CounterRing::fixed_window(quota("10/s")).expect("a ring");
    assert_eq!((fixed.max_request(), fixed.bound()), (10, 20));
    assert_eq!(worst_second(fixed.into(), &around_the_edge), 20);

    let sliding_counter = strict("10/s");
    assert_eq!((sliding_counter.max_request(), sliding_counter.bound()), (10, 10));
    assert_eq!(worst_second(sliding_counter.into(), &around_the_edge), 10);

    let sliding_log = stamps("10/s");
    assert_eq!((sliding_log.max_request(), sliding_log.bound()), (10, 10));
    assert_eq!(worst_second(sliding_log.into(), &around_the_edge), 10);

    let token_bucket = Gcra::token_bucket(quota("10/s"), 5).expect("a bucket");
    assert_eq!(
        (
            token_bucket.max_request(),
            token_bucket.max_request(),
            token_bucket.bound()
        ),
        (5, 5, 14)
    );
    // A burst of 5, and 10 refilled in a second, of which the last is due when the first burst leaves.
    let mut every_tenth = vec![(millis(0), 50)];
    every_tenth.extend([(millis(100), 1); 12]);
    assert_eq!(worst_second(token_bucket.into(), &every_tenth), 14);

    let leaky_bucket = Gcra::token_bucket(quota("10/s"), 5).expect("a bucket");
    assert_eq!((leaky_bucket.max_request(), leaky_bucket.bound()), (5, 14));
    assert_eq!(worst_second(leaky_bucket.into(), &after_silence), 10);
}

/// The oldest of 5 in 10 s.
#[test]
fn o5_five_in_ten_seconds_compares_the_oldest() {
    let (limiter, clock) = by_hand(stamps("5/10s"));
    let begin = clock_time(&limiter);
    let at = |tenths: u64| clock.set(begin.saturating_add(millis(tenths * 100)));
    for tenths in [10, 28, 40, 55, 79] {
        at(tenths);
        assert!(limiter.check().is_ok(), "at {tenths} tenths");
    }
    at(80);
    let denied = limiter.check().expect_err("five have passed since 1.0 s");
    assert_eq!(denied.retry_after(), Some(millis(3_000)));
    for call in 0..100 {
        // From 8.01 s to 10.98 s.
        clock.set(begin.saturating_add(millis(8_010 + 30 * call)));
        assert!(limiter.check().is_err());
    }
    at(111);
    assert!(limiter.check().is_ok());
    assert!(limiter.check().is_err());
}

/// Five of many concurrent callers are admitted, with a clock of nanoseconds and not of whole seconds.
#[test]
fn o5_five_of_many_concurrent_callers_pass() {
    let (limiter, clock) = by_hand(stamps("5/10s"));
    assert_eq!(passed_together(&limiter, 400), 5);
    clock.advance(Duration::from_nanos(9_999_999_999));
    assert_eq!(passed_together(&limiter, 400), 0);
    clock.advance(Duration::from_nanos(1));
    assert_eq!(passed_together(&limiter, 400), 5);
}

/// A minute as 60 cells of one second.
#[test]
fn o8_sixty_cells_never_exceed_the_limit() {
    let ring = CounterRing::builder(quota("100/min"))
        .cells(60)
        .build()
        .expect("a ring");
    assert_eq!((ring.cell(), ring.bound()), (Duration::from_secs(1), 100));
    let (limiter, clock) = by_hand(ring);
    let mut log = Log::default();
    for step in 0..6_000_u64 {
        // A burst every second for five minutes, and uneven ones in between.
        clock.advance(millis(if step % 7 == 0 { 999 } else { 1 + step % 60 }));
        for _ in 0..step % 5 {
            if let Ok(admitted) = limiter.check() {
                log.add(admitted.at(), 1);
            }
        }
    }
    assert_eq!(log.worst(Duration::from_secs(60)), 100);
}

/// The classic ring of 60 cells sums 60 cells, and admits twice the limit around the edge of a window.
#[test]
fn o8_the_classic_form_sums_sixty_cells() {
    let ring = CounterRing::builder(quota("100/min"))
        .classic()
        .cells(60)
        .build()
        .expect("a ring");
    assert_eq!(ring.bound(), 200);
    let (limiter, clock) = by_hand(ring);
    clock.advance(millis(999));
    assert_eq!(passed(&limiter, 300), 100);
    clock.advance(millis(59_000));
    assert_eq!(passed(&limiter, 300), 0);
    // The first cell of 60 leaves the sum when the 61st begins, a nanosecond less than 59.001 s later.
    clock.advance(millis(1));
    assert_eq!(passed(&limiter, 300), 100);
}

/// The limit may be reached in the first milliseconds of a window: the even form is offered against it.
#[test]
fn o8_the_even_form_cannot_be_used_up_at_once() {
    let ring = CounterRing::builder(quota("100/min"))
        .even()
        .cells(60)
        .build()
        .expect("a ring");
    let (limiter, clock) = by_hand(ring);
    let mut admitted = 0;
    for _ in 0..60 {
        let now = passed(&limiter, 300);
        assert!((1..=2).contains(&now));
        admitted += now;
        clock.advance(Duration::from_secs(1));
    }
    assert_eq!(admitted, 100);
}

/// One second as 10 cells of 1.
#[test]
fn o9_each_of_ten_cells_has_its_own_share() {
    let ring = CounterRing::builder(quota("10/s"))
        .even()
        .cells(10)
        .build()
        .expect("a ring");
    assert_eq!(ring.cell(), millis(100));
    let (limiter, clock) = by_hand(ring);
    for _ in 0..20 {
        assert_eq!(passed(&limiter, 1), 1);
        assert_eq!(passed(&limiter, 5), 0);
        clock.advance(millis(100));
    }
    // However long there was no request, the next cell admits no more than its share.
    clock.advance(Duration::from_secs(5));
    assert_eq!(passed(&limiter, 5), 1);
}
