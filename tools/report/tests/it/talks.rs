//! Conversations: counts of turns, times by turn number, the steady state.

use takt_record::{
    ConversationEnd, ConversationEvent, ConversationRecord, ConversationState, ConversationsPlan,
    Fold, PhaseId, PhasePlan, Record, TurnOf,
};
use takt_report::{Limits, RunFold, render};
use takt_time::Span;

use crate::run::{Run, at, closed, failed, near, ok};

fn agentic(target: u32) -> PhasePlan {
    let conversations = Some(ConversationsPlan::default());
    PhasePlan { pattern: "agentic".to_owned(), conversations, ..closed("talk", target) }
}

fn talk(run: &mut Run, conversation: u64, when: f64, event: ConversationEvent) {
    let (at, phase) = (at(when), PhaseId(0));
    run.records.push(Record::Conversation(ConversationRecord { at, phase, conversation, event }));
}

/// A turn of a conversation.
fn turn(run: &mut Run, of: (u64, u32), mut request: crate::run::Request) {
    let (conversation, turn) = of;
    request.done.turn = Some(TurnOf { conversation, turn });
    run.add(&request);
    for record in &mut run.records {
        if let Record::Issued(issued) = record
            && issued.key == request.done.key
        {
            issued.turn = request.done.turn;
        }
    }
}

/// Two conversations of three turns side by side and a third after them, every number chosen.
fn demo() -> Run {
    let mut run = Run::new(vec![agentic(2)]);
    run.phase(0, 0.0, 1_000.0);
    let begin = ConversationEvent::Started { turns: 3 };
    for (conversation, when) in [(0, 0.0), (1, 0.0), (2, 400.0)] {
        talk(&mut run, conversation, when, begin);
    }
    for (ordinal, n, from, to) in [(0, 1, 0.0, 100.0), (2, 3, 100.0, 300.0), (4, 5, 350.0, 400.0)] {
        turn(
            &mut run,
            (0, n),
            ok(ordinal, from, to).streamed(&[(from + 10.0 * f64::from(n), None), (to, None)], 4),
        );
    }
    turn(&mut run, (1, 1), ok(1, 0.0, 50.0));
    turn(&mut run, (1, 3), failed(3, 50.0, 500.0));
    turn(&mut run, (2, 1), ok(5, 400.0, 1_000.0));
    let end = ConversationEnd { turns: 3, ..ConversationEnd::default() };
    let whole = ConversationEnd {
        how: ConversationState::Completed,
        succeeded: 3,
        waited: Span::from_millis(350),
        paused: Span::from_millis(50),
        output: Some(12),
        more: true,
        ..end
    };
    talk(&mut run, 0, 400.0, ConversationEvent::Ended(whole));
    let how = ConversationState::Failed;
    let broken = ConversationEnd { how, succeeded: 1, failed: 1, skipped: 1, ..end };
    talk(&mut run, 1, 500.0, ConversationEvent::Ended(broken));
    let stopped = ConversationEnd { succeeded: 1, unsent: 2, began: at(400.0), ..end };
    talk(&mut run, 2, 1_000.0, ConversationEvent::Ended(stopped));
    run
}

#[test]
fn every_turn_that_was_expected_is_in_one_count() {
    let phase = demo().only_phase();
    let talks = phase.conversations.as_ref().expect("an agentic phase has them");
    assert_eq!((talks.begun, talks.completed, talks.failed, talks.stopped), (3, 1, 1, 1));
    assert_eq!((phase.issued, phase.succeeded, phase.failed, phase.skipped), (6, 5, 1, 1));
    assert_eq!(talks.turns_expected, phase.completed + phase.skipped + talks.turns_unsent);
    let mean = |d: Option<takt_record::Distribution>| d.expect("one was completed").mean;
    assert_eq!(mean(talks.duration_ms), 400.0);
    assert_eq!((mean(talks.waited_ms), mean(talks.paused_ms)), (350.0, 50.0));
    assert_eq!((mean(talks.output_tokens), talks.input_tokens), (12.0, None));
}

#[test]
fn times_are_kept_by_turn_number_without_the_failures() {
    let phase = demo().only_phase();
    let turns = phase.turns.as_ref().expect("an agentic phase has them");
    let counts: Vec<_> = turns.iter().map(|t| (t.turn, t.issued, t.succeeded, t.failed)).collect();
    assert_eq!(counts, [(1, 3, 3, 0), (3, 2, 1, 1), (5, 1, 1, 0)]);
    for (turn, ttft) in turns.iter().zip([10.0, 30.0, 50.0]) {
        near(turn.ttft_ms.expect("one was streamed").p.p50, ttft);
    }
    near(turns[1].latency_ms.expect("one was answered").max, 200.0);
    assert_eq!((turns[0].output_tokens, turns[0].input_tokens), (Some(4.0), None));
}

/// The later turns are in the second of two journals alone.
#[test]
fn exact_times_by_turn_stay_exact_when_journals_are_added_up() {
    let mut run = Run::new(vec![agentic(1)]);
    run.phase(0, 0.0, 1_000.0);
    for (ordinal, number) in [(0, 1), (1, 1), (2, 3), (3, 3), (4, 65)] {
        let from = 10.0 * ordinal as f64;
        let (first, end) = (from + 1.234_567, from + 123.456_789 + ordinal as f64);
        let request = ok(ordinal, from, end).streamed(&[(first, None), (end, None)], 4);
        turn(&mut run, (0, number), request);
    }
    let fold = |part: fn(u64) -> bool| {
        let mut fold = RunFold::of_values(run.plan.clone());
        for record in run.sorted() {
            let ordinal = match &record {
                Record::Issued(issued) => Some(issued.key.ordinal),
                Record::Token(token) => Some(token.key.ordinal),
                Record::Completed(done) => Some(done.key.ordinal),
                _ => None,
            };
            if ordinal.is_none_or(part) {
                fold.fold(&record);
            }
        }
        fold
    };
    let turns = |fold: &RunFold| fold.result(&Limits::default()).phases[0].turns.clone();
    let mut added = fold(|ordinal| ordinal < 2);
    added.merge(&fold(|ordinal| ordinal >= 2));
    assert_eq!(turns(&added), turns(&fold(|_| true)));
}

#[test]
fn steady_is_from_all_active_to_the_first_that_none_follows() {
    let phase = demo().only_phase();
    let steady = phase.steady.expect("two were active");
    assert_eq!((steady.start_s, steady.end_s), (0.0, 0.5));
}

#[test]
fn the_report_shows_conversations_and_ttft_by_turn() {
    let text = render(&demo().result());
    for part in [
        "skipped 1",
        "conversations 3   completed 1   failed 1   stopped 1   turns not sent 2",
        "waited for the model ms",
        "turn  answered  failed  TTFT ms p50",
        "   3         1       1        ",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
}

#[test]
fn a_phase_without_conversations_says_nothing_of_them() {
    let mut run = Run::new(vec![closed("p", 1)]);
    run.phase(0, 0.0, 100.0);
    run.add(&ok(0, 0.0, 100.0));
    let phase = run.only_phase();
    assert_eq!((phase.turns, phase.conversations), (None, None));
}
