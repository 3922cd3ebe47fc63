use alloc::collections::BTreeSet;
use core::error::Error;
use core::time::Duration;

use metrics::Unit;
use ringgate::keyed::OnFull;
use ringgate::observe::Observer;
use ringgate::rules::{Cost, RuleSetBuilder};
use ringgate::{ManualClock, Rule, RuleSet};

use super::recorders::{CheckedRecorder, Scraped, of_counts, value};
use super::requests::{Request, SEEDS, live, named, request, user};

type Rules = RuleSet<Request, ManualClock>;

/// Rules with each outcome, after some requests.
fn busy() -> Result<(Rules, ManualClock), Box<dyn Error>> {
    let clock = ManualClock::new();
    let cost = Cost::new("cost", |request: &Request| request.cost);
    let rules = RuleSetBuilder::new()
        .rule(Rule::new("user", "3/s".parse()?).by(&user()))
        .rule(Rule::new("cost", "100/s".parse()?).cost(&cost))
        .rule(Rule::new("shadow", "20/s".parse()?).shadow())
        .rule(
            Rule::new("small", "50/s".parse()?)
                .by(&user())
                .capacity(1)
                .on_full(OnFull::Admit),
        )
        .build_with(clock.clone(), SEEDS)?;
    let late = rules.reserve(&Request { user: 999, cost: 7 });
    let late = late.map_err(|denied| denied.to_string())?;
    for number in 0..200 {
        let _ = rules.check(&Request {
            user: number % 40,
            cost: 1 + u64::from(number % 3),
        });
    }
    // Forfeited: a later cell was entered.
    clock.advance(Duration::from_secs(3));
    let _ = rules.check(&request(1000));
    rules.refund(late);
    Ok((rules, clock))
}

#[test]
fn counters_are_the_counts_of_the_rules() -> Result<(), Box<dyn Error>> {
    let (rules, clock) = busy()?;
    let scraped = Scraped::new();
    let values = scraped.scrape(&rules);
    assert_eq!(values, of_counts(&rules));
    // Each outcome has occurred, or the comparison would show little.
    for outcome in [
        "admitted",
        "denied",
        "shadow_denied",
        "overflowed",
        "charged",
        "forfeited",
    ] {
        let some = values
            .iter()
            .any(|((_, _, of), value)| of == outcome && *value > 0);
        assert!(some, "{outcome}: {values:?}");
    }

    clock.advance(Duration::from_secs(5));
    let _ = rules.check(&request(1));
    let next = scraped.scrape(&rules);
    assert_eq!(next, of_counts(&rules));
    assert_eq!(
        value(&next, "user", "admitted"),
        value(&values, "user", "admitted") + 1
    );
    Ok(())
}

#[test]
fn series_have_a_rule_and_an_outcome_and_are_described() -> Result<(), Box<dyn Error>> {
    let (rules, _) = busy()?;
    let scraped = Scraped::new();
    let values = scraped.scrape(&rules);
    assert_eq!(values.len(), 4 * 7);
    let outcomes: BTreeSet<_> = values.keys().map(|(_, _, outcome)| outcome.as_str()).collect();
    let all = [
        "admitted",
        "begun",
        "charged",
        "denied",
        "forfeited",
        "overflowed",
        "shadow_denied",
    ];
    assert_eq!(outcomes.into_iter().collect::<Vec<_>>(), all);
    for (key, unit, help, _) in scraped.recorder.snapshotter().snapshot().into_vec() {
        assert_eq!(unit, Some(Unit::Count), "{key:?}");
        assert!(help.is_some_and(|help| help.len() > 20), "{key:?}");
    }
    Ok(())
}

#[test]
fn keys_make_no_series() -> Result<(), Box<dyn Error>> {
    let rules = RuleSetBuilder::new()
        .rule(Rule::new("user", "1/s".parse()?).by(&user()))
        .build_with(ManualClock::new(), SEEDS)?;
    let scraped = Scraped::new();
    let _ = rules.check(&request(0));
    assert_eq!(scraped.scrape(&rules).len(), 7);
    for number in 1..10_000 {
        let _ = rules.check(&request(number));
    }
    let values = scraped.scrape(&rules);
    assert_eq!(values.len(), 7);
    assert_eq!(value(&values, "user", "admitted"), 10_000);
    Ok(())
}

#[test]
fn counters_are_registered_once() -> Result<(), Box<dyn Error>> {
    let live = live(&["one", "other"])?;
    let recorder = CheckedRecorder::default();
    let observer = Observer::new();
    metrics::with_local_recorder(&recorder, || -> Result<(), Box<dyn Error>> {
        for _ in 0..3 {
            observer.publish(&live.load());
            live.store(&named(&["one"]))?;
            observer.publish(&live.load());
            live.store(&named(&["other", "one"]))?;
        }
        observer.publish(&live.load());
        Ok(())
    })?;
    assert_eq!(recorder.counters.lock().expect("counters").len(), 2 * 7);
    assert_eq!(recorder.described.into_inner(), 3);
    assert!(format!("{observer:?}").contains(r#"rules: ["one", "other"]"#));
    Ok(())
}
