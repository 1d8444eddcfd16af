//! The report of a calibration for people.

use std::fmt::Write as _;

use takt_report::Table;

use super::{Calibrated, FEATURES, Score};
use crate::families::Families;

impl Calibrated {
    /// Text of several lines.
    #[must_use]
    pub fn render(&self, families: &Families) -> String {
        let mut out = String::new();
        let (fitted, held) = self.windows;
        let _ = writeln!(out, "fitted on {fitted} windows, judged on {held} held out");
        if self.resumed > 0 {
            let _ = writeln!(
                out,
                "{} steps left out: they compute preempted prompts again",
                self.resumed
            );
        }
        let mut table = Table::new(1, &["held out", "steps", "mean us", "MAPE", "R2"]);
        let mut row = |name: &str, score: &Score| {
            table.row(vec![
                name.to_owned(),
                score.steps.to_string(),
                format!("{:.1}", score.mean_ns / 1e3),
                format!("{:.2} %", score.mape * 100.0),
                score.r2.map(|r2| format!("{r2:.4}")).unwrap_or_default(),
            ]);
        };
        if let Some(union) = &self.union {
            row("all kernels (union)", union);
        }
        for (id, score) in &self.families {
            row(&families.names()[usize::from(id.0)], score);
        }
        table.print(&mut out);
        if let Some(residual) = self.residual_ns {
            let _ = writeln!(
                out,
                "  residual: {:.1} us a step that no kernel explains",
                residual / 1e3
            );
        }
        if self.refused > 0 {
            let _ = writeln!(
                out,
                "  {} held-out steps lie outside of what was seen and are not predicted",
                self.refused
            );
        }
        for fit in &self.calibration.modes {
            let _ =
                writeln!(out, "\n{}, {} steps: cost in us of one …", fit.mode.name(), fit.steps);
            let mut head = vec!["family"];
            head.extend(FEATURES);
            let mut table = Table::new(1, &head);
            let micros =
                |cost: &f64| if *cost > 0.0 { format!("{:.4}", cost / 1e3) } else { String::new() };
            let mut row = |name: &str, costs: &[f64]| {
                table.row([name.to_owned()].into_iter().chain(costs.iter().map(micros)).collect());
            };
            for (id, costs) in &fit.families {
                row(&families.names()[usize::from(id.0)], costs);
            }
            row("all kernels (union)", &fit.union);
            table.print(&mut out);
        }
        out
    }
}
