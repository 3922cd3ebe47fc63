//! A TCP proxy that throttles each connection, and all connections together.
//!
//! ```text
//! cargo run --release --features wait --example proxy -- 127.0.0.1:8080 127.0.0.1:80 --each 1MB/s --all 10MB/s
//! cargo run --release --features wait --example proxy -- --demo
//! ```
//!
//! `--each` limits each direction of each connection, `--all` both directions of all connections together. Both are
//! optional. `--demo` starts a server that sends at full speed, downloads through the proxy over one connection and over
//! five, and prints the measured rates.

extern crate alloc;

use alloc::sync::Arc;
use core::error::Error;
use core::net::SocketAddr;
use core::time::Duration;
use std::io::{self, ErrorKind};
use std::time::Instant;

use ringgate::throttle::Throttled;
use ringgate::{ConfigError, Fair, Gcra, QuantaClock, Quota, RateLimiter};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};

const USAGE: &str = "usage: proxy LISTEN UPSTREAM [--each RATE] [--all RATE]
       proxy --demo [--each RATE] [--all RATE]
a RATE is a number of B/s, kB/s, MB/s or GB/s, as in 1.5MB/s";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    if arguments.demo {
        return demo(
            arguments.each.or(Some(1_000_000)),
            arguments.all.or(Some(3_000_000)),
        )
        .await;
    }
    let [listen, upstream] = arguments.addresses.as_slice() else {
        return Err(USAGE.into());
    };
    let limits = Limits::new(arguments.each, arguments.all)?;
    let listener = TcpListener::bind(listen).await?;
    println!("{} -> {upstream}", listener.local_addr()?);
    serve(listener, upstream.clone(), limits).await;
    Ok(())
}

/// The limits, in bytes per second.
struct Limits {
    each: Option<Gcra>,
    all: Option<Arc<Fair<RateLimiter<Gcra>>>>,
    /// Shared by all limiters, because each new clock is calibrated.
    clock: QuantaClock,
}

impl Limits {
    fn new(each: Option<u64>, all: Option<u64>) -> Result<Self, ConfigError> {
        let clock = QuantaClock::new();
        // A burst of 100 ms, which accrues while the other connections have their turns.
        let each = each.map(|rate| bucket(rate, rate / 10)).transpose()?;
        // A burst of 10 ms suffices for the shared limiter: timers are one or two milliseconds late.
        let all = all.map(|rate| bucket(rate, rate / 100)).transpose()?;
        let shared = |bucket| Arc::new(Fair::new(RateLimiter::with_clock(bucket, clock.clone())));
        Ok(Self {
            each,
            all: all.map(shared),
            clock,
        })
    }

    fn throttle(&self, client: TcpStream) -> Result<Throttled<TcpStream>, ConfigError> {
        let mut builder = Throttled::builder(client);
        if let Some(each) = &self.each {
            let own = || RateLimiter::with_clock(each.clone(), self.clock.clone());
            builder = builder.read(own()).write(own());
        }
        if let Some(all) = &self.all {
            builder = builder.read_shared(Arc::clone(all)).write_shared(Arc::clone(all));
        }
        builder.build()
    }
}

/// A bucket that admits at most `rate + burst` bytes in any second.
fn bucket(rate: u64, burst: u64) -> Result<Gcra, ConfigError> {
    Gcra::token_bucket(Quota::per_second(rate)?, burst.max(1))
}

