//! Rates, and their distribution over connections.

use super::*;
use ringgate::InlineLimiter;
use ringgate::algorithm::InUnits;
use ringgate::limiter::Policy;
use tokio::net::{TcpListener, TcpStream};

const RATE: u64 = 10_000_000;
const SECONDS: u64 = 5;

/// Writes for five seconds, and returns the number of bytes.
async fn written(mut stream: Throttled<Wire>) -> u64 {
    let until = Instant::now() + Duration::from_secs(SECONDS);
    let (bytes, mut moved) = (vec![7; 8192], 0);
    while let Ok(written) = tokio::time::timeout_at(until, stream.write(&bytes)).await {
        moved += written.unwrap() as u64;
    }
    moved
}

async fn read(mut stream: Throttled<Wire>) -> u64 {
    let until = Instant::now() + Duration::from_secs(SECONDS);
    let (mut bytes, mut moved) = (vec![0; 8192], 0);
    while let Ok(read) = tokio::time::timeout_at(until, stream.read(&mut bytes)).await {
        moved += read.unwrap() as u64;
    }
    moved
}

fn is_within_2_percent(moved: u64) {
    let off = moved as f64 / (RATE * SECONDS) as f64 - 1.0;
    println!("{moved} bytes in {SECONDS} s: {:+.2} %", off * 100.0);
    assert!(off.abs() <= 0.02);
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_one_connection_and_a_shared_one_are_met_within_two_percent() {
    let (own, shared) = (|| limiter(steady(RATE)).0, || shared(RATE));
    let builder = || Throttled::builder(Wire::plain());
    for stream in [builder().write(own()), builder().write_shared(shared())] {
        is_within_2_percent(written(stream.build().unwrap()).await);
    }
    for stream in [builder().read(own()), builder().read_shared(shared())] {
        is_within_2_percent(read(stream.build().unwrap()).await);
    }
}

/// Connections whose limiters share a policy have a limit each.
#[tokio::test(start_paused = true)]
async fn limits_with_one_policy_are_met_within_two_percent() {
    let policy = Arc::new(Policy::with_clock(steady(RATE), TokioClock::new()).unwrap());
    let limiter = || InlineLimiter::new(Arc::clone(&policy));
    let builder = || Throttled::builder(Wire::plain());
    let writing = [(), ()].map(|()| tokio::spawn(written(builder().write(limiter()).build().unwrap())));
    is_within_2_percent(read(builder().read(limiter()).build().unwrap()).await);
    for writing in writing {
        is_within_2_percent(writing.await.unwrap());
    }
}

/// The table in the docs of `Throttled`: bounds, and the rates in the long run.
#[tokio::test(start_paused = true)]
async fn documented_limiters_reach_their_rates() {
    let quota = Quota::per_second(RATE).unwrap();
    let ring = CounterRing::new(quota).unwrap();
    let bucket = Gcra::token_bucket(quota, RATE / 10).unwrap();
    let even = || CounterRing::builder(quota).cells(100).even().build().unwrap();
    for (algorithm, bound, least, own) in [
        (AnyAlgorithm::from(steady(RATE)), 10_099_999, 0.999, true),
        (bucket.into(), 10_999_999, 0.999, true),
        (ring.into(), 10_000_000, 0.97, true),
        (even().into(), 10_100_000, 0.98, true),
        (even().into(), 10_100_000, 0.98, false),
    ] {
        let (limiter, _) = limiter(algorithm);
        assert_eq!(limiter.bound(), bound);
        let builder = Throttled::builder(Wire::plain());
        let stream = match own {
            true => builder.write(limiter),
            false => builder.write_shared(Arc::new(Fair::new(limiter))),
        };
        let part = written(stream.build().unwrap()).await as f64 / (RATE * SECONDS) as f64;
        println!("{bound}: {part:.4} of the rate");
        assert!(part >= least, "{bound}: {part}");
    }
}

/// 25 and 400 Gbit/s, which no algorithm counts in single bytes.
#[tokio::test(start_paused = true)]
async fn gigabits_are_met_within_two_percent() {
    const TIME: Duration = Duration::from_millis(200);
    let bytes = vec![7; 16 << 20];
    for gigabits in [25, 400] {
        let rate = gigabits * 125_000_000;
        let quota = Quota::per_second(rate).unwrap();
        let bucket = || {
            let bucket = InUnits::new(quota, |units, unit| Gcra::token_bucket(units, rate / 100 / unit));
            RateLimiter::with_clock(bucket.unwrap(), TokioClock::new())
        };
        let shared = Arc::new(Fair::new(bucket()));
        for (name, builder) in [
            ("own", Throttled::builder(tokio::io::sink()).write(bucket())),
            (
                "shared",
                Throttled::builder(tokio::io::sink()).write_shared(shared),
            ),
        ] {
            let mut stream = builder.build().unwrap();
            let until = Instant::now() + TIME;
            let mut moved = 0;
            while let Ok(written) = tokio::time::timeout_at(until, stream.write(&bytes)).await {
                moved += written.unwrap() as u64;
            }
            // A bucket starts full, with 10 ms.
            let expected = rate as f64 * (TIME.as_secs_f64() + 0.01);
            let off = moved as f64 / expected - 1.0;
            println!("{gigabits} Gbit/s, {name}: {:+.2} %", off * 100.0);
            assert!(off.abs() <= 0.02, "{gigabits} Gbit/s, {name}: {off}");
        }
    }
}

async fn parts(reading: bool) {
    let shared = shared(RATE);
    let mut tasks = Vec::new();
    for _ in 0..1_000 {
        let builder = Throttled::builder(Wire::plain());
        let shared = Arc::clone(&shared);
        tasks.push(match reading {
            true => tokio::spawn(read(builder.read_shared(shared).build().unwrap())),
            false => tokio::spawn(written(builder.write_shared(shared).build().unwrap())),
        });
    }
    let mut parts = Vec::new();
    for task in tasks {
        parts.push(task.await.unwrap());
    }
    let all: u64 = parts.iter().sum();
    is_within_2_percent(all);
    let mean = all as f64 / 1000.0;
    let (least, most) = (*parts.iter().min().unwrap(), *parts.iter().max().unwrap());
    println!("parts of {least} to {most} bytes, {mean:.0} in the mean");
    assert!(least as f64 >= mean * 0.9 && most as f64 <= mean * 1.1);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_writers_get_equal_parts() {
    parts(false).await;
}

#[tokio::test(start_paused = true)]
async fn a_thousand_readers_get_equal_parts() {
    parts(true).await;
}

/// Real time depends on the machine, so the rate is only printed.
#[tokio::test]
async fn over_loopback() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    tokio::spawn(async move { while server.write_all(&[7; 8192]).await.is_ok() {} });
    let mut stream = Throttled::builder(client)
        .read(RateLimiter::with_clock(
            steady(RATE),
            ringgate::wait::TokioClock::new(),
        ))
        .build()
        .unwrap();
    let (began, mut buf, mut moved) = (Instant::now(), vec![0; 65_536], 0);
    while began.elapsed() < Duration::from_secs(1) {
        moved += stream.read(&mut buf).await.unwrap();
    }
    let rate = moved as f64 / began.elapsed().as_secs_f64();
    println!("{:.3} MB/s of 10, over loopback in real time", rate / 1e6);
}
