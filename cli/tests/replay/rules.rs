//! Several rules, from the command line and from files; and suggested limits.

use std::fs;

use serde_json::Value;

use crate::brute_force::{self, Model, Request, SECOND};
use crate::formats::requests;
use crate::log::{START, line, lines, text};
use crate::tool::{by_rules, file, json, on_file, run, texts};

/// Decides by two log rules: one for each client, with unit costs, and one for all requests, with their costs. A request
/// that one rule denies is charged to neither.
fn jointly(requests: &[Request], each: (u64, i64), all: (u64, i64)) -> [u64; 3] {
    let mut admitted: Vec<&Request> = Vec::new();
    let (mut refused, mut by_each, mut by_all) = (0, 0, 0);
    for request in requests {
        let counts = |window: i64| {
            admitted
                .iter()
                .rev()
                .take_while(move |s| s.at > request.at - window * SECOND)
        };
        let of_client = counts(each.1).filter(|s| s.key == request.key).count() as u64;
        let of_all: u64 = counts(all.1).map(|s| s.cost).sum();
        let full = [of_client + 1 > each.0, of_all + request.cost > all.0];
        by_each += u64::from(full[0]);
        by_all += u64::from(full[1]);
        if full[0] || full[1] {
            refused += 1;
        } else {
            admitted.push(request);
        }
    }
    [refused, by_each, by_all]
}

fn denied(object: &Value) -> [u64; 3] {
    let rules = object["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 2);
    [object, &rules[0], &rules[1]].map(|counts| counts["denied"].as_u64().unwrap())
}

fn input(requests: &[Request]) -> String {
    let lines = requests.iter().map(|request| {
        let second = request.at / SECOND;
        line(&request.key, second).replace(" 200 17 ", &format!(" 200 {} ", request.cost)) + "\n"
    });
    lines.collect()
}

/// In 366 days, 2 permits are refilled for each permit of the limit. So a burst of 1000 is supported from the limit 500 on.
#[test]
fn the_lowest_supported_limit_is_found() {
    let log = file(text(&lines(5, 1)));
    let path = log.path().to_str().unwrap();
    let rule = "600/183d by all algorithm gcra burst 1000";
    let object = json(&run(["replay", "--json", "--rule", rule, path]));
    let limits = &object["what_if"][0]["limits"];
    assert_eq!(limits[0], 500, "{limits}");
}

#[test]
fn rules_of_arguments_and_files_are_one_decision() {
    let requests = requests(2_000, 41, SECOND);
    let log = file(input(&requests));
    let expected = jointly(&requests, (15, 60), (150, 30));
    assert!(
        expected[1] > 50 && expected[2] > 50 && expected[0] < expected[1] + expected[2],
        "{expected:?}"
    );
    let path = log.path().to_str().unwrap();
    let output = run([
        "replay",
        "--json",
        "--rule",
        "15/60s algorithm log as each",
        "--rule",
        "150 per 30s by all cost size algorithm log",
        path,
    ]);
    let object = json(&output);
    assert_eq!(denied(&object), expected);
    assert_eq!(object["rules"][0]["name"], "each");
    assert_eq!(object["rules"][1]["key"], "all");
    assert_eq!(object["what_if"].as_array().unwrap().len(), 2);

    let toml = "
        [[rules]]
        name = 'each'
        quota = '15/60s'
        algorithm = 'log'
        key = 'user'

        [[rules]]
        name = 'all'
        quota = '150/30s'
        algorithm = 'log'
        cost = 'bytes'
    ";
    let json_rules = r#"{"rules": [
        {"name": "each", "quota": "15/60s", "algorithm": "log", "key": "user"},
        {"name": "all", "quota": "150/30s", "algorithm": "log", "cost": "bytes"}]}"#;
    for (ending, rules) in [(".toml", toml), (".json", json_rules)] {
        let file = tempfile::Builder::new().suffix(ending).tempfile().unwrap();
        fs::write(file.path(), rules).unwrap();
        let args = "replay --json --alias user=client --alias bytes=size --rules".split(' ');
        let output = run(args.chain([file.path().to_str().unwrap(), path]));
        assert_eq!(denied(&json(&output)), expected, "{ending}");
    }
}

