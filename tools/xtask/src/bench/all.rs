//! Every benchmark of [`PLAN`], one after the other, on one page.
//!
//! Before each the machine is given time to become quiet. What others took of the cores meanwhile is what was busy
//! less this process and its children, and stands below each table: a figure that was disturbed says so where it
//! stands. The page is written anew after each, so that what was measured is not lost.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail, ensure};

use super::machine::{CpuTotals, OTHERS_MAX, Quiet};
use super::own::build;
use super::plan::{PLAN, Planned};
use super::spent::Cpu;
use super::table::Report;
use super::{about, flags};

/// What `--help` shows.
pub(super) const USAGE: &str = "\
usage: cargo xtask bench all [flags]

  --out FILE        the page (target/bench/BENCHMARKS.md)
  --quick yes       short runs, to see that all of them work
  --only LIST       of the names below, in the order of the page
  --patience S      how long to wait for the machine to be quiet before each, and before each round of those that
                    wait within (120; within a short run 5)";

/// What to run and where to write.
#[derive(Debug, Clone)]
pub(super) struct Options {
    out: PathBuf,
    quick: bool,
    only: Vec<String>,
    patience: u32,
}

impl Options {
    /// Reads the words after `bench all`.
    pub(super) fn read(root: &Path, words: &[String]) -> anyhow::Result<Self> {
        let mut options = Self {
            out: root.join("target/bench/BENCHMARKS.md"),
            quick: false,
            only: Vec::new(),
            patience: 120,
        };
        let rest = flags::read(words, |name, value| {
            match (name, value) {
                ("--out", _) => options.out = PathBuf::from(value),
                ("--quick", _) => options.quick = flags::yes(value)?,
                ("--only", _) => options.only = value.split(',').map(str::to_owned).collect(),
                ("--patience", _) => options.patience = value.parse()?,
                _ => bail!("no such flag\n\n{USAGE}\n\n{}", names()),
            }
            Ok(())
        })?;
        ensure!(rest.build && rest.takt.is_empty(), "neither --no-build nor -- here\n\n{USAGE}");
        for name in &options.only {
            let known = PLAN.iter().any(|planned| planned.name == name);
            ensure!(known, "nothing is called `{name}`; {}", names());
        }
        Ok(options)
    }

    fn takes(&self, planned: &Planned) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == planned.name)
    }
}

/// The names that `--only` takes.
pub(super) fn names() -> String {
    let mut names: Vec<&str> = PLAN.iter().map(|planned| planned.name).collect();
    names.dedup();
    format!("names: {}", names.join(", "))
}

/// Runs them all and writes the page; fails at the end when one of them did.
pub(super) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    if let Some(folder) = options.out.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    build(root, "release")?;
    let mut page = head(&about::lines(root), options.quick);
    let mut failed = Vec::new();
    for planned in PLAN.iter().filter(|planned| options.takes(planned)) {
        let Some(args) = planned.args(options.quick, options.patience) else { continue };
        let command = planned.line(&args);
        let quiet = Quiet::wait(options.patience)?.to_string();
        eprintln!("\n{command}\n{quiet}");
        let watch = Watch::start()?;
        let outcome = planned.run(root, &args);
        let meanwhile = watch.stop()?;
        if let Ok(report) = &outcome {
            println!("{command}\n\n{}", report.text());
        }
        let why = match &outcome {
            Ok(report) => report.failed.clone(),
            Err(error) => Some(format!("{error:#}")),
        };
        if let Some(why) = why {
            eprintln!("{command}: {why}");
            failed.push(planned.name);
        }
        page.push_str(&section(&command, &outcome, &quiet, &meanwhile));
        std::fs::write(&options.out, &page)
            .with_context(|| format!("writing {}", options.out.display()))?;
    }
    eprintln!("written: {}", options.out.display());
    ensure!(failed.is_empty(), "no figures, or not those promised, of: {}", failed.join(", "));
    Ok(())
}

fn head(about: &[String], quick: bool) -> String {
    let mut page = "# All tables\n\nMade by `cargo xtask bench all`.".to_owned();
    if quick {
        page.push_str(" A quick pass: the runs are too short for figures to be quoted.");
    }
    page.push_str("\n\n");
    about.iter().for_each(|line| page.push_str(&format!("- {line}\n")));
    page
}

/// A benchmark's part of the page, or why there is none.
fn section(
    command: &str,
    outcome: &anyhow::Result<Report>,
    quiet: &str,
    meanwhile: &Meanwhile,
) -> String {
    let mut text = format!("\n## `{command}`\n\n");
    match outcome {
        Ok(report) => text.push_str(&report.markdown()),
        // What a program said may have many lines.
        Err(error) => {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "**No figures:**\n\n```text\n{error:#}\n```");
        }
    }
    let _ = write!(text, "\n{quiet}. {meanwhile}\n");
    text
}

/// What the machine did since a moment.
struct Watch {
    began: Instant,
    machine: CpuTotals,
    own: Cpu,
    children: Cpu,
}

