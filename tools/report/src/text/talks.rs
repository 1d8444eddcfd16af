//! Conversations in the printed report: what they came to, and how their turns went by number.

use takt_record::{Distribution, PhaseResult};

use super::figure::{column, figure};
use super::line;
use super::table::Table;

/// Prints what there is to say of a phase's conversations.
pub(super) fn render(out: &mut String, phase: &PhaseResult) {
    let Some(talks) = &phase.conversations else { return };
    let mut parts = vec![
        format!("conversations {}", talks.begun),
        format!("completed {}", talks.completed),
        format!("failed {}", talks.failed),
    ];
    let rest = [("stopped", talks.stopped), ("turns not sent", talks.turns_unsent)];
    parts.extend(rest.iter().filter(|(_, n)| *n > 0).map(|(word, n)| format!("{word} {n}")));
    line(out, &format!("  {}", parts.join("   ")));

    let mut table = Table::new(1, &["of a conversation", "mean", "p50", "p90", "p99", "max"]);
    let mut add = |name: &str, d: Option<Distribution>, show: fn(f64) -> String| {
        let Some(d) = d else { return };
        let values = [d.p.p50, d.p.p90, d.p.p99, d.max].map(show);
        table.row([name.to_owned(), column(d.mean)].into_iter().chain(values).collect());
    };
    for (name, times) in [
        ("duration ms", talks.duration_ms),
        ("waited for the model ms", talks.waited_ms),
        ("tools and thinking ms", talks.paused_ms.filter(|paused| paused.max > 0.0)),
    ] {
        add(name, times, column);
    }
    for (name, counts) in [
        ("turns", talks.turns),
        ("input tokens", talks.input_tokens),
        ("cached tokens", talks.cached_tokens),
        ("output tokens", talks.output_tokens),
    ] {
        add(name, counts, figure);
    }
    if !table.is_empty() {
        table.print(out);
    }
    turns(out, phase);
}

/// Time to first token by turn number: where a prefix cache shows.
fn turns(out: &mut String, phase: &PhaseResult) {
    let rows = phase.turns.as_deref().unwrap_or_default();
    let head = [
        "turn",
        "answered",
        "failed",
        "TTFT ms p50",
        "p90",
        "p99",
        "latency ms p50",
        "p99",
        "input",
        "cached",
        "output",
    ];
    let mut table = Table::new(0, &head);
    for row in rows.iter().take(ROWS) {
        let last = row.last_turn.map(|last| format!("-{last}")).unwrap_or_default();
        let of = |d: Option<Distribution>, p: fn(&Distribution) -> f64| {
            d.map(|d| column(p(&d))).unwrap_or_default()
        };
        let mean = |tokens: Option<f64>| tokens.map(figure).unwrap_or_default();
        table.row(vec![
            format!("{}{last}", row.turn),
            row.succeeded.to_string(),
            if row.failed > 0 { row.failed.to_string() } else { String::new() },
            of(row.ttft_ms, |d| d.p.p50),
            of(row.ttft_ms, |d| d.p.p90),
            of(row.ttft_ms, |d| d.p.p99),
            of(row.latency_ms, |d| d.p.p50),
            of(row.latency_ms, |d| d.p.p99),
            mean(row.input_tokens),
            mean(row.cached_tokens),
            mean(row.output_tokens),
        ]);
    }
    if !table.is_empty() {
        table.print(out);
    }
    if rows.len() > ROWS {
        line(out, &format!("  and {} more rows, in result.json", rows.len() - ROWS));
    }
}

/// Rows on the screen.
const ROWS: usize = 16;
