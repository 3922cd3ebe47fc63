//! Conditions on one field.

use crate::input::client;

/// A condition on the field at a place of a row.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    pub(crate) field: usize,
    pub(crate) holds: Holds,
}

/// The test of a value.
#[derive(Clone, Debug)]
pub(crate) enum Holds {
    /// The value is present, and not a form of "no".
    Truthy,
    /// The value matches, or does not match.
    Is { not: bool, pattern: TextPattern },
}

/// A value or a prefix to compare with. Every spelling of an address is equal.
#[derive(Clone, Debug)]
pub(crate) enum TextPattern {
    Whole(Box<str>),
    Prefix {
        text: Box<str>,
        /// The prefix of the groups of an address.
        groups: Box<str>,
    },
}

impl Test {
    /// Parses `field`, `field=value`, `field!=value` or `field=prefix*` to a field and its condition; `None` for another text, also
    /// for an operator of another language such as `>=`, `==` or `!~`.
    pub(crate) fn parse(text: &str) -> Option<(&str, Holds)> {
        let is_field =
            |text: &str| !text.is_empty() && !text.contains(['<', '>', '!']) && !text.ends_with('~');
        let Some((field, value)) = text.split_once('=') else {
            return is_field(text.trim()).then_some((text.trim(), Holds::Truthy));
        };
        let field = field.trim_end();
        let not = field.ends_with('!');
        let field = field.strip_suffix('!').unwrap_or(field);
        let pattern = match value.trim().strip_suffix('*') {
            Some(prefix) => TextPattern::Prefix {
                text: prefix.into(),
                groups: client::first_groups(prefix).into(),
            },
            None => {
                let value = value.trim();
                let canonical = client::canonical(value.as_bytes());
                TextPattern::Whole(canonical.as_deref().unwrap_or(value).into())
            }
        };
        let field = field.trim();
        (is_field(field) && !value.starts_with('=')).then_some((field, Holds::Is { not, pattern }))
    }

    /// Whether the condition holds for a value.
    pub(crate) fn holds(&self, value: Option<&[u8]>) -> bool {
        match &self.holds {
            Holds::Truthy => !matches!(value, None | Some(b"" | b"-" | b"0" | b"false" | b"no")),
            Holds::Is { not, pattern } => {
                // Formats differ in whether "-" is a value or stands for a missing one, so both are equal.
                let matches = match value {
                    Some(value) => pattern.matches(value),
                    None => matches!(pattern, TextPattern::Whole(whole) if &**whole == "-"),
                };
                matches != *not
            }
        }
    }
}

impl TextPattern {
    fn matches(&self, value: &[u8]) -> bool {
        let canonical = client::canonical(value);
        match self {
            Self::Whole(whole) => canonical.as_ref().map_or(value, String::as_bytes) == whole.as_bytes(),
            Self::Prefix { text, groups } => {
                let is_address = |address: String| {
                    let all = client::all_groups(&address);
                    address.starts_with(&**groups) || all.is_some_and(|all| all.starts_with(&**groups))
                };
                value.starts_with(text.as_bytes()) || canonical.is_some_and(is_address)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Test;

    fn holds(condition: &str, value: &str) -> bool {
        let (field, holds) = Test::parse(condition).expect(condition);
        assert_eq!(field, "f");
        Test { field: 0, holds }.holds(Some(value.as_bytes()))
    }

    #[test]
    fn addresses_are_equal_in_every_spelling() {
        let spellings = ["2001:db8::1", "2001:DB8:0:0::1", "2001:0db8:0:0:0:0:0:1"];
        for value in spellings {
            for given in spellings {
                assert!(holds(&format!("f={given}"), value), "{given} {value}");
                assert!(!holds(&format!("f != {given}"), value), "{given} {value}");
            }
            for prefix in ["2001:DB8:*", "2001:0db8:*", "2001:db8:0:0:*", "2001:db8::*"] {
                let condition = format!("f={prefix}");
                assert!(holds(&condition, value), "{prefix} {value}");
                assert!(!holds(&condition, "2001:db9::1"), "{prefix}");
            }
        }
        for given in ["192.0.2.1", "::ffff:192.0.2.1", "::FFFF:c000:201"] {
            let condition = format!("f={given}");
            assert!(holds(&condition, "192.0.2.1") && holds(&condition, "::ffff:192.0.2.1"));
            assert!(!holds(&condition, "192.0.2.2"), "{given}");
        }
        assert!(holds("f=192.0.*", "::FFFF:192.0.2.1"));
    }

    #[test]
    fn operators_of_other_languages_are_no_conditions() {
        for text in [
            "f>1", "f>=1", "f <= 1", "f==1", "f!==1", "f~=1", "f!~1", "!f", "!f=1", "=1", "", " ",
        ] {
            assert!(Test::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn other_text_keeps_its_spelling() {
        assert!(holds("f=AB:0*", "AB:0c") && !holds("f=AB:0*", "ab:0c"));
        assert!(holds("f=A:b", "A:b") && !holds("f=A:b", "a:b"));
    }
}
