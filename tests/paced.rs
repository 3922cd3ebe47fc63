//! Figures of the algorithms that the guide prints: bounds, and what a client paced exactly at the limit gets.
#![cfg(not(any(miri, ringgate_loom)))]

use core::time::Duration;

use ringgate::algorithm::Reclaim;
use ringgate::keyed::AnyKey;
use ringgate::{
    Algorithm, ConfigError, CounterRing, Gcra, KeyedRateLimiter, ManualClock, Quota, RateLimiter,
    SlidingWindow, TimestampRing, UnitRing,
};

/// Figures of one algorithm with a limit of 60 per minute.
struct Figures {
    bytes: usize,
    /// Most permits that were admitted in any minute, by any of the traffic below.
    worst: usize,
    /// Admitted requests of 3600, one a second.
    paced: usize,
    /// Seconds until a request is admitted after 60 requests at once.
    retry_after: u64,
}

const MINUTE: Duration = Duration::from_secs(60);

fn figures(algorithm: &(impl Algorithm + Clone)) -> Figures {
    let limiter = || {
        let clock = ManualClock::new();
        clock.advance(60 * MINUTE);
        (RateLimiter::with_clock(algorithm.clone(), clock.clone()), clock)
    };
    let (paced, clock) = limiter();
    let paced = (0..3600)
        .filter(|_| {
            clock.advance(Duration::from_secs(1));
            paced.check().is_ok()
        })
        .count();

    let (burst, _) = limiter();
    for _ in 0..60 {
        assert!(burst.check().is_ok());
    }
    let denied = burst.check().expect_err("the limit is reached");
    let retry_after = denied.retry_after().expect("a wait");

    // All permits after each silence, and then requests as fast as they are admitted.
    let worst = (0..60).step_by(7).map(|silence| {
        let (limiter, clock) = limiter();
        clock.advance(Duration::from_secs(silence));
        let mut admitted = Vec::new();
        for millisecond in (0..120_000).step_by(10) {
            while limiter.check().is_ok() {
                admitted.push(millisecond);
            }
            clock.advance(Duration::from_millis(10));
        }
        let in_window = |&start: &u64| {
            let window = start..start + 60_000;
            admitted.iter().filter(|at| window.contains(at)).count()
        };
        admitted.iter().map(in_window).max().unwrap_or(0)
    });
    Figures {
        bytes: 8 * algorithm.words(),
        worst: worst.max().unwrap_or(0),
        paced,
        retry_after: retry_after.as_nanos().div_ceil(1_000_000_000) as u64,
    }
}

/// Checks the row of an algorithm on the page about choosing.
fn assert_row(name: &str, algorithm: &(impl Algorithm + Clone)) {
    let page = include_str!("../src/guide/choosing.md");
    let Figures {
        bytes,
        worst,
        paced,
        retry_after,
    } = figures(algorithm);
    let share = paced * 100 / 3600;
    let figures = format!("| {worst} | {share} % | {retry_after} s | {bytes} bytes |");
    let row = page
        .lines()
        .find(|line| line.starts_with(&format!("| `{name}` |")));
    let row = row.unwrap_or_else(|| panic!("no row {name}"));
    assert!(row.ends_with(&figures), "{name}: {figures}");
    assert!(worst as u64 <= algorithm.bound());
}

#[test]
fn figures_are_those_of_the_guide() -> Result<(), ConfigError> {
    let quota = Quota::per_minute(60)?;
    assert_row("SlidingWindow", &SlidingWindow::new(quota)?);
    assert_row("CounterRing", &CounterRing::new(quota)?);
    assert_row("UnitRing", &UnitRing::new(quota)?);
    assert_row("TimestampRing", &TimestampRing::new(quota)?);
    assert_row("Gcra", &Gcra::new(quota)?);
    assert_row("CounterRing::fixed_window", &CounterRing::fixed_window(quota)?);
    Ok(())
}

