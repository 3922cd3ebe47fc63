use alloc::vec::Vec;
use core::future::poll_fn;
use core::task::Poll;

use super::counter_store::StoreFuture;
use crate::rules::StoreError;

/// The results of these calls, which are made concurrently. Each call that is not ready is polled at each wake-up, so there should
/// be few.
pub(crate) async fn join_all<T>(
    calls: impl Iterator<Item = StoreFuture<'_, T>>,
) -> Vec<Result<T, StoreError>> {
    let mut calls: Vec<_> = calls.map(|call| (call, None)).collect();
    poll_fn(|context| {
        let mut is_pending = false;
        for (call, result) in &mut calls {
            if result.is_none() {
                match call.as_mut().poll(context) {
                    Poll::Ready(ready) => *result = Some(ready),
                    Poll::Pending => is_pending = true,
                }
            }
        }
        if is_pending {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
    calls.into_iter().filter_map(|(_, result)| result).collect()
}
