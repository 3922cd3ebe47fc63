//! Keys that were never seen before.

use std::time::{Duration, Instant};

use ringgate::ConfigError;

use crate::keys::mix;
use crate::measure::{Case, Done, LEAST, Work, compare, cores, on_threads, print_head};
use crate::rivals::{Check, Ours, governor, governor_plenty, keyed};

const KEYS: u64 = 1_000_000;

pub fn run() -> Result<(), ConfigError> {
    print_head("The first 1,000,000 keys of a new limiter");
    let ours = Ours::plenty()?;
    for threads in [1, cores().len()] {
        let cases = [
            Case::rival("governor", enter(|| governor::<u64>(governor_plenty(), 0))),
            Case::new(
                "governor, map made for all keys",
                enter(|| governor::<u64>(governor_plenty(), KEYS as usize)),
            ),
            Case::new("ringgate, Gcra", enter(|| keyed(ours.gcra.clone(), KEYS))),
            Case::new(
                "ringgate, CounterRing packed",
                enter(|| keyed(ours.packed.clone(), KEYS)),
            ),
            Case::new(
                "ringgate, CounterRing wide",
                enter(|| keyed(ours.wide.clone(), KEYS)),
            ),
        ];
        compare("u64 in no order", threads, &cases);
    }
    Ok(())
}

/// Enters all keys, in a new limiter as often as it takes. Making and dropping it is not measured.
fn enter<'a, L: Check<u64>>(new: impl Fn() -> L + 'a) -> Work<'a> {
    Box::new(move |threads| {
        let (mut decisions, mut time) = (0, Duration::ZERO);
        while time < LEAST {
            let limiter = new();
            let share = KEYS / threads as u64;
            let done = on_threads(threads, |thread| {
                let first = thread as u64 * share;
                let start = Instant::now();
                assert!((first..first + share).all(|number| limiter.check(&mix(number))));
                Done {
                    decisions: share,
                    time: start.elapsed(),
                }
            });
            decisions += done.iter().map(|done| done.decisions).sum::<u64>();
            time += done.iter().map(|done| done.time).max().unwrap_or_default();
        }
        decisions as f64 / time.as_secs_f64() / 1e6
    })
}
