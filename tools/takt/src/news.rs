//! What the console is told of a run: the life of phases, the first of each kind of error.
//!
//! All reactors of a run tell of it together. A phase has begun, and is over, when the last of them says so,
//! with the figures of all; what several say of the session is said once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use takt_record::{
    ErrorKind, FailedBy, Failure, PhaseId, PhaseKind, PhasePlan, PhaseState, SessionEvent,
};
use takt_report::Live;

use crate::console::Console;

/// Something worth a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// As expected.
    Plain(String),
    /// It may spoil the measurement.
    Bad(String),
}

/// Where the reactors of a run put what is new.
#[derive(Clone, Debug)]
pub(crate) struct Newsdesk {
    reactors: u32,
    desk: Arc<Mutex<Desk>>,
    /// Held while lines are printed, so that they stay in order.
    printing: Arc<Mutex<()>>,
}

#[derive(Debug, Default)]
struct Desk {
    news: Vec<News>,
    errors: BTreeSet<(PhaseId, ErrorKind, Option<u16>)>,
    session: Vec<SessionEvent>,
    phases: BTreeMap<PhaseId, Phase>,
}

/// What has been told of a phase, and by how many.
#[derive(Debug, Default)]
struct Phase {
    begun: u32,
    inherited: u64,
    ended: u32,
    name: String,
    live: Option<Live>,
    /// The first that is not as planned, if one is not.
    state: Option<PhaseState>,
}

impl Newsdesk {
    /// Of a run of so many reactors.
    pub(crate) fn of(reactors: u32) -> Self {
        Self { reactors, desk: Arc::default(), printing: Arc::default() }
    }

    /// One reactor has begun the phase.
    pub(crate) fn begun(&self, phase: PhaseId, plan: &PhasePlan, inherited: u64) {
        let mut desk = self.lock();
        let told = desk.phases.entry(phase).or_default();
        told.begun += 1;
        told.inherited += inherited;
        if told.begun == self.reactors {
            let says = begun(plan, told.inherited);
            desk.news.push(News::Plain(says));
        }
    }

    /// One reactor is through with the phase, which is as in `live` for it.
    pub(crate) fn ended(&self, phase: PhaseId, name: &str, state: PhaseState, live: Option<Live>) {
        let mut desk = self.lock();
        let told = desk.phases.entry(phase).or_default();
        told.ended += 1;
        told.live = told.live.take().into_iter().chain(live).reduce(Live::with);
        name.clone_into(&mut told.name);
        if told.state.is_none_or(|state| state == PhaseState::Complete) {
            told.state = Some(state);
        }
        if told.ended == self.reactors {
            let news = desk.phases.remove(&phase).and_then(|told| told.over(""));
            desk.news.extend(news);
        }
    }

    /// A request of the phase of this `name` has failed with `message`.
    pub(crate) fn error(
        &self,
        phase: PhaseId,
        name: impl FnOnce() -> String,
        failure: &Failure,
        message: &str,
    ) {
        let mut desk = self.lock();
        let (kind, status) = (failure.kind, failure.status);
        if desk.errors.len() < MAX_SEEN && desk.errors.insert((phase, kind, status)) {
            let says = format!("phase {}: first {kind}: {}", name(), one_line(message));
            desk.news.push(News::Bad(says));
        }
    }

    /// Something happened to the session.
    pub(crate) fn session(&self, event: SessionEvent) {
        let says = match event {
            SessionEvent::Started | SessionEvent::Ended => return,
            SessionEvent::Interrupted => "stop: no more requests, waiting for those in flight",
            SessionEvent::Failed(FailedBy::Transport) => "the connections gave up: the run ends",
            SessionEvent::Failed(FailedBy::EndpointIdle) => "the endpoint is silent: the run ends",
            SessionEvent::Failed(FailedBy::RunTimeout) => "the run's time is over: it ends",
            SessionEvent::Failed(FailedBy::Pacer) => "the pacer has gone: the run ends",
            SessionEvent::Failed(FailedBy::Internal) => "a fault of takt: the run ends",
        };
        let mut desk = self.lock();
        if !desk.session.contains(&event) {
            desk.session.push(event);
            desk.news.push(News::Bad(says.to_owned()));
        }
    }

    /// Prints what is new.
    pub(crate) fn tell(&self, console: &Console) {
        let _printing = self.printing.lock().unwrap_or_else(PoisonError::into_inner);
        for news in self.take() {
            match news {
                News::Plain(says) => console.info(says),
                News::Bad(says) => console.warn(says),
            }
        }
    }

    /// Prints the rest when nothing more comes: phases that not every reactor has ended, too.
    pub(crate) fn tell_the_rest(&self, console: &Console) {
        self.close();
        self.tell(console);
    }

    fn close(&self) {
        let desk = &mut *self.lock();
        for told in std::mem::take(&mut desk.phases).into_values().filter(|told| told.ended > 0) {
            let by = format!(" by {} of {} reactors", told.ended, self.reactors);
            desk.news.extend(told.over(&by));
        }
    }

    /// What is new since the last call.
    pub(crate) fn take(&self) -> Vec<News> {
        std::mem::take(&mut self.lock().news)
    }

