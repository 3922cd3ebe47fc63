use std::convert::Infallible;
use std::future::{Ready, ready};
use std::hint::black_box;
use std::task::{Context, Waker};
use std::time::Duration;

use tower::{Layer, Service, service_fn};
use tower_resilience_ratelimiter::{RateLimiterLayer, WindowType};

use super::at_once;
use crate::contestant::{Contestant, LIMIT, Room};

pub(super) fn direct(room: Room) -> Vec<Contestant> {
    let mut all = vec![
        of("tower-resilience, fixed window", WindowType::Fixed, room)
            .allows(2 * LIMIT, "fixed window, begun by construction"),
        of(
            "tower-resilience, sliding counter",
            WindowType::SlidingCounter,
            room,
        )
        .allows(2 * LIMIT, "two-window estimate"),
    ];
    if room == Room::Limited {
        let log = of("tower-resilience, sliding log", WindowType::SlidingLog, room);
        all.push(log.allows(LIMIT, "exact log"));
    }
    all
}

fn of(name: &'static str, window: WindowType, room: Room) -> Contestant {
    Contestant::rival(name, room, |room| {
        let (limit, period) = match room {
            Room::Plenty | Room::Half => (1 << 40, 3600),
            Room::None => (1, 3600),
            Room::Limited => (LIMIT as usize, 1),
        };
        let layer = RateLimiterLayer::builder()
            .limit_for_period(limit)
            .refresh_period(Duration::from_secs(period))
            .timeout_duration(Duration::ZERO)
            .window_type(window)
            .build()
            .expect("a layer");
        let service = layer.layer(service_fn(serve));
        move || {
            let mut service = black_box(&service).clone();
            let ready = service.poll_ready(&mut Context::from_waker(Waker::noop()));
            ready.is_ready() && at_once(service.call(())).is_some_and(|answer| answer.is_ok())
        }
    })
}

/// The inner service, which does nothing.
fn serve((): ()) -> Ready<Result<(), Infallible>> {
    ready(Ok(()))
}
