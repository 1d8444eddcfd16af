//! Another transport under the same session: here a plain function call that answers on the spot. Put a
//! message queue, a shared-memory ring or an engine in the same process in its place.

use takt_actors::{
    Answered, Burst, Cancel, Order, PhaseConfig, Replies, Request, SampleIssuer, Session,
    SessionConfig,
};
use takt_engine::{System, VirtualClock};
use takt_record::{
    Completed, Discard, Outcome, Publisher, PublisherConfig, SharedPublisher, Times, TokenCounts,
};

#[derive(Default)]
struct Direct(Option<Replies>);

impl SampleIssuer for Direct {
    fn attach(&mut self, replies: Replies) {
        self.0 = Some(replies);
    }

    fn issue(&mut self, request: Request) {
        let (issued, scheduled) = (request.issued, request.scheduled);
        let completed = Completed {
            key: request.key,
            sample: request.sample,
            outcome: Outcome::Ok,
            times: Times { scheduled, issued, sent: Some(issued), end: issued, ..Times::default() },
            tokens: TokenCounts::default(),
            finish: None,
            status: None,
            attempts: 1,
            reused: true,
            body_bytes: 0,
            endpoint: 0,
            turn: request.turn,
        };
        let replies = self.0.as_ref().expect("attached before the first request");
        replies.answered(Answered { completed, error: None });
    }

    fn cancel(&mut self, _which: Cancel) {} // Nothing is ever under way.
    fn shut_down(&mut self) {}
}

fn main() -> std::io::Result<()> {
    let mut system = System::new(VirtualClock::default());
    let phase =
        PhaseConfig::new("direct", Burst::new(Order::sequential(4), None), 4).requests(10_000);
    let publisher = Publisher::new(Box::new(Discard), PublisherConfig::default());
    let (session, outcome) = Session::new(
        SessionConfig::new(vec![phase]),
        Box::new(Direct::default()),
        SharedPublisher::new(publisher),
    );
    system.spawn(session, 1024);
    system.run()?;
    println!("{:?}", outcome.take());
    Ok(())
}
