//! Tables that are saved, and restored in another process.

use std::io::{self, Read};

use super::*;
use crate::common::Log;
use ringgate::keyed::SeededKeys;
use ringgate::saved::RestoreError;

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

fn saved<K: SeededKeys>(limiter: &KeyedRateLimiter<Any, ManualClock, K>) -> Vec<u8> {
    let mut file = Vec::new();
    limiter.save(&mut file).expect("memory");
    file
}

fn builder(it: impl Into<Any>, capacity: u64, on_full: OnFull) -> KeyedBuilder<Any> {
    sized(it.into(), capacity, on_full)
}

fn restored(it: impl Into<Any>, capacity: u64, file: &[u8], elapsed: Duration) -> ByHand {
    restored_with(ManualClock::new(), it, capacity, file, elapsed)
}

fn restored_with<A: Into<Any>>(
    clock: ManualClock,
    it: A,
    capacity: u64,
    file: &[u8],
    gap: Duration,
) -> ByHand {
    let restored = builder(it, capacity, OnFull::Share).restore_with(clock, Plain, file, gap);
    restored.expect("the file of the same algorithm")
}

/// Requests ten permits every tenth of a second, and logs the admissions.
fn ask(limiter: &ByHand, clock: &ManualClock, times: u32, log: &mut Log) {
    for _ in 0..times {
        clock.advance(Duration::from_millis(100));
        if let Ok(admitted) = limiter.check_n(&1, 10) {
            log.add(admitted.at(), 10);
        }
    }
}

/// Every algorithm of one window that admits ten permits in one request.
fn whole_subjects() -> Vec<Subject> {
    let mut all = subjects(quota("10/s"));
    all.retain(|it| it.algorithm.max_request() == 10 && it.bounds.len() == 1);
    assert_eq!(all.len(), 7);
    all
}

/// The error of a restore, as text.
fn refused(it: impl Into<Any>, file: &[u8]) -> String {
    let restored =
        builder(it, 10, OnFull::Share).restore_with(ManualClock::new(), Plain, file, Duration::ZERO);
    restored.expect_err("another file is expected").to_string()
}

/// Ten keys of a strict ring have spent one to ten.
fn file_of_ten_keys() -> (CounterRing, Vec<u8>) {
    let ring = CounterRing::new(quota("10/min")).expect("a ring");
    let (limiter, _clock) = by_hand(ring.clone(), 10, OnFull::Share);
    for key in 1..=10 {
        assert!(limiter.check_n(&key, key).is_ok());
    }
    (ring, saved(&limiter))
}

#[test]
fn what_is_saved_is_charged() {
    for Subject { name, algorithm, .. } in whole_subjects() {
        let (limiter, clock) = by_hand(algorithm.clone(), 100, OnFull::Share);
        for key in 1..=50 {
            assert!(limiter.check_n(&key, key % 11).is_ok());
        }
        let file = saved(&limiter);
        // The process that restores has a clock of its own, which begins at zero.
        let after = restored(algorithm.clone(), 100, &file, Duration::ZERO);
        for key in 1..=60 {
            let spent = if key <= 50 { key % 11 } else { 0 };
            assert_eq!(after.peek(&key).spent(), spent, "{name}: {key}");
            assert_eq!(after.peek(&key).remaining(), 10 - spent, "{name}: {key}");
        }
        // Those without permits need no entry: every eleventh.
        assert_eq!(after.len(), 46, "{name}");

        // A key is charged until all of its permits would have expired.
        let idle = limiter.peek(&10).retry_after(10).expect("a time");
        // The restored key is charged in the next cell of the new clock.
        assert!(after.peek(&10).retry_after(10).expect("a time") >= idle, "{name}");
        clock.advance(idle / 2);
        let file = saved(&limiter);
        let rest = limiter.peek(&10).retry_after(10).expect("a time");
        assert!(rest > 2 * NANO && rest < idle, "{name}");
        let spent = |elapsed| restored(algorithm.clone(), 100, &file, elapsed).peek(&10).spent();
        // A bucket counts in halves of a nanosecond.
        assert!(spent(rest - 2 * NANO) > 0, "{name}");
        assert_eq!(spent(rest + 2 * NANO), 0, "{name}");
        assert_eq!(spent(Duration::MAX), 0, "{name}");
    }
}

