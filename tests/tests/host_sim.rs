//! The conformance suite on the simulated host, over several kinds of networks.
#![forbid(unsafe_code)]

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use takt_engine::{Target, Wake};
use takt_tests::conformance::Bench;
use takt_tests::sim::{Cuts, Faults, Link, SimHost, World};
use takt_time::Span;

/// A world of its own for each host.
struct Sim {
    link: Link,
    unix: bool,
    world: Option<World>,
    doors: u32,
}

impl Sim {
    fn new(link: Link) -> Self {
        Self { link, unix: false, world: None, doors: 0 }
    }

    fn unix() -> Self {
        Self { unix: true, ..Self::new(Link::flawless(Span::from_nanos(1))) }
    }
}

impl Bench for Sim {
    type H = SimHost;

    fn host(&mut self) -> SimHost {
        let world = World::new(1, self.link.clone());
        let host = world.lone_host();
        self.world = Some(world);
        host
    }

    fn door(&mut self) -> Target {
        self.doors += 1;
        if self.unix {
            Target::Unix(PathBuf::from(format!("/door/{}", self.doors)))
        } else {
            Target::tcp((Ipv4Addr::LOCALHOST, 0).into())
        }
    }

    fn nobody(&mut self) -> Target {
        if self.unix {
            Target::Unix(PathBuf::from("/nobody"))
        } else {
            Target::tcp((Ipv4Addr::LOCALHOST, 9).into())
        }
    }

    /// While it is parked: virtual time has no other threads.
    fn wake_soon(&mut self, waker: Arc<dyn Wake>) {
        let world = self.world.as_ref().expect("made with the host");
        world.wake_after(Span::from_micros(5), waker);
    }
}

mod flawless {
    takt_tests::host_conformance!(super::Sim::new(super::Link::flawless(
        super::Span::from_micros(20)
    )));
}

mod without_latency {
    takt_tests::host_conformance!(super::Sim::new(super::Link::flawless(super::Span::ZERO)));
}

mod unix {
    takt_tests::host_conformance!(super::Sim::unix());
}

/// Byte by byte, and each read finds one piece.
mod pieces {
    use super::*;
    takt_tests::host_conformance!(Sim::new(Link {
        cuts: Cuts::Apart(300),
        ..Link::flawless(Span::from_micros(3))
    }));
}

/// Pieces with time between them, small buffers, a narrow wire, and readiness that is not needed.
mod narrow {
    use super::*;
    takt_tests::host_conformance!(Sim::new(Link {
        jitter: Span::from_micros(2),
        bytes_per_s: Some(100_000_000),
        cuts: Cuts::Spaced(1460, Span::from_nanos(500)),
        send_buffer: 100_000,
        receive_buffer: 20_000,
        faults: Faults { needless_readable: 300, ..Faults::default() },
        ..Link::flawless(Span::from_micros(3))
    }));
}

/// Each call costs its caller 30 ns.
mod costly_calls {
    use super::*;
    takt_tests::host_conformance!(Sim::new(Link {
        call_cost: Span::from_nanos(30),
        ..Link::flawless(Span::from_micros(3))
    }));
}
