//! Who may import whom.
//!
//! The table below is the one of `docs/ARCHITECTURE.md`, as data. The test reads what the manifests
//! really say (`cargo metadata`) and names each edge that the table does not have.
#![forbid(unsafe_code)]

use std::fmt;

use cargo_metadata::{DependencyKind, MetadataCommand};

/// A crate of the workspace and the crates of the workspace that it may depend on.
struct Row {
    krate: &'static str,
    kind: Kind,
    may: &'static [&'static str],
}

/// Where a crate stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Time, bytes and chance are arguments. Its tests may use other pure crates and nothing else.
    Pure,
    /// A library that talks to the system. Its tests may use any library.
    Edge,
    /// A program or a set of tests: nobody depends on it. Its tests may use any library and chores.
    Top,
}

use Kind::{Edge, Pure, Top};

const TABLE: &[Row] = &[
    row("takt-time", Pure, &[]),
    row("takt-engine", Pure, &["takt-time"]),
    row("takt-wire", Pure, &["takt-time"]),
    row("takt-record", Pure, &["takt-time"]),
    row("takt-dataset", Pure, &["takt-time"]),
    row("takt-actors", Pure, &["takt-time", "takt-engine", "takt-wire", "takt-record"]),
    row("takt-report", Pure, &["takt-time", "takt-record"]),
    row("takt-score", Pure, &["takt-record"]),
    row("takt-opprof", Pure, &["takt-time", "takt-record", "takt-report"]),
    row(
        "takt-mock",
        Pure,
        &["takt-time", "takt-engine", "takt-wire", "takt-record", "takt-opprof"],
    ),
    row("takt-net", Edge, &["takt-time", "takt-engine"]),
    row("takt-recorder", Edge, &["takt-time", "takt-engine", "takt-record", "takt-net"]),
    row("takt-opprof-recorder", Edge, &["takt-record"]),
    row("takt", Top, LIBRARIES),
    row("takt-bench", Top, LIBRARIES),
    // The simulation is pure; what needs the net is a test and says so in its dev-dependencies.
    row("takt-tests", Top, PURE),
    row("xtask", Top, &[]),
];

/// The pure crates, for those who may use all of them.
const PURE: &[&str] = &[
    "takt-time",
    "takt-engine",
    "takt-wire",
    "takt-record",
    "takt-dataset",
    "takt-actors",
    "takt-report",
    "takt-score",
    "takt-opprof",
    "takt-mock",
];

/// The pure crates and those at the edge.
const LIBRARIES: &[&str] = &[
    "takt-time",
    "takt-engine",
    "takt-wire",
    "takt-record",
    "takt-dataset",
    "takt-actors",
    "takt-report",
    "takt-score",
    "takt-opprof",
    "takt-mock",
    "takt-net",
    "takt-recorder",
    "takt-opprof-recorder",
];

/// Crates from outside that reach the system: no pure crate names them, not even in its tests.
const SYSTEM_CRATES: &[&str] = &[
    "core_affinity",
    "libc",
    "mio",
    "nix",
    "rustix",
    "rustls",
    "signal-hook",
    "socket2",
    "tokio",
    "zmq",
];

const fn row(krate: &'static str, kind: Kind, may: &'static [&'static str]) -> Row {
    Row { krate, kind, may }
}

/// One crate depends on another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Import {
    from: String,
    to: String,
    /// For its tests and examples only.
    dev: bool,
}

impl fmt::Display for Import {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let section = if self.dev { "dev-dependencies" } else { "dependencies" };
        write!(f, "{} -> {} ([{section}])", self.from, self.to)
    }
}

