use std::hint::black_box;
use std::sync::Arc;

use trypema::local::LocalRateLimiterProvider;
use trypema::{BucketSize, RateLimit, RateLimitDecision, RateLimiterBuilder, WindowSize};

use crate::contestant::{Contestant, Key, Keyed, LIMIT, Room};

const NAME: &str = "trypema, local absolute";

fn provider(window: WindowSize) -> Arc<LocalRateLimiterProvider> {
    LocalRateLimiterProvider::builder()
        .window_size(window)
        .bucket_size(BucketSize::milliseconds_or_panic(10))
        .disable_cleanup()
        .build()
        .expect("a provider")
}

pub(super) fn direct(room: Room) -> Contestant {
    Contestant::rival(NAME, room, |room| {
        let second = WindowSize::seconds_or_panic(1);
        let (window, rate) = match room {
            Room::Plenty | Room::Half => (second, RateLimit::max()),
            Room::None => (WindowSize::hours_or_panic(1), RateLimit::per_hour_or_panic(1.0)),
            Room::Limited => (second, RateLimit::per_second_or_panic(LIMIT as f64)),
        };
        let provider = provider(window);
        move || decide(&provider, "key", &rate)
    })
    .allows(LIMIT, "sliding sum of cells, best effort")
}

fn decide(provider: &LocalRateLimiterProvider, key: &str, rate: &RateLimit) -> bool {
    let decision = black_box(provider).absolute().inc(key, rate, 1);
    matches!(decision, RateLimitDecision::Allowed)
}

/// Limiters for keys of text only.
pub(super) fn keyed<K: Key>() -> Option<Keyed<K>> {
    K::number(0).as_text()?;
    Some(Keyed::rival(NAME, |_| {
        let provider = provider(WindowSize::seconds_or_panic(1));
        let rate = RateLimit::max();
        move |key: &K| decide(&provider, key.as_text().unwrap_or_default(), &rate)
    }))
}
