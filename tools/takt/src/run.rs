//! A run from configuration to report.
//!
//! ```text
//! samples prepared ─> endpoints reached ─> folder, config.yaml ─> recorder thread ─> reactor (this thread)
//!                                                                     │ journal, fold, progress   │
//!    result.json, report.txt, stdout <── fold <── recorder finished <─┼────── ring of records <───┘
//!                                                                     └ subscribers, aggregator
//! ```
//!
//! All that can be known to be wrong is known before the first send. After it there is always a report.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use takt_actors::{ClientConfig, EndpointTarget, PhaseConfig, PhaseRoute, Samples as _, Together};
use takt_net::affinity::PinError;
use takt_net::schedstat::Accounts;
use takt_net::tls::ClientTls;
use takt_net::{affinity, limits, signals};
use takt_record::{PhaseId, SessionPlan};
use takt_recorder::{JournalConfig, Keep, Recorder, RecorderConfig};
use takt_time::Span;

use crate::accuracy;
use crate::cli::{Format, RunArgs};
use crate::config::{Config, Pacer, Phase};
use crate::console::Console;
use crate::control::Control;
use crate::conversations;
use crate::disk;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::folder::RunFolder;
use crate::forecast::forecasts;
use crate::identity::{self, Identity};
use crate::news::Newsdesk;
use crate::opprof::During;
use crate::outcome::{self, Ended};
use crate::outlets::Outlets;
use crate::pacer::{Clock, Line};
use crate::plan;
use crate::preflight::{self, Reached};
use crate::progress::Progress;
use crate::reactor::{self, Work};
use crate::reactors::{Common, Lives, Others};
use crate::replay;
use crate::samples::{self, Prepared};
use crate::scrub::Scrubber;
use crate::shares::Shares;
use crate::stops::Stops;
use crate::tokens;
use crate::turns::TurnRecords;
use crate::watched::Watched;

/// How a run is to be reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options<'a> {
    pub(crate) out: Option<&'a Path>,
    pub(crate) format: Format,
    pub(crate) strict: bool,
    /// Where records of the reactor's turns go.
    pub(crate) turn_records: Option<&'a Path>,
}

/// `takt run`
pub(crate) fn run(args: &RunArgs, console: &Console) -> Result<Exit, Failure> {
    let config = crate::flags::configuration(args).or_exit(Exit::Input)?;
    let (out, format) = (args.out.as_deref(), args.output.format);
    let turn_records = args.turn_records.as_deref();
    measure(&config, Options { out, format, strict: args.strict, turn_records }, console)
}

