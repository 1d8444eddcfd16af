//! The report of a join for people.

use std::fmt::Write as _;

use takt_report::{Sketch, Table};

use super::{Clocks, Joined, Slowest};

impl Joined {
    /// Text of several lines.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = String::new();
        let (within, all) = self.steps;
        let clocks = match self.clocks {
            Clocks::Same => "by the monotonic clock of the one machine",
            Clocks::Wall => "by the wall clocks of two machines: no better than they agree",
        };
        let _ = writeln!(out, "{within} of {all} steps lie within the run; joined {clocks}\n");
        self.over_time(&mut out);
        slowest("slowest to the first token", "TTFT ms", &self.slowest_ttft, &mut out);
        slowest("slowest per token", "TPOT ms", &self.slowest_tpot, &mut out);
        out
    }

    fn over_time(&self, out: &mut String) {
        let head = [
            "time s",
            "answers",
            "TTFT p50 ms",
            "p95",
            "TPOT p50 ms",
            "steps",
            "busy",
            "decodes",
            "prompt tok",
            "in prefill",
            "waiting",
            "KV max",
            "preempt",
            "prefix hits",
        ];
        let mut table = Table::new(0, &head);
        for slice in self.slices.iter().take(ROWS_MAX) {
            let server = &slice.server;
            table.row(vec![
                format!("{:.1}", slice.start_s),
                slice.answers.to_string(),
                millis(&slice.ttft, 50),
                millis(&slice.ttft, 95),
                millis(&slice.tpot, 50),
                server.steps.to_string(),
                share(server.busy),
                format!("{:.1}", server.decode_batch),
                server.prefill_tokens.to_string(),
                share(server.prefill_share),
                server.waiting_max.to_string(),
                share(server.kv_usage_max),
                server.preemptions.to_string(),
                server.prefix_hits.map(share).unwrap_or_default(),
            ]);
        }
        table.print(out);
        let more = self.slices.len().saturating_sub(ROWS_MAX);
        if more > 0 {
            let _ = writeln!(out, "  and {more} more; make slices longer with --slice");
        }
    }
}

fn slowest(title: &str, figure: &str, requests: &[Slowest], out: &mut String) {
    if requests.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}, and what the server did meanwhile");
    let head = [
        "phase/request",
        "sent s",
        figure,
        "steps",
        "busy",
        "decodes",
        "prompt tok",
        "in prefill",
        "waiting",
        "KV max",
        "preempt",
        "longest step ms",
    ];
    let mut table = Table::new(1, &head);
    for slow in requests {
        let during = &slow.during;
        table.row(vec![
            format!("{}/{}", slow.request.key.phase.0, slow.request.key.ordinal),
            format!("{:.3}", slow.sent_s),
            format!("{:.2}", slow.request.value_ns as f64 / 1e6),
            during.steps.to_string(),
            share(during.busy),
            format!("{:.1}", during.decode_batch),
            during.prefill_tokens.to_string(),
            share(during.prefill_share),
            during.waiting_max.to_string(),
            share(during.kv_usage_max),
            during.preemptions.to_string(),
            format!("{:.2}", during.longest_step_ns as f64 / 1e6),
        ]);
    }
    table.print(out);
}

fn millis(sketch: &Sketch, percent: u64) -> String {
    sketch.percentile(percent).map(|ns| format!("{:.2}", ns as f64 / 1e6)).unwrap_or_default()
}

fn share(value: f64) -> String {
    format!("{:.0} %", value * 100.0)
}

/// As many slices are shown.
const ROWS_MAX: usize = 120;
