#![doc = include_str!("counter_ring/protocol.md")]

mod builder;
mod ring;

pub use builder::CounterRingBuilder;
pub use ring::CounterRing;
