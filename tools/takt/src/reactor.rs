//! The reactor's part of a run: actors on this thread, a way for signals to reach them, and whatever
//! happens an orderly hand-over of the records.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use takt_actors::{
    Client, ClientConfig, Member, OutcomeSlot, PhaseConfig, Session, SessionConfig, SessionMsg,
    SessionState, Together,
};
use takt_engine::{Addr, System};
use takt_net::schedstat::Accounts;
use takt_net::tls::ClientTls;
use takt_net::{MioHost, WaitMode, affinity};
use takt_record::{
    BlockSink, FailedBy, Health, Publisher, PublisherConfig, Record, SessionEvent, SessionRecord,
    SharedPublisher,
};
use takt_recorder::{RecorderHandle, panic_words};
use takt_time::Span;

use crate::console::Console;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::opprof::ServerShared;
use crate::outcome::Ended;
use crate::pacer::Clock;
use crate::stops::{STOP_GRACE, Stops};
use crate::turns::TurnRecords;

/// What the reactor is to do.
pub(crate) struct Work {
    pub(crate) client: ClientConfig,
    pub(crate) phases: Vec<PhaseConfig>,
    pub(crate) session_key: u64,
    /// What https:// addresses must show; [`crate::preflight::TLS`] is its number.
    pub(crate) tls: Option<ClientTls>,
    /// The kernel stamps what comes in.
    pub(crate) stamp_arrivals: bool,
    /// The other reactors of the run, this one as a member, and its place among them.
    pub(crate) together: Option<(Together, Member, usize)>,
    pub(crate) wait: WaitMode,
    pub(crate) core: Option<usize>,
    pub(crate) idle_timeout: Option<Span>,
    pub(crate) run_timeout: Option<Span>,
    /// Who waits for the moments of a schedule, when the reactor does not.
    pub(crate) clock: Option<Clock>,
    /// Hears of each turn.
    pub(crate) turns: Option<TurnRecords>,
    /// The accounts of the thread that folds, once it runs.
    pub(crate) fold: Arc<OnceLock<Accounts>>,
    /// Who takes windows of the server, and has the session record them.
    pub(crate) server: Option<Arc<ServerShared>>,
}

/// Runs the session to its end on this thread.
///
/// # Errors
/// When it could not be set up; nothing was sent then.
pub(crate) fn run<F>(
    mut work: Work,
    sink: Box<dyn BlockSink>,
    recorder: &RecorderHandle<F>,
    stops: &Stops,
    console: &Console,
) -> Result<Ended, Failure> {
    crate::run::pin(work.core)?;
    if work.core.is_some()
        && let Some(nice) = affinity::raise_priority()
    {
        console.debug(format!("the reactor has its core at nice {nice}"));
    }
    let mut host = MioHost::new(work.wait).or_exit(Exit::Setup)?;
    if work.stamp_arrivals {
        host.stamp_arrivals();
    }
    if let Some(tls) = work.tls.take() {
        let number = host.add_client_tls(tls);
        debug_assert_eq!(number, crate::preflight::TLS);
    }
    let publisher = SharedPublisher::new(Publisher::new(sink, PublisherConfig::default()));
    let mut system = System::new(host);
    let (clock, mut turns) = (work.clock.take(), work.turns.take());
    let server = work.server.take();
    let others = work.together.as_ref().map(|(together, _, place)| (together.clone(), *place));
    let (outcome, session) = spawn(&mut system, work, &publisher, console);
    if let Some((together, place)) = others {
        let remote = system.remote(&session, REMOTE);
        // A queue that is full holds stops enough.
        together.reached_by(place, Box::new(move |msg| drop(remote.send(msg))));
    }
    let clock = clock.map(|clock| clock.start(&mut system, &session)).transpose()?;
    stops.tell(system.remote(&session, REMOTE));
    if let Some(server) = &server {
        server.tell(system.remote(&session, REMOTE));
    }
    let ran = guarded(|| match &mut turns {
        None => system.run(),
        Some(turns) => recorded(&mut system, turns),
    });
    // The strategies go with the system, and hold the line to the clock.
    drop(system);
    drop(clock);
    if let Some(Err(error)) = turns.map(TurnRecords::close) {
        console.warn(format!("--turn-records: {error}"));
    }
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

fn recorded(system: &mut System<MioHost>, turns: &mut TurnRecords) -> io::Result<()> {
    while !system.is_stopped() {
        system.turn()?;
        turns.turn(system.stats(), takt_net::now());
    }
    Ok(())
}

fn spawn(
    system: &mut System<MioHost>,
    work: Work,
    publisher: &SharedPublisher,
    console: &Console,
) -> (OutcomeSlot, Addr<SessionMsg>) {
    let client = Client::spawn(system, work.client, publisher.clone(), BURST);
    let accounts = Accounts::of_this_thread();
    let config = SessionConfig {
        session_key: work.session_key,
        phases: work.phases,
        stop_grace: STOP_GRACE,
        idle_timeout: work.idle_timeout,
        run_timeout: work.run_timeout,
        together: work.together.map(|(_, member, _)| member),
        rehearse_ahead: (work.wait != WaitMode::Park).then_some(REHEARSE_AHEAD),
        begin_at_once: false,
        probe: Box::new(move |health| probe(&accounts, work.fold.get(), health)),
        on_completed: None,
        on_ended: None,
    };
    let (session, outcome) = Session::new(config, Box::new(client.clone()), publisher.clone());
    let session = system.spawn(session, IN_FLIGHT);
    let address = session.clone();
    let console = console.clone();
    client.when_warm(move |warmed| {
        if let Some(error) = warmed.error {
            console.warn(format!("{} connections could not be opened: {error}", warmed.failed));
        }
        console.debug(format!("{} connections opened beforehand", warmed.stand));
        session.send(SessionMsg::Begin);
    });
    (outcome, address)
}

fn probe(accounts: &Accounts, fold: Option<&Accounts>, health: &mut Health) {
    if let Some(time) = accounts.cpu_time() {
        (health.on_cpu, health.runnable) = (Some(time.run), Some(time.wait));
    }
    health.involuntary = accounts.switches().map(|switches| switches.involuntary);
    health.stolen = accounts.steal();
    if let Some(work) = &mut health.work {
        work.fold = fold.and_then(Accounts::cpu_time).map(|time| time.run);
    }
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
        for event in [SessionEvent::Failed(FailedBy::Internal), SessionEvent::Ended] {
            publisher.push(&Record::Session(SessionRecord { at, event }));
        }
        publisher.flush();
    });
}

