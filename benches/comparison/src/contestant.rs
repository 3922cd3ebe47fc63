//! The limiters that are compared, behind one interface.

use std::fmt::Display;
use std::hash::Hash;

use crate::measure::worker;

/// The capacity that a limiter has left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Room {
    /// More than any thread uses up.
    Plenty,
    /// Used up, for an hour.
    None,
    /// Every other call is admitted, because two limiters are called in turn.
    Half,
    /// [`LIMIT`] calls a second.
    Limited,
}

/// The limit of [`Room::Limited`], in calls a second.
pub const LIMIT: u64 = 1_000;

/// The group of a row of a table: this crate, another crate, or a floor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Side {
    Ours,
    Rival,
    Floor,
}

/// Makes many decisions at once, with no other work between them.
pub trait Decide: Send + Sync {
    /// Makes this number of decisions, and returns the number of admissions.
    fn batch(&self, decisions: u64) -> u64;
}

impl<F: Fn() -> bool + Send + Sync> Decide for F {
    fn batch(&self, decisions: u64) -> u64 {
        (0..decisions).map(|_| u64::from(self())).sum()
    }
}

/// A value on cache lines of its own.
#[repr(align(128))]
struct Apart<F>(F);

/// Two limiters, called in turn.
struct InTurn<F>(Apart<F>, Apart<F>);

impl<F: Fn() -> bool + Send + Sync> Decide for InTurn<F> {
    fn batch(&self, decisions: u64) -> u64 {
        (0..decisions / 2)
            .map(|_| u64::from((self.0.0)()) + u64::from((self.1.0)()))
            .sum()
    }
}

/// A closure that is passed the number of the calling thread.
struct Numbered<F>(F);

impl<F: Fn(usize) -> bool + Send + Sync> Decide for Numbered<F> {
    fn batch(&self, decisions: u64) -> u64 {
        let worker = worker();
        (0..decisions).map(|_| u64::from((self.0)(worker))).sum()
    }
}

impl<F: Fn(usize) -> bool + Send + Sync> Decide for Numbered<InTurn<F>> {
    fn batch(&self, decisions: u64) -> u64 {
        let (worker, InTurn(first, second)) = (worker(), &self.0);
        (0..decisions / 2)
            .map(|_| u64::from((first.0)(worker)) + u64::from((second.0)(worker)))
            .sum()
    }
}

/// One limiter for one thing.
pub struct Contestant {
    pub name: &'static str,
    pub side: Side,
    /// The most that the design admits in any window with the limit [`LIMIT`].
    pub bound: u64,
    /// The design from which the bound follows.
    pub design: &'static str,
    decide: Box<dyn Decide>,
}

