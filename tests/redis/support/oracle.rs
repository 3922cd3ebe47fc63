//! The bounds of admissions, by the server's own stamps or by the calls' own times.

pub(crate) use crate::windows::most_in_a_window;

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
