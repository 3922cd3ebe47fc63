//! Holds the architecture: a module uses only itself and modules that `lib.rs` lists before it.
//!
//! A module is either the file `name.rs` or the folder `name/`. Every `crate::other` in it must be a module that is listed
//! earlier, or the same.
#![cfg(not(any(miri, ringgate_loom)))]

extern crate alloc;

use alloc::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The modules that `lib.rs` declares, lowest floor first.
fn floors() -> Vec<String> {
    let lib = fs::read_to_string(source().join("lib.rs")).unwrap();
    lib.lines()
        .filter_map(|line| {
            let line = line.trim_start_matches("pub ");
            line.strip_prefix("mod ")?.strip_suffix(';').map(str::to_owned)
        })
        .collect()
}

fn files_of(module: &str) -> Vec<PathBuf> {
    let single = source().join(format!("{module}.rs"));
    if single.is_file() {
        return vec![single];
    }
    let mut files = Vec::new();
    let mut folders = vec![source().join(module)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                files.push(path);
            }
        }
    }
    files
}

/// The modules named as `crate::module` in a text, outside of comments and documentation.
fn named(text: &str) -> Vec<(usize, String)> {
    let mut names = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        for rest in code.split("crate::").skip(1) {
            let name: String = rest
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            names.push((number + 1, name));
        }
    }
    names
}

#[test]
fn modules_name_only_lower_floors() {
    let floors = floors();
    assert!(
        floors.len() >= 9,
        "the list of modules in lib.rs was not found: {floors:?}"
    );
    let mut seen = 0;
    for (floor, module) in floors.iter().enumerate() {
        for file in files_of(module) {
            let text = fs::read_to_string(&file).unwrap();
            for (line, name) in named(&text) {
                seen += 1;
                let other = floors.iter().position(|module| *module == name);
                let at = format!("{}:{line}", file.display());
                assert!(
                    other.is_some_and(|other| other <= floor),
                    "{at}: `{module}` names `crate::{name}`, which is not on a lower floor"
                );
            }
        }
    }
    assert!(seen > 20, "only {seen} names were found");
}

/// The modules above `rules`, and those of them that each may name. The others are edges: no module names them.
const UPPER: [(&str, &[&str]); 6] = [
    ("shared", &[]),
    ("wait", &["shared"]),
    ("throttle", &["wait"]),
    ("observe", &[]),
    ("http", &["shared", "wait"]),
    ("redis", &["shared"]),
];

/// The features whose name is not that of a module, with the module that they are for.
const FEATURES: [(&str, &str); 8] = [
    ("config", "rules"),
    ("watch", "rules"),
    ("tower", "http"),
    ("axum", "http"),
    ("tonic", "http"),
    ("redis-client", "redis"),
    ("redis-cluster", "redis"),
    ("redis-tls", "redis"),
];

/// The features of higher floors that a module may name, because it uses a dependency of theirs, or has items for them alone.
const DEPENDENCIES: [(&str, &str); 3] = [
    // arc-swap, which only the ground may replace for the model checker.
    ("sync", "rules"),
    // The parts of keys that nodes share, and the reload of shared rules.
    ("rules", "shared"),
    // metrics.
    ("shared", "observe"),
];

#[test]
fn modules_name_no_features_of_higher_floors() {
    let floors = floors();
    let mut seen = 0;
    for (floor, module) in floors.iter().enumerate() {
        for file in files_of(module) {
            let text = fs::read_to_string(&file).unwrap();
            for (number, line) in text.lines().enumerate() {
                let code = line.split("//").next().unwrap_or_default();
                let features = code.split("feature = \"").skip(1);
                for feature in features.map(|rest| rest.split('"').next().unwrap_or_default()) {
                    seen += 1;
                    let owner = FEATURES.iter().find(|(name, _)| *name == feature);
                    let owner = owner.map_or(feature, |(_, owner)| owner);
                    // A feature that is for no module, such as `std`, is for all of them.
                    let above = floors.iter().skip(floor + 1).any(|higher| higher == owner);
                    assert!(
                        !above || DEPENDENCIES.contains(&(module.as_str(), feature)),
                        "{}:{}: `{module}` names the feature `{feature}` of `{owner}`, which is on a higher floor",
                        file.display(),
                        number + 1
                    );
                }
            }
        }
    }
    assert!(seen > 20, "only {seen} features were found");
}

