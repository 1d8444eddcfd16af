//! What a run tells others over ZMQ: subscribers, an aggregator, a pacer process. Opened before the reactor
//! is pinned, since libzmq's own thread inherits the cores of the one that makes the first socket.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::ChildStdin;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use takt_record::SessionPlan;
use takt_recorder::publish::{EventOutlet, Feed, FeedState, FeedWatch, Publication};
use takt_recorder::{Outlet, Tick};
use takt_time::Span;
use zmq::Context;

use crate::config::{Aggregator, Config};
use crate::console::Console;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::folder::RunFolder;
use crate::own_socket::{self, Purpose};
use crate::pacer::{self, Process};
use crate::plan::Times;
use crate::service::Service;
use crate::socket_file::SocketFile;
use crate::watched::Watched;

/// Everything that leaves the run over ZMQ.
pub(crate) struct Outlets {
    context: Context,
    outlets: Vec<Box<dyn Outlet>>,
    snapshots: Option<Snapshots>,
    aggregator: Option<Aggregating>,
    /// Removed when all else is gone.
    files: Vec<SocketFile>,
}

/// An aggregator at work.
struct Aggregating {
    watch: FeedWatch,
    /// Its standard input, closed before the process is waited for, and the process, when the run started it.
    own: Option<(ChildStdin, Service)>,
}

/// What came of the aggregator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Aggregated {
    /// There was none.
    Not,
    /// It wrote the final snapshot into the run folder.
    Here,
    /// It wrote it where it was told to.
    Elsewhere,
    /// It is of no use, and why.
    Lost(String),
}

/// Publishes the state of the fold.
pub(crate) struct Snapshots {
    publication: Publication,
    number: u64,
}

impl Outlets {
    /// Binds what the configuration says, and waits for the aggregator to be ready.
    pub(crate) fn open(
        config: &Config,
        plan: &SessionPlan,
        folder: &RunFolder,
        console: &Console,
    ) -> Result<Self, Failure> {
        own_socket::sweep();
        let context = Context::new();
        let publish = &config.publish;
        let mut files = Vec::new();
        let mut bind = |key: &str, address: &String| {
            let says = |error: &dyn std::fmt::Display| {
                Failure::says(Exit::Setup, format!("publish.{key}: {address}: {error}"))
            };
            files.extend(claim(address).map_err(|e| says(&e))?);
            let bound = Publication::bind(&context, address, publish.queue, LINGER_MS);
            let bound = bound.and_then(|bound| bound.address().map(|at| (bound, at)));
            let (bound, at) = bound.map_err(|e| says(&e))?;
            console.info(format!("{key} are published at {at}"));
            Ok::<_, Failure>(bound)
        };
        let events = publish.events.as_ref().map(|at| bind("events", at)).transpose()?;
        let snapshots = publish.snapshots.as_ref().map(|at| bind("snapshots", at)).transpose()?;
        let mut opened = Self {
            outlets: Vec::new(),
            snapshots: snapshots.map(|publication| Snapshots { publication, number: 0 }),
            aggregator: None,
            files,
            context,
        };
        if let Some(publication) = events {
            opened.outlets.push(Box::new(EventOutlet::new(publication, plan)));
        }
        opened.aggregate(config, plan, folder, console)?;
        Ok(opened)
    }

    /// Starts or awaits the aggregator.
    fn aggregate(
        &mut self,
        config: &Config,
        plan: &SessionPlan,
        folder: &RunFolder,
        console: &Console,
    ) -> Result<(), Failure> {
        let address = match &config.publish.aggregator {
            Aggregator::Off => return Ok(()),
            Aggregator::Own => own_socket::address(&plan.session_id, Purpose::Feed),
            Aggregator::At(address) => address.clone(),
        };
        let says = |why: &dyn std::fmt::Display| {
            Failure::says(Exit::Setup, format!("the aggregator at {address}: {why}"))
        };
        self.files.extend(claim(&address).map_err(|e| says(&e))?);
        let mut feed =
            Feed::bind(&self.context, &address, AGGREGATOR_PATIENCE).map_err(|e| says(&e))?;
        let own = match config.publish.aggregator {
            Aggregator::Own => {
                let out = folder.path().as_os_str();
                let args =
                    ["aggregate", "--with-run", "--events", &address, "--out"].map(OsStr::new);
                let (service, stdin) =
                    Service::start("the aggregator", &[&args[..], &[out]].concat())?;
                Some((stdin, service))
            }
            Aggregator::Off | Aggregator::At(_) => {
                console.info(format!("waiting for: takt aggregate --events {address} --out DIR"));
                None
            }
        };
        let ended = || own.as_ref().and_then(|(_, service)| service.ended());
        let patience = config.service_ready_timeout;
        let ready = feed.greet(plan, patience, || ended().is_none()).map_err(|e| says(&e))?;
        if !ready {
            return Err(match ended() {
                Some(how) => says(&format!("it has ended: {how}")),
                None => says(&format!("not ready after {patience}")),
            });
        }
        self.aggregator = Some(Aggregating { watch: feed.watch(), own });
        self.outlets.push(Box::new(feed));
        Ok(())
    }

