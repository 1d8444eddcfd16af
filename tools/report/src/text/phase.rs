//! One phase of the printed report.

use takt_record::{Distribution, EndpointCounts, PhaseKind, PhaseResult, TokenSource, TwoViews};

use super::figure::{clean, column, figure, fit, wrap};
use super::table::Table;
use super::{WIDTH, line};
use super::{score, talks};

/// Prints a phase: a performance phase in full, any other in a line or two.
pub(super) fn render(out: &mut String, phase: &PhaseResult) {
    out.push('\n');
    line(out, &title(phase));
    line(out, &format!("  {}", counts(phase)));
    if phase.kind == PhaseKind::Performance {
        rates(out, phase);
        gates(out, phase);
    }
    if let Some(scored) = &phase.score {
        score::render(out, scored);
    }
    errors(out, phase);
    if phase.kind == PhaseKind::Performance {
        distributions(out, phase);
        two_latencies(out, &phase.latency_ms, phase.lateness_us.as_ref());
        tokens(out, phase);
        talks::render(out, phase);
        reactor(out, phase);
    }
    connections(out, phase);
}

/// What was asked: `poisson 50/s`, `concurrency 16`.
pub(super) fn asked(phase: &PhaseResult) -> String {
    let load = &phase.load;
    let level = match (load.ramp, load.rate, load.target_concurrency) {
        (Some(ramp), ..) => format!(" {} to {}/s", figure(ramp.from), figure(ramp.to)),
        (None, Some(rate), _) => format!(" {}/s", figure(rate)),
        (None, None, Some(target)) => format!(" {target}"),
        (None, None, None) if load.conversations_per_s.is_some() => {
            format!(" {} conversations/s", figure(load.conversations_per_s.unwrap_or(0.0)))
        }
        (None, None, None) => String::new(),
    };
    format!("{}{level}", load.pattern)
}

fn title(phase: &PhaseResult) -> String {
    let mut title = format!("{}   {}   {}", clean(&phase.name), phase.kind, asked(phase));
    match (phase.state, phase.ended_by) {
        (Some(state), Some(by)) => title += &format!("   {state}, ended by {by}"),
        (Some(state), None) => title += &format!("   {state}"),
        (None, _) if phase.start_time_ns.is_some() => title += "   not finished",
        (None, _) => title += "   not begun",
    }
    if let (Some(start), Some(end)) = (phase.start_time_ns, phase.end_time_ns) {
        title += &format!("   {} s", figure(end.saturating_sub(start) as f64 / 1e9));
    }
    title
}

fn counts(phase: &PhaseResult) -> String {
    let mut parts = vec![
        format!("issued {}", phase.issued),
        format!("succeeded {}", phase.succeeded),
        format!("failed {}", phase.failed),
    ];
    // What a killed run had in flight ended in no way that anybody saw.
    let ended = phase.completed + phase.unanswered + phase.late;
    let rest = [
        ("without an end", phase.issued.saturating_sub(ended)),
        ("unanswered", phase.unanswered),
        ("skipped", phase.skipped),
        ("late", phase.late),
        ("inherited", phase.inherited),
        ("retried", phase.retried),
        ("profiled", phase.profiled),
    ];
    parts.extend(rest.iter().filter(|(_, n)| *n > 0).map(|(word, n)| format!("{word} {n}")));
    parts.join("   ")
}

fn rates(out: &mut String, phase: &PhaseResult) {
    let part = |value: Option<f64>, what: &str| value.map(|v| format!("{} {what}", figure(v)));
    let mut parts: Vec<String> = Vec::new();
    let varies = phase.load.ramp.is_some() || phase.load.pattern == TRACE;
    let sent = if varies { "requests/s sent in the mean" } else { "requests/s sent" };
    parts.extend(part(phase.requests_per_s, sent));
    parts.extend(part(phase.successful_per_s, "succeeded/s"));
    parts.extend(part(phase.output_tokens_per_s, "output tokens/s"));
    if let Some(goodput) = &phase.goodput {
        parts.extend(part(goodput.requests_per_s, "within SLO/s"));
        parts.extend(part(goodput.share.map(|share| share * 100.0), "% within SLO"));
    }
    if !parts.is_empty() {
        line(out, &format!("  {}", parts.join("   ")));
    }
    if let Some(steady) = &phase.steady
        && let Some(rate) = part(steady.requests_per_s, "succeeded/s")
    {
        let tokens = part(steady.output_tokens_per_s, "output tokens/s");
        let tokens = tokens.map(|text| format!("   {text}")).unwrap_or_default();
        let (start, end) = (figure(steady.start_s), figure(steady.end_s));
        line(out, &format!("  steady from {start} s to {end} s: {rate}{tokens}"));
    }
}

