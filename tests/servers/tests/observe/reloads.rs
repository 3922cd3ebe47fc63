use core::sync::atomic::AtomicBool;

use super::requests::{ask, with_quota};
use super::*;
use crate::random::Random;
use ringgate::rules::{Reloaded, RuleCounts};

#[test]
fn the_counters_of_a_rule_that_is_added_again_continue() -> Result<(), Box<dyn Error>> {
    let live = live(&["stays", "goes"])?;
    let scraped = Scraped::new();
    ask(&live, 5);
    assert_eq!(value(&scraped.scrape(&live.load()), "goes", "denied"), 3);

    // The rule is removed before a scrape reads these two denials.
    ask(&live, 2);
    assert_eq!(live.store(&named(&["stays"]))?, Reloaded::Done);
    assert_eq!(value(&scraped.scrape(&live.load()), "goes", "denied"), 5);
    ask(&live, 1);
    assert_eq!(value(&scraped.scrape(&live.load()), "goes", "denied"), 5);

    assert_eq!(live.store(&named(&["stays", "goes"]))?, Reloaded::Done);
    let loaded = live.load();
    let afresh = loaded.counts().find(|(name, _)| *name == "goes");
    assert_eq!(afresh, Some(("goes", RuleCounts::default())));
    assert_eq!(value(&scraped.scrape(&live.load()), "goes", "denied"), 5);
    drop(loaded);
    // There are more denials than before, so that a counter that begins anew would rise, too. Only the sum differs.
    live.load().clock().advance(Duration::from_secs(3));
    ask(&live, 20);
    let values = scraped.scrape(&live.load());
    assert_eq!(value(&values, "stays", "denied"), 5 + 1 + 18);
    assert_eq!(value(&values, "goes", "denied"), 5 + 18);
    assert_eq!(value(&values, "goes", "admitted"), 2 + 2);
    Ok(())
}

#[test]
fn a_rule_removed_and_added_between_two_scrapes_is_summed() -> Result<(), Box<dyn Error>> {
    let live = live(&["one"])?;
    let scraped = Scraped::new();
    ask(&live, 5);
    scraped.scrape(&live.load());
    live.store(&named(&["other"]))?;
    live.store(&named(&["one"]))?;
    ask(&live, 30);
    // The denials of the new rule are added, although they alone exceed the last published value.
    assert_eq!(value(&scraped.scrape(&live.load()), "one", "denied"), 3 + 28);
    Ok(())
}

#[test]
fn decisions_by_old_rules_are_counted() -> Result<(), Box<dyn Error>> {
    let live = live(&["one"])?;
    let scraped = Scraped::new();
    let before = live.load();
    scraped.scrape(&before);
    live.store(&named(&["other"]))?;
    assert_eq!(value(&scraped.scrape(&live.load()), "one", "admitted"), 0);
    let _ = before.check(&request(0));
    assert_eq!(value(&scraped.scrape(&live.load()), "one", "admitted"), 1);
    let _ = before.check(&request(0));
    drop(before);
    live.finish();
    assert_eq!(value(&scraped.scrape(&live.load()), "one", "admitted"), 2);
    assert_eq!(value(&scraped.scrape(&live.load()), "one", "admitted"), 2);
    Ok(())
}

#[test]
fn a_new_name_counts_only_new_events() -> Result<(), Box<dyn Error>> {
    let live = live(&["old"])?;
    let scraped = Scraped::new();
    ask(&live, 5);
    scraped.scrape(&live.load());
    live.store(&RuleSetBuilder::new().rule(Rule::new("new", "2/s".parse()?).renamed_from("old")))?;
    let values = scraped.scrape(&live.load());
    assert_eq!(value(&values, "old", "denied"), 3);
    assert_eq!(value(&values, "new", "denied"), 0);
    ask(&live, 4);
    let values = scraped.scrape(&live.load());
    assert_eq!(value(&values, "old", "denied"), 3);
    assert_eq!(value(&values, "new", "denied"), 4);
    Ok(())
}

