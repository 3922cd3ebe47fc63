//! Clocks: the cost of a reading, the cost of a decision with each clock, and the error of each clock.

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use ringgate::clock::CoarseClock;
use ringgate::{Algorithm, Clock, Nanos, QuantaClock, RateLimiter};
use rustix::time::{ClockId, clock_getres, clock_gettime};

use crate::contestant::{Contestant, Decide, Room, Side};
use crate::direct::measure;
use crate::floors::{self, CLOCK_AND_EXCHANGE, CLOCK_AND_LOAD};
use crate::measure::{Effort, Row, cores, on_threads, print_head};
use crate::plot::{self, Bar};
use crate::rivals::ours;

/// The decisions that share one reading.
const READING: u64 = 16;

/// The reading that other readings are compared with.
const STD: &str = "clock: std Instant";

/// The system's monotonic clock, as the standard library reads it.
#[derive(Clone)]
struct StdClock(Instant);

impl Clock for StdClock {
    fn now(&self) -> Nanos {
        Nanos::from_duration(self.0.elapsed())
    }
}

/// The system's monotonic clock as of the kernel's last tick.
#[derive(Clone)]
struct KernelCoarse(u64);

impl KernelCoarse {
    fn start() -> Self {
        Self(Self::read())
    }

    fn read() -> u64 {
        let now = clock_gettime(ClockId::MonotonicCoarse);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }

    fn tick() -> Duration {
        Duration::from_nanos(clock_getres(ClockId::MonotonicCoarse).tv_nsec as u64)
    }
}

impl Clock for KernelCoarse {
    fn now(&self) -> Nanos {
        Nanos::new(Self::read() - self.0)
    }

    fn error(&self, _: Duration) -> Duration {
        Self::tick()
    }
}

pub fn run(effort: &Effort, plots: &Path) {
    let coarse = ours::coarse();
    print_head("Clocks: one reading", STD);
    let rows = measure(effort, "reading", STD, &[1], &readings(&coarse));
    let mut panels = vec![panel("One reading", &rows)];
    print_head("Clocks: one decision", "floor");
    for (workload, room, floor) in [
        ("admitted", Room::Plenty, CLOCK_AND_EXCHANGE),
        ("denied", Room::None, CLOCK_AND_LOAD),
    ] {
        let mut all = decisions("Gcra", room, &coarse, ours::gcra);
        all.extend(decisions("CounterRing packed", room, &coarse, ours::packed));
        let bare = |one: &Contestant| [floor, "floor: compare-exchange"].contains(&one.name);
        all.extend(floors::direct(room).into_iter().filter(bare));
        let rows = measure(effort, workload, floor, &[1], &all);
        panels.push(panel(&format!("One decision, {workload}"), &rows));
    }
    plot::bars(&plots.join("clocks.svg"), &panels);
    errors(effort, &coarse);
}

fn panel(title: &str, rows: &[Row]) -> (String, Vec<Bar>) {
    let bars = rows.iter().map(|row| Bar {
        name: row.name,
        side: row.side,
        value: row.nanos(),
        mark: None,
    });
    (format!("{title}, 1 thread, ns"), bars.collect())
}

/// One reading of each clock.
fn readings(coarse: &CoarseClock) -> Vec<Contestant> {
    let clock = quanta::Clock::new();
    let (now, raw) = (clock.clone(), clock.clone());
    let recent = clock;
    vec![
        reading("clock: QuantaClock, the default", QuantaClock::new()),
        reading("clock: CoarseClock", coarse.clone()),
        reading("clock: kernel, coarse", KernelCoarse::start()),
        reading("clock: std Instant, since an origin", StdClock(Instant::now())),
        floors::floor(STD, || {
            let _ = black_box(Instant::now());
            true
        }),
        floors::floor("clock: quanta now", move || {
            let _ = black_box(black_box(&now).now());
            true
        }),
        floors::floor("clock: quanta recent", move || {
            let _ = black_box(black_box(&recent).recent());
            true
        }),
        floors::floor("clock: counter, raw", move || black_box(&raw).raw() > 0),
    ]
}

fn reading(name: &'static str, clock: impl Clock + Send + Sync + 'static) -> Contestant {
    floors::floor(name, move || black_box(&clock).now().get() < u64::MAX)
}

/// The limiter with each clock.
fn decisions<A>(
    name: &str,
    room: Room,
    coarse: &CoarseClock,
    algorithm: impl Fn(Room) -> A,
) -> Vec<Contestant>
where
    A: Algorithm + Send + Sync + 'static,
{
    // The name is leaked, because names are static.
    let label = |with: &str| -> &'static str { format!("{name}, {with}").leak() };
    vec![
        with_clock(label("QuantaClock"), room, QuantaClock::new(), &algorithm),
        with_clock(label("CoarseClock"), room, coarse.clone(), &algorithm),
        with_clock(label("kernel, coarse"), room, KernelCoarse::start(), &algorithm),
        with_clock(label("std Instant"), room, StdClock(Instant::now()), &algorithm),
        once(label("one reading for 16"), room, &algorithm),
    ]
}

