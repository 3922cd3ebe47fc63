//! The client's side of a rate limit: the limits that a response states, and a layer that obeys them.
mod layer;
mod list;
mod retry_after;
mod server_limit;
pub use layer::{ClientRateLimitFuture, ClientRateLimitLayer, ClientRateLimitService};
pub use server_limit::ServerLimit;
