//! Each error in each format: the position of the value, and the same message. Of fields, of lists, and of the rule set as a
//! whole.

use ringgate::rules::FileFormat;

use super::{invalid, json_of, marked, yaml_of};

/// Returns the fields of a rule in each format, in a rule that follows another rule, so that no position is that of the first rule by
/// chance.
fn in_rule(toml: &str, json: &str, yaml: &str) -> [(FileFormat, String); 3] {
    let toml = format!(
        "# a comment\n[[rules]]\nname = 'other'\nquota = '1/s'\n\n«[[rules]]\nname = 'user'\n{toml}\n"
    );
    let json = format!(
        "{{\n  \"rules\": [\n    {{\"name\": \"other\", \"quota\": \"1/s\"}},\n    «{{\n      \"name\": \"user\",\n      {json}\n    }}\n  ]\n}}"
    );
    let yaml = format!("# a comment\nrules:\n- name: other\n  quota: 1/s\n-\n  «name: user\n  {yaml}\n");
    [
        (FileFormat::Toml, toml),
        (FileFormat::Json, json),
        (FileFormat::Yaml, yaml),
    ]
}

/// Each case: the fields beside `name` in TOML, JSON and YAML, with a mark at the position of the error, and the message.
fn check_each(cases: &[(&str, &str, &str, &str)]) {
    let mut wrong = String::new();
    for (toml, json, yaml, message) in cases {
        for (format, text) in in_rule(toml, json, yaml) {
            // The last mark is the position of the error. The first is the rule, for errors of the rule as a whole.
            let (line, column, text) = marked(&text);
            let found = invalid(format, &text);
            if found != (line, column, format!("rule \"user\": {message}")) {
                wrong += &format!("{format} {line}:{column} {message}\n  found {found:?}\n");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Cases that are separated by empty lines: the fields in TOML, which are also written as JSON and YAML, and the message.
fn check(cases: &str) {
    for case in cases.trim().split("\n\n") {
        let (toml, message) = case.split_once("\n=> ").expect(case);
        check_each(&[(toml, &json_of(toml), &yaml_of(toml), message)]);
    }
}

#[test]
fn an_invalid_field_is_reported_at_its_value() {
    check(
        r#"
«qouta = '2/s'
=> invalid field: "qouta" (expected name, renamed_from, quota, quotas, calendar, time_zone, in_flight, algorithm, cells, burst, key, prefix, cost, when, tiers, block, capacity, on_full, on_error, mode, shadow, enforce, allow or deny)

renamed_from = «7
quota = '2/s'
=> invalid renamed_from: 7 (expected text: the previous name of the rule)

quota = «'2/fortnight'
=> invalid quota: "2/fortnight" (expected a limit, "/" or "per" or "in", and a window: 100/60s, 5/min, 10 per second, 50MiB/s)

quota = «'0/s'
=> invalid limit: 0 (expected 1 to 1000000000000 permits)

quota = «5
=> invalid quota: 5 (expected text such as "100/60s")

quota = «['2/s']
=> invalid quota: a list (expected text such as "100/60s")

quota = '2/s'
quotas = «['1/s']
=> invalid quotas: given beside quota (expected one of the two)

quota = «'2/s'
in_flight = 5
=> invalid quota: given beside in_flight (expected one of the two)

quotas = «['2/s']
in_flight = 5
=> invalid quotas: given beside in_flight (expected one of the two)

quota = «'2/s'
calendar = '5/day'
=> invalid quota: given beside calendar (expected one of the two)

in_flight = «5
calendar = '5/day'
=> invalid in_flight: given beside calendar (expected one of the two)

in_flight = «0
=> invalid in_flight: 0 (expected 1 to 1048575 requests in flight)

in_flight = «'5'
=> invalid in_flight: "5" (expected a whole number, not negative)

in_flight = 5
algorithm = «'counters'
=> invalid algorithm: given beside in_flight (expected a rule with quota or quotas)

in_flight = 5
cells = «'many'
=> invalid cells: given beside in_flight (expected a rule with quota or quotas)

in_flight = 5
burst = «5
=> invalid burst: given beside in_flight (expected a rule with quota or quotas)

in_flight = 5
cost = «'unknown'
=> invalid cost: given beside in_flight (expected a rule with quota, quotas or calendar)

in_flight = 5
time_zone = «'UTC'
=> invalid time_zone: given beside in_flight (expected a rule with calendar)

in_flight = 5
on_full = «'share'
=> invalid on_full: "share" (expected "deny" or "admit")

in_flight = 5
on_full = «'forget'
=> invalid on_full: "forget" (expected "deny" or "admit")

calendar = '5/day'
cells = «5
=> invalid cells: given beside calendar (expected a rule with quota or quotas)

quotas = «[]
=> invalid quotas: an empty list (expected at least one quota)

quotas = «'2/s'
=> invalid quotas: "2/s" (expected a list of text such as "100/60s")

quota = '2/s'
algorithm = «'counters'
=> invalid algorithm: "counters" (expected "sliding-window", "counter", "classic", "even", "fixed", "log" or "gcra")

quota = '2/s'
cells = «'5'
=> invalid cells: "5" (expected a whole number, not negative)

quota = '2/s'
cells = «-5
=> invalid cells: -5 (expected a whole number, not negative)

quota = '2/s'
burst = «2.5
=> invalid burst: 2.5 (expected a whole number, not negative)

quota = '2/s'
capacity = «{}
=> invalid capacity: a map (expected a whole number, not negative)

quota = '2/s'
key = «'usr'
=> invalid key: "usr" (expected "user" or "number")

quota = '2/s'
key = «1
=> invalid key: 1 (expected "user" or "number")

quota = '2/s'
cost = «'rows'
=> invalid cost: "rows" (expected "bytes")

quota = '2/s'
when = «'user'
=> invalid when: "user" (expected "upload")

quota = '2/s'
on_full = «'panic'
=> invalid on_full: "panic" (expected "share", "deny", "admit" or "forget")

quota = '2/s'
on_error = «'panic'
=> invalid on_error: "panic" (expected "local", "share", "deny" or "admit")

quota = '2/s'
mode = «'lease'
=> invalid mode: "lease" (expected "strict", "local", or a map with lease or sync)

quota = '2/s'
mode = { lease = { permits = «0 } }
=> invalid permits: 0 (expected 1 to 1000000 permits)

quota = '2/s'
mode = { sync = { period = «'1 week', pending = 5 } }
=> invalid period: "1 week" (expected text such as "100ms", of 1ms to 60s)

quota = '2/s'
mode = { sync = { period = «'2min', pending = 5 } }
=> invalid period: 120s (expected 1ms to 60s)

quota = '2/s'
mode = { sync = «{ period = '1s' } }
=> missing pending (expected a number of permits)

quota = '2/s'
shadow = «'yes'
=> invalid shadow: "yes" (expected true or false)

quota = '2/s'
enforce = «'10'
=> invalid enforce: "10" (expected text from "0%" to "100%")

quota = '2/s'
enforce = «10
=> invalid enforce: 10 (expected text from "0%" to "100%")

quota = '2/s'
shadow = true
enforce = «'10%'
=> invalid enforce: given beside shadow (expected one of the two)
"#,
    );
    check_each(&[
        (
            "",
            r#""key": "user""#,
            "key: user",
            "missing quota (expected text such as \"100/60s\", a list of such in quotas, text such as \"50_000/month\" in calendar, or a number in in_flight)",
        ),
        (
            "quotas = [\n  '2/s',\n  «true,\n]",
            "\"quotas\": [\n  \"2/s\",\n  «true\n]",
            "quotas:\n  - 2/s\n  - «true",
            "invalid quotas: true (expected text such as \"100/60s\")",
        ),
        (
            "quotas = [\n  '2/s',\n  «'2/0s',\n]",
            "\"quotas\": [\n  \"2/s\",\n  «\"2/0s\"\n]",
            "quotas:\n  - 2/s\n  - «2/0s",
            "invalid window: 0ns (expected 1µs to 366 days)",
        ),
    ]);
}

#[test]
fn an_invalid_tier_is_reported_at_its_value() {
    check(
        r#"
quota = '2/s'
tiers = «'plan'
=> invalid tiers: "plan" (expected a map with the fields by and limits)

quota = '2/s'
tiers = { by = 'plan', «limit = {} }
=> invalid field: "limit" (expected by or limits)

quota = '2/s'
tiers = { by = «'paln', limits = { free = 1 } }
=> invalid by: "paln" (expected "plan")

quota = '2/s'
tiers = «{ by = 'plan' }
=> missing limits (expected a map of tier names to limits)

quota = '2/s'
tiers = { by = 'plan', limits = «[1] }
=> invalid limits: a list (expected a map of tier names to limits)

quota = '2/s'
tiers = { by = 'plan', limits = { free = «'one' } }
=> invalid limits: "one" (expected a whole number, not negative)

quota = '2/1ms'
tiers = { by = 'plan', limits = { free = 1, paid = «1000000000 } }
=> invalid limit: 1000000000 permits with cells of 16.667µs (expected at most 16383 permits with such cells, or fewer and wider cells)

quota = '2/s'
tiers = «{ by = 'plan', limits = {} }
=> invalid tiers: a function without tiers (expected tiers, and a function that returns the tier of a request)

quotas = ['2/s', '9/min']
tiers = «{ by = 'plan', limits = { free = 1 } }
=> invalid tiers: given for a rule with several quotas (expected a rule with one quota)

quota = '2/s'
algorithm = 'log'
tiers = «{ by = 'plan', limits = { free = 1 } }
=> invalid tiers: a tier of 1 permits (expected no tiers for a log rule, which has one slot per permit)
"#,
    );
    check_each(&[
        (
            "quota = '2/s'\ntiers = «{ limits = { free = 1 } }",
            r#""quota": "2/s", "tiers": «{"limits": {"free": 1}}"#,
            "quota: 2/s\n  tiers:\n    «limits: { free: 1 }",
            "missing by (expected the name of a tier function)",
        ),
        (
            "quota = '2/s'\n[rules.tiers]\nby = 'plan'\n[rules.tiers.limits]\nfree = 1\npaid = «0",
            "\"quota\": \"2/s\", \"tiers\": {\"by\": \"plan\", \"limits\": {\"free\": 1,\n \"paid\": «0}}",
            "quota: 2/s\n  tiers:\n    by: plan\n    limits:\n      free: 1\n      paid: «0",
            "invalid limit: 0 (expected 1 to 1000000000000 permits)",
        ),
    ]);
}

#[test]
fn an_invalid_list_entry_is_reported_at_its_position() {
    check(
        r#"
quota = '2/s'
key = 'number'
allow = ['1', «'bob']
=> invalid allow: "bob" (expected a value of the key "number": invalid digit found in string)

quota = '2/s'
key = 'number'
deny = [«7]
=> invalid deny: 7 (expected a list of keys, each as text)

quota = '2/s'
key = 'user'
allow = «'bob'
=> invalid allow: "bob" (expected a list of keys, each as text)

quota = '2/s'
allow = «['bob']
=> invalid allow: given for a rule without a key (expected a rule with a key)
"#,
    );
    check_each(&[(
        "quota = '2/s'\nkey = 'number'\ndeny = [«'']",
        r#""quota": "2/s", "key": "number", "deny": [«""]"#,
        "quota: 2/s\n  key: number\n  deny:\n  - «''",
        "invalid deny: \"\" (expected a value of the key \"number\": cannot parse integer from empty string)",
    )]);
}

/// Errors that are found when the rule set is built.
#[test]
fn an_error_of_the_rule_set_is_reported_at_its_value() {
    check(
        r#"
renamed_from = «'other'
quota = '2/s'
=> invalid renamed_from: "other" (expected a name that no other rule has or was renamed from)

quota = '2/s'
cells = «0
=> invalid cells: 0 (expected 1 to 4096)

quota = '2/s'
algorithm = 'fixed'
cells = «2
=> invalid cells: 2 (expected no cells for a fixed window, which is one cell)

quota = '2/s'
burst = «2
=> invalid burst: 2 (expected no burst, except for a gcra rule)

quota = '1/day'
algorithm = 'gcra'
burst = «367
=> invalid burst: 367 (expected 1 to 366 permits, the limit or what 366 days refill)

quota = '2/s'
algorithm = 'gcra'
cells = «5
=> invalid cells: 5 (expected no cells for a gcra rule)

quota = «'1001/1us'
algorithm = 'gcra'
=> invalid limit: 1001 permits in 1µs (expected at most one permit per nanosecond, here 1000 permits, or a rule with a cost)

algorithm = 'log'
quota = «'1048577/s'
=> invalid limit: 1048577 (expected 1 to 1048576 permits for a timestamp ring, or a rule with a cost)

quota = '2/s'
key = 'user'
capacity = «0
=> invalid capacity: 0 (expected 1 to 4294967296 keys)

quota = '2/s'
capacity = «5
=> invalid capacity: given for a rule without a key (expected a rule with a key)

quota = '2/s'
enforce = «'10%'
=> invalid enforce: given for a rule without a key (expected a rule with a key)

quota = '2/s'
key = 'user'
enforce = «'100.5%'
=> invalid enforce: 100.5 % (expected 0 to 100 %)
"#,
    );
    check_each(&[(
        "key = 'user'\nquotas = [\n'2/s',\n«'1000000000/1ms']",
        "\"key\": \"user\", \"quotas\": [\"2/s\",\n«\"1000000000/1ms\"]",
        "key: user\n  quotas:\n  - 2/s\n  - «1000000000/1ms",
        "invalid limit: 1000000000 permits with cells of 16.667µs (expected at most 16383 permits with such cells, or \
                    fewer and wider cells, or a rule with a cost)",
    )]);
}
