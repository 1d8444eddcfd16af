//! Requests that are given up, by the session or by a time-out.

use takt_engine::Close;
use takt_record::PhaseId;

use super::*;
use crate::api::{Cancel, SampleIssuer};
use crate::client::ClientConfig;
use crate::client::testing::{CONNECT_TAKES, Dial};

#[test]
fn cancel_answers_each_request_wherever_it_is() {
    // 0 is answered in part, 1 not at all, 2 is written in part, 3 has no connection, 4 and 5 wait
    // for the cap.
    let mut rig = Rig::new(|config| config.max_connections = Some(4))
        .dial(|nth, _| if nth == 3 { Dial::Silent } else { Dial::Up(us(20)) })
        .serve(
            |asked| {
                if asked.connection == 0 { vec![send(&answer()[..30])] } else { Vec::new() }
            },
        );
    for _ in 0..2 {
        rig.issue();
    }
    rig.run(ms(1));
    rig.net().room = 10;
    rig.net().drains = false;
    for _ in 2..6 {
        rig.issue();
    }
    rig.run(ms(1));
    rig.issue_in(PhaseId(1));
    rig.cancel(Cancel::Phase(PhaseId(0)));
    rig.run(ms(1));
    let expect: Vec<String> = (0..6).map(|n| format!("{n} unanswered")).collect();
    assert_eq!(told(&rig), expect);
    for connection in 0..3 {
        assert_eq!(rig.net().closed(connection), Some(Close::Reset), "{connection}");
    }
    assert!(rig.answers()[0].completed.times.first_byte.is_some());
    rig.cancel(Cancel::All);
    rig.cancel(Cancel::All);
    rig.run(ms(1));
    assert_eq!(rig.answers().len(), 7);
}

#[test]
fn cancel_reaches_a_second_attempt() {
    let mut rig = Rig::new(|_| {})
        .dial(|nth, _| if nth == 0 { Dial::Up(us(20)) } else { Dial::Silent })
        .serve(closes_on_second(Act::End));
    check(&mut rig, "ok");
    rig.issue();
    rig.run(ms(1));
    rig.cancel(Cancel::All);
    rig.run(ms(1));
    assert_eq!(told(&rig), ["0 ok", "1 unanswered again"]);
    assert_eq!(rig.net().open(), 0);
}

#[test]
fn shut_down_closes_everything() {
    let mut rig = Rig::new(|config| config.warm_connections = 3);
    rig.run(ms(1));
    rig.issue();
    rig.client.shut_down();
    rig.run(ms(1));
    assert_eq!(told(&rig), ["0 unanswered"]);
    assert_eq!(rig.net().open(), 0);
}

#[test]
fn time_outs_end_requests_where_they_are() {
    let limits = |config: &mut ClientConfig| {
        config.first_byte_timeout = Some(ms(1));
        config.request_timeout = Some(ms(3));
        config.max_connections = Some(2);
    };
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
    let mut rig = Rig::new(limits).serve(move |asked| {
        // The first is never answered; the second begins to be.
        if Rig::ordinal(asked) == 1 { vec![send(head)] } else { Vec::new() }
    });
    let issued = rig.now();
    rig.issue();
    rig.issue();
    rig.run(ms(10));
    assert_eq!(told(&rig), ["0 first_byte_timeout server wait", "1 request_timeout server body"]);
    let end = |n: usize| rig.answers()[n].completed.times.end;
    // The first was sent when its connection stood.
    assert_eq!(end(0), issued + CONNECT_TAKES + ms(1));
    assert_eq!(end(1), issued + ms(3));
    assert_eq!(rig.net().open(), 0);
}

#[test]
fn the_time_of_a_request_that_has_ended_runs_out_for_no_other() {
    let mut rig = Rig::new(|config| {
        config.first_byte_timeout = Some(ms(2));
        config.request_timeout = Some(ms(3));
    })
    .serve(|asked| if Rig::ordinal(asked) == 0 { vec![send(answer())] } else { Vec::new() });
    rig.issue();
    rig.run(ms(1));
    // It has the place of the first, whose time-outs are still in line.
    rig.issue();
    rig.run(us(1_500));
    assert_eq!(rig.net().open(), 1, "the time of the first is over, the second waits on");
    rig.run(ms(10));
    assert_eq!(told(&rig), ["0 ok", "1 first_byte_timeout server wait reused"]);
    let times = rig.answers()[1].completed.times;
    assert_eq!(Some(times.end), times.sent.map(|sent| sent + ms(2)));
}

#[test]
fn who_waits_for_the_cap_too_long_fails_in_the_queue() {
    let limits = |config: &mut ClientConfig| {
        config.request_timeout = Some(ms(3));
        config.max_connections = Some(1);
    };
    let mut rig = Rig::new(limits).serve(|_| vec![Act::Send(ms(100), answer())]);
    rig.issue();
    rig.run(ms(1));
    rig.issue();
    rig.run(us(1_999));
    rig.issue();
    rig.run(ms(1));
    // The first has made room for the second, which had a millisecond left on a connection.
    assert_eq!(told(&rig), ["0 request_timeout server wait"]);
    rig.run(ms(10));
    let told = told(&rig);
    assert_eq!(told[1..], ["1 request_timeout server wait", "2 request_timeout server wait"]);
    let mut rig = Rig::new(limits).serve(|_| vec![Act::Send(ms(100), answer())]);
    rig.issue();
    rig.issue();
    rig.run(ms(3));
    assert_eq!(rig.answers()[1].completed.times.sent, None);
    assert_eq!(tell(&rig.answers()[1].completed), "1 request_timeout client queue");
}

#[test]
fn time_out_of_a_second_attempt_runs_from_the_first_send() {
    let limit = |config: &mut ClientConfig| config.first_byte_timeout = Some(ms(1));
    let mut rig = Rig::new(limit).serve(|asked| match (asked.connection, asked.nth) {
        (0, 0) => vec![send(answer())],
        (0, _) => vec![Act::End(us(900))],
        _ => vec![Act::Send(us(500), answer())],
    });
    check(&mut rig, "ok");
    let issued = rig.now();
    let done = check(&mut rig, "first_byte_timeout server wait again");
    assert_eq!(done.times.end, issued + ms(1));
}

#[test]
fn who_timed_out_in_line_leaves_no_gap() {
    let limits = |config: &mut ClientConfig| {
        config.request_timeout = Some(ms(3));
        config.max_connections = Some(1);
    };
    let mut rig = Rig::new(limits).serve(|asked| match Rig::ordinal(asked) {
        0 => Vec::new(),
        _ => vec![send(answer())],
    });
    // Both time out at once; the connection that the end of the first has opened comes up for nobody.
    rig.issue();
    rig.issue();
    rig.run(ms(10));
    assert_eq!(rig.answers().len(), 2);
    check(&mut rig, "ok");
    check(&mut rig, "ok reused");
    assert_eq!(rig.net().dials.len(), 2);
}
