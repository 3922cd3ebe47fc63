//! Requests for one quota, in batches that threads share.

use core::num::NonZeroUsize;
use std::thread;

/// The time, the permits and the verdict of a request, for one quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestOfKey {
    /// Nanoseconds since 1970.
    pub(crate) time: i64,
    pub(crate) permits: u64,
    /// Whether all rules admitted it.
    pub(crate) admitted: bool,
    /// Whether this quota denied it.
    pub(crate) denied: bool,
}

/// Requests of several keys, grouped by key and in order of time. Other batches may have requests of the first and the last key.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) requests: Vec<RequestOfKey>,
    parts: Vec<(usize, Part)>,
}

/// The part of a key in a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) key: u64,
    /// The most permits that the key requests in two windows.
    pub(crate) peak_in_two: u64,
    /// Whether no later batch has requests of the key.
    pub(crate) ends: bool,
}

/// Requests of one batch.
pub(crate) const BATCH: usize = 1 << 14;

impl Batch {
    /// Makes the requests behind the last part a part of their own.
    pub(crate) fn end(&mut self, part: Part) {
        self.parts.push((self.requests.len(), part));
    }

    pub(crate) fn clear(&mut self) {
        self.requests.clear();
        self.parts.clear();
    }

    /// The parts with their requests. A part may have none.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (Part, &[RequestOfKey])> {
        let mut start = 0;
        self.parts.iter().map(move |&(end, part)| {
            let requests = &self.requests[start..end];
            start = end;
            (part, requests)
        })
    }
}

/// The number of threads.
pub(crate) fn threads() -> usize {
    thread::available_parallelism()
        .map_or(1, NonZeroUsize::get)
        .min(8)
}

/// Does the work on each item, given with its number, on several threads. Each thread has items from the whole range.
pub(crate) fn on_threads<T: Send>(items: &mut [T], work: impl Fn(usize, &mut T) + Sync) {
    let threads = threads().min(items.len());
    if threads < 2 {
        return items
            .iter_mut()
            .enumerate()
            .for_each(|(number, item)| work(number, item));
    }
    let mut shares: Vec<Vec<(usize, &mut T)>> = (0..threads).map(|_| Vec::new()).collect();
    for (number, item) in items.iter_mut().enumerate() {
        shares[number % threads].push((number, item));
    }
    let work = |share: Vec<(usize, &mut T)>| share.into_iter().for_each(|(number, item)| work(number, item));
    thread::scope(|scope| {
        let own = shares.pop();
        for share in shares {
            scope.spawn(|| work(share));
        }
        own.map(work)
    });
}
