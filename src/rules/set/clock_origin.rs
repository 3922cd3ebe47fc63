use std::time::SystemTime;

use crate::clock::Clock;
use crate::rules::rule::AnyRule;

/// The time at the origin of the clock of a rule set.
///
/// It is read once, when the first calendar is built. Later reloads use the same time, so that equal periods keep their
/// numbers, also if the clock of the rule set and that of the operating system have diverged since.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockOrigin {
    /// `None` if no rule has needed it.
    pub(crate) time: Option<SystemTime>,
    /// Whether the caller has not chosen the clock, so that it does not follow the time of the operating system.
    pub(super) is_of_default_clock: bool,
}

impl ClockOrigin {
    pub(crate) const UNKNOWN: Self = Self {
        time: None,
        is_of_default_clock: false,
    };

    /// An origin of rules that are only checked.
    pub(crate) const ANY: Self = Self {
        time: Some(SystemTime::UNIX_EPOCH),
        is_of_default_clock: false,
    };

    /// This origin, with the time of the other one if its own is not known.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            time: self.time.or(other.time),
            ..self
        }
    }

    /// Reads the time, if it is not known and one of the rules has a calendar.
    pub(crate) fn known_for<R: ?Sized>(self, rules: &[AnyRule<R>], clock: &impl Clock) -> Self {
        if self.time.is_none() && rules.iter().any(|rule| rule.kind.calendar().is_some()) {
            return Self {
                time: Some(crate::algorithm::Calendar::origin_of(clock)),
                ..self
            };
        }
        self
    }
}
