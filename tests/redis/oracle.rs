//! What must hold of admissions, by the server's own stamps or by the calls' own times.

/// The most stamps in any window: those `s` with `t - window < s <= t`.
pub(crate) fn most_in_a_window(stamps: &mut [(u64, u64)], window: u64) -> u64 {
    stamps.sort_unstable();
    let (mut most, mut within, mut oldest) = (0, 0, 0);
    for &(at, permits) in &*stamps {
        within += permits;
        while stamps[oldest].0 + window <= at {
            within -= stamps[oldest].1;
            oldest += 1;
        }
        most = most.max(within);
    }
    most
}

/// The most calls that lie wholly within any interval of one window: sound whatever clocks say.
pub(crate) fn most_calls_in_a_window(
    calls: &[(std::time::Instant, std::time::Instant)],
    window: core::time::Duration,
) -> usize {
    let within = |begin: std::time::Instant| {
        let end = begin + window;
        calls
            .iter()
            .filter(|call| call.0 >= begin && call.1 < end)
            .count()
    };
    calls.iter().map(|call| within(call.0)).max().unwrap_or(0)
}

#[test]
fn windows_are_half_open() {
    let mut stamps = [(10, 1), (0, 1), (3, 2), (13, 1)];
    assert_eq!(most_in_a_window(&mut stamps, 10), 3);
    assert_eq!(most_in_a_window(&mut stamps, 11), 4);
    assert_eq!(most_in_a_window(&mut [], 11), 0);
}
