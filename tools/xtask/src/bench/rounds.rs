//! Rounds of runs in turn, which of them count, and their medians.

use std::fmt;

use super::client::{Client, ClientKind, Outcome};
use super::machine::OTHERS_MAX;
use super::server::Server;

/// Between the two floors of a round; beyond it the machine has changed its speed.
const DRIFT_MAX: f64 = 0.08;

/// All clients once, between two runs of the floor.
#[derive(Debug)]
pub(super) struct Round {
    number: usize,
    floors: Vec<Outcome>,
    runs: Vec<(ClientKind, Outcome)>,
}

impl Round {
    /// The columns of the lines that are printed as runs end.
    pub(super) const HEADER: &str =
        "round  client  requests/s   CPU us/request (user + sys)   server   others   stolen %";

    pub(super) fn new(number: usize) -> Self {
        Self { number, floors: Vec::new(), runs: Vec::new() }
    }

    /// The floor at the beginning, and again at the end.
    pub(super) fn floor(&mut self, floor: &Client, server: &Server) -> anyhow::Result<()> {
        let outcome = self.print(floor, server)?;
        self.floors.push(outcome);
        Ok(())
    }

    pub(super) fn run(&mut self, client: &Client, server: &Server) -> anyhow::Result<()> {
        let outcome = self.print(client, server)?;
        self.runs.push((client.kind, outcome));
        Ok(())
    }

    fn print(&self, client: &Client, server: &Server) -> anyhow::Result<Outcome> {
        let outcome = client.run(server)?;
        println!("{:>5}  {:<6}  {outcome}", self.number, client.kind.name());
        if outcome.threads.len() > 1 {
            let threads: Vec<String> = outcome.threads.iter().map(ToString::to_string).collect();
            println!("{:>15}of it {}", "", threads.join(", "));
        }
        Ok(outcome)
    }

    /// The round's ratios, and whether they count.
    pub(super) fn says(&self) -> String {
        let mut line = format!("{:>5}  =>", self.number);
        for ratio in Ratio::ALL {
            if let Some(value) = ratio.of(self) {
                line.push_str(&format!("  {} {value:.3}", ratio.name()));
            }
        }
        match self.trouble() {
            None => line,
            Some(trouble) => format!("{line}  does not count: {trouble}"),
        }
    }

    /// Whether nothing disturbed the round.
    pub(super) fn counts(&self) -> bool {
        self.trouble().is_none()
    }

    /// Why the round does not count.
    fn trouble(&self) -> Option<String> {
        let others = self.outcomes().map(|o| o.others).fold(0.0, f64::max);
        if others > OTHERS_MAX {
            return Some(format!("others used {:.1} % of the cores", others * 100.0));
        }
        let drift = self.drift();
        (drift > DRIFT_MAX).then(|| format!("its floors are {:.0} % apart", drift * 100.0))
    }

    /// How far the round's floors are apart, relative to the lower.
    fn drift(&self) -> f64 {
        let rates = self.floors.iter().map(|o| o.per_s);
        let (low, high) = rates.fold((f64::MAX, 0.0_f64), |(l, h), r| (l.min(r), h.max(r)));
        high / low - 1.0
    }

    fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        self.floors.iter().chain(self.runs.iter().map(|(_, outcome)| outcome))
    }

    /// `what` of `kind`; of the floor, the mean of its runs.
    fn figure(&self, kind: ClientKind, what: fn(&Outcome) -> f64) -> Option<f64> {
        let values: Vec<f64> = match kind {
            ClientKind::Floor => self.floors.iter().map(what).collect(),
            _ => self.runs.iter().filter(|(k, _)| *k == kind).map(|(_, o)| what(o)).collect(),
        };
        let sum: f64 = values.iter().sum();
        (!values.is_empty()).then(|| sum / values.len() as f64)
    }
}

/// The ratios that the project promises something about.
#[derive(Debug, Clone, Copy)]
enum Ratio {
    TaktWrk,
    TaktFloor,
    WrkFloor,
    TaktFloorCpu,
}

impl Ratio {
    const ALL: [Self; 4] = [Self::TaktWrk, Self::TaktFloor, Self::WrkFloor, Self::TaktFloorCpu];

