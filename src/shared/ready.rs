//! The wait for a store that decides about the rules.

use alloc::vec::Vec;
use core::time::Duration;

use tokio::time::{sleep, timeout};

use super::convert::{all_blocks, block_requests, check_length, counter_request};
use super::plan::PlannedQuota;
use super::rules::SharedRules;
use super::store::{CheckResult, CounterRequest, LeaseRequest, StoreError, StoreErrorKind};
use crate::keyed::random_seeds;
use crate::rules::Mode;

/// The time between two attempts.
const RETRY: Duration = Duration::from_millis(50);

impl<R: ?Sized> SharedRules<R> {
    /// Waits until the store makes a decision as these rules need it: one request to which every rule applies, the refund of
    /// its permits, and a renewal for each rule that needs leases. Call it at the start of the process.
    ///
    /// Otherwise a store that answers and does not decide, for example because of a missing right, looks like an outage, in which
    /// [`OnError`](crate::rules::OnError) decides each request. The request has keys of its own, which no other request has, so
    /// it takes nothing from any key. The store forgets them when their windows have passed.
    ///
    /// # Errors
    ///
    /// At once, an [unexpected reply](StoreErrorKind::UnexpectedReply), which no wait mends. After this time, the error of the
    /// last attempt. A denial is no error.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use std::sync::Arc;
    ///
    /// use ringgate::Rule;
    /// use ringgate::shared::{MemoryStore, SharedRules};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let rules = SharedRules::<str>::builder()
    ///     .rule(Rule::new("all", "100/s".parse()?))
    ///     .build(Arc::new(MemoryStore::new()))?;
    /// rules.ready(Duration::from_secs(3)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn ready(&self, within: Duration) -> Result<(), StoreError> {
        let mut last = None;
        let decided = timeout(within, async {
            loop {
                match self.probe().await {
                    Ok(()) => return Ok(()),
                    Err(error) if error.kind() == StoreErrorKind::UnexpectedReply => return Err(error),
                    // The error of an answer says more than an error because nothing was sent.
                    Err(error) if error.is_unsent() && last.is_some() => {}
                    Err(error) => last = Some(error),
                }
                sleep(RETRY).await;
            }
        })
        .await;
        let undecided = || StoreError::new(StoreErrorKind::TimedOut, "no decision about the rules");
        decided.unwrap_or_else(|_| Err(last.unwrap_or_else(undecided)))
    }

    /// Makes a decision of the form that the rules need.
    async fn probe(&self) -> Result<(), StoreError> {
        let quotas = self.planner.probes();
        let named = quotas.iter().map(|quota| self.named(counter_request(quota)));
        let mut requests: Vec<CounterRequest> = named.collect();
        if requests.is_empty() {
            return Ok(());
        }
        let blocks = all_blocks(&quotas);
        requests.extend(block_requests(&quotas, &blocks, false));
        let result = self.store.decide(&requests).await?;
        check_length(&result, &requests)?;
        if result.is_admitted {
            // The requests for blocks come last, and were not charged.
            requests.truncate(quotas.len());
            let charged = CheckResult::admitted(result.at, result.statuses[..quotas.len()].to_vec());
            self.store.refund(&requests, &charged).await?;
        }
        self.probe_leases(&quotas).await
    }

    /// Renews a lease of no permits for each quota that needs leases, all in one call.
    async fn probe_leases(&self, quotas: &[PlannedQuota<'_>]) -> Result<(), StoreError> {
        let (Some(node), Some(store)) = (&self.leases, self.store.leases()) else {
            return Ok(());
        };
        let [high, low, ..] = random_seeds();
        let lease_id = u128::from(high) << 64 | u128::from(low);
        let requests = quotas.iter().filter_map(|quota| {
            let request = LeaseRequest::first(
                counter_request(quota),
                lease_id,
                0,
                Duration::from_nanos(node.term),
            );
            match quota.mode {
                Mode::Lease { .. } => Some(request),
                Mode::Sync { .. } => Some(LeaseRequest {
                    is_registered: false,
                    ..request
                }),
                Mode::Local | Mode::Strict => None,
            }
        });
        let requests: Vec<LeaseRequest> = requests.collect();
        store
            .renew(&requests)
            .await
            .into_iter()
            .collect::<Result<Vec<_>, _>>()
            .map(drop)
    }
}
