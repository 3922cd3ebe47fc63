//! Blocks after violations: a reference, and each promise.

use super::*;

/// A tick of the words of blocks, in nanoseconds.
const TICK: u64 = 10_000_000;

fn block(after: &str, seconds: u64) -> Block {
    Block::new(after.parse().unwrap(), secs(seconds))
}

fn blocking(block: Block) -> Rule<Request> {
    rule("a", "1/s")
        .algorithm(RuleAlgorithm::Gcra)
        .by(&by_user())
        .block(block)
}

fn at(seconds: u64) -> Nanos {
    Nanos::from_duration(secs(seconds))
}

fn build<K: Into<AnyKind>>(rules: impl IntoIterator<Item = Rule<Request, K>>) -> ByHand {
    built(&set(rules))
}

/// Uses up a limit of one permit, and violates it once.
fn violate(rules: &ByHand, request: &Request) {
    assert!(rules.check(request).is_ok() && rules.check(request).is_err());
}

fn blocks(rules: &ByHand) -> u64 {
    rules.counts().map(|(_, counts)| counts.blocks).sum()
}

fn blocked(rules: &ByHand) -> u64 {
    rules.blocked().map(|(_, keys)| keys).sum()
}

/// The seconds until the request would be admitted, after it was denied.
fn denied_for(rules: &ByHand, request: &Request) -> Option<u64> {
    let denied = rules.check(request).err()?;
    Some(denied.retry_after().unwrap().as_secs())
}

/// The violations of one key, as a reader of the documentation would keep them.
#[derive(Clone, Debug, Default)]
struct Reference {
    /// The beginning of the window, in ticks, and its violations.
    window: Option<(u64, u64)>,
    /// The end of the last block, in ticks.
    end: Option<u64>,
    level: u32,
    /// The end of the last block, or the beginning of the last window if that is later.
    last: u64,
}

impl Reference {
    fn is_blocked(&self, now: u64) -> bool {
        self.end
            .is_some_and(|end| self.window.is_none() && now < end * TICK)
    }

    /// A violation of an unblocked key.
    fn violate(&mut self, now: u64, after: u64, window: u64, lasting: impl Fn(u32) -> u64, forgive: u64) {
        let tick = now / TICK;
        let (begin, violations) = match self.window {
            Some((begin, violations)) if tick < begin + window => (begin, violations),
            _ => {
                let begin = tick.max(self.last);
                if begin - self.last >= forgive {
                    self.level = 0;
                }
                (begin, 0)
            }
        };
        self.last = begin;
        self.window = Some((begin, violations + 1));
        if violations + 1 == after {
            self.level += 1;
            let from = now.max(begin * TICK);
            let end = (from + lasting(self.level)).div_ceil(TICK);
            (self.window, self.end, self.last) = (None, Some(end), end);
        }
    }

    fn retry(&mut self, now: u64, lasting: impl Fn(u32) -> u64) {
        let end = (now + lasting(self.level)).div_ceil(TICK);
        self.end = self.end.max(Some(end));
        self.last = self.end.unwrap();
    }
}