    fn name(self) -> &'static str {
        match self {
            Self::TaktWrk => "takt/wrk",
            Self::TaktFloor => "takt/floor",
            Self::WrkFloor => "wrk/floor",
            Self::TaktFloorCpu => "takt/floor CPU",
        }
    }

    fn of(self, round: &Round) -> Option<f64> {
        let per_s = |kind| round.figure(kind, |o| o.per_s);
        let cpu_us = |kind| round.figure(kind, Outcome::cpu_us);
        let (above, below) = match self {
            Self::TaktWrk => (per_s(ClientKind::Takt), per_s(ClientKind::Wrk)),
            Self::TaktFloor => (per_s(ClientKind::Takt), per_s(ClientKind::Floor)),
            Self::WrkFloor => (per_s(ClientKind::Wrk), per_s(ClientKind::Floor)),
            Self::TaktFloorCpu => (cpu_us(ClientKind::Takt), cpu_us(ClientKind::Floor)),
        };
        Some(above? / below?)
    }
}

/// Medians over the rounds that count; over all of them, and said so, when none does.
#[derive(Debug)]
pub(super) struct Summary {
    lines: Vec<String>,
}

impl Summary {
    pub(super) fn of(rounds: &[Round]) -> Self {
        let good: Vec<&Round> = rounds.iter().filter(|r| r.counts()).collect();
        let noisy = good.is_empty();
        let used = if noisy { rounds.iter().collect() } else { good };
        let note = if noisy { "NONE COUNTS, these are of all" } else { "rounds count" };
        let counting = if noisy { 0 } else { used.len() };
        let mut lines = vec![format!("medians ({counting} of {} {note})", rounds.len())];
        for kind in [ClientKind::Floor, ClientKind::Wrk, ClientKind::Takt] {
            let of = |what| middle(&used, |round| round.figure(kind, what));
            if let (Some(per_s), Some(user), Some(sys)) =
                (of(|o| o.per_s), of(|o| o.user_us), of(|o| o.sys_us))
            {
                let name = kind.name();
                lines.push(format!(
                    "  {name:<15} {per_s:>9.0} /s, user {user:.2} us, sys {sys:.2} us"
                ));
            }
        }
        for ratio in Ratio::ALL {
            if let Some(value) = middle(&used, |round| ratio.of(round)) {
                lines.push(format!("  {:<15} {value:>9.3}", ratio.name()));
            }
        }
        Self { lines }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines.join("\n"))
    }
}

/// The median over the rounds that have the figure.
fn middle(rounds: &[&Round], figure: impl Fn(&Round) -> Option<f64>) -> Option<f64> {
    let mut values: Vec<f64> = rounds.iter().filter_map(|round| figure(round)).collect();
    (!values.is_empty()).then(|| median(&mut values))
}

/// The middle value, or the mean of the two in the middle.
///
/// # Panics
/// There are no values.
pub(super) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { f64::midpoint(values[half - 1], values[half]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(per_s: f64, others: f64) -> Outcome {
        Outcome {
            per_s,
            user_us: 1.0,
            sys_us: 4.0,
            server_us: 3.0,
            others,
            stolen: 0.0,
            threads: vec![],
        }
    }

    fn round(floors: [f64; 2], wrk: f64, takt: f64, others: f64) -> Round {
        Round {
            number: 1,
            floors: floors.map(|per_s| outcome(per_s, 0.0)).to_vec(),
            runs: vec![
                (ClientKind::Wrk, outcome(wrk, 0.0)),
                (ClientKind::Takt, outcome(takt, others)),
            ],
        }
    }

    #[test]
    fn ratios_are_of_one_round() {
        let round = round([100.0, 104.0], 50.0, 75.0, 0.0);
        assert_eq!(Ratio::TaktWrk.of(&round), Some(1.5));
        assert_eq!(Ratio::TaktFloor.of(&round), Some(75.0 / 102.0));
        assert_eq!(Ratio::TaktFloorCpu.of(&round), Some(1.0));
        assert_eq!(round.trouble(), None);
    }

    #[test]
    fn disturbed_rounds_do_not_count() {
        let good = round([100.0, 100.0], 50.0, 60.0, 0.0);
        let slower = round([100.0, 60.0], 50.0, 90.0, 0.0);
        let disturbed = round([100.0, 100.0], 50.0, 10.0, 0.2);
        assert!(slower.trouble().is_some() && disturbed.trouble().is_some());
        let said = Summary::of(&[slower, good, disturbed]).to_string();
        assert!(said.starts_with("medians (1 of 3 rounds count)"), "{said}");
        assert!(said.contains("takt/wrk            1.200"), "{said}");
    }

    #[test]
    fn median_is_the_middle() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
