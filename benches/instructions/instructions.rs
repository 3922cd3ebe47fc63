//! The cost of the fast paths in instructions, which is equal in every run. `ci/instructions.sh` counts them under valgrind
//! and compares them with `benches/instructions/instructions.txt`.
//!
//! `instructions N` makes N decisions by each path, and prints the name of each path after its decisions. Only the
//! instructions within [`counted_turns`] are counted, and each path calls it once. Without a number
//! (`cargo run --release -p ringgate-instructions`) the program makes a few decisions by each path, and asserts that
//! each has the outcome that the path's name states.
//!
//! Windows last a day, so that no cell ends while decisions are counted. Seeds, stripes and batches are fixed.

mod http;
#[path = "../service.rs"]
mod service;

use core::error::Error;
use core::hash::Hash;
use core::hint::black_box;
use core::time::Duration;

use ringgate::algorithm::Reclaim;
use ringgate::keyed::AnyKey;
use ringgate::rules::{Block, TierOf};
use ringgate::{
    Algorithm, Clock, ConfigError, CounterRing, Gcra, Key, KeyedRateLimiter, ManualClock, Nanos, QuantaClock,
    Quota, RateLimiter, Rule, RuleSet, SlidingWindow, StripedLimiter, TimestampRing, UnitRing,
};

/// A function that makes the given number of decisions, and returns how many had the outcome of the path's name.
type Work = Box<dyn FnMut(u64) -> u64>;

/// Every path, by its name.
type Paths = Vec<(String, Work)>;

/// The number of different keys, and of the decisions in one call of `check_many`.
const KEYS: u64 = 1_024;

const DAY: Duration = Duration::from_secs(24 * 3600);

const SEEDS: [u64; 4] = [1, 2, 3, 4];

fn main() -> Result<(), Box<dyn Error>> {
    let given = std::env::args().nth(1).and_then(|arg| arg.parse::<u64>().ok());
    let decisions = given.unwrap_or(1).next_multiple_of(KEYS);
    let clock = QuantaClock::new();
    let mut paths: Paths = vec![
        ("one turn, no decision".into(), counted(|| black_box(true))),
        ("QuantaClock::now".into(), clock_read(clock.clone())),
    ];
    paths.extend(limiters(&clock)?);
    paths.extend(keyed_limiters(&clock)?);
    paths.extend(new_keys(&clock, decisions)?);
    paths.extend(evicting_keys(&clock)?);
    paths.push(("StripedLimiter, check, admitted".into(), striped(clock.clone())?));
    paths.push((
        "StripedLimiter, check, denied".into(),
        striped_denied(clock.clone())?,
    ));
    paths.push((
        "StripedLimiter, local stripe, admitted".into(),
        local_stripe(clock.clone())?,
    ));
    paths.extend(rule_sets(&clock)?);
    paths.extend(http::layers(&clock)?);
    for (name, mut work) in paths {
        whole_path(&name, &mut work, decisions);
    }
    Ok(())
}

// `ci/instructions.sh` has the names of the next two functions.

/// Runs one path, and prints its name. Valgrind writes the count to a file when this function returns.
#[inline(never)]
fn whole_path(name: &str, work: &mut Work, decisions: u64) {
    assert_eq!(work(decisions), decisions, "{name}");
    println!("{decisions} {name}");
}

/// Runs the turns whose instructions are counted.
#[inline(never)]
fn counted_turns(turns: u64, mut turn: impl FnMut() -> bool) -> u64 {
    (0..turns).map(|_| u64::from(turn())).sum()
}

fn counted(mut turn: impl FnMut() -> bool + 'static) -> Work {
    Box::new(move |turns| counted_turns(turns, &mut turn))
}

fn clock_read(clock: QuantaClock) -> Work {
    counted(move || black_box(&clock).now() >= black_box(Nanos::ZERO))
}

