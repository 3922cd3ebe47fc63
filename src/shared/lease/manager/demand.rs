use crate::shared::lease::state::LeaseState;

/// An estimate of the permits that requests of a key demand. Times are in nanoseconds of the node's clock.
#[derive(Debug, Default)]
pub(super) struct Demand {
    /// The permits to ask for: twice the most that a period has demanded lately. It is halved in each period.
    pub(super) target_permits: u64,
    /// The permits that were requested and not covered since the last request was made. Callers wait for the next request,
    /// which sets this to 0.
    pub(super) unmet_permits: u64,
    /// The part of this epoch's use that is counted.
    counted_permits: u64,
    counted_at: u64,
    halved_at: u64,
}

impl Demand {
    /// No demand until `now`.
    pub(super) fn since(now: u64) -> Self {
        Self {
            counted_at: now,
            halved_at: now,
            ..Self::default()
        }
    }

    /// Notes that the use counts from 0 again.
    pub(super) const fn begin_epoch(&mut self) {
        self.counted_permits = 0;
    }

    /// Sets the estimate to 0. The permits that callers wait for stay unmet.
    pub(super) fn end(&mut self, state: &LeaseState) {
        self.unmet_permits = self.unmet_permits.saturating_add(state.take_shortage());
        self.target_permits = 0;
    }

    /// Adds the demand since the last call to the estimate.
    pub(super) fn count(&mut self, state: &LeaseState, period: u64, now: u64) {
        let used = state.balance().used();
        let shortage = state.take_shortage();
        self.unmet_permits = self.unmet_permits.saturating_add(shortage);
        let permits = used.saturating_sub(self.counted_permits) + shortage;
        self.counted_permits = used;
        let periods = now.saturating_sub(self.halved_at) / period;
        let halvings = u32::try_from(periods).unwrap_or(64);
        self.target_permits = self.target_permits.checked_shr(halvings).unwrap_or(0);
        self.halved_at += periods * period;
        let elapsed = now.saturating_sub(self.counted_at);
        self.counted_at = now;
        // A few permits in a short time may be chance, so they are taken as the demand of a whole period.
        let min_elapsed = if permits < 8 { period } else { period / 8 };
        let rate = u128::from(permits) * u128::from(period) / u128::from(elapsed.max(min_elapsed).max(1));
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        self.target_permits = self.target_permits.max(rate.saturating_mul(2));
    }
}
