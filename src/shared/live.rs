//! Shared rules that are replaced while they are in use.

use alloc::sync::Arc;
use core::fmt;
#[cfg(feature = "watch")]
use std::io;
#[cfg(feature = "config")]
use std::path::Path;
use std::sync::{Mutex, PoisonError, RwLock};

use tokio::runtime::Handle;

use super::rules::SharedRules;
use super::rules_builder::SharedRulesBuilder;
use super::store::CounterStore;
#[cfg(feature = "config")]
use crate::rules::{Extractors, ReloadError};
#[cfg(feature = "watch")]
use crate::rules::{Reloaded, Replaceable, RulesWatcher};
use crate::rules::{RuleError, RuleSetBuilder};

/// [`SharedRules`] that can be replaced while they are in use, from a watched file for example.
///
/// The counts are in the store, under the names of the rules, so a rule that keeps its name, key, window and algorithm continues
/// with what was charged to it. Its limit may change, and applies at once.
///
/// # Guarantees
///
/// - A decision does not wait for a reload. It is made by the rules that were in force when it began.
/// - Rules that are invalid, or that the store does not serve, change nothing.
/// - The [counts](SharedRules::counts) of a rule that keeps its name continue.
/// - In the modes `Strict` and [`Lease`](crate::rules::Mode::Lease), no reload adds a permit to a limit.
///
/// # Caveats
///
/// - Call [`load`](Self::load) for each request, and refund, settle or reset with the rules that it returned, because an
///   [`Admitted`](super::Admitted) belongs to the rules that admitted it. An HTTP layer and a `wait::SharedFair` do this themselves.
/// - The replaced rules report the use of their leases and give them back. Until then they and the new rules are two nodes in
///   [`max_overshoot`](SharedRules::max_overshoot).
/// - The limiters of this node are those of rules in the mode [`Local`](crate::rules::Mode::Local), and those that decide when the
///   store does not answer. They continue where [`LiveRules`](crate::LiveRules) reuses the counts of a rule, and begin anew where it
///   charges them to the new rule.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use ringgate::Rule;
/// use ringgate::rules::RuleSetBuilder;
/// use ringgate::shared::{MemoryStore, SharedRules};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let live = SharedRules::<str>::builder()
///     .rule(Rule::new("all", "1/h".parse()?))
///     .build_live(Arc::new(MemoryStore::new()))?;
/// assert!(live.load().check("request").await.is_ok());
/// assert!(live.load().check("request").await.is_err());
/// live.store(RuleSetBuilder::new().rule(Rule::new("all", "2/h".parse()?)))?;
/// // One of the two permits is spent.
/// assert!(live.load().check("request").await.is_ok());
/// assert!(live.load().check("request").await.is_err());
/// # Ok(())
/// # }
/// ```
pub struct LiveSharedRules<R: ?Sized> {
    /// The lock is held for a few instructions, and never across an await.
    current: RwLock<Arc<SharedRules<R>>>,
    /// The settings beside the rules. The lock is held during a reload, so that the last rules that were given are in force.
    settings: Mutex<SharedRulesBuilder<R>>,
    store: Arc<dyn CounterStore>,
    /// The runtime of the tasks that renew leases. `None`: built outside of a runtime.
    runtime: Option<Handle>,
}

impl<R: ?Sized> SharedRulesBuilder<R> {
    /// Builds rules over a store that can be [replaced](LiveSharedRules::store) while they are in use.
    ///
    /// # Errors
    ///
    /// The errors of [`build`](Self::build).
    pub fn build_live(self, store: Arc<dyn CounterStore>) -> Result<LiveSharedRules<R>, RuleError> {
        LiveSharedRules::new(self, store)
    }
}

impl<R: ?Sized> LiveSharedRules<R> {
    fn new(builder: SharedRulesBuilder<R>, store: Arc<dyn CounterStore>) -> Result<Self, RuleError> {
        let settings = builder.with_rules(RuleSetBuilder::new());
        Ok(Self {
            current: RwLock::new(Arc::new(builder.build(Arc::clone(&store))?)),
            settings: Mutex::new(settings),
            store,
            runtime: Handle::try_current().ok(),
        })
    }

    /// Returns the rules in force.
    pub fn load(&self) -> Arc<SharedRules<R>> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<R: ?Sized + 'static> LiveSharedRules<R> {
    /// Replaces the rules. Secret, nodes, term and the other settings stay.
    ///
    /// Tasks of the new rules run in the runtime in which these rules were built, so any thread may call this.
    ///
    /// # Errors
    ///
    /// The errors of [`SharedRulesBuilder::build`]. The rules have not changed then.
    pub fn store(&self, rules: RuleSetBuilder<R>) -> Result<(), RuleError> {
        let settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        let context = self.runtime.as_ref().map(Handle::enter);
        let (builder, old) = (settings.with_rules(rules), self.load());
        let new = builder.build_after(Arc::clone(&self.store), Some(&old))?;
        drop(context);
        let old = {
            let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
            core::mem::replace(&mut *current, Arc::new(new))
        };
        // The lock ends before `old` may be dropped, because that runs code of the user: the keys and conditions of rules.
        drop(settings);
        if let Some(runtime) = &self.runtime {
            // If the store does not answer, its leases end with their terms.
            runtime.spawn(async move { old.flush().await });
        }
        Ok(())
    }

    /// Replaces the rules by those of a file. Call it from a timer, or from a thread that handles a signal.
    ///
    /// # Errors
    ///
    /// When the file is invalid, or the store does not serve its rules. The rules have not changed then.
    #[cfg(feature = "config")]
    pub fn reload(&self, path: impl AsRef<Path>, extractors: &Extractors<R>) -> Result<(), ReloadError> {
        let rules = RuleSetBuilder::from_file(path, extractors).map_err(ReloadError::File)?;
        self.store(rules).map_err(ReloadError::Rules)
    }

    /// Watches a file, and replaces the rules at once and after every change, until the watcher is dropped.
    ///
    /// The guarantees and the cost are those of [`RulesWatcher`]. The thread of the watcher calls `report` with the result of each
    /// reload, which is never [`Pending`](Reloaded::Pending).
    ///
    /// # Errors
    ///
    /// The errors of [`RulesWatcher::new`].
    #[cfg(feature = "watch")]
    pub fn watch(
        self: &Arc<Self>,
        path: impl AsRef<Path>,
        extractors: Extractors<R>,
        report: impl FnMut(Result<Reloaded, ReloadError>) + Send + 'static,
    ) -> io::Result<RulesWatcher> {
        RulesWatcher::of(Arc::clone(self), path, extractors, report)
    }
}

#[cfg(feature = "watch")]
impl<R: ?Sized + 'static> Replaceable<R> for LiveSharedRules<R> {
    fn replace(&self, rules: &RuleSetBuilder<R>) -> Result<Reloaded, ReloadError> {
        self.store(rules.clone()).map_err(ReloadError::Rules)?;
        Ok(Reloaded::Done)
    }

    fn finish(&self) -> Reloaded {
        Reloaded::Done
    }
}

impl<R: ?Sized> fmt::Debug for LiveSharedRules<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LiveSharedRules").field(&self.load()).finish()
    }
}