/// Random requests of several keys, with clock readings that step back and forth, against the reference.
fn compare(seed: u64, escalates: bool, extends: bool) {
    const SECOND: u64 = 1_000_000_000;
    let mut random = Random::new(seed);
    let after = 1 + random.below(4);
    let window = 1 + random.below(20);
    let (first, factor, forgive) = (1 + random.below(10), 2 + random.below(3), random.below(40));
    let ceiling = first * (1 + random.below(30));
    let quota = Quota::new(after, secs(window)).unwrap();
    let mut block = Block::new(quota, secs(first));
    if escalates {
        block = block.escalate(u32::try_from(factor).unwrap(), secs(ceiling), secs(forgive));
    }
    if extends {
        block = block.extend_on_retry();
    }
    let lasting = |level: u32| {
        let grown = first
            .saturating_mul(factor.saturating_pow(level - 1))
            .min(ceiling);
        SECOND * if escalates { grown } else { first }
    };
    let forgive = if escalates { forgive * SECOND / TICK } else { 0 };
    // A request of two permits or more is never admitted, so it violates the rule. One that is admitted shows that its key is not
    // blocked. A rule with a block is decided in another way if it is the only rule.
    let blocking = rule("a", "1/s")
        .algorithm(RuleAlgorithm::Gcra)
        .capacity(40)
        .cost(&by_cost())
        .by(&by_user())
        .block(block);
    let others = seed.is_multiple_of(2).then(|| rule("b", "1_000_000/s"));
    let rules = build([blocking].into_iter().chain(others));
    let (mut keys, mut now) = (HashMap::<u64, Reference>::new(), 100 * SECOND);
    let mut begun = 0;
    for _ in 0..400 {
        now = match random.below(10) {
            0..6 => now + random.below(2 * SECOND),
            6 => now + random.below(30 * SECOND),
            7 => now.saturating_sub(random.below(30 * SECOND)).max(1),
            8 => now + random.below(TICK),
            _ => now,
        };
        rules.clock().set(Nanos::new(now));
        let key = random.below(3);
        let reference = keys.entry(key).or_default();
        let request = user(key).cost([2, 3, u64::MAX - 1, u64::MAX][random.below(4) as usize]);
        let was_blocked = reference.is_blocked(now);
        let denied = rules.check(&request).expect_err("two permits are too many");
        let by_block = denied.violations().any(|violation| violation.is_block);
        assert_eq!(by_block, was_blocked, "seed {seed}: key {key} at {now}");
        drop(denied);
        let shown = rules.peek(&request).find(|peek| peek.status().is_block);
        let shown = shown.map(|block| block.retry_after(2).unwrap());
        if was_blocked {
            if extends {
                reference.retry(now, lasting);
            }
        } else {
            reference.violate(
                now,
                after,
                quota.window().as_secs() * SECOND / TICK,
                lasting,
                forgive,
            );
            begun += u64::from(reference.is_blocked(now));
        }
        let expected = reference
            .is_blocked(now)
            .then(|| Duration::from_nanos(reference.end.unwrap() * TICK - now));
        assert_eq!(shown, expected, "seed {seed}: key {key} at {now}: {reference:?}");
        assert_eq!(blocks(&rules), begun, "seed {seed}");
        let all = keys
            .values()
            .filter(|reference| reference.is_blocked(now))
            .count();
        assert_eq!(blocked(&rules), all as u64, "seed {seed}");
        // The answers do not depend on how far the key is from its limit.
        for (&key, reference) in &keys {
            let free = user(key).cost(0);
            assert!(rules.check(&free).is_ok(), "a request that costs nothing");
            let shown = rules.peek(&user(key)).any(|peek| peek.status().is_block);
            assert_eq!(shown, reference.is_blocked(now), "seed {seed}: {key} at {now}");
        }
    }
}

#[test]
fn blocks_equal_the_reference() {
    let seeds = if cfg!(miri) { 1 } else { 50 };
    for seed in 1..=seeds {
        for (escalates, extends) in [(false, false), (true, false), (false, true), (true, true)] {
            compare(seed, escalates, extends);
        }
    }
}

/// Only denials by the limit of an enforced rule are violations.
#[test]
fn other_denials_violate_nothing() {
    let once = || block("1/min", 60);
    // A rule in the shadow neither counts nor blocks.
    let rules = build([blocking(once()).shadow()]);
    assert!((0..5).all(|_| rules.check(&user(1)).is_ok()));
    assert_eq!((blocks(&rules), blocked(&rules)), (0, 0));
    // A listed key.
    let rules = build([blocking(once()).deny(1_u64)]);
    assert!((0..5).all(|_| rules.check(&user(1)).is_err()));
    assert_eq!(blocks(&rules), 0);
    // A denial by another rule.
    let other = rule("b", "1/min").by(&by_address());
    let rules = build([rule("a", "10/s").by(&by_user()).block(once()), other]);
    assert!(rules.check(&user(1)).is_ok());
    assert!((0..5).all(|_| rules.check(&user(1)).is_err()));
    assert_eq!((blocks(&rules), blocked(&rules)), (0, 0));
}

/// A key on the list is denied by the list alone, also beside the blocks of other keys.
#[test]
fn a_block_of_another_key_is_no_violation_of_a_listed_key() {
    // The filter of blocks has one word for so few keys.
    let rules = build([blocking(block("1/min", 60)).capacity(8).deny(1_u64)]);
    let (listed, other) = (user(1), user(2));
    let violations = |denied: &ringgate::rules::Denied<'_, Request>| -> Vec<_> {
        let quotas = denied.violations();
        quotas
            .map(|quota| (quota.quota.window(), quota.is_block))
            .collect()
    };
    let alone = violations(&rules.check(&listed).unwrap_err());
    assert_eq!(alone, [(secs(1), false)]);
    violate(&rules, &other);
    assert_eq!(blocked(&rules), 1);
    assert_eq!(violations(&rules.check(&listed).unwrap_err()), alone);
    assert_eq!(rules.peek(&listed).count(), 1);
    // So is a request without the key.
    let limited = rule("a", "1/s")
        .algorithm(RuleAlgorithm::Gcra)
        .by(&by_some_user(OnMissingKey::Deny));
    let rules = build([limited.block(block("1/min", 60)).capacity(8)]);
    violate(&rules, &other);
    let none = user(0);
    let without = rules.check(&none).unwrap_err();
    assert_eq!(violations(&without), alone);
    assert!(without.violations().all(|quota| quota.lacks_key));
}

