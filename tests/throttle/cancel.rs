//! Dropped futures lose no bytes and do not block other connections.

use core::future::Future;
use core::task::Waker;

use super::*;
use proptest::prelude::*;
use ringgate::ManualClock;

const WINDOW: Duration = Duration::from_millis(50);

/// Two connections share a limiter; each drops a future after the given milliseconds.
async fn drop_futures(number: usize, limit: u64, seed: u64, timeouts: Vec<u64>, reading: bool) {
    let (shared, counters) = limiter(kind(number, limit, WINDOW));
    let bound = shared.bound();
    let shared = Arc::new(Fair::new(shared));
    let log = Log::new();
    let mut tasks = Vec::new();
    for connection in 0..2 {
        let behavior = Behavior::new(50, 100, 5);
        let wire = Wire::new(behavior, seed.wrapping_add(connection * 999));
        let sink = Arc::clone(&wire.written);
        let (own, local_counters) = limiter(kind(7, limit, WINDOW));
        let builder = Throttled::builder(wire);
        let mut stream = match reading {
            true => builder.read(own).read_shared(Arc::clone(&shared)),
            false => builder.write(own).write_shared(Arc::clone(&shared)),
        }
        .build()
        .unwrap();
        let (log, timeouts) = (log.clone(), timeouts.clone());
        tasks.push(tokio::spawn(async move {
            let (mut buf, mut through, mut sent) = ([0; 700], Vec::new(), 0);
            for millis in timeouts {
                let size = 1 + (millis as usize * 97) % 700;
                let after = Duration::from_millis(millis);
                let moved = if reading {
                    timeout(after, stream.read(&mut buf[..size])).await
                } else {
                    let fresh = (sent..).map(Wire::byte).zip(&mut buf[..size]);
                    fresh.for_each(|(byte, place)| *place = byte);
                    timeout(after, stream.write(&buf[..size])).await
                };
                let Ok(Ok(moved)) = moved else { continue };
                log.note(moved);
                sent += moved as u64;
                through.extend_from_slice(&buf[..moved]);
            }
            let expected: Vec<u8> = (0..sent).map(Wire::byte).collect();
            assert_eq!(through, expected);
            if !reading {
                assert_eq!(through, *sink.lock().unwrap());
            }
            assert_eq!(local_counters.charged(), sent);
            stream.forfeited()
        }));
    }
    let mut forfeited = 0;
    for task in tasks {
        forfeited += task.await.unwrap();
    }
    assert_eq!(counters.charged(), log.sum() + forfeited);
    assert!(log.most_in(WINDOW) <= bound);
    assert_eq!(shared.waiting(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn dropped_futures_lose_nothing(
        number in 0..KINDS,
        limit in 10..2_000_u64,
        seed in any::<u64>(),
        timeouts in prop::collection::vec(0..90_u64, 1..60),
        reading in any::<bool>(),
    ) {
        paused(drop_futures(number, limit, seed, timeouts, reading));
    }
}

/// Futures are dropped and their connections kept. Each delays later waiters by ten milliseconds.
#[tokio::test(start_paused = true)]
async fn an_abandoned_turn_is_passed_on() {
    let shared = shared(100_000);
    let stream = || writer(&shared, Wire::plain());
    let mut abandoned = Vec::new();
    let mut before = stream();
    for _ in 0..100 {
        let mut stream = stream();
        while timeout(Duration::ZERO, before.write(&[7; 500])).await.is_ok() {}
        assert!(timeout(Duration::ZERO, stream.write(&[7; 500])).await.is_err());
        abandoned.push(stream);
    }
    drop(before);
    assert!(shared.waiting() >= 50, "{}", shared.waiting());
    let began = Instant::now();
    let mut stream = stream();
    let written = timeout(Duration::from_secs(60), stream.write_all(&[7; 1_000])).await;
    written.expect("blocked by abandoned turns").unwrap();
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(shared.waiting(), 0);
    // A connection that is polled again is served.
    for mut stream in abandoned {
        stream.write_all(&[7; 10]).await.unwrap();
    }
}

/// The rate of a connection does not suffer from one that drops its futures again and again.
#[tokio::test(start_paused = true)]
async fn abandoned_waits_do_not_reduce_throughput() {
    let shared = shared(1_000_000);
    let stream = || writer(&shared, Wire::plain());
    let (mut abandoning, mut other) = (stream(), stream());
    tokio::spawn(async move {
        loop {
            let _ = timeout(Duration::from_millis(1), abandoning.write(&[7; 8192])).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    let (began, mut moved) = (Instant::now(), 0);
    while began.elapsed() < Duration::from_secs(5) {
        moved += other.write(&[7; 8192]).await.unwrap();
    }
    println!("{moved} of 5000000");
    assert!(moved > 4_000_000, "{moved}");
}

#[tokio::test(start_paused = true)]
async fn shutting_down_leaves_the_queue() {
    let shared = shared(1_000);
    assert!(shared.check(10).is_ok());
    let mut stream = writer(&shared, Wire::plain());
    assert!(timeout(Duration::ZERO, stream.write(&[7; 5])).await.is_err());
    assert_eq!(shared.waiting(), 1);
    stream.shutdown().await.unwrap();
    assert_eq!(shared.waiting(), 0);
}

/// A clock that is set back exhausts a local limit for hours. The connection leaves the shared queue meanwhile.
#[tokio::test(start_paused = true)]
async fn a_connection_without_local_capacity_leaves_the_queue() {
    let clock = ManualClock::new();
    clock.set(Nanos::new(3_600_000_000_000));
    let own = RateLimiter::with_clock(steady(1_000), clock.clone());
    assert!(own.check_n(5).is_ok());
    let shared = shared(1_000);
    assert!(shared.check(10).is_ok());
    let mut stream = Throttled::builder(Wire::plain())
        .write(own)
        .write_shared(Arc::clone(&shared))
        .build()
        .unwrap();
    assert!(timeout(Duration::ZERO, stream.write(&[7; 5])).await.is_err());
    assert_eq!(shared.waiting(), 1);
    clock.set(Nanos::ZERO);
    assert!(timeout(Duration::ZERO, stream.write(&[7; 5])).await.is_err());
    assert_eq!(shared.waiting(), 0);
}

/// On several threads in real time, connections that drop futures neither block each other nor exceed the rate.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn threads_that_drop_futures_do_not_block_each_other() {
    const RATE: u64 = 20_000_000;
    let (shared, counters) = limiter(steady(RATE));
    let most = shared.bound() - RATE;
    let shared = Arc::new(Fair::new(shared));
    let began = Instant::now();
    let mut tasks = Vec::new();
    for seed in 1..=64_u64 {
        let behavior = Behavior::new(60, 60, 1);
        let stream = both_ways(&shared, Wire::new(behavior, seed * 31_337));
        tasks.push(tokio::spawn(async move {
            let (mut stream, mut moved, mut random) = (stream, 0, Random::new(seed));
            while began.elapsed() < Duration::from_secs(1) {
                let after = Duration::from_micros(random.below(1 << 14));
                let done = match random.one_in(2) {
                    true => timeout(after, stream.read(&mut [0; 3_000])).await,
                    false => timeout(after, stream.write(&[7; 3_000])).await,
                };
                moved += done.map_or(0, |done| done.unwrap_or(0) as u64);
            }
            moved + stream.forfeited()
        }));
    }
    let mut sum = 0;
    for task in tasks {
        sum += task.await.unwrap();
    }
    let allowed = (began.elapsed().as_secs_f64() * RATE as f64) as u64 + most;
    println!("{sum} bytes of {allowed}, by 64 connections on 4 threads");
    assert!(sum <= allowed && sum > 0);
    assert_eq!(counters.charged(), sum);
    assert_eq!(shared.waiting(), 0);
}

/// A waker that owns another wait of the limiter.
struct OwningWaker(#[expect(dead_code, reason = "held until it is dropped")] std::sync::Mutex<Box<dyn Send>>);

impl alloc::task::Wake for OwningWaker {
    fn wake(self: Arc<Self>) {}
}

/// Dropping a waker that is replaced drops the first wait of the queue, which wakes the turn of this connection.
#[test]
fn a_waker_can_own_another_wait() {
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        paused(async {
            let shared = shared(1_000);
            assert!(shared.check(10).is_ok());
            let mut held = Box::pin(Arc::clone(&shared).acquire_owned(10));
            assert!(
                held.as_mut()
                    .poll(&mut Context::from_waker(Waker::noop()))
                    .is_pending()
            );
            let owner = Waker::from(Arc::new(OwningWaker(std::sync::Mutex::new(Box::new(held)))));
            let mut stream = writer(&shared, Wire::plain());
            let mut write =
                |waker: &Waker| Pin::new(&mut stream).poll_write(&mut Context::from_waker(waker), &[7]);
            assert!(write(&owner).is_pending());
            drop(owner);
            assert_eq!(shared.waiting(), 2);
            assert!(write(Waker::noop()).is_pending());
            assert_eq!(shared.waiting(), 1);
        });
        done.send(()).unwrap();
    });
    is_done.recv_timeout(Duration::from_secs(30)).expect("deadlock");
}
