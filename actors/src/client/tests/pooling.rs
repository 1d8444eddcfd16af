//! Connections: kept, found dead, replaced once, counted, waited for.

use takt_engine::Close;
use takt_record::Outcome;
use takt_time::Span;

use super::*;
use crate::api::SampleIssuer;
use crate::client::ClientConfig;
use crate::client::testing::{ANSWER_BODY, CONNECT_TAKES, Dial, WRITE_TAKES};

#[test]
fn connection_is_kept_and_used_again() {
    let mut rig = Rig::new(|_| {});
    let first = check(&mut rig, "ok");
    let second = check(&mut rig, "ok reused");
    assert_eq!(rig.net().dials.len(), 1);
    assert_eq!(rig.client.counters().connections, 1);
    assert_eq!(first.times.connect, Some(CONNECT_TAKES));
    assert_eq!(second.times.connect, None);
    assert_eq!(second.body_bytes, ANSWER_BODY.len() as u64);
    assert_eq!(second.status, Some(200));
}

#[test]
fn times_are_those_of_the_wire() {
    let mut rig = Rig::new(|_| {});
    let issued = rig.now();
    let times = check(&mut rig, "ok").times;
    let sent = issued + CONNECT_TAKES;
    let written = sent + WRITE_TAKES;
    // The server sees the request as the write returns.
    let end = written + us(50);
    assert_eq!((times.issued, times.acquired, times.sent), (issued, Some(sent), Some(sent)));
    assert_eq!((times.written, times.first_byte, times.end), (Some(written), Some(end), end));
}

#[test]
fn idle_connections_are_taken_last_in_first_out() {
    // Later requests are answered earlier.
    let mut rig = Rig::new(|_| {})
        .serve(|asked| vec![Act::Send(us(500 - 100 * asked.connection as u64), answer())]);
    for _ in 0..3 {
        rig.issue();
    }
    rig.run(ms(5));
    assert_eq!(rig.net().dials.len(), 3);
    rig.issue();
    rig.run(ms(5));
    // Connection 0 was answered last.
    assert_eq!(rig.net().asked.last().expect("asked").connection, 0);
}

#[test]
fn c3_dead_idle_connection_is_noticed_before_use() {
    let mut rig = Rig::new(|_| {});
    check(&mut rig, "ok");
    rig.net().act(0, Act::End(ms(1)));
    rig.run(ms(5));
    assert_eq!(rig.net().open(), 0, "closed as soon as it is seen");
    check(&mut rig, "ok");
}

#[test]
fn close_that_no_event_has_told_yet_is_found_by_a_look() {
    // Also where the endpoint is known to keep its connections, once the connection has rested.
    for (answers, rest) in [(1, ms(5)), (2, ms(11))] {
        let mut rig = Rig::new(|_| {});
        for nth in 0..answers {
            check(&mut rig, if nth == 0 { "ok" } else { "ok reused" });
        }
        rig.run(rest);
        // It arrives while the turn that issues is under way: no readiness comes before the write.
        rig.net().act(0, Act::End(Span::ZERO));
        rig.issue();
        rig.net().pass_silently();
        rig.run(ms(5));
        assert_eq!(told(&rig).last().expect("ended"), &format!("{answers} ok"));
        assert_eq!(rig.net().asked.len(), answers + 1);
    }
}

#[test]
fn bytes_that_no_event_has_told_yet_are_nobodys_answer() {
    let mut rig = Rig::new(|_| {});
    check(&mut rig, "ok");
    check(&mut rig, "ok reused");
    rig.run(ms(11));
    let unasked = b"HTTP/1.1 408 Request Timeout\r\n\r\n".to_vec();
    rig.net().act(0, Act::Send(Span::ZERO, unasked));
    rig.issue();
    rig.net().pass_silently();
    rig.run(ms(5));
    assert_eq!(told(&rig).last().expect("ended"), "2 ok");
    assert_eq!(rig.client.counters().leftover, 1);
}

#[test]
fn connection_that_never_answered_is_looked_at_though_others_are_kept() {
    let mut rig = Rig::new(|config| config.warm_connections = 2);
    rig.run(ms(1));
    check(&mut rig, "ok");
    check(&mut rig, "ok reused");
    let unused = if rig.net().asked[0].connection == 0 { 1 } else { 0 };
    rig.net().act(unused, Act::End(Span::ZERO));
    rig.issue();
    rig.issue();
    rig.net().pass_silently();
    rig.run(ms(5));
    let mut told = told(&rig);
    told.sort_unstable();
    assert_eq!(told, ["0 ok", "1 ok reused", "2 ok reused", "3 ok"]);
}

