use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::file_error::FileError;
use super::keywords::one_of;
use super::parse::node::{Node, Value};
use super::resolver::Resolver;
use crate::error::ConfigError;
use crate::rules::condition::{Condition, Cost, TierOf};
use crate::rules::key::Key;

/// The keys, costs, conditions and tier functions that a rules file can refer to by their names.
///
/// A file can call no other code. But it can deny every request, limit no request, or allocate much memory (`capacity`, large
/// logs). So restrict write access to it as you do for the program.
///
/// # Examples
///
/// ```
/// use core::hash::Hash;
/// use ringgate::Key;
/// use ringgate::rules::{Cost, Extractors, FileFormat, RuleSetBuilder};
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
/// let rules = RuleSetBuilder::from_text(text, FileFormat::Toml, &extractors)?;
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
    resolver: Option<Arc<dyn Resolver<R>>>,
}

impl<R: ?Sized> Extractors<R> {
    /// Creates an empty set.
    pub const fn new() -> Self {
        Self {
            keys: Vec::new(),
            costs: Vec::new(),
            conditions: Vec::new(),
            tiers: Vec::new(),
            resolver: None,
        }
    }

    /// Adds a key, for the field `key` of a rule.
    ///
    /// # Errors
    ///
    /// With the field `key`, when there is another of this name.
    pub fn key(mut self, key: Key<R>) -> Result<Self, ConfigError> {
        add(&mut self.keys, key, "key", Key::name)?;
        Ok(self)
    }

    /// Adds a cost, for the field `cost` of a rule.
    ///
    /// # Errors
    ///
    /// With the field `cost`, when there is another of this name.
    pub fn cost(mut self, cost: Cost<R>) -> Result<Self, ConfigError> {
        add(&mut self.costs, cost, "cost", Cost::name)?;
        Ok(self)
    }

    /// Adds a condition, for the field `when` of a rule.
    ///
    /// # Errors
    ///
    /// With the field `when`, when there is another of this name.
    pub fn condition(mut self, condition: Condition<R>) -> Result<Self, ConfigError> {
        add(&mut self.conditions, condition, "when", Condition::name)?;
        Ok(self)
    }

    /// Adds a function that returns the tier of a request, for the field `by` of a rule's `tiers`.
    ///
    /// # Errors
    ///
    /// With the field `by`, when there is another of this name.
    pub fn tier_of(mut self, tier_of: TierOf<R>) -> Result<Self, ConfigError> {
        add(&mut self.tiers, tier_of, "by", TierOf::name)?;
        Ok(self)
    }

    /// Sets the resolver of names that were not added. It replaces an earlier one.
    ///
    /// # Examples
    ///
    /// Any header of a request can be a key:
    ///
    /// ```
    /// use core::hash::Hash;
    /// use std::collections::HashMap;
    /// use ringgate::Key;
    /// use ringgate::rules::{Condition, Cost, Extractors, FileFormat, Resolver, RuleSetBuilder, TierOf};
    ///
    /// type Headers = HashMap<String, String>;
    ///
    /// struct Header;
    ///
    /// impl Resolver<Headers> for Header {
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
    ///     fn expected(&self) -> String {
    ///         "a key \"header ...\"".into()
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let extractors = Extractors::new().resolver(Header);
    /// let text = r#"{"rules": [{"name": "api", "quota": "5/s", "key": "header x-api-key"}]}"#;
    /// let rules = RuleSetBuilder::from_text(text, FileFormat::Json, &extractors)?;
    /// assert_eq!(rules.rules()[0].view().key, Some("header x-api-key"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn resolver(mut self, resolver: impl Resolver<R> + 'static) -> Self {
        self.resolver = Some(Arc::new(resolver));
        self
    }

    pub(super) fn find_key(&self, node: &Node) -> Result<Key<R>, FileError> {
        let resolve = |resolver: &dyn Resolver<R>, name: &str| resolver.key(name);
        self.find(&self.keys, node, ("key", "keys"), Key::name, resolve)
    }

    pub(super) fn find_cost(&self, node: &Node) -> Result<Cost<R>, FileError> {
        let resolve = |resolver: &dyn Resolver<R>, name: &str| resolver.cost(name);
        self.find(&self.costs, node, ("cost", "costs"), Cost::name, resolve)
    }

    pub(super) fn find_condition(&self, node: &Node) -> Result<Condition<R>, FileError> {
        let resolve = |resolver: &dyn Resolver<R>, name: &str| resolver.condition(name);
        let field = ("when", "conditions");
        self.find(&self.conditions, node, field, Condition::name, resolve)
    }

    pub(super) fn find_tier_of(&self, node: &Node) -> Result<TierOf<R>, FileError> {
        let resolve = |resolver: &dyn Resolver<R>, name: &str| resolver.tier_of(name);
        self.find(&self.tiers, node, ("by", "tier functions"), TierOf::name, resolve)
    }

    /// Returns the extractor with the name in this node, or an error that lists the existing names.
    fn find<T: Clone>(
        &self,
        known: &[T],
        node: &Node,
        (field, plural): (&'static str, &str),
        name: fn(&T) -> &str,
        resolve: impl FnOnce(&dyn Resolver<R>, &str) -> Option<T>,
    ) -> Result<T, FileError> {
        if let Value::Text(given) = &node.value {
            if let Some(found) = known.iter().find(|known| name(known) == given) {
                return Ok(found.clone());
            }
            let resolver = self.resolver.as_deref();
            if let Some(found) = resolver.and_then(|resolver| resolve(resolver, given)) {
                return Ok(found);
            }
        }
        let names = known.iter().map(|known| format!("{:?}", name(known)));
        let names: Vec<String> = names
            .chain(self.resolver.iter().map(|resolver| resolver.expected()))
            .collect();
        let expected = match names.len() {
            0 => format!("none: the program has no {plural}"),
            _ => one_of(&names),
        };
        Err(node.unexpected(field, expected))
    }
}

fn add<T>(known: &mut Vec<T>, new: T, field: &'static str, name: fn(&T) -> &str) -> Result<(), ConfigError> {
    if known.iter().any(|known| name(known) == name(&new)) {
        return Err(ConfigError::new(
            field,
            format!("{:?} again", name(&new)),
            "a different name for each",
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
            resolver: self.resolver.clone(),
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
        match self.resolver {
            Some(_) => debug.finish_non_exhaustive(),
            None => debug.finish(),
        }
    }
}
