use alloc::collections::BTreeSet;

use super::recorders::of_counts;
use super::requests::user;
use super::*;
use ringgate::keyed::OnFull;

type Rules = RuleSet<Request, ManualClock>;

const OUTCOMES: [&str; 8] = [
    "admitted",
    "begun",
    "charged",
    "denied",
    "forfeited",
    "overflowed",
    "refunded",
    "shadow_denied",
];

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
    let back = rules.reserve(&Request { user: 998, cost: 5 });
    rules.refund(back.map_err(|denied| denied.to_string())?);
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
    for outcome in OUTCOMES.into_iter().filter(|outcome| *outcome != "begun") {
        let some = values
            .iter()
            .any(|((_, _, of), value)| of == outcome && *value > 0);
        assert!(some, "{outcome}: {values:?}");
    }

    clock.advance(Duration::from_secs(5));
    let _ = rules.check(&request(1));
    let next = scraped.scrape(&rules);
    assert_eq!(next, of_counts(&rules));
    let found = value(&next, "user", "admitted");
    assert_eq!(found, value(&values, "user", "admitted") + 1);
    Ok(())
}

#[test]
fn series_have_a_rule_and_an_outcome_and_are_described() -> Result<(), Box<dyn Error>> {
    let (rules, _) = busy()?;
    let scraped = Scraped::new();
    let values = scraped.scrape(&rules);
    assert_eq!(values.len(), 4 * 8);
    let outcomes: BTreeSet<_> = values.keys().map(|(_, _, outcome)| outcome.as_str()).collect();
    assert_eq!(outcomes.into_iter().collect::<Vec<_>>(), OUTCOMES);
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
    assert_eq!(scraped.scrape(&rules).len(), 8);
    for number in 1..10_000 {
        let _ = rules.check(&request(number));
    }
    let values = scraped.scrape(&rules);
    assert_eq!(values.len(), 8);
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
    assert_eq!(recorder.counters.lock().expect("counters").len(), 2 * 8);
    assert_eq!(recorder.described.into_inner(), 3);
    assert!(format!("{observer:?}").contains(r#"rules: ["one", "other"]"#));
    Ok(())
}

/// Permits are refunded by a refund and by settling a lower cost, for each rule with the cost. They stay charged, and a debt
/// and a refund to a state that was replaced are no refunds.
#[test]
fn refunded_permits_are_counted() -> Result<(), Box<dyn Error>> {
    let cost = Cost::new("cost", |request: &Request| request.cost);
    let rules = RuleSetBuilder::new()
        .rule(Rule::new("cost", "1000/h".parse()?).cost(&cost).by(&user()))
        .rule(Rule::new("requests", "1000/h".parse()?).also("5000/d".parse()?))
        .rule(Rule::new("shadow", "1/h".parse()?).shadow())
        .build_with(ManualClock::new(), SEEDS)?;
    let counts = |name: &str| {
        let mut counts = rules.counts();
        counts.find_map(|(rule, counts)| (rule == name).then_some((counts.charged, counts.refunded)))
    };
    let reserve = |cost| rules.reserve(&Request { user: 1, cost }).expect("room");
    // Admitted, and not refunded.
    drop(reserve(10));
    assert_eq!(counts("cost"), Some((10, 0)));
    let taken = reserve(20);
    rules.refund(taken);
    assert_eq!(counts("cost"), Some((30, 20)));
    assert_eq!(counts("requests"), Some((2, 1)));
    let (less, more, equal) = (reserve(30), reserve(40), reserve(50));
    rules.settle(less, &cost, 12);
    rules.settle(more, &cost, 45);
    rules.settle(equal, &cost, 50);
    assert_eq!(counts("cost"), Some((150, 38)));
    assert_eq!(counts("requests"), Some((5, 1)));
    // It had no room, so it was not charged.
    assert_eq!(counts("shadow"), Some((1, 0)));
    // A denial takes charges back that were never counted.
    assert!(rules.check(&Request { user: 1, cost: 5_000 }).is_err());
    assert_eq!(counts("cost"), Some((150, 38)));
    let scraped = Scraped::new();
    assert_eq!(value(&scraped.scrape(&rules), "cost", "refunded"), 38);
    Ok(())
}

#[test]
fn gauges_show_slots_in_flight_and_tracked_keys() -> Result<(), Box<dyn Error>> {
    let builder = |name: &str| -> Result<_, Box<dyn Error>> {
        let slots = Rule::in_flight(name, 10).by(&user());
        let busy = if name == "busy" {
            slots
        } else {
            slots.renamed_from("busy")
        };
        Ok(RuleSetBuilder::new()
            .rule(busy)
            .rule(Rule::new("user", "5/h".parse()?).by(&user()))
            .rule(Rule::new("all", "1000/h".parse()?)))
    };
    let live = ringgate::LiveRules::new(builder("busy")?.build_with(ManualClock::new(), SEEDS)?);
    let scraped = Scraped::new();
    let seen = |rule: &str| {
        let gauges = scraped.gauges(&live.load());
        let of = |gauge: &str| gauges.get(&(gauge.to_owned(), rule.to_owned())).copied();
        (of("ringgate_in_flight"), of("ringgate_tracked_keys"))
    };
    assert_eq!(seen("busy"), (Some(0.0), Some(0.0)));
    assert_eq!(seen("user"), (None, Some(0.0)));
    assert_eq!(seen("all"), (None, None));

    let rules = live.load();
    let held: Vec<_> = (0..6)
        .map(|number| rules.reserve(&request(number % 3)).expect("room"))
        .collect();
    assert_eq!(seen("busy"), (Some(6.0), Some(3.0)));
    assert_eq!(seen("user"), (None, Some(3.0)));
    // A denied request holds none, and a check holds none.
    assert!((0..9).any(|_| rules.check(&request(1)).is_err()));
    assert_eq!(seen("busy").0, Some(6.0));
    drop(rules);

    // The slots are counted under the new name after a reload, and released there.
    live.store(&builder("queue")?)?;
    assert_eq!(seen("queue").0, Some(6.0));
    assert_eq!(seen("busy").0, Some(0.0));
    let mut held = held.into_iter();
    drop(held.next());
    // By another thread than the one that holds it.
    let other = held.next();
    std::thread::spawn(move || drop(other)).join().expect("released");
    assert_eq!(seen("queue").0, Some(4.0));
    drop(held);
    assert_eq!(seen("queue").0, Some(0.0));
    Ok(())
}

/// Clones export the same series, so no counter falls.
#[test]
fn clones_of_an_observer_share_their_series() -> Result<(), Box<dyn Error>> {
    let live = live(&["one"])?;
    let recorder = CheckedRecorder::default();
    let observer = Observer::new();
    metrics::with_local_recorder(&recorder, || -> Result<(), Box<dyn Error>> {
        observer.clone().publish(&live.load());
        observer.publish(&live.load());
        live.store(&named(&["other"]))?;
        observer.clone().publish(&live.load());
        Ok(())
    })?;
    assert_eq!(recorder.counters.lock().expect("counters").len(), 2 * 8);
    assert!(format!("{observer:?}").contains(r#"rules: ["one", "other"]"#));
    Ok(())
}
