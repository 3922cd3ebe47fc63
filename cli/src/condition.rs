//! Conditions of one field.

/// A condition: of a field, by its place in a row.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    pub(crate) field: usize,
    pub(crate) holds: Holds,
}

#[derive(Clone, Debug)]
pub(crate) enum Holds {
    /// When there is a value that does not say no.
    Truthy,
    /// When the value is one of this form, or is not.
    Is { not: bool, pattern: Pattern },
}

#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    Whole(Box<str>),
    Prefix(Box<str>),
}

impl Test {
    /// Whether it holds of the field's value.
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
