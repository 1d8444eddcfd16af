//! The test's outcome as text and as a document.

use serde::Serialize;
use serde_json::{Value, json};
use takt_record::VerdictStatus;
use takt_report::Table;

use super::machine::Others;
use super::rows::{Greatest, Row, Sends};
use super::trial::Had;
use super::truth::{Errors, Spread};

/// All that was had.
pub(super) struct Outcome {
    pub(super) quick: bool,
    pub(super) cores: usize,
    pub(super) reactor_core: usize,
    pub(super) server_core: usize,
    pub(super) seconds: f64,
    /// What others had of the machine over the whole test.
    pub(super) others: Option<Others>,
    pub(super) lateness: Vec<Row<Sends>>,
    pub(super) rate: Had<Greatest>,
    pub(super) streams: Had<Greatest>,
    pub(super) errors: Vec<Row<Errors>>,
    pub(super) pacers: Vec<Row<Sends>>,
}

impl Outcome {
    /// Rows with figures, and all rows.
    pub(super) fn counts(&self) -> (usize, usize) {
        let sends = self.lateness.iter().chain(&self.pacers).map(|row| row.had.figures().is_some());
        let errors = self.errors.iter().map(|row| row.had.figures().is_some());
        let greatest = [&self.rate, &self.streams].map(|had| had.figures().is_some());
        let all: Vec<bool> = sends.chain(errors).chain(greatest).collect();
        (all.iter().filter(|had| **had).count(), all.len())
    }

    /// The document; absent is null, with the reason beside it.
    pub(super) fn to_json(&self) -> Value {
        json!({
            "schema": "takt-selftest-1",
            "takt": env!("CARGO_PKG_VERSION"),
            "quick": self.quick,
            "host": crate::identity::host(),
            "cores": {"allowed": self.cores, "reactor": self.reactor_core, "server": self.server_core},
            "seconds": self.seconds,
            "others": self.others,
            "lateness_us": self.lateness.iter().map(|row| entry("wait", row)).collect::<Vec<_>>(),
            "greatest_valid": {"rate": had(&self.rate), "streams": had(&self.streams)},
            "errors_us": self.errors.iter().map(|row| entry("wait", row)).collect::<Vec<_>>(),
            "pacers_us": self.pacers.iter().map(|row| entry("pacer", row)).collect::<Vec<_>>(),
        })
    }

    pub(super) fn to_text(&self) -> String {
        let mut out = format!(
            "takt {}   selftest{}   {:.0} s   reactor on core {}, server on core {}\n",
            env!("CARGO_PKG_VERSION"),
            if self.quick { ", quick" } else { "" },
            self.seconds,
            self.reactor_core,
            self.server_core
        );
        if let Some(others) = self.others {
            let (cores, stolen) = (others.cores * 100.0, others.stolen * 100.0);
            out +=
                &format!("others had {cores:.1} % of a core, the hypervisor took {stolen:.1} %\n");
        }
        let (had, all) = self.counts();
        if had < all {
            out += &format!("{} of {all} rows could not be had; each says why\n", all - had);
        }
        self.lateness_text(&mut out);
        out += "\nGreatest load with a valid verdict\n";
        greatest(&mut out, "requests/s", &self.rate);
        greatest(&mut out, "streams in flight", &self.streams);
        self.errors_text(&mut out);
        out += "\nA clock outside the reactor, us (latency: median)\n";
        let head = ["pacer", "rate", "late p50", "p99", "from send", "from schedule", ""];
        let mut table = Table::new(1, &head);
        for row in &self.pacers {
            let figures = row.had.figures();
            let cell = |of: fn(&Sends) -> Option<f64>| us(figures.and_then(of));
            table.row(vec![
                row.name.clone(),
                row.rate.to_string(),
                cell(|sends| Some(sends.p50)),
                cell(|sends| Some(sends.p99)),
                cell(|sends| sends.latency_p50),
                cell(|sends| sends.from_schedule_p50),
                but(&row.had),
            ]);
        }
        table.print(&mut out);
        out
    }