/// Denials of keys that find the table full are caused by other keys, so they block no key.
#[test]
fn a_full_table_blocks_no_honest_key() {
    for on_full in [OnFull::Deny, OnFull::Share] {
        for alone in [true, false] {
            let limited = rule("a", "1/h").by(&by_user()).capacity(1).on_full(on_full);
            let others = (!alone).then(|| rule("b", "1000/s"));
            let rules = build([limited.block(block("1/min", 60))].into_iter().chain(others));
            rules.clock().set(at(100_000));
            for key in 0..200 {
                let denied = rules.check(&user(key)).is_err();
                let is_blocked = rules.peek(&user(key)).any(|peek| peek.status().is_block);
                assert!(!is_blocked, "{key}: {denied}");
            }
            let counts = rules.counts().next().unwrap().1;
            assert!(counts.denied > 100 && counts.blocks == 0, "{counts:?}");
        }
    }
}

/// A denial with an older reading searches a full table for an idle entry. It must not count in the entries of other keys.
#[test]
fn denials_in_a_full_table_count_for_no_other_key() {
    let limited = rule("a", "1/s").by(&by_user()).capacity(16);
    let rules = build([limited.block(block("3/min", 600))]);
    let deny_once = |users: core::ops::Range<u64>, milliseconds: u64| {
        for id in users {
            let at = Nanos::new(milliseconds * 1_000_000);
            let _ = rules.check_at(&user(id), at);
            assert!(rules.check_at(&user(id), at).is_err());
        }
        rules.clock().set(Nanos::new(milliseconds * 1_000_000));
    };
    deny_once(0..24, 100_000);
    assert_eq!(blocked(&rules), 0);
    deny_once(1_000..1_020, 99_990);
    assert_eq!(blocked(&rules), 0);
}

/// A blocked key is denied before other rules are charged, and each rule that denies counts a violation.
#[test]
fn a_block_denies_for_all_rules() {
    let settings = block("2/min", 60);
    let a = rule("a", "1/s").by(&by_user()).block(settings.clone());
    let b = rule("b", "1/s").by(&by_address()).block(settings);
    let rules = build([a, b, rule("c", "100/min")]);
    rules.clock().set(at(100));
    violate(&rules, &user(1));
    assert_eq!(denied_for(&rules, &user(1)), Some(60));
    assert_eq!((blocks(&rules), blocked(&rules)), (2, 2));
    rules.clock().set(at(110));
    let request = user(1);
    let denied = rules.check(&request).unwrap_err();
    assert!(denied.violations().all(|violation| violation.is_block));
    assert_eq!(denied.violations().count(), 2);
    let third = rules.peek(&request).find(|peek| peek.rule() == "c");
    assert_eq!(third.unwrap().spent(), 1);
    assert_eq!(
        denied.to_string(),
        "rate limit reached: a (blocked), b (blocked); try again in 50s"
    );
    let user_1 = user(1);
    let blocks: Vec<_> = rules
        .peek(&user_1)
        .filter(|peek| peek.status().is_block)
        .collect();
    for peek in &blocks {
        assert_eq!((peek.remaining(), peek.retry_after(1)), (0, Some(secs(50))));
        assert_eq!(peek.status().reset_after, Some(secs(50)));
        assert_eq!(peek.status().retry_after, Some(secs(50)));
    }
    assert!(rules.reserve(&user(1)).is_err());
    assert_eq!(rules.unblock(&user(1)), 2);
    for peek in &blocks {
        // A key that is not blocked has capacity for any number of permits, so it never gets more.
        assert_eq!((peek.remaining(), peek.status().reset_after), (u64::MAX, None));
    }
    assert_eq!((rules.unblock(&user(1)), blocked(&rules)), (0, 0));
    assert!(rules.check(&user(1)).is_ok());
}

/// Unblocking forgets the violations and the level. A reset of the counts does not unblock.
#[test]
fn unblocking_forgets_everything() {
    let rules = build([blocking(block("2/min", 10).escalate(2, secs(1_000), secs(1_000)))]);
    rules.clock().set(at(100));
    for _ in 0..3 {
        assert!(rules.check(&user(1)).is_ok());
        let found = [(); 2].map(|()| denied_for(&rules, &user(1)));
        assert_eq!(found, [Some(1), Some(10)]);
        assert_eq!(rules.reset(&user(1)), 1);
        assert_eq!(denied_for(&rules, &user(1)), Some(10));
        assert_eq!(rules.unblock(&user(1)), 1);
    }
    assert!(rules.check(&user(1)).is_ok());
    assert_eq!(denied_for(&rules, &user(1)), Some(1));
    // It had a violation, and was not blocked.
    assert_eq!(rules.unblock(&user(1)), 0);
    let found = [(); 2].map(|()| denied_for(&rules, &user(1)));
    assert_eq!(found, [Some(1), Some(10)]);
}

