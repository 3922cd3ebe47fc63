//! The settings of a store, validated once.

use alloc::boxed::Box;
use alloc::format;
use core::time::Duration;

use super::breaker::Trip;
use crate::error::ConfigError;
use crate::shared::StoreErrorKind;

/// The settings of a [builder](super::RedisStoreBuilder).
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) prefix: Box<str>,
    pub(super) connect_timeout: Duration,
    pub(super) response_timeout: Duration,
    pub(super) call_timeout: Duration,
    pub(super) failures: u64,
    pub(super) reconnect_after: Duration,
    pub(super) heartbeat: Duration,
    pub(super) max_in_flight: usize,
    pub(super) trip: Trip,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            prefix: "ringgate".into(),
            connect_timeout: Duration::from_millis(200),
            response_timeout: Duration::from_millis(100),
            call_timeout: Duration::from_millis(150),
            failures: 3,
            reconnect_after: Duration::from_millis(60),
            heartbeat: Duration::from_secs(1),
            max_in_flight: 10_000,
            trip: Trip {
                over: Duration::from_secs(1),
                calls: 20,
                percent: 50,
                rest: Duration::from_millis(500),
            },
        }
    }
}

/// The range of times. No call succeeds within a shorter time, and a longer timeout protects no caller.
const TIMES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(60));

/// The time between two attempts to connect to a server that has answered and does not accept the store.
const UNACCEPTED: Duration = Duration::from_secs(1);

impl Settings {
    /// The time from a failed attempt to connect to the next one.
    pub(super) fn wait_after(&self, error: StoreErrorKind) -> Duration {
        match error {
            // A password or an address is wrong. Attempts do not help, and the server may log them.
            StoreErrorKind::UnexpectedReply => self.reconnect_after.max(UNACCEPTED),
            _ => self.reconnect_after,
        }
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        for (field, time) in [
            ("connect_timeout", self.connect_timeout),
            ("response_timeout", self.response_timeout),
            ("call_timeout", self.call_timeout),
            ("reconnect_after", self.reconnect_after),
            ("heartbeat", self.heartbeat),
            ("breaker.over", self.trip.over),
            ("breaker.rest", self.trip.rest),
        ] {
            if time < TIMES.0 || time > TIMES.1 {
                return Err(ConfigError::new(
                    field,
                    format!("{time:?}"),
                    format!("{:?} to {:?}", TIMES.0, TIMES.1),
                ));
            }
        }
        if self.call_timeout < self.response_timeout {
            return Err(ConfigError::new(
                "call_timeout",
                format!("{:?}", self.call_timeout),
                format!("at least the response timeout, {:?}", self.response_timeout),
            ));
        }
        let within = |field, given: u64, most: u64| {
            if given == 0 || given > most {
                return Err(ConfigError::new(
                    field,
                    format!("{given}"),
                    format!("1 to {most}"),
                ));
            }
            Ok(())
        };
        within("failures", self.failures, 1000)?;
        within("max_in_flight", self.max_in_flight as u64, 1_000_000)?;
        within("breaker.calls", u64::from(self.trip.calls), 1_000_000)?;
        within("breaker.percent", u64::from(self.trip.percent), 100)?;
        if self.prefix.contains(['{', '}']) {
            return Err(ConfigError::new(
                "prefix",
                format!("{:?}", self.prefix),
                "a text without braces",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::jittered;

    /// The defaults that the builder documents.
    #[test]
    fn the_defaults_are_those_of_the_documentation() {
        let settings = Settings::default();
        assert_eq!(&*settings.prefix, "ringgate");
        assert_eq!(settings.connect_timeout, Duration::from_millis(200));
        assert_eq!(settings.response_timeout, Duration::from_millis(100));
        assert_eq!(settings.call_timeout, Duration::from_millis(150));
        assert_eq!((settings.failures, settings.max_in_flight), (3, 10_000));
        assert_eq!(settings.reconnect_after, Duration::from_millis(60));
        assert_eq!(settings.heartbeat, Duration::from_secs(1));
    }

    /// The first admission after an outage waits for an attempt to connect, so the wait has a bound that does not grow.
    #[test]
    fn an_attempt_follows_within_90_ms() {
        let settings = Settings::default();
        for kind in [
            StoreErrorKind::Down,
            StoreErrorKind::Disconnected,
            StoreErrorKind::TimedOut,
            StoreErrorKind::Refused,
        ] {
            for _ in 0..10_000 {
                let wait = jittered(settings.wait_after(kind));
                assert!(wait <= Duration::from_millis(90), "{kind:?}: {wait:?}");
            }
        }
        assert!(settings.wait_after(StoreErrorKind::UnexpectedReply) >= UNACCEPTED);
    }
}
