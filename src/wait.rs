#![doc = include_str!("wait.md")]

mod after;
mod ask;
mod clock;
mod direct;
mod error;
mod fair;
#[cfg(feature = "keyed")]
mod keyed;
mod line;
mod paced;
mod room;
#[cfg(feature = "rules")]
mod rules;
mod runtime;
mod streak;
mod until;

pub use ask::Ask;
pub use clock::TokioClock;
pub use error::{TurnError, WaitError};
pub use fair::Fair;
pub(crate) use line::PATIENCE;
pub use paced::{PacedSink, PacedStream};
#[cfg(feature = "rules")]
pub use rules::Judge;
pub use runtime::{Runtime, TokioAlarm, TokioRuntime};
pub use until::Until;
