//! A hook for each request that ends, and a stop from another actor: ends a run at the tenth failure.

use std::cell::Cell;
use std::rc::Rc;

use takt_actors::planned::{Plan, Planned};
use takt_actors::{
    Concurrency, Order, PhaseConfig, Session, SessionConfig, SessionMsg, SessionState,
};
use takt_engine::{Addr, System, VirtualClock};
use takt_record::{
    Blame, Discard, ErrorKind, Failure, Outcome, Publisher, PublisherConfig, SharedPublisher, Stage,
};
use takt_time::Span;

fn main() -> std::io::Result<()> {
    let mut system = System::new(VirtualClock::default());
    let (kind, blame) = (ErrorKind::HttpStatus, Blame::Server);
    let failure = Failure { kind, blame, stage: Stage::Head, status: Some(503) };
    let service = Span::from_millis(5);
    let (transport, _) = Planned::spawn(&mut system, move |request| {
        let fails = request.key.ordinal % 7 == 3;
        if fails { Plan::Fail(service, failure) } else { Plan::Answer(service) }
    });
    let phase = PhaseConfig::new("until ten failed", Concurrency::new(Order::sequential(3), 4), 3)
        .requests(1_000_000);
    let (failed, to) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(None::<Addr<SessionMsg>>)));
    let (count, session_addr) = (failed.clone(), to.clone());
    let mut config = SessionConfig::new(vec![phase]);
    config.on_completed = Some(Box::new(move |done| {
        count.set(count.get() + u32::from(matches!(done.outcome, Outcome::Failed(_))));
        if count.get() == 10
            && let Some(session) = session_addr.take()
        {
            session.send(SessionMsg::Stop);
        }
    }));
    let publisher = Publisher::new(Box::new(Discard), PublisherConfig::default());
    let (session, outcome) =
        Session::new(config, Box::new(transport), SharedPublisher::new(publisher));
    to.set(Some(system.spawn(session, 1024)));
    system.run()?;
    let outcome = outcome.take().expect("a session that was run has ended");
    println!("{outcome:?}");
    assert_eq!((outcome.state, failed.get()), (SessionState::Interrupted, 10));
    Ok(())
}
