//! The report of expert loads for people.

use std::fmt::Write as _;

use takt_report::Table;

use super::{Evenness, Loads};

impl Loads {
    /// Text of several lines; with loads by rank, those are judged too.
    #[must_use]
    pub fn render(&self, by_rank: Option<&[Vec<u64>]>) -> String {
        let mut out = String::new();
        let routed = self.evenness().iter().flatten().count();
        let _ = writeln!(
            out,
            "{} requests, {} tokens, {routed} layers with experts of {}, {} experts a token",
            self.requests,
            self.tokens,
            self.layers.len(),
            self.top_k
        );
        let head = ["layer", "entropy", "max/mean", "variation", "top-k imbalance", "busiest"];
        let mut table = Table::new(1, &head);
        for (layer, (counts, evenness)) in self.layers.iter().zip(self.evenness()).enumerate() {
            if let Some(evenness) = evenness {
                let busiest = (0..counts.len()).max_by_key(|&expert| counts[expert]).unwrap_or(0);
                table.row(row(&layer.to_string(), &evenness, &busiest.to_string()));
            }
        }
        if let Some(mean) = self.mean() {
            table.row(row("mean over layers", &mean, ""));
        }
        table.print(&mut out);
        if let Some(ranks) = by_rank {
            out.push('\n');
            let mut table =
                Table::new(1, &["ranks, layer", "entropy", "max/mean", "variation", "", "busiest"]);
            for (layer, loads) in ranks.iter().enumerate() {
                if let Some(evenness) = Evenness::of(loads, 1) {
                    let busiest = (0..loads.len()).max_by_key(|&rank| loads[rank]).unwrap_or(0);
                    let mut cells = row(&layer.to_string(), &evenness, &busiest.to_string());
                    cells[4].clear();
                    table.row(cells);
                }
            }
            table.print(&mut out);
        }
        out
    }
}

fn row(name: &str, evenness: &Evenness, busiest: &str) -> Vec<String> {
    let figure = |value: f64| format!("{value:.3}");
    vec![
        name.to_owned(),
        figure(evenness.entropy),
        figure(evenness.max_over_mean),
        figure(evenness.variation),
        figure(evenness.top_k_imbalance),
        busiest.to_owned(),
    ]
}