fn limiters(clock: &QuantaClock) -> Result<Paths, ConfigError> {
    let even = |quota| CounterRing::builder(quota).cells(CELLS).even().build();
    let two = |quota, hour| CounterRing::builder(quota).cells(CELLS).also(hour).build();
    let [many_an_hour, few_an_hour] = [1_000_000_000, 1_000].map(Quota::per_hour);
    let (plenty, many, few) = (plenty()?, many()?, few()?);
    // A lap of the ring takes longer than its window, so every slot that is reused is stale.
    let log = TimestampRing::new(Quota::new(1_000, Duration::from_micros(5))?)?;

    let mut paths = Paths::new();
    add(&mut paths, clock, "packed", (1, packed()?), (1, packed_few()?));
    add(
        &mut paths,
        clock,
        "units",
        (1, UnitRing::new(plenty)?),
        (1, UnitRing::new(few)?),
    );
    add(&mut paths, clock, "wide", (7, ring(plenty)?), (7, ring(many)?));
    add(&mut paths, clock, "even", (6, even(plenty)?), (6, even(many)?));
    let (admits, denies) = (two(plenty, many_an_hour?)?, two(many, few_an_hour?)?);
    add(&mut paths, clock, "two windows", (13, admits), (13, denies));
    let denies = TimestampRing::new(few)?;
    add(&mut paths, clock, "TimestampRing", (1_001, log), (101, denies));
    add(&mut paths, clock, "Gcra", (1, fast_gcra()?), (1, Gcra::new(few)?));

    add_lower(&mut paths, clock, "packed", &packed()?, LOWER);
    add_lower(&mut paths, clock, "wide", &ring(plenty)?, LOWER);
    add_lower(&mut paths, clock, "even", &even(plenty)?, LOWER);
    let log = TimestampRing::new(Quota::new(1_000, Duration::from_micros(5))?)?;
    paths.push((
        "TimestampRing, with_limit, check, admitted".into(),
        lower_admitted(RateLimiter::with_clock(log, clock.clone()), 900),
    ));
    paths.push((
        "Gcra, with_limit, check, admitted".into(),
        lower_admitted(RateLimiter::with_clock(fast_gcra()?, clock.clone()), 500_000_000),
    ));
    Ok(paths)
}

/// A lower limit that is never used up.
const LOWER: u64 = 3_000_000_000;

/// The cells of every ring. A fixed number keeps the counts independent of the default.
const CELLS: u64 = 5;

fn ring(quota: Quota) -> Result<CounterRing, ConfigError> {
    CounterRing::builder(quota).cells(CELLS).build()
}

/// A quota that is never used up, and too large for a packed ring.
fn plenty() -> Result<Quota, ConfigError> {
    Quota::new(10_000_000_000, DAY)
}

/// A quota that is used up before the count, and too large for a packed ring.
fn many() -> Result<Quota, ConfigError> {
    Quota::new(10_000, DAY)
}

/// A packed ring that is used up before the count.
fn packed_few() -> Result<CounterRing, ConfigError> {
    CounterRing::builder(Quota::new(5, DAY)?).cells(CELLS).build()
}

/// A quota that is used up before the count.
fn few() -> Result<Quota, ConfigError> {
    Quota::new(100, DAY)
}

/// A quota whose ring of 60 cells has several counts in a word of a table.
fn thousand() -> Result<Quota, ConfigError> {
    Quota::new(1_000, DAY)
}

/// A ring of 60 cells. In a table it has several counts in a word.
fn grouped() -> Result<CounterRing, ConfigError> {
    let ring = CounterRing::new(thousand()?)?;
    assert!(ring.clone().for_table(1)?.words() < ring.words());
    Ok(ring)
}

/// A ring of one word and one cell. The code is the same for any number of cells.
fn packed() -> Result<CounterRing, ConfigError> {
    CounterRing::fixed_window(Quota::new(4_000_000_000, DAY)?)
}

fn fast_gcra() -> Result<Gcra, ConfigError> {
    Gcra::new(Quota::per_second(1_000_000_000)?)
}

/// Adds the paths of a limiter that admits, and of one that is used up. Asserts the number of words of each, and so that
/// a ring has the representation that its path names.
fn add<A: Algorithm + Clone + 'static>(
    paths: &mut Paths,
    clock: &QuantaClock,
    form: &str,
    admits: (usize, A),
    denies: (usize, A),
) {
    let of = |(words, algorithm): &(usize, A)| {
        assert_eq!(algorithm.words(), *words);
        RateLimiter::with_clock(algorithm.clone(), clock.clone())
    };
    let used_up = || {
        let limiter = of(&denies);
        while limiter.check().is_ok() {}
        limiter
    };
    for (path, work) in [
        ("check, admitted", admitted(of(&admits))),
        ("check, denied", denied(used_up())),
        ("check_at, admitted", admitted_at(of(&admits))),
        ("check_at, denied", denied_at(used_up())),
        ("check_mut, admitted", admitted_mut(of(&admits))),
        ("check_mut, denied", denied_mut(used_up())),
    ] {
        paths.push((format!("{form}, {path}"), work));
    }
}