/// The percentiles of the objective, and whether they were kept.
fn gates(out: &mut String, phase: &PhaseResult) {
    for gate in phase.goodput.iter().flat_map(|goodput| &goodput.gates) {
        let value = gate.value.map_or_else(|| "absent".to_owned(), figure);
        let word = if gate.met { "kept" } else { "MISSED" };
        let (limit, metric) = (figure(gate.limit), &gate.metric);
        line(out, &format!("  SLO {metric} p{} <= {limit}: {value}, {word}", gate.percentile));
    }
}

fn errors(out: &mut String, phase: &PhaseResult) {
    if !phase.errors.is_empty() {
        let kinds: Vec<_> = phase.errors.iter().map(|(kind, n)| format!("{kind} {n}")).collect();
        line(out, &format!("  errors: {}", kinds.join("   ")));
    }
    for sample in phase.error_samples.iter().take(SAMPLES) {
        let status = sample.status.map(|status| format!(" {status}")).unwrap_or_default();
        let message = clean(&sample.message);
        line(out, &format!("    {} x {}{status}: {message}", sample.count, sample.kind));
    }
    if phase.error_samples.len() > SAMPLES {
        line(
            out,
            &format!("    and {} others, in result.json", phase.error_samples.len() - SAMPLES),
        );
    }
}

/// What the reactor did, when it had little time left.
fn reactor(out: &mut String, phase: &PhaseResult) {
    let Some(seen) = &phase.instrument else { return };
    let (Some(busy), Some(by)) = (seen.busy_share, seen.busy_by) else { return };
    if busy < BUSY_WORTH_A_LINE {
        return;
    }
    let parts = [
        ("timers", by.timers),
        ("reads", by.reads),
        ("writes", by.writes),
        ("parse", by.parse),
        ("messages", by.messages),
        ("engine", by.engine),
    ];
    let parts = parts.map(|(what, share)| format!("{what} {:.0}", share * 100.0)).join("   ");
    line(out, &format!("  reactor busy {:.0} %: {parts}", busy * 100.0));
}

fn distributions(out: &mut String, phase: &PhaseResult) {
    let mut table = Table::new(1, &["", "mean", "p50", "p90", "p99", "p99.9", "max"]);
    let open = phase.latency_ms.from_schedule.is_some();
    let named = |what: &str, view: &str| if open { format!("{what}, {view}") } else { what.into() };
    let first_content = phase.first_content_ms.filter(|content| {
        // Worth a line only where reasoning came first.
        phase.ttft_ms.from_send.is_some_and(|ttft| ttft.mean < content.mean)
    });
    let last_token = phase
        .last_token_ms
        .from_send
        .filter(|last| phase.latency_ms.from_send.is_some_and(|end| end.p.p50 > last.p.p50 * 1.01));
    let has_tokens = phase.ttft_ms.from_send.is_some();
    let times: [(String, Option<Distribution>); 16] = [
        (named("latency ms", "from schedule"), phase.latency_ms.from_schedule),
        (named("latency ms", "from send"), phase.latency_ms.from_send),
        ("to last token ms, from send".into(), last_token),
        (named("TTFT ms", "from schedule"), phase.ttft_ms.from_schedule),
        (named("TTFT ms", "from send"), phase.ttft_ms.from_send),
        ("first content ms, from send".into(), first_content),
        ("TPOT ms".into(), phase.tpot_ms),
        ("inter-token ms".into(), phase.itl_ms),
        ("inter-event gap ms".into(), phase.event_gap_ms),
        ("first byte ms".into(), phase.first_byte_ms.filter(|_| !has_tokens)),
        ("lateness us".into(), phase.lateness_us),
        ("queueing in client ms".into(), phase.queue_ms.filter(|d| d.max >= NOTABLE_MS)),
        ("connect ms".into(), phase.connect_ms),
        ("TLS ms".into(), phase.tls_ms),
        ("write ms".into(), phase.write_ms.filter(|d| d.max >= NOTABLE_MS)),
        ("waited in socket ms".into(), phase.socket_wait_ms),
    ];
    let whole_numbers = [
        ("in flight".to_owned(), phase.in_flight),
        ("output tokens".to_owned(), phase.tokens.as_ref().and_then(|tokens| tokens.output)),
    ];
    let mut add = |name: String, d: Option<Distribution>, show: fn(f64) -> String| {
        let Some(d) = d else { return };
        let values = [d.p.p50, d.p.p90, d.p.p99, d.p.p99_9, d.max].map(show);
        table.row([name, column(d.mean)].into_iter().chain(values).collect());
    };
    for (name, distribution) in times {
        add(name, distribution, column);
    }
    for (name, distribution) in whole_numbers {
        add(name, distribution, figure);
    }
    if !table.is_empty() {
        table.print(out);
    }
}

