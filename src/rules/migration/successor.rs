use alloc::sync::Arc;

use crate::rules::rule::AnyRule;

/// The new rule that continues an old one.
pub(crate) struct Successor {
    /// The index of the rule among the new rules.
    pub(crate) rule: u16,
    pub(crate) name: Arc<str>,
}

/// The new rules, as successors of old rules.
pub(crate) struct Successors<'a, R: ?Sized>(pub(crate) &'a [AnyRule<R>]);

impl<R: ?Sized> Successors<'_, R> {
    /// The successor of the old rule with this name: the new rule with the same name, or else the rule that was renamed from it.
    pub(crate) fn of(&self, name: &str) -> Option<Successor> {
        let find = |is: &dyn Fn(&AnyRule<R>) -> bool| self.0.iter().position(is);
        let rule = find(&|rule| *rule.name == *name)
            .or_else(|| find(&|rule| rule.renamed_from.as_deref() == Some(name)))?;
        Some(Successor {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a set has at most a thousand rules"
            )]
            rule: rule as u16,
            name: Arc::clone(&self.0[rule].name),
        })
    }
}