/// What is wrong with `edge`; `None` when the table has it.
fn wrong(edge: &Import) -> Option<String> {
    let Some(from) = TABLE.iter().find(|row| row.krate == edge.from) else {
        return Some(format!("{edge}: {} has no row in the table; give it one", edge.from));
    };
    if from.kind == Pure && SYSTEM_CRATES.contains(&edge.to.as_str()) {
        return Some(format!("{edge}: a pure crate names nothing that reaches the system"));
    }
    let to = TABLE.iter().find(|row| row.krate == edge.to)?;
    let allowed = if edge.dev { dev_allowed(from, to) } else { from.may.contains(&to.krate) };
    if allowed {
        return None;
    }
    let may = if from.may.is_empty() { "no crate of ours".to_owned() } else { from.may.join(", ") };
    Some(if edge.dev {
        format!("{edge}: its tests may not use that crate")
    } else {
        format!("{edge}: it may depend on {may}")
    })
}

fn dev_allowed(from: &Row, to: &Row) -> bool {
    match from.kind {
        Pure => to.kind == Pure,
        Edge => to.kind != Top,
        Top => to.kind != Top || to.krate == "xtask",
    }
}

/// Every edge that starts in the workspace, as the manifests have it.
fn edges_of_the_workspace() -> Vec<Import> {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    let metadata = MetadataCommand::new()
        .manifest_path(manifest)
        .no_deps()
        .exec()
        .expect("cargo metadata runs wherever cargo test does");
    let mut edges = Vec::new();
    for package in &metadata.packages {
        for dependency in &package.dependencies {
            edges.push(Import {
                from: package.name.to_string(),
                to: dependency.name.clone(),
                dev: dependency.kind == DependencyKind::Development,
            });
        }
    }
    edges
}

fn edge(from: &str, to: &str, dev: bool) -> Import {
    Import { from: from.into(), to: to.into(), dev }
}

#[test]
fn crates_import_only_what_the_table_allows() {
    let edges = edges_of_the_workspace();
    let wrong: Vec<String> = edges.iter().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn the_table_has_a_row_for_each_crate_that_imports_another() {
    let edges = edges_of_the_workspace();
    for row in TABLE.iter().filter(|row| !row.may.is_empty()) {
        assert!(
            edges.iter().any(|edge| edge.from == row.krate && !edge.dev),
            "{} is in the table and imports nothing: does the crate exist?",
            row.krate
        );
    }
}

#[test]
fn lists_of_the_table_agree_with_its_rows() {
    let of = |kinds: &[Kind]| -> Vec<&str> {
        TABLE.iter().filter(|row| kinds.contains(&row.kind)).map(|row| row.krate).collect()
    };
    assert_eq!(of(&[Pure]), PURE);
    assert_eq!(of(&[Pure, Edge]), LIBRARIES);
    for row in TABLE.iter().filter(|row| row.kind == Pure) {
        assert!(row.may.iter().all(|to| PURE.contains(to)), "{} is pure", row.krate);
    }
}

#[test]
fn a_bad_edge_is_found_and_named() {
    let bad = [
        edge("takt-wire", "takt-engine", false),
        edge("takt-actors", "takt-net", false),
        edge("takt-actors", "takt-net", true),
        edge("takt-actors", "mio", false),
        edge("takt-mock", "zmq", true),
        edge("takt-mock", "takt-actors", false),
        edge("takt-net", "takt-actors", false),
        edge("takt-report", "takt-bench", true),
        edge("takt-tests", "takt-net", false),
        edge("takt-bench", "takt", false),
        edge("takt-unheard-of", "serde", false),
    ];
    for edge in bad {
        let says = wrong(&edge).unwrap_or_else(|| panic!("{edge} passes"));
        assert!(says.contains(&edge.from) && says.contains(&edge.to), "{says}");
    }
}

#[test]
fn a_good_edge_passes() {
    let good = [
        edge("takt-recorder", "takt-net", false),
        edge("takt-actors", "takt-mock", true),
        edge("takt-tests", "takt-net", true),
        edge("takt-tests", "xtask", true),
        edge("takt-net", "mio", false),
        edge("takt-wire", "httparse", false),
    ];
    for edge in good {
        assert_eq!(wrong(&edge), None);
    }
}
