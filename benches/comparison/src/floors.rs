//! The least work of a limiter for one thing, and the parts of a decision.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quanta::Clock;

use crate::contestant::{Contestant, Room, Side};

/// The floor that an admission is compared with.
pub const CLOCK_AND_EXCHANGE: &str = "floor: clock + compare-exchange";

/// The floor that a denial is compared with.
pub const CLOCK_AND_LOAD: &str = "floor: clock + load";

/// The floor that scales as far as the machine allows.
pub const OWN_WORD: &str = "floor: compare-exchange, a word for each thread";

/// A word on a cache line of its own.
#[repr(align(128))]
struct Word(AtomicU64);

impl Word {
    fn new() -> Self {
        Self(AtomicU64::new(1))
    }

    /// Adds in a loop, like a limiter that must read before it writes.
    fn exchange(&self, more: u64) -> bool {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let new = seen.wrapping_add(more);
            match (self.0).compare_exchange(seen, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(newer) => seen = newer,
            }
        }
    }
}

/// A word for each thread, so that threads share nothing.
pub fn own_words(threads: usize) -> Contestant {
    Contestant::numbered(OWN_WORD, Side::Floor, Room::Plenty, move |_| {
        let words: Vec<Word> = (0..threads).map(|_| Word::new()).collect();
        move |worker| black_box(&words)[worker].exchange(1)
    })
}

/// The parts of a decision.
pub fn direct(room: Room) -> Vec<Contestant> {
    let clock = Clock::new();
    let with_clock = clock.clone();
    let (added, exchanged, both, loaded) = (Word::new(), Word::new(), Word::new(), Word::new());
    vec![
        floor("floor: fetch_add", move || {
            black_box(&added).0.fetch_add(1, Ordering::Relaxed) > 0
        }),
        floor("floor: compare-exchange", move || {
            black_box(&exchanged).exchange(1)
        }),
        floor(CLOCK_AND_EXCHANGE, move || {
            black_box(&both).exchange(black_box(&with_clock).raw())
        }),
        floor(CLOCK_AND_LOAD, move || {
            black_box(&loaded).0.load(Ordering::Relaxed) <= black_box(&clock).raw()
        }),
        Contestant::new("floor: Mutex<VecDeque> log", Side::Floor, room, log),
    ]
}

pub fn floor(name: &'static str, work: impl Fn() -> bool + Send + Sync + 'static) -> Contestant {
    Contestant::from_work(name, Side::Floor, work)
}

/// The straightforward exact log.
fn log(room: Room) -> impl Fn() -> bool + Send + Sync {
    let (limit, window) = match room {
        Room::Plenty | Room::Half => (1_000, Duration::from_micros(5)),
        Room::None => (100, Duration::from_secs(24 * 3600)),
        Room::Limited => (1_000, Duration::from_secs(1)),
    };
    let log = Mutex::new(VecDeque::with_capacity(limit));
    move || {
        let mut log = black_box(&log).lock().expect("no thread panics");
        let now = Instant::now();
        while log.front().is_some_and(|&then| now - then >= window) {
            log.pop_front();
        }
        let room = log.len() < limit;
        if room {
            log.push_back(now);
        }
        room
    }
}
