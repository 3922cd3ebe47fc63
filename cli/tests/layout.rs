//! The layout of the tool's sources: small files, small folders, and no circle of imports between files.

extern crate alloc;

use alloc::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The longest file, and the most files of one folder.
const LINES: usize = 600;
const FILES: usize = 13;

/// A folder of the package, and all folders in it.
fn folders(root: &str) -> Vec<PathBuf> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(root)];
    let mut next = 0;
    while let Some(folder) = folders.get(next) {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let inner: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
        folders.extend(inner);
        next += 1;
    }
    folders
}

/// The text of each module, by its path: `replay::span` for `replay/span.rs`, `replay` for `replay/mod.rs`, and nothing
/// for `main.rs`.
fn modules() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = folders("src")
        .into_iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap());
    let files = files.map(|entry| entry.unwrap().path());
    let rust = files.filter(|path| path.extension().is_some_and(|ending| ending == "rs"));
    rust.map(|path| {
        let relative = path.strip_prefix(&root).unwrap().with_extension("");
        let name = relative
            .to_str()
            .unwrap()
            .replace(std::path::MAIN_SEPARATOR, "::");
        let name = if name == "main" {
            ""
        } else {
            name.trim_end_matches("::mod")
        }
        .to_owned();
        (name, fs::read_to_string(path).unwrap())
    })
    .collect()
}

/// The modules that a module names by `crate::`, `super::`, `self::`, or as its own children, outside of its tests.
fn imports(name: &str, text: &str, modules: &BTreeMap<String, String>) -> BTreeSet<String> {
    let join = |parent: &str, child: &str| match parent {
        "" => child.to_owned(),
        parent => format!("{parent}::{child}"),
    };
    let mut imports = BTreeSet::new();
    for line in text.split("#[cfg(test)]\nmod tests").next().unwrap().lines() {
        let code = line.split("//").next().unwrap();
        let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        for path in code.split(|c| !is_path(c)).filter(|path| path.contains("::")) {
            let mut base = String::new();
            let mut rest = path;
            if let Some(after) = rest.strip_prefix("crate::") {
                rest = after;
            } else {
                base = name.to_owned();
                while let Some(after) = rest.strip_prefix("super::") {
                    base = base.rsplit_once("::").map_or("", |(parent, _)| parent).to_owned();
                    rest = after;
                }
                rest = rest.strip_prefix("self::").unwrap_or(rest);
            }
            // The longest part of the path that is a module of its own.
            for part in rest.split("::").filter(|part| !part.is_empty()) {
                let inner = join(&base, part);
                if !modules.contains_key(&inner) {
                    break;
                }
                base = inner;
            }
            if base != name {
                imports.insert(base);
            }
        }
    }
    imports
}

#[test]
fn imports_have_no_circle() {
    let modules = modules();
    let mut left: BTreeMap<&str, BTreeSet<String>> = modules
        .iter()
        .map(|(name, text)| (name.as_str(), imports(name, text, &modules)))
        .collect();
    let edges: usize = left.values().map(BTreeSet::len).sum();
    assert!(
        modules.len() > 40 && edges > 100,
        "{} modules, {edges} imports",
        modules.len()
    );
    // Removes modules without imports, and imports of removed modules, until none is left or all are in circles.
    loop {
        let ready: BTreeSet<String> = left
            .iter()
            .filter(|(_, imports)| imports.is_empty())
            .map(|(name, _)| (*name).to_owned())
            .collect();
        if ready.is_empty() {
            break;
        }
        left.retain(|name, _| !ready.contains(*name));
        for imports in left.values_mut() {
            imports.retain(|import| !ready.contains(import));
        }
    }
    assert!(left.is_empty(), "in circles, or importing from one: {left:#?}");
}

#[test]
fn files_and_folders_stay_small() {
    for folder in [folders("src"), folders("tests")].concat() {
        let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let rust: Vec<PathBuf> = entries
            .filter(|path| path.extension().is_some_and(|ending| ending == "rs"))
            .collect();
        for path in &rust {
            let lines = fs::read_to_string(path).unwrap().lines().count();
            assert!(lines <= LINES, "{} has {lines} lines", path.display());
        }
        let files = rust.iter().filter(|path| !path.ends_with("mod.rs")).count();
        assert!(files <= FILES, "{} has {files} files", folder.display());
    }
}
