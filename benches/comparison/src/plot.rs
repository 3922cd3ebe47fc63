//! Plots as SVG, plain text that a light and a dark page show alike well.

use std::path::Path;

use crate::contestant::Side;
use crate::measure::Row;
use crate::rivals::GOVERNOR;

mod bars;
mod lines;
mod svg;

/// One bar, and the position of the mark beside it.
pub struct Bar {
    pub name: &'static str,
    pub side: Side,
    pub value: f64,
    pub mark: Option<f64>,
}

/// One line.
pub struct Series {
    pub name: &'static str,
    pub side: Side,
    pub values: Vec<f64>,
}

/// Lines over common positions, on a logarithmic scale.
pub struct Panel {
    pub title: String,
    pub across: Vec<String>,
    pub unit: &'static str,
    pub series: Vec<Series>,
}

pub fn bars(path: &Path, panels: &[(String, Vec<Bar>)]) {
    svg::write(path, &bars::draw(panels));
}

pub fn lines(path: &Path, panels: &[Panel]) {
    svg::write(path, &lines::draw(panels));
}

/// Millions of decisions per second by threads, a panel for each table of rows.
pub fn throughput(path: &Path, panels: &[(String, Vec<Row>)]) {
    let panels: Vec<Panel> = panels
        .iter()
        .map(|(title, rows)| by_threads(title, rows))
        .collect();
    lines(path, &panels);
}

fn by_threads(title: &str, rows: &[Row]) -> Panel {
    let mut counts: Vec<usize> = rows.iter().map(|row| row.threads).collect();
    counts.sort_unstable();
    counts.dedup();
    let mut series: Vec<Series> = Vec::new();
    // Rows come by threads, ascending.
    for row in rows {
        match series.iter_mut().find(|series| series.name == row.name) {
            Some(series) => series.values.push(row.median),
            None => series.push(Series {
                name: row.name,
                side: row.side,
                values: vec![row.median],
            }),
        }
    }
    let across = counts.into_iter().map(|threads| match threads {
        1 => "1 thread".into(),
        threads => format!("{threads} threads"),
    });
    Panel {
        title: title.into(),
        across: across.collect(),
        unit: "million decisions a second",
        series,
    }
}

/// The class of a shape, which gives its colour.
fn class(name: &str, side: Side) -> &'static str {
    match side {
        Side::Ours => "ours",
        Side::Rival if name == GOVERNOR => "governor",
        Side::Rival => "rival",
        Side::Floor => "floor",
    }
}
