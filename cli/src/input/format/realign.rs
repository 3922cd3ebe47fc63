//! Lines with more values than columns, because a value has delimiters: a user agent with commas, or a size such as `1,024`.

use crate::input::client;
use crate::input::format::Parsed;
use crate::input::row::{Row, Unreadable};

/// The column of the extra values, the time, and the fields of rules.
type Alignment = (usize, i64, Vec<Option<Vec<u8>>>);

/// Reads a line of values by `read`, which takes one value for each column. `form` has the number of the columns, the delimiter,
/// and the place that names the columns.
///
/// If there are more values, each column in turn is taken as the one whose value has the delimiters. The line is read if all
/// columns for which `read` succeeds lead to the same time and to the same first `needed` fields of the row.
///
/// # Errors
///
/// When there are fewer values, or it is unknown which of more values belong together.
pub(crate) fn aligned(
    values: &[&[u8]],
    form: (usize, u8, &str),
    needed: usize,
    row: &mut Row,
    mut read: impl FnMut(&[&[u8]], &mut Row) -> Result<(), Unreadable>,
) -> Result<Parsed, Unreadable> {
    let (columns, delimiter, named_by) = form;
    let count = values.len();
    if count == columns {
        read(values, row)?;
    } else if count < columns || realign(values, (columns, delimiter), needed, row, read).is_none() {
        return Err(Unreadable::line(format!(
            "line has {count} values (expected {columns}, as in {named_by})"
        )));
    }
    Ok(Parsed::Request)
}

fn realign(
    values: &[&[u8]],
    (columns, delimiter): (usize, u8),
    needed: usize,
    row: &mut Row,
    mut read: impl FnMut(&[&[u8]], &mut Row) -> Result<(), Unreadable>,
) -> Option<()> {
    let extra = values.len() - columns;
    let mut attempt = |column: usize, row: &mut Row| {
        let end = column + extra + 1;
        let joined = values[column..end].join(&delimiter);
        let aligned = [&values[..column], &[&joined[..]], &values[end..]].concat();
        row.clear();
        read(&aligned, row)
    };
    let mut found: Option<Alignment> = None;
    for column in 0..columns {
        if attempt(column, row).is_err() {
            // The first values may be a list of addresses, of which no column in particular has the first.
            let mut first = values[column..column + 2].iter();
            if first.all(|value| client::address(value.trim_ascii()).is_some()) {
                return None;
            }
            continue;
        }
        let fields = (0..needed)
            .map(|place| row.get(place).map(<[u8]>::to_vec))
            .collect();
        match &found {
            Some((_, time, known)) if *time != row.time || *known != fields => return None,
            _ => found = Some((column, row.time, fields)),
        }
    }
    attempt(found?.0, row).ok()
}
