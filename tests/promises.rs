//! A decision does not allocate or wait, and a denial does not write.
#![cfg(not(ringgate_loom))]

#[expect(dead_code, reason = "the log is for tests of bounds")]
mod common;
#[path = "promises/defaults.rs"]
mod defaults;

extern crate alloc;

use core::cell::Cell;
use core::sync::atomic::Ordering;
use core::time::Duration;

use common::{Any, State, Subject};
use ringgate::sync::Words;
use ringgate::{
    Algorithm, CounterRing, Gcra, KeyedRateLimiter, ManualClock, Nanos, Quota, RateLimiter, TimestampRing,
    UnitRing,
};

fn subjects() -> Vec<Subject> {
    let quota = Quota::per_second(10).expect("a quota");
    let more = Quota::per_minute(100).expect("a quota");
    let builder = || CounterRing::builder(quota);
    vec![
        Subject::new("packed", builder().cells(5).build().expect("a ring")),
        Subject::new("units", UnitRing::new(more).expect("a ring")),
        Subject::new("unpacked", builder().cells(5).unpacked().build().expect("a ring")),
        Subject::new("default", builder().build().expect("a ring")),
        Subject::new("even", builder().even().build().expect("a ring")),
        Subject::new(
            "even, unpacked",
            builder().even().unpacked().build().expect("a ring"),
        ),
        Subject::new("several", builder().also(more).build().expect("a ring")),
        Subject::new("many cells", builder().cells(4096).build().expect("a ring")),
        Subject::new("timestamps", TimestampRing::new(quota).expect("a ring")),
        Subject::new("bucket", Gcra::new(quota).expect("a bucket")),
    ]
}

/// Words that count the operations on them.
#[derive(Clone, Copy)]
struct Counted<'a> {
    state: &'a State,
    loads: &'a Cell<u64>,
    exchanges: &'a Cell<u64>,
    /// The highest index of a word that was accessed.
    highest: &'a Cell<usize>,
}

impl Words for Counted<'_> {
    fn load(self, index: usize, order: Ordering) -> u64 {
        self.loads.set(self.loads.get() + 1);
        self.highest.set(self.highest.get().max(index));
        self.state.shared().load(index, order)
    }

    fn exchange(self, index: usize, current: u64, new: u64, order: Ordering) -> Result<u64, u64> {
        self.exchanges.set(self.exchanges.get() + 1);
        self.highest.set(self.highest.get().max(index));
        self.state.shared().exchange(index, current, new, order)
    }
}

/// Whether one decision admitted, its loads and exchanges.
fn cost(it: &Any, state: &State, now: u64, permits: u64) -> (bool, u64, u64) {
    let (admitted, loads, exchanges, _) = accesses(it, state, now, permits);
    (admitted, loads, exchanges)
}

/// Whether one decision admitted, its loads and exchanges, and the highest index of a word that it accessed.
fn accesses(it: &Any, state: &State, now: u64, permits: u64) -> (bool, u64, u64, usize) {
    let (loads, exchanges, highest) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let words = Counted {
        state,
        loads: &loads,
        exchanges: &exchanges,
        highest: &highest,
    };
    let admitted = it.decide(words, Nanos::new(now), permits).is_some();
    (admitted, loads.get(), exchanges.get(), highest.get())
}

/// The counting allocator counts.
#[test]
fn an_allocation_is_counted() {
    let counted = allocation_counter::measure(|| drop(core::hint::black_box(vec![0_u8; 100])));
    assert_eq!(counted.count_total, 1);
}

#[test]
fn nothing_is_allocated_after_construction() {
    for Subject { name, algorithm, .. } in subjects() {
        let clock = ManualClock::new();
        let mut limiter = RateLimiter::with_clock(algorithm, clock.clone());
        let counted = allocation_counter::measure(|| {
            // One step takes milliseconds under Miri.
            for step in 0..if cfg!(miri) { 20 } else { 2_000_u64 } {
                clock.advance(Duration::from_millis(step % 90));
                let taken = limiter
                    .check_n(step % 4)
                    .map(|admitted| (admitted.remaining(), admitted.into_receipt()));
                match taken {
                    Ok((_, receipt)) if step % 3 == 0 => drop(limiter.refund(receipt)),
                    Ok((_, receipt)) if step % 3 == 1 => drop(limiter.settle(receipt, 5)),
                    _ => {}
                }
                if let Err(denied) = limiter.check() {
                    core::hint::black_box((denied.retry_after(), denied.remaining()));
                }
                let peek = limiter.peek();
                core::hint::black_box((peek.remaining(), peek.spent(), peek.retry_after(2)));
                core::hint::black_box(limiter.check_n_mut(11).is_ok());
                let saved = limiter.save();
                limiter.restore(&saved, Duration::from_secs(1));
            }
        });
        assert_eq!(counted.count_total, 0, "{name}");
    }
}

