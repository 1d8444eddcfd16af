//! A precise periodic timer on a host of one's own: 5,000 ticks, 200 microseconds apart.
//!
//! `takt-net` has the host for real sockets. This one has a clock and nothing else, and spins: all that
//! `Host` asks of a clock is here in a few lines.
#![allow(clippy::disallowed_methods, reason = "this is a host: the one who reads the clock")]

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use takt_engine::{
    Actor, Close, Context, Host, ReadOutcome, Ready, StreamId, System, Target, Wake, Woken,
};
use takt_time::{Nanos, Span};

struct Spin(Instant);

impl Host for Spin {
    fn now(&self) -> Nanos {
        Nanos::from_nanos(self.0.elapsed().as_nanos() as u64)
    }
    fn park(&mut self, until: Option<Nanos>, _ready: &mut Vec<Ready>) -> io::Result<Woken> {
        while until.is_some_and(|at| self.now() < at) {
            std::hint::spin_loop();
        }
        Ok(Woken::Deadline)
    }
    fn connect(&mut self, _: &Target) -> io::Result<StreamId> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn listen(&mut self, _: &Target) -> io::Result<StreamId> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn local_addr(&self, _: StreamId) -> Option<SocketAddr> {
        None
    }
    fn read(&mut self, _: StreamId, _: &mut [u8]) -> io::Result<ReadOutcome> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn write(&mut self, _: StreamId, _: &[IoSlice<'_>]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn close(&mut self, _: StreamId, _: Close) {}
    fn waker(&self) -> Arc<dyn Wake> {
        struct Awake;
        impl Wake for Awake {
            fn wake(&self) {}
        }
        Arc::new(Awake)
    }
}

struct Ticker {
    start: Nanos,
    lateness: Vec<Span>,
}

impl Ticker {
    /// Deadlines count from the start, not from the last tick: a late tick does not delay the next.
    fn due(&self) -> Nanos {
        self.start + Span::from_micros(200 * (self.lateness.len() as u64 + 1))
    }
}

impl Actor for Ticker {
    type Msg = Nanos;

    fn started(&mut self, cx: &mut Context<'_, Self>) {
        self.start = cx.now();
        cx.call_at(self.due(), self.due());
    }

    fn handle(&mut self, due: Nanos, cx: &mut Context<'_, Self>) {
        self.lateness.push(cx.now() - due);
        if self.lateness.len() < 5_000 {
            cx.call_at(self.due(), self.due());
            return;
        }
        self.lateness.sort_unstable();
        let at = |share: usize| self.lateness[self.lateness.len() * share / 1_000];
        println!("lateness p50 {}, p99 {}, p99.9 {}", at(500), at(990), at(999));
        cx.stop_system();
    }
}

fn main() -> io::Result<()> {
    let mut system = System::new(Spin(Instant::now()));
    system.spawn(Ticker { start: Nanos::ZERO, lateness: Vec::new() }, 1);
    system.run()
}
