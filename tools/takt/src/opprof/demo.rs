//! `takt opprof demo`: the whole chain on the built-in server, each step the command that anybody can give.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::json;
use takt_time::Span;
use takt_wire::Endpoint;

use super::pairs::Server;
use crate::cli::DemoArgs;
use crate::console::Console;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::outcome;

/// Runs the chain and prints each command before what it prints.
pub(crate) fn demo(args: &DemoArgs, console: &Console) -> Result<Exit, Failure> {
    let began = Instant::now();
    let size = if args.small { SMALL } else { WHOLE };
    let demo = Demo::new(&args.out, size).or_exit(Exit::Setup)?;
    demo.chain(args.pairs, console).or_exit(Exit::Failed)?;
    outcome::print(&format!(
        "\nall of it in {:.0} s; the files are in {}\n",
        began.elapsed().as_secs_f64(),
        demo.out.display()
    ))?;
    Ok(Exit::Done)
}

/// A folder, an address, and this very program.
struct Demo {
    out: PathBuf,
    takt: PathBuf,
    address: String,
    size: Size,
}

/// How much of everything.
struct Size {
    load: &'static str,
    windows: &'static str,
    decode: &'static str,
    /// Requests of each run of the gate.
    requests: u32,
}

impl Demo {
    fn new(out: &Path, size: Size) -> anyhow::Result<Self> {
        let out = std::path::absolute(out)?;
        ensure!(!out.exists(), "{}: is there already; name another with --out", out.display());
        fs::create_dir_all(&out).with_context(|| format!("{}: cannot be made", out.display()))?;
        // The gate's servers follow one another at one address: a port that was free a moment ago.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let takt = std::env::current_exe().context("finding this program")?;
        Ok(Self { out, takt, address, size })
    }

    fn chain(&self, pairs: usize, console: &Console) -> anyhow::Result<()> {
        self.write_load()?;
        self.say("a server, and a load on it")?;
        let command = self.server("--opprof-dir \"$PWD/records\" --profile-dir \"$PWD/kineto\"");
        self.show(&format!("{command} &"))?;
        let endpoint = Endpoint::parse(&format!("http://{}", self.address))?;
        let command = format!("cd {} && exec {command}", quoted(&self.out));
        let server = Server::start(&command, &self.out.join("server.log"), &self.out)?;
        let server = server.ready(std::slice::from_ref(&endpoint), READY_WITHIN)?;
        let load = self.load()?;
        self.wait_for_records()?;
        let Size { windows, decode, .. } = self.size;
        self.say(&format!("profiler windows while it runs, when {decode} requests generate"))?;
        let url = format!("http://{}", self.address);
        let window =
            ["opprof", "window", "--url", &url, "--traces", "kineto", "--records", "records"];
        self.run(
            &[&window[..], &["--decode", decode, "--windows", windows, "--apart", "100ms"]]
                .concat(),
        )?;
        load.wait()?;
        server.stop()?;
        self.say("are the records sound?")?;
        self.run(&["opprof", "check", "records"])?;
        self.say("where did the time of the first window go?")?;
        let mut attribute = vec!["opprof".to_owned(), "attribute".to_owned()];
        attribute.extend(self.first_window()?);
        attribute.extend(["--records", "records"].map(str::to_owned));
        self.run(&attribute.iter().map(String::as_str).collect::<Vec<_>>())?;
        self.say("what does a token cost?")?;
        self.run(&["opprof", "calibrate", "kineto", "--records", "records"])?;
        self.say("the client's latencies beside what the server did")?;
        self.run(&["opprof", "join", "run", "--records", "records", "--slice", "500ms"])?;
        self.say("does recording cost more than 3 %?")?;
        let exec = |more: &str| format!("exec {}", self.server(more));
        let (off, on) = (exec(""), exec("--opprof-dir \"$TAKT_RECORDS\""));
        let pairs = pairs.to_string();
        let gate = ["opprof", "gate", "--run", "gate.yaml", "--out", "gate", "--pairs", &pairs];
        let arms = ["--off-server", off.trim_end(), "--on-server", &on];
        let verdict = self.status(&[&gate[..], &arms].concat())?;
        ensure!([0, 5, 6].contains(&verdict), "the gate ended with {verdict}");
        if verdict == 6 {
            console
                .info("a busy machine makes a gate inconclusive; more pairs or a quiet one decide");
        }
        Ok(())
    }

    /// The server's command, as it can be given in the folder.
    fn server(&self, more: &str) -> String {
        let (takt, address) = (quoted(&self.takt), &self.address);
        format!("{takt} mock --mode scheduler --listen {address} --echo --kv-blocks 512 {more}")
    }

