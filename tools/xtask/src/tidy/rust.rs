//! Rules for Rust files: where `unsafe` and lifted bans may stand, size, and the words at the top.

use super::code::{code_only, has_word};
use super::{Finding, SourceFile};

/// The one folder with `unsafe` in it.
const UNSAFE_FOLDER: &str = "io/net/src/sys";

/// The one crate that cannot forbid `unsafe`, since that folder is its own.
const UNSAFE_CRATE: &str = "io/net";

/// Crates at the edge: they read clocks, open files and sockets, and start threads.
const EDGE: [&str; 7] = [
    "io/net",
    "io/recorder",
    "tools/opprof/recorder",
    "tools/takt",
    "tools/xtask",
    "bench",
    "tests",
];

/// Crates whose types may be `Serialize`: what is written for others to read is a promise. Records and
/// the result's schema, the command's configuration, and programs that promise nothing to anybody.
const SERIALIZERS: [&str; 5] = ["io/record", "tools/takt", "tools/xtask", "bench", "tests"];

/// Parts of the standard library that reach the system. `clippy.toml` bans single items; these are whole
/// modules that a pure crate has no business in. (Of `std::net` it needs the addresses.)
const SYSTEM_MODULES: [&str; 5] = ["std::env", "std::fs", "std::os", "std::process", "std::thread"];

/// A file is one idea. Past 500 lines it has two; past this it is refused.
const LINES_MAX: usize = 600;

/// Left-overs of work in progress, as they stand in code.
const LEFT_OVERS: [&str; 3] = ["todo!", "dbg!", "unimplemented!"];

/// The same in comments. Split, since this file is read too.
const NOTES: [&str; 2] = [concat!("FIX", "ME"), concat!("TO", "DO")];

pub(super) fn check(file: &SourceFile, found: &mut Vec<Finding>) {
    let lines = file.text.lines().count();
    if lines > LINES_MAX {
        found.push(file.finding(1, format!("{lines} lines; split it, {LINES_MAX} is the most")));
    }
    if documented_place(file) && !opens_with_docs(&file.text) {
        found.push(file.finding(1, "begins with `//!`: say what this module is, and is not"));
    }
    for (at, line) in file.text.lines().enumerate() {
        for note in NOTES.iter().filter(|note| has_word(line, note)) {
            found.push(file.finding(at + 1, format!("{note}: do it, or open an issue")));
        }
    }
    for (at, line) in code_only(&file.text).lines().enumerate() {
        check_code_line(file, at + 1, line, found);
    }
}

fn check_code_line(file: &SourceFile, at: usize, line: &str, found: &mut Vec<Finding>) {
    if has_word(line, "unsafe") && !file.within(UNSAFE_FOLDER) {
        found.push(file.finding(at, format!("`unsafe` belongs in {UNSAFE_FOLDER} alone")));
    }
    for word in LEFT_OVERS.iter().filter(|word| has_word(line, word)) {
        found.push(file.finding(at, format!("`{word}` is left over")));
    }
    if line.contains("clippy::disallowed_") && !may_lift_bans(file) {
        let edge = EDGE.join(", ");
        let says = format!("only the crates at the edge lift clippy.toml's bans ({edge})");
        found.push(file.finding(at, says));
    }
    for module in SYSTEM_MODULES.iter().filter(|_| is_pure(file)) {
        if has_word(line, module) {
            found.push(file.finding(at, format!("`{module}` in a pure crate: pass the effect in")));
        }
    }
    if has_word(line, "Serialize") && !SERIALIZERS.iter().any(|folder| file.within(folder)) {
        let who = SERIALIZERS.join(", ");
        found.push(file.finding(at, format!("`Serialize` is a promise that only {who} make")));
    }
}

/// Each crate's root forbids `unsafe`, except the crate that has it.
pub(super) fn check_crate_roots(
    files: &[SourceFile],
    members: &[String],
    found: &mut Vec<Finding>,
) {
    let roots = members.iter().filter(|m| *m != UNSAFE_CRATE).flat_map(|member| {
        files.iter().filter(move |file| {
            let Some(rest) = file.path.strip_prefix(member.as_str()) else { return false };
            matches!(rest, "/src/lib.rs" | "/src/main.rs") || rest.starts_with("/src/bin/")
        })
    });
    for file in roots {
        if !code_only(&file.text).contains("#![forbid(unsafe_code)]") {
            found.push(file.finding(1, "lacks `#![forbid(unsafe_code)]`"));
        }
    }
}

