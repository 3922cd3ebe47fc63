//! Tables that become blocks on a narrow screen.

use super::text::append;

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

/// A table; cells are HTML.
#[derive(Debug)]
pub(super) struct Table {
    headers: Vec<String>,
    html: String,
    rows: usize,
    /// The script folds rows after this number.
    folded_after: usize,
}

impl Table {
    pub(super) fn new(headers: &[&str]) -> Self {
        Self {
            headers: headers.iter().map(|&header| header.to_owned()).collect(),
            html: String::new(),
            rows: 0,
            folded_after: usize::MAX,
        }
    }

    pub(super) fn folded_after(mut self, rows: usize) -> Self {
        self.folded_after = rows;
        self
    }

    /// Adds a row with one cell for each header. `attributes` are those of its `tr`.
    pub(super) fn row(&mut self, attributes: &str, cells: &[(CellKind, String)]) {
        debug_assert_eq!(cells.len(), self.headers.len());
        // Blocks have no roles of their own, so rows and cells state theirs.
        let class = if self.rows >= self.folded_after {
            r#" class="more""#
        } else {
            ""
        };
        append(
            &mut self.html,
            format_args!(r#"<tr role="row"{class}{attributes}>"#),
        );
        for (header, (column, content)) in self.headers.iter().zip(cells) {
            let class = match column {
                CellKind::Head => {
                    append(
                        &mut self.html,
                        format_args!(r#"<th scope="row" role="rowheader" class="name">{content}</th>"#),
                    );
                    continue;
                }
                CellKind::Text => r#" class="name""#,
                CellKind::Figure => "",
                CellKind::Alarm => r#" class="alarm""#,
                CellKind::Time => r#" class="time""#,
            };
            append(
                &mut self.html,
                format_args!(r#"<td role="cell"{class} data-label="{header}">{content}</td>"#),
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
            append(
                &mut html,
                format_args!(r#"<th scope="col" role="columnheader"{class}>{header}</th>"#),
            );
        }
        append(
            &mut html,
            format_args!(
                "</tr></thead>\n<tbody role=\"rowgroup\">\n{}</tbody>\n</table>",
                self.html
            ),
        );
        html
    }
}