#[test]
fn an_endpoint_that_keeps_its_connections_is_read_once_a_request() {
    let mut rig = Rig::new(|_| {});
    for reads in [1, 2, 1, 1] {
        let before = rig.net().reads;
        check(&mut rig, if before == 0 { "ok" } else { "ok reused" });
        rig.run(ms(5));
        assert_eq!(rig.net().reads - before, reads);
    }
}

#[test]
fn bytes_on_an_idle_connection_close_it() {
    let mut rig = Rig::new(|_| {});
    check(&mut rig, "ok");
    rig.net().act(0, send("HTTP/1.1 408 Request Timeout\r\n\r\n"));
    rig.run(ms(1));
    assert_eq!(rig.net().open(), 0);
    assert_eq!(rig.client.counters().leftover, 1);
    check(&mut rig, "ok");
}

#[test]
fn request_that_dies_on_a_used_connection_is_sent_once_more() {
    for end in [Act::End, Act::Reset] {
        let mut rig = Rig::new(|_| {}).serve(closes_on_second(end));
        check(&mut rig, "ok");
        let issued = rig.now();
        let times = check(&mut rig, "ok again").times;
        // Its time runs from the first send, the rest is that of the second attempt.
        let died = issued + WRITE_TAKES + us(20);
        let acquired = died + CONNECT_TAKES;
        assert_eq!((times.sent, times.acquired), (Some(issued), Some(acquired)));
        assert_eq!(times.connect, Some(CONNECT_TAKES));
        assert_eq!(times.end, acquired + WRITE_TAKES + us(50));
        assert_eq!(rig.net().asked.len(), 3);
    }
}

#[test]
fn write_error_on_a_used_connection_is_a_stale_connection() {
    let mut rig = Rig::new(|_| {});
    rig.issue();
    rig.then_issue(1);
    // The reset is there when the next request is written, in the turn of the answer.
    rig.net().server = Box::new(|asked| {
        let reset = (asked.nth == 0 && asked.connection == 0).then(|| Act::Reset(us(50)));
        [send(answer())].into_iter().chain(reset).collect()
    });
    rig.net().break_silently = true;
    rig.run(ms(5));
    assert_eq!(told(&rig), ["0 ok", "1 ok again"]);
}

#[test]
fn connection_that_never_answered_is_not_stale_however_long_it_lay_in_the_pool() {
    let mut rig = Rig::new(|config| config.warm_connections = 1).serve(|asked| {
        // The server has let go of the warm one, and says so when it is written to.
        if asked.connection == 0 { vec![Act::Reset(us(20))] } else { vec![send(answer())] }
    });
    rig.run(ms(1));
    check(&mut rig, "reset network wait");
}

#[test]
fn announced_idle_time_is_not_used_to_its_end() {
    let text = "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\nhi";
    let mut rig = Rig::new(|_| {}).serve(move |_| vec![send(text)]);
    check(&mut rig, "ok");
    rig.run(ms(4_800));
    check(&mut rig, "ok reused");
    rig.run(ms(4_910));
    check(&mut rig, "ok");
    assert_eq!(rig.net().closed(0), Some(Close::Orderly));
}

#[test]
fn second_attempt_is_the_last() {
    let mut rig = Rig::new(|_| {}).serve(|asked| {
        if asked.connection == 0 && asked.nth == 0 {
            vec![send(answer())]
        } else {
            vec![Act::Reset(us(20))]
        }
    });
    check(&mut rig, "ok");
    check(&mut rig, "reset network wait again");
    assert_eq!(rig.net().asked.len(), 3);
}

#[test]
fn nothing_is_sent_twice_when_retries_are_off() {
    let off = |config: &mut ClientConfig| config.retry_stale = false;
    let mut rig = Rig::new(off).serve(closes_on_second(Act::End));
    check(&mut rig, "ok");
    check(&mut rig, "reset network wait reused");
    assert_eq!(rig.net().asked.len(), 2);
}

#[test]
fn fresh_connection_that_dies_is_no_stale_one() {
    let mut rig = Rig::new(|_| {}).serve(|_| vec![Act::Reset(us(20))]);
    let done = check(&mut rig, "reset network wait");
    assert_eq!(done.status, None);
    assert_eq!(rig.net().asked.len(), 1);
}

