//! Each error in each format: the position of the value, and the same message. Of fields, of lists, and of the rule set as a
//! whole.

use ringgate::rules::FileFormat;

use super::invalid;

/// The fields beside `name` of a rule `user`, in each format, and the expected message.
struct Case {
    toml: &'static str,
    json: &'static str,
    yaml: &'static str,
    message: &'static str,
}

/// Returns each text in a rule that follows another rule, so that no position is that of the first rule by chance.
fn in_rule(case: &Case) -> [(FileFormat, String); 3] {
    [
        (
            FileFormat::Toml,
            format!(
                "# a comment\n[[rules]]\nname = 'other'\nquota = '1/s'\n\n«[[rules]]\nname = 'user'\n{}\n",
                case.toml
            ),
        ),
        (
            FileFormat::Json,
            format!(
                "{{\n  \"rules\": [\n    {{\"name\": \"other\", \"quota\": \"1/s\"}},\n    «{{\n      \"name\": \"user\",\n      {}\n    }}\n  ]\n}}",
                case.json
            ),
        ),
        (
            FileFormat::Yaml,
            format!(
                "# a comment\nrules:\n- name: other\n  quota: 1/s\n-\n  «name: user\n  {}\n",
                case.yaml
            ),
        ),
    ]
}

fn check(cases: &[Case]) {
    let mut wrong = String::new();
    for case in cases {
        for (format, marked) in in_rule(case) {
            // The last mark is the position of the error. The first is the rule, for errors of the rule as a whole.
            let at = marked.rfind('«').expect("a mark");
            let before = &marked[..at].replace('«', "");
            let line = before.matches('\n').count() + 1;
            let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
            let found = invalid(format, &marked.replace('«', ""));
            let message = format!("rule \"user\": {}", case.message);
            if found != (line, column, message) {
                wrong += &format!("{format} {line}:{column} {}\n  found {found:?}\n", case.message);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn an_invalid_field_is_reported_at_its_value() {
    check(&[
        Case {
            toml: "«qouta = '2/s'",
            json: r#"«"qouta": "2/s""#,
            yaml: "«qouta: 2/s",
            message: "invalid field: \"qouta\" (expected name, renamed_from, quota, quotas, calendar, time_zone, in_flight, algorithm, cells, burst, key, prefix, cost, when, \
                    tiers, block, capacity, on_full, on_error, mode, shadow, enforce, allow or deny)",
        },
        Case {
            toml: "renamed_from = «7\nquota = '2/s'",
            json: r#""renamed_from": «7, "quota": "2/s""#,
            yaml: "renamed_from: «7\n  quota: 2/s",
            message: "invalid renamed_from: 7 (expected text: the previous name of the rule)",
        },
        Case {
            toml: "quota = «'2/fortnight'",
            json: r#""quota": «"2/fortnight""#,
            yaml: "quota: «2/fortnight",
            message: "invalid quota: \"2/fortnight\" (expected a limit, \"/\" or \"per\" or \"in\", and a window: 100/60s, \
                    5/min, 10 per second, 50MiB/s)",
        },
        Case {
            toml: "quota = «'0/s'",
            json: r#""quota": «"0/s""#,
            yaml: "quota: «0/s",
            message: "invalid limit: 0 (expected 1 to 1000000000000 permits)",
        },
        Case {
            toml: "quota = «5",
            json: r#""quota": «5"#,
            yaml: "quota: «5",
            message: "invalid quota: 5 (expected text such as \"100/60s\")",
        },
        Case {
            toml: "quota = «['2/s']",
            json: r#""quota": «["2/s"]"#,
            yaml: "quota: «[2/s]",
            message: "invalid quota: a list (expected text such as \"100/60s\")",
        },
        Case {
            toml: "",
            json: r#""key": "user""#,
            yaml: "key: user",
            message: "missing quota (expected text such as \"100/60s\", a list of such in quotas, text such as \"50_000/month\" in calendar, or a number in in_flight)",
        },
        Case {
            toml: "quota = '2/s'\nquotas = «['1/s']",
            json: "\"quota\": \"2/s\",\n \"quotas\": «[\"1/s\"]",
            yaml: "quota: 2/s\n  quotas: «[1/s]",
            message: "invalid quotas: given beside quota (expected one of the two)",
        },
        Case {
            toml: "quota = '2/s'\nin_flight = «5",
            json: "\"quota\": \"2/s\",\n \"in_flight\": «5",
            yaml: "quota: 2/s\n  in_flight: «5",
            message: "invalid in_flight: given beside quota (expected one of the two)",
        },
        Case {
            toml: "quotas = ['2/s']\nin_flight = «5",
            json: "\"quotas\": [\"2/s\"],\n \"in_flight\": «5",
            yaml: "quotas: [2/s]\n  in_flight: «5",
            message: "invalid in_flight: given beside quotas (expected one of the two)",
        },
        Case {
            toml: "in_flight = «0",
            json: r#""in_flight": «0"#,
            yaml: "in_flight: «0",
            message: "invalid in_flight: 0 (expected 1 to 1048575 requests in flight)",
        },
        Case {
            toml: "in_flight = «'5'",
            json: r#""in_flight": «"5""#,
            yaml: "in_flight: «'5'",
            message: "invalid in_flight: \"5\" (expected a whole number, not negative)",
        },
        Case {
            toml: "in_flight = 5\nalgorithm = «'counter'",
            json: "\"in_flight\": 5,\n \"algorithm\": «\"counter\"",
            yaml: "in_flight: 5\n  algorithm: «counter",
            message: "invalid algorithm: given beside in_flight (expected no algorithm)",
        },
        Case {
            toml: "in_flight = 5\ncells = «5",
            json: "\"in_flight\": 5,\n \"cells\": «5",
            yaml: "in_flight: 5\n  cells: «5",
            message: "invalid cells: 5 (expected no such field for a rule of requests in flight)",
        },
        Case {
            toml: "in_flight = 5\non_full = «'share'",
            json: "\"in_flight\": 5,\n \"on_full\": «\"share\"",
            yaml: "in_flight: 5\n  on_full: «share",
            message: "invalid on_full: Share (expected Deny or Admit for a rule of requests in flight)",
        },
        Case {
            toml: "quotas = «[]",
            json: r#""quotas": «[]"#,
            yaml: "quotas: «[]",
            message: "invalid quotas: an empty list (expected at least one quota)",
        },
        Case {
            toml: "quotas = «'2/s'",
            json: r#""quotas": «"2/s""#,
            yaml: "quotas: «2/s",
            message: "invalid quotas: \"2/s\" (expected a list of text such as \"100/60s\")",
        },
        Case {
            toml: "quotas = [\n  '2/s',\n  «true,\n]",
            json: "\"quotas\": [\n  \"2/s\",\n  «true\n]",
            yaml: "quotas:\n  - 2/s\n  - «true",
            message: "invalid quotas: true (expected text such as \"100/60s\")",
        },
        Case {
            toml: "quotas = [\n  '2/s',\n  «'2/0s',\n]",
            json: "\"quotas\": [\n  \"2/s\",\n  «\"2/0s\"\n]",
            yaml: "quotas:\n  - 2/s\n  - «2/0s",
            message: "invalid window: 0ns (expected 1µs to 366 days)",
        },
        Case {
            toml: "quota = '2/s'\nalgorithm = «'counters'",
            json: r#""quota": "2/s", "algorithm": «"counters""#,
            yaml: "quota: 2/s\n  algorithm: «counters",
            message: "invalid algorithm: \"counters\" (expected \"sliding-window\", \"counter\", \"classic\", \"even\", \"fixed\", \"log\" or \"gcra\")",
        },
        Case {
            toml: "quota = '2/s'\ncells = «'5'",
            json: r#""quota": "2/s", "cells": «"5""#,
            yaml: "quota: 2/s\n  cells: «'5'",
            message: "invalid cells: \"5\" (expected a whole number, not negative)",
        },
        Case {
            toml: "quota = '2/s'\ncells = «-5",
            json: r#""quota": "2/s", "cells": «-5"#,
            yaml: "quota: 2/s\n  cells: «-5",
            message: "invalid cells: -5 (expected a whole number, not negative)",
        },
        Case {
            toml: "quota = '2/s'\nburst = «2.5",
            json: r#""quota": "2/s", "burst": «2.5"#,
            yaml: "quota: 2/s\n  burst: «2.5",
            message: "invalid burst: 2.5 (expected a whole number, not negative)",
        },
        Case {
            toml: "quota = '2/s'\ncapacity = «{}",
            json: r#""quota": "2/s", "capacity": «{}"#,
            yaml: "quota: 2/s\n  capacity: «{}",
            message: "invalid capacity: a map (expected a whole number, not negative)",
        },
        Case {
            toml: "quota = '2/s'\nkey = «'usr'",
            json: r#""quota": "2/s", "key": «"usr""#,
            yaml: "quota: 2/s\n  key: «usr",
            message: "invalid key: \"usr\" (expected \"user\" or \"number\")",
        },
        Case {
            toml: "quota = '2/s'\nkey = «1",
            json: r#""quota": "2/s", "key": «1"#,
            yaml: "quota: 2/s\n  key: «1",
            message: "invalid key: 1 (expected \"user\" or \"number\")",
        },
        Case {
            toml: "quota = '2/s'\ncost = «'rows'",
            json: r#""quota": "2/s", "cost": «"rows""#,
            yaml: "quota: 2/s\n  cost: «rows",
            message: "invalid cost: \"rows\" (expected \"bytes\")",
        },
        Case {
            toml: "quota = '2/s'\nwhen = «'user'",
            json: r#""quota": "2/s", "when": «"user""#,
            yaml: "quota: 2/s\n  when: «user",
            message: "invalid when: \"user\" (expected \"upload\")",
        },
        Case {
            toml: "quota = '2/s'\non_full = «'panic'",
            json: r#""quota": "2/s", "on_full": «"panic""#,
            yaml: "quota: 2/s\n  on_full: «panic",
            message: "invalid on_full: \"panic\" (expected \"share\", \"deny\", \"admit\" or \"forget\")",
        },
        Case {
            toml: "quota = '2/s'\non_error = «'panic'",
            json: r#""quota": "2/s", "on_error": «"panic""#,
            yaml: "quota: 2/s\n  on_error: «panic",
            message: "invalid on_error: \"panic\" (expected \"local\", \"share\", \"deny\" or \"admit\")",
        },
        Case {
            toml: "quota = '2/s'\nmode = «'lease'",
            json: r#""quota": "2/s", "mode": «"lease""#,
            yaml: "quota: 2/s\n  mode: «lease",
            message: "invalid mode: \"lease\" (expected \"strict\", \"local\", or a map with lease or sync)",
        },
        Case {
            toml: "quota = '2/s'\nmode = { lease = { permits = «0 } }",
            json: r#""quota": "2/s", "mode": {"lease": {"permits": «0}}"#,
            yaml: "quota: 2/s\n  mode: {lease: {permits: «0}}",
            message: "invalid permits: 0 (expected 1 to 1000000 permits)",
        },
        Case {
            toml: "quota = '2/s'\nmode = { sync = { period = «'1 week', pending = 5 } }",
            json: r#""quota": "2/s", "mode": {"sync": {"period": «"1 week", "pending": 5}}"#,
            yaml: "quota: 2/s\n  mode: {sync: {period: «1 week, pending: 5}}",
            message: "invalid period: \"1 week\" (expected text such as \"100ms\", of 1ms to 60s)",
        },
        Case {
            toml: "quota = '2/s'\nmode = { sync = { period = «'2min', pending = 5 } }",
            json: r#""quota": "2/s", "mode": {"sync": {"period": «"2min", "pending": 5}}"#,
            yaml: "quota: 2/s\n  mode: {sync: {period: «2min, pending: 5}}",
            message: "invalid period: 120s (expected 1ms to 60s)",
        },
        Case {
            toml: "quota = '2/s'\nmode = { sync = «{ period = '1s' } }",
            json: r#""quota": "2/s", "mode": {"sync": «{"period": "1s"}}"#,
            yaml: "quota: 2/s\n  mode: {sync: «{period: 1s}}",
            message: "missing pending (expected a number of permits)",
        },
        Case {
            toml: "quota = '2/s'\nshadow = «'yes'",
            json: r#""quota": "2/s", "shadow": «"yes""#,
            yaml: "quota: 2/s\n  shadow: «yes",
            message: "invalid shadow: \"yes\" (expected true or false)",
        },
        Case {
            toml: "quota = '2/s'\nenforce = «'10'",
            json: r#""quota": "2/s", "enforce": «"10""#,
            yaml: "quota: 2/s\n  enforce: «'10'",
            message: "invalid enforce: \"10\" (expected text from \"0%\" to \"100%\")",
        },
        Case {
            toml: "quota = '2/s'\nenforce = «10",
            json: r#""quota": "2/s", "enforce": «10"#,
            yaml: "quota: 2/s\n  enforce: «10",
            message: "invalid enforce: 10 (expected text from \"0%\" to \"100%\")",
        },
        Case {
            toml: "quota = '2/s'\nshadow = true\nenforce = «'10%'",
            json: r#""quota": "2/s", "shadow": true, "enforce": «"10%""#,
            yaml: "quota: 2/s\n  shadow: true\n  enforce: «10%",
            message: "invalid enforce: given beside shadow (expected one of the two)",
        },
    ]);
}

#[test]
fn an_invalid_tier_is_reported_at_its_value() {
    check(&[
        Case {
            toml: "quota = '2/s'\ntiers = «'plan'",
            json: r#""quota": "2/s", "tiers": «"plan""#,
            yaml: "quota: 2/s\n  tiers: «plan",
            message: "invalid tiers: \"plan\" (expected a map with the fields by and limits)",
        },
        Case {
            toml: "quota = '2/s'\ntiers = { by = 'plan', «limit = {} }",
            json: r#""quota": "2/s", "tiers": {"by": "plan", «"limit": {}}"#,
            yaml: "quota: 2/s\n  tiers:\n    by: plan\n    «limit: {}",
            message: "invalid field: \"limit\" (expected by or limits)",
        },
        Case {
            toml: "quota = '2/s'\ntiers = «{ limits = { free = 1 } }",
            json: r#""quota": "2/s", "tiers": «{"limits": {"free": 1}}"#,
            yaml: "quota: 2/s\n  tiers:\n    «limits: { free: 1 }",
            message: "missing by (expected the name of a tier function)",
        },
        Case {
            toml: "quota = '2/s'\ntiers = { by = «'paln', limits = { free = 1 } }",
            json: r#""quota": "2/s", "tiers": {"by": «"paln", "limits": {"free": 1}}"#,
            yaml: "quota: 2/s\n  tiers:\n    by: «paln\n    limits: { free: 1 }",
            message: "invalid by: \"paln\" (expected \"plan\")",
        },
        Case {
            toml: "quota = '2/s'\ntiers = «{ by = 'plan' }",
            json: r#""quota": "2/s", "tiers": «{"by": "plan"}"#,
            yaml: "quota: 2/s\n  tiers: «{ by: plan }",
            message: "missing limits (expected a map of tier names to limits)",
        },
        Case {
            toml: "quota = '2/s'\ntiers = { by = 'plan', limits = «[1] }",
            json: r#""quota": "2/s", "tiers": {"by": "plan", "limits": «[1]}"#,
            yaml: "quota: 2/s\n  tiers:\n    by: plan\n    limits: «[1]",
            message: "invalid limits: a list (expected a map of tier names to limits)",
        },
        Case {
            toml: "quota = '2/s'\ntiers = { by = 'plan', limits = { free = «'one' } }",
            json: r#""quota": "2/s", "tiers": {"by": "plan", "limits": {"free": «"one"}}"#,
            yaml: "quota: 2/s\n  tiers:\n    by: plan\n    limits: { free: «one }",
            message: "invalid limits: \"one\" (expected a whole number, not negative)",
        },
        Case {
            toml: "quota = '2/s'\n[rules.tiers]\nby = 'plan'\n[rules.tiers.limits]\nfree = 1\npaid = «0",
            json: "\"quota\": \"2/s\", \"tiers\": {\"by\": \"plan\", \"limits\": {\"free\": 1,\n \"paid\": «0}}",
            yaml: "quota: 2/s\n  tiers:\n    by: plan\n    limits:\n      free: 1\n      paid: «0",
            message: "invalid limit: 0 (expected 1 to 1000000000000 permits)",
        },
        Case {
            toml: "quota = '2/1ms'\ntiers = { by = 'plan', limits = { free = 1, paid = «1000000000 } }",
            json: r#""quota": "2/1ms", "tiers": {"by": "plan", "limits": {"free": 1, "paid": «1000000000}}"#,
            yaml: "quota: 2/1ms\n  tiers:\n    by: plan\n    limits:\n      free: 1\n      paid: «1000000000",
            message: "invalid limit: 1000000000 permits with cells of 16.667µs (expected at most 16383 permits with such cells, or \
                    fewer and wider cells)",
        },
        Case {
            toml: "quota = '2/s'\ntiers = «{ by = 'plan', limits = {} }",
            json: r#""quota": "2/s", "tiers": «{"by": "plan", "limits": {}}"#,
            yaml: "quota: 2/s\n  tiers: «{ by: plan, limits: {} }",
            message: "invalid tiers: a function without tiers (expected tiers, and a function that returns the tier of a request)",
        },
        Case {
            toml: "quotas = ['2/s', '9/min']\ntiers = «{ by = 'plan', limits = { free = 1 } }",
            json: r#""quotas": ["2/s", "9/min"], "tiers": «{"by": "plan", "limits": {"free": 1}}"#,
            yaml: "quotas: [2/s, 9/min]\n  tiers: «{ by: plan, limits: { free: 1 } }",
            message: "invalid tiers: given for a rule with several quotas (expected a rule with one quota)",
        },
        Case {
            toml: "quota = '2/s'\nalgorithm = 'log'\ntiers = «{ by = 'plan', limits = { free = 1 } }",
            json: r#""quota": "2/s", "algorithm": "log", "tiers": «{"by": "plan", "limits": {"free": 1}}"#,
            yaml: "quota: 2/s\n  algorithm: log\n  tiers: «{ by: plan, limits: { free: 1 } }",
            message: "invalid tiers: a tier of 1 permits (expected no tiers for a log rule, which has one slot per permit)",
        },
    ]);
}

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
