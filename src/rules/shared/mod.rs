//! Rules whose counts are kept by a store: the plan of a request, and the limiters of this node that decide if the store does not
//! answer.

mod counts;
mod fallbacks;
mod local;
mod period;
mod plan;
mod planner;
mod validate;

pub(crate) use counts::CountedSlot;
pub(crate) use fallbacks::FallbackLimiters;
pub(crate) use local::{ChargedBy, DeniedQuota};
pub(crate) use plan::{CheckPlan, PlannedQuota, QuickPlan, Route, Target};
pub(crate) use planner::{SharedPlanner, WallClock};
pub(crate) use validate::{StoreFeatures, StoredAs};
