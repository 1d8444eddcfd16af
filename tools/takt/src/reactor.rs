//! The reactor's part of a run: actors on this thread, a way for signals to reach them, and whatever
//! happens an orderly hand-over of the records.

use std::panic::{AssertUnwindSafe, catch_unwind};

use takt_actors::{
    Client, ClientConfig, OutcomeSlot, PhaseConfig, Session, SessionConfig, SessionMsg,
    SessionState,
};
use takt_engine::{Remote, System};
use takt_net::schedstat::Accounts;
use takt_net::signals::{self, Signal};
use takt_net::{MioHost, WaitMode, affinity};
use takt_record::{
    BlockSink, Health, Publisher, PublisherConfig, Record, SessionEvent, SessionRecord,
    SharedPublisher,
};
use takt_recorder::{RecorderHandle, panic_words};
use takt_time::Span;

use crate::console::Console;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::outcome::Ended;

/// What the reactor is to do.
pub(crate) struct Work {
    pub(crate) client: ClientConfig,
    pub(crate) phases: Vec<PhaseConfig>,
    pub(crate) session_key: u64,
    pub(crate) wait: WaitMode,
    pub(crate) core: Option<usize>,
}

/// Runs the session to its end on this thread.
///
/// # Errors
/// When it could not be set up; nothing was sent then.
pub(crate) fn run<F>(
    work: Work,
    sink: Box<dyn BlockSink>,
    recorder: &RecorderHandle<F>,
    console: &Console,
) -> Result<Ended, Failure> {
    crate::run::pin(work.core)?;
    if work.core.is_some()
        && let Some(nice) = affinity::raise_priority()
    {
        console.debug(format!("the reactor has its core at nice {nice}"));
    }
    let host = MioHost::new(work.wait).or_exit(Exit::Setup)?;
    let publisher = SharedPublisher::new(Publisher::new(sink, PublisherConfig::default()));
    let mut system = System::new(host);
    let (outcome, remote) =
        spawn(&mut system, work.client, work.phases, work.session_key, &publisher, console);
    stop_on_signals(remote, console).or_exit(Exit::Setup)?;
    let ran = guarded(|| system.run());
    let ended = match ran {
        Ok(Ok(())) => match outcome.take().map(|outcome| outcome.state) {
            Some(SessionState::Complete) => Ended::Complete,
            Some(SessionState::Interrupted) => Ended::Interrupted,
            Some(SessionState::Failed(why)) => Ended::Failed(why),
            None => Ended::Panicked("the session ended without an outcome".to_owned()),
        },
        Ok(Err(error)) => Ended::Panicked(format!("waiting for sockets failed: {error}")),
        Err(words) => Ended::Panicked(words),
    };
    if matches!(ended, Ended::Panicked(_)) {
        record_failure(&publisher);
    }
    if !recorder.drain(&publisher, DRAIN_PATIENCE) {
        console.warn("the recorder does not keep up: the last records are lost");
    }
    Ok(ended)
}

fn spawn(
    system: &mut System<MioHost>,
    client: ClientConfig,
    phases: Vec<PhaseConfig>,
    session_key: u64,
    publisher: &SharedPublisher,
    console: &Console,
) -> (OutcomeSlot, Remote<SessionMsg>) {
    let client = Client::spawn(system, client, publisher.clone(), BURST);
    let accounts = Accounts::of_this_thread();
    let config = SessionConfig {
        session_key,
        phases,
        stop_grace: STOP_GRACE,
        begin_at_once: false,
        probe: Box::new(move |health| probe(&accounts, health)),
        on_completed: None,
    };
    let (session, outcome) = Session::new(config, Box::new(client.clone()), publisher.clone());
    let session = system.spawn(session, IN_FLIGHT);
    let remote = system.remote(&session, REMOTE);
    let console = console.clone();
    client.when_warm(move |warmed| {
        if let Some(error) = warmed.error {
            console.warn(format!("{} connections could not be opened: {error}", warmed.failed));
        }
        console.debug(format!("{} connections opened beforehand", warmed.stand));
        session.send(SessionMsg::Begin);
    });
    (outcome, remote)
}

