//! Metrics that agree with the counts of the rules, and events that keep their quota.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::error::Error;
use core::hash::Hash;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Mutex;
use std::thread;

use metrics::Unit;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use recorders::{CheckedRecorder, EventRecorder, Fields, Scraped, value};
use requests::{Request, SEEDS, live, named, request};
use ringgate::observe::Observer;
use ringgate::rules::{Cost, RuleSetBuilder};
use ringgate::{Key, LiveRules, ManualClock, Rule, RuleSet};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};

extern crate alloc;

// First, because its macro is in scope below it only.
#[cfg(unix)]
#[macro_use]
#[path = "../../common/forward.rs"]
mod forward;

#[path = "../../common/random.rs"]
mod random;
#[path = "observe/recorders.rs"]
mod recorders;
#[path = "observe/requests.rs"]
mod requests;

#[path = "observe/counters.rs"]
mod counters;
#[path = "observe/events.rs"]
mod events;
#[path = "observe/reloads.rs"]
mod reloads;
#[cfg(unix)]
#[path = "observe/shared.rs"]
mod shared;
#[cfg(unix)]
#[path = "observe/store_events.rs"]
mod store_events;

#[cfg(unix)]
#[expect(dead_code, reason = "made for the tests of the stores themselves")]
#[path = "../../redis/support/server.rs"]
mod server;
#[cfg(unix)]
#[path = "../../common/skipped.rs"]
mod skipped;
