//! The parts of a rule to copy, as a rules file, code and an argument have them.

use crate::input::client::Prefixes;
use crate::report::RuleReport;

impl RuleReport {
    /// The quota with another limit: `7/60s`, or `7/month from 5`.
    pub(super) fn quota_of(&self, limit: &u64) -> String {
        let period = self.period.as_deref().and_then(|period| period.split_once(", "));
        if let Some((period, _)) = period {
            return format!("{limit}/{period}");
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 1 microsecond to 366 days"
        )]
        let micros = (self.millis() * 1e3).round() as u64;
        // Whole seconds, or the largest unit below.
        match (micros % 1_000_000, micros % 1_000) {
            (0, _) => format!("{limit}/{}s", micros / 1_000_000),
            (_, 0) => format!("{limit}/{}ms", micros / 1_000),
            _ => format!("{limit}/{micros}us"),
        }
    }

    /// The time zone of a calendar.
    pub(super) fn zone(&self) -> Option<&str> {
        Some(self.period.as_deref()?.split_once(", ")?.1)
    }

    /// The name of the key and its prefixes, which the library has added to it.
    pub(super) fn prefixes(&self) -> Option<(&str, [u8; 2])> {
        let (key, prefixes) = Prefixes::of_name(&self.key)?;
        Some((key, prefixes.bits()))
    }

    /// The algorithm as a variant of `RuleAlgorithm`.
    pub(super) fn variant(&self) -> String {
        let words = self.algorithm.split('-');
        let capitalized = words.map(|word| word[..1].to_ascii_uppercase() + &word[1..]);
        capitalized.collect()
    }
}
