//! Connections that are being made: failures, a dead server, warmth, several endpoints.

use std::cell::Cell;
use std::io::ErrorKind as Io;
use std::rc::Rc;

use takt_engine::{Target, TlsLayer};
use takt_record::SharedPublisher;
use takt_time::Nanos;

use super::*;
use crate::api::SampleIssuer;
use crate::client::testing::{Dial, config_for_two};
use crate::client::{Balance, Client, ClientConfig, Warmed};

#[test]
fn refused_connect_fails_its_request() {
    let refuse = |_, _| Dial::Fail(us(20), Io::ConnectionRefused);
    let mut rig = Rig::new(|_| {}).dial(refuse);
    let done = check(&mut rig, "connect_refused network connect");
    assert_eq!((done.times.sent, done.times.acquired), (None, None));
}

#[test]
fn each_way_not_to_connect_has_its_name() {
    for (dial, expect) in [
        (Dial::Fail(us(20), Io::HostUnreachable), "connect_refused network connect"),
        (Dial::Fail(us(20), Io::NotFound), "connect_refused network connect"),
        (Dial::Fail(us(20), Io::TimedOut), "connect_timeout network connect"),
        (Dial::Fail(us(20), Io::AddrNotAvailable), "local_limit client connect"),
        (Dial::NoAttempt(Io::Other), "local_limit client connect"),
        (Dial::NoAttempt(Io::InvalidInput), "internal client connect"),
        (Dial::Silent, "connect_timeout network connect"),
    ] {
        let limit = |config: &mut ClientConfig| config.connect_timeout = Some(ms(2));
        let mut rig = Rig::new(limit).dial(move |_, _| dial.clone());
        check(&mut rig, expect);
        assert_eq!(rig.net().open(), 0);
    }
}

/// Speaks TLS to its only endpoint.
fn with_tls(config: &mut ClientConfig) {
    let layer = TlsLayer { config: 0, name: "here".into() };
    let to = ([127, 0, 0, 1], 1).into();
    config.endpoints[0].target = Target::Tls { to, from: None, layer };
}

#[test]
fn connecting_and_tls_are_times_of_their_own_and_nothing_is_sent_before_both() {
    let mut rig = Rig::new(with_tls).dial(|_, _| Dial::Tls(us(20), us(300)));
    let done = check(&mut rig, "ok");
    assert_eq!((done.times.connect, done.times.tls), (Some(us(20)), Some(us(300))));
    assert!(done.times.sent.expect("sent") >= done.times.issued + us(320));
    let counters = rig.client.counters();
    assert_eq!((counters.connections, counters.secured, counters.resumed), (1, 1, 0));
    // The next one finds the connection.
    let again = check(&mut rig, "ok reused");
    assert_eq!((again.times.connect, again.times.tls), (None, None));
}

#[test]
fn a_request_that_came_during_the_handshake_waited_for_what_was_left_of_it() {
    let warm = |config: &mut ClientConfig| {
        with_tls(config);
        config.warm_connections = 1;
    };
    let mut rig = Rig::new(warm).dial(|_, _| Dial::Tls(us(20), us(300)));
    rig.run(us(120));
    let done = check(&mut rig, "ok");
    assert_eq!(done.times.connect, None, "it stood already");
    let waited = done.times.tls.expect("its handshake was waited for");
    assert!(waited > us(150) && waited <= us(200), "{waited}");
}

#[test]
fn c10_a_handshake_that_fails_fails_its_requests_as_tls_and_says_why() {
    let mut rig = Rig::new(with_tls).dial(|_, _| Dial::NoTls(us(20), us(90), "expired: renew it"));
    let done = check(&mut rig, "tls server tls");
    assert_eq!(done.times.sent, None);
    let said = rig.answers()[0].error.clone().expect("words");
    assert!(said.contains("expired: renew it"), "{said}");
    assert_eq!(rig.net().open(), 0);
}

#[test]
fn a_handshake_without_end_is_ended_by_the_connect_timeout_at_its_stage() {
    let limit = |config: &mut ClientConfig| {
        with_tls(config);
        config.connect_timeout = Some(ms(2));
    };
    let mut rig = Rig::new(limit).dial(|_, _| Dial::Tls(us(20), ms(1_000)));
    check(&mut rig, "connect_timeout network tls");
    assert_eq!(rig.net().open(), 0);
}

#[test]
fn c1_a_cap_is_never_exceeded_whatever_closes_and_comes_back() {
    for (cap, load) in [(3, 4), (45, 360), (1, 50)] {
        let mut rig = Rig::new(|config| config.max_connections = Some(cap)).serve(|asked| {
            // Every third connection is closed by the server, every fifth is reset.
            match asked.connection % 15 {
                3 | 6 | 9 | 12 => vec![Act::Send(us(50), answer()), Act::End(us(60))],
                5 | 10 => vec![Act::Reset(us(30))],
                _ => vec![Act::Send(us(50), answer())],
            }
        });
        for _ in 0..load {
            rig.issue();
        }
        rig.then_issue(2_000);
        let mut most = 0;
        while (rig.answers().len() as u64) < rig.issued() {
            rig.run(us(7));
            let open = rig.net().open();
            assert!(open <= cap, "{open} open, {cap} allowed");
            most = most.max(open);
        }
        assert_eq!(most, cap, "it is used in full");
    }
}

