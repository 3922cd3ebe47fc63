use std::time::Duration;

use ringgate::Nanos;

/// The exact log: every admission that was not refunded, with the time that its decision used.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The times and their permits, ordered by time. No time occurs twice.
    admissions: Vec<(u64, u64)>,
}

impl Log {
    pub fn add(&mut self, at: Nanos, permits: u64) {
        match self.admissions.binary_search_by_key(&at.get(), |&(at, _)| at) {
            Ok(same) => self.admissions[same].1 += permits,
            Err(place) => self.admissions.insert(place, (at.get(), permits)),
        }
    }

    pub fn remove(&mut self, at: Nanos, permits: u64) {
        let place = self
            .admissions
            .binary_search_by_key(&at.get(), |&(at, _)| at)
            .expect("refunded permits were admitted");
        self.admissions[place].1 -= permits;
    }

    /// The most permits in any interval (t − W, t].
    pub fn largest(&self, window: Duration) -> u64 {
        let window = window.as_nanos() as u64;
        let (mut first, mut sum, mut largest) = (0, 0, 0);
        for &(at, permits) in &self.admissions {
            sum += permits;
            while self.admissions[first].0 + window <= at {
                sum -= self.admissions[first].1;
                first += 1;
            }
            largest = largest.max(sum);
        }
        largest
    }

    /// The permits in the interval (t − W, t].
    pub fn within(&self, now: Nanos, window: Duration) -> u64 {
        let counts = |at: u64| at <= now.get() && now.get() - at < window.as_nanos() as u64;
        self.admissions
            .iter()
            .filter(|&&(at, _)| counts(at))
            .map(|&(_, permits)| permits)
            .sum()
    }
}
