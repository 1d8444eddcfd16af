//! Rehearsals: what is gained, and that nothing else comes of them.

use takt_record::PhaseId;

use super::*;
use crate::api::SampleIssuer;
use crate::client::testing::config_for_two;
use crate::client::{Balance, ClientConfig};

#[test]
fn the_look_at_a_connection_is_done_ahead_and_nothing_is_sent() {
    let mut rig = Rig::new(|_| {});
    check(&mut rig, "ok");
    let before = rig.net().reads;
    rig.rehearse();
    rig.run(us(100));
    assert_eq!((rig.net().reads - before, rig.net().asked.len()), (1, 1));
    check(&mut rig, "ok reused");
    assert_eq!(rig.net().reads - before, 2, "the second read brought the answer");
    // A look serves a moment that is near.
    rig.rehearse();
    rig.run(ms(20));
    let before = rig.net().reads;
    check(&mut rig, "ok reused");
    assert_eq!(rig.net().reads - before, 2);
}

#[test]
fn a_dead_connection_is_found_ahead_and_costs_no_request_a_second_attempt() {
    for act in [Act::End, Act::Reset] {
        let mut rig = Rig::new(|_| {});
        check(&mut rig, "ok");
        rig.net().act(0, act(Span::ZERO));
        rig.rehearse();
        rig.net().pass_silently();
        rig.run(us(100));
        assert_eq!(rig.net().open(), 0);
        check(&mut rig, "ok");
    }
}

#[test]
fn a_look_is_not_renewed_by_rehearsals_that_trust_it() {
    let mut rig = Rig::new(|_| {});
    check(&mut rig, "ok");
    let before = rig.net().reads;
    for _ in 0..3 {
        rig.rehearse();
        rig.run(us(400));
    }
    assert_eq!(rig.net().reads - before, 2);
}

#[test]
fn a_look_counts_for_nothing_once_an_answer_has_come() {
    let mut rig = Rig::new(|_| {});
    rig.issue();
    rig.issue();
    rig.run(ms(1));
    rig.rehearse();
    rig.run(us(100));
    rig.issue();
    rig.issue();
    rig.run(us(1));
    // The one that was looked at is the first to be used. The other is closed behind its answer, so that the endpoint
    // counts as one that may do so with any.
    let [looked_at, other] = [2, 3].map(|nth| rig.net().asked[nth].connection);
    rig.net().act(other, Act::End(us(70)));
    rig.run(us(200));
    assert_eq!((rig.answers().len(), rig.net().open()), (4, 1));
    rig.net().act(looked_at, Act::End(Span::ZERO));
    rig.issue();
    rig.net().pass_silently();
    rig.run(ms(5));
    assert_eq!(told(&rig).last().expect("ended"), "4 ok");
}

#[test]
fn where_nothing_is_sent_twice_or_nothing_was_answered_the_send_has_its_own_look() {
    let mut rig = Rig::new(|config| config.retry_stale = false);
    check(&mut rig, "ok");
    let before = rig.net().reads;
    rig.rehearse();
    rig.run(us(100));
    check(&mut rig, "ok reused");
    assert_eq!(rig.net().reads - before, 3);
    let mut rig = Rig::new(|config| config.warm_connections = 1);
    rig.run(ms(1));
    rig.rehearse();
    rig.run(us(300));
    rig.net().act(0, Act::End(Span::ZERO));
    rig.issue();
    rig.net().pass_silently();
    rig.run(ms(5));
    assert_eq!(told(&rig), ["0 ok"]);
}

#[test]
fn nothing_is_told_of_a_rehearsal_that_has_nowhere_to_go() {
    let mut rig = Rig::new(|_| {});
    check(&mut rig, "ok");
    rig.rehearse_in(PhaseId(9));
    rig.run(ms(1));
    assert_eq!((rig.answers().len(), rig.net().open()), (1, 1));
    check(&mut rig, "ok reused");
}

#[test]
fn the_request_that_is_sent_has_its_own_id() {
    let mut rig = Rig::new(|_| {});
    check(&mut rig, "ok");
    rig.rehearse();
    rig.run(us(100));
    check(&mut rig, "ok reused");
    rig.rehearse();
    rig.rehearse();
    check(&mut rig, "ok reused");
    let asked: Vec<u64> = rig.net().asked.iter().map(Rig::ordinal).collect();
    assert_eq!(asked, [0, 1, 2]);
}

#[test]
fn a_rehearsal_waits_for_no_connection_and_opens_none() {
    let mut rig = Rig::new(|config| config.max_connections = Some(1));
    rig.rehearse();
    rig.run(ms(1));
    assert_eq!(rig.net().dials.len(), 0);
    // The only connection is busy.
    rig.issue();
    rig.run(us(60));
    rig.rehearse();
    rig.issue();
    rig.rehearse();
    rig.run(ms(5));
    assert_eq!(told(&rig), ["0 ok", "1 ok reused"]);
    assert_eq!(rig.client.counters().limited, 1);
}

#[test]
fn endpoints_are_chosen_as_if_nothing_had_been_rehearsed() {
    for balance in [Balance::RoundRobin, Balance::LeastInFlight] {
        let chosen = [false, true].map(|rehearsed| {
            let two = |config: &mut ClientConfig| {
                *config = config_for_two();
                config.balance = balance;
            };
            let mut rig = Rig::new(two);
            for _ in 0..7 {
                if rehearsed {
                    rig.rehearse();
                    rig.run(us(1));
                }
                rig.issue();
                rig.run(us(40));
            }
            rig.run(ms(5));
            rig.answers().iter().map(|answer| answer.completed.endpoint).collect::<Vec<_>>()
        });
        assert_eq!(chosen[0], chosen[1], "{balance:?}");
        assert!(chosen[0].contains(&0) && chosen[0].contains(&1));
    }
}

#[test]
fn an_answer_between_rehearsal_and_request_counts_in_the_choice() {
    let chosen = [false, true].map(|rehearsed| {
        let two = |config: &mut ClientConfig| {
            *config = config_for_two();
            config.balance = Balance::LeastInFlight;
        };
        // The first endpoint answers after 300 us, the second after 50.
        let after = |asked: &Asked| us(if asked.connection == 0 { 300 } else { 50 });
        let mut rig = Rig::new(two).serve(move |asked| vec![Act::Send(after(asked), answer())]);
        rig.issue();
        rig.issue();
        rig.run(us(150));
        if rehearsed {
            rig.rehearse();
        }
        rig.run(us(300));
        rig.issue();
        rig.run(ms(5));
        rig.answers().last().expect("answered").completed.endpoint
    });
    assert_eq!(chosen, [0, 0]);
}
