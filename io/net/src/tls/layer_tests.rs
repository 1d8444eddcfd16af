//! The layer between two ends in memory: any split of the bytes, full pipes, small buffers.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};
use std::path::PathBuf;

use takt_engine::Then;

use super::layer::*;
use super::{ClientOptions, ClientTls, ServerOptions, ServerTls, Session, server_name};

/// One direction of a connection that takes and gives so many bytes at a time, and then none for once.
struct Pipe {
    bytes: VecDeque<u8>,
    /// Nothing more is written: what is read behind the last byte is the end.
    ended: bool,
    room: usize,
    piece: usize,
    rest: [bool; 2],
}

impl Pipe {
    fn new(piece: usize) -> Self {
        Self { bytes: VecDeque::new(), ended: false, room: 40_000, piece, rest: [false; 2] }
    }

    /// Every other call, of writers and of readers each.
    fn pause(&mut self, reads: bool) -> io::Result<()> {
        let rest = &mut self.rest[usize::from(reads)];
        *rest = !*rest;
        if *rest { Ok(()) } else { Err(ErrorKind::WouldBlock.into()) }
    }
}

struct End<'a> {
    to: &'a mut Pipe,
    from: &'a mut Pipe,
}

impl Wire for End<'_> {
    fn recv(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.from.ended && self.from.bytes.is_empty() {
            return Ok(0);
        }
        self.from.pause(true)?;
        let bytes = buf.len().min(self.from.piece).min(self.from.bytes.len());
        if bytes == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        buf.iter_mut().zip(self.from.bytes.drain(..bytes)).for_each(|(to, byte)| *to = byte);
        Ok(bytes)
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.pause(false)?;
        let room = self.to.room.saturating_sub(self.to.bytes.len());
        let taken = bytes.len().min(self.to.piece).min(room);
        self.to.bytes.extend(&bytes[..taken]);
        if taken == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(taken) }
    }
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/tls")).join(name)
}

fn both() -> [Layer; 2] {
    let ours = ClientOptions { ca: Some(file("ca.pem")), ..ClientOptions::default() };
    let theirs =
        ServerOptions { cert: file("server.pem"), key: file("server.key"), client_ca: None };
    let client =
        Session::client(ClientTls::new(&ours).unwrap().config, server_name("localhost").unwrap());
    let server = Session::server(ServerTls::new(&theirs).unwrap().config);
    [Layer::new(client.unwrap(), "localhost", None), Layer::new(server.unwrap(), "", None)]
}

/// Both ends write `bytes` and read them through pipes that split everything into `piece`s, a buffer of
/// `room` at a time; then one says goodbye.
fn exchange(piece: usize, bytes: usize, room: usize) {
    let [mut client, mut server] = both();
    let (mut up, mut down) = (Pipe::new(piece), Pipe::new(piece));
    // Both sides share the buffers, as the connections of a host do.
    let mut all = Buffers::default();
    let mut done = [false; 2];
    for _ in 0..100_000 {
        let ends = [(&mut client, true), (&mut server, false)];
        for ((layer, up_first), done) in ends.into_iter().zip(&mut done) {
            let mut end = if up_first {
                End { to: &mut up, from: &mut down }
            } else {
                End { to: &mut down, from: &mut up }
            };
            *done |= matches!(layer.shake(&mut end, false, &mut all).unwrap(), Shaken::Done { .. });
        }
        if done == [true; 2] {
            break;
        }
    }
    assert_eq!(done, [true; 2], "pieces of {piece}: the handshake ends");
    let text: Vec<u8> = (0..bytes).map(|at| (at * 7 % 251) as u8).collect();
    let (mut sent, mut got) = ([0; 2], [Vec::new(), Vec::new()]);
    let mut buf = vec![0; room];
    while got.iter().any(|got| got.len() < bytes) {
        let ends = [(&mut client, true), (&mut server, false)];
        for (side, (layer, up_first)) in ends.into_iter().enumerate() {
            let mut end = if up_first {
                End { to: &mut up, from: &mut down }
            } else {
                End { to: &mut down, from: &mut up }
            };
            let rest = &text[sent[side]..];
            let (first, second) = rest.split_at(rest.len() / 3);
            let slices = [IoSlice::new(first), IoSlice::new(second)];
            sent[side] += layer.write(&mut end, &slices, &mut all).unwrap();
            layer.flush(&mut end).unwrap();
            let (read, then) = layer.read(&mut end, &mut buf, false, &mut all).unwrap();
            assert!(then != Then::End && read <= room);
            got[side].extend_from_slice(&buf[..read]);
        }
    }
    assert!(got.iter().all(|got| *got == text), "pieces of {piece}");
    let mut end = End { to: &mut up, from: &mut down };
    while !client.say_goodbye(&mut end).unwrap() {}
    loop {
        let mut end = End { to: &mut down, from: &mut up };
        match server.read(&mut end, &mut buf, false, &mut all).unwrap() {
            (0, Then::End) => break,
            (0, _) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn any_split_of_the_bytes_gives_the_same() {
    for piece in [1, 2, 3, 5, 17, 100, 1_000, 16_406, 100_000] {
        exchange(piece, 3_000, 700);
    }
    // More than a record, more than the pipe, and a buffer far smaller than a record.
    for (piece, room) in [(1_000, 7), (9_999, 50_000), (100_000, 64 << 10)] {
        exchange(piece, 200_000, room);
    }
}

/// What a client hears first, or a server.
fn first_flight(to_client: bool) -> Vec<u8> {
    let [mut ours, mut theirs] = both();
    let (mut up, mut down) = (Pipe::new(100_000), Pipe::new(100_000));
    let mut all = Buffers::default();
    for _ in 0..4 {
        ours.shake(&mut End { to: &mut up, from: &mut down }, false, &mut all).unwrap();
        if !to_client {
            return up.bytes.into();
        }
        theirs.shake(&mut End { to: &mut down, from: &mut up }, false, &mut all).unwrap();
        if !down.bytes.is_empty() {
            return down.bytes.into();
        }
    }
    panic!("nothing was said");
}

#[test]
fn a_peer_that_ends_within_the_handshake_ends_it_wherever_it_does() {
    for (side, flight) in [(0, first_flight(true)), (1, first_flight(false))] {
        assert!(flight.len() > 100, "{} bytes", flight.len());
        for cut in 0..flight.len() {
            let mut layer = both().into_iter().nth(side).unwrap();
            let (mut to, mut from) = (Pipe::new(100_000), Pipe::new(100_000));
            from.bytes.extend(&flight[..cut]);
            from.ended = true;
            let mut all = Buffers::default();
            let mut end = End { to: &mut to, from: &mut from };
            // The pipes pause at every other call; a socket that has ended does not.
            let ended = (0..2).map(|_| layer.shake(&mut end, true, &mut all)).find(Result::is_err);
            assert!(ended.is_some(), "side {side}: cut at {cut}, it waits");
        }
    }
}
