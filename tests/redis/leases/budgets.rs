//! The mode `Sync`: nodes spend budgets without the server and charge them later. Each node but one may exceed the
//! limit by its pending permits, and no window holds more than that.

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
