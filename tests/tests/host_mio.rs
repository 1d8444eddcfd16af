//! The conformance suite on the operating system: each wait mode over TCP, and unix sockets.

#![allow(clippy::disallowed_methods, reason = "wakes the host from another thread")]

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use takt_engine::{Host, Target, Wake};
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

mod unix_park {
    takt_tests::host_conformance!(super::Unix::new(super::WaitMode::Park));
}

mod unix_spin {
    takt_tests::host_conformance!(super::Unix::new(super::WaitMode::Spin));
}
