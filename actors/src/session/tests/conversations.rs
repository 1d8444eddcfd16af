//! Conversations in virtual time: gating, delays, slots, and what becomes of each turn.

use takt_record::{ConversationEvent, ConversationRecord, PhaseEvent};

use super::*;
use crate::conversations::{Scripts, Think, ThinkTime, TurnPlan};
use crate::{Agentic, AgenticConfig, Begin, Until};

pub(super) fn line(r: &ConversationRecord, ms: f64) -> String {
    let talk = r.conversation;
    match r.event {
        ConversationEvent::Started { turns } => format!("{ms} talk {talk} begins, {turns} turns"),
        ConversationEvent::Ended(e) => {
            let left = e.turns - e.succeeded - e.failed - e.skipped - e.unsent;
            let (waited, paused) =
                (e.waited.as_nanos() / 1_000_000, e.paused.as_nanos() / 1_000_000);
            let more = if e.more { ", more" } else { "" };
            format!(
                "{ms} talk {talk} {}: {}+{}+{}+{}+{left} of {}, waited {waited}, paused {paused}{more}",
                e.how, e.succeeded, e.failed, e.skipped, e.unsent, e.turns
            )
        }
    }
}

/// Conversations of so many turns each, their delays in milliseconds.
fn scripts(talks: &[&[Option<u64>]]) -> Rc<Scripts> {
    let mut scripts = Scripts::default();
    for talk in talks {
        scripts.push(talk.iter().enumerate().map(|(at, delay)| TurnPlan {
            number: 2 * at as u32 + 1,
            delay: delay.map(Span::from_millis),
            is_tool: false,
        }));
    }
    Rc::new(scripts)
}

fn config_of(begin: Begin, until: Until) -> AgenticConfig {
    AgenticConfig {
        begin,
        until,
        recorded_delays: true,
        think: None,
        stop_on_first_complete: false,
        histories: None,
    }
}

/// A phase of conversations in the order of the dataset.
fn talks(scripts: &Rc<Scripts>, config: AgenticConfig) -> PhaseConfig {
    let order = Order::sequential(scripts.len() as u32);
    PhaseConfig::new("talk", Agentic::new(scripts.clone(), order, config), 0)
}

fn closed(scripts: &Rc<Scripts>, target: u32, until: Until) -> PhaseConfig {
    talks(scripts, config_of(Begin::Concurrency(target), until))
}

const TWO: &[Option<u64>] = &[None, None];
const THREE: &[Option<u64>] = &[None, None, None];

impl Ran {
    /// The lines about conversations and their turns.
    fn talk(&self) -> Vec<&str> {
        let about = |line: &&str| line.contains(" talk ") || line.contains(" issued ");
        self.lines.iter().map(String::as_str).filter(about).collect()
    }

    /// What ended the issuing of the only phase.
    fn ended_by(&self) -> EndedBy {
        self.outcome.phases[0].ended_by
    }
}

#[test]
fn a_turn_leaves_in_the_same_turn_as_the_answer_before_it() {
    let ran =
        run(vec![closed(&scripts(&[TWO, TWO, TWO]), 2, Until::Passes(None))], Some(10), 0, &[]);
    assert_eq!(
        ran.talk(),
        [
            "0 talk 0 begins, 2 turns",
            "0 issued 0:1 0.0",
            "0 talk 1 begins, 2 turns",
            "0 issued 1:1 0.1",
            "10 issued 0:3 0.2",
            "10 issued 1:3 0.3",
            "20 talk 0 completed: 2+0+0+0+0 of 2, waited 20, paused 0, more",
            "20 talk 2 begins, 2 turns",
            "20 issued 2:1 0.4",
            "20 talk 1 completed: 2+0+0+0+0 of 2, waited 20, paused 0",
            "30 issued 2:3 0.5",
            "40 talk 2 completed: 2+0+0+0+0 of 2, waited 20, paused 0",
        ]
    );
    assert_eq!(ran.ended_by(), EndedBy::Dataset);
}

#[test]
fn delays_are_exact_and_keep_the_slot() {
    let slow: &[Option<u64>] = &[Some(3), Some(50)];
    let ran = run(vec![closed(&scripts(&[slow, TWO]), 1, Until::Passes(None))], Some(10), 0, &[]);
    assert_eq!(
        ran.talk(),
        [
            "0 talk 0 begins, 2 turns",
            "3 issued 0:1 0.0",
            "63 issued 0:3 0.1",
            "73 talk 0 completed: 2+0+0+0+0 of 2, waited 20, paused 53, more",
            "73 talk 1 begins, 2 turns",
            "73 issued 1:1 0.2",
            "83 issued 1:3 0.3",
            "93 talk 1 completed: 2+0+0+0+0 of 2, waited 20, paused 0",
        ]
    );
    // A turn that was delayed has the moment when it was due.
    let scheduled = |n: usize| ran.seen.borrow().requests[n].1.scheduled.map(Nanos::as_nanos);
    assert_eq!([scheduled(0), scheduled(1)], [Some(3_000_000), Some(63_000_000)]);
    assert_eq!([scheduled(2), scheduled(3)], [None, None]);
}

