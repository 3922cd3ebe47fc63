//! Keys that all have an entry.

use std::hash::Hash;

use ringgate::{Algorithm, ConfigError, KeyedRateLimiter, Reclaim};

use crate::keys::{Addresses, Source, Uniform};
use crate::measure::{Case, compare, cores, decide, print_head};
use crate::rivals::{
    Beside, Check, Floor, Governor, Ours, Touch, governor, governor_plenty, governor_scarce, keyed,
};

const KEYS: u64 = 100_000;

pub fn run() -> Result<(), ConfigError> {
    print_head("100,000 keys that all have an entry");
    let addresses = Addresses::of(KEYS);
    for admitted in [true, false] {
        workload("uniform u64", admitted, |key| key, Uniform::of(KEYS))?;
        workload("zipf addresses", admitted, Addresses::name, &addresses)?;
    }
    Ok(())
}

fn workload<S>(
    name: &str,
    admitted: bool,
    key: impl Fn(u64) -> S::Key,
    source: impl Fn(usize) -> S + Sync,
) -> Result<(), ConfigError>
where
    S: Source<Key: Hash + Eq + Clone + Send + Sync + Sized>,
    Floor: Check<S::Key>,
{
    let keys: Vec<S::Key> = (0..KEYS).map(key).collect();
    let ours = if admitted {
        Ours::plenty()?
    } else {
        Ours::scarce()?
    };
    let quota = if admitted {
        governor_plenty()
    } else {
        governor_scarce()
    };
    let governor: Governor<S::Key> = governor(quota, 0);
    assert!(keys.iter().all(|key| governor.check(key)));
    let packed = spent(keyed(ours.packed, KEYS), &keys, admitted);
    let gcra = spent(keyed(ours.gcra, KEYS), &keys, admitted);
    let wide = spent(keyed(ours.wide, KEYS), &keys, admitted);
    let touch = if admitted { Touch::Exchange } else { Touch::Load };
    let floor = |beside| Floor::new(gcra.bytes(), beside, touch);
    let floors = [Beside::Nothing, Beside::Hash, Beside::HashAndClock].map(floor);
    let what = if admitted { "compare-exchange" } else { "load" };

    let source = &source;
    let name = format!("{name}, {}", if admitted { "admitted" } else { "denied" });
    for threads in [1, cores().len()] {
        let cases = [
            Case::rival("governor", decide(&governor, source, admitted)),
            Case::new("ringgate, Gcra", decide(&gcra, source, admitted)),
            Case::new("ringgate, CounterRing packed", decide(&packed, source, admitted)),
            Case::new("ringgate, CounterRing wide", decide(&wide, source, admitted)),
            Case::new(&format!("floor: {what}"), decide(&floors[0], source, true)),
            Case::new(&format!("floor: hash, {what}"), decide(&floors[1], source, true)),
            Case::new(
                &format!("floor: hash, clock, {what}"),
                decide(&floors[2], source, true),
            ),
        ];
        // A string has no index without its hash.
        let cases: Vec<_> = (cases.into_iter().enumerate())
            .filter(|(index, _)| *index != 4 || size_of::<S::Key>() == 8)
            .map(|(_, case)| case)
            .collect();
        compare(&name, threads, &cases);
    }
    Ok(())
}

/// With an entry for every key, used up or not.
fn spent<A: Reclaim + Algorithm, Q: Hash>(
    limiter: KeyedRateLimiter<A>,
    keys: &[Q],
    plenty: bool,
) -> KeyedRateLimiter<A> {
    let permits = if plenty { 1 } else { limiter.algorithm().most() };
    for key in keys {
        // Some find no entry in a table that is full.
        let _ = limiter.check_n(key, permits);
    }
    let counts = limiter.counts();
    assert!(counts.tracked > KEYS - KEYS / 100, "{counts:?}");
    limiter
}