/// Adds the paths of a limiter whose decisions have a lower limit. With the limit 1 they are denied.
fn add_lower<A: Reclaim + Clone + 'static>(
    paths: &mut Paths,
    clock: &QuantaClock,
    form: &str,
    algorithm: &A,
    limit: u64,
) {
    let of = || RateLimiter::with_clock(algorithm.clone(), clock.clone());
    let denies = of();
    assert!(denies.check().is_ok());
    for (path, work) in [
        ("with_limit, check, admitted", lower_admitted(of(), limit)),
        ("with_limit, check, denied", lower_denied(denies, 1)),
    ] {
        paths.push((format!("{form}, {path}"), work));
    }
}

// The limiter passes through `black_box` in every turn, so that each decision loads it from memory.

fn admitted<A: Algorithm + 'static>(limiter: RateLimiter<A>) -> Work {
    counted(move || black_box(&limiter).check().is_ok())
}

fn denied<A: Algorithm + 'static>(limiter: RateLimiter<A>) -> Work {
    counted(move || black_box(&limiter).check().is_err())
}

fn admitted_at<A: Algorithm + 'static>(limiter: RateLimiter<A>) -> Work {
    let mut time = Time::of(limiter.clock());
    counted(move || black_box(&limiter).check_at(time.next(), 1).is_ok())
}

fn denied_at<A: Algorithm + 'static>(limiter: RateLimiter<A>) -> Work {
    let mut time = Time::of(limiter.clock());
    counted(move || black_box(&limiter).check_at(time.next(), 1).is_err())
}

fn admitted_mut<A: Algorithm + 'static>(mut limiter: RateLimiter<A>) -> Work {
    counted(move || black_box(&mut limiter).check_mut().is_ok())
}

fn lower_admitted<A: Reclaim + 'static>(limiter: RateLimiter<A>, limit: u64) -> Work {
    counted(move || {
        let lower = black_box(&limiter).with_limit(limit);
        lower.is_ok_and(|lower| lower.check().is_ok())
    })
}

fn lower_denied<A: Reclaim + 'static>(limiter: RateLimiter<A>, limit: u64) -> Work {
    counted(move || {
        let lower = black_box(&limiter).with_limit(limit);
        lower.is_ok_and(|lower| lower.check().is_err())
    })
}

fn denied_mut<A: Algorithm + 'static>(mut limiter: RateLimiter<A>) -> Work {
    counted(move || black_box(&mut limiter).check_mut().is_err())
}

/// Times that the caller passes, 16 ns apart.
struct Time(u64);

impl Time {
    fn of(clock: &QuantaClock) -> Self {
        Self(clock.now().get())
    }

    #[inline]
    fn next(&mut self) -> Nanos {
        self.0 += 16;
        Nanos::new(black_box(self.0))
    }
}

/// The keys in a cycle.
struct Turns(u64);

impl Turns {
    #[inline]
    fn next(&mut self) -> u64 {
        self.0 = (self.0 + 1) % KEYS;
        self.0
    }
}

fn keyed_limiters(clock: &QuantaClock) -> Result<Paths, ConfigError> {
    let mut paths = Paths::new();
    add_keyed(
        &mut paths,
        clock,
        "Gcra",
        (fast_gcra()?, 500_000_000),
        Gcra::new(few()?)?,
    )?;
    add_keyed(&mut paths, clock, "packed", (packed()?, LOWER), packed_few()?)?;
    let (admits, denies) = (UnitRing::new(plenty()?)?, UnitRing::new(few()?)?);
    add_keyed(&mut paths, clock, "units", (admits, LOWER), denies)?;
    let (admits, denies) = (SlidingWindow::new(plenty()?)?, SlidingWindow::new(few()?)?);
    add_keyed(&mut paths, clock, "SlidingWindow", (admits, LOWER), denies)?;
    let (admits, denies) = (ring(plenty()?)?, ring(many()?)?);
    add_keyed(&mut paths, clock, "wide", (admits, LOWER), denies)?;
    let denies = CounterRing::new(few()?)?;
    add_keyed(&mut paths, clock, "grouped", (grouped()?, 900), denies)?;
    let day = |count: u64| DAY / u32::try_from(count).expect("few cells");
    let window = SlidingWindow::new(thousand()?)?;
    let ring = UnitRing::new(thousand()?)?;
    let cell = ring.span() / u32::try_from(ring.cells() + 1).expect("few cells");
    for (path, work) in [
        ("Gcra", once_a_cell(Gcra::new(thousand()?)?, day(60))?),
        ("SlidingWindow", once_a_cell(window, cell)?),
        ("grouped", once_a_cell(grouped()?, day(60))?),
    ] {
        paths.push((format!("keyed, {path}, check_at, once a cell"), work));
    }
    Ok(paths)
}

