//! The reference of all keys, made from the table that reads them: `takt validate --keys`, docs/CONFIG.md.

use std::fmt::Write as _;

use super::keys::{Key, LEVELS, Level};

/// All levels and their keys, as Markdown.
pub(crate) fn reference() -> String {
    let mut text = String::new();
    for level in LEVELS {
        section(&mut text, level);
    }
    text
}

fn section(text: &mut String, level: &Level) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "## {}\n", level.title);
    text.push_str("| key | takes | default | does |\n| --- | --- | --- | --- |\n");
    for key in level.keys {
        let Key { name, takes, default, does, with } = key;
        let with = match with {
            [] => String::new(),
            words => format!(" ({} {})", level.selector, words.join(", ")),
        };
        let _ = writeln!(text, "| `{name}` | {takes} | {default} | {does}{with} |");
    }
    if !level.later.is_empty() {
        let _ = writeln!(text, "\nNot in this version: {}.", level.later.join(", "));
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made again with `takt validate --keys`, below the line that says so.
    #[test]
    fn docs_config_md_holds_every_key_as_the_table_has_it() {
        let page = include_str!("../../../../docs/CONFIG.md");
        let made = reference();
        let missing: Vec<_> = made.lines().filter(|line| !page.contains(line)).collect();
        let stale: Vec<_> = (page.lines().skip_while(|line| !line.starts_with("## top level")))
            .filter(|line| !made.lines().any(|other| other == *line))
            .collect();
        assert!(
            missing.is_empty() && stale.is_empty(),
            "docs/CONFIG.md lacks {missing:#?} and should not have {stale:#?}; put what \
             `cargo run -p takt -- validate --keys` prints in place of its tables"
        );
    }
}