impl Watch {
    fn start() -> anyhow::Result<Self> {
        let (own, children) = (Cpu::of_self()?, Cpu::of_children()?);
        Ok(Self { began: Instant::now(), machine: CpuTotals::now()?, own, children })
    }

    /// All children that were started since have to be waited for.
    fn stop(self) -> anyhow::Result<Meanwhile> {
        let machine = CpuTotals::now()?.since(self.machine);
        let own = Cpu::of_self()?.since(self.own);
        let children = Cpu::of_children()?.since(self.children);
        Ok(Meanwhile::of(self.began.elapsed().as_secs(), machine, own, children))
    }
}

/// What went on beside a benchmark.
#[derive(Debug, Clone, Copy)]
struct Meanwhile {
    seconds: u64,
    others: f64,
    stolen: f64,
}

impl Meanwhile {
    fn of(seconds: u64, machine: CpuTotals, own: Cpu, children: Cpu) -> Self {
        let others_s = machine.busy_s - own.all_s() - children.all_s();
        // What is left out is over before the kernel's clock ticks.
        let share = |s: f64| if machine.all_s > 0.0 { (s / machine.all_s).max(0.0) } else { 0.0 };
        Self { seconds, others: share(others_s), stolen: share(machine.stolen_s) }
    }
}

impl std::fmt::Display for Meanwhile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { seconds, others, stolen } = self;
        let says = if *others > OTHERS_MAX { "**disturbed**" } else { "undisturbed" };
        let (others, stolen) = (others * 100.0, stolen * 100.0);
        write!(
            f,
            "During {seconds} s others had {others:.1} % of the cores, the host took {stolen:.1} %: {says}."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::Table;
    use super::*;

    const CALM: Meanwhile = Meanwhile { seconds: 5, others: 0.01, stolen: 0.0 };

    #[test]
    fn a_section_has_the_command_the_table_and_what_went_on_beside_it() {
        let mut table = Table::new("Requests", &["client"]);
        table.row(vec!["takt".into()]);
        let text = section("cargo xtask bench wrk", &Ok(table.into()), "machine: quiet", &CALM);
        let expect = "\n## `cargo xtask bench wrk`\n\n### Requests\n\n| client |\n| --- |\n\
                      | takt |\n\nmachine: quiet. During 5 s others had 1.0 % of the cores, the \
                      host took 0.0 %: undisturbed.\n";
        assert_eq!(text, expect);
    }

    #[test]
    fn what_failed_or_was_disturbed_says_so_in_its_place() {
        let noisy = Meanwhile { others: 0.2, ..CALM };
        let failed = section("a", &Err(anyhow::anyhow!("no wrk")), "machine: quiet", &noisy);
        assert!(failed.contains("**No figures:**\n\n```text\nno wrk\n```"), "{failed}");
        assert!(
            failed
                .ends_with("others had 20.0 % of the cores, the host took 0.0 %: **disturbed**.\n")
        );
    }

    #[test]
    fn what_this_process_does_itself_is_not_others_work() {
        let machine = CpuTotals { busy_s: 8.0, stolen_s: 1.0, all_s: 20.0 };
        let cpu = |user_s, sys_s| Cpu { user_s, sys_s };
        let meanwhile = Meanwhile::of(10, machine, cpu(0.5, 1.5), cpu(1.0, 2.0));
        assert_eq!((meanwhile.others, meanwhile.stolen), (0.15, 0.05));
        // The kernel's two accounts do not end at the same moment.
        assert_eq!(Meanwhile::of(10, machine, cpu(0.0, 0.0), cpu(8.0, 0.1)).others, 0.0);
        let nothing = CpuTotals { busy_s: 0.0, stolen_s: 0.0, all_s: 0.0 };
        let meanwhile = Meanwhile::of(0, nothing, cpu(0.0, 0.0), cpu(0.0, 0.0));
        assert_eq!((meanwhile.others, meanwhile.stolen), (0.0, 0.0));
    }

    #[test]
    fn options_say_what_to_run_and_where_to_write() {
        let read = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            Options::read(Path::new("/w"), &words)
        };
        let options = read("--quick yes --only wrk,counts --out a.md").unwrap();
        assert!(options.quick && options.out == Path::new("a.md"));
        let taken: Vec<&str> =
            PLAN.iter().filter(|p| options.takes(p)).map(|planned| planned.name).collect();
        assert!(taken.contains(&"counts") && !taken.contains(&"memory"), "{taken:?}");
        assert_eq!(read("").unwrap().out, Path::new("/w/target/bench/BENCHMARKS.md"));
        for bad in ["--quick perhaps", "--only wrk,nothing", "--no-build", "-- --core 0"] {
            assert!(read(bad).is_err(), "{bad}");
        }
        let says = format!("{:#}", read("--quick perhaps").unwrap_err());
        assert!(says.ends_with("yes or no, not `perhaps`"), "{says}");
    }
}