/// Adds the paths of a table whose keys all have an entry. `lower` is a lower limit of the limiter that admits.
fn add_keyed<A: Reclaim + Clone + 'static>(
    paths: &mut Paths,
    clock: &QuantaClock,
    form: &str,
    (admits, lower): (A, u64),
    denies: A,
) -> Result<(), ConfigError> {
    let of = |algorithm: &A| {
        let builder = KeyedRateLimiter::builder(algorithm.clone()).capacity(4 * KEYS);
        let limiter = builder.build_with(clock.clone(), AnyKey::with_seeds(SEEDS))?;
        assert!((0..KEYS).all(|key| limiter.check(&key).is_ok()));
        Ok(limiter)
    };
    let used_up = of(&denies)?;
    for key in 0..KEYS {
        while used_up.check(&key).is_ok() {}
    }
    for (path, work) in [
        ("check, admitted", keyed_admitted(of(&admits)?)),
        ("check, denied", keyed_denied(used_up)),
        ("check_at, admitted", keyed_admitted_at(of(&admits)?)),
        ("check_many, admitted", many_admitted(of(&admits)?)),
        (
            "with_limit, check, admitted",
            keyed_lower_admitted(of(&admits)?, lower),
        ),
    ] {
        paths.push((format!("keyed, {form}, {path}"), work));
    }
    Ok(())
}

/// Paths that enter new keys into a table with vacant entries.
fn new_keys(clock: &QuantaClock, decisions: u64) -> Result<Paths, ConfigError> {
    let paths = vec![
        (
            "keyed, Gcra, a new key".into(),
            new_key(clock, fast_gcra()?, decisions)?,
        ),
        (
            "keyed, packed, a new key".into(),
            new_key(clock, packed()?, decisions)?,
        ),
        (
            "keyed, SlidingWindow, a new key".into(),
            new_key(clock, SlidingWindow::new(plenty()?)?, decisions)?,
        ),
        (
            "keyed, wide, a new key".into(),
            new_key(clock, ring(plenty()?)?, decisions)?,
        ),
        (
            "keyed, grouped, a new key".into(),
            new_key(clock, grouped()?, decisions)?,
        ),
    ];
    Ok(paths)
}

fn new_key<A: Reclaim + 'static>(
    clock: &QuantaClock,
    algorithm: A,
    decisions: u64,
) -> Result<Work, ConfigError> {
    let builder = KeyedRateLimiter::builder(algorithm).capacity(decisions);
    let limiter = builder.build_with(clock.clone(), AnyKey::with_seeds(SEEDS))?;
    let mut key = 0;
    Ok(counted(move || {
        key += 1;
        black_box(&limiter)
            .check(&key)
            .is_ok_and(|taken| !taken.is_overflow())
    }))
}

/// Paths that enter new keys into a full table, whose keys are idle after a microsecond.
fn evicting_keys(clock: &QuantaClock) -> Result<Paths, ConfigError> {
    let quota = Quota::new(1_000, Duration::from_micros(1))?;
    let paths = vec![
        (
            "keyed, Gcra, a new key in an idle entry".into(),
            evicting_key(clock, Gcra::new(quota)?)?,
        ),
        (
            "keyed, packed, a new key in an idle entry".into(),
            evicting_key(clock, CounterRing::fixed_window(quota)?)?,
        ),
    ];
    Ok(paths)
}