#[test]
fn rules_of_one_name_are_summed() -> Result<(), Box<dyn Error>> {
    let set = || named(&["one"]).build_with(ManualClock::new(), SEEDS);
    let (first, second) = (set()?, set()?);
    let scraped = Scraped::new();
    for _ in 0..5 {
        let _ = first.check(&request(0));
    }
    let _ = second.check(&request(0));
    assert_eq!(value(&scraped.scrape(&first), "one", "admitted"), 2);
    assert_eq!(value(&scraped.scrape(&second), "one", "admitted"), 3);
    let _ = second.check(&request(0));
    drop(second);
    assert_eq!(value(&scraped.scrape(&first), "one", "admitted"), 4);
    Ok(())
}

/// Over many reloads, each counter is the number of decisions, because every rule is published at least once.
#[test]
fn counters_are_exact_over_many_reloads() -> Result<(), Box<dyn Error>> {
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    let live = live(&NAMES)?;
    let scraped = Scraped::new();
    let mut last = scraped.scrape(&live.load());
    let mut judged = BTreeMap::<&str, u64>::new();
    let mut chosen = NAMES.to_vec();
    let mut random = Random::new(1);
    for _ in 0..500 {
        match random.below(3) {
            0 => {
                chosen = NAMES.into_iter().filter(|_| random.one_in(2)).collect();
                live.store(&named(&chosen))?;
                scraped.scrape(&live.load());
            }
            1 => {
                live.load().clock().advance(Duration::from_secs(3));
                ask(&live, 1);
                chosen
                    .iter()
                    .for_each(|name| *judged.entry(name).or_default() += 1);
            }
            _ => {
                let values = scraped.scrape(&live.load());
                assert!(last.iter().all(|(series, before)| values[series] >= *before));
                for name in NAMES {
                    let judged = judged.get(name).copied().unwrap_or_default();
                    assert_eq!(value(&values, name, "admitted"), judged, "{name}");
                }
                last = values;
            }
        }
    }
    Ok(())
}

/// A rule is removed and added while threads decide, some by old rules. At the end, the counters include each decision.
#[test]
fn no_count_is_lost_while_threads_decide_reload_and_publish() -> Result<(), Box<dyn Error>> {
    const EACH: u64 = 3_000;
    // The quota suffices for all requests, so that every rule in force admits them.
    let rules = |names: &[&str]| with_quota(names, "1_000_000/s");
    let (one, both) = (rules(&["stays"]), rules(&["stays", "comes and goes"]));
    let live = LiveRules::new(both.build_with(ManualClock::new(), SEEDS)?);
    let (recorder, observer) = (CheckedRecorder::default(), Observer::new());
    let publish = || metrics::with_local_recorder(&recorder, || observer.publish(&live.load()));
    publish();
    let (done, by_both) = (AtomicBool::new(false), AtomicU64::new(0));
    let ended: Vec<_> = thread::scope(|scope| {
        let decide = || {
            for _ in 0..EACH {
                let loaded = live.load();
                let _ = loaded.check(&request(0));
                by_both.fetch_add(u64::from(loaded.counts().count() == 2), Ordering::Relaxed);
            }
        };
        let deciders: Vec<_> = (0..2).map(|_| scope.spawn(decide)).collect();
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                publish();
            }
        });
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                // While too many old states are in force, a reload changes nothing.
                let _ = live.store(&one);
                let _ = live.store(&both);
                // Each rule is published at least once. It may be removed while a thread still uses it.
                publish();
            }
        });
        let ended = deciders.into_iter().map(|decider| decider.join()).collect();
        done.store(true, Ordering::Relaxed);
        ended
    });
    assert!(ended.iter().all(Result::is_ok));
    observer.publish(&live.load());
    assert_eq!(recorder.value("stays", "admitted"), 2 * EACH);
    assert_eq!(recorder.value("comes and goes", "admitted"), by_both.into_inner());
    Ok(())
}

/// The counts of removed rules are freed.
#[test]
fn removed_rules_take_no_memory() -> Result<(), Box<dyn Error>> {
    let live = live(&["stays", "comes and goes"])?;
    let scraped = Scraped::new();
    scraped.scrape(&live.load());
    let memory = allocation_counter::measure(|| {
        for _ in 0..100 {
            live.store(&named(&["stays"])).expect("rules");
            scraped.scrape(&live.load());
            live.store(&named(&["stays", "comes and goes"])).expect("rules");
            scraped.scrape(&live.load());
        }
    });
    // The counts of one rule are 8 KiB.
    assert!(memory.bytes_current < 32 * 1024, "{memory:?}");
    Ok(())
}