/// A new module above `rules` belongs into the list before it may name any other.
#[test]
fn upper_modules_name_only_those_that_are_listed() {
    let floors = floors();
    let rules = floors.iter().position(|module| module == "rules").unwrap();
    let upper = floors[rules + 1..].iter().filter(|module| *module != "guide");
    let listed = UPPER.map(|(module, _)| module);
    assert_eq!(upper.collect::<Vec<_>>(), listed);
    for (module, may_name) in UPPER {
        let files = files_of(module);
        assert!(
            files.len() > 1,
            "only {files:?} of the module `{module}` were found"
        );
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            for (line, name) in named(&text) {
                let at = format!("{}:{line}", file.display());
                let is_upper = name != module && listed.contains(&name.as_str());
                assert!(
                    !is_upper || may_name.contains(&name.as_str()),
                    "{at}: `{module}` names `crate::{name}`"
                );
            }
        }
    }
}

/// The modules with a store in a server: those beside `shared` that implement its trait.
fn backends() -> Vec<&'static str> {
    let has_store = |module: &&str| {
        let mut texts = files_of(module)
            .into_iter()
            .map(|file| fs::read_to_string(file).unwrap());
        *module != "shared" && texts.any(|text| text.contains("impl CounterStore for"))
    };
    let backends: Vec<&str> = UPPER
        .iter()
        .map(|(module, _)| *module)
        .filter(has_store)
        .collect();
    assert!(backends.contains(&"redis"), "{backends:?}");
    backends
}

#[test]
fn the_guide_for_contributors_shows_every_floor() {
    let guide = fs::read_to_string(source().join("../CONTRIBUTING.md")).unwrap();
    let shown: Vec<String> = guide
        .lines()
        .filter_map(|line| Some(line.strip_prefix("  ")?.split_once(' ')?.0))
        .map(|name| name.trim_end_matches(".rs").trim_end_matches('/').to_owned())
        .collect();
    let floors = floors();
    let shown: Vec<&String> = shown.iter().filter(|name| floors.contains(name)).collect();
    assert_eq!(shown, floors.iter().collect::<Vec<_>>());
}

/// Shared limits know no backend's store. The terms of a backend appear neither in code nor in documentation, except for
/// the names by which users find it.
#[test]
fn shared_limits_name_no_backend() {
    let backends = backends();
    for module in ["shared", "rules"] {
        for file in files_of(module) {
            let text = fs::read_to_string(&file).unwrap();
            for (number, line) in text.lines().enumerate() {
                let code = line.split("//").next().unwrap_or_default().to_lowercase();
                let named = backends.iter().find(|backend| code.contains(**backend));
                assert_eq!(named, None, "{}:{}: {line}", file.display(), number + 1);
            }
        }
    }
}

