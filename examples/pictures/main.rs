//! Draws the pictures of the guide: runs the algorithms, rules and leases on a manual clock, and writes their admissions
//! as SVG.
//!
//! ```text
//! cargo run --example pictures --features shared              # writes src/guide/pictures/*.svg
//! cargo run --example pictures --features shared -- --check   # lists the pictures that are out of date
//! ```
//!
//! `cargo test` checks them, too.

extern crate alloc;

use core::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

mod admitted;
mod cells;
mod leases;
mod reload;
mod run;
mod svg;
mod worst;

type Fallible<T> = Result<T, Box<dyn Error>>;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/guide/pictures")
}

/// All pictures, with their file names.
fn pictures() -> Fallible<Vec<(&'static str, String)>> {
    Ok(vec![
        ("admitted.svg", admitted::draw()?),
        ("worst.svg", worst::draw()?),
        ("cells.svg", cells::draw()?),
        ("reload.svg", reload::draw()?),
        ("leases.svg", leases::draw()?),
    ])
}

/// The names of the pictures that differ from their files.
fn out_of_date() -> Fallible<Vec<&'static str>> {
    let drawn = pictures()?.into_iter();
    let other = drawn.filter(|(name, picture)| {
        fs::read_to_string(folder().join(name)).map_or(true, |kept| kept != *picture)
    });
    Ok(other.map(|(name, _)| name).collect())
}

fn main() -> Fallible<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => {
            fs::create_dir_all(folder())?;
            for (name, picture) in pictures()? {
                fs::write(folder().join(name), picture)?;
                println!("{name}");
            }
            Ok(())
        }
        [check] if check == "--check" => match out_of_date()?.as_slice() {
            [] => Ok(()),
            names => Err(format!(
                "pictures are out of date: {} (run without --check)",
                names.join(", ")
            )
            .into()),
        },
        _ => Err("usage: pictures [--check]".into()),
    }
}

#[cfg(test)]
mod tests {
    /// If it fails, run `cargo run --example pictures --features shared` and review the changes.
    #[test]
    fn pictures_are_up_to_date() {
        assert_eq!(super::out_of_date().unwrap(), Vec::<&str>::new());
    }
}