fn evicting_key<A: Reclaim + 'static>(clock: &QuantaClock, algorithm: A) -> Result<Work, ConfigError> {
    let builder = KeyedRateLimiter::builder(algorithm).capacity(KEYS);
    let limiter = builder.build_with(clock.clone(), AnyKey::with_seeds(SEEDS))?;
    let mut key = 0;
    let mut next = move || {
        key += 1;
        let decision = black_box(&limiter).check(&key);
        decision.is_ok_and(|admitted| !admitted.is_overflow())
    };
    // These keys leave no entry vacant.
    for _ in 0..32 * KEYS {
        next();
    }
    Ok(counted(next))
}

fn keyed_admitted<A: Reclaim + 'static>(limiter: KeyedRateLimiter<A>) -> Work {
    let mut turns = Turns(0);
    counted(move || black_box(&limiter).check(&turns.next()).is_ok())
}

fn keyed_denied<A: Reclaim + 'static>(limiter: KeyedRateLimiter<A>) -> Work {
    let mut turns = Turns(0);
    counted(move || black_box(&limiter).check(&turns.next()).is_err())
}

fn keyed_lower_admitted<A: Reclaim + 'static>(limiter: KeyedRateLimiter<A>, limit: u64) -> Work {
    let mut turns = Turns(0);
    counted(move || {
        let lower = black_box(&limiter).with_limit(limit);
        lower.is_ok_and(|lower| lower.check(&turns.next()).is_ok())
    })
}

fn keyed_admitted_at<A: Reclaim + 'static>(limiter: KeyedRateLimiter<A>) -> Work {
    let (mut turns, mut time) = (Turns(0), Time::of(limiter.clock()));
    counted(move || {
        black_box(&limiter)
            .check_at(&turns.next(), time.next(), 1)
            .is_ok()
    })
}

/// Asks each key once in a cell, with permits in all cells of the window.
fn once_a_cell<A: Reclaim + 'static>(algorithm: A, cell: Duration) -> Result<Work, ConfigError> {
    let builder = KeyedRateLimiter::builder(algorithm).capacity(4 * KEYS);
    let limiter = builder.build_with(ManualClock::new(), AnyKey::with_seeds(SEEDS))?;
    let (mut turns, mut now) = (Turns(0), Nanos::ZERO);
    let mut next = move || {
        let key = turns.next();
        if key == 0 {
            now = now.saturating_add(cell);
        }
        black_box(&limiter).check_at(&key, now, 1).is_ok()
    };
    // More than a window.
    for _ in 0..100 * KEYS {
        assert!(next());
    }
    Ok(counted(next))
}

fn many_admitted<A: Reclaim + 'static>(limiter: KeyedRateLimiter<A>) -> Work {
    let keys: Vec<u64> = (0..KEYS).collect();
    Box::new(move |decisions| {
        KEYS * counted_turns(decisions / KEYS, || {
            let mut admitted = 0;
            black_box(&limiter).check_many(black_box(&keys), |_, answer| {
                admitted += u64::from(answer.is_ok())
            });
            admitted == KEYS
        })
    })
}

fn striped(clock: QuantaClock) -> Result<Work, ConfigError> {
    let builder = StripedLimiter::builder(plenty()?)
        .cells(CELLS)
        .stripes(4)
        .batch(64);
    let limiter = builder.build_with(clock)?;
    Ok(counted(move || black_box(&limiter).check().is_ok()))
}

/// Denials by a limiter whose permits are used up for the day.
fn striped_denied(clock: QuantaClock) -> Result<Work, ConfigError> {
    let builder = StripedLimiter::builder(Quota::new(10_000, DAY)?)
        .cells(CELLS)
        .stripes(4)
        .batch(64);
    let limiter = builder.build_with(clock)?;
    while limiter.check().is_ok() {}
    Ok(counted(move || black_box(&limiter).check().is_err()))
}

fn local_stripe(clock: QuantaClock) -> Result<Work, ConfigError> {
    let builder = StripedLimiter::builder(plenty()?)
        .cells(CELLS)
        .stripes(4)
        .batch(64);
    // The work owns the local stripe, which borrows the limiter, so the limiter has to be static.
    let limiter: &'static StripedLimiter = Box::leak(Box::new(builder.build_with(clock)?));
    let mut stripe = limiter.local_stripe();
    Ok(counted(move || black_box(&mut stripe).check().is_ok()))
}

/// A request with the values that are keys of rules.
struct Request {
    user: u64,
    route: u64,
    address: u64,
}

