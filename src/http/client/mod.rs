//! The client's side of a rate limit: the limits that a response states, and a layer that obeys them.
mod future;
mod layer;
mod list;
mod retry_after;
mod server_limit;
mod service;
pub use future::ClientRateLimitFuture;
pub use layer::ClientRateLimitLayer;
pub use server_limit::ServerLimit;
pub use service::ClientRateLimitService;
