//! The HTML page of a replay contains its report. `ci/page.sh` tests the rest in a browser.

use std::fs;

use serde_json::{Value, json};
use tempfile::tempdir;

use crate::log::{lines, text};
use crate::tool::{by_rules, file, json, run};

/// Four requests of a client whose name would end a script element, of which two are denied.
const LOG: &str = r#"{"time": 1431857103, "user": "</script>"}
{"time": 1431857104, "user": "</script>"}
{"time": 1431857105, "user": "</script>"}
{"time": 1431857106, "user": "</script>"}
"#;

/// Returns the report in a page.
fn report_of(page: &str) -> Value {
    let (_, after) = page
        .split_once(r#"<script type="application/json" id="data">"#)
        .unwrap();
    let (report, _) = after.split_once("</script>").unwrap();
    serde_json::from_str(report).unwrap()
}

/// The rules to copy.
fn blocks(html: &str) -> impl Iterator<Item = &str> {
    let blocks = html.split("<pre><code>").skip(1);
    blocks.map(|block| block.split_once("</code>").unwrap().0)
}

#[test]
fn the_page_contains_the_json_report() {
    let folder = tempdir().unwrap();
    let page = folder.path().join("report.html");
    let log = file(LOG);
    let output = run([
        "replay".as_ref(),
        "--json".as_ref(),
        "--html".as_ref(),
        page.as_os_str(),
        "--rule".as_ref(),
        "2/60s by user".as_ref(),
        log.path().as_os_str(),
    ]);
    let printed = json(&output);
    let page = fs::read_to_string(page).unwrap();
    assert_eq!(report_of(&page), printed);
    assert_eq!(printed["denied"], 2);
    // Those of the report and of the script, which ends with its element.
    assert_eq!(
        (page.matches("</script").count(), page.matches("<!--").count()),
        (2, 0)
    );
    let page = page.replace('\u{a0}', " ").replace("&nbsp;", " ");
    for said in [
        "<title>2 per 60 s for each user · ringgate replay</title>",
        r#"The user <b><bdi class="key">&lt;/script&gt;</bdi></b> was denied most often: <b>2</b> of 4 requests (50.0 %) were denied"#,
        r#"denied, <b>between <time datetime="2015-05-17T10:05:05Z">2015-05-17 10:05:05</time> and "#,
        r#"At the peak, 4 permits were requested in 60 s, up to <time datetime="2015-05-17T10:05:06Z">"#,
        "A limit of <b>4</b> instead of 2 per 60 s would have denied at most 1 % of the requests: 0 of 4 (0 %).",
    ] {
        assert!(page.contains(said), "{said} is not in {page}");
    }
}

/// The page of a log of JSON by a rules file.
fn page_of(log: &str, rules: &Value) -> String {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("log"), log).unwrap();
    fs::write(path("rules.json"), rules.to_string()).unwrap();
    let (rules, page) = (path("rules.json"), path("page"));
    json(&run([
        "replay",
        "--json",
        "--compare",
        "--rules",
        &rules,
        "--html",
        &page,
        &path("log"),
    ]));
    fs::read_to_string(page).unwrap()
}

#[test]
fn text_from_a_log_is_never_markup() {
    let page = |name: &str| {
        let line = json!({"time": 1_431_857_103, "user": name, "path": name, "status": name, "agent": name});
        let rule = json!({"name": name, "quota": "2/60s", "key": "user", "when": format!("user!={name}x")});
        let other = json!({"name": "other", "quota": "3/60s", "key": "user"});
        page_of(&format!("{line}\n").repeat(5), &json!({"rules": [rule, other]}))
    };
    let usual = page("client").matches('<').count();
    for name in [
        "</script><script>alert(1)</script>",
        "</title><img src=x onerror=alert(1)>",
        "\"><b>\"'&lt;",
        "<!--<script>",
        "{{data}}{% if %}",
    ] {
        let html = page(name);
        assert_eq!(html.matches('<').count(), usual, "{name}");
        assert!(!html.contains(name) || name.contains('{'), "{name}");
    }
    let html = page("\u{202e}\0\u{1b}[31m");
    assert!(!html.contains(['\u{202e}', '\0', '\u{1b}']), "{html}");
}

#[test]
fn reports_without_denials_or_good_limits_have_pages() {
    let log = "{\"time\": 1431857103, \"user\": \"ann\", \"n\": 2000000000000}\n".repeat(4);
    let rule = json!({"name": "a", "quota": "9/60s", "key": "user"});
    let html = page_of(&log, &json!({"rules": [rule]}));
    assert!(html.contains("No request was denied."), "{html}");
    let rule = json!({"name": "a", "quota": "9/60s", "key": "user", "cost": "n"});
    let html = page_of(&log, &json!({"rules": [rule]})).replace('\u{a0}', " ");
    let said = "No limit that was tried would have denied at most 1&nbsp;% of the requests; the largest, 1,000,000,000,000 per 60 s, \
                denies 4 of 4 (100 %).";
    assert!(html.contains(said), "{html}");
}