/// A save allocates 64 KiB and a few small texts, however many keys there are.
#[test]
fn a_key_takes_24_bytes_of_a_file() {
    let bucket = Gcra::new(quota("10/s")).expect("a bucket");
    let (limiter, _clock) = by_hand(bucket, 100_000, OnFull::Share);
    let empty = saved(&limiter).len();
    // The last keys find all entries in use, and are admitted by the catch-all.
    for key in 0..300_000 {
        let _ = limiter.check(&key);
    }
    let keys = limiter.len();
    assert!(keys > 190_000 && limiter.counts().overflowed > 0, "{keys} keys");
    let counted = allocation_counter::measure(|| {
        assert!(limiter.save(io::sink()).expect("a sink") >= keys);
    });
    assert!(counted.bytes_max < 66 * 1024, "{counted:?}");
    let file = saved(&limiter).len() - empty;
    // The catch-all and its marks are saved as well.
    let expected = keys * 24..keys * 24 + 1024;
    assert!(expected.contains(&(file as u64)), "{file} bytes of {keys} keys");
}

#[test]
fn nothing_is_restored_of_a_fresh_table() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, clock) = by_hand(algorithm.clone(), 100, OnFull::Share);
        assert_eq!(limiter.save(io::sink()).expect("a sink"), 0);
        let fresh = saved(&limiter);
        assert!(limiter.check(&1).is_ok());
        assert_eq!(limiter.save(io::sink()).expect("a sink"), 1);
        clock.advance(Duration::from_secs(20));
        assert_eq!(saved(&limiter), fresh, "{name}: an idle key is not saved");
        assert!(restored(algorithm, 100, &fresh, Duration::ZERO).is_empty());
    }
}

/// The permits that the catch-all has admitted stay spent, and its keys get no fresh budget by entries of their own.
#[test]
fn the_counts_of_the_catch_all_are_kept() {
    for Subject { name, algorithm, .. } in whole_subjects() {
        let (limiter, clock) = filled(algorithm.clone(), OnFull::Share, 0);
        assert!(limiter.check_n(&1, 7).expect("the catch-all").is_overflow());
        let file = saved(&limiter);

        let after = restored(algorithm.clone(), 1, &file, Duration::ZERO);
        assert_eq!(after.len(), limiter.len(), "{name}");
        let other = after.check_n(&2, 4).expect_err("three are left");
        assert!(other.is_overflow() && other.remaining() == 3, "{name}");
        assert!(after.check_n(&2, 3).expect("three are left").is_overflow());

        // In a larger table there is an entry for each key. The key that has spent must not get one yet.
        let after = restored(algorithm.clone(), 1_000, &file, Duration::ZERO);
        assert!(after.check(&1).is_err(), "{name}");
        // 13 keys of a region have 13 different marks.
        assert!(!after.check(&2).expect("an entry").is_overflow(), "{name}");

        // Until none of the permits counts.
        let idle = limiter.peek(&1).retry_after(10).expect("a time");
        clock.advance(idle);
        let after = restored(algorithm, 1_000, &file, idle + Duration::from_secs(2));
        assert!(after.check_n(&1, 10).is_ok(), "{name}");
    }
}

/// Keys that find no entry in a smaller table are charged to the catch-all, and barred.
#[test]
fn a_smaller_table_gives_no_fresh_budget() {
    for Subject { name, algorithm, .. } in whole_subjects() {
        let (limiter, _clock) = by_hand(algorithm.clone(), 200, OnFull::Share);
        for key in 1..=200 {
            assert!(limiter.check_n(&key, 6).is_ok());
        }
        let after = restored(algorithm, 1, &saved(&limiter), Duration::ZERO);
        assert_eq!(after.len(), after.capacity() as u64, "{name}");
        for key in 1..=200 {
            assert!(after.check_n(&key, 5).is_err(), "{name}: {key}");
        }
    }
}

/// A key that is charged in the catch-all gets no entry that becomes idle before that charge has expired.
#[test]
fn a_smaller_table_bars_keys_without_an_entry() {
    let bucket = || Any::from(Gcra::new(quota("10/s")).expect("a bucket"));
    let (limiter, _clock) = by_hand(bucket(), 1000, OnFull::Share);
    for key in 1..=200 {
        assert!(limiter.check_n(&key, if key % 2 == 0 { 1 } else { 9 }).is_ok());
    }
    let clock = ManualClock::new();
    let after = restored_with(clock.clone(), bucket(), 1, &saved(&limiter), Duration::ZERO);
    assert_eq!(after.len(), after.capacity() as u64);
    // The entries of even keys are idle. Of the nine permits of an odd key, four still count.
    clock.advance(Duration::from_millis(500));
    for key in (1..=200).step_by(2) {
        assert!(after.check_n(&key, 10).is_err(), "{key}");
    }
}

