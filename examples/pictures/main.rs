//! Draws the pictures of the guide: runs the real algorithms on a clock that is moved by hand, under the same arrivals, and
//! writes what they admit as SVG.
//!
//! ```text
//! cargo run --example pictures              # writes src/guide/pictures/*.svg
//! cargo run --example pictures -- --check   # says which of them are out of date
//! ```
//!
//! `cargo test` checks them too.

use core::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

mod admitted;
mod cells;
mod run;
mod svg;
mod worst;

type Fallible<T> = Result<T, Box<dyn Error>>;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/guide/pictures")
}

/// Every picture, by the name of its file.
fn pictures() -> Fallible<Vec<(&'static str, String)>> {
    Ok(vec![
        ("admitted.svg", admitted::draw()?),
        ("worst.svg", worst::draw()?),
        ("cells.svg", cells::draw()?),
    ])
}

/// The names of those that are not as they would be drawn now.
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
            names => Err(format!("out of date: {}; run it without --check", names.join(", ")).into()),
        },
        _ => Err("usage: pictures [--check]".into()),
    }
}

#[cfg(test)]
mod tests {
    /// What this says is mended by `cargo run --example pictures`, and a look at what has changed.
    #[test]
    fn pictures_are_as_they_would_be_drawn_now() {
        assert_eq!(super::out_of_date().unwrap(), Vec::<&str>::new());
    }
}
