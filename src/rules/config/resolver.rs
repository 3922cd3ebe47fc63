use alloc::string::String;

use crate::rules::condition::{Condition, Cost, TierOf};
use crate::rules::key::Key;

/// Resolves names in a rules file that cannot be listed in advance: the fields of a log, the headers of a request.
///
/// Set by [`Extractors::resolver`](super::super::Extractors::resolver). Each method is called for names that were not
/// added, and returns `None` for a name that does not exist, which is an error in the file.
///
/// Return clones of one key, cost or condition for one name: rules share a state only if theirs are clones.
pub trait Resolver<R: ?Sized>: Send + Sync {
    /// Returns the key with this name.
    fn key(&self, name: &str) -> Option<Key<R>>;

    /// Returns the cost with this name.
    fn cost(&self, name: &str) -> Option<Cost<R>>;

    /// Returns the condition with this name.
    fn condition(&self, name: &str) -> Option<Condition<R>>;

    /// Returns the tier function with this name.
    fn tier_of(&self, name: &str) -> Option<TierOf<R>>;

    /// Returns a phrase with the names that exist, for the error about one that does not.
    fn expected(&self) -> String;
}