/// One sentence why latency from schedule and from send differ, when they differ markedly.
fn two_latencies(out: &mut String, latency: &TwoViews, lateness: Option<&Distribution>) {
    let (Some(schedule), Some(send), Some(lateness)) =
        (&latency.from_schedule, &latency.from_send, lateness)
    else {
        return;
    };
    let marked = |a: f64, b: f64| a - b > 0.1 * b && a - b > MARKED_MS;
    if marked(schedule.mean, send.mean) || marked(schedule.p.p99, send.p.p99) {
        let (mean, most) = (figure(lateness.mean / 1e3), figure(lateness.max / 1e3));
        let text = format!(
            "Latency from schedule is longer than from send because sends left after their scheduled \
             times, by {mean} ms in the mean and {most} ms at most; from schedule is what users would \
             have seen."
        );
        wrap(out, &text, 2, WIDTH);
    }
}

fn tokens(out: &mut String, phase: &PhaseResult) {
    let Some(tokens) = &phase.tokens else { return };
    let mut parts = Vec::new();
    for (what, total) in [
        ("input", tokens.input_total),
        ("cached", tokens.cached_total),
        ("output", tokens.output_total),
    ] {
        parts.extend(total.map(|total| format!("{what} {total}")));
    }
    if !parts.is_empty() {
        let source = tokens.source.map(|source| format!("   output counted by {}", by(source)));
        line(out, &format!("  tokens: {}{}", parts.join("   "), source.unwrap_or_default()));
    }
    if tokens.sources.len() > 1 {
        let each: Vec<_> =
            tokens.sources.iter().map(|(s, n)| format!("{n} requests by {}", by(*s))).collect();
        line(out, &format!("  counted differently: {}", each.join(", ")));
    }
    if let Some(counted) = &tokens.tokenizer {
        let beside = match counted.compared {
            0 => String::new(),
            n => format!(", of {n} requests that the server counts as {}", counted.stated_total),
        };
        line(out, &format!("  output by our tokenizer {}{beside}", counted.output_total));
    }
    if let Some(share) = tokens.coalesced_share.filter(|&share| share > 0.0) {
        let share = figure(share * 100.0);
        line(out, &format!("  {share} % of token events came in one read with the one before"));
    }
    if !phase.finish_reasons.is_empty() {
        let each: Vec<_> = phase.finish_reasons.iter().map(|(r, n)| format!("{r} {n}")).collect();
        line(out, &format!("  finish reasons: {}", fit(&each.join("   "), WIDTH)));
    }
}

/// Where the requests went, if to several endpoints, and how often TLS was set up.
fn connections(out: &mut String, phase: &PhaseResult) {
    for endpoint in phase.endpoints.iter().flatten() {
        let EndpointCounts { url, ended, succeeded, failed } = endpoint;
        let url = clean(url);
        line(out, &format!("  {url}: {ended} ended, {succeeded} succeeded, {failed} failed"));
    }
    if let Some(seen) = phase.instrument.as_ref().filter(|seen| seen.secured > 0) {
        let (all, resumed) = (seen.secured, seen.resumed);
        line(out, &format!("  TLS handshakes {all}, {resumed} of them resumed"));
    }
}

fn by(source: TokenSource) -> &'static str {
    match source {
        TokenSource::Usage => "the server (usage)",
        TokenSource::ContinuousUsage => "the server (usage in each event)",
        TokenSource::Tokenizer => "a tokenizer of ours",
        TokenSource::TokenIds => "the ids of the tokens",
        TokenSource::Events => "events, one token each: an estimate",
    }
}

/// The pattern that replays a recording, whatever its rates were.
const TRACE: &str = "trace";
/// From this busy share on the report says what kept the reactor busy.
const BUSY_WORTH_A_LINE: f64 = 0.5;
/// Error samples on the screen.
const SAMPLES: usize = 5;
/// Queueing and writing are shown when they ever took this long.
const NOTABLE_MS: f64 = 0.1;
/// The least difference of the two latencies that is worth a sentence.
const MARKED_MS: f64 = 0.1;
