//! A connection: two ends, a pipe each way, and what its owners may see of it when.
//!
//! Readiness is told as the host's contract has it and no more often: a socket is announced as readable
//! once, and again only after a read that said `Drained`; a write that fell short is announced once there
//! is a good deal of room again. An owner that does not read on or write on waits for ever, so the
//! simulation finds it.

use std::io::{self, ErrorKind, IoSlice};

use takt_engine::{Close, ReadOutcome, Ready, StreamId, Target, Then};
use takt_time::{Nanos, Span};

use super::link::{Cuts, Link};
use super::pipe::{Accident, End, Mishap, Next, Pipe};
use super::queue::{ConnectionId, Event, Queue, Side};
use super::random::Chance;

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) id: ConnectionId,
    /// Where it leads.
    pub(super) to: Target,
    /// The listener that has been reached.
    pub(super) called: Option<usize>,
    stage: Stage,
    ends: [Socket; 2],
    pipes: [Pipe; 2],
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nobody has answered yet.
    Asked,
    /// The caller may use it.
    Stands,
}

/// One end as its owner has it.
#[derive(Debug)]
struct Socket {
    host: usize,
    /// Absent before it is accepted.
    stream: Option<StreamId>,
    closed: bool,
    /// The next news is told; otherwise the owner is still to read on.
    armed: bool,
    reset: bool,
}

/// What connections share.
pub(super) struct Around {
    pub(super) link: Link,
    pub(super) queue: Queue,
    pub(super) segments: Chance,
    /// What each host is to be told.
    pub(super) ready: Vec<Vec<Ready>>,
}

impl Connection {
    pub(super) fn new(id: ConnectionId, caller: (usize, StreamId), to: Target) -> Self {
        let (host, stream) = caller;
        let ends = [Socket::new(host, Some(stream)), Socket::new(host, None)];
        Self { id, to, called: None, stage: Stage::Asked, ends, pipes: Default::default() }
    }

    /// Whether both ends are gone, or the only one there was.
    pub(super) fn is_over(&self) -> bool {
        let [caller, callee] = &self.ends;
        caller.closed && (callee.closed || self.stage == Stage::Asked)
    }

    /// Plans an accident for the bytes that `from` sends.
    pub(super) fn plan(&mut self, from: Side, at_byte: u64, what: Mishap) {
        self.pipes[from as usize].accident = Some(Accident { at_byte, what });
    }

    /// There will be no connection.
    pub(super) fn refused(&mut self, kind: ErrorKind, around: &mut Around) {
        let caller = self.end(Side::Caller);
        if let Some(stream) = caller.stream {
            around.ready[caller.host].push(Ready::Closed(stream, kind));
        }
    }

    /// The caller may use it from now on; nothing of it reaches the callee before it is accepted.
    pub(super) fn stands(&mut self, accepted_at: Nanos, around: &mut Around) {
        self.stage = Stage::Stands;
        self.from(Side::Caller).begins(accepted_at);
        self.tell(Side::Caller, Ready::Connected, around);
    }

    /// The callee has it, as `stream`.
    pub(super) fn accepted(&mut self, host: usize, stream: StreamId) {
        self.ends[Side::Callee as usize] = Socket::new(host, Some(stream));
    }

    /// The listener has gone meanwhile.
    pub(super) fn nobody_accepts(&mut self, now: Nanos, around: &mut Around) {
        self.end(Side::Callee).closed = true;
        self.from(Side::Callee).die();
        self.send_reset(Side::Caller, now, around);
    }

    fn end(&mut self, side: Side) -> &mut Socket {
        &mut self.ends[side as usize]
    }

    /// The pipe into which `side` writes.
    fn from(&mut self, side: Side) -> &mut Pipe {
        &mut self.pipes[side as usize]
    }

    /// See [`takt_engine::Host::read`].
    pub(super) fn read(
        &mut self,
        side: Side,
        buf: &mut [u8],
        now: Nanos,
        around: &mut Around,
    ) -> io::Result<ReadOutcome> {
        if self.stage == Stage::Asked {
            return Err(ErrorKind::NotConnected.into());
        }
        let peer = side.other();
        let pipe = self.from(peer);
        pipe.reveal();
        let bytes = pipe.read(buf);
        if bytes > 0 && pipe.queued() > 0 {
            // The sender hears of the room.
            around.queue.push(now + around.link.latency, Event::Pump(self.id, peer));
        }
        let then = self.after_read(side, bytes, bytes == buf.len(), around)?;
        Ok(ReadOutcome { bytes, at: now, arrived: None, then })
    }

    fn after_read(
        &mut self,
        side: Side,
        bytes: usize,
        filled: bool,
        around: &mut Around,
    ) -> io::Result<Then> {
        if filled {
            return Ok(Then::More);
        }
        let ended = self.from(side.other()).end == End::Arrived;
        let reset = self.end(side).reset;
        if bytes == 0 && ended {
            return Ok(Then::End);
        }
        if bytes == 0 && reset {
            return Err(ErrorKind::ConnectionReset.into());
        }
        let more = self.from(side.other()).reveal();
        if !more && (ended || reset) && around.segments.coin() {
            // Both ways to lead a reader to the end are allowed.
            return Ok(Then::More);
        }
        self.end(side).armed = true;
        if more || ended || reset {
            self.news(side, around);
        }
        Ok(Then::Drained)
    }

