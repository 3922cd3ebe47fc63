#[cfg(feature = "calendar")]
use std::time::SystemTime;

use crate::clock::Clock;
use crate::rules::rule::Rule;

/// The time at the origin of the clock of a rule set.
///
/// It is read once, when the first calendar is built. Later reloads use the same time, so that equal periods keep their
/// numbers, also if the clock of the rule set and that of the operating system have diverged since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockOrigin {
    /// `None` if no rule has needed it.
    #[cfg(feature = "calendar")]
    pub(crate) time: Option<SystemTime>,
}

impl ClockOrigin {
    pub(crate) const UNKNOWN: Self = Self {
        #[cfg(feature = "calendar")]
        time: None,
    };

    /// An origin of rules that are only checked.
    #[cfg(any(feature = "config", feature = "shared"))]
    pub(crate) const ANY: Self = Self {
        #[cfg(feature = "calendar")]
        time: Some(SystemTime::UNIX_EPOCH),
    };

    /// This origin, or else the other one.
    pub(crate) fn or(self, other: Self) -> Self {
        #[cfg(feature = "calendar")]
        let origin = Self {
            time: self.time.or(other.time),
        };
        #[cfg(not(feature = "calendar"))]
        let (origin, _) = (self, other);
        origin
    }

    /// Reads the time, if it is not known and one of the rules has a calendar.
    pub(crate) fn known_for<R: ?Sized>(self, rules: &[Rule<R>], clock: &impl Clock) -> Self {
        #[cfg(feature = "calendar")]
        if self.time.is_none() && rules.iter().any(Rule::is_calendar) {
            return Self {
                time: Some(crate::algorithm::Calendar::origin_of(clock)),
            };
        }
        let _ = (rules, clock);
        self
    }
}