/// The features and dependencies that a feature enables in `Cargo.toml`, by itself and by others.
fn enabled(manifest: &str, feature: &str) -> Vec<String> {
    let mut found = vec![feature.to_owned()];
    let mut next = 0;
    while let Some(feature) = found.get(next).cloned() {
        let line = manifest
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{feature} = [")));
        for other in line
            .into_iter()
            .flat_map(|line| line.split('"').skip(1).step_by(2))
        {
            if !found.iter().any(|known| known == other) {
                found.push(other.to_owned());
            }
        }
        next += 1;
    }
    found
}

#[test]
fn shared_limits_need_no_client_of_a_backend() {
    let manifest = fs::read_to_string(source().join("../Cargo.toml")).unwrap();
    let shared = enabled(&manifest, "shared");
    assert!(shared.contains(&"dep:tokio".to_owned()), "{shared:?}");
    for backend in backends() {
        assert!(!shared.iter().any(|name| name.contains(backend)), "{shared:?}");
        let all = enabled(&manifest, backend);
        assert!(all.contains(&"shared".to_owned()), "{all:?}");
    }
}

#[test]
fn every_file_belongs_to_a_floor() {
    let floors = floors();
    for entry in fs::read_dir(source()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(
            floors.contains(&name) || name == "lib",
            "{} is no module of lib.rs",
            path.display()
        );
    }
}

/// The tables of features in the README and in lib.rs have each feature. The README has no row for `std`.
#[test]
fn tables_of_features_are_complete() {
    let read = |file| fs::read_to_string(source().join(file)).unwrap();
    let manifest = read("../Cargo.toml");
    let (_, features) = manifest.split_once("\n[features]\n").unwrap();
    let features = features.lines().take_while(|line| !line.starts_with('['));
    let features: Vec<&str> = features
        .filter_map(|line| Some(line.split_once(" = [")?.0))
        .collect();
    assert!(features.contains(&"redis-tls"), "{features:?}");
    for (file, row, without) in [("../README.md", "| `", "std"), ("lib.rs", "//! | `", "")] {
        let text = read(file);
        for feature in features
            .iter()
            .filter(|name| !["default", without].contains(name))
        {
            let is_in = |line: &str| line.starts_with(row) && line.contains(&format!("`{feature}`"));
            assert!(
                text.lines().any(is_in),
                "{file} has no row for the feature {feature}"
            );
        }
    }
}

#[test]
fn folders_stay_small() {
    let mut folders = vec![source()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let (inner, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
        // A folder's own file is not one of its parts.
        let parts = files.iter().filter(|file| !file.ends_with("mod.rs")).count();
        assert!(parts <= 14, "{} has {parts} files", folder.display());
        for module in &inner {
            let beside = module.with_extension("rs");
            assert!(!beside.exists(), "{} belongs into its folder", beside.display());
        }
        folders.extend(inner);
    }
}

/// `arc_swap` is a dependency of rules alone, so they and not `sync` choose what the model checker uses instead.
#[test]
fn only_the_ground_knows_where_atomics_come_from() {
    let published = source().join("rules/live/published.rs");
    assert!(published.exists());
    for module in floors().iter().filter(|module| *module != "sync") {
        for file in files_of(module).into_iter().filter(|file| *file != published) {
            let text = fs::read_to_string(&file).unwrap();
            for (number, line) in text.lines().enumerate() {
                let origin = ["loom::", "portable_atomic", "ringgate_loom", "atomic::Atomic"]
                    .iter()
                    .find(|origin| line.contains(**origin));
                assert!(origin.is_none(), "{}:{}: {line}", file.display(), number + 1);
            }
        }
    }
}

#[test]
fn files_stay_readable() {
    for module in floors() {
        for file in files_of(&module) {
            let lines = fs::read_to_string(&file).unwrap().lines().count();
            assert!(lines <= 600, "{} has {lines} lines", file.display());
        }
    }
}

/// Documents name files as `src/…`, `tests/…`, `ci/…`, `proofs/…` or `fuzz/…` in backticks.
#[test]
fn files_that_documents_name_exist() {
    let root = source().join("..");
    let mut documents = vec![root.join("CONTRIBUTING.md"), root.join("README.md")];
    let mut folders = vec![source()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                documents.push(path);
            }
        }
    }
    // The published package has no ci/, proofs/ or fuzz/.
    let tops = ["src/", "tests/", "ci/", "proofs/", "fuzz/"]
        .into_iter()
        .filter(|top| root.join(top).is_dir());
    let tops: Vec<&str> = tops.collect();
    let mut seen = 0;
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        for name in text.split('`').skip(1).step_by(2) {
            let is_path = name.chars().all(|c| c.is_alphanumeric() || "_-./".contains(c));
            // foo is any module.
            let is_path = is_path && !name.contains("foo");
            if is_path && tops.iter().any(|top| name.starts_with(top)) {
                seen += 1;
                assert!(
                    root.join(name).exists(),
                    "{}: `{name}` does not exist",
                    document.display()
                );
            }
        }
    }
    assert!(seen > 20, "only {seen} names were found");
}

