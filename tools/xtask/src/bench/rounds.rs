//! Rounds of runs in turn, which of them count, and their medians.

use super::client::{Client, ClientKind, Outcome};
use super::machine::OTHERS_MAX;
use super::server::Server;
use super::table::Table;

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
        eprintln!("{:>5}  {:<6}  {outcome}", self.number, client.kind.name());
        if outcome.threads.len() > 1 {
            let threads: Vec<String> = outcome.threads.iter().map(ToString::to_string).collect();
            eprintln!("{:>15}of it {}", "", threads.join(", "));
        }
        Ok(outcome)
    }

    /// The round's ratios, and whether they count.
    pub(super) fn says(&self) -> String {
        let mut line = format!("{:>5}  =>", self.number);
        for kind in self.runs.iter().map(|(kind, _)| *kind) {
            if let Some(ratio) = self.ratio(kind, ClientKind::Floor, |o| o.per_s) {
                line.push_str(&format!("  {}/floor {ratio:.3}", kind.name()));
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

    /// `what` of `above` by that of `below`; `None` when one of them did not run.
    fn ratio(
        &self,
        above: ClientKind,
        below: ClientKind,
        what: fn(&Outcome) -> f64,
    ) -> Option<f64> {
        Some(self.figure(above, what)? / self.figure(below, what)?)
    }
}

/// Medians over the rounds that count; over all of them, and said so, when none does.
pub(super) fn summary(title: String, rounds: &[Round]) -> Table {
    let good: Vec<&Round> = rounds.iter().filter(|r| r.counts()).collect();
    let (noisy, counting) = (good.is_empty(), good.len());
    let used = if noisy { rounds.iter().collect() } else { good };
    let head = [
        "client",
        "requests/s",
        "CPU us/request",
        "(user + sys)",
        "server us",
        "rate/floor",
        "CPU/floor",
        "takt's rate/its",
        "takt's CPU/its",
    ];
    let mut table = Table::new(title, &head);
    for kind in ClientKind::ALL {
        let of = |what| middle(&used, |round| round.figure(kind, what));
        let Some(per_s) = of(|o| o.per_s) else { continue };
        let text = |value: Option<f64>, digits: usize| {
            value.map_or_else(String::new, |value| format!("{value:.digits$}"))
        };
        let ratio = |above, below, what: fn(&Outcome) -> f64| {
            let value = middle(&used, |round| round.ratio(above, below, what));
            text(value.filter(|_| above != below), 3)
        };
        table.row(vec![
            kind.name().to_owned(),
            format!("{per_s:.0}"),
            text(of(Outcome::cpu_us), 2),
            format!("({} + {})", text(of(|o| o.user_us), 2), text(of(|o| o.sys_us), 2)),
            text(of(|o| o.server_us), 2),
            ratio(kind, ClientKind::Floor, |o| o.per_s),
            ratio(kind, ClientKind::Floor, Outcome::cpu_us),
            ratio(ClientKind::Takt, kind, |o| o.per_s),
            ratio(ClientKind::Takt, kind, Outcome::cpu_us),
        ]);
    }
    let all = rounds.len();
    table.note(if noisy {
        format!("Medians of {all} rounds. Others disturbed every one of them: NONE COUNTS.")
    } else {
        format!("Medians of the {counting} of {all} rounds that were not disturbed; ratios are formed within a round.")
    });
    table
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
            verdict: String::new(),
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
        use ClientKind::{Floor, Oha, Takt, Wrk};
        let round = round([100.0, 104.0], 50.0, 75.0, 0.0);
        assert_eq!(round.ratio(Takt, Wrk, |o| o.per_s), Some(1.5));
        assert_eq!(round.ratio(Takt, Floor, |o| o.per_s), Some(75.0 / 102.0));
        assert_eq!(round.ratio(Takt, Floor, Outcome::cpu_us), Some(1.0));
        assert_eq!(round.ratio(Takt, Oha, Outcome::cpu_us), None);
        assert_eq!(round.trouble(), None);
    }

    #[test]
    fn disturbed_rounds_do_not_count() {
        let good = round([100.0, 100.0], 50.0, 60.0, 0.0);
        let slower = round([100.0, 60.0], 50.0, 90.0, 0.0);
        let disturbed = round([100.0, 100.0], 50.0, 10.0, 0.2);
        assert!(slower.trouble().is_some() && disturbed.trouble().is_some());
        let said = summary("clients".into(), &[slower, good, disturbed]).markdown();
        assert!(said.contains("Medians of the 1 of 3 rounds"), "{said}");
        let takt = "| takt | 60 | 5.00 | (1.00 + 4.00) | 3.00 | 0.600 | 1.000 |  |  |";
        let wrk = "| wrk | 50 | 5.00 | (1.00 + 4.00) | 3.00 | 0.500 | 1.000 | 1.200 | 1.000 |";
        assert!(said.contains(takt) && said.contains(wrk), "{said}");
    }

    #[test]
    fn when_every_round_was_disturbed_the_table_says_so() {
        let disturbed = round([100.0, 100.0], 50.0, 10.0, 0.2);
        let said = summary("clients".into(), &[disturbed]).markdown();
        assert!(said.contains("NONE COUNTS") && said.contains("| takt | 10 |"), "{said}");
    }

    #[test]
    fn median_is_the_middle() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