/// Runs `config` and reports it.
pub(crate) fn measure(
    config: &Config,
    options: Options<'_>,
    console: &Console,
) -> Result<Exit, Failure> {
    console.hide(&config.secrets);
    cores_are_there(config)?;
    let stops = Stops::hear(console).or_exit(Exit::Setup)?;
    signals::file_limit_is_an_error().or_exit(Exit::Setup)?;
    tokens::check(config).or_exit(Exit::Input)?;
    let prepared = samples::prepare(config, console).or_exit(Exit::Input)?;
    if config.reactors > 1 && options.turn_records.is_some() {
        let says = "--turn-records: records of one reactor; `engine.reactors` asks for more";
        return Err(Failure::says(Exit::Input, says));
    }
    let turns = options.turn_records.map(TurnRecords::open).transpose();
    let turns = turns.context("--turn-records").or_exit(Exit::Setup)?;
    let times = times(config, &prepared)?;
    let line = (config.pacer != Pacer::Inline).then(Line::new);
    let mut shares = Shares::each(config.reactors.into(), config.phases.len());
    let others = shares.split_off(1);
    let share = shares.remove(0);
    let phases = phases(config, &prepared, &times, line.as_ref(), &share)?;
    let tls = client_tls(config, console)?;
    let allowed = connections_allowed(config, console);
    let reached = reach(config, tls.as_ref(), console)?;
    let identity = Identity::new(takt_net::anchor()).or_exit(Exit::Setup)?;
    stops.keep();
    let folder = RunFolder::create(options.out, &config.name, &identity.stamp)?;
    let lengths = lengths(config, &prepared, &phases);
    let mut plan = plan::session(config, &times, &identity, host(&reached, config));
    for (phase, samples) in plan.phases.iter_mut().zip(&prepared) {
        if let (Some(named), Some(talks)) = (&mut phase.conversations, samples.borrow().talks()) {
            named.ids = conversations::ids(&talks.all);
        }
    }
    let forecasts = forecasts(config, &prepared, &times);
    disk::preflight(config, &plan, &forecasts, folder.path(), console)?;
    folder.write("config.yaml", config.to_yaml().as_bytes()).or_exit(Exit::Setup)?;
    accuracy::write_questions(&folder, config, &prepared).or_exit(Exit::Setup)?;

    // Before the reactor is pinned: a thread inherits the cores of the one that starts it.
    affinity::keep_off(cores(config)).or_exit(Exit::Setup)?;
    let control = config.control.as_deref().map(Control::bind).transpose()?;
    if let Some(control) = &control {
        let (stops, console) = (stops.clone(), console.clone());
        control.serve(move || stops.ask(&console)).or_exit(Exit::Setup)?;
    }
    let during = During::begin(config, &plan, folder.path(), console)?;
    let server = during.as_ref().map(During::shared);
    let mut outlets = Outlets::open(config, &plan, &folder, console)?;
    let clock = Clock::new(config, line, &times, &mut outlets, &plan)?;
    let mut recording = recorder_config(config, &plan, &folder, &share);
    let mut snapshots;
    (recording.outlets, snapshots) = outlets.take();
    let status = control.as_ref().map(Control::status);
    let mut progress = Progress::new(console, config, &lengths);
    let fold: Arc<OnceLock<Accounts>> = Arc::default();
    let (told, lives) = (Arc::clone(&fold), Lives::default());
    let all = lives.clone();
    let news = Newsdesk::of(config.reactors);
    let desk = news.clone();
    let (sink, recorder) = Recorder::start(
        recording,
        Watched::new(plan.clone(), news.clone(), server.clone()),
        move |watched, tick| {
            told.get_or_init(Accounts::of_this_thread);
            let live = all.with(watched.live(tick.now.mono));
            progress.look(&desk, live.as_ref(), tick.now.mono, tick.last);
            if let Some(status) = &status {
                status.set(live);
            }
            if let Some(snapshots) = &mut snapshots {
                snapshots.look(watched, &tick);
            }
        },
    )
    .or_exit(Exit::Setup)?;

    let common = Common {
        config: Arc::new(config.clone()),
        plan,
        times: times.into(),
        reached: reached.into(),
        allowed,
        tls,
        together: Together::new(others.len() + 1),
        lives,
        news: news.clone(),
        stops: stops.clone(),
        console: console.clone(),
    };
    let member =
        (!others.is_empty()).then(|| (common.together.clone(), common.together.member(0), 0));
    let others = Others::start(&common, &folder, others)?;
    let work = Work {
        together: member,
        clock,
        turns,
        fold,
        server,
        ..work(&common, &prepared, phases, &share)
    };
    let reacted = reactor::run(work, Box::new(sink), &recorder, &stops, console);
    let (reacted, finished) = others.join(reacted, recorder.finish());
    news.tell_the_rest(console);
    if let (Some(during), Some(asked)) = (during, &config.opprof) {
        during.end(asked, &stops, console);
    }
    stops.over();
    let ended = match reacted {
        Ok(ended) => ended,
        // Nothing was sent: the folder holds the configuration and an empty journal.
        Err(failure) if failure.exit != Exit::Internal => return Err(failure),
        Err(failure) => Ended::Panicked(failure.error.to_string()),
    };
    let aggregated = outlets.aggregated();
    let exit = outcome::report(&ended, finished, &aggregated, &folder, options, console);
    outlets.close(console);
    exit
}

/// The reactor's part in a run, without what is its own alone.
pub(crate) fn work(
    common: &Common,
    prepared: &[Rc<RefCell<Prepared>>],
    phases: Vec<PhaseConfig>,
    share: &Shares,
) -> Work {
    let config = &common.config;
    Work {
        client: client(config, common.allowed, &common.reached, prepared, share),
        phases,
        session_key: common.plan.session_key(),
        tls: common.tls.clone(),
        stamp_arrivals: config.stamps.kernel,
        together: None,
        wait: config.wait,
        core: config.core.map(|core| core + share.index as usize),
        idle_timeout: config.limits.endpoint_response_idle_timeout,
        run_timeout: config.limits.run_timeout,
        clock: None,
        turns: None,
        fold: Arc::default(),
        server: None,
    }
}

