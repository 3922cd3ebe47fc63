//! The parts of a request that rules count by.

mod client_ip;
mod http_key;
mod outer_path;
mod spelling;

pub use client_ip::{ClientIp, PeerAddress};
pub use http_key::HttpKey;
pub(super) use outer_path::outer_path;
