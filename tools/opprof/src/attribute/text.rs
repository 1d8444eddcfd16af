//! The report of an attribution for people.

use std::fmt::Write as _;

use takt_report::Table;

use super::{AttributeOptions, StepAttribution, Window};
use crate::families::{Families, FamilyId};

impl Window {
    /// Text of several lines.
    #[must_use]
    pub fn render(&self, families: &Families, options: AttributeOptions) -> String {
        let mut out = String::new();
        let ranks: Vec<String> = self.ranks.iter().map(|rank| rank.rank.to_string()).collect();
        let _ = writeln!(
            out,
            "{} steps on {} ranks ({}); {:.1} % of them have a record",
            self.steps.len(),
            self.ranks.len(),
            ranks.join(", "),
            self.coverage() * 100.0
        );
        if !self.has_kernels() {
            out.push_str(NO_KERNELS);
            self.list_steps(&mut out);
            return out;
        }
        self.by_family(families, &mut out);
        self.by_step(&mut out);
        self.by_rank(&mut out);
        self.remarks(options, &mut out);
        out
    }

    fn by_family(&self, families: &Families, out: &mut String) {
        let decode: Vec<&StepAttribution> = self.steps.iter().filter(|s| is_decode(s)).collect();
        let prefill: Vec<&StepAttribution> = self.steps.iter().filter(|s| !is_decode(s)).collect();
        for (name, steps) in [("decode steps", decode), ("steps with prompts", prefill)] {
            if steps.is_empty() {
                continue;
            }
            let n = steps.len() as f64;
            let union: u64 = steps.iter().map(|step| step.cover.union_ns).sum();
            let _ = writeln!(out, "\n{name}: {}, means over them on the slowest rank", steps.len());
            let head = ["family", "kernels", "time us", "share", "work us"];
            let mut table = Table::new(1, &head);
            let mut rows: Vec<(u64, Vec<String>)> = Vec::new();
            for (id, family) in (0_u8..).zip(families.names()) {
                let of = || {
                    let all = steps.iter().flat_map(|step| &step.cover.families);
                    all.filter(|cover| cover.family == FamilyId(id))
                };
                let time: u64 = of().map(|cover| cover.union_ns).sum();
                let work: u64 = of().map(|cover| cover.sum_ns).sum();
                let count: u64 = of().map(|cover| cover.count).sum();
                if count > 0 {
                    rows.push((
                        time,
                        vec![
                            family.clone(),
                            format!("{:.1}", count as f64 / n),
                            micros(time as f64 / n),
                            format!("{:.1} %", 100.0 * time as f64 / union.max(1) as f64),
                            micros(work as f64 / n),
                        ],
                    ));
                }
            }
            rows.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
            rows.into_iter().for_each(|(_, row)| table.row(row));
            let overlap: u64 = steps.iter().map(|step| step.cover.overlap_ns()).sum();
            table.row(row_of("less overlaps", 0.0 - overlap as f64 / n));
            table.row(row_of("covered (union)", union as f64 / n));
            let spans: Vec<(i64, u64)> = steps
                .iter()
                .filter_map(|step| Some((step.residual_ns?, step.record?.span_ns())))
                .collect();
            if spans.len() == steps.len() {
                let residual: i64 = spans.iter().map(|(residual, _)| residual).sum();
                let span: u64 = spans.iter().map(|(_, span)| span).sum();
                table.row(row_of("residual", residual as f64 / n));
                table.row(row_of("span (submit to complete)", span as f64 / n));
            }
            table.print(out);
        }
    }

    fn by_step(&self, out: &mut String) {
        out.push('\n');
        let head = [
            "step",
            "prompts",
            "decodes",
            "rank",
            "covered us",
            "idle us",
            "residual us",
            "work us",
        ];
        let mut table = Table::new(0, &head);
        for step in self.steps.iter().take(STEPS_SHOWN) {
            let (prompts, decodes) = counts(step);
            table.row(vec![
                step.record.map_or_else(|| "-".to_owned(), |record| record.index.to_string()),
                prompts,
                decodes,
                self.ranks.get(step.critical).map(|rank| rank.rank.to_string()).unwrap_or_default(),
                micros(step.cover.union_ns as f64),
                micros(step.cover.idle_ns() as f64),
                step.residual_ns.map(|ns| micros(ns as f64)).unwrap_or_default(),
                micros(step.work_ns as f64),
            ]);
        }
        table.print(out);
        let more = self.steps.len().saturating_sub(STEPS_SHOWN);
        if more > 0 {
            let _ = writeln!(out, "  and {more} more");
        }
    }

