//! The servers: takt's own instant one, and the floor's.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::{machine, pinned};

/// How long a server may take until it accepts connections.
const START_LIMIT: Duration = Duration::from_secs(10);

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerKind {
    /// `takt mock --mode instant`.
    Mock,
    /// `floor_server`.
    Floor,
}

impl ServerKind {
    pub(super) fn named(name: &str) -> anyhow::Result<Self> {
        match name {
            "mock" => Ok(Self::Mock),
            "floor" => Ok(Self::Floor),
            other => bail!("no server is called `{other}`: mock or floor"),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Mock => "mock",
            Self::Floor => "floor",
        }
    }

    fn words(self, listen: SocketAddr) -> Vec<String> {
        let line = match self {
            Self::Mock => format!("takt mock --mode instant --listen {listen}"),
            Self::Floor => format!("floor_server --listen {listen}"),
        };
        line.split(' ').map(str::to_owned).collect()
    }
}

/// A running server, pinned to core 1; dropped, it is stopped.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    at: SocketAddr,
    line: String,
}

impl Server {
    /// Starts it on `port` of the loopback address and waits until it accepts.
    pub(super) fn start(kind: ServerKind, root: &Path, port: u16) -> anyhow::Result<Self> {
        let at = SocketAddr::from(([127, 0, 0, 1], port));
        if TcpStream::connect(at).is_ok() {
            bail!("something listens on {at} already; choose another --port");
        }
        let words = kind.words(at);
        let program = root.join("target/release").join(&words[0]);
        let child = pinned(1, &program)
            .args(&words[1..])
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let mut server = Self { child, at, line: words.join(" ") };
        let began = Instant::now();
        while TcpStream::connect(at).is_err() {
            if let Some(status) = server.child.try_wait()? {
                bail!("`{}` ended at once with {status}", server.line);
            }
            if began.elapsed() > START_LIMIT {
                bail!("`{}` accepts no connection after {START_LIMIT:?}", server.line);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.at
    }

    /// The command, as it was started.
    pub(super) fn says(&self) -> &str {
        &self.line
    }

    /// CPU time it has used so far, in seconds.
    pub(super) fn cpu_s(&self) -> anyhow::Result<f64> {
        machine::cpu_s_of(self.child.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to stop.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
