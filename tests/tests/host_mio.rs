//! The conformance suite on the operating system: each wait mode over TCP, TLS, and unix sockets.

#![allow(clippy::disallowed_methods, reason = "wakes the host from another thread")]

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use takt_engine::{Host, Target, TlsLayer, Wake};
use takt_net::tls::{ClientOptions, ClientTls, ServerOptions, ServerTls};
use takt_net::{MioHost, WaitMode};
use takt_tests::conformance::Bench;

/// TCP on the loopback.
struct Tcp(WaitMode);

impl Bench for Tcp {
    type H = MioHost;

    fn host(&mut self) -> MioHost {
        MioHost::new(self.0).expect("a host")
    }

    fn door(&mut self) -> Target {
        Target::tcp((Ipv4Addr::LOCALHOST, 0).into())
    }

    fn nobody(&mut self) -> Target {
        // A port that was free a moment ago, on a loopback address that nothing else here binds.
        let free = Target::tcp((Ipv4Addr::new(127, 77, 0, 1), 0).into());
        let mut host = self.host();
        let listener = host.listen(&free).expect("listen");
        Target::tcp(host.local_addr(listener).expect("an address"))
    }

    fn wake_soon(&mut self, waker: Arc<dyn Wake>) {
        wake_from_a_thread(waker);
    }
}

/// Unix sockets in a folder of their own.
struct Unix {
    mode: WaitMode,
    folder: tempfile::TempDir,
    doors: usize,
}

impl Unix {
    fn new(mode: WaitMode) -> Self {
        Self { mode, folder: tempfile::tempdir().expect("a folder"), doors: 0 }
    }
}

impl Bench for Unix {
    type H = MioHost;

    fn host(&mut self) -> MioHost {
        MioHost::new(self.mode).expect("a host")
    }

    fn door(&mut self) -> Target {
        self.doors += 1;
        Target::Unix(self.folder.path().join(format!("{}.sock", self.doors)))
    }

    fn nobody(&mut self) -> Target {
        Target::Unix(self.folder.path().join("nobody.sock"))
    }

    fn wake_soon(&mut self, waker: Arc<dyn Wake>) {
        wake_from_a_thread(waker);
    }

    fn has_resets(&self) -> bool {
        false
    }
}

/// TLS over TCP on the loopback. Every host of it has the one client's and the one server's configuration.
struct Tls(WaitMode);

impl Tls {
    fn layer() -> TlsLayer {
        TlsLayer { config: 0, name: "localhost".into() }
    }
}

impl Bench for Tls {
    type H = MioHost;

    fn host(&mut self) -> MioHost {
        let file =
            |name: &str| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tls")).join(name);
        let ours = ClientOptions { ca: Some(file("ca.pem")), ..ClientOptions::default() };
        let theirs =
            ServerOptions { cert: file("server.pem"), key: file("server.key"), client_ca: None };
        let mut host = MioHost::new(self.0).expect("a host");
        host.add_client_tls(ClientTls::new(&ours).expect("a client"));
        host.add_server_tls(ServerTls::new(&theirs).expect("a server"));
        host
    }

    fn door(&mut self) -> Target {
        Target::Tls { to: (Ipv4Addr::LOCALHOST, 0).into(), from: None, layer: Self::layer() }
    }

    fn nobody(&mut self) -> Target {
        let Target::Tcp { to, from } = Tcp(self.0).nobody() else { unreachable!("as asked for") };
        Target::Tls { to, from, layer: Self::layer() }
    }

    fn wake_soon(&mut self, waker: Arc<dyn Wake>) {
        wake_from_a_thread(waker);
    }
}

/// Long enough that the host is mostly parked by then; when it is not, the case holds all the same.
fn wake_from_a_thread(waker: Arc<dyn Wake>) {
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(5));
        waker.wake();
    });
}

mod park {
    takt_tests::host_conformance!(super::Tcp(super::WaitMode::Park));
}

mod guard {
    takt_tests::host_conformance!(super::Tcp(super::WaitMode::default()));
}

mod spin {
    takt_tests::host_conformance!(super::Tcp(super::WaitMode::Spin));
}

mod tls_guard {
    takt_tests::host_conformance!(super::Tls(super::WaitMode::default()));
}

mod tls_spin {
    takt_tests::host_conformance!(super::Tls(super::WaitMode::Spin));
}

mod unix_park {
    takt_tests::host_conformance!(super::Unix::new(super::WaitMode::Park));
}

mod unix_spin {
    takt_tests::host_conformance!(super::Unix::new(super::WaitMode::Spin));
}
