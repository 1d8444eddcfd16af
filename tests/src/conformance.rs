//! What every [`Host`] must do, as tests that any host can run.
//!
//! A [`Bench`] makes hosts of one kind; [`host_conformance!`](crate::host_conformance) turns it into one
//! `#[test]` per case. Both ends of every connection live on one host, whose `park` moves both forward.
//! Loops end by an event, by a count, or by the host's own clock, so that a virtual clock serves as well.
//! No case says how late something may be, only that nothing comes too early and all of it comes.

use std::io::{ErrorKind, IoSlice};
use std::sync::Arc;

use takt_engine::{Close, Host, Ready, StreamId, Target, Then, Wake, Woken};
use takt_time::{Nanos, Span};

mod rig;
mod transfer;

use rig::{PATIENCE, Rig, reach};
use transfer::{BIG, Transfer};

/// Makes hosts of one kind and places for them to listen at.
pub trait Bench {
    /// The host under test.
    type H: Host;

    /// A fresh host.
    fn host(&mut self) -> Self::H;

    /// A place to listen at where nobody does yet.
    fn door(&mut self) -> Target;

    /// A place to connect to where nobody listens.
    fn nobody(&mut self) -> Target;

    /// Sees to it that `waker` is used once soon, if possible while the host is parked.
    fn wake_soon(&mut self, waker: Arc<dyn Wake>);

    /// Whether [`Close::Reset`] reaches the peer as a reset (unix sockets know none).
    fn has_resets(&self) -> bool {
        true
    }
}

/// One `#[test]` per case of the suite, against the bench that `$bench` makes.
#[macro_export]
macro_rules! host_conformance {
    ($bench:expr) => {
        $crate::host_conformance! { @each $bench;
            a_listener_on_port_zero_tells_its_port
            a_refused_connect_is_told_later_as_closed
            an_echo_comes_back
            connected_is_told_before_readable
            slices_arrive_in_their_order
            an_accepted_stream_names_its_listener
            a_short_read_is_armed_again
            a_small_buffer_reads_on_without_an_event
            the_end_comes_after_the_data
            data_and_end_in_one_go_still_give_the_end
            a_full_socket_says_when_there_is_room
            a_reset_is_not_an_end
            a_write_to_a_peer_that_is_gone_fails
            a_wake_up_ends_a_park
            a_wake_up_before_the_park_is_not_lost
            a_deadline_in_the_past_only_looks
            a_deadline_is_never_early
            a_deadline_may_move_either_way
            readiness_ends_a_long_park
            a_closed_stream_is_silent
            a_closed_attempt_is_silent
            a_closed_listener_is_silent
            an_id_is_never_used_again
            many_connections_keep_apart
            a_big_transfer_arrives_whole_both_ways
        }
    };
    (@each $bench:expr; $($case:ident)+) => {
        $(
            #[test]
            fn $case() {
                $crate::conformance::$case(&mut $bench);
            }
        )+
    };
}

/// A TCP listener on port 0 knows the port it was given, and can be reached there.
pub fn a_listener_on_port_zero_tells_its_port<B: Bench>(bench: &mut B) {
    let mut rig = Rig::new(bench);
    if let Target::Unix(_) = rig.at {
        return;
    }
    let bound = rig.host.local_addr(rig.listener).expect("a TCP listener has an address");
    assert_ne!(bound.port(), 0);
    let (client, server) = rig.pair();
    assert_eq!(rig.host.local_addr(server), Some(bound));
    assert_ne!(rig.host.local_addr(client), Some(bound));
}

/// A refusal is an event after the call, never an error of it.
pub fn a_refused_connect_is_told_later_as_closed<B: Bench>(bench: &mut B) {
    let nobody = bench.nobody();
    let mut rig = Rig::new(bench);
    let attempt = rig.host.connect(&nobody).expect("an attempt was made");
    let told = rig.next("Closed", |r| r.stream() == Some(attempt));
    let Ready::Closed(_, kind) = told else { panic!("{told:?}") };
    assert!(matches!(kind, ErrorKind::ConnectionRefused | ErrorKind::NotFound), "{kind:?}");
    rig.close(attempt, Close::Orderly);
    rig.assert_silent(attempt);
}

/// Connect, accept, request, answer.
pub fn an_echo_comes_back<B: Bench>(bench: &mut B) {
    let mut rig = Rig::new(bench);
    let (client, server) = rig.pair();
    rig.send(client, b"ping");
    assert_eq!(rig.receive(server, 4), b"ping");
    rig.send(server, b"pong");
    assert_eq!(rig.receive(client, 4), b"pong");
}