/// The page of `SlidingWindow` states what each representation costs a client, and its memory.
#[test]
fn figures_are_those_of_the_sliding_window() -> Result<(), ConfigError> {
    let page = include_str!("../src/algorithm/sliding_window.rs");
    let row = |name: &str, window: &SlidingWindow, share: (u64, u64), bytes_a_key: &str| {
        // A burst waits longest if it comes at the beginning of a cell.
        let wait = |phase: u64| {
            let clock = ManualClock::new();
            clock.advance(60 * MINUTE + Duration::from_millis(phase));
            let limiter = RateLimiter::with_clock(window.clone(), clock);
            assert!(limiter.check_n(window.bound()).is_ok());
            let denied = limiter.check().expect_err("the limit is reached");
            denied.retry_after().expect("a wait")
        };
        let longest = (0..10_000).step_by(50).map(wait).max();
        let retry_after = longest.expect("a burst").as_secs_f64().ceil();
        let (percent, bytes) = ((100 * share.0 + share.1 / 2) / share.1, 8 * window.words());
        let text = format!("/// | {name} | {percent} % | {retry_after} s | {bytes} | {bytes_a_key} |");
        assert!(page.lines().any(|line| line.starts_with(&text)), "{text}");
    };
    let bytes_a_key = |limit| {
        let table = KeyedRateLimiter::builder(SlidingWindow::new(Quota::per_minute(limit)?)?);
        let table = table.build_with(ManualClock::new(), AnyKey::with_seeds([1, 2, 3, 4]))?;
        let capacity = 65_536_usize;
        Ok::<_, ConfigError>(format!("{}", (table.bytes() + capacity / 2) / capacity))
    };
    row(
        "log, 60",
        &SlidingWindow::new(Quota::per_minute(60)?)?,
        (1, 1),
        "–",
    );
    let cells = SlidingWindow::settled(Quota::per_minute(1_000)?)?;
    row("60 cells, 1,000", &cells, (1_000, 1_000 * 61 / 60 + 1), "200");
    for (name, limit) in [("10", 10), ("60", 60), ("1,000", 1_000), ("1,000,000", 1_000_000)] {
        let window = SlidingWindow::new(Quota::per_minute(limit)?)?.for_table(limit)?;
        let share = UnitRing::new(Quota::per_minute(limit)?)?.guaranteed_share();
        row(&format!("one word, {name}"), &window, share, &bytes_a_key(limit)?);
    }
    Ok(())
}

/// The README states the shares of a paced client, and the memory of a key in a table.
#[test]
fn figures_are_those_of_the_readme() -> Result<(), ConfigError> {
    let readme: Vec<&str> = include_str!("../README.md").split_whitespace().collect();
    let readme = readme.join(" ");
    let range = |shares: Vec<(u64, u64)>| {
        let percent = shares.into_iter().map(|(least, of)| (100 * least + of / 2) / of);
        let percent: Vec<u64> = percent.collect();
        let (least, most) = (percent.iter().min(), percent.iter().max());
        format!("{} to {} %", least.expect("a limit"), most.expect("a limit"))
    };
    let word = |limit| Ok(UnitRing::new(Quota::per_minute(limit)?)?.guaranteed_share());
    let words: Result<_, ConfigError> = (5..=10_000).map(word).collect();
    assert_eq!(word(1)?, (1, 2));
    let rings = (60..=1_000).map(|limit: u64| (limit, (limit * 61).div_ceil(60)));
    let bytes = |limit, word: bool| {
        let quota = Quota::per_minute(limit)?;
        let (clock, keys) = (ManualClock::new(), AnyKey::with_seeds([1, 2, 3, 4]));
        let bytes = match word {
            true => KeyedRateLimiter::builder(UnitRing::new(quota)?)
                .build_with(clock, keys)?
                .bytes(),
            false => KeyedRateLimiter::builder(CounterRing::new(quota)?)
                .build_with(clock, keys)?
                .bytes(),
        };
        let capacity = 65_536_usize;
        Ok::<_, ConfigError>((bytes + capacity / 2) / capacity)
    };
    for text in [
        format!(
            "gets {} of a limit of 5 to 10,000 a minute, and half of a limit of 1",
            range(words?)
        ),
        format!(
            "admits {} at limits of 60 to 1,000 a minute",
            range(rings.collect())
        ),
        format!(
            "Instead of {} bytes a key, it takes {} to {} in a table",
            bytes(60, true)?,
            bytes(60, false)?,
            bytes(1_000, false)?
        ),
    ] {
        assert!(readme.contains(&text), "{text}");
    }
    Ok(())
}
