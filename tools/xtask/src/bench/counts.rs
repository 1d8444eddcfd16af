//! Instructions of the hot path, beside those that are written down: what costs more than it did is found here,
//! however busy the machine is.
//!
//! Each row of `bench/counts.txt` is a program with its arguments, run under callgrind twice, for N units of work and for
//! twice as many: the difference over N is what one costs, with the start left out. The same program gives the same
//! count but for a few in ten thousand; another compiler, or a processor with other vector instructions, gives
//! another, so the file says what it was written with.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};

use super::own::cargo;
use super::table::{Report, Table};
use super::{flags, needs};

/// What `--help` shows.
pub(super) const USAGE: &str = "\
usage: cargo xtask bench counts [flags]

  --tolerance SHARE  how far a count may be above the one written down (0.03)
  --write yes        write down what is counted
  --no-build         count what is there";

/// What to count.
#[derive(Debug, Clone)]
pub(super) struct Options {
    tolerance: f64,
    write: bool,
    build: bool,
}

impl Options {
    /// Reads the words after `bench counts`.
    pub(super) fn read(words: &[String]) -> anyhow::Result<Self> {
        let mut options = Self { tolerance: 0.03, write: false, build: true };
        let rest = flags::read(words, |name, value| {
            match name {
                "--tolerance" => options.tolerance = value.parse()?,
                "--write" => options.write = flags::yes(value)?,
                _ => bail!("no such flag\n\n{USAGE}"),
            }
            Ok(())
        })?;
        ensure!(rest.takt.is_empty(), "nothing here is takt's\n\n{USAGE}");
        options.build = rest.build;
        Ok(options)
    }
}

/// Something to count: its name, the program below `target/release`, its arguments before the number, and N.
struct Row {
    name: &'static str,
    program: &'static str,
    args: &'static [&'static str],
    count: u64,
}

const ROWS: &[Row] = &[
    row("message", "path_cost", &["--of", "message", "--count"], 20_000),
    row("timer", "path_cost", &["--of", "timer", "--count"], 20_000),
    row("engine", "examples/turn_cost", &[], 10_000),
    row("request", "path_cost", &["--of", "request", "--count"], 4_000),
    row("raw-request", "path_cost", &["--of", "raw", "--count"], 4_000),
    row("shared-request", "path_cost", &["--of", "shared", "--count"], 4_000),
    row("open-request", "path_cost", &["--of", "open", "--count"], 4_000),
    row("served", "path_cost", &["--of", "served", "--count"], 4_000),
    row("stream", "path_cost", &["--of", "stream", "--count"], 1_000),
    row(
        "event",
        "event_cost",
        &["--rounds", "1", "--per-read", "1", "--shape", "chat", "--events"],
        10_000,
    ),
    row(
        "event-scanned",
        "event_cost",
        &["--rounds", "1", "--per-read", "1", "--shape", "chat_scan", "--events"],
        4_000,
    ),
    row("record", "record_cost", &["--records"], 200_000),
];

const fn row(
    name: &'static str,
    program: &'static str,
    args: &'static [&'static str],
    count: u64,
) -> Row {
    Row { name, program, args, count }
}

