//! The printed report, from the result document alone.
//!
//! Order: what was run and whether it may be trusted; a summary when there are several performance
//! phases; each phase; what the server was doing, where that is known; the verdict with its figures. What
//! does not apply is left out. At most [`WIDTH`] columns, but for the server's tables, plain text without
//! escapes: what comes from a server is cleaned first.

mod figure;
mod phase;
mod score;
mod server;
mod table;
mod talks;

use serde_json::Value;
use takt_record::{Counted, PhaseKind, PhaseResult, Reason, ResultDoc, RunState, VerdictStatus};

use figure::{clean, column, figure, fit, wrap};
pub use server::render_joined;
pub use table::Table;

/// The report of a run as text, ending in a line break.
#[must_use]
pub fn render(result: &ResultDoc) -> String {
    let mut out = String::new();
    header(&mut out, result);
    summary(&mut out, result);
    for phase in &result.phases {
        phase::render(&mut out, phase);
    }
    if let Some(side) = &result.opprof {
        server::render(&mut out, side);
    }
    verdict(&mut out, result);
    records(&mut out, result);
    out
}

fn header(out: &mut String, result: &ResultDoc) {
    let text = |path: &str| result.config.pointer(path).map(plain);
    let mut what = vec![format!("takt {}", result.takt)];
    what.extend(text("/name"));
    what.extend(text("/endpoint/url"));
    what.extend(text("/endpoint/api"));
    what.extend(text("/endpoint/model").map(|model| format!("model {model}")));
    parts(out, &what);
    let mut how = vec![
        result.started_at.clone(),
        format!("session {}", result.session_id.get(..8).unwrap_or("")),
    ];
    if let (Some(start), Some(end)) = (result.start_time_ns, result.end_time_ns) {
        how.push(format!("{} s", figure(end.saturating_sub(start) as f64 / 1e9)));
    }
    how.extend(text("/engine/wait").map(|wait| format!("wait {wait}")));
    how.push(state_word(result.state).to_owned());
    let reactors = result.config.pointer("/engine/reactors").and_then(Value::as_u64);
    how.extend(reactors.filter(|count| *count > 1).map(|count| format!("{count} reactors")));
    parts(out, &how);
    if result.config.pointer("/connections/tls/insecure") == Some(&true.into()) {
        line(out, "INSECURE: no TLS certificate was checked");
    }
    let endpoints = result.host.get("endpoints").and_then(Value::as_array);
    for note in
        endpoints.into_iter().flatten().filter_map(|at| at.get("notes")?.as_array()).flatten()
    {
        wrap(out, &format!("note: {}", clean(&plain(note))), 0, WIDTH);
    }
    let reasons = result.verdict.reasons.len();
    let more = match reasons {
        0 => String::new(),
        1 => " (one reason, at the end)".to_owned(),
        n => format!(" ({n} reasons, at the end)"),
    };
    line(out, &format!("verdict: {}{more}", word(result.verdict.status)));
}

fn state_word(state: RunState) -> &'static str {
    match state {
        RunState::Complete => "complete",
        RunState::Interrupted => "INCOMPLETE: interrupted",
        RunState::Failed => "INCOMPLETE: failed",
        RunState::Killed => "INCOMPLETE: killed",
    }
}

/// One line for each performance phase, when there are several.
fn summary(out: &mut String, result: &ResultDoc) {
    let phases: Vec<&PhaseResult> =
        result.phases.iter().filter(|phase| phase.kind == PhaseKind::Performance).collect();
    if phases.len() < 2 {
        return;
    }
    let mut table = Table::new(
        2,
        &[
            "phase", "load", "ok", "failed", "ok/s", "tokens/s", "p50", "p99", "TTFT p50",
            "TTFT p99", "TPOT p50",
        ],
    );
    for phase in phases {
        let rate = |value: Option<f64>| value.map(figure).unwrap_or_default();
        let ms = |value: Option<f64>| value.map(column).unwrap_or_default();
        let latency = phase.latency_ms.from_schedule.or(phase.latency_ms.from_send);
        let ttft = phase.ttft_ms.from_schedule.or(phase.ttft_ms.from_send);
        let failed = phase.failed + phase.unanswered;
        table.row(vec![
            fit(&clean(&phase.name), 16),
            phase::asked(phase),
            phase.succeeded.to_string(),
            if failed > 0 { failed.to_string() } else { String::new() },
            rate(phase.successful_per_s),
            rate(phase.output_tokens_per_s),
            ms(latency.map(|d| d.p.p50)),
            ms(latency.map(|d| d.p.p99)),
            ms(ttft.map(|d| d.p.p50)),
            ms(ttft.map(|d| d.p.p99)),
            ms(phase.tpot_ms.map(|d| d.p.p50)),
        ]);
    }
    out.push('\n');
    table.print(out);
    line(out, "  (latency and others in ms, from schedule where there is one)");
}

