/// The keys for which a rule is enforced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Enforcement {
    All,
    None,
    Percent(f64),
}

/// A fraction of all keys, in units of 2^-32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyFraction(u64);

impl KeyFraction {
    pub(crate) const ALL: Self = Self(1 << 32);
    pub(crate) const NONE: Self = Self(0);

    /// The fraction of an enforcement whose percentage is valid.
    pub(crate) fn new(enforced: Enforcement) -> Self {
        match enforced {
            Enforcement::All => Self::ALL,
            Enforcement::None => Self::NONE,
            Enforcement::Percent(percent) => {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    clippy::cast_precision_loss,
                    reason = "0 to 100 in a fraction of 2^32, rounded"
                )]
                let units = (percent / 100.0 * Self::ALL.0 as f64).round() as u64;
                Self(units)
            }
        }
    }

    /// Whether the key with this hash belongs to the fraction. A larger fraction contains all keys of a smaller one.
    pub(crate) const fn contains(self, hash: u64) -> bool {
        (hash >> 32) < self.0
    }
}
