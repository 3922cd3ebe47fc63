//! Keys that are addresses of clients.

use alloc::sync::Arc;
use core::hash::BuildHasher;
use core::net::IpAddr;

use super::key_missing::{Missing, MissingCause, MissingFn, OnMissingKey};
use super::key_parts::KeyParts;
use crate::keyed::{ClientAddress, Prefixes, SeededState};

/// A function of a request that finds the address of the client.
pub(crate) trait AddressSource<R: ?Sized>: Send + Sync + 'static {
    fn find(&self, request: &R) -> Option<IpAddr>;

    /// Passes the address to `read`.
    #[inline(always)]
    fn with<T>(&self, request: &R, read: impl FnOnce(IpAddr) -> T) -> Option<T> {
        self.find(request).map(read)
    }

    /// Returns why a request has no address, and whether the request states one that cannot be read.
    fn cause(&self, _: &R) -> Option<(MissingCause, bool)> {
        None
    }
}

/// A function that does not know why a request has no address.
pub(crate) struct FindAddress<F>(pub(crate) F);

impl<R: ?Sized, F: Fn(&R) -> Option<IpAddr> + Send + Sync + 'static> AddressSource<R> for FindAddress<F> {
    #[inline]
    fn find(&self, request: &R) -> Option<IpAddr> {
        (self.0)(request)
    }
}

/// Hashes the client of a request. `None` if the request has no address.
///
/// The hasher is created when the address is known, so that no call forces its state out of the registers.
#[inline]
pub(crate) fn hash<R: ?Sized>(
    source: &impl AddressSource<R>,
    request: &R,
    prefixes: Prefixes,
    seeds: &SeededState,
) -> Option<u64> {
    source.with(request, |address| {
        seeds.hash_one(ClientAddress::masked(address, prefixes))
    })
}

/// Adds the octets of the client's address, without the bits after the prefix.
pub(crate) fn add_part<R: ?Sized>(
    source: &impl AddressSource<R>,
    request: &R,
    prefixes: Prefixes,
    parts: &mut KeyParts,
) {
    if let Some(address) = source.find(request) {
        match ClientAddress::masked(address, prefixes).address() {
            IpAddr::V4(address) => parts.part(address.octets()),
            IpAddr::V6(address) => parts.part(address.octets()),
        };
    }
}

/// The treatment of requests without an address.
pub(crate) fn missing<R: ?Sized, S: AddressSource<R>>(source: &Arc<S>) -> Arc<MissingFn<R>> {
    let source = Arc::clone(source);
    Arc::new(move |request, on_missing| {
        let cause = match source.cause(request) {
            Some((cause, true)) => return Missing::ambiguous(cause),
            Some((cause, false)) => Some(cause),
            None => None,
        };
        Missing {
            cause,
            ..Missing::of(on_missing.unwrap_or(OnMissingKey::Fail))
        }
    })
}
