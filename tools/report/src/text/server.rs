//! What the server was doing: composition over time beside latency, the slowest requests, the windows.

use std::fmt::Write as _;

use takt_record::{JoinClocks, Joined, JoinedRequest, ProfilerWindow, ServerSide, ServerSlice};

use super::figure::{clean, wrap};
use super::{Table, WIDTH, line};

/// The page of a report.
pub(super) fn render(out: &mut String, side: &ServerSide) {
    out.push('\n');
    line(out, "what the server was doing");
    for problem in &side.problems {
        wrap(out, &format!("not had: {}", clean(problem)), 2, WIDTH);
    }
    for (place, window) in (1..).zip(&side.windows) {
        self::window(out, place, window);
    }
    if let Some(joined) = &side.joined {
        joined_text(joined, out);
    }
}

/// Client latency beside composition as text of several lines.
#[must_use]
pub fn render_joined(joined: &Joined) -> String {
    let mut out = String::new();
    joined_text(joined, &mut out);
    out
}

fn window(out: &mut String, place: u32, window: &ProfilerWindow) {
    let mut says = format!("window {place}, phase {}: ", clean(&window.phase));
    let ms = window.opened_ns.zip(window.closed_ns).map(|(from, to)| to.saturating_sub(from));
    match (window.opened_ns, ms) {
        (_, Some(ns)) => says += &format!("{:.0} ms with its margins", ns as f64 / 1e6),
        (Some(_), None) => says += "not closed before the end of the run",
        (None, _) => says += "not begun",
    }
    if let Some(steps) = window.steps {
        says += &format!(", {steps} steps");
    }
    if let Some((low, high)) = window.decode {
        says += &format!(" of {low} to {high} decodes");
    }
    if let Some(with_prompts) = window.prompt_steps.filter(|&steps| steps > 0) {
        says += &format!(", {with_prompts} of them with prompts");
    }
    says += &format!(", {} traces", window.files.len());
    wrap(out, &says, 2, WIDTH);
    for problem in &window.problems {
        wrap(out, &format!("does not count: {}", clean(problem)), 4, WIDTH);
    }
    for remark in &window.remarks {
        wrap(out, &clean(remark), 4, WIDTH);
    }
}

fn joined_text(joined: &Joined, out: &mut String) {
    let (within, all) = (joined.steps, joined.recorded);
    let clocks = match joined.clocks {
        JoinClocks::Same => "by the monotonic clock of the one machine",
        JoinClocks::Wall => "by the wall clocks of two machines: no better than they agree",
    };
    let _ = writeln!(out, "{within} of {all} steps lie within the run; joined {clocks}\n");
    over_time(joined, out);
    slowest("slowest to the first token", "TTFT ms", &joined.slowest_ttft, out);
    slowest("slowest per token", "TPOT ms", &joined.slowest_tpot, out);
}

fn over_time(joined: &Joined, out: &mut String) {
    let before = ["time s", "answers", "TTFT p50 ms", "p95", "TPOT p50 ms"];
    let head = [&before[..], &SERVER, &["prefix hits", "profiled"]].concat();
    let mut table = Table::new(0, &head);
    let millis = |ms: Option<f64>| ms.map(|ms| format!("{ms:.2}")).unwrap_or_default();
    for slice in joined.slices.iter().take(ROWS_MAX) {
        let mut row = vec![
            format!("{:.1}", slice.start_s),
            slice.answers.to_string(),
            millis(slice.ttft_p50_ms),
            millis(slice.ttft_p95_ms),
            millis(slice.tpot_p50_ms),
        ];
        row.extend(server(&slice.server));
        row.push(slice.server.prefix_hits.map(share).unwrap_or_default());
        row.push(Some(slice.profiled).filter(|&part| part > 0.0).map(share).unwrap_or_default());
        table.row(row);
    }
    table.print(out);
    let more = joined.slices.len().saturating_sub(ROWS_MAX);
    if more > 0 {
        let _ = writeln!(out, "  and {more} more; make slices longer with --slice");
    }
}

fn slowest(title: &str, figure: &str, requests: &[JoinedRequest], out: &mut String) {
    if requests.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}, and what the server did meanwhile");
    let head = [&["phase/request", "sent s", figure][..], &SERVER, &["longest step ms"]].concat();
    let mut table = Table::new(1, &head);
    for slow in requests {
        let mut row = vec![
            format!("{}/{}", slow.phase, slow.ordinal),
            format!("{:.3}", slow.sent_s),
            format!("{:.2}", slow.value_ms),
        ];
        row.extend(server(&slow.during));
        row.push(format!("{:.2}", slow.during.longest_step_ns as f64 / 1e6));
        table.row(row);
    }
    table.print(out);
}

/// What a server did, in the columns of [`SERVER`].
fn server(did: &ServerSlice) -> [String; SERVER.len()] {
    [
        did.steps.to_string(),
        share(did.busy),
        format!("{:.1}", did.decode_batch),
        did.prefill_tokens.to_string(),
        share(did.prefill_share),
        did.waiting_max.to_string(),
        share(did.kv_usage_max),
        did.preemptions.to_string(),
    ]
}

fn share(value: f64) -> String {
    format!("{:.0} %", value * 100.0)
}

/// Columns of what a server did in a slice of time.
const SERVER: [&str; 8] =
    ["steps", "busy", "decodes", "prompt tok", "in prefill", "waiting", "KV max", "preempt"];
/// As many slices are shown.
const ROWS_MAX: usize = 120;
