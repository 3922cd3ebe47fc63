use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
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
    others: Option<Arc<Others<R>>>,
}

/// What a name means that was not added.
type Others<R> = dyn AnyExtractor<R>;

/// Says what names mean that nobody knows beforehand: the fields of a log, the headers of a request. See
/// [`Extractors::others`].
///
/// Each method is asked for the names that were not added, and answers `None` to those that mean nothing, which are errors then.
/// Rules are only decided in one step when they have clones of one key, cost or condition, so the same name should get
/// a clone of the same one.
pub trait AnyExtractor<R: ?Sized>: Send + Sync {
    /// The key of this name.
    fn key(&self, name: &str) -> Option<Key<R>>;

    /// The cost of this name.
    fn cost(&self, name: &str) -> Option<Cost<R>>;

    /// The condition of this name.
    fn condition(&self, name: &str) -> Option<Condition<R>>;

    /// The function of this name that says the tier.
    fn tier_of(&self, name: &str) -> Option<TierOf<R>>;

    /// What names are allowed, for the error when one is not.
    fn allowed(&self) -> String;
}

impl<R: ?Sized> Extractors<R> {
    /// None yet.
    pub const fn new() -> Self {
        Self {
            keys: Vec::new(),
            costs: Vec::new(),
            conditions: Vec::new(),
            tiers: Vec::new(),
            others: None,
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

    /// Asks `others` about every name that was not added; the one before is replaced.
    ///
    /// # Examples
    ///
    /// Any header of a request may be a key, and nothing else is known:
    ///
    /// ```
    /// use core::hash::Hash;
    /// use std::collections::HashMap;
    /// use ringgate::{AnyExtractor, Condition, Cost, Extractors, Format, Key, RuleSetBuilder, TierOf};
    ///
    /// type Headers = HashMap<String, String>;
    ///
    /// struct Header;
    ///
    /// impl AnyExtractor<Headers> for Header {
    ///     fn key(&self, name: &str) -> Option<Key<Headers>> {
    ///         let header = name.strip_prefix("header ")?.to_string();
    ///         Some(Key::new(name, move |headers: &Headers, key| headers.get(&header).hash(key)))
    ///     }
    ///     fn cost(&self, _: &str) -> Option<Cost<Headers>> {
    ///         None
    ///     }
    ///     fn condition(&self, _: &str) -> Option<Condition<Headers>> {
    ///         None
    ///     }
    ///     fn tier_of(&self, _: &str) -> Option<TierOf<Headers>> {
    ///         None
    ///     }
    ///     fn allowed(&self) -> String {
    ///         "a key \"header ...\"".into()
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let extractors = Extractors::new().others(Header);
    /// let text = r#"{"rules": [{"name": "api", "quota": "5/s", "key": "header x-api-key"}]}"#;
    /// let rules = RuleSetBuilder::from_text(text, Format::Json, &extractors)?;
    /// assert_eq!(rules.rules()[0].view().key, Some("header x-api-key"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn others(mut self, others: impl AnyExtractor<R> + 'static) -> Self {
        self.others = Some(Arc::new(others));
        self
    }

    pub(super) fn find_key(&self, node: &Node) -> Result<Key<R>, FileError> {
        let other = |others: &Others<R>, name: &str| others.key(name);
        self.find(&self.keys, node, ("key", "key"), Key::name, other)
    }

    pub(super) fn find_cost(&self, node: &Node) -> Result<Cost<R>, FileError> {
        let other = |others: &Others<R>, name: &str| others.cost(name);
        self.find(&self.costs, node, ("cost", "cost"), Cost::name, other)
    }

    pub(super) fn find_condition(&self, node: &Node) -> Result<Condition<R>, FileError> {
        let other = |others: &Others<R>, name: &str| others.condition(name);
        self.find(
            &self.conditions,
            node,
            ("when", "condition"),
            Condition::name,
            other,
        )
    }

    pub(super) fn find_tier_of(&self, node: &Node) -> Result<TierOf<R>, FileError> {
        let other = |others: &Others<R>, name: &str| others.tier_of(name);
        self.find(&self.tiers, node, ("by", "tier function"), TierOf::name, other)
    }

    /// What a file names, or which names it could have given.
    fn find<T: Clone>(
        &self,
        known: &[T],
        node: &Node,
        (field, what): (&'static str, &str),
        name: fn(&T) -> &str,
        other: impl FnOnce(&Others<R>, &str) -> Option<T>,
    ) -> Result<T, FileError> {
        if let Value::Text(given) = &node.value {
            if let Some(found) = known.iter().find(|known| name(known) == given) {
                return Ok(found.clone());
            }
            if let Some(found) = self.others.as_ref().and_then(|others| other(&**others, given)) {
                return Ok(found);
            }
        }
        let names = known.iter().map(|known| format!("{:?}", name(known)));
        let names: Vec<String> = names
            .chain(self.others.iter().map(|others| others.allowed()))
            .collect();
        let allowed = match names.len() {
            0 => format!("none: the program has no {what}"),
            _ => one_of(&names),
        };
        Err(node.not_allowed(field, allowed))
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
            others: self.others.clone(),
        }
    }
}

impl<R: ?Sized> fmt::Debug for Extractors<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Extractors");
        debug
            .field("keys", &self.keys)
            .field("costs", &self.costs)
            .field("conditions", &self.conditions)
            .field("tiers", &self.tiers);
        match self.others {
            Some(_) => debug.finish_non_exhaustive(),
            None => debug.finish(),
        }
    }
}