#[test]
fn c2_when_this_machine_gives_no_more_connections_those_that_stand_serve_all() {
    // Each answer takes 1 ms and the machine gives four connections: twelve requests take three rounds.
    let mut rig = Rig::new(|_| {})
        .dial(|nth, _| if nth < 4 { Dial::Up(us(20)) } else { Dial::NoAttempt(Io::Other) })
        .serve(|_| vec![Act::Send(ms(1), answer())]);
    for _ in 0..12 {
        rig.issue();
    }
    rig.run(ms(10));
    assert_eq!(rig.answers().len(), 12);
    assert!(rig.answers().iter().all(|a| a.completed.outcome == Outcome::Ok));
    assert_eq!(rig.net().dials.len(), 5, "it was asked for a fifth once");
    assert!(rig.client.counters().limited > 0, "and the limit is told");
}

#[test]
fn c6_dead_server_slows_a_closed_loop_and_is_found_when_it_returns() {
    let back = Nanos::from_nanos(1_000_000_000) + ms(1_000);
    let mut rig = Rig::new(|_| {}).dial(move |_, now| {
        if now < back { Dial::Fail(us(20), Io::ConnectionRefused) } else { Dial::Up(us(20)) }
    });
    for _ in 0..8 {
        rig.issue();
    }
    rig.then_issue(1_000);
    rig.run(ms(1_000));
    let failed = rig.answers().len();
    // The first eight at once; then by probes after 1, 2, 4 … 64, 100, 100 … ms: seven doublings
    // (127 ms) and at most (1000 - 127) / 100 more, each of which eight wait for.
    assert!(failed <= 8 + 8 * (7 + 9), "{failed}");
    assert!(rig.net().dials.len() <= 8 + 7 + 9, "{}", rig.net().dials.len());
    rig.run(ms(200));
    assert_eq!(rig.answers().len() as u64, rig.issued());
    assert!(rig.answers()[failed + 8..].iter().all(|a| a.completed.outcome == Outcome::Ok));
}

#[test]
fn endpoint_that_is_back_is_treated_as_before() {
    let mut rig = Rig::new(|_| {}).dial(|nth, _| match nth {
        0 => Dial::Fail(us(20), Io::ConnectionRefused),
        _ => Dial::Up(us(20)),
    });
    check(&mut rig, "connect_refused network connect");
    check(&mut rig, "ok");
    for _ in 0..4 {
        rig.issue();
    }
    rig.run(ms(1));
    let dials = &rig.net().dials;
    // One of the four takes the connection that is there, three are made at once.
    assert_eq!(dials.len(), 5);
    assert!(dials[2..].iter().all(|at| *at == dials[2]));
}

#[test]
fn warm_connections_stand_before_the_first_request() {
    let mut rig = Rig::new(|config| config.warm_connections = 100);
    let warmed = Rc::new(Cell::new(None));
    let told = warmed.clone();
    rig.client.when_warm(move |result| told.set(Some(result)));
    rig.run(ms(1));
    let expect = Warmed { stand: 100, failed: 0, error: None };
    assert_eq!(warmed.take(), Some(expect.clone()));
    let mut dials = rig.net().dials.clone();
    let first = dials.iter().filter(|at| **at == dials[0]).count();
    assert_eq!(first, 32, "no more at a time");
    dials.dedup();
    assert!(dials.len() >= 100_usize.div_ceil(32));
    check(&mut rig, "ok");
    assert_eq!(rig.net().dials.len(), 100);
    // Who asks later is told at once.
    let told = warmed.clone();
    rig.client.when_warm(move |result| told.set(Some(result)));
    rig.run(us(1));
    assert_eq!(warmed.take(), Some(expect));
}

#[test]
fn warm_up_of_a_dead_server_fails_soon_and_says_why() {
    let mut rig = Rig::new(|config| config.warm_connections = 100)
        .dial(|_, _| Dial::Fail(us(20), Io::ConnectionRefused));
    let warmed = Rc::new(Cell::new(None));
    let told = warmed.clone();
    rig.client.when_warm(move |result| told.set(Some(result)));
    rig.run(ms(1));
    let result = warmed.take().expect("told");
    assert_eq!((result.stand, result.failed), (0, 100));
    assert!(result.error.expect("why").contains("refused"));
    assert_eq!(rig.net().dials.len(), 32);
}

#[test]
fn endpoints_take_turns_or_the_least_busy_one_is_taken() {
    for (balance, expect) in
        [(Balance::RoundRobin, [0, 1, 0, 1]), (Balance::LeastInFlight, [0, 1, 1, 1])]
    {
        let publisher = takt_record::Publisher::new(
            Box::new(takt_record::Discard),
            takt_record::PublisherConfig::default(),
        );
        let mut config = config_for_two();
        config.balance = balance;
        let mut client = Client::new(config, SharedPublisher::new(publisher));
        let chosen: Vec<usize> = (0..4)
            .map(|n| {
                let chosen = client.choose();
                // The first endpoint never answers; the second does at once.
                client.endpoints[0].in_flight += usize::from(n == 0);
                chosen
            })
            .collect();
        assert_eq!(chosen, expect, "{balance:?}");
    }
}
