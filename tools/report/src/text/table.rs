//! Columns: the first few to the left, the others to the right, empty ones left out.

/// Rows under a head.
#[derive(Clone, Debug)]
pub struct Table {
    left: usize,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows, its first `left` columns of words.
    #[must_use]
    pub fn new(left: usize, head: &[&str]) -> Self {
        Self { left, head: head.iter().map(|&cell| cell.to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a row, one cell for each column; an empty cell is one without a value.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.head.len());
        self.rows.push(cells);
    }

    /// Is there no row?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Prints it, indented by two.
    pub fn print(&self, out: &mut String) {
        let widths: Vec<usize> = (0..self.head.len()).map(|column| self.width(column)).collect();
        for row in std::iter::once(&self.head).chain(&self.rows) {
            out.push(' ');
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                let missing = width.saturating_sub(cell.chars().count());
                let pad = std::iter::repeat_n(' ', missing);
                if width == 0 {
                    continue;
                }
                out.push_str(if column == 0 { " " } else { "  " });
                if column < self.left {
                    out.push_str(cell);
                    out.extend(pad);
                } else {
                    out.extend(pad);
                    out.push_str(cell);
                }
            }
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
        }
    }

    /// The width of a column; 0 when none of its rows has a value.
    fn width(&self, column: usize) -> usize {
        let cells = || self.rows.iter().filter_map(|row| row.get(column));
        if cells().all(String::is_empty) {
            return 0;
        }
        cells().chain(self.head.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_without_values_is_left_out() {
        let mut table = Table::new(1, &["what", "none", "p50"]);
        table.row(vec!["a".into(), String::new(), "1.0".into()]);
        table.row(vec!["longer".into(), String::new(), String::new()]);
        let mut out = String::new();
        table.print(&mut out);
        assert_eq!(out, "  what    p50\n  a       1.0\n  longer\n");
    }
}