/// When the phases that replay a recording send.
pub(crate) fn times(
    config: &Config,
    prepared: &[Rc<RefCell<Prepared>>],
) -> Result<Box<plan::Times>, Failure> {
    let recorded = prepared.iter().map(|samples| samples.borrow().times());
    replay::times(config, recorded).or_exit(Exit::Input)
}

/// Requests of each phase, unless time ends it.
fn lengths(
    config: &Config,
    prepared: &[Rc<RefCell<Prepared>>],
    phases: &[PhaseConfig],
) -> Vec<u32> {
    let all = config.phases.iter().zip(prepared).zip(phases);
    all.map(|((phase, prepared), config)| match config.samples {
        0 => plan::length(phase, &prepared.borrow()),
        samples => samples,
    })
    .collect()
}

/// What the session is to do, phase by phase.
pub(crate) fn phases(
    config: &Config,
    prepared: &[Rc<RefCell<Prepared>>],
    times: &plan::Times,
    line: Option<&Line>,
    shares: &Shares,
) -> Result<Vec<PhaseConfig>, Failure> {
    prepared
        .iter()
        .zip(times)
        .enumerate()
        .map(|(place, (samples, times))| {
            let clock = line.map(|line| line.hold(PhaseId(place as u16)));
            plan::phase(config, place, shares, samples, times.as_ref(), clock)
        })
        .collect::<Result<_, _>>()
        .or_exit(Exit::Input)
}

/// Raises the limit of descriptors and gives the connections to each address that it allows.
fn connections_allowed(config: &Config, console: &Console) -> Option<usize> {
    let files = match limits::raise_open_files() {
        Ok(files) => files,
        Err(error) => {
            console.warn(format!("the limit of open files stays: {error}"));
            return None;
        }
    };
    let allowed = usize::try_from(files.soft.saturating_sub(DESCRIPTORS_KEPT)).ok()?;
    let allowed = (allowed / config.endpoint.urls.len()).max(1);
    console
        .debug(format!("at most {allowed} connections to each address: {} open files", files.soft));
    warn_of_limits(config, allowed, console);
    Some(allowed)
}

/// Says when this machine cannot hold as many connections as the phases keep busy.
fn warn_of_limits(config: &Config, allowed: usize, console: &Console) {
    let hosts = config.endpoint.urls.len();
    let busiest = config.phases.iter().filter_map(|phase| phase.load.in_flight()).max();
    let wanted = busiest.unwrap_or(0).div_ceil(hosts as u64);
    let wanted = wanted.min(config.connections.max.map_or(u64::MAX, |max| max as u64));
    if wanted > allowed as u64 {
        console.warn(format!("{wanted} connections are wanted, open files allow {allowed}"));
    }
    let tcp = config.endpoint.urls.iter().any(|url| url.scheme() != takt_wire::Scheme::Unix);
    let ports = limits::ephemeral_ports().map_or(u64::MAX, |ports| ports.count() as u64);
    let sources = config.connections.source_addresses.len().max(1) as u64;
    if tcp && wanted > ports.saturating_mul(sources) {
        console.warn(format!(
            "{wanted} connections to each address are wanted, there are {ports} local ports for each of \
             {sources} source addresses: give more of them (connections.source_addresses)"
        ));
    }
}

/// What https:// addresses must show, if there are any.
pub(crate) fn client_tls(config: &Config, console: &Console) -> Result<Option<ClientTls>, Failure> {
    if !config.endpoint.has_tls() {
        return Ok(None);
    }
    let options = &config.connections.tls;
    if options.insecure {
        console.warn("no certificate is checked (insecure): whoever answers is believed");
    }
    ClientTls::new(options).map(Some).or_exit(Exit::Input)
}

fn reach(
    config: &Config,
    tls: Option<&ClientTls>,
    console: &Console,
) -> Result<Vec<Reached>, Failure> {
    let patience = config.limits.connect_timeout.unwrap_or(REACH_PATIENCE);
    let reached = preflight::reach(&config.endpoint.urls, patience, tls)?;
    preflight::sources_fit(&reached, &config.connections.source_addresses)?;
    for note in reached.iter().flat_map(|reached| &reached.notes) {
        console.warn(note);
    }
    Ok(reached)
}

