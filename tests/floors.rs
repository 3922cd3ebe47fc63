//! Holds the architecture: a module names only itself and modules on floors below it.
//!
//! The floors are the order of the `mod` lines of `lib.rs`, from the ground up. A module's files
//! are `name.rs` and everything in `name/`; every `crate::other` in them must be a module that
//! stands earlier in that list, or the same.
#![cfg(not(any(miri, ringgate_loom)))]

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
    let mut files = vec![source().join(format!("{module}.rs"))];
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

#[test]
fn edges_do_not_name_one_another() {
    let edges = ["throttle", "observe", "http", "redis"];
    for module in edges {
        let files = files_of(module);
        assert!(
            files.len() > 1,
            "only {files:?} of the edge `{module}` were found"
        );
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            for (line, name) in named(&text) {
                let at = format!("{}:{line}", file.display());
                assert!(
                    name == module || !edges.contains(&name.as_str()),
                    "{at}: the edge `{module}` names `crate::{name}`"
                );
            }
        }
    }
}

#[test]
fn the_guide_for_contributors_shows_every_floor() {
    let guide = fs::read_to_string(source().join("../CONTRIBUTING.md")).unwrap();
    let shown: Vec<String> = guide
        .lines()
        .filter_map(|line| Some(line.strip_prefix("  ")?.split_once(".rs ")?.0.to_owned()))
        .collect();
    let floors = floors();
    let shown: Vec<&String> = shown.iter().filter(|name| floors.contains(name)).collect();
    assert_eq!(shown, floors.iter().collect::<Vec<_>>());
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
        assert_ne!(name, "mod", "foo.rs with foo/ beside it, never mod.rs");
    }
}

#[test]
fn only_the_ground_knows_where_atomics_come_from() {
    for module in floors().iter().filter(|module| *module != "sync") {
        for file in files_of(module) {
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
            assert!(lines <= 450, "{} has {lines} lines", file.display());
        }
    }
}
