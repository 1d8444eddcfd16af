//! Facts about what a sink is told.

use std::sync::{Arc, Mutex};

use takt_engine::Close;
use takt_time::Nanos;

use crate::config::{Mode, ServerConfig};
use crate::plan::{Plan, PlanKey};
use crate::server::{Server, ServerMsg};
use crate::testing::{CHAT, MS, Rig, STREAM, instant, post, timed};
use crate::truth::{Event, Truth, TruthSink};

/// What a sink is told, with the bytes of ids and events kept.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<Line>>>);

type Line = (Truth<'static>, Vec<Event>, String);

impl TruthSink for Told {
    fn truth(&mut self, line: &Truth<'_>) {
        let id = String::from_utf8_lossy(line.id.unwrap_or_default()).into_owned();
        let kept = Truth { id: None, method: b"", target: b"", events: &[], ..*line };
        self.0.lock().unwrap().push((kept, line.events.to_vec(), id));
    }
}

fn told_rig(config: ServerConfig) -> (Rig, Told) {
    let told = Told::default();
    (Rig::new(Server::new(config).unwrap().with_truth(told.clone())), told)
}

#[test]
fn the_truth_is_the_plan_and_the_writes() {
    let config = timed(|t| {
        t.ttft = "exp:20ms".parse().unwrap();
        t.tpot = "lognormal:5ms,0.5".parse().unwrap();
        t.tokens = "uniform:5..50".parse().unwrap();
    });
    let Mode::Timed(plans) = config.mode.clone() else { panic!() };
    let (mut rig, told) = told_rig(config);
    // In an order that is not that of the ids, so that plans go by id.
    for (number, id) in [7, 3, 5].into_iter().enumerate() {
        rig.connect();
        rig.run_to(number as u64 * MS);
        rig.send(number, post(CHAT, &format!("X-Request-Id: id-{id}\r\n"), STREAM));
    }
    rig.run_to(10_000 * MS);
    let told = told.0.lock().unwrap();
    assert_eq!(told.len(), 3);
    for (truth, events, id) in told.iter() {
        let mut plan = Plan::draw(&plans, PlanKey::Id(id.as_bytes()));
        assert_eq!(truth.arrived, Nanos::from_nanos(truth.ordinal * MS));
        assert_eq!((truth.started, truth.opened), (Some(truth.arrived), Some(truth.arrived)));
        let mut at = truth.arrived + plan.ttft();
        assert_eq!(truth.first_planned, Some(at));
        assert_eq!(events.len(), plan.tokens() as usize);
        for event in events {
            assert_eq!(*event, Event { planned: at, written: at, tokens: 1 });
            at += plan.next_gap();
        }
        let last = events[events.len() - 1].planned;
        assert_eq!((truth.last_planned, truth.ended), (Some(last), Some(last)));
        assert_eq!((truth.tokens, truth.status), (plan.tokens(), 200));
        assert!(truth.complete && truth.streamed);
    }
}

#[test]
fn the_truth_of_a_client_that_went_away_has_what_was_written() {
    let (mut rig, told) = told_rig(timed(|_| ()));
    rig.connect();
    rig.send(0, post(CHAT, "X-Request-Id: a\r\n", STREAM));
    rig.run_to(22 * MS);
    rig.reset(0);
    rig.run_to(1_000 * MS);
    let told = told.0.lock().unwrap();
    let (truth, events, id) = &told[0];
    assert_eq!((told.len(), id.as_str()), (1, "a"));
    assert_eq!((truth.complete, truth.ended, truth.tokens), (false, None, 1));
    assert_eq!(events.len(), 1);
}

#[test]
fn a_stamp_is_that_of_the_write_that_took_the_event() {
    let (mut rig, told) = told_rig(timed(|_| ()));
    rig.connect();
    rig.give_room(0, 600);
    rig.send(0, post(CHAT, "", STREAM));
    rig.run_to(100 * MS);
    rig.give_room(0, usize::MAX);
    rig.run_to(200 * MS);
    let told = told.0.lock().unwrap();
    let (truth, events, _) = &told[0];
    // Head and role chunk are more than 300 and less than 600 bytes; the second event did not fit.
    assert_eq!(truth.opened, Some(Nanos::ZERO));
    let written: Vec<u64> = events.iter().map(|e| e.written.as_nanos() / MS).collect();
    assert_eq!(written, [20, 100, 100]);
    assert_eq!(truth.last_planned, Some(Nanos::from_nanos(30 * MS)));
}

#[test]
fn a_request_behind_another_has_the_arrival_of_its_read() {
    let (mut rig, told) = told_rig(timed(|_| ()));
    rig.connect();
    rig.send(0, post(CHAT, "", "{}"));
    rig.run_to(4 * MS);
    rig.send(0, post(CHAT, "", "{}"));
    rig.run_to(1_000 * MS);
    let told = told.0.lock().unwrap();
    let ms = |at: Nanos| at.as_nanos() / MS;
    let times: Vec<_> = told
        .iter()
        .map(|(t, ..)| (ms(t.arrived), t.started.map(ms), t.first_planned.map(ms), t.ended.map(ms)))
        .collect();
    assert_eq!(times, [(0, Some(0), Some(20), Some(30)), (4, Some(30), Some(50), Some(60))]);
}

#[test]
fn a_server_that_is_stopped_tells_what_was_under_way() {
    let (mut rig, told) = told_rig(timed(|_| ()));
    rig.connect();
    rig.send(0, post(CHAT, "", STREAM));
    rig.run_to(22 * MS);
    rig.tell(ServerMsg::Stop);
    rig.run_to(100 * MS);
    assert!(rig.is_stopped());
    assert_eq!(rig.with(0, |pipe| pipe.closed.unwrap().1), Close::Reset);
    let told = told.0.lock().unwrap();
    assert_eq!((told.len(), told[0].0.complete, told[0].0.tokens), (1, false, 1));
}

#[test]
fn instant_answers_have_a_truth_without_a_plan() {
    let (mut rig, told) = told_rig(instant());
    rig.connect();
    rig.send(0, post(CHAT, "X-Request-Id: a\r\n", "{}") + "GET /x HTTP/1.1\r\n\r\n");
    rig.run_to(MS);
    let told = told.0.lock().unwrap();
    assert_eq!(told.len(), 2);
    for (ordinal, (truth, events, id)) in told.iter().enumerate() {
        assert_eq!((truth.ordinal, truth.status, truth.complete), (ordinal as u64, 200, true));
        assert_eq!(id, ["a", ""][ordinal]);
        assert_eq!((truth.first_planned, events.len()), (None, 0));
        assert_eq!(truth.ended, Some(truth.arrived));
    }
}

#[test]
fn an_instant_answer_that_does_not_fit_has_the_truth_of_its_last_byte() {
    let (mut rig, told) = told_rig(instant());
    rig.connect();
    rig.give_room(0, 10);
    rig.send(0, post("/x", "", "{}").repeat(2));
    rig.run_to(100 * MS);
    rig.give_room(0, usize::MAX);
    rig.run_to(200 * MS);
    let told = told.0.lock().unwrap();
    let ended: Vec<_> = told.iter().map(|(truth, ..)| (truth.ended, truth.complete)).collect();
    assert_eq!(ended, [(Some(Nanos::from_nanos(100 * MS)), true); 2]);
}

#[test]
fn an_instant_answer_that_was_not_written_is_not_complete() {
    let (mut gone, of_gone) = told_rig(instant());
    gone.connect();
    gone.send(0, post("/x", "", "{}"));
    gone.reset_when_read(0);
    gone.run_to(MS);
    let (mut stopped, of_stopped) = told_rig(instant());
    stopped.connect();
    stopped.run_to(MS);
    stopped.tell(ServerMsg::Stop);
    stopped.send(0, post("/x", "", "{}"));
    stopped.run_to(2 * MS);
    assert!(stopped.is_stopped());
    for told in [of_gone, of_stopped] {
        let told = told.0.lock().unwrap();
        assert_eq!((told.len(), told[0].0.complete, told[0].0.ended), (1, false, None));
    }
}