    fn by_rank(&self, out: &mut String) {
        if self.ranks.len() < 2 {
            return;
        }
        out.push('\n');
        let head = ["rank", "covered us", "idle us", "work us", "slowest in"];
        let mut table = Table::new(0, &head);
        for (at, rank) in self.ranks.iter().enumerate() {
            let sum =
                |of: fn(&super::Cover) -> u64| rank.steps.iter().map(|s| of(&s.cover)).sum::<u64>();
            let slowest = self.steps.iter().filter(|step| step.critical == at).count();
            table.row(vec![
                rank.rank.to_string(),
                micros(sum(|cover| cover.union_ns) as f64),
                micros(sum(super::Cover::idle_ns) as f64),
                micros(sum(|cover| cover.sum_ns) as f64),
                format!("{slowest} of {}", self.steps.len()),
            ]);
        }
        table.print(out);
    }

    fn remarks(&self, options: AttributeOptions, out: &mut String) {
        out.push('\n');
        for rank in &self.ranks {
            let _ = writeln!(
                out,
                "rank {}: {} kernels, {} of no step, {:.1} % of GPU work without a family",
                rank.rank,
                rank.kernels.0,
                rank.lost.all(),
                rank.unclassified_share() * 100.0
            );
            for (name, count, ns) in rank.unclassified.iter().take(NAMES_SHOWN) {
                let name: String = name.chars().take(NAME_CHARS).collect();
                let _ = writeln!(out, "  {:>9} us {count:>6} x {name}", micros(*ns as f64));
            }
            if rank.lost.all() > 0 {
                let lost = rank.lost;
                let _ = writeln!(
                    out,
                    "  of no step: {} launched before the first, {} without their launch in the trace, \
                     {} that name none",
                    lost.before_the_first, lost.without_launch, lost.without_correlation
                );
            }
            if rank.inferred > 0 {
                let _ = writeln!(out, "  inferred from their place: {} kernels", rank.inferred);
            }
        }
        self.list_mismatches(out);
        for contradiction in self.contradictions(options) {
            let _ = writeln!(out, "CONTRADICTION: {}", contradiction.says());
        }
    }

    fn list_mismatches(&self, out: &mut String) {
        let unmatched = self.steps.iter().filter(|step| step.record.is_none()).count();
        if unmatched > 0 {
            let _ = writeln!(out, "{unmatched} steps of the trace have no record");
        }
        if !self.records_without_mark.is_empty() {
            let first: Vec<String> =
                self.records_without_mark.iter().take(NAMES_SHOWN).map(u64::to_string).collect();
            let all = self.records_without_mark.len();
            let _ = writeln!(out, "{all} records have no step in the trace: {}", first.join(", "));
        }
        if self.unlike > 0 {
            let _ = writeln!(out, "{} steps differ between ranks", self.unlike);
        }
        if self.cut > 0 {
            let _ = writeln!(
                out,
                "{} traces end too early and were read as far as they are whole",
                self.cut
            );
        }
    }

    fn list_steps(&self, out: &mut String) {
        let mut table = Table::new(0, &["step", "prompts", "decodes", "on the CPU us"]);
        for step in self.steps.iter().take(STEPS_SHOWN) {
            let (prompts, decodes) = counts(step);
            let index =
                step.record.map_or_else(|| "-".to_owned(), |record| record.index.to_string());
            table.row(vec![index, prompts, decodes, micros(step.mark.dur_ns as f64)]);
        }
        table.print(out);
        self.list_mismatches(out);
    }
}

fn is_decode(step: &StepAttribution) -> bool {
    step.mark.composition.is_some_and(|composition| composition.context_requests == 0)
}

/// Requests and tokens of both kinds.
fn counts(step: &StepAttribution) -> (String, String) {
    let Some(c) = step.mark.composition else { return ("-".to_owned(), "-".to_owned()) };
    let shown = |requests, tokens| format!("{requests} ({tokens})");
    (shown(c.context_requests, c.context_tokens), shown(c.generation_requests, c.generation_tokens))
}

fn row_of(name: &str, ns: f64) -> Vec<String> {
    vec![name.to_owned(), String::new(), micros(ns), String::new(), String::new()]
}

fn micros(ns: f64) -> String {
    format!("{:.1}", ns / 1e3)
}

/// As many steps are listed.
const STEPS_SHOWN: usize = 32;

/// As many names and numbers are listed.
const NAMES_SHOWN: usize = 8;

/// As much of a name is shown.
const NAME_CHARS: usize = 90;

/// For a window of a CPU server.
const NO_KERNELS: &str = "no kernels in these traces: they are of a CPU. Attribution needs a trace of a \
    GPU; records, windows and join work without\n";
