use alloc::format;

use crate::error::ConfigError;

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

    pub(crate) fn new(enforced: Enforcement) -> Result<Self, ConfigError> {
        match enforced {
            Enforcement::All => Ok(Self::ALL),
            Enforcement::None => Ok(Self::NONE),
            Enforcement::Percent(percent) if (0.0..=100.0).contains(&percent) => {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    clippy::cast_precision_loss,
                    reason = "0 to 100 in a fraction of 2^32, rounded"
                )]
                let units = (percent / 100.0 * Self::ALL.0 as f64).round() as u64;
                Ok(Self(units))
            }
            Enforcement::Percent(percent) => {
                Err(ConfigError::new("enforce", format!("{percent} %"), "0 to 100 %"))
            }
        }
    }

    /// Whether the key with this hash belongs to the fraction. A larger fraction contains all keys of a smaller one.
    pub(crate) const fn contains(self, hash: u64) -> bool {
        (hash >> 32) < self.0
    }
}
