//! Errors of lists and of the rule set as a whole, in each format.

use super::errors::{Case, check};

#[test]
fn an_invalid_list_entry_is_reported_at_its_position() {
    check(&[
        Case {
            toml: "quota = '2/s'\nkey = 'number'\nallow = ['1', «'bob']",
            json: "\"quota\": \"2/s\", \"key\": \"number\", \"allow\": [\"1\",\n «\"bob\"]",
            yaml: "quota: 2/s\n  key: number\n  allow: ['1', «bob]",
            message: "invalid allow: \"bob\" (expected a value of the key \"number\": invalid digit found in string)",
        },
        Case {
            toml: "quota = '2/s'\nkey = 'number'\ndeny = [«'']",
            json: r#""quota": "2/s", "key": "number", "deny": [«""]"#,
            yaml: "quota: 2/s\n  key: number\n  deny:\n  - «''",
            message: "invalid deny: \"\" (expected a value of the key \"number\": cannot parse integer from empty string)",
        },
        Case {
            toml: "quota = '2/s'\nkey = 'number'\ndeny = [«7]",
            json: r#""quota": "2/s", "key": "number", "deny": [«7]"#,
            yaml: "quota: 2/s\n  key: number\n  deny:\n  - «7",
            message: "invalid deny: 7 (expected a list of keys, each as text)",
        },
        Case {
            toml: "quota = '2/s'\nkey = 'user'\nallow = «'bob'",
            json: r#""quota": "2/s", "key": "user", "allow": «"bob""#,
            yaml: "quota: 2/s\n  key: user\n  allow: «bob",
            message: "invalid allow: \"bob\" (expected a list of keys, each as text)",
        },
        Case {
            toml: "quota = '2/s'\nallow = «['bob']",
            json: r#""quota": "2/s", "allow": «["bob"]"#,
            yaml: "quota: 2/s\n  allow: «[bob]",
            message: "invalid allow: given for a rule without a key (expected a rule with a key)",
        },
    ]);
}

/// Errors that are found when the rule set is built.
#[test]
fn an_error_of_the_rule_set_is_reported_at_its_value() {
    check(&[
        Case {
            toml: "renamed_from = «'other'\nquota = '2/s'",
            json: r#""renamed_from": «"other", "quota": "2/s""#,
            yaml: "renamed_from: «other\n  quota: 2/s",
            message: "invalid renamed_from: \"other\" (expected a name that no other rule has or was renamed from)",
        },
        Case {
            toml: "quota = '2/s'\ncells = «0",
            json: r#""quota": "2/s", "cells": «0"#,
            yaml: "quota: 2/s\n  cells: «0",
            message: "invalid cells: 0 (expected 1 to 4096)",
        },
        Case {
            toml: "quota = '2/s'\nalgorithm = 'fixed'\ncells = «2",
            json: r#""quota": "2/s", "algorithm": "fixed", "cells": «2"#,
            yaml: "quota: 2/s\n  algorithm: fixed\n  cells: «2",
            message: "invalid cells: 2 (expected no cells for a fixed window, which is one cell)",
        },
        Case {
            toml: "quota = '2/s'\nburst = «2",
            json: r#""quota": "2/s", "burst": «2"#,
            yaml: "quota: 2/s\n  burst: «2",
            message: "invalid burst: 2 (expected no burst, except for a gcra rule)",
        },
        Case {
            toml: "quota = '1/day'\nalgorithm = 'gcra'\nburst = «367",
            json: r#""quota": "1/day", "algorithm": "gcra", "burst": «367"#,
            yaml: "quota: 1/day\n  algorithm: gcra\n  burst: «367",
            message: "invalid burst: 367 (expected 1 to 366 permits, the limit or what 366 days refill)",
        },
        Case {
            toml: "key = 'user'\nquotas = [\n'2/s',\n«'1000000000/1ms']",
            json: "\"key\": \"user\", \"quotas\": [\"2/s\",\n«\"1000000000/1ms\"]",
            yaml: "key: user\n  quotas:\n  - 2/s\n  - «1000000000/1ms",
            message: "invalid limit: 1000000000 permits with cells of 16.667µs (expected at most 16383 permits with such cells, or \
                    fewer and wider cells, or a rule with a cost)",
        },
        Case {
            toml: "quota = '2/s'\nalgorithm = 'gcra'\ncells = «5",
            json: r#""quota": "2/s", "algorithm": "gcra", "cells": «5"#,
            yaml: "quota: 2/s\n  algorithm: gcra\n  cells: «5",
            message: "invalid cells: 5 (expected no cells for a gcra rule)",
        },
        Case {
            toml: "quota = «'1001/1us'\nalgorithm = 'gcra'",
            json: r#""quota": «"1001/1us", "algorithm": "gcra""#,
            yaml: "quota: «1001/1us\n  algorithm: gcra",
            message: "invalid limit: 1001 permits in 1µs (expected at most one permit per nanosecond, here 1000 permits, or a \
                      rule with a cost)",
        },
        Case {
            toml: "algorithm = 'log'\nquota = «'1048577/s'",
            json: r#""algorithm": "log", "quota": «"1048577/s""#,
            yaml: "algorithm: log\n  quota: «1048577/s",
            message: "invalid limit: 1048577 (expected 1 to 1048576 permits for a timestamp ring, or a rule with a cost)",
        },
        Case {
            toml: "quota = '2/s'\nkey = 'user'\ncapacity = «0",
            json: r#""quota": "2/s", "key": "user", "capacity": «0"#,
            yaml: "quota: 2/s\n  key: user\n  capacity: «0",
            message: "invalid capacity: 0 (expected 1 to 4294967296 keys)",
        },
        Case {
            toml: "quota = '2/s'\ncapacity = «5",
            json: r#""quota": "2/s", "capacity": «5"#,
            yaml: "quota: 2/s\n  capacity: «5",
            message: "invalid capacity: given for a rule without a key (expected a rule with a key)",
        },
        Case {
            toml: "quota = '2/s'\nenforce = «'10%'",
            json: r#""quota": "2/s", "enforce": «"10%""#,
            yaml: "quota: 2/s\n  enforce: «10%",
            message: "invalid enforce: given for a rule without a key (expected a rule with a key)",
        },
        Case {
            toml: "quota = '2/s'\nkey = 'user'\nenforce = «'100.5%'",
            json: r#""quota": "2/s", "key": "user", "enforce": «"100.5%""#,
            yaml: "quota: 2/s\n  key: user\n  enforce: «100.5%",
            message: "invalid enforce: 100.5 % (expected 0 to 100 %)",
        },
    ]);
}
