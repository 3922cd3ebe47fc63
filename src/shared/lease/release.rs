//! Releasing leases: every use is charged, and every permit given back.
//!
//! A release is a request like any other. The mark that asks for it belongs to the manager, and the next request takes
//! it. A future that is dropped while it waits leaves a mark that the flusher takes in its next round, and nothing else.
//! Other demand for the key is met by the request after the release, so a loop of resets does not starve it.

use alloc::vec::Vec;

use super::table::LeaseTable;
use super::terms::Lease;
use crate::shared::store::StoreError;

/// A lease whose release is awaited: its position, key and number, the sequence to be answered, and the failures so far.
#[derive(Debug)]
pub(crate) struct PendingRelease {
    at: usize,
    owner: u64,
    lease_id: u128,
    sequence: u64,
    failures: u64,
}

/// A lease that gets no permits until this is dropped.
pub(crate) struct WithheldLease<'a> {
    table: &'a LeaseTable,
    pub(crate) at: usize,
}

impl Drop for WithheldLease<'_> {
    fn drop(&mut self) {
        self.table.lock().managers[self.at].end_withholding();
        // Requests that wait for permits get them by the next report.
        self.table.mark_urgent(self.at);
    }
}

impl LeaseTable {
    /// Keeps the key's lease from being reassigned, and makes its reports want no permits, until the result is dropped. So once
    /// the lease [is released](Self::release), it holds none. Begins the lease if the key has none. `None`: no lease is free.
    pub(crate) fn withhold(&self, key: u64, lease: impl Fn() -> Lease) -> Option<WithheldLease<'_>> {
        loop {
            let at = self.find_or_begin(key, &lease)?;
            let mut inner = self.lock();
            // The lease may have been reassigned before this thread took the lock. It keeps its key from here on.
            if self.states[at].owner() == key {
                inner.managers[at].withhold();
                return Some(WithheldLease { table: self, at });
            }
        }
    }

    /// Has these leases charge their use and give their permits back.
    pub(crate) async fn release(&self, leases: impl IntoIterator<Item = usize>) -> Result<(), StoreError> {
        let pending = self.begin_release(leases);
        self.wait_for_all(pending).await
    }

    /// Marks these leases, so that their next reports charge their use and give their permits back.
    pub(crate) fn begin_release(&self, leases: impl IntoIterator<Item = usize>) -> Vec<PendingRelease> {
        let mut pending: Vec<PendingRelease> = Vec::new();
        {
            let mut inner = self.lock();
            for at in leases {
                let manager = &mut inner.managers[at];
                if let Some((lease_id, sequence)) = manager.release(&self.states[at]) {
                    pending.push(PendingRelease {
                        at,
                        owner: self.states[at].owner(),
                        lease_id,
                        sequence,
                        failures: manager.failed_copies(),
                    });
                }
            }
        }
        for release in &pending {
            self.dirty.insert(release.at);
        }
        self.wake.notify_one();
        pending
    }

    /// Waits until these leases are released.
    pub(crate) async fn wait_for_all(&self, pending: Vec<PendingRelease>) -> Result<(), StoreError> {
        let mut result = Ok(());
        for release in pending {
            let released = self.wait_for(release).await;
            result = result.and(released);
        }
        result
    }

    async fn wait_for(&self, mut release: PendingRelease) -> Result<(), StoreError> {
        loop {
            // Before the check: an answer that comes after it ends the wait.
            let answer = self.answer_of(release.at).notified();
            {
                let inner = self.lock();
                if self.states[release.at].owner() != release.owner {
                    // Only a lease without uncharged use and without permits is given to another key.
                    return Ok(());
                }
                let manager = &inner.managers[release.at];
                let (lease_id, sequence) = manager.last_answered();
                if lease_id != release.lease_id {
                    // A later lease of the key holds nothing of this one, but a request of it may charge the use of this one.
                    match manager.charging_request() {
                        Some(request) => (release.lease_id, release.sequence) = request,
                        None => return Ok(()),
                    }
                }
                if lease_id == release.lease_id && sequence >= release.sequence
                    || manager.is_released(&self.states[release.at])
                {
                    return Ok(());
                }
                if let Some(ended) = &inner.error_at_end {
                    return Err(ended.clone());
                }
                if manager.failed_copies() != release.failures
                    && let Some(error) = &inner.error
                {
                    return Err(error.clone());
                }
            }
            self.mark_urgent(release.at);
            answer.await;
        }
    }
}