/// Library code of a crate that is not at the edge.
fn is_pure(file: &SourceFile) -> bool {
    is_module(file) && !EDGE.iter().any(|folder| file.within(folder))
}

/// An example is a program of its own, at the edge like the command; so is a test, which may need a
/// second thread to prove something about threads.
fn may_lift_bans(file: &SourceFile) -> bool {
    !is_pure(file)
}

/// A module's tests, in a file of their own, need no introduction.
fn documented_place(file: &SourceFile) -> bool {
    is_module(file) || file.path.contains("/examples/")
}

/// A module of a crate's library or program, and not a file of tests.
fn is_module(file: &SourceFile) -> bool {
    file.path.contains("/src/") && !file.path.ends_with("/tests.rs")
}

/// The first line that is neither blank nor an attribute of the file is a `//!`.
fn opens_with_docs(text: &str) -> bool {
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with("#!["))
        .is_some_and(|line| line.starts_with("//!"))
}

#[cfg(test)]
mod tests {
    use super::super::found_in;
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        found_in(path, text, check)
    }

    #[test]
    fn a_good_file_is_left_alone() {
        let text =
            "//! What it is.\n#![forbid(unsafe_code)]\n// unsafe is a word here\nfn f() {}\n";
        assert!(found("engine/src/lib.rs", text).is_empty());
    }

    #[test]
    fn unsafe_stands_in_one_folder() {
        let text = "//! x\nfn f() { unsafe { g() } }\n";
        assert_eq!(found("io/net/src/host.rs", text).len(), 1);
        assert!(found("io/net/src/host.rs", text)[0].starts_with("2: "));
        assert!(found("io/net/src/sys/socket.rs", text).is_empty());
    }

    #[test]
    fn bans_are_lifted_at_the_edge_alone() {
        let text = "//! x\n#![allow(clippy::disallowed_methods)]\n";
        assert_eq!(found("actors/src/lib.rs", text).len(), 1);
        assert!(found("io/net/src/lib.rs", text).is_empty());
        assert!(found("actors/examples/own.rs", text).is_empty());
        assert!(found("engine/src/system/tests.rs", text).is_empty());
    }

    #[test]
    fn pure_crates_do_not_reach_the_system() {
        let text = "//! x\nuse std::fs::read;\nuse std::net::SocketAddr;\n";
        assert_eq!(found("io/dataset/src/x.rs", text).len(), 1);
        assert!(found("io/dataset/tests/x.rs", text).is_empty());
        assert!(found("io/recorder/src/x.rs", text).is_empty());
    }

    #[test]
    fn left_overs_and_notes_are_found() {
        assert_eq!(found("actors/src/x.rs", "//! x\nfn f() { todo!() }\n").len(), 1);
        let note = format!("//! x\n// {}: later\n", NOTES[0]);
        assert_eq!(found("actors/src/x.rs", &note).len(), 1);
        assert!(found("actors/src/x.rs", "//! x\nlet s = \"todo!\";\n").is_empty());
    }

    #[test]
    fn serializable_is_a_promise_of_few() {
        let text = "//! x\n#[derive(Serialize)]\nstruct S;\n";
        assert_eq!(found("io/wire/src/x.rs", text).len(), 1);
        assert!(found("io/record/src/x.rs", text).is_empty());
        assert!(found("io/wire/src/x.rs", "//! x\n#[derive(Deserialize)]\n").is_empty());
    }

    #[test]
    fn a_file_is_short_and_opens_with_docs() {
        assert_eq!(found("actors/src/x.rs", "fn f() {}\n").len(), 1);
        assert!(found("actors/tests/x.rs", "fn f() {}\n").is_empty());
        assert!(found("actors/src/x/tests.rs", "fn f() {}\n").is_empty());
        let long = format!("//! x\n{}", "// line\n".repeat(LINES_MAX));
        assert_eq!(found("actors/src/x.rs", &long).len(), 1);
    }

    #[test]
    fn crate_roots_forbid_unsafe() {
        let file = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
        let files = [
            file("engine/src/lib.rs", "//! x\n"),
            file("engine/src/wheel.rs", "//! x\n"),
            file("engine/time/src/lib.rs", "//! x\n#![forbid(unsafe_code)]\n"),
            file("io/net/src/lib.rs", "//! x\n"),
        ];
        let members = ["engine", "engine/time", "io/net"].map(str::to_owned);
        let mut found = Vec::new();
        check_crate_roots(&files, &members, &mut found);
        let paths: Vec<&str> = found.iter().map(|f| f.path.as_str()).collect();
        assert_eq!(paths, ["engine/src/lib.rs"]);
    }
}
