//! Headers of rules with a calendar.

use std::time::SystemTime;

use ringgate::http::QuotaHeaders;
use ringgate::shared::{MemoryStore, SharedRules};
use ringgate::wait::TokioClock;
use tower::ServiceExt;

use super::*;

const DAY: u64 = 24 * 3600;

#[test]
fn headers_state_the_current_period_and_its_end() {
    // The 20th of October 2026, 00:00 in Berlin.
    let origin = SystemTime::UNIX_EPOCH + Duration::from_secs(1_792_447_200);
    let quota: ringgate::algorithm::CalendarQuota = "2/month from the 5th".parse().expect("a quota");
    let rules = set([
        Rule::calendar("contract", quota.in_zone("Europe/Berlin").expect("a zone")),
        rule("rate", "9/s"),
    ]);
    let clock = ManualClock::new();
    let rules = rules
        .origin(origin)
        .build_with(clock.clone(), [1, 2, 3, 4])
        .expect("rules");
    let layer = RateLimitLayer::new(Arc::new(LiveRules::new(rules))).headers(QuotaHeaders::Both);
    let mut service = layer.layer(Hello);
    let mut get = || send(&mut service, from("192.0.2.1"));
    let contract = |response: &Response<Body>, name: &str| {
        let list = header(response, name).expect(name);
        list.split(", ").next().expect("an item").to_owned()
    };
    // October has 25 hours more than 30 days. The next period begins in 16 days and an hour.
    let (window, end) = (31 * DAY + 3600, 16 * DAY + 3600);
    let response = get();
    assert_eq!(response.status(), 200);
    assert_eq!(
        contract(&response, "ratelimit-policy"),
        format!("\"contract\";q=2;w={window}")
    );
    assert_eq!(
        contract(&response, "ratelimit"),
        format!("\"contract\";r=1;t={end}")
    );
    assert_eq!(get().status(), 200);
    clock.advance(Duration::from_secs(DAY));
    let response = get();
    assert_eq!(response.status(), 429);
    assert_eq!(
        contract(&response, "ratelimit-policy"),
        format!("\"contract\";q=2;w={window}")
    );
    assert_eq!(
        contract(&response, "ratelimit"),
        format!("\"contract\";r=0;t={}", end - DAY)
    );
    assert_eq!(header(&response, "retry-after"), Some(&*format!("{}", end - DAY)));
    assert_eq!(
        header(&response, "x-ratelimit-reset"),
        Some(&*format!("{}", end - DAY))
    );
    // The window of November is shorter, in the headers too.
    clock.advance(Duration::from_secs(end - DAY));
    let response = get();
    assert_eq!(response.status(), 200);
    let window = 30 * DAY;
    assert_eq!(
        contract(&response, "ratelimit-policy"),
        format!("\"contract\";q=2;w={window}")
    );
    assert_eq!(
        contract(&response, "ratelimit"),
        format!("\"contract\";r=1;t={window}")
    );
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