/// Accepts connections forever.
async fn serve<A>(listener: TcpListener, upstream: A, limits: Limits)
where
    A: ToSocketAddrs + Clone + Send + Sync + 'static,
{
    let limits = Arc::new(limits);
    loop {
        let (client, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // For example, too many files are open. The pause lets other connections close theirs.
                eprintln!("accept: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (limits, upstream) = (Arc::clone(&limits), upstream.clone());
        tokio::spawn(async move {
            if let Err(error) = forward(client, upstream, &limits).await {
                eprintln!("{peer}: {error}");
            }
        });
    }
}

async fn forward(
    client: TcpStream,
    upstream: impl ToSocketAddrs,
    limits: &Limits,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut upstream = TcpStream::connect(upstream).await?;
    let mut client = limits.throttle(client)?;
    match copy_bidirectional(&mut client, &mut upstream).await {
        // One of the two peers has closed the connection.
        Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(()),
    }
}

#[derive(Default)]
struct Arguments {
    addresses: Vec<String>,
    each: Option<u64>,
    all: Option<u64>,
    demo: bool,
}

impl Arguments {
    fn parse(mut given: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self::default();
        while let Some(argument) = given.next() {
            match argument.as_str() {
                "--each" => arguments.each = Some(rate(given.next())?),
                "--all" => arguments.all = Some(rate(given.next())?),
                "--demo" => arguments.demo = true,
                _ if argument.starts_with('-') => return Err(USAGE.into()),
                _ => arguments.addresses.push(argument),
            }
        }
        Ok(arguments)
    }
}

/// Parses a rate in bytes per second.
fn rate(text: Option<String>) -> Result<u64, String> {
    let text = text.ok_or(USAGE)?;
    let invalid = || format!("invalid rate: {text:?} (expected a number of B/s, kB/s, MB/s or GB/s)");
    let amount = text.trim_end_matches("/s").trim_end_matches('B');
    let (amount, unit) = match amount.chars().last() {
        Some('k') => (&amount[..amount.len() - 1], 1e3),
        Some('M') => (&amount[..amount.len() - 1], 1e6),
        Some('G') => (&amount[..amount.len() - 1], 1e9),
        _ => (amount, 1.0),
    };
    let bytes = amount.trim().parse::<f64>().map_err(|_| invalid())? * unit;
    if !(1.0..=1e9).contains(&bytes) {
        return Err(format!("invalid rate: {text} (expected 1B/s to 1GB/s)"));
    }
    Ok(bytes as u64)
}

async fn demo(each: Option<u64>, all: Option<u64>) -> Result<(), Box<dyn Error>> {
    let server = TcpListener::bind("127.0.0.1:0").await?;
    let upstream = server.local_addr()?;
    tokio::spawn(send_to_all(server));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let proxy = listener.local_addr()?;
    let limits = Limits::new(each, all)?;
    tokio::spawn(serve(listener, upstream, limits));

    let megabytes = |rate: Option<u64>| rate.unwrap_or_default() as f64 / 1e6;
    println!(
        "limit of each direction of a connection: {} MB/s; of all connections: {} MB/s",
        megabytes(each),
        megabytes(all)
    );
    for connections in [1, 5] {
        let fetches: Vec<_> = (0..connections).map(|_| tokio::spawn(fetch(proxy))).collect();
        let mut sum = 0.0;
        for (number, fetch) in fetches.into_iter().enumerate() {
            let rate = fetch.await??;
            println!("connection {} of {connections}: {rate:.3} MB/s", number + 1);
            sum += rate;
        }
        println!("all {connections} connections: {sum:.3} MB/s");
    }
    Ok(())
}

/// Sends to each client until it disconnects.
async fn send_to_all(listener: TcpListener) {
    while let Ok((mut client, _)) = listener.accept().await {
        tokio::spawn(async move { while client.write_all(&[7; 8192]).await.is_ok() {} });
    }
}

/// Reads for half a second, in which bursts are spent and buffers are filled, and then for three seconds. Returns the
/// rate of the three seconds in MB/s.
async fn fetch(from: SocketAddr) -> io::Result<f64> {
    let mut stream = TcpStream::connect(from).await?;
    receive(&mut stream, Duration::from_millis(500)).await?;
    Ok(receive(&mut stream, Duration::from_secs(3)).await? / 1e6)
}

/// Reads for `time`, and returns the rate in bytes per second.
async fn receive(stream: &mut TcpStream, time: Duration) -> io::Result<f64> {
    let (began, mut buf, mut bytes) = (Instant::now(), vec![0; 64 * 1024], 0);
    while began.elapsed() < time {
        match stream.read(&mut buf).await? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => bytes += count,
        }
    }
    Ok(bytes as f64 / began.elapsed().as_secs_f64())
}
