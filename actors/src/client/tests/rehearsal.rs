//! Rehearsals: what is gained, and that nothing else comes of them.

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