fn with_clock<A, C>(name: &'static str, room: Room, clock: C, algorithm: &impl Fn(Room) -> A) -> Contestant
where
    A: Algorithm + Send + Sync + 'static,
    C: Clock + Clone + Send + Sync + 'static,
{
    Contestant::new(name, Side::Ours, room, |room| {
        let limiter = RateLimiter::with_clock(algorithm(room), clock.clone());
        move || black_box(&limiter).check().is_ok()
    })
}

/// A limiter with the default clock, called by `check_at` with one reading for [`READING`] decisions.
struct Once<A>(RateLimiter<A>);

impl<A: Algorithm + Send + Sync> Decide for Once<A> {
    fn batch(&self, decisions: u64) -> u64 {
        let some = |_| {
            let limiter = black_box(&self.0);
            let now = limiter.clock().now();
            let one = |_| u64::from(black_box(limiter).check_at(now, 1).is_ok());
            (0..READING).map(one).sum::<u64>()
        };
        (0..decisions / READING).map(some).sum()
    }
}

fn once<A>(name: &'static str, room: Room, algorithm: &impl Fn(Room) -> A) -> Contestant
where
    A: Algorithm + Send + Sync + 'static,
{
    let limiter = RateLimiter::new(algorithm(room));
    if room == Room::None {
        while limiter.check().is_ok() {}
    }
    Contestant::from_work(name, Side::Ours, Once(limiter))
}

/// The observed error of a clock, in nanoseconds.
struct Watched {
    name: &'static str,
    clock: Box<dyn Clock + Send + Sync>,
    /// The median step of the clock, or the time between two readings if that is longer.
    step: u64,
    /// The largest difference between reading and true time in the first tenth of the measurement.
    offset: i64,
    behind: i64,
    /// The largest difference between reading and true time in the last tenth of the measurement.
    at_last: i64,
}

/// Measures the error of each clock against the system's precise clock, on one thread while all cores are busy.
fn errors(effort: &Effort, coarse: &CoarseClock) {
    let time = effort.least * 40;
    let watched = on_threads(cores().len(), |thread| match thread {
        0 => watch(time, coarse),
        _ => spin(time),
    });
    println!(
        "\n### Clocks: error in {} s with all cores busy\n",
        time.as_secs_f64()
    );
    println!(
        "| | moves by, ns | behind the system's clock at most, µs | drift, millionths | stated by error() for 1 s, µs |"
    );
    println!("|---|--:|--:|--:|--:|");
    for one in watched.into_iter().flatten() {
        let drift = (one.at_last - one.offset) as f64 / (time.as_nanos() as f64 * 0.9);
        println!(
            "| {} | {} | {:.1} | {:.1} | {:.1} |",
            one.name,
            one.step,
            one.behind as f64 / 1e3,
            drift * 1e6,
            one.clock.error(Duration::from_secs(1)).as_nanos() as f64 / 1e3,
        );
    }
}

fn spin(time: Duration) -> Vec<Watched> {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
    Vec::new()
}

fn watch(time: Duration, coarse: &CoarseClock) -> Vec<Watched> {
    let begun = Instant::now();
    let new = |(name, clock): (&'static str, Box<dyn Clock + Send + Sync>)| Watched {
        name,
        step: step(&*clock),
        clock,
        offset: i64::MIN,
        behind: 0,
        at_last: i64::MIN,
    };
    let clocks: [(_, Box<dyn Clock + Send + Sync>); 4] = [
        ("QuantaClock", Box::new(QuantaClock::new())),
        ("CoarseClock, 1 ms", Box::new(coarse.clone())),
        ("kernel, coarse", Box::new(KernelCoarse::start())),
        ("std Instant", Box::new(StdClock(begun))),
    ];
    let mut all = clocks.map(new);
    let start = begun.elapsed();
    loop {
        let passed = begun.elapsed() - start;
        for one in &mut all {
            let before = begun.elapsed();
            let reading = one.clock.now();
            let after = begun.elapsed();
            if after - before > Duration::from_micros(1) {
                // The thread was preempted in between: the reading shows nothing about the clock.
                continue;
            }
            let ahead = reading.get() as i64 - after.as_nanos() as i64;
            if passed < time / 10 {
                one.offset = one.offset.max(ahead);
            } else {
                one.behind = one.behind.max(one.offset - ahead);
            }
            if passed >= time * 9 / 10 {
                one.at_last = one.at_last.max(ahead);
            }
        }
        if passed >= time {
            return all.into();
        }
    }
}

/// The median step of a clock.
fn step(clock: &dyn Clock) -> u64 {
    let (start, mut last, mut moves) = (Instant::now(), clock.now().get(), Vec::new());
    while start.elapsed() < Duration::from_millis(200) {
        for _ in 0..100 {
            let now = clock.now().get();
            if now > last {
                moves.push(now - last);
            }
            last = now;
        }
    }
    moves.sort_unstable();
    moves[moves.len() / 2]
}