/// A block survives a reload of its rule: with the same quota, another quota, another capacity or another name.
#[test]
fn blocks_survive_a_reload() {
    let of = |quota: &str| rule("a", quota).algorithm(RuleAlgorithm::Gcra).by(&by_user());
    let settings = || block("1/h", 600);
    let reloads = [
        of("1/s").block(settings()),
        of("1/s").block(block("5/min", 10)),
        of("7/s").block(settings()),
        of("1/s").algorithm(RuleAlgorithm::Counter).block(settings()),
        of("1/s").capacity(10).block(settings()),
        rule("b", "1/s")
            .renamed_from("a")
            .by(&by_user())
            .block(settings()),
    ];
    for (which, next) in reloads.into_iter().enumerate() {
        let (live, clock) = live([of("1/s").block(settings())]);
        violate(&live.load(), &user(1));
        let _ = live.store(&set([next]));
        // After two seconds only the block denies. A denial by the quota would look for the block whatever the filter says.
        for (wait, left) in [(2, 598), (597, 1)] {
            clock.advance(secs(wait));
            let rules = live.load();
            assert_eq!(denied_for(&rules, &user(1)), Some(left), "{which}");
            drop(rules);
            assert_eq!(live.finish(), Reloaded::Done);
        }
        clock.advance(secs(1));
        assert!(live.load().check(&user(1)).is_ok(), "{which}");
    }
}

/// A reload that removes the block, or counts by another key, ends all blocks when it is complete.
#[test]
fn a_reload_without_the_block_unblocks() {
    let of = |key: &Key<Request>| rule("a", "1/s").algorithm(RuleAlgorithm::Gcra).by(key);
    for next in [of(&by_user()), of(&by_address()).block(block("1/h", 600))] {
        let (live, clock) = live([of(&by_user()).block(block("1/h", 600))]);
        violate(&live.load(), &user(1));
        let _ = live.store(&set([next]));
        assert_eq!(live.finish(), Reloaded::Done);
        clock.advance(secs(2));
        assert!(live.load().check(&user(1)).is_ok());
    }
}

/// Blocks are not saved: a key is not blocked after a restart. The permits that count are.
#[test]
fn blocks_are_not_saved() {
    let rules = set([rule("a", "1/h").by(&by_user()).block(block("1/h", 600_000))]);
    let before = built(&rules);
    before.clock().set(at(10_000));
    violate(&before, &user(1));
    let after = restored(&rules, &saved(&before), Duration::ZERO).unwrap();
    let request = user(1);
    let peeks = after
        .peek(&request)
        .map(|peek| (peek.status().is_block, peek.spent()));
    assert_eq!(peeks.collect::<Vec<_>>(), [(false, 1)]);
}

/// The longest escalation reaches its ceiling before the level ends.
#[test]
fn the_slowest_escalation_reaches_its_ceiling() {
    let longest = Duration::from_secs(366 * 86_400);
    let rules = build([blocking(block("1/s", 1).escalate(2, longest, longest))]);
    let (mut now, mut last) = (1_000, 0);
    for _ in 0..40 {
        rules.clock().set(at(now));
        if rules.check(&user(1)).is_ok() {
            let lasting = denied_for(&rules, &user(1)).unwrap();
            assert!(lasting >= last);
            (now, last) = (now + lasting, lasting);
        }
        if last == longest.as_secs() {
            return;
        }
    }
    panic!("{last} seconds at most");
}

/// The table of violations has a quarter of the rule's capacity, and two entries for each key of that. Violations of further keys are
/// not counted. The rule denies them as without a block.
#[test]
fn a_full_table_of_violations_blocks_no_further_key() {
    let limited = rule("a", "1/h").by(&by_user()).capacity(4_000);
    let rules = build([limited.block(block("1/h", 600))]);
    rules.clock().set(at(100_000));
    for key in 0..3_000 {
        assert!(rules.check(&user(key)).is_ok() && rules.check(&user(key)).is_err());
    }
    let blocked = blocked(&rules);
    assert!((1_900..2_100).contains(&blocked), "{blocked}");
    assert_eq!(blocked, blocks(&rules));
    rules.clock().set(at(100_601));
    assert!(
        (0..3_000).all(|key| rules.check(&user(key)).is_err()),
        "the limit of an hour"
    );
}
