//! The exact count with which tests compare a bound.

/// The most permits in any window of the history. The window that ends at `t` holds the admissions at `s` with
/// `t − window < s ≤ t`. The worst window ends at an admission.
pub(crate) fn most_in_a_window(admissions: &mut [(u64, u64)], window: u64) -> u64 {
    admissions.sort_unstable();
    let (mut first, mut sum, mut most) = (0, 0, 0);
    for &(end, permits) in &*admissions {
        sum += permits;
        // An admission that is exactly one window old does not count.
        while admissions[first].0 + window <= end {
            sum -= admissions[first].1;
            first += 1;
        }
        most = most.max(sum);
    }
    most
}

#[test]
fn windows_are_half_open() {
    let mut admissions = [(10, 1), (0, 1), (3, 2), (13, 1)];
    assert_eq!(most_in_a_window(&mut admissions, 10), 3);
    assert_eq!(most_in_a_window(&mut admissions, 11), 4);
    assert_eq!(most_in_a_window(&mut [], 11), 0);
}