    /// See [`takt_engine::Host::write`].
    pub(super) fn write(
        &mut self,
        side: Side,
        bufs: &[IoSlice<'_>],
        now: Nanos,
        around: &mut Around,
    ) -> io::Result<usize> {
        if self.stage == Stage::Asked {
            return Err(ErrorKind::NotConnected.into());
        }
        if self.end(side).reset {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let given: usize = bufs.iter().map(|buf| buf.len()).sum();
        if self.from(side).dead {
            return Ok(given);
        }
        let mut most = given;
        if given > 0 && around.segments.per_mille(around.link.faults.short_write) {
            most = around.segments.size(0, given - 1);
            let later = Span::from_nanos(around.segments.between(0, 200_000));
            around.queue.push(now + later, Event::Room(self.id, side));
        }
        let mut taken = 0;
        'all: for buf in bufs {
            let mut rest = &buf[..buf.len().min(most - taken)];
            while !rest.is_empty() {
                let pipe = self.from(side);
                if pipe.dead {
                    // It broke under this very write.
                    taken = given;
                    break 'all;
                }
                let some = rest.len().min(pipe.room(&around.link));
                if some == 0 {
                    break 'all;
                }
                pipe.write(&rest[..some]);
                (taken, rest) = (taken + some, &rest[some..]);
                self.pump(side, now, around);
            }
        }
        self.from(side).starved = taken < given;
        Ok(taken)
    }

    /// One end is closed by its owner.
    pub(super) fn close(&mut self, side: Side, how: Close, now: Nanos, around: &mut Around) {
        self.end(side).closed = true;
        self.end(side).stream = None;
        if self.stage == Stage::Asked {
            return;
        }
        self.from(side.other()).drop_arrived();
        match how {
            Close::Orderly => {
                let pipe = self.from(side);
                pipe.starved = false;
                if pipe.end == End::No {
                    pipe.end = End::Wanted;
                }
                self.pump(side, now, around);
            }
            Close::Reset => {
                self.from(side).die();
                self.send_reset(side.other(), now, around);
            }
        }
    }

    /// Moves what `from` has written as far as it goes.
    pub(super) fn pump(&mut self, from: Side, now: Nanos, around: &mut Around) {
        let id = self.id;
        loop {
            let pipe = self.from(from);
            match pipe.step(now, &around.link, &mut around.segments) {
                Next::Carry(size, at) => around.queue.push(at, Event::Arrive(id, from, size)),
                Next::Finish(at) => {
                    around.queue.push(at, Event::End(id, from));
                    break;
                }
                Next::Sever(at) => {
                    around.queue.push(at, Event::End(id, from));
                    // Whoever gets data after an end answers with a reset.
                    self.send_reset(from, now + around.link.latency, around);
                    break;
                }
                Next::Wait(at) => {
                    if std::mem::replace(&mut pipe.comes_back, at) != at {
                        around.queue.push(at, Event::Pump(id, from));
                    }
                    break;
                }
                Next::Break => return self.break_down(now, around),
                Next::Rest => break,
            }
        }
        let pipe = self.from(from);
        // As Linux has it: a third of the buffer, so that a writer is not woken for every byte.
        let enough = pipe.room(&around.link) >= around.link.send_buffer.div_ceil(3);
        if pipe.starved && (enough || pipe.dead) {
            self.room(from, around);
        }
    }

    /// A writer that fell short may go on.
    pub(super) fn room(&mut self, side: Side, around: &mut Around) {
        if std::mem::take(&mut self.from(side).starved) {
            self.tell(side, Ready::Writable, around);
        }
    }

    /// A piece sent by `from` arrives.
    pub(super) fn arrive(&mut self, from: Side, size: usize, now: Nanos, around: &mut Around) {
        let to = from.other();
        if self.end(to).closed {
            self.from(from).arrive_in_vain(size);
            if !self.from(from).dead {
                self.from(from).die();
                self.send_reset(from, now, around);
            }
            return;
        }
        let apart = around.link.cuts != Cuts::None && around.segments.per_mille(750);
        if self.from(from).arrive(size, apart) {
            self.news(to, around);
        } else if around.segments.per_mille(around.link.faults.needless_readable) {
            self.tell(to, Ready::Readable, around);
        }
        self.pump(from, now, around);
    }

    /// The end of what `from` sent arrives.
    pub(super) fn arrive_end(&mut self, from: Side, around: &mut Around) {
        self.from(from).end = End::Arrived;
        self.news(from.other(), around);
    }

    /// A reset reaches `side`.
    pub(super) fn arrive_reset(&mut self, side: Side, around: &mut Around) {
        let end = self.end(side);
        if std::mem::replace(&mut end.reset, true) {
            return;
        }
        self.from(side).die();
        self.news(side, around);
        self.room(side, around);
    }

    /// The network breaks it: both ends are reset, behind what is under way to them.
    pub(super) fn break_down(&mut self, now: Nanos, around: &mut Around) {
        for side in [Side::Caller, Side::Callee] {
            self.from(side).die();
            self.send_reset(side, now, around);
        }
    }

    fn send_reset(&mut self, to: Side, now: Nanos, around: &mut Around) {
        let at = self.from(to.other()).arrival(now, around.link.latency);
        around.queue.push(at, Event::Reset(self.id, to));
    }

    /// There is something to be read at `side`: told if its owner is not reading anyway.
    fn news(&mut self, side: Side, around: &mut Around) {
        if std::mem::take(&mut self.end(side).armed) {
            self.tell(side, Ready::Readable, around);
        }
    }

    fn tell(&mut self, side: Side, what: fn(StreamId) -> Ready, around: &mut Around) {
        let end = self.end(side);
        if let Some(stream) = end.stream {
            around.ready[end.host].push(what(stream));
        }
    }
}

impl Socket {
    fn new(host: usize, stream: Option<StreamId>) -> Self {
        Self { host, stream, closed: false, armed: true, reset: false }
    }
}
