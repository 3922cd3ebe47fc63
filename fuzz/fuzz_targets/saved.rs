//! Restores of any bytes, and of saved tables that were changed and given correct checksums again.
//!
//! No call panics, and afterwards no key is admitted more than its bound. After the restore of an unchanged file, the
//! admissions before it count, too.

#![no_main]

#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../../tests/common/mod.rs"]
mod common;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::{Corpus, fuzz_target};
use ringgate::algorithm::Reclaim;
use ringgate::keyed::{Keys, SeededKeys};
use ringgate::{Algorithm, Clock, KeyedRateLimiter, ManualClock, Nanos};
use ringgate_fuzz::{Any, HORIZON, Setting, Step};

use common::Log;

/// A hasher that returns the key itself.
struct Plain;

impl Keys<u64> for Plain {
    fn hash(&self, key: &u64) -> u64 {
        *key
    }
}

impl SeededKeys for Plain {
    fn seeds(&self) -> [u64; 4] {
        [0; 4]
    }

    fn reseeded(self, _seeds: [u64; 4]) -> Self {
        self
    }

    fn sample(&self) -> u64 {
        1
    }
}

#[derive(Arbitrary, Debug)]
struct Call {
    step: Step,
    key: u8,
    permits: u8,
}

#[derive(Arbitrary, Debug)]
enum File {
    /// Arbitrary bytes.
    Bytes(Vec<u8>),
    /// A saved table with changed bytes after its header.
    Changed(Vec<(u16, u8)>),
    /// A saved table whose states are these bytes.
    States(Vec<u8>),
}

#[derive(Arbitrary, Debug)]
struct Input {
    setting: Setting,
    before: Vec<Call>,
    capacities: (u8, u8),
    file: File,
    elapsed: u32,
    after: Vec<Call>,
}

/// The length of the header of a saved table, with its checksum.
fn header(file: &[u8]) -> usize {
    let length = u32::from_le_bytes(file[12..16].try_into().expect("four bytes"));
    16 + length as usize + 40 + 4
}

/// Appends the checksum of all bytes, except that of the header's checksum.
fn seal(file: &mut Vec<u8>) {
    let states = header(file);
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&file[..states - 4]);
    checksum.update(&file[states..]);
    file.extend(checksum.finalize().to_le_bytes());
}

fuzz_target!(|input: Input| -> Corpus {
    let Ok(algorithm) = input.setting.build() else {
        return Corpus::Reject;
    };
    if algorithm.words() > 70 {
        return Corpus::Reject;
    }
    let table =
        |capacity: u8| KeyedRateLimiter::builder(algorithm.clone()).capacity(1 + u64::from(capacity % 40));
    let clock = ManualClock::new();
    let latest = Cell::new(Nanos::ZERO);
    let mut readings = Vec::new();
    let mut logs: BTreeMap<u64, Log> = BTreeMap::new();
    let cell = input.setting.window() / u32::try_from(input.setting.cells()).expect("few cells");
    let cell = cell.max(Duration::from_nanos(1));
    let mut decide = |limiter: &ringgate::KeyedRateLimiter<_, ManualClock, Plain>,
                      calls: &[Call],
                      logs: &mut BTreeMap<u64, Log>| {
        for call in calls.iter().take(100) {
            let now = call.step.from(&readings, algorithm.window(), cell);
            let now = now.min(Nanos::new(HORIZON));
            readings.push(now);
            clock.set(now);
            latest.set(latest.get().max(now));
            let (key, permits) = (1 + u64::from(call.key % 50), 1 + u64::from(call.permits % 8));
            if let Ok(admitted) = limiter.check_n(&key, permits) {
                logs.entry(key).or_default().add(admitted.at(), permits);
            }
        }
    };
    let limiter = table(input.capacities.0)
        .build_with(clock.clone(), Plain)
        .expect("a small table");
    decide(&limiter, &input.before, &mut logs);
    if input.setting.bounds(&algorithm).len() > 1 {
        // The file cannot tell by how much a state of several windows is ahead of the clock.
        clock.set(latest.get());
    }
    let mut file = Vec::new();
    limiter.save(&mut file).expect("memory");
    let mut is_unchanged = false;
    match input.file {
        File::Bytes(bytes) => file = bytes,
        File::Changed(changes) => {
            is_unchanged = changes.is_empty();
            let states = header(&file);
            file.truncate(file.len() - 4);
            for (at, byte) in changes {
                let at = states + usize::from(at) % (file.len() - states);
                file[at] = byte;
            }
            seal(&mut file);
        }
        File::States(states) => {
            file.truncate(header(&file));
            file.extend(states);
            seal(&mut file);
        }
    }
    // The elapsed time that the caller passes is the true one.
    let (before, gap) = (clock.now(), Duration::from_nanos(input.elapsed.into()));
    clock.set(before.saturating_add(gap).min(Nanos::new(HORIZON)));
    let elapsed = clock.now().saturating_since(before);
    let restored = table(input.capacities.1).restore_with(clock.clone(), Plain, &*file, elapsed);
    let Ok(restored) = restored else {
        assert!(!is_unchanged, "{:?}", restored.map(|_| ()));
        return Corpus::Keep;
    };
    if !is_unchanged {
        logs.clear();
    }
    decide(&restored, &input.after, &mut logs);
    // A timestamp ring reports the time of an admission at an older reading up to two units before the time that it records.
    let rounding = match algorithm {
        Any::Log(_) => algorithm.span().saturating_sub(algorithm.window()),
        _ => Duration::ZERO,
    };
    for (bound, window) in input.setting.bounds(&algorithm) {
        let window = window.saturating_sub(rounding);
        for (key, log) in &logs {
            assert!(
                log.worst(window) <= bound,
                "key {key}: more than {bound} in {window:?}"
            );
        }
    }
    Corpus::Keep
});
