use std::time::Duration;

use arbitrary::Arbitrary;
use ringgate::{ConfigError, CounterRing, Gcra, Quota, SlidingWindow, TimestampRing, UnitRing};

use crate::Any;

/// An algorithm.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Strict,
    Classic,
    Even,
    /// Three windows over one state, counted strictly.
    Several,
    TimestampRing,
    Gcra,
    Units,
    /// The default, which chooses one of the others.
    Window,
}

/// An algorithm and a quota. Small quotas are more frequent than large ones.
#[derive(Arbitrary, Clone, Debug)]
pub struct Setting {
    pub kind: Kind,
    limit: u16,
    window: u16,
    window_scale: u8,
    cells: u8,
    burst: u8,
    unpacked: bool,
}

impl Setting {
    pub fn limit(&self) -> u64 {
        // Mostly 1 to 16, so that short sequences of calls reach the limit.
        match self.limit {
            limit @ ..0xf000 => 1 + u64::from(limit % 16),
            limit @ 0xf000.. => 1 + u64::from(limit - 0xf000) / 16,
        }
    }

    pub fn window(&self) -> Duration {
        let scale = [1_000, 1_000, 7_919, 1_000_000, 1_000_000_000, 60_000_000_000]
            [usize::from(self.window_scale % 6)];
        Duration::from_nanos((1 + u64::from(self.window)) * scale)
    }

    pub fn cells(&self) -> u64 {
        match self.cells {
            cells @ ..240 => 1 + u64::from(cells % 12),
            cells @ 240.. => u64::from(cells - 200),
        }
    }

    pub fn burst(&self) -> u64 {
        1 + u64::from(self.burst)
    }

    /// Returns the windows of the algorithm, each with the most permits that it may admit in any such window.
    pub fn bounds(&self, algorithm: &Any) -> Vec<(u64, Duration)> {
        use ringgate::Algorithm;
        let mut bounds = vec![(algorithm.bound(), algorithm.window())];
        if self.kind == Kind::Several {
            bounds.extend(
                self.more()
                    .into_iter()
                    .flatten()
                    .map(|quota| (quota.limit(), quota.window())),
            );
        }
        bounds
    }

    fn more(&self) -> [Result<Quota, ConfigError>; 2] {
        [
            Quota::new(self.limit() * 2, self.window() * 3),
            Quota::new(self.limit().div_ceil(2), self.window() / 4),
        ]
    }

    /// Builds the algorithm.
    ///
    /// # Errors
    ///
    /// The library rejects the quota.
    pub fn build(&self) -> Result<Any, ConfigError> {
        let quota = Quota::new(self.limit(), self.window())?;
        let ring = CounterRing::builder(quota).cells(self.cells());
        let ring = if self.unpacked { ring.unpacked() } else { ring };
        Ok(match self.kind {
            Kind::Strict => Any::Counter(ring.build()?),
            Kind::Classic => Any::Counter(ring.classic().build()?),
            Kind::Even => Any::Counter(ring.even().build()?),
            Kind::Several => {
                let [longer, shorter] = self.more();
                Any::Counter(ring.also(longer?).also(shorter?).build()?)
            }
            Kind::TimestampRing => Any::Log(TimestampRing::new(quota)?),
            Kind::Gcra => Any::Gcra(Gcra::token_bucket(quota, self.burst())?),
            Kind::Units => UnitRing::new(quota)?.into(),
            Kind::Window => SlidingWindow::new(quota)?.into(),
        })
    }
}
