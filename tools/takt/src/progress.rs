//! The progress of a run on stderr: a bar on a terminal, lines otherwise.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use takt_report::Live;
use takt_time::{Nanos, Span};

use crate::config::Config;
use crate::console::Console;
use crate::news::Newsdesk;

/// Tells what happens; called a few times a second.
#[derive(Debug)]
pub(crate) struct Progress {
    console: Console,
    /// By what each phase may be measured.
    goals: Vec<Goal>,
    bar: Option<ProgressBar>,
    last_line: Option<Nanos>,
}

/// What a phase goes towards.
#[derive(Clone, Copy, Debug)]
struct Goal {
    requests: Option<u64>,
    duration: Option<Span>,
    /// A limit ends requests that are never answered.
    bounded: bool,
}

impl Progress {
    /// Of the phases of `config`, each over so many samples.
    pub(crate) fn new(console: &Console, config: &Config, samples: &[u32]) -> Self {
        let goals = config.phases.iter().zip(samples).map(|(phase, samples)| {
            let stop = &phase.stop;
            let limits = &config.limits;
            let bounded = [limits.request_timeout, limits.run_timeout, phase.drain_timeout]
                .into_iter()
                .chain([limits.endpoint_response_idle_timeout])
                .any(|limit| limit.is_some());
            let requests = stop.counted((*samples).into());
            Goal { requests, duration: stop.duration, bounded }
        });
        let bar = console.has_bar().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(style());
            bar
        });
        Self { console: console.clone(), goals: goals.collect(), bar, last_line: None }
    }

    /// A look at the run at `now`, where the running phase is as in `live`; `last` when nothing comes after it.
    pub(crate) fn look(&mut self, news: &Newsdesk, live: Option<&Live>, now: Nanos, last: bool) {
        news.tell(&self.console);
        if last {
            return self.console.show(None);
        }
        let Some(live) = live.filter(|live| !live.over) else { return };
        let goal = self.goals.get(live.place).copied();
        if let Some(bar) = &self.bar {
            if self.last_line.replace(now).is_none() {
                self.console.show(Some(bar.clone()));
            }
            return show(bar, live, goal);
        }
        let due = self.last_line.is_none_or(|before| now.saturating_since(before) >= LINE_EVERY);
        if due {
            // Not at once: the phase has just been announced.
            if self.last_line.replace(now).is_some() {
                let (phase, done) = (&live.phase, live.completed);
                self.console.info(format!("  {phase}: {done} done, {}", status(live, goal)));
            }
        }
    }
}

fn show(bar: &ProgressBar, live: &Live, goal: Option<Goal>) {
    let by_requests = goal.and_then(|goal| goal.requests).map(|of| (live.completed, of));
    let millis = |span: Span| span.as_nanos() / 1_000_000;
    let by_time = goal.and_then(|goal| goal.duration).map(|of| (millis(live.elapsed), millis(of)));
    // Of two limits the one that is nearer is what the phase will end by.
    let share = |(done, of): (u64, u64)| done as f64 / of.max(1) as f64;
    let nearer =
        [by_requests, by_time].into_iter().flatten().max_by(|a, b| share(*a).total_cmp(&share(*b)));
    let (done, of) = nearer.unwrap_or((0, 1));
    bar.set_length(of.max(1));
    bar.set_position(done.min(of));
    bar.set_prefix(live.phase.clone());
    let left = Duration::from_secs(live.elapsed.as_nanos() / 1_000_000_000);
    let elapsed = humantime::format_duration(left);
    bar.set_message(format!("{elapsed}  {} done, {}", live.completed, status(live, goal)));
}

fn status(live: &Live, goal: Option<Goal>) -> String {
    let mut parts = Vec::new();
    if let Some(rate) = live.rate_per_s {
        parts.push(format!("{rate:.1}/s"));
    }
    parts.push(format!("{} in flight", live.in_flight));
    if let Some((p50, p99)) = live.latencies.p50_p99() {
        parts.push(format!("p50 {:.1} ms, p99 {:.1} ms", p50.as_millis_f64(), p99.as_millis_f64()));
    }
    if live.failed > 0 {
        parts.push(format!("{} errors", live.failed));
    }
    parts.extend(waits(live, goal));
    parts.join(", ")
}

/// What a phase waits for that may never come.
fn waits(live: &Live, goal: Option<Goal>) -> Option<String> {
    if live.in_flight == 0 || goal.is_none_or(|goal| goal.bounded) {
        return None;
    }
    let since = live.draining.unwrap_or(live.elapsed);
    let stuck = live.draining.is_some() || live.completed == 0;
    (stuck && since >= PATIENCE).then(|| {
        format!(
            "waits for {} answers without a limit (--request-timeout TIME or a phase's drain_timeout is one; \
             Ctrl-C gives up)",
            live.in_flight
        )
    })
}

fn style() -> ProgressStyle {
    let style = ProgressStyle::with_template("{prefix} [{bar:24}] {msg}");
    style.expect("the template is one").progress_chars("=> ")
}

/// Lines that nobody watches come less often.
const LINE_EVERY: Span = Span::from_secs(10);
/// How long answers may take before it is said that nothing bounds them.
const PATIENCE: Span = Span::from_secs(5);

#[cfg(test)]
mod tests {
    use takt_report::Latencies;

    use super::*;

    #[test]
    fn answers_that_nothing_bounds_are_told_when_they_do_not_come() {
        let goal = |bounded| Some(Goal { requests: None, duration: None, bounded });
        let live = |elapsed, draining: Option<u64>, completed, in_flight| Live {
            phase: "p".to_owned(),
            place: 0,
            over: false,
            elapsed: Span::from_secs(elapsed),
            issued: completed + in_flight,
            planned: None,
            completed,
            failed: 0,
            unanswered: 0,
            in_flight,
            draining: draining.map(Span::from_secs),
            rate_per_s: None,
            latencies: Latencies::default(),
        };
        for (live, said) in [
            // Nothing has come yet; the phase has been issued and the answers do not come.
            (live(10, None, 0, 4), true),
            (live(70, Some(10), 9, 4), true),
            // It goes on; it has only just ended; nobody is waited for.
            (live(10, None, 1, 4), false),
            (live(70, Some(1), 9, 4), false),
            (live(70, Some(10), 9, 0), false),
        ] {
            assert_eq!(waits(&live, goal(false)).is_some(), said, "{live:?}");
            assert_eq!(waits(&live, goal(true)), None, "{live:?}");
        }
    }
}
