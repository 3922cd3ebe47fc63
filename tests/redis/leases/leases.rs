//! The mode `Lease`: nodes spend permits that the server has registered. No window holds more than the limit.

use crate::scenes;

#[test]
fn ten_windows_of_four_processes() {
    scenes::windows(false, true, 10);
}

#[test]
fn windows_of_cells() {
    scenes::windows(false, false, 5);
}

#[test]
fn clocks_are_hours_apart() {
    scenes::clocks_are_hours_apart(false);
}

#[test]
fn nodes_die_and_freeze() {
    scenes::nodes_die_and_freeze(false);
}

#[test]
fn nodes_wake_with_leases() {
    scenes::nodes_wake_with_leases(false);
}

#[test]
fn nothing_is_left_behind() {
    scenes::nothing_is_left_behind(false);
}