#[test]
fn delays_that_are_not_asked_for_are_not_kept() {
    let config = AgenticConfig {
        recorded_delays: false,
        ..config_of(Begin::Concurrency(1), Until::Passes(None))
    };
    let slow: &[Option<u64>] = &[Some(3), Some(50)];
    let ran = run(vec![talks(&scripts(&[slow]), config)], Some(10), 0, &[]);
    assert_eq!(ran.talk()[2], "10 issued 0:3 0.1");
}

#[test]
fn users_think_before_all_turns_but_the_first_and_those_of_tools() {
    let mut scripts = Scripts::default();
    let turn = |number, is_tool| TurnPlan { number, delay: None, is_tool };
    scripts.push([turn(1, false), turn(3, true), turn(5, false)]);
    let think = Some(Think::new(ThinkTime::Fixed(Span::from_millis(7)), 1));
    let config = AgenticConfig { think, ..config_of(Begin::Concurrency(1), Until::Passes(None)) };
    let ran = run(vec![talks(&Rc::new(scripts), config)], Some(10), 0, &[]);
    let issued: Vec<_> = ran.talk().into_iter().filter(|line| line.contains("issued")).collect();
    assert_eq!(issued, ["0 issued 0:1 0.0", "10 issued 0:3 0.1", "27 issued 0:5 0.2"]);
}

#[test]
fn turns_after_a_failed_one_are_skipped_and_the_slot_goes_on() {
    // Requests 0, 5, 10, … fail.
    let ran = run(vec![closed(&scripts(&[THREE, TWO]), 1, Until::Passes(None))], Some(10), 5, &[]);
    assert_eq!(
        ran.talk(),
        [
            "0 talk 0 begins, 3 turns",
            "0 issued 0:1 0.0",
            "10 talk 0 failed: 0+1+2+0+0 of 3, waited 10, paused 0, more",
            "10 talk 1 begins, 2 turns",
            "10 issued 1:1 0.1",
            "20 issued 1:3 0.2",
            "30 talk 1 completed: 2+0+0+0+0 of 2, waited 20, paused 0",
        ]
    );
    assert_eq!(ran.count(" issued "), 3, "what is skipped is not issued");
}

#[test]
fn conversations_repeat_in_order_when_more_are_asked_for() {
    let ran = run(
        vec![closed(&scripts(&[&[None], &[None]]), 1, Until::Conversations(5))],
        Some(10),
        0,
        &[],
    );
    let began: Vec<_> = ran.lines.iter().filter(|line| line.contains("begins")).collect();
    let began: Vec<_> = began.iter().map(|line| line.split(' ').nth(2).unwrap()).collect();
    assert_eq!(began, ["0", "1", "2", "3", "4"], "0 and 1, their repeats 2 and 3, and 4");
    assert_eq!(ran.ended_by(), EndedBy::Conversations);
}

#[test]
fn min_duration_repeats_whole_passes() {
    let until = Until::Passes(Some(Span::from_millis(25)));
    let ran = run(vec![closed(&scripts(&[&[None], &[None]]), 1, until)], Some(10), 0, &[]);
    assert_eq!((ran.count("begins"), ran.ended_by()), (4, EndedBy::Dataset));
}

#[test]
fn a_duration_stops_what_goes_on_and_lets_the_last_answer_count() {
    let mut phase = closed(&scripts(&[THREE, THREE]), 2, Until::Endless);
    phase.limits.duration = Some(Span::from_millis(15));
    let ran = run(vec![phase], Some(10), 0, &[]);
    assert_eq!(ran.ended_by(), EndedBy::Duration);
    let ends: Vec<_> = ran.talk().into_iter().filter(|line| line.contains("stopped")).collect();
    assert_eq!(
        ends,
        [
            "20 talk 0 stopped: 2+0+0+1+0 of 3, waited 20, paused 0, more",
            "20 talk 1 stopped: 2+0+0+1+0 of 3, waited 20, paused 0, more",
        ]
    );
}

#[test]
fn a_stop_is_no_failure_and_a_turn_that_was_given_up_is_none_of_the_others() {
    let ran = run(vec![closed(&scripts(&[THREE, THREE]), 1, Until::Passes(None))], None, 0, &[40]);
    assert_eq!(ran.outcome.state, SessionState::Interrupted);
    let end = "70 talk 0 stopped: 0+0+0+2+1 of 3, waited 70, paused 0, more";
    assert_eq!(ran.talk(), ["0 talk 0 begins, 3 turns", "0 issued 0:1 0.0", end]);
}

#[test]
fn a_stop_cancels_delays() {
    let slow: &[Option<u64>] = &[None, Some(1_000)];
    let ran = run(vec![closed(&scripts(&[slow]), 1, Until::Passes(None))], Some(10), 0, &[40]);
    assert_eq!(ran.talk()[2], "40 talk 0 stopped: 1+0+0+1+0 of 2, waited 10, paused 0");
}

