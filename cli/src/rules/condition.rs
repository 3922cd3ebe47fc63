//! Conditions on one field.

/// A condition on the field at a place of a row.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    pub(crate) field: usize,
    pub(crate) holds: Holds,
}

#[derive(Clone, Debug)]
pub(crate) enum Holds {
    /// The value is present, and not a form of "no".
    Truthy,
    /// The value matches, or does not match.
    Is { not: bool, pattern: Pattern },
}

#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    Whole(Box<str>),
    Prefix(Box<str>),
}

impl Test {
    /// Whether the condition holds for a value.
    pub(crate) fn holds(&self, value: Option<&[u8]>) -> bool {
        match &self.holds {
            Holds::Truthy => !matches!(value, None | Some(b"" | b"-" | b"0" | b"false" | b"no")),
            Holds::Is { not, pattern } => {
                let is = value.is_some_and(|value| match pattern {
                    Pattern::Whole(whole) => value == whole.as_bytes(),
                    Pattern::Prefix(prefix) => value.starts_with(prefix.as_bytes()),
                });
                is != *not
            }
        }
    }
}
