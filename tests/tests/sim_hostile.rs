//! Whole sessions against each fault of the hostile server, in virtual time: no rule of the simulation is
//! broken however the bytes are cut, and the times that the list of cases asks for are exact.
#![forbid(unsafe_code)]

use takt_mock::{Fault, HostileConfig, Mode, TimedConfig};
use takt_record::{Completed, Outcome};
use takt_tests::sim::{Cuts, Http, Kept, Link, Load, Ran, Scenario, Transport, run};
use takt_time::{Nanos, Span};

/// Requests one after the other, to a server whose answers meet this fault: 12 tokens, the first after 20 ms,
/// the others each 5 ms.
fn hostile(fault: &str, seed: u64, requests: u64) -> Scenario {
    let mut scenario = Scenario::steady(seed, 1.0, Span::from_secs(1_000));
    let answers = TimedConfig {
        seed,
        ttft: "20ms".parse().expect("a distribution"),
        tpot: "5ms".parse().expect("a distribution"),
        tokens: "12".parse().expect("a distribution"),
        ..TimedConfig::default()
    };
    let faults = vec![fault.parse::<Fault>().expect("a fault")];
    http(&mut scenario).mode =
        Mode::Hostile(Box::new(HostileConfig { answers, faults, share: 1.0 }));
    http(&mut scenario).request_timeout = Some(Span::from_secs(10));
    scenario.phases[0].load = Load::Concurrency(1);
    scenario.phases[0].limits.requests = Some(requests);
    scenario
}

fn http(scenario: &mut Scenario) -> &mut Http {
    let Transport::Http(http) = &mut scenario.transport else { panic!("carried by HTTP") };
    http
}

fn ran(scenario: &Scenario) -> Ran {
    run(scenario).unwrap_or_else(|failed| panic!("{failed}"))
}

fn completed(ran: &Ran) -> Vec<Completed> {
    let ends = ran.records.iter().filter_map(|record| match record {
        Kept::Completed(completed) => Some(**completed),
        _ => None,
    });
    ends.collect()
}

/// From the send of the first request to a moment of its answer, less the way there and back.
fn since_sent(fault: &str, of: fn(&Completed) -> Option<Nanos>) -> Span {
    let mut scenario = hostile(fault, 1, 1);
    scenario.link = Link::flawless(Span::from_millis(1));
    let done = completed(&ran(&scenario))[0];
    let at = of(&done).expect("it came");
    let there_and_back = Span::from_millis(2);
    at.saturating_since(done.times.sent.expect("sent") + there_and_back)
}

#[test]
fn every_fault_breaks_no_rule_however_its_bytes_are_cut() {
    for row in Fault::all() {
        for seed in 0..6 {
            let mut scenario = hostile(row.name, seed, 12);
            scenario.phases[0].load = Load::Concurrency(4);
            scenario.phases[0].stream = seed % 2 == 0;
            if let Mode::Hostile(hostile) = &mut http(&mut scenario).mode {
                hostile.share = if seed < 4 { 1.0 } else { 0.5 };
            }
            scenario.link.cuts =
                [Cuts::None, Cuts::Apart(1 + seed as usize * 40)][usize::from(seed > 1)];
            // A torn answer of a large size by single bytes would be all that there is to do.
            if row.name == "big-event" || row.name == "huge-head" {
                scenario.link.cuts = Cuts::Apart(1_400);
            }
            let ends = completed(&ran(&scenario));
            assert_eq!(ends.len(), 12, "{} {seed}", row.name);
        }
    }
}

#[test]
fn half_of_the_answers_spoiled_leave_the_other_half_as_it_was() {
    let mut scenario = hostile("error-in-stream", 3, 200);
    let Mode::Hostile(config) = &mut http(&mut scenario).mode else { panic!("hostile") };
    config.share = 0.5;
    let ends = completed(&ran(&scenario));
    let (good, bad): (Vec<Completed>, Vec<Completed>) =
        ends.into_iter().partition(|end| end.outcome == Outcome::Ok);
    assert!(good.len() > 70 && bad.len() > 70, "{} and {}", good.len(), bad.len());
    for end in good {
        let first = end.times.first_token.expect("tokens") - end.times.sent.expect("sent");
        assert_eq!((end.tokens.events, end.tokens.output), (12, Some(12)));
        assert!(first >= Span::from_millis(20) && first < Span::from_millis(21), "{first}");
    }
}

#[test]
fn f4_the_role_chunk_is_not_the_first_token_and_its_time_is_kept_apart() {
    let at = |of| since_sent("role-first=1300ms", of);
    assert_eq!(at(|done| done.times.first_event), Span::ZERO);
    assert_eq!(at(|done| done.times.first_token), Span::from_millis(1_300));
}

#[test]
fn f6_the_first_token_is_the_first_reasoning_and_the_first_content_comes_apart() {
    for fault in ["reasoning-first=3", "reasoning-key=3"] {
        assert_eq!(since_sent(fault, |done| done.times.first_token), Span::from_millis(20));
        assert_eq!(since_sent(fault, |done| done.times.first_content), Span::from_millis(35));
    }
}

#[test]
fn t5_usage_that_comes_late_moves_the_end_and_not_the_last_token() {
    let at = |of| since_sent("late-usage=20ms", of);
    assert_eq!(at(|done| done.times.last_token), Span::from_millis(20 + 11 * 5));
    assert_eq!(at(|done| Some(done.times.end)), Span::from_millis(20 + 11 * 5 + 20));
}

#[test]
fn t6_two_events_in_one_read_are_coalesced_and_no_gap_is_invented() {
    let mut scenario = hostile("two-events-a-read=2", 1, 10);
    scenario.link = Link::flawless(Span::from_millis(1));
    let ran = ran(&scenario);
    let phase = &ran.result.phases[0];
    let tokens = phase.tokens.as_ref().expect("counted");
    assert_eq!((tokens.events, tokens.coalesced), (120, 60));
    let gaps = phase.event_gap_ms.as_ref().expect("gaps");
    // Six reads an answer: five gaps of two tokens' time, and none of zero.
    assert_eq!((gaps.count, gaps.min, gaps.max), (50, 10.0, 10.0));
}

#[test]
fn t2_t3_one_token_has_no_tpot_and_a_failure_no_times() {
    let phase = |fault| ran(&hostile(fault, 1, 5)).result.phases.remove(0);
    let one = phase("one-token");
    assert_eq!((one.succeeded, one.tpot_ms.is_none()), (5, true));
    let failed = phase("json-429");
    assert_eq!((failed.failed, failed.tpot_ms.is_none(), failed.itl_ms.is_none()), (5, true, true));
}

#[test]
fn c7_a_server_without_nodelay_is_named() {
    let named = |fault| {
        let mut scenario = hostile(fault, 1, 20);
        scenario.link = Link::flawless(Span::from_micros(50));
        let reasons = ran(&scenario).result.verdict.reasons;
        reasons.iter().any(|reason| reason.name == "delayed_ack")
    };
    assert!(named("no-nodelay") && !named("crlf"));
}
