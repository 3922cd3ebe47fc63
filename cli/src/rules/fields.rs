//! The fields of the input as names in rules.

use alloc::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ringgate::Key;
use ringgate::rules::{Condition, Cost, Resolver, TierOf};

use crate::rules::record_layout::{Event, RecordLayout};

/// A shared record layout, which grows while rules are read.
#[derive(Clone, Debug)]
pub(crate) struct Fields(Arc<Mutex<RecordLayout>>);

impl Fields {
    pub(crate) fn new(layout: RecordLayout) -> Self {
        Self(Arc::new(Mutex::new(layout)))
    }

    /// The layout as far as rules have been read.
    pub(crate) fn layout(&self) -> MutexGuard<'_, RecordLayout> {
        // No method panics while the layout is incomplete, so a poisoned lock is no error.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Resolver<Event> for Fields {
    fn key(&self, name: &str) -> Option<Key<Event>> {
        self.layout().key(name)
    }

    fn cost(&self, name: &str) -> Option<Cost<Event>> {
        self.layout().cost(name)
    }

    fn condition(&self, name: &str) -> Option<Condition<Event>> {
        self.layout().condition(name)
    }

    fn tier_of(&self, name: &str) -> Option<TierOf<Event>> {
        self.layout().tier_of(name)
    }

    fn expected(&self) -> String {
        "a field of the input (for a key also several, with commas between them; for a condition also \
         \"field=value\", \"field!=value\" and \"field=prefix*\", 64 in all)"
            .into()
    }
}
