//! Nodes in separate processes. In the mode `Lease` no window holds more than the limit. In the mode `Sync` each node but one may
//! exceed it by its pending permits.

macro_rules! in_mode {
    ($mode:ident, sync: $sync:literal) => {
        mod $mode {
            use crate::scenes;

            #[test]
            fn ten_windows_of_four_processes() {
                scenes::windows($sync, true, 10);
            }

            #[test]
            fn clocks_are_hours_apart() {
                scenes::clocks_are_hours_apart($sync);
            }

            #[test]
            fn nodes_die_and_freeze() {
                scenes::nodes_die_and_freeze($sync);
            }

            #[test]
            fn nodes_wake_with_leases() {
                scenes::nodes_wake_with_leases($sync);
            }

            #[test]
            fn nothing_is_left_behind() {
                scenes::nothing_is_left_behind($sync);
            }
        }
    };
}

in_mode!(registered, sync: false);
in_mode!(budgets, sync: true);

#[test]
fn windows_of_cells() {
    crate::scenes::windows(false, false, 5);
}
