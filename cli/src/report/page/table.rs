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

/// A table of one or more rows.
#[derive(Debug)]
pub(super) struct Table {
    headers: Vec<&'static str>,
    html: String,
    rows: usize,
    /// The script folds rows after this number.
    folded_after: usize,
}

impl Table {
    pub(super) const fn folded_after(rows: usize) -> Self {
        Self {
            headers: Vec::new(),
            html: String::new(),
            rows: 0,
            folded_after: rows,
        }
    }

    /// Adds a row of cells with the headers of their columns. `attributes` are those of its `tr`.
    pub(super) fn row(&mut self, attributes: &str, cells: &[Cell]) {
        self.headers = cells.iter().map(|(header, ..)| *header).collect();
        // Blocks have no roles of their own, so rows and cells state theirs.
        let class = if self.rows >= self.folded_after {
            r#" class="more""#
        } else {
            ""
        };
        put!(self.html, r#"<tr role="row"{class}{attributes}>"#);
        for (header, column, content) in cells {
            let class = match column {
                CellKind::Head => {
                    put!(
                        self.html,
                        r#"<th scope="row" role="rowheader" class="name">{content}</th>"#
                    );
                    continue;
                }
                CellKind::Text => r#" class="name""#,
                CellKind::Figure => "",
                CellKind::Alarm => r#" class="alarm""#,
                CellKind::Time => r#" class="time""#,
            };
            put!(
                self.html,
                r#"<td role="cell"{class} data-label="{header}">{content}</td>"#
            );
        }
        self.html.push_str("</tr>\n");
        self.rows += 1;
    }

    /// The element; the first `words` columns are aligned as text.
    pub(super) fn html(self, id: &str, caption: &str, words: usize) -> String {
        let mut html = format!(
            "<table class=\"stack\" id=\"{id}\" role=\"table\">\n<caption>{caption}</caption>\n<thead role=\"rowgroup\"><tr role=\"row\">"
        );
        for (index, header) in self.headers.iter().enumerate() {
            let class = if index < words { r#" class="name""# } else { "" };
            put!(
                html,
                r#"<th scope="col" role="columnheader"{class}>{header}</th>"#
            );
        }
        put!(
            html,
            "</tr></thead>\n<tbody role=\"rowgroup\">\n{}</tbody>\n</table>",
            self.html
        );
        html
    }
}
