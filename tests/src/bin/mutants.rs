//! Puts deliberate bugs into a copy of the workspace, one at a time, and shows that each is found: by a seed of the
//! simulation, or where no simulated server goes, by the tests of the crate that reads or counts.
//! `mutants [NAME]`, all of them or one, in a scratch folder under the build folder.
//!
//! A check that never failed has proven nothing. A mutant that survives means that a rule is missing, or that
//! no seed comes where it lives.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "starts the compiler and says how long it took")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::time::Instant;

/// A deliberate bug: in `file`, `is` (which stands there once) becomes `becomes`.
struct Mutant {
    name: &'static str,
    file: &'static str,
    is: &'static str,
    becomes: &'static str,
    /// The package and the filter of the tests that are to find it; `None` when seeds are.
    tests: Option<(&'static str, &'static str)>,
}

const fn mutant(
    name: &'static str,
    file: &'static str,
    is: &'static str,
    becomes: &'static str,
) -> Mutant {
    Mutant { name, file, is, becomes, tests: None }
}

impl Mutant {
    const fn by_tests(self, package: &'static str, filter: &'static str) -> Self {
        Self { tests: Some((package, filter)), ..self }
    }
}

const MUTANTS: &[Mutant] = &[
    mutant(
        "a permit is given back twice",
        "engine/src/semaphore.rs",
        "self.available += 1;",
        "self.available += 2;",
    ),
    mutant(
        "a timer is one nanosecond late",
        "engine/src/wheel.rs",
        "let deadline = at.as_nanos();",
        "let deadline = at.as_nanos() + 1;",
    ),
    mutant(
        "a late completion is counted",
        "tools/report/src/phase.rs",
        "if self.ended.is_some() {\n            self.late += 1;",
        "if false {\n            self.late += 1;",
    ),
    mutant(
        "a chunk boundary is lost between two reads",
        "io/wire/src/chunked.rs",
        "self.state = if left == 0 { State::DataEnd }",
        "self.state = if left == 0 && at == input.len() { State::Size { size: 0, digits: false } } \
         else if left == 0 { State::DataEnd }",
    ),
    mutant(
        "an answer without an end counts as whole",
        "io/wire/src/answer/events.rs",
        "self.done || self.finish.is_some()",
        "self.done || self.count > 0",
    ),
    mutant(
        "a second attempt is not recorded",
        "actors/src/client/flight.rs",
        "attempts: self.attempts,",
        "attempts: 1,",
    ),
    mutant(
        "a drain forgets",
        "actors/src/session/mod.rs",
        "self.link.in_flight[usize::from(running.issuer.id.0)]\n            }\n            Stop::No => 0,",
        "0\n            }\n            Stop::No => 0,",
    ),
    mutant(
        "an undrained phase is taken for none",
        "actors/src/strategy/concurrency.rs",
        "for _ in 0..pace.inherited() {",
        "for _ in 0..pace.inherited().min(1) {",
    ),
    mutant(
        "a burst does not count what it inherits",
        "actors/src/strategy/burst.rs",
        "pace.in_flight() + u64::from(pace.inherited())",
        "pace.in_flight()",
    ),
    mutant(
        "time to first token is that of the role",
        "actors/src/client/flight.rs",
        "self.times.first_token = seen.first_token;",
        "self.times.first_token = seen.first_event;",
    ),
    mutant(
        "the send is stamped with the wrong instant",
        "actors/src/client/sending.rs",
        "times.sent.get_or_insert(sent);",
        "times.sent.get_or_insert(request.issued);",
    ),
    mutant(
        "a lost record is not told",
        "io/record/src/publisher.rs",
        "Err(_) => self.counters.lost += 1,",
        "Err(_) => {}",
    ),
    mutant(
        "blocks that waited go out of line",
        "io/record/src/publisher.rs",
        "self.overflow.push_back(block);",
        "self.overflow.push_front(block);",
    ),
    mutant(
        "an order repeats after each shuffle",
        "actors/src/order.rs",
        "self.left = self.indices.len();",
        "self.left = self.indices.len();\n            self.indices.sort_unstable();\n            \
         self.rng = rand::SeedableRng::seed_from_u64(1);",
    ),
    mutant(
        "a cancel forgets who waits for a connection",
        "actors/src/client/ending.rs",
        "Cancel::All => true,",
        "Cancel::All => flight.place != Place::Waiting,",
    ),
    mutant(
        "the pulse goes on behind the end",
        "actors/src/session/mod.rs",
        "if self.over {",
        "if false {",
    ),
    mutant(
        "a grace time is not granted an end",
        "actors/src/session/stopping.rs",
        "if stopping {\n                    self.give_up(cx);",
        "if stopping {",
    ),
    mutant(
        "the watchdog does not look at what came",
        "actors/src/session/watchdog.rs",
        "heard.map_or(self.since, |heard| heard.max(self.since)) + timeout",
        "heard.map_or(self.since, |_| self.since) + timeout",
    ),
    mutant(
        "the watchdog is not armed for the rest",
        "actors/src/session/watchdog.rs",
        "self.watchdog.timer = Some(cx.call_at(again, SessionMsg::IdlePerhaps));",
        "let _ = again;",
    ),
    mutant(
        "a phase inherits the silence of the one before",
        "actors/src/session/mod.rs",
        "self.watchdog.restart(start);",
        "",
    )
    .by_tests("takt-actors", "session"),
    mutant(
        "a session goes on behind its time",
        "actors/src/session/stopping.rs",
        "self.stop(Stop::Failed(FailedBy::RunTimeout, why), cx);",
        "let _ = (why, cx);",
    ),
    mutant(
        "a failure waits as a stop does",
        "actors/src/session/stopping.rs",
        "if failed {",
        "if failed && self.stop_grace.as_nanos() == 0 {",
    ),
    mutant(
        "a reader stops when its buffer was full",
        "actors/src/client/receiving.rs",
        "Then::More => {}",
        "Then::More => return,",
    ),
    mutant(
        "a write that fell short is not gone on with",
        "actors/src/client/sending.rs",
        "if connection.rest().is_empty() {\n            return;",
        "if !connection.rest().is_empty() {\n            return;",
    ),
    mutant(
        "what was let go is found under its old key",
        "actors/src/client/flight.rs",
        "self.slab.get_mut(key.slot as usize).filter(|flight| flight.serial == key.serial)",
        "self.slab.get_mut(key.slot as usize)",
    )
    .by_tests("takt-actors", "client"),
    mutant(
        "a slot of the wheel opens one instant late",
        "engine/src/wheel.rs",
        "if start > now || ",
        "if start >= now || ",
    )
    .by_tests("takt-engine", "wheel"),
    mutant(
        "an old key cancels another timer",
        "engine/src/wheel.rs",
        "entry.generation != key.generation || entry.payload.is_none()",
        "entry.payload.is_none()",
    )
    .by_tests("takt-engine", "wheel"),
    mutant(
        "a line end cut in two is two",
        "io/wire/src/sse.rs",
        "self.skip_lf = after.is_empty();",
        "self.skip_lf = false;",
    )
    .by_tests("takt-wire", "sse"),
    mutant(
        "of a repeated key the first counts",
        "io/wire/src/chat/scan.rs",
        "new.then_some(())",
        "Some(()).filter(|()| new || key > 0)",
    )
    .by_tests("takt-wire", "chat"),
    mutant(
        "what lies between is taken for the inside of a string",
        "io/wire/src/chat/learned.rs",
        "is_string_inside(raw).then_some((kind, raw))",
        "Some((kind, raw)).filter(|_| raw.is_empty() || is_string_inside(&raw[..1]))",
    )
    .by_tests("takt-wire", "chat"),
    mutant(
        "a connection is used behind a length and chunks at once",
        "io/wire/src/head.rs",
        "&& !ambiguous",
        "&& (!ambiguous || common.http11)",
    )
    .by_tests("takt-wire", "head"),
    mutant(
        "an address prints its key",
        "io/wire/src/url.rs",
        "Some((name, _)) if is_secret_name(name) =>",
        "Some((name, _)) if name == \"key\" =>",
    )
    .by_tests("takt-wire", "url"),
    mutant(
        "a damaged block passes its checksum",
        "io/record/src/journal/read.rs",
        "if checksum(&[&head[..FRAME_BYTES - 4], &self.bytes])",
        "if self.bytes.is_empty() && checksum(&[&head[..FRAME_BYTES - 4], &self.bytes])",
    )
    .by_tests("takt-record", "journal"),
    mutant(
        "a missing block is not missed",
        "io/record/src/journal/read.rs",
        "if frame.number != self.read.blocks {",
        "if frame.number < self.read.blocks {",
    )
    .by_tests("takt-record", "journal"),
    mutant(
        "a time is packed as a step from the wrong one",
        "io/record/src/decode.rs",
        "last = nanos(self.take, last)?;",
        "last = nanos(self.take, issued)?;",
    )
    .by_tests("takt-record", "block"),
    mutant(
        "a quote left open takes in the rest of the file",
        "io/dataset/src/csv.rs",
        "State::Quoted { opened } => Err(At::line(opened, Fault::QuoteLeftOpen)),",
        "State::Quoted { .. } => { self.ends.push(self.text.len()); Ok(first) }",
    )
    .by_tests("takt-dataset", ""),
    mutant(
        "a schedule is a sum of rounded gaps",
        "actors/src/arrivals.rs",
        "(self.count as f64 * 1e9 / self.rate).round() as u64",
        "self.count * (1e9 / self.rate) as u64",
    )
    .by_tests("takt-actors", "arrivals"),
    mutant(
        "the tokens of the first event count into the time of one",
        "tools/report/src/streams.rs",
        "counts.first_event.unwrap_or(self.first)",
        "counts.first_event.unwrap_or(self.first).min(1)",
    )
    .by_tests("takt-report", ""),
];

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests is a folder of it");
    let scratch = root.join("target/mutants");
    let mut survivors = 0;
    for mutant in MUTANTS.iter().filter(|m| wanted.as_ref().is_none_or(|w| m.name.contains(w))) {
        copy(root, &scratch);
        let began = Instant::now();
        let built = mutant.put_into(&scratch).and_then(|()| mutant.build(&scratch));
        let building = began.elapsed().as_secs();
        let began = Instant::now();
        let caught = built.and_then(|()| mutant.hunt(&scratch));
        let seconds =
            format!("{:5.1} s after {building} s of building", began.elapsed().as_secs_f64());
        match caught {
            Ok(by) => println!("caught in {seconds}: {}\n    {by}", mutant.name),
            Err(why) => {
                println!("SURVIVED  {seconds}: {}\n    {why}", mutant.name);
                survivors += 1;
            }
        }
    }
    if survivors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Mutant {
    fn put_into(&self, copy: &Path) -> Result<(), String> {
        let path = copy.join(self.file);
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
        match text.matches(self.is).count() {
            1 => {}
            times => return Err(format!("{:?} stands {times} times in {}", self.is, self.file)),
        }
        let text = text.replace(self.is, self.becomes);
        std::fs::write(&path, text).map_err(|error| error.to_string())
    }

    fn build(&self, copy: &Path) -> Result<(), String> {
        let build = match self.tests {
            None => cargo(copy, &["build", "-q", "-p", "takt-tests", "--bin", "simulate"]),
            Some((package, _)) => {
                cargo(copy, &["test", "-q", "-p", package, "--tests", "--no-run"])
            }
        };
        if build.status.success() {
            return Ok(());
        }
        Err(format!("does not build: {}", String::from_utf8_lossy(&build.stderr)))
    }

    /// Gives what caught it.
    fn hunt(&self, copy: &Path) -> Result<String, String> {
        match self.tests {
            None => by_seeds(copy),
            Some((package, filter)) => by_tests(copy, package, filter),
        }
    }
}

