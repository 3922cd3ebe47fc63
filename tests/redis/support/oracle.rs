//! Bounds of admissions, by the stamps of the server or by the times of the calls.

pub(crate) use crate::windows::most_in_a_window;

/// The most calls that begin and end within any interval of one window. The count holds whatever the clocks are.
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