#[cfg(all(feature = "quanta", not(miri)))] // Miri has no processor counter to calibrate.
#[test]
fn nothing_is_allocated_by_the_default_clock() {
    let quota = Quota::per_minute(100).expect("a quota");
    let limiter = RateLimiter::new(CounterRing::new(quota).expect("a ring"));
    let counted = allocation_counter::measure(|| {
        for _ in 0..1_000 {
            core::hint::black_box(limiter.check().is_ok());
        }
    });
    assert_eq!(counted.count_total, 0);
}

/// The documentation of each algorithm states the operations of a decision in an open cell: loads, and one
/// compare-exchange if it admits.
#[test]
fn a_decision_touches_what_is_documented() {
    for Subject { name, algorithm, .. } in subjects() {
        let (it, state) = (&algorithm, State::fresh(&algorithm));
        let most = it.max_request();
        // The first decision in a cell may enter it, even if it denies.
        assert!(!cost(it, &state, 0, u64::MAX).0);
        let (admitted, loads, exchanges) = cost(it, &state, 0, 1);
        assert!(admitted);
        let windows = match name.as_str() {
            "several" => 2,
            // An even ring also loads its newest cell.
            "even, unpacked" => 2,
            _ => 1,
        };
        let documented = match it {
            _ if it.words() == 1 => (1, 1),
            // The head and one slot.
            Any::Log(_) => (2, 2),
            _ => (1 + windows, 1),
        };
        assert!(
            loads <= documented.0 && exchanges == documented.1,
            "{name}: {loads} loads, {exchanges} exchanges"
        );
        while cost(it, &state, 0, most).0 {}
        while cost(it, &state, 0, 1).0 {}
        // A denial loads the control word or the head again, and writes nothing.
        let (_, loads, exchanges) = cost(it, &state, 0, 1);
        let again = u64::from(it.words() > 1);
        assert!(
            loads <= documented.0 + again && exchanges == 0,
            "{name}: {loads} loads"
        );
    }
}

/// A decision of a strict ring in an open cell accesses only the first words of a state, which a table has on adjacent lines: control
/// and one base for each window.
#[test]
fn a_decision_accesses_the_first_words() {
    for (name, highest) in [("unpacked", 1), ("several", 2)] {
        let subject = subjects().into_iter().find(|subject| subject.name == name);
        let subject = subject.expect("a ring of several words");
        let (it, state) = (&subject.algorithm, State::fresh(&subject.algorithm));
        // This decision enters the cell.
        assert!(accesses(it, &state, 0, 1).0);
        assert_eq!(accesses(it, &state, 0, 1).3, highest, "{name}");
        while cost(it, &state, 0, 1).0 {}
        assert_eq!(accesses(it, &state, 0, 1).3, highest, "{name}, denied");
    }
}

/// A denial in an open cell writes nothing. In another cell, only a wide ring writes, once.
#[test]
fn a_flood_of_denials_writes_nothing() {
    for Subject { name, algorithm, .. } in subjects() {
        let (it, state) = (&algorithm, State::fresh(&algorithm));
        while cost(it, &state, 0, 1).0 {}
        let cell = match it {
            Any::Counter(ring) => u64::try_from(ring.cell().as_nanos()).expect("a second at most"),
            _ => 1,
        };
        let (_, _, entered) = cost(it, &state, cell, it.max_request() + 1);
        assert!(
            entered == 0 || matches!(it, Any::Counter(_)) && it.words() > 1,
            "{name}"
        );
        // An even ring admits the share of the next cell, up to the largest request.
        let too_many = [it.max_request(), it.max_request() + 1, u64::MAX];
        let too_many = if name.starts_with("even") {
            &too_many[1..]
        } else {
            &too_many
        };
        for nanos in 0..cell.min(100) {
            for &permits in too_many {
                let (admitted, _, exchanges) = cost(it, &state, cell + nanos, permits);
                assert_eq!((admitted, exchanges), (false, 0), "{name}");
            }
        }
    }
}