/// A server that speaks first does not overtake the news that the connection stands.
pub fn connected_is_told_before_readable<B: Bench>(bench: &mut B) {
    let mut rig = Rig::new(bench);
    let client = rig.connect();
    let server = rig.accept();
    rig.send(server, b"hello");
    // `next` puts aside what it passes over, so this sees the first event of the client.
    let first = rig.next("the first event", |r| r.stream() == Some(client));
    assert_eq!(first, Ready::Connected(client));
    assert_eq!(rig.receive(client, 5), b"hello");
}

/// One write of several slices, an empty one among them.
pub fn slices_arrive_in_their_order<B: Bench>(bench: &mut B) {
    let mut rig = Rig::new(bench);
    let (client, server) = rig.pair();
    let slices = [&b"one "[..], b"", b"two ", b"three"].map(IoSlice::new);
    assert_eq!(rig.host.write(client, &slices).expect("write"), 13);
    assert_eq!(rig.receive(server, 13), b"one two three");
}

/// Two listeners, one connection each.
pub fn an_accepted_stream_names_its_listener<B: Bench>(bench: &mut B) {
    let at = bench.door();
    let mut rig = Rig::new(bench);
    let second = rig.host.listen(&at).expect("listen");
    let reach = reach(&rig.host, second, &at);
    let client = rig.host.connect(&reach).expect("connect");
    rig.stands(client);
    let told = rig.next("Accepted", |r| matches!(r, Ready::Accepted { .. }));
    let Ready::Accepted { listener, stream } = told else { panic!("{told:?}") };
    assert_eq!(listener, second);
    rig.send(client, b"x");
    assert_eq!(rig.receive(stream, 1), b"x");
}

/// After a read that was shorter than its buffer, the next bytes are announced again.
pub fn a_short_read_is_armed_again<B: Bench>(bench: &mut B) {
    let mut rig = Rig::new(bench);
    let (client, server) = rig.pair();
    for round in 0..100_u8 {
        rig.send(client, &[round; 10]);
        assert_eq!(rig.receive(server, 10), [round; 10]);
        rig.send(server, &[round; 3]);
        assert_eq!(rig.receive(client, 3), [round; 3]);
    }
}

/// As long as a buffer is filled there may be more, and no event says so.
pub fn a_small_buffer_reads_on_without_an_event<B: Bench>(bench: &mut B) {
    let mut rig = Rig::new(bench);
    let (client, server) = rig.pair();
    let sent: Vec<u8> = (0..70).collect();
    rig.send(client, &sent);
    let mut got = Vec::new();
    while got.len() < sent.len() {
        rig.next("Readable", |r| *r == Ready::Readable(server));
        loop {
            let mut seven = [0; 7];
            let outcome = rig.host.read(server, &mut seven).expect("read");
            got.extend_from_slice(&seven[..outcome.bytes]);
            if outcome.then == Then::Drained {
                break;
            }
            assert_eq!((outcome.bytes, outcome.then), (7, Then::More));
        }
    }
    assert_eq!(got, sent);
}

/// Data, then, when it has been read, the end.
pub fn the_end_comes_after_the_data<B: Bench>(bench: &mut B) {
    let mut rig = Rig::new(bench);
    let (client, server) = rig.pair();
    rig.send(server, b"last words");
    assert_eq!(rig.receive(client, 10), b"last words");
    rig.close(server, Close::Orderly);
    assert_eq!(rig.receive_all(client), b"");
}

/// When data and end arrive together there is one event, so the reads must lead to the end.
pub fn data_and_end_in_one_go_still_give_the_end<B: Bench>(bench: &mut B) {
    let mut rig = Rig::new(bench);
    for _ in 0..20 {
        let (client, server) = rig.pair();
        rig.send(server, b"last words");
        rig.close(server, Close::Orderly);
        assert_eq!(rig.receive_all(client), b"last words");
        rig.close(client, Close::Orderly);
    }
}

