//! What a benchmark hands back: tables, printed by one function as text and by one as Markdown.

use std::fmt::Write as _;

/// One table: a title, a head, rows, and lines below it.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Table {
    title: String,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

impl Table {
    /// A table without rows.
    pub(super) fn new(title: impl Into<String>, head: &[&str]) -> Self {
        Self {
            title: title.into(),
            head: head.iter().map(|&cell| cell.to_owned()).collect(),
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// One more row; it has a cell for each of the head.
    pub(super) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.head.len(), "{cells:?}");
        self.rows.push(cells);
    }

    /// One more line below.
    pub(super) fn note(&mut self, line: impl Into<String>) {
        self.notes.push(line.into());
    }

    /// For a terminal: the first column to the left, the others to the right.
    pub(super) fn text(&self) -> String {
        let lines: Vec<&Vec<String>> = std::iter::once(&self.head).chain(&self.rows).collect();
        let width = |at: usize| {
            lines.iter().filter_map(|line| line.get(at)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> = (0..self.head.len()).filter_map(width).collect();
        let mut out = format!("{}\n", self.title);
        for line in lines {
            let mut text = String::new();
            for (at, (cell, &width)) in line.iter().zip(&widths).enumerate() {
                // Writing to a string cannot fail.
                let _ = match at {
                    0 => write!(text, "  {cell:<width$}"),
                    _ => write!(text, "  {cell:>width$}"),
                };
            }
            out.push_str(text.trim_end());
            out.push('\n');
        }
        for note in &self.notes {
            let _ = writeln!(out, "  {note}");
        }
        out
    }

    /// For a page.
    pub(super) fn markdown(&self) -> String {
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let mut out = format!("### {}\n\n{}", self.title, line(&self.head));
        out.push_str(&format!("|{}\n", " --- |".repeat(self.head.len())));
        self.rows.iter().for_each(|row| out.push_str(&line(row)));
        for note in &self.notes {
            let _ = write!(out, "\n{note}\n");
        }
        out
    }
}

/// What one benchmark hands back.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) tables: Vec<Table>,
    /// What a program printed that makes its tables itself.
    pub(super) printed: String,
    /// What the benchmark promised and did not find; with it the command fails.
    pub(super) failed: Option<String>,
}

impl From<Table> for Report {
    fn from(table: Table) -> Self {
        Self { tables: vec![table], ..Self::default() }
    }
}

impl Report {
    /// For a terminal.
    pub(super) fn text(&self) -> String {
        let mut parts: Vec<String> = self.tables.iter().map(Table::text).collect();
        parts.extend((!self.printed.is_empty()).then(|| self.printed.clone()));
        parts.join("\n")
    }

    /// For a page.
    pub(super) fn markdown(&self) -> String {
        let mut parts: Vec<String> = self.tables.iter().map(Table::markdown).collect();
        let printed = self.printed.trim_end();
        parts.extend((!printed.is_empty()).then(|| format!("```text\n{printed}\n```\n")));
        parts.extend(self.failed.as_ref().map(|why| format!("**Failed:** {why}\n")));
        parts.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new("Requests", &["client", "us"]);
        table.row(vec!["wrk".into(), "5.21".into()]);
        table.row(vec!["a|b".into(), "11.00".into()]);
        table.note("medians of 3");
        table
    }

    #[test]
    fn text_is_aligned_and_has_the_notes_below() {
        let expect =
            "Requests\n  client     us\n  wrk      5.21\n  a|b     11.00\n  medians of 3\n";
        assert_eq!(table().text(), expect);
    }

    #[test]
    fn markdown_has_the_same_cells_and_keeps_bars_within_them() {
        let expect = "### Requests\n\n| client | us |\n| --- | --- |\n| wrk | 5.21 |\n\
                      | a\\|b | 11.00 |\n\nmedians of 3\n";
        assert_eq!(table().markdown(), expect);
    }

    #[test]
    fn a_report_has_its_tables_what_was_printed_and_what_failed() {
        let mut report = Report::from(table());
        report.printed = "shape  ns\nchat   96\n".into();
        report.failed = Some("memory grew".into());
        assert!(report.text().ends_with("medians of 3\n\nshape  ns\nchat   96\n"));
        let page = report.markdown();
        assert!(page.contains("```text\nshape  ns\nchat   96\n```\n\n**Failed:** memory grew\n"));
    }
}