/// In an open cell, the cost of a decision does not depend on the number of cells.
#[test]
fn the_cost_of_a_decision_does_not_grow_with_the_cells() {
    let costs: Vec<_> = [1, 5, 100, 4096]
        .map(|cells| {
            let quota = Quota::per_minute(1000).expect("a quota");
            let ring = CounterRing::builder(quota)
                .cells(cells)
                .unpacked()
                .build()
                .expect("a ring");
            let it = Any::from(ring);
            let state = State::fresh(&it);
            cost(&it, &state, 0, 1);
            cost(&it, &state, 0, 1)
        })
        .into_iter()
        .collect();
    assert!(costs.iter().all(|&cost| cost == costs[0]), "{costs:?}");
}

/// The sizes of states in the documentation.
#[test]
fn states_are_as_small_as_documented() {
    let quota = |text: &str| text.parse::<Quota>().expect("a quota");
    let words = |text: &str, cells| {
        CounterRing::builder(quota(text))
            .cells(cells)
            .build()
            .expect("a ring")
            .words()
    };
    // The highest limits with five cells that fit into one word, and the next ones.
    assert_eq!((words("30/min", 5), words("31/min", 5)), (1, 7));
    assert_eq!((words("24/s", 5), words("25/s", 5)), (1, 7));
    // A wide ring has at least 3 words: N + 2 if strict, N + 1 if classic or even. A ring of five cells leaves one
    // word of a cache line of 64 bytes free.
    assert_eq!((words("1000/s", 5), words("1000/s", 60)), (7, 62));
    assert_eq!(words("1000000/s", 1), 3);
    assert_eq!(
        CounterRing::new(quota("1000/s")).expect("a ring").words() * 8,
        496
    );
    assert_eq!(
        (CounterRing::DEFAULT_CELLS, CounterRing::DEFAULT_CLASSIC_CELLS),
        (60, 5)
    );
    let builder = || CounterRing::builder(quota("1000/s")).cells(60);
    assert_eq!(builder().classic().build().expect("a ring").words(), 61);
    assert_eq!(builder().even().build().expect("a ring").words(), 61);
    for cells in [1, 2] {
        let ring = builder().cells(cells).classic().unpacked().build();
        assert_eq!(ring.expect("a ring").words(), 3);
    }
    assert_eq!(
        builder().also(quota("9999/min")).build().expect("a ring").words(),
        1 + 2 * 61
    );
    assert_eq!(TimestampRing::new(quota("1000/s")).expect("a ring").words(), 1001);
    assert_eq!(Gcra::new(quota("1000/s")).expect("a bucket").words(), 1);
    assert_eq!(
        CounterRing::fixed_window(quota("30/s")).expect("a ring").words(),
        1
    );
}

#[test]
fn the_highest_limits_are_as_documented() {
    for (cells, highest) in [(60, 16_777_215), (5, 268_435_455)] {
        let built = |limit| {
            let quota = Quota::per_second(limit).expect("a quota");
            CounterRing::builder(quota).cells(cells).build()
        };
        assert!(
            built(highest).is_ok() && built(highest + 1).is_err(),
            "{cells} cells"
        );
    }
}

