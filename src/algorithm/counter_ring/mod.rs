#![doc = include_str!("protocol.md")]

mod builder;
mod ring;

pub use builder::CounterRingBuilder;
pub use ring::CounterRing;
