use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::file_error::FileError;
use super::node::{Node, Value};
use super::words::one_of;
use crate::error::ConfigError;
use crate::rules::{Condition, Cost, Key, TierOf};

/// What the names in a rules file mean: keys, costs, conditions and functions that say the tier, each by its
/// name.
///
/// A file can only name what is in here, so it runs no other code; but whoever may write it can refuse everybody, limit
/// nobody, or ask for much memory (`capacity`, large logs).
///
/// # Examples
///
/// ```
/// use core::hash::Hash;
/// use ringgate::{Cost, Extractors, Format, Key, RuleSetBuilder};
///
/// struct Upload {
///     user: String,
///     bytes: u64,
/// }
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let extractors = Extractors::new()
///     .key(Key::new("user", |upload: &Upload, key| upload.user.hash(key)))?
///     .cost(Cost::new("bytes", |upload: &Upload| upload.bytes))?;
/// let text = "
///     [[rules]]
///     name = 'volume'
///     quota = '1_000_000/min'
///     key = 'user'
///     cost = 'bytes'
/// ";
/// let rules = RuleSetBuilder::from_text(text, Format::Toml, &extractors)?;
/// assert_eq!(rules.rules()[0].name(), "volume");
/// # Ok(())
/// # }
/// ```
#[must_use = "extractors do nothing until a file is read with them"]
pub struct Extractors<R: ?Sized> {
    keys: Vec<Key<R>>,
    costs: Vec<Cost<R>>,
    conditions: Vec<Condition<R>>,
    tiers: Vec<TierOf<R>>,
}

impl<R: ?Sized> Extractors<R> {
    /// None yet.
    pub const fn new() -> Self {
        Self {
            keys: Vec::new(),
            costs: Vec::new(),
            conditions: Vec::new(),
            tiers: Vec::new(),
        }
    }

    /// Adds a key, for the field `key` of a rule.
    ///
    /// # Errors
    ///
    /// With the field `key`, when there is one of this name.
    pub fn key(mut self, key: Key<R>) -> Result<Self, ConfigError> {
        add(&mut self.keys, key, "key", Key::name)?;
        Ok(self)
    }

    /// Adds a cost, for the field `cost` of a rule.
    ///
    /// # Errors
    ///
    /// With the field `cost`, when there is one of this name.
    pub fn cost(mut self, cost: Cost<R>) -> Result<Self, ConfigError> {
        add(&mut self.costs, cost, "cost", Cost::name)?;
        Ok(self)
    }

    /// Adds a condition, for the field `when` of a rule.
    ///
    /// # Errors
    ///
    /// With the field `when`, when there is one of this name.
    pub fn condition(mut self, condition: Condition<R>) -> Result<Self, ConfigError> {
        add(&mut self.conditions, condition, "when", Condition::name)?;
        Ok(self)
    }

    /// Adds a function that says which tier a request is in, for the field `by` of a rule's `tiers`.
    ///
    /// # Errors
    ///
    /// With the field `by`, when there is one of this name.
    pub fn tier_of(mut self, tier_of: TierOf<R>) -> Result<Self, ConfigError> {
        add(&mut self.tiers, tier_of, "by", TierOf::name)?;
        Ok(self)
    }

    pub(super) fn find_key(&self, node: &Node) -> Result<&Key<R>, FileError> {
        find(&self.keys, node, "key", "key", Key::name)
    }

    pub(super) fn find_cost(&self, node: &Node) -> Result<&Cost<R>, FileError> {
        find(&self.costs, node, "cost", "cost", Cost::name)
    }

    pub(super) fn find_condition(&self, node: &Node) -> Result<&Condition<R>, FileError> {
        find(&self.conditions, node, "when", "condition", Condition::name)
    }

    pub(super) fn find_tier_of(&self, node: &Node) -> Result<&TierOf<R>, FileError> {
        find(&self.tiers, node, "by", "tier function", TierOf::name)
    }
}

fn add<T>(known: &mut Vec<T>, new: T, field: &'static str, name: fn(&T) -> &str) -> Result<(), ConfigError> {
    if known.iter().any(|other| name(other) == name(&new)) {
        return Err(ConfigError::new(
            field,
            format!("{:?} again", name(&new)),
            "a name of its own for each",
        ));
    }
    known.push(new);
    Ok(())
}

/// What a file names, or which names it could have given.
fn find<'k, T>(
    known: &'k [T],
    node: &Node,
    field: &'static str,
    what: &str,
    name: fn(&T) -> &str,
) -> Result<&'k T, FileError> {
    if let Value::Text(given) = &node.value
        && let Some(found) = known.iter().find(|known| name(known) == given)
    {
        return Ok(found);
    }
    let names: Vec<String> = known.iter().map(|known| format!("{:?}", name(known))).collect();
    let allowed = match names.len() {
        0 => format!("none: the program has no {what}"),
        _ => one_of(&names),
    };
    Err(node.not_allowed(field, allowed))
}

impl<R: ?Sized> Default for Extractors<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: ?Sized> Clone for Extractors<R> {
    fn clone(&self) -> Self {
        Self {
            keys: self.keys.clone(),
            costs: self.costs.clone(),
            conditions: self.conditions.clone(),
            tiers: self.tiers.clone(),
        }
    }
}

impl<R: ?Sized> fmt::Debug for Extractors<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extractors")
            .field("keys", &self.keys)
            .field("costs", &self.costs)
            .field("conditions", &self.conditions)
            .field("tiers", &self.tiers)
            .finish()
    }
}