    /// Prompts that begin alike and are echoed, so that answers are the same in each run.
    fn write_load(&self) -> anyhow::Result<()> {
        let mut prompts = String::new();
        let shared = "archipelago-of-instruments ".repeat(12);
        for n in 0..PROMPTS {
            let own: Vec<String> =
                (0..8 + n % 9).map(|k| format!("question{}", n * 17 + k)).collect();
            let truth = &own[0];
            let row = json!({"prompt": format!("{shared}{}", own.join(" ")), "truth": truth});
            let _ = writeln!(prompts, "{row}");
        }
        fs::write(self.out.join("prompts.jsonl"), prompts)?;
        let address = &self.address;
        let head = format!(
            "endpoint: {{url: 'http://{address}', model: mock}}\ndataset: {{path: prompts.jsonl}}\nphases:\n"
        );
        let load = "load: {pattern: concurrency, target_concurrency: 16}";
        let Size { load: duration, requests, .. } = self.size;
        let run =
            format!("  - {{name: measured, type: performance, duration: {duration}, {load}}}\n");
        // Answers are kept where they are scored: the gate holds the arms' against each other.
        let gate = format!(
            "  - {{name: warm-up, type: warmup, requests: 32, {load}}}\n  \
             - {{name: measured, type: performance, requests: {requests}, {load}, score: {{by: contains, truth: truth}}}}\n"
        );
        fs::write(self.out.join("load.yaml"), format!("{head}{run}"))?;
        fs::write(self.out.join("gate.yaml"), format!("{head}{gate}"))?;
        Ok(())
    }

    fn load(&self) -> anyhow::Result<Load> {
        let args = ["run", "load.yaml", "--out", "run", "--quiet"];
        self.show(&format!("takt {} &", args.join(" ")))?;
        let report = fs::File::create(self.out.join("report.txt"))?;
        let child = self.command(&args).stdout(report).spawn().context("starting the load")?;
        Ok(Load(child))
    }

    /// Until the server has had some load.
    fn wait_for_records(&self) -> anyhow::Result<()> {
        let deadline = Instant::now() + Duration::from_secs(10);
        let recorded = || {
            let records = fs::read_dir(self.out.join("records")).into_iter().flatten();
            records.flatten().any(|file| file.metadata().is_ok_and(|found| found.len() > 100_000))
        };
        while !recorded() {
            ensure!(Instant::now() < deadline, "the server recorded no steps; see server.log");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// The traces of the first window.
    fn first_window(&self) -> anyhow::Result<Vec<String>> {
        let text = fs::read(self.out.join("kineto/windows.json"))?;
        let manifest: serde_json::Value = serde_json::from_slice(&text)?;
        let files = manifest["windows"][0]["files"].as_array().context("no window")?;
        let name = |file: &serde_json::Value| Some(format!("kineto/{}", file["name"].as_str()?));
        Ok(files.iter().filter_map(name).collect())
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.takt);
        command.args(args).current_dir(&self.out).stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> anyhow::Result<()> {
        let code = self.status(args)?;
        ensure!(code == 0, "`takt {}` ended with {code}", args.join(" "));
        Ok(())
    }

    fn status(&self, args: &[&str]) -> anyhow::Result<i32> {
        let shown: Vec<String> = args
            .iter()
            .map(
                |arg| if arg.contains([' ', '"']) { format!("'{arg}'") } else { (*arg).to_owned() },
            )
            .collect();
        self.show(&format!("takt {}", shown.join(" ")))?;
        let status = self.command(args).status().context("starting a command")?;
        Ok(status.code().unwrap_or(-1))
    }

    fn say(&self, what: &str) -> anyhow::Result<()> {
        outcome::print(&format!("\n== {what}\n")).map_err(|failure| failure.error)
    }

    fn show(&self, command: &str) -> anyhow::Result<()> {
        outcome::print(&format!("$ {command}\n")).map_err(|failure| failure.error)
    }
}

/// A load under way; killed when nobody waits for it any more.
struct Load(Child);

impl Load {
    fn wait(mut self) -> anyhow::Result<()> {
        let status = self.0.wait()?;
        ensure!(status.success(), "the load ended with {status}");
        Ok(())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // One that has ended needs no killing.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// As a shell takes it in one word.
fn quoted(path: &Path) -> String {
    let shown = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if shown.chars().all(plain) {
        return shown;
    }
    format!("'{}'", shown.replace('\'', r"'\''"))
}

const WHOLE: Size = Size { load: "8s", windows: "9", decode: "8..16", requests: 192 };
const SMALL: Size = Size { load: "5s", windows: "6", decode: "1..16", requests: 24 };
const PROMPTS: usize = 64;
const READY_WITHIN: Span = Span::from_secs(10);