/// Runs seeds until one fails.
fn by_seeds(copy: &Path) -> Result<String, String> {
    let hunt = ["run", "-q", "-p", "takt-tests", "--bin", "simulate", "--", "--hunt", SEEDS];
    let run = cargo(copy, &hunt);
    let said = String::from_utf8_lossy(&run.stdout);
    if run.status.success() {
        return Err(format!("{SEEDS} seeds found nothing"));
    }
    let told: Vec<&str> = said.lines().take(2).map(str::trim).collect();
    Ok(told.join(": ").chars().take(200).collect())
}

/// Runs the tests of a package; gives the first that failed, and how many more did.
fn by_tests(copy: &Path, package: &str, filter: &str) -> Result<String, String> {
    let run = cargo(copy, &["test", "-p", package, "--tests", "--no-fail-fast", filter]);
    let said = String::from_utf8_lossy(&run.stdout);
    let failed =
        said.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    let failed: Vec<&str> = failed.collect();
    match failed.as_slice() {
        [] => Err(format!("the tests of {package} found nothing")),
        [one] => Ok(format!("{package}: {one}")),
        [first, more @ ..] => Ok(format!("{package}: {first} and {} more", more.len())),
    }
}

fn cargo(copy: &Path, args: &[&str]) -> Output {
    let mut command = Command::new("cargo");
    command.current_dir(copy).env("CARGO_TARGET_DIR", copy.join("target"));
    // Quick to build and quick enough to run.
    command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1").env("CARGO_PROFILE_DEV_DEBUG", "0");
    // A failure that a property once had would be found without looking.
    command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
    command.args(args).output().expect("cargo starts")
}

/// Brings the copy of the workspace up to date; only what differs is written, so that builds stay short.
fn copy(root: &Path, to: &Path) {
    for folder in ["engine", "io", "actors", "tools", "tests", "bench"] {
        copy_folder(&root.join(folder), &to.join(folder));
    }
    for file in ["Cargo.toml", "Cargo.lock", "clippy.toml"] {
        copy_file(&root.join(file), &to.join(file));
    }
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("the build folder can be written");
    for entry in std::fs::read_dir(from).expect("a folder of the workspace") {
        let path: PathBuf = entry.expect("a folder of the workspace").path();
        let name = path.file_name().expect("entries have names");
        if path.is_dir() {
            if name != "target" && name != "corpora" {
                copy_folder(&path, &to.join(name));
            }
        } else {
            copy_file(&path, &to.join(name));
        }
    }
}

fn copy_file(from: &Path, to: &Path) {
    let new = std::fs::read(from).expect("a file of the workspace");
    if std::fs::read(to).is_ok_and(|old| old == new) {
        return;
    }
    std::fs::write(to, new).expect("the build folder can be written");
}

/// Far more than any mutant has needed.
const SEEDS: &str = "4000";