/// Counts, says each beside what is written down, and that it failed when one is too high.
pub(super) fn run(root: &Path, options: &Options) -> anyhow::Result<Report> {
    let mut table = Table::new("Instructions", &["one", "counted", "known", "change"]);
    if let Err(why) = needs("valgrind", "on Debian: apt-get install valgrind") {
        table.note(format!("Skipped: {why}"));
        return Ok(table.into());
    }
    if options.build {
        cargo(root, "release", &["-p", "takt-bench", "--bins"])?;
        cargo(root, "release", &["-p", "takt-engine", "--example", "turn_cost"])?;
    }
    let path = root.join("bench/counts.txt");
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    let mut counted = Vec::new();
    for row in ROWS {
        eprintln!("counting {}", row.name);
        let count = (row.instructions(root, 2)? - row.instructions(root, 1)?) / row.count;
        let before = look_up(&known, row.name);
        table.row(cells(row.name, count, before));
        counted.push((row.name, count, before));
    }
    let mut report = Report::from(table);
    if options.write {
        std::fs::write(&path, written(root, &counted)?).context("writing bench/counts.txt")?;
        return Ok(report);
    }
    let worse = too_high(&counted, options.tolerance);
    report.failed = (!worse.is_empty()).then(|| {
        format!(
            "more than {:.0} % above bench/counts.txt: {}. If that is as it should be: \
             cargo xtask bench counts --write yes",
            options.tolerance * 100.0,
            worse.join(", ")
        )
    });
    Ok(report)
}

impl Row {
    fn instructions(&self, root: &Path, times: u64) -> anyhow::Result<u64> {
        let program = root.join("target/release").join(self.program);
        let out = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(&program)
            .args(self.args)
            .arg((self.count * times).to_string())
            .output()
            .context("starting valgrind")?;
        let says = String::from_utf8_lossy(&out.stderr);
        ensure!(out.status.success(), "{} failed: {says}", program.display());
        collected(&says).with_context(|| format!("no count in what callgrind says: {says}"))
    }
}

/// What callgrind collected.
fn collected(says: &str) -> Option<u64> {
    let line = says.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

fn look_up(known: &str, name: &str) -> Option<u64> {
    let mut rows = known.lines().filter_map(|line| line.split_once(' '));
    rows.find(|(known, _)| *known == name)?.1.trim().parse().ok()
}

fn cells(name: &str, count: u64, before: Option<u64>) -> Vec<String> {
    let change = before.map(|before| (count as f64 / before as f64 - 1.0) * 100.0);
    vec![
        name.to_owned(),
        count.to_string(),
        before.map_or("-".to_owned(), |before| before.to_string()),
        change.map_or("new".to_owned(), |change| format!("{change:+.1} %")),
    ]
}

/// Those that are above what is known by more than `tolerance`, and those that nothing is known of.
fn too_high(counted: &[(&str, u64, Option<u64>)], tolerance: f64) -> Vec<String> {
    let high = counted.iter().filter_map(|&(name, count, before)| match before {
        None => Some(format!("{name} ({count}, not written down)")),
        Some(before) if count as f64 > before as f64 * (1.0 + tolerance) => {
            Some(format!("{name} ({count}, was {before})"))
        }
        Some(_) => None,
    });
    high.collect()
}

fn written(root: &Path, counted: &[(&str, u64, Option<u64>)]) -> anyhow::Result<String> {
    let rustc = Command::new("rustc").arg("--version").current_dir(root).output()?;
    let mut text = format!(
        "# Instructions of one, by callgrind: cargo xtask bench counts --write yes\n# {}",
        String::from_utf8_lossy(&rustc.stdout)
    );
    for (name, count, _) in counted {
        writeln!(text, "{name} {count}")?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_read_as_callgrind_writes_it() {
        let says =
            "==7== Events    : Ir\n==7== Collected : 1224084571\n==7== \n==7== I   refs: 1,2\n";
        assert_eq!(collected(says), Some(1_224_084_571));
        assert_eq!(collected("==7== Aborted"), None);
    }

    #[test]
    fn what_is_above_its_count_is_named_and_what_is_below_is_not() {
        let known = "# rustc\nmessage 100\nrequest 1000\n";
        let counted = [("message", 103), ("request", 1_031), ("event", 5)];
        let counted = counted.map(|(name, count)| (name, count, look_up(known, name)));
        let worse = too_high(&counted, 0.03);
        assert_eq!(worse, ["request (1031, was 1000)", "event (5, not written down)"]);
        assert!(too_high(&[("message", 50, Some(100))], 0.03).is_empty());
    }
}
