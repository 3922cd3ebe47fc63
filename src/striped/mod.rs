#![doc = include_str!("protocol.md")]

mod builder;
mod decide;
#[cfg(feature = "quanta")]
mod default_clock;
mod denied;
mod limiter;
mod local_stripe;
mod published_denial;
mod ring;
mod stripe;
mod thread_index;
mod word;

pub use builder::StripedBuilder;
pub use denied::StripedDenied;
pub use limiter::StripedLimiter;
pub use local_stripe::LocalStripe;
pub use thread_index::set_thread_index;