/// Each key of a table that is as full as its capacity gets an entry again.
#[test]
fn a_full_table_has_an_entry_for_each_key_again() {
    let keys = 100_000_u64;
    let bucket = Any::from(Gcra::new(quota("10/h")).expect("a bucket"));
    let table = || builder(bucket.clone(), keys, OnFull::Share);
    let seeded = || AnyKey::with_seeds([1, 2, 3, 4]);
    let before = build(table(), ManualClock::new(), seeded());
    for key in 0..keys {
        assert!(!before.check(&key).expect("an entry").is_overflow());
    }
    let after = table().restore_with(ManualClock::new(), seeded(), &*saved(&before), Duration::ZERO);
    let after = after.expect("the same algorithm");
    let found = (0..keys).filter(|key| after.peek(key).spent() == 1 && !after.peek(key).is_overflow());
    assert_eq!((found.count() as u64, after.len()), (keys, keys));
}

/// A state that is ahead of the clock counts until the same time has passed.
#[test]
fn a_state_ahead_of_its_clock_is_restored_ahead() {
    for subject in whole_subjects() {
        let (limiter, clock) = by_hand(subject.algorithm.clone(), 10, OnFull::Share);
        let ahead = clock.now().saturating_add(Duration::from_secs(5));
        let mut log = Log::default();
        log.add(limiter.check_at(&1, ahead, 10).expect("fresh").at(), 10);
        let file = saved(&limiter);
        let algorithm = subject.algorithm.clone();
        let after = restored_with(clock.clone(), algorithm, 10, &file, Duration::ZERO);
        ask(&after, &clock, 200, &mut log);
        assert!(log.len() > 1, "{}: never admitted again", subject.name);
        assert_eq!(subject.broken(&log), None, "{}", subject.name);
    }
}

/// A key that was idle after the gap begins at the time of the restore, though a caller comes with an older reading.
#[test]
fn a_reading_older_than_the_restore_gives_no_fresh_budget() {
    for subject in whole_subjects() {
        let (limiter, clock) = by_hand(subject.algorithm.clone(), 10, OnFull::Share);
        let older = clock.now().saturating_add(Duration::from_millis(500));
        let mut log = Log::default();
        log.add(limiter.check_n(&1, 10).expect("fresh").at(), 10);
        let file = saved(&limiter);
        let gap = Duration::from_secs(3);
        clock.advance(gap);
        let after = restored_with(clock, subject.algorithm.clone(), 10, &file, gap);
        for _ in 0..10 {
            if let Ok(admitted) = after.check_at(&1, older, 1) {
                log.add(admitted.at(), 1);
            }
        }
        assert_eq!(subject.broken(&log), None, "{}", subject.name);
    }
}

#[test]
fn a_flipped_bit_anywhere_is_refused() {
    let (ring, file) = file_of_ten_keys();
    for bit in 0..8 * file.len() {
        let mut file = file.clone();
        file[bit / 8] ^= 1 << (bit % 8);
        let error = refused(ring.clone(), &file);
        let mut known = "checksum, version, not a saved state, ends after, description".split(", ");
        assert!(known.any(|text| error.contains(text)), "{bit}: {error}");
    }
}

#[test]
fn a_truncated_or_longer_file_is_refused() {
    let (ring, mut file) = file_of_ten_keys();
    for length in 0..file.len() {
        let expected = format!("the saved state ends after {length} bytes (expected more)");
        assert_eq!(refused(ring.clone(), &file[..length]), expected);
    }
    file.push(0);
    let expected = "the saved state has more bytes after its end (expected none)";
    assert_eq!(refused(ring, &file), expected);
}

#[test]
fn another_version_is_refused() {
    let (ring, mut file) = file_of_ten_keys();
    file[8] = 2;
    let expected = "invalid version of a saved state: 2 (expected 1)";
    assert_eq!(refused(ring.clone(), &file), expected);
    let expected = "not a saved state (expected a file that begins with \"ringgate\")";
    assert_eq!(refused(ring, b"[rules]\nname = 1\n"), expected);
}

