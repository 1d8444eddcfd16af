//! The simulated network itself, and the driver: what the simulation of sessions stands on.
#![forbid(unsafe_code)]

use std::io::{ErrorKind, IoSlice};
use std::net::SocketAddr;

use takt_engine::{Actor, Close, Context, Host, Ready, StreamId, System, Target, Then};
use takt_tests::sim::{Cuts, Drive, Faults, Link, SYSTEM_PATIENCE, SimHost, World};
use takt_time::{Nanos, Span};

/// A host alone in its world, with a listener.
struct Rig {
    host: SimHost,
    at: Target,
    seen: Vec<(Nanos, Ready)>,
}

impl Rig {
    fn new(seed: u64, link: Link) -> Self {
        let mut host = World::new(seed, link).lone_host();
        let at = Target::tcp(SocketAddr::from(([10, 0, 0, 1], 80)));
        host.listen(&at).expect("nobody else does");
        Self { host, at, seen: Vec::new() }
    }

    /// Parks until something new fits, and gives it with its instant; `None` when `span` goes by.
    fn next(&mut self, span: Span, fits: impl Fn(&Ready) -> bool) -> Option<(Nanos, Ready)> {
        let until = self.host.now() + span;
        loop {
            if let Some(place) = self.seen.iter().position(|(_, told)| fits(told)) {
                return Some(self.seen.remove(place));
            }
            if self.host.now() >= until {
                return None;
            }
            let mut ready = Vec::new();
            self.host.park(Some(until), &mut ready).expect("park");
            let now = self.host.now();
            self.seen.extend(ready.into_iter().map(|told| (now, told)));
        }
    }

    /// A connection, the caller's end first.
    fn pair(&mut self) -> (StreamId, StreamId) {
        let caller = self.host.connect(&self.at).expect("an attempt");
        self.next(LONG, |told| *told == Ready::Connected(caller)).expect("it stands");
        let accepted = |told: &Ready| matches!(told, Ready::Accepted { .. });
        let (_, told) = self.next(LONG, accepted).expect("it is accepted");
        let Ready::Accepted { stream, .. } = told else { unreachable!("as asked for") };
        (caller, stream)
    }

    /// Writes all, waiting for room; how much was taken until it failed.
    fn send(&mut self, stream: StreamId, bytes: &[u8]) -> usize {
        let mut sent = 0;
        while sent < bytes.len() {
            match self.host.write(stream, &[IoSlice::new(&bytes[sent..])]) {
                Ok(taken) => sent += taken,
                Err(_) => return sent,
            }
            if sent < bytes.len() {
                self.next(LONG, |told| *told == Ready::Writable(stream));
            }
        }
        sent
    }

    /// Reads to the end or an error: each read that brought something, and how it ended.
    fn receive(&mut self, stream: StreamId) -> (Reads, Result<(), ErrorKind>) {
        let mut reads = Vec::new();
        loop {
            if self.next(LONG, |told| *told == Ready::Readable(stream)).is_none() {
                return (reads, Err(ErrorKind::TimedOut));
            }
            loop {
                let mut buf = [0; 4096];
                let outcome = match self.host.read(stream, &mut buf) {
                    Ok(outcome) => outcome,
                    Err(error) => return (reads, Err(error.kind())),
                };
                if outcome.bytes > 0 {
                    reads.push((outcome.at, buf[..outcome.bytes].to_vec()));
                }
                match outcome.then {
                    Then::More => {}
                    Then::Drained => break,
                    Then::End => return (reads, Ok(())),
                }
            }
        }
    }
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|n| (n * 31 % 251) as u8).collect()
}

/// What each read brought, and when.
type Reads = Vec<(Nanos, Vec<u8>)>;

fn joined(reads: &[(Nanos, Vec<u8>)]) -> Vec<u8> {
    reads.iter().flat_map(|(_, bytes)| bytes.clone()).collect()
}

#[test]
fn a_handshake_takes_two_latencies_for_the_caller_and_three_for_the_callee() {
    let latency = Span::from_micros(250);
    let mut rig = Rig::new(1, Link::flawless(latency));
    let began = rig.host.now();
    let caller = rig.host.connect(&rig.at).expect("an attempt");
    let (stands, _) = rig.next(LONG, |told| *told == Ready::Connected(caller)).expect("stands");
    let accepted = |told: &Ready| matches!(told, Ready::Accepted { .. });
    let (accepted, _) = rig.next(LONG, accepted).expect("accepted");
    assert_eq!(stands - began, Span::from_micros(500));
    assert_eq!(accepted - began, Span::from_micros(750));
}

#[test]
fn pieces_of_one_write_are_read_one_by_one_at_one_instant() {
    let latency = Span::from_micros(70);
    let mut rig = Rig::new(5, Link { cuts: Cuts::Apart(40), ..Link::flawless(latency) });
    let (caller, callee) = rig.pair();
    let (sent, at) = (bytes(2_000), rig.host.now());
    assert_eq!(rig.send(caller, &sent), 2_000);
    rig.host.close(caller, Close::Orderly);
    let (reads, end) = rig.receive(callee);
    assert_eq!((joined(&reads), end), (sent, Ok(())));
    assert!(reads.iter().all(|(when, _)| *when == at + latency));
    assert!(reads.len() > 50 && reads.iter().any(|(_, bytes)| bytes.len() == 1));
}

