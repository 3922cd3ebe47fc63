//! Documentation of ringgate whose examples need a server or an exporter, compiled and run here.
#![cfg(doctest)]

#[doc = include_str!("../../README.md")]
mod readme {}

#[doc = include_str!("../../src/guide/servers.md")]
mod servers {}

#[doc = include_str!("../../src/guide/waiting/http_clients.md")]
mod http_clients {}

#[doc = include_str!("../../src/http/axum.md")]
mod axum {}

#[doc = include_str!("../../src/observe/prometheus.md")]
mod prometheus {}
