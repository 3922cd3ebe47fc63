//! The parts of a request that rules count by.

mod client_ip;
mod http_key;

pub use client_ip::{ClientIp, PeerAddress};
pub use http_key::HttpKey;