    fn lateness_text(&self, out: &mut String) {
        *out += "\nLateness of sends, us, Poisson arrivals\n";
        let head =
            ["wait", "rate", "p50", "p99", "p99.9", "verdict", "seed best", "seed default", ""];
        let mut table = Table::new(1, &head);
        for row in &self.lateness {
            let figures = row.had.figures();
            let cell = |of: fn(&Sends) -> Option<f64>| us(figures.and_then(of));
            let (best, default) = seed(row.rate);
            table.row(vec![
                row.name.clone(),
                row.rate.to_string(),
                cell(|sends| Some(sends.p50)),
                cell(|sends| Some(sends.p99)),
                cell(|sends| sends.p999),
                figures.map(|sends| word(sends.verdict).to_owned()).unwrap_or_default(),
                us(best),
                us(default),
                but(&row.had),
            ]);
        }
        table.print(out);
        *out +=
            "  (seed: what the reference implementation reports of itself, on its own machine)\n";
    }

    fn errors_text(&self, out: &mut String) {
        *out += "\nReported times against what the server did, us (p50 / p99)\n";
        let head =
            ["wait", "rate", "requests", "TTFT", "gap", "latency", "TTFT, plan", "server late", ""];
        let mut table = Table::new(1, &head);
        for row in &self.errors {
            let figures = row.had.figures();
            let cell = |of: fn(&Errors) -> Option<Spread>| {
                let spread = figures.and_then(of);
                let text = |s: Spread| format!("{} / {}", us(Some(s.p50)), us(Some(s.p99)));
                spread.map(text).unwrap_or_default()
            };
            table.row(vec![
                row.name.clone(),
                row.rate.to_string(),
                figures.map(|errors| errors.requests.to_string()).unwrap_or_default(),
                cell(|errors| errors.ttft),
                cell(|errors| errors.gap),
                cell(|errors| errors.latency),
                cell(|errors| errors.ttft_planned),
                cell(|errors| errors.server),
                but(&row.had),
            ]);
        }
        table.print(out);
    }
}

/// Mean lateness in microseconds that the reference implementation (MLCommons endpoints) reports of itself:
/// with a busy wait on threads, its best, and as it comes.
fn seed(rate: u64) -> (Option<f64>, Option<f64>) {
    let row = SEED.iter().find(|(at, ..)| *at == rate);
    (row.map(|(_, best, _)| *best), row.map(|(.., default)| *default))
}

const SEED: [(u64, f64, f64); 5] = [
    (100, 84.0, 1_772.0),
    (1_000, 65.0, 679.0),
    (10_000, 67.0, 739.0),
    (50_000, 85.0, 586.0),
    (100_000, 126.0, 1_043.0),
];

fn greatest(out: &mut String, what: &str, had: &Had<Greatest>) {
    let mut line = format!("  {what}: ");
    match had.figures() {
        None => line += "-",
        Some(Greatest { value, next: None }) => {
            line += &format!("{value}, the most that was tried");
        }
        Some(Greatest { value, next: Some((next, says)) }) => {
            line += &format!("{value}; at {next}: {says}");
        }
    }
    if let Some(but) = had.but() {
        line += &format!("   ({but})");
    }
    *out += &line;
    out.push('\n');
}

/// Three digits of microseconds; nothing of nothing.
fn us(value: Option<f64>) -> String {
    match value {
        None => String::new(),
        Some(value) if value >= 100.0 => format!("{value:.0}"),
        Some(value) if value >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.2}"),
    }
}

/// Why a row is empty, or not to be believed.
fn but<T>(had: &Had<T>) -> String {
    had.but().map(|why| format!("({why})")).unwrap_or_default()
}

fn had<T: Serialize>(had: &Had<T>) -> Value {
    let (figures, why) = (had.figures().map(|figures| json!(figures)), had.but());
    let absent = figures.is_none().then_some(why).flatten();
    let disturbed = figures.is_some().then_some(why).flatten();
    json!({"figures": figures, "absent": absent, "disturbed": disturbed})
}

fn entry<T: Serialize>(key: &str, row: &Row<T>) -> Value {
    let mut entry = had(&row.had);
    entry[key] = json!(row.name);
    entry["rate"] = json!(row.rate);
    entry
}

fn word(status: VerdictStatus) -> &'static str {
    match status {
        VerdictStatus::Valid => "valid",
        VerdictStatus::Suspect => "suspect",
        VerdictStatus::Invalid => "invalid",
    }
}