/// Each algorithm, quota, number of cells and list of tiers refuses the files of the others, and says what it has found.
#[test]
fn a_file_of_another_algorithm_is_refused() {
    let mut all = subjects(quota("10/s"));
    all.extend(subjects(quota("11/s")));
    all.extend(subjects(quota("10/min")));
    let six = CounterRing::builder(quota("10/s")).cells(6);
    all.push(Subject::new("six cells", built(six.clone())));
    all.push(Subject::new("six cells, classic", built(six.classic())));
    let bucket = Gcra::token_bucket(quota("10/s"), 9).expect("a bucket");
    all.push(Subject::new("a smaller burst", bucket));
    let files: Vec<_> = all
        .iter()
        .map(|it| saved(&by_hand(it.algorithm.clone(), 10, OnFull::Share).0))
        .collect();
    for (one, it) in all.iter().enumerate() {
        for (other, file) in files.iter().enumerate() {
            let table = builder(it.algorithm.clone(), 10, OnFull::Share);
            let restored = table.restore_with(ManualClock::new(), Plain, &**file, Duration::ZERO);
            match restored {
                Ok(_) => assert_eq!(one, other, "{it:?} restores {:?}", all[other]),
                Err(RestoreError::Mismatch {
                    field,
                    found,
                    expected,
                }) => {
                    assert!(one != other && field == "table" && found != expected);
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    let ring = |text: &str| built(CounterRing::builder(quota(text)).cells(5));
    let (limiter, _clock) = by_hand(ring("10/s"), 10, OnFull::Share);
    assert_eq!(
        refused(ring("11/s"), &saved(&limiter)),
        "the saved state has another table: bound 10 in 1s, counted for 1.2s, at most 10 at once, 1 words, 0x60000 \
         at the origin, 5 cells in units of 1 (expected bound 11 in 1s, counted for 1.2s, at most 11 at once, 1 words, 0xc0000 at the origin, \
         5 cells in units of 1)"
    );
    let with_tier = builder(ring("10/s"), 10, OnFull::Share).tier(5);
    let error = with_tier.restore_with(ManualClock::new(), Plain, &*saved(&limiter), Duration::ZERO);
    let error = error.expect_err("a tier more").to_string();
    assert!(error.ends_with(", tier with bound 5 in 1.2s)"), "{error}");
}

/// Keys of which each has another hash in each process.
struct Changing(u64);

impl Keys<u64> for Changing {
    fn hash(&self, key: &u64) -> u64 {
        self.0 ^ key
    }
}

impl SeededKeys for Changing {
    fn seeds(&self) -> [u64; 4] {
        [0; 4]
    }

    fn reseeded(self, _seeds: [u64; 4]) -> Self {
        self
    }

    fn sample(&self) -> u64 {
        self.hash(&1)
    }
}

/// The seeds are a secret, so the error does not show them.
#[test]
fn a_file_of_other_keys_is_refused() {
    let ring = CounterRing::new(quota("10/s")).expect("a ring");
    let table = || builder(ring.clone(), 10, OnFull::Share);
    let refused = |file: &[u8]| {
        let restored = table().restore_with(ManualClock::new(), Changing(1), file, Duration::ZERO);
        restored.map(drop).expect_err("other keys").to_string()
    };
    let changed = build(table(), ManualClock::new(), Changing(16));
    let seeded = build(table(), ManualClock::new(), AnyKey::with_seeds([1, 2, 3, 4]));
    let [hash, kind] = [
        "hash function: a sample of 0x11 (expected 0x0)",
        "kind of keys: with seeds (expected keys with fixed seeds)",
    ];
    for (file, message) in [(saved(&changed), hash), (saved(&seeded), kind)] {
        assert_eq!(refused(&file), format!("the saved state has another {message}"));
    }
}

/// Of keys with random seeds, the file has the seeds. It can be saved and restored again.
#[test]
fn keys_with_random_seeds_are_found_again() {
    let ring = CounterRing::new(quota("10/s")).expect("a ring");
    let table = || builder(ring.clone(), 100, OnFull::Share);
    let mut limiter = build(table(), ManualClock::new(), AnyKey::random());
    assert!(limiter.check_n("alice", 9).is_ok());
    for _ in 0..2 {
        let file = saved(&limiter);
        let restored = table().restore_with(ManualClock::new(), AnyKey::random(), &*file, Duration::ZERO);
        limiter = restored.expect("any seeds");
        assert_eq!(["alice", "bob"].map(|user| limiter.peek(user).spent()), [9, 0]);
    }
    let tiers = || Tiers::new(|name: &str| usize::from(name == "alice"), AnyKey::random());
    let table = || table().tier(5);
    let before = build(table(), ManualClock::new(), tiers());
    assert!(before.check_n("alice", 4).is_ok() && before.check_n("bob", 8).is_ok());
    let after = table().restore_with(ManualClock::new(), tiers(), &*saved(&before), Duration::ZERO);
    let after = after.expect("any seeds");
    assert_eq!(["alice", "bob"].map(|user| after.peek(user).remaining()), [1, 2]);
}

/// Reads one byte at a time, with interruptions, and fails after `left` bytes.
struct Slow<'a> {
    file: &'a [u8],
    left: usize,
    calls: usize,
}

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.calls += 1;
        if self.calls.is_multiple_of(3) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        self.left = self.left.checked_sub(1).ok_or(io::ErrorKind::NotConnected)?;
        self.file.read(&mut buffer[..1])
    }
}

#[test]
fn a_slow_reader_is_read_to_its_end() {
    let (ring, file) = file_of_ten_keys();
    let restore = |left| {
        let (file, calls) = (&*file, 0);
        let file = Slow { file, left, calls };
        builder(ring.clone(), 10, OnFull::Share).restore_with(ManualClock::new(), Plain, file, Duration::ZERO)
    };
    assert_eq!(restore(usize::MAX).expect("all bytes").peek(&7).spent(), 7);
    let error = restore(file.len() / 2).expect_err("the reader fails");
    assert!(matches!(&error, RestoreError::Read(error) if error.kind() == io::ErrorKind::NotConnected));
}

/// A key that a lower limit has charged may be idle later than the span of the table's own limit. It counts from the time of
/// the restore, and not from the time at which it would have been idle.
#[test]
fn a_charge_by_a_lower_limit_does_not_grow_by_restarts() {
    let bucket = || Gcra::token_bucket(quota("100/min"), 5).expect("a bucket");
    let mut limiter = build(builder(bucket(), 10, OnFull::Share), ManualClock::new(), Plain);
    assert!(limiter.with_limit(10).expect("up to 100").check(&1).is_ok());
    let wait = Duration::from_secs(6);
    assert_eq!(limiter.peek(&1).retry_after(5), Some(wait));
    for _ in 0..5 {
        limiter = restored(bucket(), 10, &saved(&limiter), Duration::ZERO);
        assert_eq!(limiter.peek(&1).retry_after(5), Some(wait));
    }
}

/// A key that was admitted at a reading after the clock, and has lost its entry, gets no fresh budget, and no later one than before.
#[test]
fn a_key_that_lost_its_entry_ahead_of_the_clock_stays_charged() {
    for subject in whole_subjects() {
        let (limiter, clock) = by_hand(subject.algorithm.clone(), 1, OnFull::Share);
        let ahead = |seconds| clock.now().saturating_add(Duration::from_secs(seconds));
        let mut log = Log::default();
        log.add(limiter.check_at(&1, ahead(5), 10).expect("fresh").at(), 10);
        let later = ahead(9);
        // They take all entries, and one of them finds none. It has another mark than key 1.
        let mut others = (2..100).filter(|other| other % 13 != 1);
        assert!(others.any(|other| match limiter.check_at(&other, later, 1) {
            Ok(admitted) => admitted.is_overflow(),
            Err(denied) => denied.is_overflow(),
        }));
        let file = saved(&limiter);
        for capacity in [1, 1_000] {
            let (gap, mut log) = (Duration::from_secs(3), log.clone());
            let clock = ManualClock::new();
            clock.advance(limiter.clock().now().saturating_since(Nanos::ZERO) + gap);
            let after = restored_with(clock.clone(), subject.algorithm.clone(), capacity, &file, gap);
            let before = log.len();
            if capacity > 1 {
                // Its state begins at the time of the loss or a cell later, and not later by the gap.
                let at = after.check_n(&1, 10).expect("an entry").at();
                assert!(
                    at <= later.saturating_add(Duration::from_secs(1)),
                    "{}",
                    subject.name
                );
                log.add(at, 10);
            }
            ask(&after, &clock, 250, &mut log);
            assert!(log.len() > before, "{}: never admitted again", subject.name);
            assert_eq!(subject.broken(&log), None, "{}: {capacity}", subject.name);
        }
    }
}

#[test]
fn a_long_description_is_refused_before_it_is_read() {
    let (ring, file) = file_of_ten_keys();
    let with_length = |length: u32| {
        let mut file = file.clone();
        file[12..16].copy_from_slice(&length.to_le_bytes());
        refused(ring.clone(), &file)
    };
    let what = "invalid length of the description in a saved state";
    for length in [(1 << 24) + 1, u32::MAX] {
        let expected = format!("{what}: {length} bytes (expected at most 16777216)");
        assert_eq!(with_length(length), expected);
    }
    assert!(with_length(1 << 24).starts_with("the saved state ends after"));
}