fn rule_sets(clock: &QuantaClock) -> Result<Paths, Box<dyn Error>> {
    let keys = [
        Key::new("user", |request: &Request, key| request.user.hash(key)),
        Key::new("route", |request: &Request, key| request.route.hash(key)),
        Key::new("address", |request: &Request, key| request.address.hash(key)),
    ];
    let set = |limit, keys: &[&Key<Request>]| {
        let mut rules = RuleSet::builder();
        for (window, key) in (1..).zip(keys) {
            let quota = Quota::new(limit, window * DAY)?;
            let rule = Rule::new(format!("rule {window}"), quota).cells(CELLS);
            rules = rules.rule(rule.by(key).capacity(4 * KEYS));
        }
        Ok::<_, Box<dyn Error>>(rules.build_with(clock.clone(), SEEDS)?)
    };
    let [user, route, address] = &keys;
    let plenty = 100_000_000;
    let with_block = |limit| {
        let block = Block::new(Quota::per_minute(1)?, DAY);
        let rule = Rule::new("rule", Quota::new(limit, DAY)?).cells(CELLS).by(user);
        let rules = RuleSet::builder().rule(rule.capacity(4 * KEYS).block(block));
        Ok::<_, Box<dyn Error>>(rules.build_with(clock.clone(), SEEDS)?)
    };
    let mut paths = Paths::new();
    for (path, states, rules, is_admitted) in [
        ("one rule with a block, admitted", 2, with_block(plenty)?, true),
        ("one rule with a block, denied", 2, with_block(1)?, false),
        ("one rule, admitted", 1, set(plenty, &[user])?, true),
        ("one rule, denied", 1, set(1, &[user])?, false),
        (
            "three on one key, admitted",
            1,
            set(plenty, &[user, user, user])?,
            true,
        ),
        (
            "three on three keys, admitted",
            3,
            set(plenty, &[user, route, address])?,
            true,
        ),
    ] {
        assert_eq!(rules.states(), states);
        paths.push((format!("rules, {path}"), checked(rules, is_admitted)));
    }
    paths.push((
        "rules, one of 10,000 tiers, admitted".into(),
        tiered(clock, user)?,
    ));
    for (path, limit, is_admitted) in [
        ("a lower limit by request, admitted", 90_000_000, true),
        ("a lower limit by request, denied", 1, false),
        ("an equal limit by request, admitted", 100_000_000, true),
    ] {
        let rule = Rule::new("limits", Quota::new(100_000_000, DAY)?)
            .cells(CELLS)
            .by(user)
            .capacity(4 * KEYS)
            .limit_by(move |_| Some(black_box(limit)));
        let rules = RuleSet::builder().rule(rule);
        let rules = rules.build_with(clock.clone(), SEEDS)?;
        paths.push((format!("rules, {path}"), checked(rules, is_admitted)));
    }
    Ok(paths)
}

/// Decisions by a rule of 10,000 tiers, each by another tier.
fn tiered(clock: &QuantaClock, user: &Key<Request>) -> Result<Work, Box<dyn Error>> {
    // The name of a tier is borrowed from the request or static.
    let names: &[String] = (0..10_000)
        .map(|tier| format!("tier {tier}"))
        .collect::<Vec<_>>()
        .leak();
    let mut rule = Rule::new("tiers", Quota::new(100_000_000, DAY)?)
        .cells(CELLS)
        .by(user)
        .capacity(4 * KEYS);
    for name in names {
        rule = rule.tier(name.as_str(), 90_000_000);
    }
    let spread = move |request: &Request| request.user as usize * 7_919 % names.len();
    let tier_of = TierOf::new("user", move |request| Some(names[spread(request)].as_str()));
    let rules = RuleSet::builder().rule(rule.tier_of(&tier_of));
    Ok(checked(rules.build_with(clock.clone(), SEEDS)?, true))
}

fn checked(rules: RuleSet<Request>, is_admitted: bool) -> Work {
    let mut turns = Turns(0);
    let mut turn = move || {
        let user = turns.next();
        let request = Request {
            user,
            route: user + KEYS,
            address: user + 2 * KEYS,
        };
        black_box(&rules).check(&request).is_ok() == is_admitted
    };
    // Every key gets its entry, and a small limit is used up.
    for _ in 0..KEYS {
        turn();
    }
    counted(turn)
}
