//! How the number of keys tells, and what looking ahead is worth.

use std::hint::black_box;

use ringgate::{Clock, ConfigError, Gcra, KeyedRateLimiter, Reclaim};

use crate::keys::{Random, Uniform};
use crate::measure::{Case, Work, compare, cores, decide, each_for_itself, print_head, repeat};
use crate::rivals::{Beside, Check, Floor, Governor, Ours, Touch, governor, governor_plenty, keyed};

/// Keys that are decided about at once.
const BATCH: usize = 1024;

pub fn run() -> Result<(), ConfigError> {
    print_head("More and more keys, uniform u64, admitted");
    for keys in [1_000, 100_000, 1_000_000, 10_000_000] {
        let ours = Ours::plenty()?;
        let governor: Governor<u64> = governor(governor_plenty(), 0);
        assert!((0..keys).all(|key| governor.check(&key)));
        let gcra = entered(ours.gcra, keys);
        let packed = entered(ours.packed, keys);
        let wide = entered(ours.wide, keys);
        let floor = |bytes, touch| Floor::new(bytes, Beside::Nothing, touch);
        let load = floor(gcra.bytes(), Touch::Load);
        let exchange = floor(gcra.bytes(), Touch::Exchange);
        let load_wide = floor(wide.bytes(), Touch::Load);
        let source = Uniform::of(keys);
        for threads in [1, cores().len()] {
            let cases = [
                Case::rival("governor", decide(&governor, source, true)),
                Case::new("ringgate, Gcra", decide(&gcra, source, true)),
                Case::new("ringgate, CounterRing packed", decide(&packed, source, true)),
                Case::new("ringgate, CounterRing wide", decide(&wide, source, true)),
                Case::new("floor: load", decide(&load, source, true)),
                Case::new("floor: compare-exchange", decide(&exchange, source, true)),
                Case::new("floor: load, bytes of wide", decide(&load_wide, source, true)),
            ];
            compare(&format!("{keys} keys"), threads, &cases);
        }
    }
    Ok(())
}

/// Many keys at once, against one after the other.
pub fn run_many() -> Result<(), ConfigError> {
    const KEYS: u64 = 1_000_000;
    print_head("1,000,000 keys, uniform u64, admitted, 1,024 at a time");
    let ours = Ours::plenty()?;
    let governor: Governor<u64> = governor(governor_plenty(), 0);
    assert!((0..KEYS).all(|key| governor.check(&key)));
    let limiter: KeyedRateLimiter<Gcra> = entered(ours.gcra, KEYS);
    let limiter = &limiter;
    for threads in [1, cores().len()] {
        let cases = [
            Case::rival(
                "governor, check_key in a loop",
                in_batches(KEYS, |keys| keys.iter().filter(|key| governor.check(key)).count()),
            ),
            Case::new(
                "ringgate, check in a loop",
                in_batches(KEYS, |keys| {
                    keys.iter().filter(|key| limiter.check(*key).is_ok()).count()
                }),
            ),
            Case::new(
                "ringgate, check_at in a loop, one reading",
                in_batches(KEYS, |keys| {
                    let now = limiter.clock().now();
                    keys.iter()
                        .filter(|key| limiter.check_at(*key, now, 1).is_ok())
                        .count()
                }),
            ),
            Case::new(
                "ringgate, check_many",
                in_batches(KEYS, |keys| {
                    let mut admitted = 0;
                    limiter.check_many(keys, |_, answer| admitted += usize::from(answer.is_ok()));
                    admitted
                }),
            ),
        ];
        compare("Gcra", threads, &cases);
    }
    Ok(())
}

/// With an entry for every key that finds one.
fn entered<A: Reclaim>(algorithm: A, keys: u64) -> KeyedRateLimiter<A> {
    let limiter = keyed(algorithm, keys);
    assert!((0..keys).all(|key| limiter.check(&key).is_ok()));
    limiter
}

fn in_batches<'a>(keys: u64, decide: impl Fn(&[u64]) -> usize + Sync + 'a) -> Work<'a> {
    each_for_itself(move |thread| {
        let mut random = Random::new(thread);
        let mut batch = [0; BATCH];
        repeat(|| {
            batch.fill_with(|| random.below(keys));
            assert_eq!(BATCH, decide(black_box(&batch)));
            BATCH as u64
        })
    })
}
