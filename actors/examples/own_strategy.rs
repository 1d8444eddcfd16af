//! A strategy of one's own: pairs of requests every ten milliseconds, ten times.

use takt_actors::planned::{Plan, Planned};
use takt_actors::{Pace, PhaseConfig, Session, SessionConfig, Strategy};
use takt_engine::{System, VirtualClock};
use takt_record::{Discard, Publisher, PublisherConfig, SharedPublisher};
use takt_time::Span;

/// Says when and which sample, and nothing else.
struct Pairs {
    left: u32,
}

impl Strategy for Pairs {
    fn start(&mut self, pace: &mut dyn Pace) {
        pace.at(pace.start() + Span::from_millis(10), 0);
    }

    fn tick(&mut self, token: u64, pace: &mut dyn Pace) {
        let due = pace.start() + Span::from_millis(10 * (token + 1));
        for sample in [0, 1] {
            pace.issue(sample, Some(due));
        }
        self.left -= 1;
        match self.left {
            0 => pace.finished(),
            _ => pace.at(due + Span::from_millis(10), token + 1),
        }
    }
}

fn main() -> std::io::Result<()> {
    // Virtual time and planned answers; with `MioHost` and `Client` this drives a real endpoint.
    let mut system = System::new(VirtualClock::default());
    let (transport, seen) = Planned::spawn(&mut system, |_| Plan::Answer(Span::from_millis(3)));
    let phase = PhaseConfig::new("pairs", Pairs { left: 10 }, 2).requests(1_000);
    let publisher = Publisher::new(Box::new(Discard), PublisherConfig::default());
    let config = SessionConfig::new(vec![phase]);
    let (session, outcome) =
        Session::new(config, Box::new(transport), SharedPublisher::new(publisher));
    system.spawn(session, 1024);
    system.run()?;
    println!("{:?}", outcome.take());
    assert_eq!(seen.borrow().requests.len(), 20);
    Ok(())
}
