//! Rules for pages: a link within the project leads somewhere.
//!
//! Checked are `[text](target)` links and `[label]: target` definitions outside code; a fragment is
//! looked up among the headings of the page it points into. Addresses of the web are not asked.

use super::{Finding, SourceFile};

/// `exists` answers for a path relative to the root.
pub(super) fn check(
    page: &SourceFile,
    pages: &[SourceFile],
    exists: &dyn Fn(&str) -> bool,
    found: &mut Vec<Finding>,
) {
    for (line, target) in links(&page.text) {
        if let Some(says) = broken(page, &target, pages, exists) {
            found.push(page.finding(line, format!("link `{target}`: {says}")));
        }
    }
}

/// What is wrong with `target`, seen from `page`.
fn broken(
    page: &SourceFile,
    target: &str,
    pages: &[SourceFile],
    exists: &dyn Fn(&str) -> bool,
) -> Option<&'static str> {
    if ["http://", "https://", "mailto:"].iter().any(|scheme| target.starts_with(scheme)) {
        return None;
    }
    let (file, fragment) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() { Some(page.path.clone()) } else { resolve(&page.path, file) };
    let Some(path) = path else { return Some("leads out of the project") };
    if !exists(&path) {
        return Some("no such file");
    }
    let into = pages.iter().find(|p| p.path == path)?;
    let known = fragment.is_empty()
        || into.extension() != "md"
        || anchors(&into.text).iter().any(|a| a == fragment);
    if known { None } else { Some("no such heading") }
}

/// `target` relative to the folder of `page`, without `.` and `..`; `None` when it leaves the root.
fn resolve(page: &str, target: &str) -> Option<String> {
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|p| !p.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Link targets with their lines, outside fences and code spans.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (at, line) in prose(text) {
        let mut rest = line.as_str();
        while let Some((_, after)) = rest.split_once("](") {
            let Some((target, further)) = after.split_once(')') else { break };
            // A title may follow the target.
            links.extend(target.split_whitespace().next().map(|t| (at, t.to_owned())));
            rest = further;
        }
        let definition = line.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
        if let Some((_, target)) = definition {
            links.extend(target.split_whitespace().next().map(|t| (at, t.to_owned())));
        }
    }
    links
}

/// The headings of a page as the anchors they get: lower case, hyphens for spaces, no punctuation.
fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for (_, line) in numbered_outside_fences(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let slug: String = title
            .trim()
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
            .flat_map(char::to_lowercase)
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let before = anchors.iter().filter(|a| **a == slug).count();
        anchors.push(if before == 0 { slug } else { format!("{slug}-{before}") });
    }
    anchors
}

/// Numbered lines outside fences, with code spans blanked.
fn prose(text: &str) -> Vec<(usize, String)> {
    numbered_outside_fences(text)
        .into_iter()
        // Outside code are the pieces before the first backtick, after the second, and so on.
        .map(|(at, line)| (at, line.split('`').step_by(2).collect::<Vec<_>>().join(" ")))
        .collect()
}

fn numbered_outside_fences(text: &str) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            lines.push((at + 1, line));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_seen_outside_code_only() {
        let page =
            "[a](b.md) and [c](d.md \"title\")\n```\n[e](f.md)\n```\n`[g](h.md)`\n[i]: j.md\n";
        let links = links(page);
        let expected = [(1, "b.md"), (1, "d.md"), (6, "j.md")];
        assert_eq!(links, expected.map(|(at, target)| (at, target.to_owned())));
    }

    #[test]
    fn targets_are_relative_to_the_page() {
        assert_eq!(resolve("docs/a.md", "b.md").as_deref(), Some("docs/b.md"));
        assert_eq!(resolve("docs/a.md", "../README.md").as_deref(), Some("README.md"));
        assert_eq!(resolve("README.md", "./docs/a.md").as_deref(), Some("docs/a.md"));
        assert_eq!(resolve("README.md", "../other/a.md"), None);
    }

    #[test]
    fn headings_become_anchors() {
        let page = "# One turn, in `prose`\n## Who may import whom?\n#no\n## One\n## One\n";
        let expected = ["one-turn-in-prose", "who-may-import-whom", "one", "one-1"];
        assert_eq!(anchors(page), expected);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let page = SourceFile {
            path: "docs/a.md".into(),
            text: "# Here\n[x](#here) [y](#there) [z](none.md) [w](https://example.org/q)\n".into(),
        };
        let mut found = Vec::new();
        check(&page, std::slice::from_ref(&page), &|path| path == "docs/a.md", &mut found);
        let says: Vec<&str> = found.iter().map(|f| f.says.as_str()).collect();
        assert_eq!(says, ["link `#there`: no such heading", "link `none.md`: no such file"]);
    }
}
