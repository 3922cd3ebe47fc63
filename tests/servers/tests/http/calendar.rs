//! Headers of rules with a calendar.

use super::*;

const DAY: u64 = 24 * 3600;

#[test]
fn headers_state_the_current_period_and_its_end() {
    // The 20th of October 2026, 00:00 in Berlin.
    let origin = SystemTime::UNIX_EPOCH + Duration::from_secs(1_792_447_200);
    let quota: ringgate::algorithm::CalendarQuota = "2/month from the 5th".parse().expect("a quota");
    let contract = Rule::calendar("contract", quota.in_zone("Europe/Berlin").expect("a zone"));
    let rules = RuleSetBuilder::new()
        .rule(contract)
        .rule(rule("rate", "9/s"))
        .origin(origin);
    let clock = ManualClock::new();
    let rules = rules.build_with(clock.clone(), [1, 2, 3, 4]).expect("rules");
    let mut service = RateLimitLayer::from(rules)
        .headers(QuotaHeaders::Both)
        .layer(Hello);
    // October has 25 hours more than 30 days, and November is shorter. The next period begins in 16 days and an hour.
    let (october, november, end) = (31 * DAY + 3600, 30 * DAY, 16 * DAY + 3600);
    for (later, status, window, left, end) in [
        (0, 200, october, 1, end),
        (0, 200, october, 0, end),
        (DAY, 429, october, 0, end - DAY),
        (end - DAY, 200, november, 1, november),
    ] {
        clock.advance(Duration::from_secs(later));
        let response = send(&mut service, from("192.0.2.1"));
        let contract = |name: &str| header(&response, name).and_then(|list| list.split(", ").next());
        assert_eq!(response.status(), status);
        let found = contract("ratelimit-policy");
        assert_eq!(found, Some(&*format!("\"contract\";q=2;w={window}")));
        let found = contract("ratelimit");
        assert_eq!(found, Some(&*format!("\"contract\";r={left};t={end}")));
        if status == 429 {
            let end = end.to_string();
            assert_eq!(header(&response, "retry-after"), Some(&*end));
            assert_eq!(header(&response, "x-ratelimit-reset"), Some(&*end));
        }
    }
}

/// Rules over a store state the length of the present period, too.
#[tokio::test(start_paused = true)]
async fn headers_of_a_store_state_the_current_period() {
    // The 10th of February 2027, 00:00 UTC.
    let february = SystemTime::UNIX_EPOCH + Duration::from_secs(1_802_217_600);
    let store = Arc::new(MemoryStore::with_clock(TokioClock::new()));
    let rules = SharedRules::builder()
        .rule(Rule::calendar("month", "2/month".parse().expect("a quota")))
        .rule(Rule::calendar("year", "9/year".parse().expect("a quota")))
        .wall_clock(move || february)
        .build(store)
        .expect("rules");
    let layer = RateLimitLayer::new(Arc::new(rules))
        .headers(QuotaHeaders::Both)
        .layer(Hello);
    for status in [200, 200, 429] {
        let Ok(response) = layer.clone().oneshot(from("192.0.2.1")).await;
        assert_eq!(response.status(), status);
        let policies = format!("\"month\";q=2;w={}, \"year\";q=9;w={}", 28 * DAY, 365 * DAY);
        assert_eq!(header(&response, "ratelimit-policy"), Some(&*policies));
    }
}
