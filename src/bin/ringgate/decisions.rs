//! The decisions of one limiter per client, over requests in order of time.

use jiff::Timestamp;
use ringgate::{Algorithm, Nanos};

use crate::failure::Failure;
use crate::requests::Request;
use crate::words::LazyWords;

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// Twenty years in nanoseconds: the time that every algorithm of the crate can count, its window included.
const HORIZON: u64 = 20 * 366 * 24 * 3600 * SECOND;

/// One policy, and what it has decided for each client.
#[derive(Debug)]
pub(crate) struct Decisions<'a, A> {
    policy: &'a A,
    clients: Vec<Client>,
    span: Option<Span>,
}

/// One client's limiter, and what became of its requests.
#[derive(Debug, Default)]
pub(crate) struct Client {
    words: LazyWords,
    pub(crate) requests: u64,
    pub(crate) denied: u64,
}

/// The time from the first request to the last, in seconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) first: i64,
    pub(crate) last: i64,
    /// The limiter's reading at `first`, in nanoseconds: how far that is into the window that
    /// begins at a whole multiple.
    phase: u64,
    /// The most seconds after `first` that the limiter can count.
    longest: u64,
}

impl Span {
    fn new(first: i64, window: u64) -> Self {
        let phase = (i128::from(first) * i128::from(SECOND)).rem_euclid(i128::from(window));
        // Less than a window, which is at most 366 days.
        let phase = u64::try_from(phase).unwrap_or(0);
        Self {
            first,
            last: first,
            phase,
            longest: (HORIZON - window - phase) / SECOND,
        }
    }

    /// The limiter's reading at `second`; `None` when it cannot count so far.
    #[inline]
    fn reading(&self, second: i64) -> Option<Nanos> {
        let elapsed = second.abs_diff(self.first);
        (elapsed <= self.longest).then(|| Nanos::new(self.phase + elapsed * SECOND))
    }
}

impl<'a, A: Algorithm> Decisions<'a, A> {
    pub(crate) fn new(policy: &'a A) -> Self {
        Self {
            policy,
            clients: Vec::new(),
            span: None,
        }
    }

    /// Whether a request at `second` is no earlier than the last one.
    #[inline]
    pub(crate) fn is_next(&self, second: i64) -> bool {
        self.span.is_none_or(|span| span.last <= second)
    }

    /// Decides a request that is no earlier than the last one.
    #[inline]
    pub(crate) fn decide(&mut self, request: Request) -> Result<(), Failure> {
        let Request { second, key } = request;
        let policy = self.policy;
        let span = self.span.get_or_insert_with(|| {
            // At most 366 days: 55 bits.
            let window = u64::try_from(policy.window().as_nanos()).unwrap_or(u64::MAX);
            Span::new(second, window)
        });
        let Some(now) = span.reading(second) else {
            return Err(too_long(*span, second));
        };
        span.last = second;
        let index = key as usize;
        if index >= self.clients.len() {
            self.clients.resize_with(index + 1, Client::default);
        }
        let client = &mut self.clients[index];
        client.requests += 1;
        if policy.decide(&client.words, now, 1).is_err() {
            client.denied += 1;
        }
        Ok(())
    }

    /// The clients by their numbers, and the time; `None` when nothing was decided.
    pub(crate) fn finish(self) -> Option<(Vec<Client>, Span)> {
        Some((self.clients, self.span?))
    }
}

#[cold]
fn too_long(span: Span, second: i64) -> Failure {
    const DAY: u64 = 24 * 3600;
    Failure::TooLong {
        first: text(span.first),
        late: text(second),
        days: span.longest / DAY,
    }
}

/// An instant in RFC 3339.
pub(crate) fn text(second: i64) -> String {
    // Every second came from a time stamp of jiff's.
    Timestamp::from_second(second).unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::{SECOND, Span};
    use ringgate::Nanos;

    #[test]
    fn readings_count_from_a_whole_multiple_of_the_window() {
        let minute = 60 * SECOND;
        let span = Span::new(125, minute);
        assert_eq!(span.reading(125), Some(Nanos::new(5 * SECOND)));
        assert_eq!(span.reading(126), Some(Nanos::new(6 * SECOND)));
        // Before 1970, the multiple is the one before, too.
        assert_eq!(
            Span::new(-125, minute).reading(-125),
            Some(Nanos::new(55 * SECOND))
        );
        // A window that does not divide a second.
        assert_eq!(
            Span::new(1, 300_000_000).reading(1),
            Some(Nanos::new(100_000_000))
        );
    }

    #[test]
    fn the_longest_window_leaves_more_than_eighteen_years() {
        let window = 366 * 24 * 3600 * SECOND;
        let span = Span::new(-1, window);
        let days = 18 * 366 * 24 * 3600;
        assert_eq!(
            span.reading(days - 1),
            Some(Nanos::new(window - SECOND + 18 * window))
        );
        assert_eq!(span.reading(days + 1), None);
    }
}