#[test]
fn c4_server_that_closes_after_each_answer_is_pooled_no_more() {
    for delay in [12, 56] {
        // It reads no second request.
        let mut rig = Rig::new(|_| {}).serve(move |asked| match asked.nth {
            0 => vec![send(answer()), Act::End(us(50 + delay))],
            _ => Vec::new(),
        });
        rig.issue();
        rig.then_issue(9);
        rig.run(ms(10));
        let retried = rig.answers().iter().filter(|a| a.completed.attempts == 2).count();
        assert!(rig.answers().iter().all(|a| a.completed.outcome == Outcome::Ok));
        assert_eq!(rig.answers().len(), 10);
        // Two closes make the habit; the second falls to the retried request itself.
        assert!(retried <= 2, "{:?}", told(&rig));
        let pooled = rig.net().asked.iter().filter(|asked| asked.nth > 0).count();
        assert!(pooled <= 2);
        // From the second on each is counted, whoever is first to close it.
        let counters = rig.client.counters();
        assert_eq!(counters.used_once, counters.connections - 1);
    }
}

#[test]
fn a_connection_that_answered_twice_was_not_used_once() {
    // The first connection is kept; those beside it end behind their first answers.
    let mut rig = Rig::new(|_| {}).serve(|asked| match asked.connection {
        0 => vec![send(answer())],
        _ => vec![send(answer()), Act::End(us(60))],
    });
    check(&mut rig, "ok");
    check(&mut rig, "ok reused");
    for _ in 0..4 {
        rig.issue();
    }
    rig.run(ms(5));
    check(&mut rig, "ok");
    let counters = rig.client.counters();
    assert_eq!((counters.connections, rig.net().open()), (5, 0));
    // Of four that ended so the first was no habit yet.
    assert_eq!(counters.used_once, 3);
}

#[test]
fn connections_from_before_the_habit_was_known_are_not_used() {
    let mut rig = Rig::new(|_| {}).serve(|asked| match asked.connection {
        2 => vec![send(answer())],
        _ => vec![send(answer()), Act::End(us(60))],
    });
    for _ in 0..3 {
        rig.issue();
    }
    rig.run(ms(1));
    assert_eq!(rig.net().open(), 1);
    check(&mut rig, "ok");
    assert_eq!((rig.net().open(), rig.net().dials.len()), (0, 4));
}

#[test]
fn end_that_comes_with_the_answer_keeps_the_connection_out_of_the_pool() {
    let mut rig = Rig::new(|_| {}).serve(|_| vec![send(answer()), Act::End(us(50))]);
    for _ in 0..5 {
        check(&mut rig, "ok");
        assert_eq!(rig.net().open(), 0);
    }
}

#[test]
fn without_a_cap_there_are_as_many_connections_as_requests() {
    let mut rig = Rig::new(|_| {});
    for _ in 0..500 {
        rig.issue();
    }
    rig.run(ms(5));
    assert_eq!((rig.net().dials.len(), rig.answers().len()), (500, 500));
    assert_eq!(rig.client.counters().limited, 0);
}

#[test]
fn at_the_cap_requests_wait_in_line() {
    let mut rig = Rig::new(|config| config.max_connections = Some(2));
    for _ in 0..6 {
        rig.issue();
    }
    rig.run(ms(5));
    assert_eq!(rig.net().dials.len(), 2);
    assert_eq!(rig.client.counters().limited, 4);
    let order: Vec<u64> = rig.net().asked.iter().map(Rig::ordinal).collect();
    assert_eq!(order, [0, 1, 2, 3, 4, 5]);
    let waited = rig.answers()[2].completed.times;
    assert_eq!(waited.acquired, Some(rig.answers()[0].completed.times.end));
    assert!(waited.sent >= waited.acquired);
}

#[test]
fn connection_that_comes_free_serves_who_waits_for_a_new_one() {
    // The second connect takes for ever.
    let mut rig =
        Rig::new(|_| {}).dial(|nth, _| if nth == 0 { Dial::Up(us(20)) } else { Dial::Silent });
    rig.issue();
    rig.issue();
    rig.run(ms(5));
    assert_eq!(told(&rig), ["0 ok", "1 ok reused"]);
    // And the next needs no third.
    rig.issue();
    rig.run(ms(5));
    assert_eq!((rig.answers().len(), rig.net().dials.len()), (3, 2));
}
