use alloc::format;

use super::rule::Enforcement;
use crate::error::ConfigError;

/// A part of all keys, in 2^32ths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share(u64);

impl Share {
    pub(super) const ALL: Self = Self(1 << 32);
    pub(super) const NONE: Self = Self(0);

    pub(super) fn of(enforced: Enforcement) -> Result<Self, ConfigError> {
        match enforced {
            Enforcement::All => Ok(Self::ALL),
            Enforcement::None => Ok(Self::NONE),
            Enforcement::Percent(percent) if (0.0..=100.0).contains(&percent) => {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    clippy::cast_precision_loss,
                    reason = "0 to 100 in a hundred of 2^32, rounded"
                )]
                let share = (percent / 100.0 * Self::ALL.0 as f64).round() as u64;
                Ok(Self(share))
            }
            Enforcement::Percent(percent) => {
                Err(ConfigError::new("enforce", format!("{percent} %"), "0 to 100 %"))
            }
        }
    }

    /// Whether the key with this hash is among them.
    pub(super) const fn has(self, hash: u64) -> bool {
        (hash >> 32) < self.0
    }
}
