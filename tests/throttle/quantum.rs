//! The number of bytes of one turn.

use alloc::sync::Arc;

use ringgate::throttle::Throttled;
use ringgate::wait::TokioClock;
use ringgate::{AnyAlgorithm, CounterRing, Fair, Gcra, Quota};
use tokio::io::AsyncWriteExt;

use crate::spy::{limiter, steady};
use crate::wire::Wire;

#[tokio::test]
async fn an_invalid_quantum_is_an_error() {
    let built = |bytes| {
        Throttled::builder(Wire::plain())
            .read(limiter(steady(100_000)).0)
            .write_shared(Arc::new(Fair::new(limiter(steady(20_000)).0)))
            .quantum(bytes)
            .build()
    };
    let error = built(0).unwrap_err();
    assert_eq!((error.field, error.given.as_str()), ("quantum", "0 bytes"));
    let error = built(201).unwrap_err();
    assert_eq!(error.given, "201 bytes");
    assert_eq!(
        error.expected,
        "1 to 200 bytes, the largest request of the limiter"
    );
    assert!(built(200).is_ok() && built(1).is_ok());
}

/// The bytes of a turn of a shared limiter after the slow start.
async fn turn(algorithm: impl Into<AnyAlgorithm>) -> usize {
    let limiter = ringgate::RateLimiter::with_clock(algorithm.into(), TokioClock::new());
    let mut stream = Throttled::builder(Wire::plain())
        .write_shared(Arc::new(Fair::new(limiter)))
        .build()
        .unwrap();
    let mut last = 0;
    for _ in 0..28 {
        let turn = stream.write(&[7; 1 << 20]).await.unwrap();
        assert!(last <= turn && turn <= 1024.max(2 * last));
        last = turn;
    }
    last
}

#[tokio::test(start_paused = true)]
async fn a_turn_lasts_ten_milliseconds() {
    let ring = |limit| CounterRing::new(Quota::per_second(limit).unwrap()).unwrap();
    assert_eq!(turn(ring(1_000_000)).await, 10_000);
    // The largest and the smallest turn.
    assert_eq!(turn(ring(16_000_000)).await, 64 * 1024);
    assert_eq!(turn(ring(10_000)).await, 1024);
    // Half of the largest request.
    assert_eq!(turn(ring(1_000)).await, 500);
    assert_eq!(turn(steady(1_000_000)).await, 5_000);
    let paced = Gcra::token_bucket(Quota::per_second(10).unwrap(), 1).unwrap();
    assert_eq!(turn(paced).await, 1);
}