fn host(reached: &[Reached], config: &Config) -> serde_json::Value {
    let mut host = identity::host();
    host["endpoints"] = reached.iter().map(Reached::to_json).collect();
    host["core"] = config.core.into();
    config.hide(&mut host);
    host
}

pub(crate) fn recorder_config(
    config: &Config,
    plan: &SessionPlan,
    folder: &RunFolder,
    share: &Shares,
) -> RecorderConfig {
    let mut recorder = RecorderConfig::new(plan.clone(), takt_net::anchor);
    recorder.cleaner = Some(Box::new(Scrubber::new(&config.secrets)));
    recorder.journal = config.journal.one_in.map(|number| JournalConfig {
        number: share.index as u32,
        run: folder.path().to_owned(),
        keep: if number.get() == 1 { Keep::All } else { Keep::OneIn(number) },
        size_cap: config.journal.size_cap.map(|cap| share.part(cap)),
    });
    recorder
}

fn client(
    config: &Config,
    allowed: Option<usize>,
    reached: &[Reached],
    prepared: &[Rc<RefCell<Prepared>>],
    share: &Shares,
) -> ClientConfig {
    let endpoint = &config.endpoint;
    let route = |(samples, phase): (&Rc<RefCell<Prepared>>, &Phase)| PhaseRoute {
        samples: samples.clone(),
        api: endpoint.api,
        stream: endpoint.stream,
        keep_text: phase.keeps_text() || (config.tokenizer.is_some() && tokens::counts(phase.kind)),
        hears: phase.load.agentic().is_some_and(|agentic| agentic.live),
        turn_timeout: phase.load.agentic().and_then(|agentic| agentic.turn_timeout),
    };
    let first = prepared.first().map_or(0, |samples| samples.borrow().len());
    ClientConfig {
        endpoints: reached
            .iter()
            .map(|reached| EndpointTarget {
                target: reached.target.clone(),
                sources: config.connections.source_addresses.clone(),
            })
            .collect(),
        balance: config.connections.balance,
        max_connections: config
            .connections
            .max
            .into_iter()
            .chain(allowed)
            .min()
            .map(|most| share.part_or_one(most)),
        retry_stale: config.connections.retry_stale,
        connect_timeout: config.limits.connect_timeout,
        first_byte_timeout: config.limits.first_byte_timeout,
        request_timeout: config.limits.request_timeout,
        warm_connections: share.part(plan::warm_connections(config, first) as u64) as usize,
        limits: takt_wire::Limits::default(),
        phases: prepared.iter().zip(&config.phases).map(route).collect(),
    }
}

/// Refuses cores that this process may not use, before anything is made.
fn cores_are_there(config: &Config) -> Result<(), Failure> {
    let allowed = affinity::allowed().or_exit(Exit::Setup)?;
    let reactors = cores(config).map(|core| ("engine.core", core));
    let pacer = config.pacer_core.map(|core| ("engine.pacer_core", core));
    for (key, cpu) in reactors.chain(pacer) {
        if !allowed.contains(&cpu) {
            let error = PinError::NotAllowed { cpu, allowed };
            return Err(Failure::says(Exit::Input, format!("{key}: {error}")));
        }
    }
    Ok(())
}

/// The cores that the reactors are pinned to, if they are.
fn cores(config: &Config) -> impl Iterator<Item = usize> {
    let reactors = config.reactors as usize;
    config.core.into_iter().flat_map(move |core| core..core + reactors)
}

/// A core that is not there is wrong input; one that the system refuses is not.
pub(crate) fn pin(core: Option<usize>) -> Result<(), Failure> {
    let Some(core) = core else { return Ok(()) };
    affinity::pin(core).map_err(|error| {
        let exit = match error {
            PinError::NotAllowed { .. } => Exit::Input,
            PinError::Refused { .. } => Exit::Setup,
        };
        Failure::new(exit, error)
    })
}

/// Descriptors that are not for connections: journal, reports, clocks, the standard streams.
const DESCRIPTORS_KEPT: u64 = 64;
/// How long a first connection may take when no `connect_timeout` is set.
const REACH_PATIENCE: Span = Span::from_secs(5);
