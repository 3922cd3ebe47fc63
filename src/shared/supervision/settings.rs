use alloc::format;
use core::time::Duration;

use crate::error::ConfigError;
use crate::shared::store::StoreErrorKind;

/// The timeouts and limits of a [`Supervisor`](super::Supervisor). Times are 1 ms to 60 s.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use ringgate::shared::supervision::SupervisorSettings;
///
/// let mut settings = SupervisorSettings::default();
/// settings.call_timeout = Duration::from_millis(300);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SupervisorSettings {
    /// How long a connection may take to be made: 200 ms by default.
    ///
    /// After an outage all nodes connect at once, and an attempt that takes longer is given up and made again. So if the server makes
    /// their connections one after another, as with TLS, this time must be longer than the number of nodes times the server's time for
    /// one connection. Otherwise the server may only work on attempts that were given up.
    pub connect_timeout: Duration,
    /// How long a reply may take: 100 ms by default.
    pub response_timeout: Duration,
    /// How long a call may take in all: 150 ms by default, and at least the response timeout.
    pub call_timeout: Duration,
    /// The number of failures in a row that end a connection: 3 by default, 1 to 1000.
    pub failures: u64,
    /// The time from the end of a connection, or a failed attempt, to the next attempt: 60 ms by default. Each wait is half to
    /// one and a half of that time, at random. So with the default, the next attempt begins within 90 ms after a server that refused
    /// connections accepts them again. If the server answers that it does not accept the store, as without a password, the next
    /// attempt is made a second later.
    pub reconnect_after: Duration,
    /// The idle time after which the connection is tested: 1 s by default. So a lost connection is noticed before a request needs it.
    pub heartbeat: Duration,
    /// The most concurrent calls: 10,000 by default, 1 to 1,000,000. A call above it is an error at once.
    pub max_in_flight: usize,
    /// When the circuit breaker opens, and for how long.
    pub breaker: BreakerSettings,
}

/// When a circuit breaker opens, and for how long: if `percent` of at least `calls` calls in the last one to two spans of `over`
/// have failed.
///
/// Then no call is made for `rest`, or until there is a new connection. After that, one call at a time is made, until three in a row
/// are answered.
#[derive(Clone, Copy, Debug)]
pub struct BreakerSettings {
    /// The percentage of failures that opens it: 50 by default, 1 to 100.
    pub percent: u32,
    /// The number of calls from which on it may open: 20 by default, 1 to 1,000,000.
    pub calls: u32,
    /// The span of time whose calls count: 1 s by default.
    pub over: Duration,
    /// How long it stays open: 500 ms by default.
    pub rest: Duration,
}

impl Default for SupervisorSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_millis(200),
            response_timeout: Duration::from_millis(100),
            call_timeout: Duration::from_millis(150),
            failures: 3,
            reconnect_after: Duration::from_millis(60),
            heartbeat: Duration::from_secs(1),
            max_in_flight: 10_000,
            breaker: BreakerSettings {
                percent: 50,
                calls: 20,
                over: Duration::from_secs(1),
                rest: Duration::from_millis(500),
            },
        }
    }
}

/// The time between two attempts to connect to a server that has answered and does not accept the store.
const UNACCEPTED: Duration = Duration::from_secs(1);

impl SupervisorSettings {
    /// The shortest time of a setting. No call succeeds within a shorter time.
    const SHORTEST: Duration = Duration::from_millis(1);

    /// The longest time of a setting. A longer timeout protects no caller.
    pub(crate) const LONGEST: Duration = Duration::from_secs(60);

    /// The time from a failed attempt to connect to the next one.
    pub(super) fn wait_after(&self, error: StoreErrorKind) -> Duration {
        match error {
            // A password or an address is wrong. Attempts do not help, and the server may log them.
            StoreErrorKind::UnexpectedReply => self.reconnect_after.max(UNACCEPTED),
            StoreErrorKind::TimedOut
            | StoreErrorKind::Refused
            | StoreErrorKind::Disconnected
            | StoreErrorKind::Down
            | StoreErrorKind::Overloaded
            | StoreErrorKind::BreakerOpen => self.reconnect_after,
        }
    }

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        for (field, time) in [
            ("connect_timeout", self.connect_timeout),
            ("response_timeout", self.response_timeout),
            ("call_timeout", self.call_timeout),
            ("reconnect_after", self.reconnect_after),
            ("heartbeat", self.heartbeat),
            ("breaker.over", self.breaker.over),
            ("breaker.rest", self.breaker.rest),
        ] {
            if time < Self::SHORTEST || time > Self::LONGEST {
                return Err(ConfigError::new(
                    field,
                    format!("{time:?}"),
                    format!("{:?} to {:?}", Self::SHORTEST, Self::LONGEST),
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
        within("breaker.calls", u64::from(self.breaker.calls), 1_000_000)?;
        within("breaker.percent", u64::from(self.breaker.percent), 100)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::lease::jittered;

    /// The defaults that the fields document.
    #[test]
    fn the_defaults_are_those_of_the_documentation() {
        let settings = SupervisorSettings::default();
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
        let settings = SupervisorSettings::default();
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