#[test]
fn conditions_tiers_lists_and_shadow_rules_are_applied() {
    let second = |at: i64, client: &str, path: &str| line(client, START + at).replace("/a\\\"b", path) + "\n";
    // Six requests of each user, alternating between two paths.
    let log: String = (0..6)
        .flat_map(|at| {
            ["a", "b", "c"].map(|client| second(at, client, if at % 2 == 0 { "/login" } else { "/" }))
        })
        .collect();
    let of = |rules: &str| by_rules(rules, "", &log);
    let found = |rules: &str| {
        let object = of(rules);
        let rule = &object["rules"][0];
        [&object["denied"], &rule["denied"], &rule["requests"]].map(|count| count.as_u64().unwrap())
    };
    let rule = "[[rules]]\nname = 'r'\nquota = '2/h'\nkey = 'client'\n";
    assert_eq!(found(rule), [12, 12, 18]);
    assert_eq!(found(&format!("{rule}when = 'path=/login'\n")), [3, 3, 9]);
    assert_eq!(found(&format!("{rule}when = 'path!=/log*'\n")), [3, 3, 9]);
    assert_eq!(found(&format!("{rule}shadow = true\n")), [0, 12, 18]);
    assert_eq!(found(&format!("{rule}allow = ['a']\n")), [8, 8, 12]);
    assert_eq!(found(&format!("{rule}deny = ['b']\n")), [14, 14, 18]);
    let tiers = "[rules.tiers]\nby = 'client'\nlimits = { a = 1, c = 5 }\n";
    assert_eq!(found(&format!("{rule}{tiers}")), [5 + 4 + 1, 10, 18]);
    // The bound is that of the highest tier.
    let output = of(&format!("{rule}{tiers}"));
    assert_eq!(
        (&output["rules"][0]["worst"], &output["rules"][0]["bound"]),
        (&5.into(), &5.into())
    );
    let bucket = format!("{rule}algorithm = 'gcra'\nburst = 1\n{tiers}");
    // The bound is b + L - 1. The limit L is 5, and the burst b of two and a half permits is rounded down to 2.
    assert_eq!(of(&bucket)["rules"][0]["bound"], 2 + 5 - 1);
    // Each quota of a rule is reported.
    let several = rule.replace("quota = '2/h'", "quotas = ['2/s', '2/h']");
    assert_eq!(found(&several), [12, 0, 18]);
    // Each has a name of its own, also if a rule has the name of one.
    let same = of(&(several + "[[rules]]\nname = 'r-1s'\nquota = '9/h'\n"));
    let names = same["series"]["by_rule"].as_object().unwrap().keys();
    assert!(names.eq(["r-1s", "r-1s'", "r-3600s"]), "{same}");
}

#[test]
fn a_capacity_that_is_too_small_is_noted() {
    let log = text(
        &(0..3_000)
            .map(|number| line(&format!("k{number}"), START))
            .collect::<Vec<_>>(),
    );
    let rules = "[[rules]]\nname = 'r'\nquota = '2/h'\nkey = 'client'\ncapacity = 100\n";
    let object = by_rules(rules, "", &log);
    let said = "rule \"r\" had no free entry for a key";
    assert!(texts(&object, "notes")[1].starts_with(said), "{object}");
    // Rules of the command line have capacity for all keys.
    let message = String::from_utf8(on_file("--rule 2/h", &log).stdout).unwrap();
    assert!(!message.contains("no free entry"), "{message}");
}

