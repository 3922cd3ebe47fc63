//! The blocks of rules over many machines. A store counts the violations: see
//! [`keeps_blocks`](super::CounterStore::keeps_blocks).

use alloc::vec::Vec;

use super::charges::Decision;
use super::convert::{all_blocks, block_requests};
use super::plan::PlannedQuota;
use super::rules::SharedRules;
use super::store::{CounterRequest, StoreError};

impl<R: ?Sized> SharedRules<R> {
    /// Checks a request that waits. A denial is no violation.
    pub(crate) fn check_waiting<'a>(
        &'a self,
        request: &R,
    ) -> impl Future<Output = Decision<R>> + Send + use<'a, R> {
        let decided = self.decide_or_plan(request, 1);
        async move {
            match decided {
                Ok(decided) => decided,
                Err(mut plan) => {
                    plan.violates = false;
                    self.decide(*plan).await
                }
            }
        }
    }

    /// Forgets the violations of the request's keys in the store, and ends their [blocks](crate::Rule::block), in each rule that
    /// applies to the request.
    ///
    /// # Errors
    ///
    /// When the store does not answer. The blocks may or may not have ended then.
    ///
    /// # Concurrency
    ///
    /// A concurrent denial may be counted before this call or after it. Dropping the future may leave the blocks as they are.
    pub fn unblock<'a>(
        &'a self,
        request: &R,
    ) -> impl Future<Output = Result<(), StoreError>> + Send + use<'a, R> {
        let plan = self.hashed_plan(request);
        async move {
            let quotas: Vec<PlannedQuota<'_>> = self.planner.quotas(&plan).collect();
            let blocks = all_blocks(&quotas);
            let requests: Vec<CounterRequest> = block_requests(&quotas, &blocks, false).collect();
            if requests.is_empty() {
                return Ok(());
            }
            self.store.reset(&requests).await
        }
    }
}