    /// Starts the pacer process.
    pub(crate) fn pacer(
        &mut self,
        config: &Config,
        times: &Times,
        plan: &SessionPlan,
        commands: Receiver<pacer::Command>,
    ) -> Result<Process, Failure> {
        let address = own_socket::address(&plan.session_id, Purpose::Pacer);
        self.files.extend(claim(&address).or_exit(Exit::Setup)?);
        Process::start(&self.context, config, times, &address, commands)
    }

    /// Takes out what goes to the recorder's thread.
    pub(crate) fn take(&mut self) -> (Vec<Box<dyn Outlet>>, Option<Snapshots>) {
        (std::mem::take(&mut self.outlets), self.snapshots.take())
    }

    /// What came of the aggregator, when the recorder is finished. One of the run's own is stopped.
    pub(crate) fn aggregated(&mut self) -> Aggregated {
        let Some(aggregating) = self.aggregator.take() else { return Aggregated::Not };
        let state = aggregating.watch.state();
        let own = aggregating.own.is_some();
        let how = aggregating.own.and_then(|(stdin, service)| {
            let how = service.ended();
            drop(stdin);
            how
        });
        match state {
            FeedState::Done if own => Aggregated::Here,
            FeedState::Done => Aggregated::Elsewhere,
            FeedState::Open => Aggregated::Lost("the recorder broke off".to_owned()),
            FeedState::Lost(why) => Aggregated::Lost(match how {
                Some(how) => format!("it has ended: {how}"),
                None => why.to_owned(),
            }),
        }
    }

    /// Waits, for so long as is allowed, until subscribers have what was sent to them.
    pub(crate) fn close(self, console: &Console) {
        let Self { context, outlets, snapshots, aggregator, files } = self;
        drop((outlets, snapshots, aggregator));
        let began = Instant::now();
        // The last hold on the context waits for its sockets, and they for their lingering messages.
        drop(context);
        if began.elapsed() >= Duration::from_millis(u64::from(LINGER_MS)) {
            console.warn(format!(
                "a subscriber has not taken its last messages after {LINGER_MS} ms: they are dropped"
            ));
        }
        drop(files);
    }
}

impl Aggregated {
    /// The final snapshot is in the run folder.
    pub(crate) fn is_here(&self) -> bool {
        *self == Self::Here
    }

    /// What the report is to say when the aggregator did not see the run to its end.
    pub(crate) fn lost(&self) -> Option<String> {
        let Self::Lost(why) = self else { return None };
        Some(format!("The aggregator was lost: {why}; all figures are from the run's own records."))
    }
}

impl Snapshots {
    /// A look at the fold: published when somebody wants it.
    pub(crate) fn look(&mut self, watched: &Watched, tick: &Tick<'_>) {
        if !self.publication.listen() || !self.publication.is_wanted(TOPIC) {
            return;
        }
        let snapshot = watched.snapshot(self.number, tick.now.mono, tick.last);
        // Numbers, strings and maps with string keys can always be written.
        let text = serde_json::to_vec(&snapshot).unwrap_or_default();
        self.publication.send(TOPIC, self.number, &text);
        self.number += 1;
    }
}

/// Claims the file of an address, if it has one: libzmq removes whatever is in its way, be it the socket of
/// another run or somebody's file, and leaves its own behind.
fn claim(address: &str) -> io::Result<Option<SocketFile>> {
    // `@` is a name without a file, and `*` one that libzmq makes up.
    let path = address.strip_prefix("ipc://").filter(|path| *path != "*" && !path.starts_with('@'));
    path.map(|path| SocketFile::claim(Path::new(path))).transpose()
}

/// The topic of snapshots.
const TOPIC: &str = "snapshot";
/// How long subscribers may take for their last messages.
const LINGER_MS: u32 = 2_000;
/// How long the aggregator may take at the end.
const AGGREGATOR_PATIENCE: Span = Span::from_secs(10);