/// A limiter whose state has several words allocates cache lines for it when it is created. Nothing else is allocated.
#[test]
fn a_limiter_is_as_large_as_documented() {
    let bytes = |it: Any, words| {
        assert_eq!(it.words(), words);
        let clock = ManualClock::new();
        let counted = allocation_counter::measure(|| drop(RateLimiter::with_clock(it, clock)));
        assert_eq!(counted.count_total, u64::from(words > 1), "{words} words");
        counted.bytes_total
    };
    let quota = |limit| Quota::per_second(limit).expect("a quota");
    let log = |limit| TimestampRing::new(quota(limit)).expect("a ring").into();
    let five = CounterRing::builder(quota(1_000))
        .cells(5)
        .build()
        .expect("a ring");
    let ring = CounterRing::new(quota(1_000)).expect("a ring");
    let few = CounterRing::builder(quota(10)).cells(5).build().expect("a ring");
    assert_eq!(bytes(Gcra::new(quota(10)).expect("a bucket").into(), 1), 0);
    assert_eq!(bytes(few.into(), 1), 0);
    assert_eq!((bytes(five.into(), 7), bytes(ring.into(), 62)), (304, 744));
    assert_eq!((bytes(log(15), 16), bytes(log(32), 33)), (376, 512));
    assert_eq!(size_of::<RateLimiter<Gcra, ManualClock>>(), 192);
    assert_eq!(bytes(UnitRing::new(quota(1_000)).expect("a ring").into(), 1), 0);
    assert_eq!(size_of::<RateLimiter<UnitRing, ManualClock>>(), 192);
    // A line of 64 bytes that no other data shares.
    assert_eq!(align_of::<RateLimiter<Gcra, ManualClock>>(), 64);
    #[cfg(feature = "quanta")]
    assert_eq!(
        (size_of::<RateLimiter<Gcra>>(), size_of::<RateLimiter<UnitRing>>()),
        (192, 192)
    );
}

/// One user with 100,000 tokens a minute calls every two seconds, reserves 4,000 tokens, and uses 500 of them within
/// ten seconds. Returns the number of admitted calls of 300, and the forfeited share of the unused tokens in
/// thousandths.
fn reserved_and_settled(it: impl Into<Any>) -> (u64, u64) {
    let clock = ManualClock::new();
    let limiter = RateLimiter::with_clock(it.into(), clock.clone());
    let reserve = || Some(limiter.check_n(4_000).ok()?.into_receipt());
    served_and_forfeited(&clock, reserve, |receipt| limiter.settle(receipt, 500))
}

/// Makes the calls of [`reserved_and_settled`] with any limiter.
fn served_and_forfeited<T>(
    clock: &ManualClock,
    reserve: impl Fn() -> Option<T>,
    settle: impl Fn(T) -> ringgate::Settled,
) -> (u64, u64) {
    clock.advance(Duration::from_secs(3600));
    let mut running = Vec::new();
    let (mut served, mut unused, mut forfeited) = (0, 0, 0);
    for call in 0..305 {
        while running.first().is_some_and(|&(end, _)| end <= call) {
            let (_, reserved) = running.remove(0);
            unused += 3_500;
            match settle(reserved) {
                ringgate::Settled::Exact => {}
                ringgate::Settled::Forfeited(permits) => forfeited += permits,
                other => panic!("{other:?}"),
            }
        }
        if call < 300
            && let Some(reserved) = reserve()
        {
            served += 1;
            running.push((call + 5, reserved));
        }
        clock.advance(Duration::from_secs(2));
    }
    assert_eq!(unused, served * 3_500);
    (served, forfeited * 1_000 / unused)
}

/// The figures in the documentation of `RateLimiter::refund`.
#[test]
fn unused_tokens_are_refunded_as_documented() {
    let quota = Quota::per_minute(100_000).expect("a quota");
    let builder = || CounterRing::builder(quota);
    let ring = |builder: ringgate::algorithm::CounterRingBuilder| builder.build().expect("a ring");
    let hour = Quota::per_hour(4_000_000).expect("a quota");
    let rings = [
        ("strict", ring(builder())),
        ("strict, 60 cells", ring(builder().cells(60))),
        ("strict, two windows", ring(builder().also(hour))),
        ("classic", ring(builder().classic())),
    ];
    for (name, ring) in rings {
        let (served, forfeited) = reserved_and_settled(ring);
        println!("{name}: {served} served, {forfeited} per mille forfeited");
        assert_eq!((served, forfeited), (300, 0), "{name}");
    }
    let (served, forfeited) = reserved_and_settled(Gcra::new(quota).expect("a bucket"));
    println!("bucket: {served} served, {forfeited} per mille forfeited");
    assert_eq!((served, forfeited), (274, 996));
    let (served, forfeited) = reserved_and_settled(TimestampRing::new(quota).expect("a log"));
    println!("log: {served} served, {forfeited} per mille forfeited");
    assert_eq!((served, forfeited), (250, 1_000));
    let (served, forfeited) = reserved_and_settled(UnitRing::new(quota).expect("a word"));
    println!("one word: {served} served, {forfeited} per mille forfeited");
    assert_eq!((served, forfeited), (300, 0));
}