/// The page proposes the lowest limit that denies few enough requests, and the rule to copy has that limit.
#[test]
fn the_rule_to_copy_is_the_lowest_good_limit() {
    let lines = text(&lines(3_000, 51));
    let log = file(&lines);
    let page = tempfile::NamedTempFile::new().unwrap();
    let html = page.path().to_str().unwrap();
    let path = log.path().to_str().unwrap();
    let rule = "5/60s by client when path!=/none algorithm classic cells 4 as it's";
    let output = run(["replay", "--json", "--rule", rule, "--html", html, path]);
    let object = json(&output);
    let html = fs::read_to_string(page.path()).unwrap();
    let blocks: Vec<String> = blocks(&html)
        .map(|block| block.replace("&amp;", "&").replace("&gt;", ">"))
        .collect();
    assert_eq!(blocks.len(), 3);
    assert!(
        blocks[1].contains(".algorithm(RuleAlgorithm::Classic)\n    .cells(4)\n    .by(&key)"),
        "{}",
        blocks[1]
    );
    // In each rule, the limit is the number before the slash.
    let limit: u64 = blocks[1]
        .split("quota: Quota = \"")
        .nth(1)
        .unwrap()
        .split('/')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let denied = |limit: u64| {
        let rule = rule.replace("5/60s", &format!("{limit}/60s"));
        json(&run(["replay", "--json", "--rule", &rule, path]))["denied"]
            .as_u64()
            .unwrap()
    };
    assert!(denied(limit) <= 30 && denied(limit - 1) > 30, "{limit}");
    assert!(
        object["what_if"][0]["limits"]
            .as_array()
            .unwrap()
            .contains(&limit.into())
    );
    // The rules file and the argument both contain the rule.
    let of_file = by_rules(&blocks[0], "", &lines);
    assert_eq!(of_file["denied"], denied(limit), "{}", blocks[0]);
    assert_eq!(of_file["rules"][0]["name"], "it's");
    let argument = blocks[2].split('\'').nth(1).unwrap();
    assert_eq!(
        json(&run(["replay", "--json", "--rule", argument, path]))["denied"],
        denied(limit),
        "{argument}"
    );
}

/// The rule to copy denies as many requests as the page states, also if it was a part of another rule.
#[test]
fn the_rule_to_copy_denies_as_many_as_stated() {
    let line = |number: usize| {
        let time = 1_431_857_100_000 + 37 * (number * number % 3001);
        let (client, plan) = (number % 3, ["free", "paid"][number % 2]);
        format!(
            "{{\"time\":{time},\"ip\":\"192.0.{client}.{}\",\"plan\":\"{plan}\",\"msg\":\"sent by ann\",\"n\":3}}\n",
            number % 7
        )
    };
    let log = file((0..300).map(line).collect::<String>());
    let path = log.path().to_str().unwrap();
    let shared = "name = \"p\"\nkey = \"ip\"\n";
    for (rule, left_out) in [
        ("quotas = [\"5/s\", \"20/10s\"]", ""),
        ("quotas = [\"5/s\", \"20/10s\", \"200/min\"]\ncost = \"n\"", ""),
        ("quota = \"5/s\"\nprefix = { ipv4 = 24 }", ""),
        (
            "quota = \"9/10s\"\nprefix = { ipv4 = 16, ipv6 = 56 }\nwhen = \"plan=free\"",
            "",
        ),
        ("quota = \"5/s\"\nwhen = \"msg=sent by ann\"", ""),
        ("quota = \"5/s\"\nshadow = true", "shadow"),
        (
            "quota = \"5/s\"\ncapacity = 100\non_full = \"deny\"\non_error = \"admit\"\nmode = \"local\"",
            "capacity, on_full, on_error, mode",
        ),
        (
            "quota = \"5/s\"\ntiers = { by = \"plan\", limits = { free = 2, paid = 900 } }",
            "tiers",
        ),
        (
            "quota = \"5/s\"\nallow = [\"192.0.1.1\"]\ndeny = [\"192.0.2.2\"]",
            "allow, deny",
        ),
    ] {
        let file = crate::tool::rules(&format!("[[rules]]\n{shared}{rule}\n"));
        let page = tempfile::NamedTempFile::new().unwrap();
        let (rules, html) = (file.path().to_str().unwrap(), page.path().to_str().unwrap());
        json(&run([
            "replay", "--json", "--quiet", "--rules", rules, "--html", html, path,
        ]));
        let html = fs::read_to_string(page.path()).unwrap();
        let mut answers = 0;
        for answer in html.split("class=\"limit-answer\">").skip(1) {
            answers += 1;
            let (_, stated) = answer.split_once("of the requests: ").expect("a limit");
            let stated: String = stated
                .chars()
                .take_while(|char| *char != ' ')
                .filter(char::is_ascii_digit)
                .collect();
            let stated: u64 = stated.parse().expect("a number");
            let (answer, _) = answer.split_once("</details>").unwrap();
            let said = answer.split_once("leave out a part of the rule: ");
            let said = said.map_or("", |(_, said)| said.split_once('.').unwrap().0);
            assert_eq!(said, left_out, "{rule}");
            let blocks: Vec<&str> = blocks(answer).collect();
            let copied = crate::tool::rules(blocks[0]);
            let denied = |args: &[&str]| {
                let args = ["replay", "--json", "--quiet"]
                    .iter()
                    .chain(args)
                    .copied()
                    .chain([path]);
                json(&run(args))["denied"].as_u64().unwrap()
            };
            assert_eq!(
                denied(&["--rules", copied.path().to_str().unwrap()]),
                stated,
                "{}",
                blocks[0]
            );
            // An argument has no prefix.
            match blocks.get(2) {
                Some(argument) => {
                    let argument = argument.split('\'').nth(1).unwrap();
                    assert_eq!(denied(&["--rule", argument]), stated, "{argument}");
                }
                None => assert!(
                    rule.contains("prefix") && blocks[1].contains(".with_prefixes("),
                    "{rule}"
                ),
            }
        }
        assert_eq!(
            answers,
            if rule.contains("\"20/10s\"") {
                rule.matches('/').count()
            } else {
                1
            },
            "{html}"
        );
    }
}