    fn lock(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Phase {
    /// That it is over, and by whom if that is not all.
    fn over(&self, by: &str) -> Option<News> {
        let (live, state) = (self.live.as_ref()?, self.state?);
        let mut says = format!(
            "phase {}: {state} after {:.1} s: {} issued, {} succeeded",
            self.name,
            live.elapsed.as_secs_f64(),
            live.issued,
            live.completed - live.failed,
        );
        let more = [
            (live.failed, "failed"),
            (live.unanswered, "unanswered"),
            (live.in_flight, "still in flight"),
        ];
        for (n, what) in more {
            if n > 0 {
                says.push_str(&format!(", {n} {what}"));
            }
        }
        says.push_str(by);
        Some(if state == PhaseState::Complete { News::Plain(says) } else { News::Bad(says) })
    }
}

fn begun(plan: &PhasePlan, inherited: u64) -> String {
    let level = match (plan.ramp, plan.rate, plan.target_concurrency) {
        (Some(ramp), ..) => format!(" {} to {}/s", ramp.from, ramp.to),
        // Of a recording the mean has no end of digits.
        (None, Some(rate), _) => format!(" {}/s", (rate * 1e3).round() / 1e3),
        (None, None, Some(target)) => format!(" {target}"),
        (None, None, None) => String::new(),
    };
    let what = match plan.kind {
        PhaseKind::Warmup => "warm-up, ",
        PhaseKind::Accuracy => "accuracy, ",
        PhaseKind::Performance => "",
    };
    let inherited = match inherited {
        0 => String::new(),
        n => format!(", {n} requests of earlier phases in flight"),
    };
    format!("phase {}: {what}{}{level}{inherited}", plan.name, plan.pattern)
}

/// What a server said, on one line and without control over the terminal.
fn one_line(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    words.join(" ").chars().take(MESSAGE_CHARS).collect()
}

const MESSAGE_CHARS: usize = 160;

/// Kinds of errors that are told of: a server may make up a new status for every answer.
const MAX_SEEN: usize = 256;

#[cfg(test)]
mod tests {
    use takt_record::{Blame, Stage};
    use takt_report::Latencies;
    use takt_time::Span;

    use super::*;

    fn live(elapsed: u64, issued: u64, failed: u64, in_flight: u64) -> Option<Live> {
        Some(Live {
            phase: "p".to_owned(),
            place: 0,
            over: true,
            elapsed: Span::from_secs(elapsed),
            issued,
            planned: None,
            completed: issued - in_flight,
            failed,
            unanswered: 0,
            in_flight,
            draining: None,
            rate_per_s: None,
            latencies: Latencies::default(),
        })
    }

    fn failure(status: u16) -> Failure {
        let (kind, blame, stage) = (ErrorKind::HttpStatus, Blame::Server, Stage::Head);
        Failure { kind, blame, stage, status: Some(status) }
    }

    const P: PhaseId = PhaseId(0);

    #[test]
    fn each_kind_of_error_is_news_once_a_phase() {
        let desk = Newsdesk::of(2);
        for (status, message) in [(500, "a\u{1b}[2J\nb"), (500, "again"), (429, "slow down")] {
            desk.error(P, || "perf".to_owned(), &failure(status), message);
        }
        let expected = ["a [2J b", "slow down"]
            .map(|says| News::Bad(format!("phase perf: first http_status: {says}")));
        assert_eq!(desk.take(), expected);
        assert_eq!(desk.take(), []);
    }

    #[test]
    fn a_phase_begins_and_ends_with_the_last_reactor_and_has_the_figures_of_all() {
        let desk = Newsdesk::of(2);
        let plan = PhasePlan {
            name: "p".into(),
            kind: PhaseKind::Performance,
            pattern: "poisson".into(),
            rate: Some(50.0),
            ramp: None,
            target_concurrency: None,
            requests: None,
            stream: true,
            conversations: None,
        };
        desk.begun(P, &plan, 3);
        assert_eq!(desk.take(), []);
        desk.begun(P, &plan, 4);
        let says = "phase p: poisson 50/s, 7 requests of earlier phases in flight";
        assert_eq!(desk.take(), [News::Plain(says.into())]);
        desk.ended(P, "p", PhaseState::Complete, live(2, 10, 1, 0));
        assert_eq!(desk.take(), []);
        desk.ended(P, "p", PhaseState::Complete, live(3, 20, 0, 5));
        let says =
            "phase p: complete after 3.0 s: 30 issued, 24 succeeded, 1 failed, 5 still in flight";
        assert_eq!(desk.take(), [News::Plain(says.into())]);
        desk.close();
        assert_eq!(desk.take(), [], "nothing twice");
        assert!(desk.lock().phases.is_empty(), "a phase that is over takes no memory");
    }

    #[test]
    fn of_reactors_that_end_differently_the_one_off_the_plan_is_told() {
        let says = "phase p: interrupted after 1.0 s: 2 issued, 2 succeeded";
        for states in [[0, 1], [1, 0]] {
            let desk = Newsdesk::of(2);
            for state in states.map(|n| [PhaseState::Complete, PhaseState::Interrupted][n]) {
                desk.session(SessionEvent::Interrupted);
                desk.ended(P, "p", state, live(1, 1, 0, 0));
            }
            let stop = "stop: no more requests, waiting for those in flight";
            assert_eq!(desk.take(), [stop, says].map(|says| News::Bad(says.into())));
        }
        // One that has gone says nothing more.
        let desk = Newsdesk::of(2);
        desk.ended(P, "p", PhaseState::Interrupted, live(1, 2, 0, 0));
        desk.close();
        assert_eq!(desk.take(), [News::Bad(format!("{says} by 1 of 2 reactors"))]);
    }
}
