//! Tables that become blocks on a narrow screen.

/// The kind of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellKind {
    /// The head of the row.
    Head,
    Text,
    Figure,
    /// A figure to be marked.
    Alarm,
    /// An instant.
    Time,
}

/// The header of a column, and the kind and the HTML of a cell.
pub(super) type Cell = (&'static str, CellKind, String);

/// A row: the attributes of its `tr`, and its cells.
pub(super) type Row = (String, Vec<Cell>);

/// A table with its caption. The first `words` columns are aligned as text. The script folds the rows behind `folded_after`.
pub(super) fn table(id: &str, caption: &str, words: usize, folded_after: usize, rows: &[Row]) -> String {
    // Blocks have no roles of their own, so rows and cells state theirs.
    let mut html = format!(
        "<table class=\"stack\" id=\"{id}\" role=\"table\">\n<caption>{caption}</caption>\n<thead role=\"rowgroup\"><tr role=\"row\">"
    );
    let headers = rows.iter().take(1).flat_map(|(_, cells)| cells);
    for (index, (header, ..)) in headers.enumerate() {
        let class = if index < words { r#" class="name""# } else { "" };
        html += &format!(r#"<th scope="col" role="columnheader"{class}>{header}</th>"#);
    }
    html += "</tr></thead>\n<tbody role=\"rowgroup\">\n";
    for (index, (attributes, cells)) in rows.iter().enumerate() {
        let class = if index < folded_after {
            ""
        } else {
            r#" class="more""#
        };
        html += &format!(r#"<tr role="row"{class}{attributes}>"#);
        for (header, kind, content) in cells {
            let class = match kind {
                CellKind::Head => {
                    html += &format!(r#"<th scope="row" role="rowheader" class="name">{content}</th>"#);
                    continue;
                }
                CellKind::Text => r#" class="name""#,
                CellKind::Figure => "",
                CellKind::Alarm => r#" class="alarm""#,
                CellKind::Time => r#" class="time""#,
            };
            html += &format!(r#"<td role="cell"{class} data-label="{header}">{content}</td>"#);
        }
        html += "</tr>\n";
    }
    html + "</tbody>\n</table>"
}