/// Rows of the tables of the first page and of the guide: a task, and the link that leads to it.
#[test]
fn tasks_are_two_clicks_from_the_first_page() {
    let rows = |file| {
        let text = fs::read_to_string(source().join(file)).unwrap();
        let rows: Vec<String> = text
            .lines()
            .filter_map(|line| line.strip_prefix("//! | ").map(str::to_owned))
            .collect();
        rows
    };
    let (first, guide) = (rows("lib.rs"), rows("guide/mod.rs"));
    let lib = fs::read_to_string(source().join("lib.rs")).unwrap();
    assert!(lib.contains("//! The [guide] has a page for each task"));
    for (page, task, link) in [
        (&guide, "choose an algorithm", "[`choosing`]"),
        (&guide, "limit each client", "[`keys`]"),
        (&guide, "share a limit between machines", "[`redis`]"),
        (&guide, "an algorithm or a store", "[`extending`]"),
        (&guide, "test with a manual clock", "[`choosing`]"),
        (
            &guide,
            "the messages or bytes of a connection",
            "[`per_connection`]",
        ),
        (&guide, "the tokens of a language model", "[`token_budgets`]"),
        (
            &guide,
            "from governor, tower_governor or leaky-bucket",
            "[`migrating`]",
        ),
        (&first, "use client addresses as keys", "[`ClientAddress`]"),
        (&first, "share limits over many nodes", "[`redis`]"),
        (&first, "write an algorithm", "[`Algorithm`]"),
        (&first, "control time in tests", "[`ManualClock`]"),
        (&first, "limit log lines", "[`LogLimiter`]"),
        (&first, "each of very many connections", "[`InlineLimiter`]"),
        (&first, "refund, or settle an estimate", "(guide::token_budgets)"),
        (
            &first,
            "from governor, tower_governor or leaky-bucket",
            "(guide::migrating)",
        ),
    ] {
        let leads = |row: &&String| row.contains(task) && row.contains(link);
        assert_eq!(page.iter().filter(leads).count(), 1, "{task} -> {link}");
    }
}

/// A page has a title before its first code, and at most a heading and a line more.
#[test]
fn pages_of_the_guide_begin_with_code() {
    let mut pages = 0;
    for entry in fs::read_dir(source().join("guide")).unwrap() {
        let path = entry.unwrap().path();
        // The limitations have no code.
        if path.extension().is_none_or(|extension| extension != "md") || path.ends_with("caveats.md") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let before = text.lines().take_while(|line| !line.starts_with("```"));
        let lines = before.filter(|line| !line.is_empty()).count();
        assert!(
            lines <= 3,
            "{}: {lines} lines come before the code",
            path.display()
        );
        pages += 1;
    }
    assert!(pages > 10, "{pages}");
}

/// The file of the module with this path below `src`: `["rules", "key"]` is `rules/key.rs` or `rules/key/mod.rs`.
fn file_of(module: &[String]) -> Option<PathBuf> {
    let path = source().join(module.join("/"));
    let files = [path.with_extension("rs"), path.join("mod.rs")];
    files.into_iter().find(|file| file.is_file())
}

