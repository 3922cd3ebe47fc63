//! The client's side of a rate limit: the limits that a response states, and a layer that obeys them.

#[cfg(feature = "tokio")]
mod future;
#[cfg(feature = "tokio")]
mod layer;
mod list;
mod retry_after;
mod server_limit;
#[cfg(feature = "tokio")]
mod service;

#[cfg(feature = "tokio")]
pub use future::ClientRateLimitFuture;
#[cfg(feature = "tokio")]
pub use layer::ClientRateLimitLayer;
pub use server_limit::ServerLimit;
#[cfg(feature = "tokio")]
pub use service::ClientRateLimitService;
