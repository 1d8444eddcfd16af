//! The built-in server on a thread of this process, for commands that bring their own endpoint.

use std::net::SocketAddr;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use takt_engine::{Remote, Target};
use takt_mock::{Mode, Server, ServerConfig, ServerMsg, TruthSink};
use takt_net::WaitMode;

/// A server at work; it is stopped with its owner.
pub(crate) struct BuiltIn {
    pub(crate) address: SocketAddr,
    stop: Remote<ServerMsg>,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
}

impl BuiltIn {
    /// Starts it on a port of its own, on `core` if there is one for it, and tells `truth` what it did.
    pub(crate) fn start(
        mode: Mode,
        core: Option<usize>,
        truth: Option<Box<dyn TruthSink + Send>>,
    ) -> anyhow::Result<Self> {
        let (tell, told) = mpsc::channel();
        let (give, given) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("takt-mock".to_owned())
            .spawn(move || serve(mode, core, truth, tell, &give))?;
        match (given.recv(), told.recv()) {
            (Ok(stop), Ok(address)) => Ok(Self { address, stop, thread: Some(thread) }),
            // It ended before it listened.
            _ => match thread.join() {
                Ok(Err(error)) => Err(error),
                _ => anyhow::bail!("the built-in server did not start"),
            },
        }
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for BuiltIn {
    fn drop(&mut self) {
        // A server that does not stop has stopped already; its thread ends with the process.
        if self.stop.send(ServerMsg::Stop).is_ok()
            && let Some(thread) = self.thread.take()
        {
            drop(thread.join());
        }
    }
}

fn serve(
    mode: Mode,
    core: Option<usize>,
    truth: Option<Box<dyn TruthSink + Send>>,
    tell: Sender<SocketAddr>,
    give: &Sender<Remote<ServerMsg>>,
) -> anyhow::Result<()> {
    if let Some(core) = core {
        takt_net::affinity::pin(core)?;
    }
    let listen = Target::tcp(SocketAddr::from(([127, 0, 0, 1], 0)));
    let mut config = ServerConfig::new(listen, mode);
    config.anchor = takt_net::anchor();
    let mut server = Server::new(config)?;
    if let Some(truth) = truth {
        server = server.with_truth(Boxed(truth));
    }
    // Whoever asked for the server waits for this.
    let listening = move |address: Option<SocketAddr>| _ = address.map(|at| tell.send(at));
    crate::mock::serve(server, None, WaitMode::default(), listening, |stop| {
        drop(give.send(stop));
        Ok(())
    })
}

struct Boxed(Box<dyn TruthSink + Send>);

impl TruthSink for Boxed {
    fn truth(&mut self, line: &takt_mock::Truth<'_>) {
        self.0.truth(line);
    }
}