#[test]
fn suggested_limits_are_the_lowest_that_deny_few_enough() {
    let log = text(&lines(3_000, 42));
    let requests = brute_force::requests(&log);
    let path = file(&log);
    // The cells of a word begin at multiples of the longest window, where brute force lets them begin at multiples of their own.
    let (both, one) = ("--window 60s --window 10s", "--window 60s");
    for (windows, algorithm, model) in [
        (both, "log", Model::Log),
        (one, "sliding-window", Model::Word),
        (
            both,
            "counter",
            Model::Cells {
                cells: 60,
                summed: 61,
                shares: false,
            },
        ),
    ] {
        let args =
            format!("suggest --json --algorithm {algorithm} {windows} --deny 0% --deny 1% --deny 12.5%");
        let args = args.split_whitespace().map(Into::into);
        let object = json(&run(args.chain([path.path().as_os_str().to_owned()])));
        let suggestions = object["suggestions"].as_array().unwrap();
        assert_eq!(suggestions.len(), 3 * windows.matches("--window").count());
        for one in suggestions {
            let window = one["window"].as_i64().unwrap() * 1_000_000;
            let refuse = one["deny"].as_f64().unwrap() / 100.0;
            let denied = |limit: i64| {
                let found = brute_force::replay(&requests, limit, window, model);
                let keys = found.keys.iter().filter(|key| key.denied > 0).count() as u64;
                (found.denied, keys, found.requests, found.keys.len() as u64)
            };
            let number = |value: &Value| value.as_u64().unwrap();
            let limit = number(&one["of_requests"]["limit"]) as i64;
            let (requests, keys, total, total_keys) = denied(limit);
            assert_eq!(number(&one["of_requests"]["denied"]), requests);
            assert_eq!(number(&one["of_requests"]["keys_denied"]), keys);
            assert_eq!(
                (number(&one["requests"]), number(&one["keys"])),
                (total, total_keys)
            );
            let share = |part: u64, of: u64| part as f64 / of as f64;
            assert!(share(requests, total) <= refuse, "{one}");
            assert!(limit == 1 || share(denied(limit - 1).0, total) > refuse, "{one}");
            let limit = number(&one["of_keys"]["limit"]) as i64;
            assert!(share(denied(limit).1, total_keys) <= refuse, "{one}");
            assert!(
                limit == 1 || share(denied(limit - 1).1, total_keys) > refuse,
                "{one}"
            );
        }
    }
}

/// A limit in bytes may have a unit, and may be too large to count each byte.
#[test]
fn a_limit_in_bytes_may_have_a_unit() {
    let log: String = [40_000_000, 400_000_000, 70_000_000, 60_000_000_000_u64]
        .iter()
        .enumerate()
        .map(|(at, bytes)| {
            line("a", START + i64::from(at == 3)).replace(" 200 17 ", &format!(" 200 {bytes} ")) + "\n"
        })
        .collect();
    let log = file(log);
    let path = log.path().to_str().unwrap();
    for (rule, denied) in [
        ("4Gbit/s cost size", 2),
        ("4Gbit/s cost size algorithm gcra", 2),
        ("400Gbit/s cost size", 1),
    ] {
        let object = json(&run(["replay", "--json", "--rule", rule, path]));
        assert_eq!(object["denied"], denied, "{rule}");
    }
}

/// A list denies a request that costs nothing, enforced or not, and a limit does not.
#[test]
fn a_listed_key_is_denied_at_any_cost() {
    let log: String = (0..12)
        .map(|number| {
            let (key, cost) = (["a", "b"][number % 2], number % 3);
            format!("{{\"time\":1431857103.5,\"user\":\"{key}\",\"n\":{cost}}}\n")
        })
        .collect();
    let found = |rule: &str| {
        let rules = format!("[[rules]]\nname = \"r\"\nkey = \"user\"\n{rule}\n");
        by_rules(&rules, "", &log)["rules"][0]["denied"].clone()
    };
    for (rule, denied) in [
        ("quota = \"100/h\"\ncost = \"n\"\ndeny = [\"b\"]", 6),
        ("quota = \"100/h\"\ndeny = [\"b\"]", 6),
        ("quota = \"100/h\"\ncost = \"n\"\ndeny = [\"a\", \"b\"]", 12),
        (
            "quota = \"100/h\"\ncost = \"n\"\nallow = [\"a\"]\ndeny = [\"b\"]",
            6,
        ),
        (
            "quotas = [\"100/h\", \"50/min\"]\ncost = \"n\"\ndeny = [\"b\"]",
            6,
        ),
        ("quota = \"1/h\"\ncost = \"n\"", 6),
        ("quota = \"1/h\"\ncost = \"n\"\nalgorithm = \"gcra\"", 6),
        (
            "quota = \"1/h\"\ncost = \"n\"\nalgorithm = \"log\"\ndeny = [\"b\"]",
            9,
        ),
    ] {
        assert_eq!(found(rule), denied, "{rule}");
        assert_eq!(
            found(&format!("{rule}\nshadow = true")),
            denied,
            "{rule}, in the shadow"
        );
    }
}