#[test]
fn the_first_that_none_follows_may_end_the_issuing() {
    let long: &[Option<u64>] = &[None; 9];
    let config = AgenticConfig {
        stop_on_first_complete: true,
        ..config_of(Begin::Concurrency(2), Until::Passes(None))
    };
    let ran = run(vec![talks(&scripts(&[long, TWO, TWO]), config)], Some(10), 0, &[]);
    assert_eq!(ran.ended_by(), EndedBy::FirstComplete);
    // Conversation 1 ends at 20 with one left; conversation 2 at 40 with none.
    let phase_ends = |line: &&String| line.contains("IssuingEnded");
    assert!(ran.lines.iter().find(phase_ends).unwrap().starts_with("40 "));
    let stopped = "50 talk 0 stopped: 5+0+0+4+0 of 9, waited 50, paused 0";
    assert_eq!(ran.talk().last(), Some(&stopped));
}

#[test]
fn conversations_may_arrive() {
    let arrivals = Begin::Arrivals(Box::new(Constant::new(200.0).unwrap()));
    let phase = talks(&scripts(&[TWO, TWO, TWO]), config_of(arrivals, Until::Passes(None)));
    let ran = run(vec![phase], Some(8), 0, &[]);
    let began: Vec<_> =
        ran.lines.iter().filter(|line| line.contains("begins")).map(|l| ms(l)).collect();
    assert_eq!(began, [5.0, 10.0, 15.0]);
    assert_eq!(ran.ended_by(), EndedBy::Dataset);
    assert_eq!(ran.count("completed:"), 3);
    assert_eq!(ran.seen.borrow().requests[0].1.scheduled, Some(Nanos::from_nanos(5_000_000)));
}

/// Two requests that a phase after it inherits.
fn undrained() -> PhaseConfig {
    let (kind, drain_after) = (PhaseKind::Warmup, false);
    PhaseConfig { kind, drain_after, ..super::phase("warm", super::closed(2), 2) }
}

#[test]
fn conversations_arrive_whatever_is_inherited() {
    let arrivals = Begin::Arrivals(Box::new(Constant::new(200.0).unwrap()));
    let phase = talks(&scripts(&[TWO, TWO, TWO]), config_of(arrivals, Until::Passes(None)));
    let ran = run(vec![undrained(), phase], Some(10), 0, &[]);
    let began = ran.lines.iter().filter(|line| line.contains("begins"));
    assert_eq!(began.map(|line| ms(line)).collect::<Vec<_>>(), [5.0, 10.0, 15.0]);
    let requests = &ran.seen.borrow().requests;
    let scheduled = requests.iter().filter(|(_, request)| request.scheduled.is_some());
    assert_eq!(scheduled.count(), 3, "each for its arrival");
}

#[test]
fn an_arrival_after_the_least_duration_begins_no_other_pass() {
    // Arrivals at 5, 10, 15, …: the second pass begins at 15, and a third would at 25.
    for (least, begun) in [(12, 2), (15, 2), (16, 4), (22, 4), (25, 4), (26, 6)] {
        let arrivals = Begin::Arrivals(Box::new(Constant::new(200.0).unwrap()));
        let until = Until::Passes(Some(Span::from_millis(least)));
        let phase = talks(&scripts(&[&[None], &[None]]), config_of(arrivals, until));
        let ran = run(vec![phase], Some(1), 0, &[]);
        let said = (ran.count("begins"), ran.ended_by());
        assert_eq!(said, (begun, EndedBy::Dataset), "{least}");
    }
}

#[test]
fn inherited_requests_hold_slots() {
    let talks = scripts(&[TWO, TWO]);
    let ran = run(vec![undrained(), closed(&talks, 2, Until::Passes(None))], Some(10), 0, &[]);
    assert_eq!(ran.talk()[2..4], ["10 talk 0 begins, 2 turns", "10 issued 0:1 1.0"]);
    assert_eq!(ran.seen.borrow().most_at_once, 2);
}

#[test]
fn a_warm_up_may_be_of_conversations_and_its_late_answers_are_its_own() {
    let talks = scripts(&[THREE]);
    let mut warm = closed(&talks, 1, Until::Endless);
    (warm.kind, warm.drain_after) = (PhaseKind::Warmup, false);
    warm.limits.duration = Some(Span::from_millis(15));
    let ran = run(vec![warm, closed(&talks, 1, Until::Passes(None))], Some(10), 0, &[]);
    let ends: Vec<_> = ran.talk().into_iter().filter(|line| line.contains(" of ")).collect();
    assert_eq!(
        ends,
        [
            // Its second turn was in flight.
            "15 talk 0 stopped: 1+0+0+1+1 of 3, waited 10, paused 0, more",
            "50 talk 0 completed: 3+0+0+0+0 of 3, waited 30, paused 0",
        ]
    );
    let started =
        |line: &&String| line.contains(&format!("{:?}", PhaseEvent::Started { inherited: 1 }));
    assert!(ran.lines.iter().any(|line| started(&line)));
}