#[test]
fn a_narrow_wire_takes_its_time_and_a_small_buffer_its_turns() {
    let link = Link {
        bytes_per_s: Some(1_000_000),
        send_buffer: 3_000,
        receive_buffer: 2_000,
        ..Link::flawless(Span::from_micros(10))
    };
    let mut rig = Rig::new(2, link);
    let (caller, callee) = rig.pair();
    let (sent, at) = (bytes(20_000), rig.host.now());
    // More than both buffers: the rest is written as the callee reads.
    let first = rig.host.write(caller, &[IoSlice::new(&sent)]).expect("write");
    assert!((3_000..=5_000).contains(&first), "{first}");
    let mut got = Vec::new();
    let mut written = first;
    while got.len() < sent.len() {
        let mine = |told: &Ready| {
            matches!(told, Ready::Readable(s) if *s == callee)
                || matches!(told, Ready::Writable(s) if *s == caller)
        };
        match rig.next(LONG, mine).expect("it goes on").1 {
            Ready::Writable(_) => {
                let rest = IoSlice::new(&sent[written..]);
                written += rig.host.write(caller, &[rest]).expect("write");
            }
            _ => loop {
                let mut buf = [0; 1_500];
                let outcome = rig.host.read(callee, &mut buf).expect("read");
                got.extend_from_slice(&buf[..outcome.bytes]);
                if outcome.then == Then::Drained {
                    break;
                }
            },
        }
    }
    assert_eq!(got, sent);
    assert!(rig.host.now() - at >= Span::from_millis(20), "20,000 bytes at 1 MB/s");
}

#[test]
fn an_accident_lets_exactly_the_bytes_before_it_through() {
    let (mut resets, mut ends, mut wholes) = (0, 0, 0);
    for seed in 0..200 {
        let faults = Faults {
            reset_at_byte: 400,
            end_at_byte: 400,
            accident_bytes: 3_000,
            ..Faults::default()
        };
        let link = Link { cuts: Cuts::Apart(100), faults, ..Link::flawless(Span::from_micros(9)) };
        let mut rig = Rig::new(seed, link);
        let (caller, callee) = rig.pair();
        let sent = bytes(2_000);
        rig.send(callee, &sent);
        rig.host.close(callee, Close::Orderly);
        let (reads, end) = rig.receive(caller);
        let got = joined(&reads);
        assert_eq!(got, sent[..got.len()], "what comes is a prefix");
        match end {
            Err(kind) => {
                assert_eq!(kind, ErrorKind::ConnectionReset);
                resets += 1;
            }
            Ok(()) if got.len() < sent.len() => ends += 1,
            Ok(()) => wholes += 1,
        }
    }
    assert!(resets > 20 && ends > 20 && wholes > 20, "{resets} {ends} {wholes}");
}

#[test]
fn whoever_writes_to_a_severed_connection_is_reset() {
    let faults = Faults { end_at_byte: 1_000, accident_bytes: 1, ..Faults::default() };
    for seed in 0..20 {
        let mut rig =
            Rig::new(seed, Link { faults: faults.clone(), ..Link::flawless(Span::from_micros(9)) });
        let (caller, callee) = rig.pair();
        rig.send(caller, &bytes(50));
        rig.send(callee, &bytes(50));
        let ends = [rig.receive(caller).1, rig.receive(callee).1];
        assert!(
            ends.contains(&Ok(())) && ends.contains(&Err(ErrorKind::ConnectionReset)),
            "{ends:?}"
        );
    }
}

#[test]
fn a_full_backlog_costs_a_second_and_nothing_is_lost() {
    let mut rig = Rig::new(3, Link { backlog: 2, ..Link::flawless(Span::from_micros(1)) });
    let began = rig.host.now();
    for _ in 0..5 {
        rig.host.connect(&rig.at.clone()).expect("an attempt");
    }
    let mut stand = Vec::new();
    while stand.len() < 5 {
        let (at, _) = rig.next(LONG, |told| matches!(told, Ready::Connected(_))).expect("stands");
        stand.push((at - began).as_nanos() / 1_000_000_000);
    }
    // Two at once; one second later two more; the last after two seconds more.
    assert_eq!(stand, [0, 0, 1, 1, 3]);
}

#[test]
fn nobody_answers_from_a_black_hole() {
    let faults = Faults { black_hole: 1_000, ..Faults::default() };
    let mut rig = Rig::new(3, Link { faults, ..Link::flawless(Span::from_micros(1)) });
    let began = rig.host.now();
    rig.host.connect(&rig.at.clone()).expect("an attempt");
    let (at, told) = rig.next(LONG, |told| matches!(told, Ready::Closed(..))).expect("closed");
    assert!(matches!(told, Ready::Closed(_, ErrorKind::TimedOut)));
    assert_eq!(at - began, SYSTEM_PATIENCE);
}

/// Says nothing and waits for something, or ticks for ever.
struct Idler {
    every: Option<Span>,
}

impl Actor for Idler {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) {
        self.handle((), cx);
    }

    fn handle(&mut self, (): (), cx: &mut Context<'_, Self>) {
        match self.every {
            None => {}
            Some(Span::ZERO) => cx.call_soon(()),
            Some(every) => {
                cx.call_at(cx.now() + every, ());
            }
        }
    }
}

/// Why a driver gives up on an idler.
fn stuck(every: Option<Span>) -> String {
    let world = World::new(0, Link::flawless(Span::ZERO));
    let mut system = System::new(world.host());
    system.spawn(Idler { every }, 1);
    let mut drive = Drive::new(world.clone(), world.now() + Span::from_secs(10));
    drive.run(&mut [&mut system]).expect_err("it never stops").0
}

#[test]
fn a_driver_tells_deadlock_hanging_and_turning_in_circles_with_the_last_dispatches() {
    for (every, word) in
        [(None, "deadlock"), (Some(Span::from_secs(1)), "hung"), (Some(Span::ZERO), "livelock")]
    {
        let words = stuck(every);
        assert!(words.starts_with(word), "{words}");
        assert!(words.contains("Idler"), "{words}");
    }
}

/// Long in virtual time: whatever is to come has come.
const LONG: Span = Span::from_secs(300);
