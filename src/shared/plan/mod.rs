//! The plan of a request: the quotas that it is checked against, and whether a state of this node, a lease or the store decides each.

mod compile;
mod counts;
mod fallbacks;
mod node;
mod period;
mod target;
mod validate;

pub(super) use compile::{Planner, WallClock};
pub(super) use counts::CountedSlot;
pub(super) use fallbacks::FallbackLimiters;
pub(super) use node::{DeniedQuota, Source};
pub(crate) use target::CheckPlan;
pub(super) use target::{PlannedQuota, QuickPlan, Route, Target};
pub(super) use validate::{StoreFeatures, StoredAs, needs_leases};