impl Contestant {
    pub fn new<F>(name: &'static str, side: Side, room: Room, make: impl Fn(Room) -> F) -> Self
    where
        F: Fn() -> bool + Send + Sync + 'static,
    {
        let decide: Box<dyn Decide> = match room {
            Room::Half => Box::new(InTurn(Apart(make(Room::Plenty)), Apart(spent(make(Room::None))))),
            Room::None => Box::new(spent(make(room))),
            Room::Plenty | Room::Limited => Box::new(make(room)),
        };
        Self::of(name, side, decide)
    }

    /// A contestant whose closure is passed the number of the calling thread.
    pub fn numbered<F>(name: &'static str, side: Side, room: Room, make: impl Fn(Room) -> F) -> Self
    where
        F: Fn(usize) -> bool + Send + Sync + 'static,
    {
        let spent = || {
            let decide = make(Room::None);
            drain(|| decide(0));
            decide
        };
        let decide: Box<dyn Decide> = match room {
            Room::Half => Box::new(Numbered(InTurn(Apart(make(Room::Plenty)), Apart(spent())))),
            Room::None => Box::new(Numbered(spent())),
            Room::Plenty | Room::Limited => Box::new(Numbered(make(room))),
        };
        Self::of(name, side, decide)
    }

    /// A contestant whose closure does the work, at any [`Room`].
    pub fn from_work(name: &'static str, side: Side, work: impl Decide + 'static) -> Self {
        Self::of(name, side, Box::new(work))
    }

    fn of(name: &'static str, side: Side, decide: Box<dyn Decide>) -> Self {
        Self {
            name,
            side,
            bound: LIMIT,
            design: "",
            decide,
        }
    }

    pub fn rival<F>(name: &'static str, room: Room, make: impl Fn(Room) -> F) -> Self
    where
        F: Fn() -> bool + Send + Sync + 'static,
    {
        Self::new(name, Side::Rival, room, make)
    }

    /// Sets the most that the design admits in a window.
    pub fn allows(mut self, bound: u64, design: &'static str) -> Self {
        (self.bound, self.design) = (bound, design);
        self
    }

    pub fn batch(&self, decisions: u64) -> u64 {
        self.decide.batch(decisions)
    }

    pub fn one(&self) -> bool {
        self.batch(1) == 1
    }
}

/// Uses up all permits.
fn spent<F: Fn() -> bool>(decide: F) -> F {
    drain(&decide);
    decide
}

fn drain(decide: impl Fn() -> bool) {
    // The number of calls is larger than any limit here. A limiter that still admits is visible in the table.
    let _ = (0..2_000_000).take_while(|_| decide()).count();
}

/// A type of keys.
pub trait Key: Hash + Eq + Clone + Display + Send + Sync + 'static {
    const NAME: &'static str;

    /// Returns the key with this number. Different numbers have different keys.
    fn number(number: u64) -> Self;

    fn as_text(&self) -> Option<&str>;

    fn as_integer(&self) -> Option<u64>;
}

impl Key for u64 {
    const NAME: &'static str = "u64";

    fn number(number: u64) -> Self {
        crate::keys::mix(number)
    }

    fn as_text(&self) -> Option<&str> {
        None
    }

    fn as_integer(&self) -> Option<u64> {
        Some(*self)
    }
}

impl Key for String {
    const NAME: &'static str = "string";

    /// An address in 10.0.0.0/8, in no order.
    fn number(number: u64) -> Self {
        let host = (number as u32).wrapping_mul(0x9e_3779) & 0xff_ffff;
        std::net::Ipv4Addr::from(0x0a00_0000 | host).to_string()
    }

    fn as_text(&self) -> Option<&str> {
        Some(self)
    }

    fn as_integer(&self) -> Option<u64> {
        None
    }
}

/// Makes decisions about keys, one after the other.
pub trait DecideKeyed<K>: Send + Sync {
    /// Decides once for each key, and returns the number of admissions.
    fn batch(&self, keys: &[K]) -> u64;
}

impl<K, F: Fn(&K) -> bool + Send + Sync> DecideKeyed<K> for F {
    fn batch(&self, keys: &[K]) -> u64 {
        keys.iter().map(|key| u64::from(self(key))).sum()
    }
}

/// A limiter for each of many keys, which is made anew for each measurement.
pub struct Keyed<K> {
    pub name: &'static str,
    pub side: Side,
    make: Box<dyn Fn(usize) -> Box<dyn DecideKeyed<K>>>,
}

impl<K: 'static> Keyed<K> {
    /// `make` is passed the number of keys to come.
    pub fn new<F>(name: &'static str, side: Side, make: impl Fn(usize) -> F + 'static) -> Self
    where
        F: Fn(&K) -> bool + Send + Sync + 'static,
    {
        let make = Box::new(move |keys| Box::new(make(keys)) as Box<dyn DecideKeyed<K>>);
        Self { name, side, make }
    }

    pub fn rival<F>(name: &'static str, make: impl Fn(usize) -> F + 'static) -> Self
    where
        F: Fn(&K) -> bool + Send + Sync + 'static,
    {
        Self::new(name, Side::Rival, make)
    }

    pub fn make(&self, keys: usize) -> Box<dyn DecideKeyed<K>> {
        (self.make)(keys)
    }
}
