//! What `bench all` runs, in the order of `docs/BENCHMARKS.md`.

use std::path::Path;

use super::BENCHES;
use super::program::{self, Program};
use super::table::Report;

/// One benchmark of the page.
#[derive(Debug)]
pub(super) struct Planned {
    /// What `--only` calls it; of `cargo xtask bench NAME`, its name.
    pub(super) name: &'static str,
    /// A program that makes its tables itself.
    program: Option<Program>,
    /// Its arguments.
    full: &'static str,
    /// Those of a short run; none when a quick pass leaves it out.
    quick: Option<&'static str>,
}

impl Planned {
    /// The arguments to run it with, if it is run; what waits within for a quiet machine waits as long.
    pub(super) fn args(&self, quick: bool, patience: u32) -> Option<String> {
        let args = if quick { self.quick? } else { self.full };
        Some(args.replace(PATIENCE, &patience.to_string()))
    }

    /// The command as a user would give it.
    pub(super) fn line(&self, args: &str) -> String {
        match &self.program {
            Some(program) => program.line(args),
            None => super::line(self.name, args),
        }
    }

    /// Runs it.
    pub(super) fn run(&self, root: &Path, args: &str) -> anyhow::Result<Report> {
        if let Some(program) = &self.program {
            return match program::words(args, super::variable) {
                Ok(words) => program.run(root, &words),
                Err(name) => Ok(program::left_out(&format!(
                    "{name} is not set; bench/README.md says to what"
                ))),
            };
        }
        let words: Vec<String> = args.split_whitespace().map(str::to_owned).collect();
        let bench = BENCHES.iter().find(|bench| bench.name == self.name);
        let bench = bench.ok_or_else(|| anyhow::anyhow!("no benchmark is called {}", self.name))?;
        (bench.ready)(&words)?(root)
    }
}

/// `cargo xtask bench NAME`.
const fn bench(name: &'static str, full: &'static str, quick: &'static str) -> Planned {
    Planned { name, program: None, full, quick: Some(quick) }
}

/// The same, too much like another for a quick pass.
const fn further(name: &'static str, full: &'static str) -> Planned {
    Planned { name, program: None, full, quick: None }
}

/// A program that cargo builds.
const fn built(
    name: &'static str,
    build: &'static str,
    path: &'static str,
    full: &'static str,
    quick: &'static str,
) -> Planned {
    Planned { name, program: Some(Program { build, path, module: None }), full, quick: Some(quick) }
}

/// A script, or takt itself, which is built by then.
const fn script(
    name: &'static str,
    path: &'static str,
    module: Option<(&'static str, &'static str)>,
    full: &'static str,
    quick: &'static str,
) -> Planned {
    Planned { name, program: Some(Program { build: "", path, module }), full, quick: Some(quick) }
}

/// Stands for the seconds of `--patience` in the arguments below.
const PATIENCE: &str = "PATIENCE";
const SHORT: &str = "--rounds 1 --seconds 1 --patience 5";

/// All of them.
pub(super) const PLAN: &[Planned] = &[
    further(
        "wrk",
        "--server floor --clients wrk --rounds 3 --seconds 3 --connections 16 --patience PATIENCE",
    ),
    further(
        "wrk",
        "--server floor --clients wrk --rounds 3 --seconds 3 --connections 64 --patience PATIENCE",
    ),
    further(
        "wrk",
        "--server floor --clients wrk --rounds 3 --seconds 3 --connections 256 --patience PATIENCE",
    ),
    bench("wrk", "--rounds 7 --seconds 2 --patience PATIENCE", SHORT),
    further("wrk", "--rounds 7 --seconds 2 --api raw --patience PATIENCE"),
    bench("server", "--rounds 7 --seconds 2 --patience PATIENCE", SHORT),
    bench("reactors", "--patience PATIENCE", "--rounds 1 --requests 20000 --patience 5"),
    bench(
        "open",
        "--rounds 1 --patience PATIENCE",
        "--seconds 2 --waits spin --rate 10000 --patience 5",
    ),
    bench("peers", "", "--rounds 1 --requests 200"),
    bench(
        "scale",
        "",
        "--rounds 1 --seconds 1 --rates 1000 --waits guard --connections 64 --tokens 16",
    ),
    built(
        "timer_lateness",
        "-p takt-net --example timer_lateness",
        "target/release/examples/timer_lateness",
        "spin 1000 3000",
        "spin 1000 300",
    ),
    built(
        "timer_lateness",
        "-p takt-net --example timer_lateness",
        "target/release/examples/timer_lateness",
        "guard 1000 3000",
        "guard 1000 300",
    ),
    script("selftest", "target/release/takt", None, "selftest", "selftest --quick"),
    bench("counts", "", ""),
    bench("memory", "--settle 30", "--requests 500000 --every 1 --settle 1"),
    built(
        "event_cost",
        "-p takt-bench --bin event_cost",
        "target/release/event_cost",
        "",
        "--events 20000 --rounds 2",
    ),
    bench("streams", "--streams 1000,10000,18000 --tokens 45", "--streams 500,1000 --tokens 8"),
    bench("tls", "", "--rounds 1 --requests 20000 --streams 500"),
    script(
        "slow_subscriber",
        "tests/zmq/slow_subscriber.py",
        Some(("zmq", "pyzmq")),
        "",
        "--events 20000 --seconds 6 --queue 4",
    ),
    built(
        "record_cost",
        "-p takt-bench --bin record_cost",
        "target/release/record_cost",
        "--records 3000000",
        "--records 300000",
    ),
    script("conversations", "bench/conversations.sh", None, "10000 20", "200 3"),
    script("llama", "tests/real/llama.sh", None, "$TAKT_BENCH_LLAMA", "$TAKT_BENCH_LLAMA"),
    built("speed", "-p takt-opprof --example speed", "target/release/examples/speed", "", ""),
    built(
        "simulate",
        "-p takt-tests --bin simulate",
        "target/release/simulate",
        "--seeds 10000",
        "--seeds 200",
    ),
    built(
        "simulate",
        "-p takt-tests --bin simulate",
        "target/release/simulate",
        "--steady 100",
        "--steady 5",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_benchmark_is_in_the_plan_and_every_command_can_be_read() {
        for bench in BENCHES {
            let mut quick = PLAN.iter().filter(|planned| planned.args(true, 9).is_some());
            assert!(quick.any(|planned| planned.name == bench.name), "{}", bench.name);
        }
        for planned in PLAN.iter().filter(|planned| planned.program.is_none()) {
            let bench = BENCHES.iter().find(|bench| bench.name == planned.name).unwrap();
            for args in [false, true].iter().filter_map(|quick| planned.args(*quick, 9)) {
                let words: Vec<String> = args.split_whitespace().map(str::to_owned).collect();
                let ready = (bench.ready)(&words);
                assert!(ready.is_ok(), "{}: {:?}", planned.name, ready.err());
            }
            let waits = bench.usage.contains("--patience");
            let says = planned.args(false, 9).unwrap().contains("--patience 9");
            assert_eq!(waits, says, "{}", planned.name);
        }
    }

    #[test]
    fn scripts_are_where_the_plan_says() {
        let root = crate::root::of(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        for program in PLAN.iter().filter_map(|planned| planned.program.as_ref()) {
            let built = program.path.starts_with("target/");
            assert!(built || root.join(program.path).is_file(), "{program:?}");
        }
    }
}