/// How long the recorder may take for what was still to be written when the reactor ended.
const DRAIN_PATIENCE: Span = Span::from_secs(60);
/// How long before its moment a rare request is rehearsed: twice what that takes with nothing in the caches.
const REHEARSE_AHEAD: Span = Span::from_micros(100);
/// Requests that a strategy issues between two turns of the client, at the most.
const BURST: usize = 4_096;
/// Answers that can be under way to the session at once: those of all requests in flight.
const IN_FLIGHT: usize = 1 << 20;
/// Stops, and beginnings of phases, that wait.
const REMOTE: usize = 16;

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::sync::mpsc::{self, Receiver, Sender};

    use takt_actors::{Concurrency, EndpointTarget, Order, Pace, PhaseRoute, Samples, Strategy};
    use takt_engine::Target;
    use takt_record::{
        Completed, Fold, PhaseKind, PhasePlan, ResultDoc, RunState, SessionPlan, VerdictStatus,
    };
    use takt_recorder::{Recorder, RecorderConfig};
    use takt_report::RunFold;
    use takt_wire::{Api, PreparedRequest};

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

    /// Samples with a fault in them, which the client meets when it sends.
    struct FaultySamples;

    impl Samples for FaultySamples {
        fn len(&self) -> u32 {
            3
        }
        fn request(&mut self, _sample: u32, _endpoint: usize) -> &mut PreparedRequest {
            panic!("slot 3 is gone");
        }
    }

    /// Runs one phase in which something panics, against `port`; gives how it ended and its result.
    fn panic_in(phase: PhaseConfig, port: u16) -> (Ended, ResultDoc) {
        let (ended, fold) = run_in(phase, port, RING, RunFold::new);
        (ended, fold.result(&takt_report::Limits::default()))
    }

    /// Runs one phase against `port`, with a ring of so many blocks before this fold.
    fn run_in<F: Fold + Send + 'static>(
        phase: PhaseConfig,
        port: u16,
        ring: usize,
        fold: impl FnOnce(SessionPlan) -> F,
    ) -> (Ended, F) {
        let phases = vec![PhasePlan {
            name: phase.name.clone(),
            kind: PhaseKind::Performance,
            pattern: "test".to_owned(),
            rate: None,
            ramp: None,
            target_concurrency: None,
            requests: None,
            stream: false,
            conversations: None,
        }];
        let plan = SessionPlan { phases, ..SessionPlan::default() };
        let mut config = RecorderConfig::new(plan.clone(), takt_net::anchor);
        config.ring_blocks = ring;
        let (sink, recorder) = Recorder::start(config, fold(plan), |_, _| {}).unwrap();
        let target = Target::tcp(([127, 0, 0, 1], port).into());
        let samples = Rc::new(RefCell::new(FaultySamples));
        let route = PhaseRoute {
            samples,
            api: Api::Raw,
            stream: false,
            keep_text: false,
            hears: false,
            turn_timeout: None,
        };
        let client = ClientConfig::new(vec![EndpointTarget::new(target)], vec![route]);
        let work = Work {
            client,
            phases: vec![phase],
            session_key: 0,
            tls: None,
            stamp_arrivals: false,
            together: None,
            wait: WaitMode::Park,
            core: None,
            idle_timeout: None,
            run_timeout: None,
            clock: None,
            turns: None,
            fold: Arc::default(),
            server: None,
        };
        let output = OutputArgs { format: Format::Text, quiet: true, log_level: LogLevel::Error };
        let console = Console::new(output);
        let stops = Stops::hear(&console).unwrap();
        let ended = run(work, Box::new(sink), &recorder, &stops, &console).unwrap();
        (ended, recorder.finish().fold)
    }

    /// Blocks of a ring that is never full here.
    const RING: usize = 64;

    #[test]
    fn after_a_panic_in_a_strategy_there_is_a_report_that_says_failed() {
        let (ended, result) = panic_in(PhaseConfig::new("p", Faulty, 1), 1);
        assert_eq!(ended, Ended::Panicked("slot 3 is gone".into()));
        assert_eq!((result.state, result.failed_by), (RunState::Failed, Some(FailedBy::Internal)));
    }

    #[test]
    fn after_a_panic_in_the_client_what_was_in_flight_is_unanswered() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let strategy = Concurrency::new(Order::sequential(3), 2);
        let (ended, result) = panic_in(PhaseConfig::new("p", strategy, 3), port);
        assert_eq!(ended, Ended::Panicked("slot 3 is gone".into()));
        assert_eq!(result.state, RunState::Failed);
        let phase = &result.phases[0];
        assert_eq!((phase.issued, phase.unanswered, phase.succeeded), (2, 2, 0));
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

    /// A fold that takes nothing in from the first request on until the reactor has ended.
    struct Stuck {
        fold: RunFold,
        until: Option<Receiver<()>>,
    }

    impl Fold for Stuck {
        fn fold(&mut self, record: &Record<'_>) {
            if matches!(record, Record::Issued(_))
                && let Some(until) = self.until.take()
            {
                // It fails when the other end is dropped.
                let _ = until.recv();
            }
            self.fold.fold(record);
        }
    }

    /// Goes with the reactor's system, and lets the fold go on then.
    struct Holding(Concurrency, #[expect(dead_code, reason = "dropped, it is told")] Sender<()>);

    impl Strategy for Holding {
        fn start(&mut self, pace: &mut dyn Pace) {
            self.0.start(pace);
        }
        fn tick(&mut self, token: u64, pace: &mut dyn Pace) {
            self.0.tick(token, pace);
        }
        fn completed(&mut self, done: &Completed, pace: &mut dyn Pace) {
            self.0.completed(done, pace);
        }
    }

    #[test]
    fn a_run_whose_fold_does_not_keep_up_loses_nothing_and_is_not_valid() {
        let (line, until) = mpsc::channel();
        let mut phase =
            PhaseConfig::new("p", Holding(Concurrency::new(Order::sequential(3), 2), line), 3);
        phase.limits.requests = Some(24);
        // Nobody is at port 1: a closed loop tries again ten times a second, and each try is recorded.
        let stuck = |plan| Stuck { fold: RunFold::new(plan), until: Some(until) };
        let (ended, stuck) = run_in(phase, 1, 2, stuck);
        assert_eq!(ended, Ended::Complete);
        let result = stuck.fold.result(&takt_report::Limits::default());
        let phase = &result.phases[0];
        assert_eq!((phase.issued, phase.failed), (24, 24));
        let spilled = phase.instrument.as_ref().map(|seen| (seen.spilled > 0, seen.lost));
        assert_eq!(spilled, Some((true, 0)));
        let reason = result.verdict.reasons.iter().find(|reason| reason.name == "ring_spilled");
        assert_ne!(reason.expect("the ring was full").status, VerdictStatus::Valid);
    }
}