/// A write that falls short is followed by `Writable` once the peer has read.
pub fn a_full_socket_says_when_there_is_room<B: Bench>(bench: &mut B) {
    let mut rig = Rig::new(bench);
    let (client, server) = rig.pair();
    for round in 0..3_u8 {
        let mut written = rig.fill(client, round);
        // What the socket holds may still move on to the peer's: go on until it stays full.
        while rig.park_for(rig.soon(), |r| *r == Ready::Writable(client)) {
            written += rig.fill(client, round);
        }
        let mut got = 0;
        let mut room = false;
        while got < written {
            got += rig.receive(server, 1).len();
            room |= rig.take(|r| *r == Ready::Writable(client)).is_some();
        }
        assert_eq!(got, written);
        if !room {
            rig.next("Writable", |r| *r == Ready::Writable(client));
        }
    }
}

/// A reset is an error of the read or a `Closed`, so that a cut-off answer is not taken for a whole one.
pub fn a_reset_is_not_an_end<B: Bench>(bench: &mut B) {
    if !bench.has_resets() {
        return;
    }
    let mut rig = Rig::new(bench);
    let (client, server) = rig.pair();
    rig.close(server, Close::Reset);
    loop {
        let told = rig.next(
            "an event",
            |r| matches!(r, Ready::Readable(s) | Ready::Closed(s, _) if *s == client),
        );
        if told != Ready::Readable(client) {
            return;
        }
        // TLS has bytes of its own, of which the owner sees none.
        match rig.host.read(client, &mut [0; 16]) {
            Err(error) => return assert_eq!(error.kind(), ErrorKind::ConnectionReset),
            Ok(outcome) => assert_eq!((outcome.bytes, outcome.then), (0, Then::Drained)),
        }
    }
}

/// The first write after the peer has gone may still be taken; one of the next ones fails.
pub fn a_write_to_a_peer_that_is_gone_fails<B: Bench>(bench: &mut B) {
    let mut rig = Rig::new(bench);
    let (client, server) = rig.pair();
    rig.close(server, Close::Orderly);
    let limit = rig.host.now() + PATIENCE;
    while rig.host.write(client, &[IoSlice::new(b"anybody?")]).is_ok() {
        assert!(rig.host.now() < limit, "writes to a closed peer go on for ever");
        rig.park(Some(rig.soon()));
    }
}

/// From another thread, or however the bench does it.
pub fn a_wake_up_ends_a_park<B: Bench>(bench: &mut B) {
    let mut rig = Rig::new(bench);
    for limit in [Some(rig.host.now() + PATIENCE), None] {
        bench.wake_soon(rig.host.waker());
        rig.park_until_remote(limit);
    }
}

/// A wake-up while nothing is parked ends the next park that would wait.
pub fn a_wake_up_before_the_park_is_not_lost<B: Bench>(bench: &mut B) {
    let mut rig = Rig::new(bench);
    let waker = rig.host.waker();
    for wake_ups in [1, 1, 5] {
        for _ in 0..wake_ups {
            waker.wake();
        }
        rig.park_until_remote(Some(rig.host.now() + PATIENCE));
    }
}

/// A park whose deadline has passed looks at the sockets and does not wait.
pub fn a_deadline_in_the_past_only_looks<B: Bench>(bench: &mut B) {
    let mut rig = Rig::new(bench);
    for until in [Nanos::ZERO, rig.host.now()] {
        assert_eq!(rig.park(Some(until)), Woken::Polled);
    }
}

/// `Woken::Deadline` means that the deadline is there.
pub fn a_deadline_is_never_early<B: Bench>(bench: &mut B) {
    let mut rig = Rig::new(bench);
    for _ in 0..20 {
        for us in [1, 3, 10, 40, 100, 250, 400, 1_000] {
            rig.park_to_the_end(rig.host.now() + Span::from_micros(us));
        }
    }
}

/// A deadline is left behind by a wake-up and replaced by an earlier or a later one.
pub fn a_deadline_may_move_either_way<B: Bench>(bench: &mut B) {
    let mut rig = Rig::new(bench);
    let waker = rig.host.waker();
    for (first_us, then_us) in [(50_000, 1_000), (500, 3_000), (1_000, 1_001), (300, 20)] {
        let start = rig.host.now();
        waker.wake();
        rig.park(Some(start + Span::from_micros(first_us)));
        rig.park_to_the_end(start + Span::from_micros(then_us));
        rig.park_to_the_end(rig.host.now() + Span::from_micros(first_us.min(2_000)));
    }
    // Without a deadline, a timer left over from before does not matter.
    waker.wake();
    rig.park(Some(rig.host.now() + Span::from_micros(500)));
    bench.wake_soon(waker);
    rig.park_until_remote(None);
}

