//! Measures the default of both crates in a table of keys: a [`SlidingWindow`] beside governor.

use std::time::Duration;

use ringgate::{CounterRing, Gcra, Quota, SlidingWindow, UnitRing};

use crate::contestant::{Key, Keyed, Room};
use crate::keyed::{entered, entrants, only_new};
use crate::keys::Order;
use crate::measure::{Effort, print_head};
use crate::rivals::{self, ours};

pub fn run(effort: &Effort) {
    print_head("The default of both crates, and two others", "");
    let once_a_cell = short::<u64>();
    let all_short = entrants(&once_a_cell);
    entered(
        effort,
        Order::Uniform,
        ", admitted, once a cell",
        "",
        &once_a_cell,
        &all_short,
    );
    many_a_cell::<u64>(effort, &[Order::Uniform, Order::OneHot]);
    many_a_cell::<String>(effort, &[Order::Zipf]);
    let plenty = everybody::<u64>(Room::Plenty);
    only_new(effort, "", &plenty, &entrants(&plenty));
}

fn many_a_cell<K: Key>(effort: &Effort, orders: &[Order]) {
    for (room, what) in [(Room::Plenty, ", admitted"), (Room::None, ", denied")] {
        let all = everybody::<K>(room);
        for &order in orders {
            entered(effort, order, what, "", &all, &entrants(&all));
        }
    }
}

fn everybody<K: Key>(room: Room) -> Vec<Keyed<K>> {
    // One request uses up the limit, or none does in a day.
    let quota = move || match room {
        Room::None => Quota::per_hour(1).expect("a quota"),
        _ => Quota::new(1_000_000_000, Duration::from_secs(24 * 3600)).expect("a quota"),
    };
    vec![
        ours::table("ringgate, SlidingWindow", move || {
            SlidingWindow::new(quota()).expect("a window")
        }),
        ours::table("ringgate, Gcra", move || ours::gcra(room)),
        ours::table("ringgate, CounterRing, 60 cells", move || {
            CounterRing::builder(quota()).unpacked().build().expect("a ring")
        }),
        rivals::governor_keyed_in(room),
    ]
}

/// Windows so short that each decision about one of many keys is the first of its cell, as for a key that is asked a few times in a
/// window.
fn short<K: Key>() -> Vec<Keyed<K>> {
    let quota = || Quota::new(100, Duration::from_micros(20)).expect("a quota");
    vec![
        // A sliding window would choose cells, because the ticks of so narrow cells leave few bits for units.
        ours::table("ringgate, UnitRing", move || {
            UnitRing::new(quota()).expect("a ring")
        }),
        ours::table("ringgate, Gcra", move || Gcra::new(quota()).expect("a bucket")),
        ours::table("ringgate, CounterRing, 60 cells", move || {
            CounterRing::new(quota()).expect("a ring")
        }),
        rivals::governor_keyed_in(Room::Plenty),
    ]
}
