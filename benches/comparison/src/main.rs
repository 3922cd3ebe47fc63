//! Compares this crate with other limiters: the cost of a decision, the memory of a key, and the most that is admitted.
//!
//! `cargo run --release --locked` measures everything in about a quarter of an hour, prints Markdown and writes plots to
//! `../plots`. With names of sections it measures only those: `defaults`, `direct`, `keyed`, `steady`, `memory`, `windows`, `tail`,
//! `cold`, `batch`, `clocks`, `layers`, `flood`. `--brief` takes a fifth of the time, and `--quick` a few seconds.
//! `--plots DIR` writes the plots to another folder. `../README.md` explains the results.

mod batch;
mod clocks;
mod cold;
mod contestant;
mod defaults;
mod direct;
mod flood;
mod floors;
mod keyed;
mod keys;
mod layers;
mod maps;
mod measure;
mod memory;
mod plot;
mod rivals;
mod steady;
mod tail;
mod windows;
mod words;

use std::path::PathBuf;
use std::time::Instant;

use measure::Effort;

const SECTIONS: [&str; 12] = [
    "defaults", "direct", "keyed", "steady", "memory", "windows", "tail", "cold", "batch", "clocks",
    "layers", "flood",
];

fn main() {
    let mut effort = Effort::full();
    let mut plots = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../plots"));
    let mut wanted: Vec<String> = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => effort = Effort::quick(),
            "--brief" => effort = Effort::brief(),
            "--plots" => plots = arguments.next().expect("a path after --plots").into(),
            memory::ONE => {
                let mut next = || arguments.next().expect("a kind of key, and a number");
                return memory::print_one(&next(), &next());
            }
            section if SECTIONS.contains(&section) => wanted.push(section.into()),
            other => panic!("{other} is none of --quick, --brief, --plots, {SECTIONS:?}"),
        }
    }
    std::fs::create_dir_all(&plots).expect("a directory for the plots");
    let begun = Instant::now();
    let wants = |section: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == section);
    if wants("memory") {
        memory::run(&plots);
    }
    if wants("flood") {
        flood::run();
    }
    if wants("windows") {
        windows::run(&effort, &plots);
    }
    if wants("tail") {
        tail::run(&effort, &plots);
    }
    if wants("cold") {
        cold::run(&effort);
    }
    if wants("direct") {
        direct::run(&effort, &plots);
    }
    if wants("clocks") {
        clocks::run(&effort, &plots);
    }
    if wants("batch") {
        batch::run(&effort, &plots);
    }
    if wants("layers") {
        layers::run(&effort);
    }
    if wants("defaults") {
        defaults::run(&effort);
    }
    if wants("steady") {
        steady::run(&effort);
    }
    if wants("keyed") {
        keyed::run(&effort, &plots);
    }
    eprintln!("{} seconds", begun.elapsed().as_secs());
}
