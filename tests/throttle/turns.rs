//! The order of turns, and the number of bytes of one.

use super::*;

#[tokio::test(start_paused = true)]
async fn turns_rotate() {
    let shared = shared(100_000);
    assert!(shared.check(1_000).is_ok());
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for number in 0..5 {
        let mut stream = Throttled::builder(Wire::plain())
            .write_shared(Arc::clone(&shared))
            .quantum(200)
            .build()
            .unwrap();
        let order = Arc::clone(&order);
        tasks.push(tokio::spawn(async move {
            for _ in 0..20 {
                assert_eq!(stream.write(&[7; 8192]).await.unwrap(), 200);
                order.lock().unwrap().push(number);
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let order = order.lock().unwrap();
    for round in order.chunks(5) {
        let mut sorted = round.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3, 4], "{order:?}");
    }
}

/// A writer that writes less than its turn refunds the rest, and the next waiter gets it at once.
#[tokio::test(start_paused = true)]
async fn refunded_bytes_are_available_at_once() {
    for number in [0, 6] {
        let shared = limiter(kind(number, 100_000, Duration::from_secs(1))).0;
        let shared = Arc::new(Fair::new(shared));
        let behavior = Behavior::new(100, 255, 0);
        let mut tasks = Vec::new();
        let began = Instant::now();
        for seed in 1..=50_u64 {
            let mut stream = writer(&shared, Wire::new(behavior, seed * 7_919));
            tasks.push(tokio::spawn(async move {
                stream.write_all(&[7; 10_000]).await.unwrap();
                stream.forfeited()
            }));
        }
        let mut forfeited = 0;
        for task in tasks {
            forfeited += task.await.unwrap();
        }
        let took = began.elapsed();
        println!("{number}: {took:?}, {forfeited} bytes forfeited");
        assert_eq!(forfeited, 0);
        // Four seconds for a bucket that starts full; for a strict ring five, and a cell more.
        assert!(
            took < Duration::from_millis(if number == 0 { 6_100 } else { 4_100 }),
            "{took:?}"
        );
    }
}

/// With a local and a shared limit, the stricter one decides.
#[tokio::test(start_paused = true)]
async fn both_limits_hold() {
    let shared = shared(300_000);
    let mut tasks = Vec::new();
    for own in [50_000, 1_000_000, 1_000_000] {
        let mut stream = Throttled::builder(Wire::plain())
            // The burst holds the bytes that accrue during the turns of the others.
            .write(limiter(Gcra::token_bucket(Quota::per_second(own).unwrap(), own / 10).unwrap()).0)
            .write_shared(Arc::clone(&shared))
            .build()
            .unwrap();
        tasks.push(tokio::spawn(async move {
            let until = Instant::now() + Duration::from_secs(5);
            let mut moved = 0;
            while let Ok(written) = tokio::time::timeout_at(until, stream.write(&[7; 8192])).await {
                moved += written.unwrap();
            }
            moved as f64 / 5.0
        }));
    }
    for (task, expected) in tasks.into_iter().zip([50_000.0, 125_000.0, 125_000.0]) {
        let rate = task.await.unwrap();
        println!("{rate} of {expected} bytes a second");
        assert!((rate / expected - 1.0).abs() < 0.02, "{rate} of {expected}");
    }
}

#[tokio::test]
async fn an_invalid_quantum_is_an_error() {
    let built = |bytes| {
        Throttled::builder(Wire::plain())
            .read(limiter(steady(100_000)).0)
            .write_shared(shared(20_000))
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