/// The first signal stops the session, the second gives up what is in flight, the third ends the
/// process: the journal is as good as it gets then.
fn stop_on_signals(remote: Remote<SessionMsg>, console: &Console) -> std::io::Result<()> {
    let console = console.clone();
    signals::on_stop(move |nth, signal| {
        let name = match signal {
            Signal::Interrupt => "SIGINT",
            Signal::Terminate => "SIGTERM",
        };
        match nth {
            1 => console.warn(format!(
                "{name}: stopping, at most {STOP_GRACE} for what is in flight; once more to stop now"
            )),
            2 => console.warn(format!("{name} again: giving up what is in flight")),
            _ => std::process::exit(Exit::Interrupted as i32),
        }
        // A queue that is full holds stops enough.
        drop(remote.send(SessionMsg::Stop));
    })
}

fn probe(accounts: &Accounts, health: &mut Health) {
    if let Some(time) = accounts.cpu_time() {
        (health.on_cpu, health.runnable) = (Some(time.run), Some(time.wait));
    }
    health.involuntary = accounts.switches().map(|switches| switches.involuntary);
    health.stolen = accounts.steal();
}

/// Runs `work`; a panic in it becomes its words.
fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panic_words(panic.as_ref()))
}

/// Ends the records of a session that broke off, so that they say so.
fn record_failure(publisher: &SharedPublisher) {
    // The panic may have come out of the publisher itself.
    let _ = guarded(|| {
        let at = takt_net::now();
        for event in [SessionEvent::Failed, SessionEvent::Ended] {
            publisher.push(&Record::Session(SessionRecord { at, event }));
        }
        publisher.flush();
    });
}

/// How long a stop waits for what is in flight.
const STOP_GRACE: Span = Span::from_secs(5);
/// How long the recorder may take for what was still to be written when the reactor ended.
const DRAIN_PATIENCE: Span = Span::from_secs(60);
/// Requests that a strategy issues between two turns of the client, at the most.
const BURST: usize = 4_096;
/// Answers that can be under way to the session at once: those of all requests in flight.
const IN_FLIGHT: usize = 1 << 20;
/// Signals that wait.
const REMOTE: usize = 16;

#[cfg(test)]
mod tests {
    use takt_actors::{EndpointTarget, Pace, Strategy};
    use takt_engine::Target;
    use takt_record::{RunState, SessionPlan};
    use takt_recorder::{Recorder, RecorderConfig};
    use takt_report::RunFold;

    use super::*;
    use crate::cli::{Format, LogLevel, OutputArgs};

    /// A strategy with a fault in it.
    struct Faulty;

    impl Strategy for Faulty {
        fn start(&mut self, pace: &mut dyn Pace) {
            pace.soon(0);
        }
        fn tick(&mut self, _token: u64, _pace: &mut dyn Pace) {
            panic!("slot 3 is gone");
        }
    }

    #[test]
    fn after_a_panic_in_the_reactor_there_is_a_report_that_says_failed() {
        let plan = SessionPlan::default();
        let (sink, recorder) = Recorder::start(
            RecorderConfig::new(plan.clone(), takt_net::anchor),
            RunFold::new(plan),
            |_, _| {},
        )
        .unwrap();
        let endpoint = EndpointTarget { target: Target::tcp(([127, 0, 0, 1], 1).into()) };
        let client = ClientConfig::new(vec![endpoint], Vec::new());
        let phases = vec![PhaseConfig::new("p", Faulty, 1)];
        let work = Work { client, phases, session_key: 0, wait: WaitMode::Park, core: None };
        let output = OutputArgs { format: Format::Text, quiet: true, log_level: LogLevel::Error };
        let ended = run(work, Box::new(sink), &recorder, &Console::new(output)).unwrap();
        assert_eq!(ended, Ended::Panicked("slot 3 is gone".into()));
        let result = recorder.finish().fold.result(&takt_report::Limits::default());
        assert_eq!(result.state, RunState::Failed);
    }

    #[test]
    fn a_panic_in_the_reactor_becomes_its_words() {
        assert_eq!(guarded(|| 7), Ok(7));
        assert_eq!(
            guarded(|| -> () { panic!("slot {} is gone", 3) }),
            Err("slot 3 is gone".into())
        );
        assert_eq!(guarded(|| -> () { panic!("plain") }), Err("plain".into()));
    }
}