/// The guide recommends `SlidingWindow::settled` for token budgets, and says that a rule with a cost counts in cells by default: at
/// most 5 % of the unused tokens are forfeited, and no call is denied.
#[test]
fn the_recommended_window_forfeits_at_most_a_twentieth() {
    use ringgate::SlidingWindow;
    use ringgate::keyed::AnyKey;

    let quota = Quota::per_minute(100_000).expect("a quota");
    let in_table = |window: SlidingWindow| {
        let clock = ManualClock::new();
        let keys = AnyKey::with_seeds([1, 2, 3, 4]);
        let table = KeyedRateLimiter::builder(window)
            .build_with(clock.clone(), keys)
            .expect("a table");
        let reserve = || Some(table.check_n("ann", 4_000).ok()?.into_receipt());
        served_and_forfeited(&clock, reserve, |receipt| table.settle("ann", receipt, 500))
    };
    let settled = || SlidingWindow::settled(quota).expect("a window");
    let clock = ManualClock::new();
    let one = RateLimiter::with_clock(settled(), clock.clone());
    let reserve = || Some(one.check_n(4_000).ok()?.into_receipt());
    let one = served_and_forfeited(&clock, reserve, |receipt| one.settle(receipt, 500));
    for (name, (served, forfeited)) in [
        ("one resource", one),
        ("a table", in_table(settled())),
        #[cfg(feature = "rules")]
        ("a rule", in_rule(quota)),
    ] {
        println!("{name}: {served} served, {forfeited} per mille forfeited");
        assert!(
            served == 300 && forfeited <= 50,
            "{name}: {served} served, {forfeited} per mille"
        );
    }
}

/// The calls of [`served_and_forfeited`] by a rule with a cost.
#[cfg(feature = "rules")]
fn in_rule(quota: Quota) -> (u64, u64) {
    use core::hash::Hash;
    use ringgate::rules::{Cost, RuleSetBuilder};
    use ringgate::{Key, Rule};

    let key = Key::new("user", |user: &str, hash| user.hash(hash));
    let cost = Cost::new("tokens", |_: &str| 4_000);
    let clock = ManualClock::new();
    let rules = RuleSetBuilder::new()
        .rule(Rule::new("tokens", quota).by(&key).cost(&cost))
        .build_with(clock.clone(), [1, 2, 3, 4])
        .expect("a rule");
    served_and_forfeited(
        &clock,
        || rules.reserve("ann").ok(),
        |reserved| rules.settle(reserved, &cost, 500),
    )
}

/// Only a slice that is too short causes a panic.
#[test]
fn too_few_words_panic() {
    for Subject { name, algorithm, .. } in subjects() {
        let it = algorithm;
        let none: [ringgate::sync::AtomicU64; 0] = [];
        let decided = std::panic::catch_unwind(|| {
            it.decide(ringgate::sync::Shared::new(&none), Nanos::ZERO, 1)
                .is_some()
        });
        assert!(decided.is_err(), "{name}");
    }
}

/// An even ring finds the cell that has a share without a search of its slots for each cell.
#[test]
fn a_retry_time_reads_each_word_a_few_times() {
    let ring = CounterRing::builder(Quota::new(1, Duration::from_secs(3600)).expect("a quota"));
    let ring = Any::from(ring.even().cells(4096).build().expect("a ring"));
    let state = State::fresh(&ring);
    let now = 36_000_000_000_000;
    let denied = (0..2).any(|_| !cost(&ring, &state, now, 1).0);
    assert!(denied, "one permit in an hour");
    let (loads, exchanges, highest) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let words = Counted {
        state: &state,
        loads: &loads,
        exchanges: &exchanges,
        highest: &highest,
    };
    assert!(ring.ready_at(words, Nanos::new(now), 1).is_some());
    assert!(loads.get() <= 4 * 4096, "{} loads", loads.get());
}
