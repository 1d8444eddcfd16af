//! The gate's report for people.

use std::fmt::Write as _;

use takt_report::Table;
use takt_report::paired::{PAIRS_MAX, Resamples, percent};

use super::{ArmMeans, GateReport, GateVerdict, MetricGate};

impl GateVerdict {
    /// In capitals, as it stands in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Inconclusive => "INCONCLUSIVE",
        }
    }
}

impl GateReport {
    /// Text of several lines.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = String::new();
        let limit = (self.limits.ratio - 1.0) * 100.0;
        let _ = writeln!(
            out,
            "{}: {} pairs, limit {limit:.3} % on the upper end of the 95 % interval of each metric",
            self.verdict.name(),
            self.pairs
        );
        if self.verdict == GateVerdict::Inconclusive {
            let _ = match self.pairs_to_decide() {
                Some(pairs) => writeln!(
                    out,
                    "{pairs} pairs would decide four times in five, if mean and spread stay as they are"
                ),
                None => writeln!(
                    out,
                    "not even {PAIRS_MAX} pairs would decide: mend the spread, not the number"
                ),
            };
        }
        out.push('\n');
        self.deciding(&mut out);
        out.push('\n');
        self.for_the_record(&mut out);
        self.beside(&mut out);
        for metric in &self.not_measured {
            let _ = writeln!(out, "not measured: {}", metric.name());
        }
        for what in &self.not_checked {
            let _ = writeln!(out, "not checked: {what} (not every run tells)");
        }
        for warning in &self.warnings {
            let _ = writeln!(out, "warning: {warning}");
        }
        out
    }

    fn deciding(&self, out: &mut String) {
        let head = ["cost %", "mean", "lower", "upper", "verdict", "pairs to decide"];
        let mut table = Table::new(1, &head);
        for metric in &self.metrics {
            let estimate = metric.compared.estimate();
            table.row(vec![
                metric.compared.metric.name().to_owned(),
                signed(estimate.effect),
                signed(estimate.low),
                signed(estimate.high),
                metric.verdict.name().to_owned(),
                to_decide(metric),
            ]);
        }
        table.print(out);
        let df = self.metrics.first().map_or(0, |metric| metric.compared.estimate().df);
        let how = if self.metrics.iter().any(|metric| metric.compared.balanced.is_some()) {
            "mean of the two order means"
        } else {
            "plain paired"
        };
        let _ = writeln!(out, "  two-sided 95 % t interval, {how}, df {df}; above 0 is worse");
    }

    fn for_the_record(&self, out: &mut String) {
        let head = ["for the record, %", "plain t", "bootstrap-t", "BCa", "worst pair", "order"];
        let mut table = Table::new(1, &head);
        let range = |(low, high): (f64, f64)| format!("{} … {}", signed(low), signed(high));
        for metric in &self.metrics {
            let compared = &metric.compared;
            let bootstrap = compared.bootstrap;
            table.row(vec![
                compared.metric.name().to_owned(),
                range((compared.plain.low, compared.plain.high)),
                bootstrap.map(|b| range(b.studentised)).unwrap_or_default(),
                bootstrap.map(|b| range(b.bca)).unwrap_or_default(),
                signed(compared.max),
                compared.balanced.map(|b| signed(b.order.effect)).unwrap_or_default(),
            ]);
        }
        table.print(out);
        let resamples = self.metrics.iter().find_map(|metric| metric.compared.bootstrap);
        let _ = match resamples.map(|b| b.resamples) {
            Some(Resamples::All(count)) => writeln!(out, "  all {count} resamples"),
            Some(Resamples::Drawn { count, seed }) => {
                writeln!(out, "  {count} resamples drawn from seed {seed}")
            }
            None => Ok(()),
        };
    }

    fn beside(&self, out: &mut String) {
        let [off, on] = &self.beside;
        let mut table = Table::new(1, &["beside the verdict", "off", "on"]);
        let mut row = |name: &str, value: fn(&ArmMeans) -> Option<String>| {
            if value(off).is_some() || value(on).is_some() {
                let cells = [off, on].map(|arm| value(arm).unwrap_or_default());
                table.row([name.to_owned()].into_iter().chain(cells).collect());
            }
        };
        row("CPU s a run", |arm| Some(format!("{:.2}", arm.cpu_s?)));
        row("log bytes a step", |arm| Some(format!("{:.0}", arm.log_bytes_per_step?)));
        row("queue high-water mark", |arm| Some(arm.queue_high_watermark?.to_string()));
        row("records dropped", |arm| Some(arm.dropped?.to_string()));
        if !table.is_empty() {
            out.push('\n');
            table.print(out);
        }
        out.push('\n');
    }
}

fn to_decide(metric: &MetricGate) -> String {
    match (metric.verdict, metric.pairs_to_decide) {
        (GateVerdict::Inconclusive, Some(pairs)) => pairs.to_string(),
        (GateVerdict::Inconclusive, None) => format!("over {PAIRS_MAX}"),
        (GateVerdict::Pass | GateVerdict::Fail, _) => String::new(),
    }
}

fn signed(log_ratio: f64) -> String {
    format!("{:+.2}", percent(log_ratio))
}