fn verdict(out: &mut String, result: &ResultDoc) {
    let says = match result.verdict.status {
        VerdictStatus::Valid => "valid: nothing speaks against these figures",
        VerdictStatus::Suspect => "suspect: use these figures with care",
        VerdictStatus::Invalid => "invalid: do not use these figures",
    };
    out.push('\n');
    line(out, &format!("verdict: {says}"));
    for reason in &result.verdict.reasons {
        line(out, &format!("  {}", reason_line(reason)));
        wrap(out, &clean(&reason.says), 6, WIDTH);
    }
}

/// What a reader must know of the records behind the figures; nothing when they are as always.
fn records(out: &mut String, result: &ResultDoc) {
    let mut says = Vec::new();
    if result.counted == Counted::Values {
        says.push("percentiles: exact, by nearest rank over every value".to_owned());
    }
    if let Some(journal) = &result.journal {
        if journal.sampled {
            let kept = result.config.get("journal").map(plain).unwrap_or_default();
            says.push(format!("journal: holds a part of the requests ({kept})"));
        }
        if journal.capped {
            says.push("journal: reached its size cap; later requests are not in it".to_owned());
        }
        if let Some(why) = &journal.stopped {
            says.push(format!("journal: stops before the end of the run: {}", clean(why)));
        }
        let not_read = journal.left_out.iter().chain(&journal.foreign);
        says.extend(not_read.map(|left| format!("journal: {}", clean(&left.to_string()))));
        let counts = result.verdict.reasons.iter().any(|reason| reason.name == "records_left_out");
        if !journal.left_out.is_empty() && !counts {
            says.push("journal: the figures are those that the run wrote at its end".to_owned());
        }
    }
    if !says.is_empty() {
        out.push('\n');
    }
    for text in says {
        wrap(out, &text, 0, WIDTH);
    }
}

fn reason_line(reason: &Reason) -> String {
    let grade = match reason.status {
        VerdictStatus::Valid => "remark",
        status => word(status),
    };
    let place =
        reason.phase.as_deref().map(|name| format!("{}: ", clean(name))).unwrap_or_default();
    let (value, limit) = (figure(reason.value), figure(reason.limit));
    format!("{grade}  {place}{} {value}, limit {limit}", reason.name)
}

fn word(status: VerdictStatus) -> &'static str {
    match status {
        VerdictStatus::Valid => "valid",
        VerdictStatus::Suspect => "suspect",
        VerdictStatus::Invalid => "invalid",
    }
}

/// A value of the configuration in a line of text.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => clean(text),
        Value::Array(list) => list.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => clean(&other.to_string()),
    }
}

/// Parts beside one another, in as many lines as they need; a part that no line has room for is cut.
fn parts(out: &mut String, parts: &[String]) {
    let mut text = String::new();
    for part in parts {
        let (width, more) = (text.chars().count(), part.chars().count());
        if width > 0 && width + GAP.len() + more > WIDTH {
            line(out, &text);
            text = "  ".to_owned();
        } else if width > 0 {
            text.push_str(GAP);
        }
        text.push_str(part);
    }
    line(out, &text);
}

fn line(out: &mut String, text: &str) {
    out.push_str(&fit(text.trim_end(), WIDTH));
    out.push('\n');
}

/// Between two parts of a line.
const GAP: &str = "   ";
/// Columns of the report.
const WIDTH: usize = 100;
