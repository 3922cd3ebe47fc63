//! Syncs: nodes that spend budgets of their own, and push what they have spent. Each node but one may admit as much as it
//! may have pending beyond the limit, and no more.

use crate::scenes;

#[test]
fn ten_windows_of_four_processes() {
    scenes::windows(true, true, 10);
}

#[test]
fn clocks_are_hours_apart() {
    scenes::clocks_are_hours_apart(true);
}

#[test]
fn nodes_die_and_freeze() {
    scenes::nodes_die_and_freeze(true);
}

#[test]
fn nodes_wake_with_leases() {
    scenes::nodes_wake_with_leases(true);
}

#[test]
fn nothing_is_left_behind() {
    scenes::nothing_is_left_behind(true);
}