/// Readiness comes long before a distant deadline and is what the park reports.
pub fn readiness_ends_a_long_park<B: Bench>(bench: &mut B) {
    let mut rig = Rig::new(bench);
    let (client, server) = rig.pair();
    rig.send(client, b"x");
    let limit = rig.host.now() + PATIENCE;
    while rig.take(|r| *r == Ready::Readable(server)).is_none() {
        assert_ne!(rig.park(Some(limit)), Woken::Deadline, "readiness did not end the park");
    }
}

/// No event names a stream after its close, whatever was under way.
pub fn a_closed_stream_is_silent<B: Bench>(bench: &mut B) {
    let mut rig = Rig::new(bench);
    for how in [Close::Orderly, Close::Reset] {
        let (client, server) = rig.pair();
        rig.fill(client, 1);
        rig.send(server, b"too late");
        rig.close(client, how);
        rig.assert_silent(client);
        assert!(rig.host.read(client, &mut [0; 4]).is_err());
        assert!(rig.host.write(client, &[IoSlice::new(b"x")]).is_err());
        rig.close(client, how);
        rig.close(server, how);
        rig.assert_silent(server);
    }
}

/// Nor an attempt, be it refused or made.
pub fn a_closed_attempt_is_silent<B: Bench>(bench: &mut B) {
    let nobody = bench.nobody();
    let mut rig = Rig::new(bench);
    let reach = rig.reach.clone();
    for target in [nobody, reach] {
        let attempt = rig.host.connect(&target).expect("connect");
        rig.close(attempt, Close::Orderly);
        rig.assert_silent(attempt);
    }
}

/// Nor a listener.
pub fn a_closed_listener_is_silent<B: Bench>(bench: &mut B) {
    let mut rig = Rig::new(bench);
    let reach = rig.reach.clone();
    let waiting = rig.host.connect(&reach).expect("connect");
    rig.close(rig.listener, Close::Orderly);
    rig.assert_silent(rig.listener);
    rig.close(waiting, Close::Orderly);
    let refused = rig.host.connect(&reach).expect("an attempt was made");
    let told = rig.next("Closed", |r| r.stream() == Some(refused));
    assert!(matches!(told, Ready::Closed(..)), "{told:?}");
}

/// A slot is used again under another id.
pub fn an_id_is_never_used_again<B: Bench>(bench: &mut B) {
    let mut rig = Rig::new(bench);
    let mut used = Vec::new();
    for _ in 0..50 {
        let (client, server) = rig.pair();
        for id in [client, server] {
            assert!(!used.contains(&id), "{id:?}");
            used.push(id);
            rig.close(id, Close::Orderly);
        }
    }
}

/// Each of many connections, opened at once, carries its own bytes.
pub fn many_connections_keep_apart<B: Bench>(bench: &mut B) {
    let mut rig = Rig::new(bench);
    let clients: Vec<StreamId> = (0..MANY).map(|_| rig.connect()).collect();
    let servers: Vec<StreamId> = (0..MANY).map(|_| rig.accept()).collect();
    for (number, client) in clients.iter().enumerate() {
        rig.stands(*client);
        rig.send(*client, &(number as u32).to_le_bytes());
    }
    for server in servers {
        let number = rig.receive(server, 4);
        rig.send(server, &number);
    }
    for (number, client) in clients.iter().enumerate() {
        assert_eq!(rig.receive(*client, 4), (number as u32).to_le_bytes());
    }
}

/// Both sides write at once far more than a socket holds, each as there is room.
pub fn a_big_transfer_arrives_whole_both_ways<B: Bench>(bench: &mut B) {
    let mut rig = Rig::new(bench);
    let (client, server) = rig.pair();
    let mut ends = [Transfer::new(client, server, 1), Transfer::new(server, client, 2)];
    for end in &mut ends {
        end.write(&mut rig.host);
    }
    let limit = rig.host.now() + PATIENCE;
    while ends.iter().any(|end| end.got < BIG) {
        assert!(rig.host.now() < limit, "stuck at {} and {}", ends[0].got, ends[1].got);
        rig.park(Some(limit));
        for told in std::mem::take(&mut rig.seen) {
            for end in &mut ends {
                match told {
                    Ready::Writable(s) if s == end.from => end.write(&mut rig.host),
                    Ready::Readable(s) if s == end.to => end.read(&mut rig.host),
                    _ => {}
                }
            }
        }
    }
}

/// Connections open at once.
const MANY: usize = 200;
