//! What one request costs the engine itself, on a host that costs next to nothing: a timer, a message, a
//! write, a readiness, a read. Count instructions, not time:
//!
//! ```text
//! cargo build --release -p takt-engine --example turn_cost
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null target/release/examples/turn_cost 100000
//! ```
//!
//! The difference of two counts, of 200,000 and of 100,000 requests, divided by 100,000.
#![allow(clippy::disallowed_methods, reason = "an argument is read")]

use std::io::IoSlice;

use takt_engine::{Actor, Addr, Context, Ready, StreamId, System, Target, VirtualClock};
use takt_time::Span;

/// Sends on time, one request a microsecond.
struct Sender {
    to: Addr<()>,
    left: u64,
}

/// Writes what it is told to, and reads what comes.
struct Line {
    clock: VirtualClock,
    stream: Option<StreamId>,
}

impl Actor for Sender {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) {
        cx.call_at(cx.now() + Span::from_micros(1), ());
    }

    fn handle(&mut self, (): (), cx: &mut Context<'_, Self>) {
        if self.left == 0 {
            return cx.stop_system();
        }
        self.left -= 1;
        self.to.send(());
        cx.call_at(cx.now() + Span::from_micros(1), ());
    }
}

impl Actor for Line {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) {
        self.stream = cx.connect(&Target::tcp(([127, 0, 0, 1], 1).into())).ok();
    }

    fn handle(&mut self, (): (), cx: &mut Context<'_, Self>) {
        let Some(stream) = self.stream else { return };
        // Nothing is at the other end: what matters is the way there.
        let _ = cx.write(stream, &[IoSlice::new(b"request")]);
        self.clock.queue(Ready::Readable(stream));
    }

    fn ready(&mut self, event: Ready, cx: &mut Context<'_, Self>) {
        if let Ready::Readable(stream) = event {
            let _ = cx.read(stream, &mut [0; 16]);
        }
    }
}

fn main() -> std::io::Result<()> {
    let left = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(100_000);
    let clock = VirtualClock::default();
    let mut system = System::new(clock.clone());
    let to = system.spawn(Line { clock, stream: None }, 64);
    system.spawn(Sender { to, left }, 64);
    system.run()?;
    let stats = system.stats();
    println!(
        "{} turns, {} timers, {} messages, {} ready",
        stats.turns, stats.timers, stats.messages, stats.ready
    );
    Ok(())
}
