//! What a decision costs with many keys, beside governor and beside the least that a table can do.
//!
//! `cargo run --release` measures everything, which takes six minutes, and prints Markdown; with the names
//! of sections, only those: `decisions`, `insertions`, `scaling`, `many`, `hot`, `memory`. See `../README.md`
//! for a run, and for how to read it.

mod decisions;
mod hot;
mod insertions;
mod keys;
mod measure;
mod memory;
mod rivals;
mod scaling;

fn main() -> Result<(), ringgate::ConfigError> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let [section, case] = &wanted[..]
        && section == "memory-of"
    {
        return memory::print(case);
    }
    let wants = |section: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == section);
    if wants("memory") {
        memory::run();
    }
    if wants("decisions") {
        decisions::run()?;
    }
    if wants("insertions") {
        insertions::run()?;
    }
    if wants("many") {
        scaling::run_many()?;
    }
    if wants("hot") {
        hot::run()?;
    }
    if wants("scaling") {
        scaling::run()?;
    }
    Ok(())
}