/// The paths that a file names with `crate::`, `super::` or a child module's name, as paths from the root of the crate. A
/// list in braces is one path for each of its entries. A visibility (`pub(in crate::rules)`) names no module that the file
/// uses.
fn paths(text: &str, module: &[String]) -> Vec<Vec<String>> {
    let code: String = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join(" ");
    let code = code.replace("pub(in crate::", "pub(in ");
    let children = code.split("mod ").skip(1).filter_map(|rest| rest.split_once(';'));
    let children = children.map(|(name, _)| format!("{name}::"));
    let starts = ["crate::", "super::"]
        .into_iter()
        .map(String::from)
        .chain(children);
    let mut found = Vec::new();
    for start in starts.collect::<BTreeSet<_>>() {
        for (at, _) in code.match_indices(&start) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|before| before.is_alphanumeric() || "_:$".contains(before)) {
                continue;
            }
            expand(&code[at..], Vec::new(), &mut found);
        }
    }
    found
        .into_iter()
        .map(|path| {
            let mut base = module.to_vec();
            let mut rest = &path[..];
            if rest[0] == "crate" {
                (base, rest) = (Vec::new(), &rest[1..]);
            }
            while let [first, others @ ..] = rest
                && first == "super"
            {
                base.pop();
                rest = others;
            }
            [&base[..], rest].concat()
        })
        .collect()
}

/// Adds each path of a tree such as `a::{b, c::d}`, and returns the rest of the text.
fn expand<'t>(mut text: &'t str, mut path: Vec<String>, found: &mut Vec<Vec<String>>) -> &'t str {
    loop {
        text = text.trim_start();
        if let Some(list) = text.strip_prefix('{') {
            text = list;
            loop {
                text = expand(text, path.clone(), found).trim_start();
                match text.strip_prefix(',') {
                    Some(rest) if !rest.trim_start().starts_with('}') => text = rest,
                    Some(rest) => return rest.trim_start().trim_start_matches('}'),
                    None => return text.trim_start_matches('}'),
                }
            }
        }
        let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '*'));
        let (name, rest) = text.split_at(end.unwrap_or(text.len()));
        path.push(name.to_owned());
        text = rest;
        match text.strip_prefix("::") {
            Some(rest) if !rest.starts_with('<') => text = rest,
            _ => break,
        }
    }
    found.push(path);
    text
}

/// The files of `src` that name one another in a circle, by the first file of each circle.
///
/// An edge leads from a file to the deepest module file on the path that it names. Unit tests at the end of a file do not
/// count, since they name what is above them.
fn circles() -> Vec<Vec<PathBuf>> {
    let mut edges: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
    for module in floors() {
        for file in files_of(&module) {
            let text = fs::read_to_string(&file).unwrap();
            let code = text.split("\n#[cfg(test)]\nmod tests").next().unwrap();
            let relative = file.strip_prefix(source()).unwrap().with_extension("");
            let module: Vec<String> = relative
                .iter()
                .map(|part| part.to_string_lossy().into_owned())
                .filter(|part| part != "mod")
                .collect();
            let targets = paths(code, &module).into_iter().filter_map(|path| {
                let modules = (1..=path.len()).rev();
                modules.map(|length| &path[..length]).find_map(file_of)
            });
            let targets = targets.filter(|target| *target != file).collect();
            edges.insert(file, targets);
        }
    }
    let reaches = |from: &PathBuf| {
        let mut seen = BTreeSet::new();
        let mut next: Vec<&PathBuf> = edges[from].iter().collect();
        while let Some(file) = next.pop() {
            if seen.insert(file) {
                next.extend(edges.get(file).into_iter().flatten());
            }
        }
        seen
    };
    let reached: BTreeMap<&PathBuf, BTreeSet<&PathBuf>> =
        edges.keys().map(|file| (file, reaches(file))).collect();
    let mut circles: Vec<Vec<PathBuf>> = Vec::new();
    for (file, reached_from) in &reached {
        if reached_from.contains(file) && !circles.iter().flatten().any(|other| other == *file) {
            let circle = reached_from
                .iter()
                .filter(|other| reached[**other].contains(file));
            circles.push(circle.map(|other| (*other).clone()).collect());
        }
    }
    circles
}

#[test]
fn no_files_name_one_another_in_a_circle() {
    let circles = circles();
    assert!(
        circles.is_empty(),
        "files name one another in a circle: {circles:#?}"
    );
}
