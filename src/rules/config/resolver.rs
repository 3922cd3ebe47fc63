use alloc::string::String;

use crate::rules::condition::{Condition, Cost, TierOf};
use crate::rules::key::Key;

/// Resolves names in a rules file that cannot be listed in advance, such as the fields of a log or the headers of a request.
///
/// [`Extractors::resolver`](super::super::Extractors::resolver) sets it. Each method is called for names that were not added. If it
/// returns `None`, the name does not exist, which is an error in the file.
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

    /// Returns a phrase with the existing names, for the error about a name that does not exist.
    fn expected(&self) -> String;
}
