//! The question about a request that the store decides.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::rules::Block;
use crate::shared::convert::{block_requests, blocks_of};
use crate::shared::plan::{CheckPlan, PlannedQuota, Target};
use crate::shared::store::{CheckResult, CounterRequest, CounterStatus};

/// The quotas of a request, and those among them that the store decides about.
pub(super) struct Question<'a> {
    pub(super) plan: &'a CheckPlan,
    /// All quotas of the request.
    pub(super) quotas: Vec<PlannedQuota<'a>>,
    /// The quotas that the store decides about, by their positions in `quotas`.
    pub(super) included: Vec<usize>,
    /// The blocks that the store decides about, with the position of a quota of their rule.
    pub(super) blocks: Vec<(usize, &'a Arc<Block>)>,
    /// A request for each of `included`, and after them one for each of `blocks`.
    pub(super) requests: Vec<CounterRequest>,
}

impl<'a> Question<'a> {
    /// A question about none of the quotas.
    pub(super) const fn new(plan: &'a CheckPlan, quotas: Vec<PlannedQuota<'a>>) -> Self {
        Self {
            plan,
            quotas,
            included: Vec::new(),
            blocks: Vec::new(),
            requests: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, quota: usize, request: CounterRequest) {
        self.included.push(quota);
        self.requests.push(request);
    }

    /// Adds the blocks of the rules that the store decides about. Their requests come last, so this comes after every quota.
    pub(super) fn add_blocks(&mut self) {
        self.blocks = blocks_of(&self.quotas, &self.included);
        // A rule in the shadow begins no block.
        self.blocks
            .retain(|&(quota, _)| self.quotas[quota].extracted.enforced);
        let requests = block_requests(&self.quotas, &self.blocks, self.plan.violates);
        self.requests.extend(requests);
    }

    pub(super) fn has(&self, target: &Target) -> bool {
        self.included.iter().any(|quota| target.quotas().contains(quota))
    }

    /// The store's answer about a quota. `None` if the question does not have the quota.
    pub(super) fn status(&self, result: &CheckResult, quota: usize) -> Option<CounterStatus> {
        let at = self.included.iter().position(|&included| included == quota)?;
        Some(result.statuses[at])
    }

    /// The store's answer about each of the enforced quotas, with the position of the quota.
    pub(super) fn enforced<'r>(
        &'r self,
        result: &'r CheckResult,
    ) -> impl Iterator<Item = (usize, &'r CounterStatus)> {
        let statuses = self.included.iter().copied().zip(&result.statuses);
        statuses.filter(|&(quota, _)| self.quotas[quota].extracted.enforced)
    }

    /// Whether a denial has an enforced quota or a block without room, and is not only because of a reserve.
    pub(super) fn names_full(&self, denied: &CheckResult) -> bool {
        let mut all = self.requests.iter().zip(&denied.statuses);
        all.any(|(request, status)| request.is_enforced() && !status.has_room)
    }
}
