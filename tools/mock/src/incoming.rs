//! From bytes to answers and jobs: accepting, reading, parsing.
//!
//! A connection parses nothing while it is busy (an answer is under way, the socket is full); what is read
//! meanwhile waits in its `input`, and when that is full the socket waits.

use takt_engine::{Close, StreamId, Then};
use takt_time::Nanos;
use takt_wire::{CONTINUE, RequestParser, Step};

use crate::connection::{Connection, Job, Service, Stage};
use crate::page::Page;
use crate::server::{Cx, Server, Task};
use crate::site::{Reply, misread};

impl Server {
    pub(crate) fn accept(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        if self.connections.open() >= self.config.connections_max {
            self.counts.was_reset();
            cx.close(stream, Close::Reset);
            return;
        }
        self.connections.insert(stream, self.config.limits, self.sink.is_some());
        self.counts.opened();
    }

    /// Reads until the socket is drained, or for so long that others should have a turn.
    pub(crate) fn read_on(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        for _ in 0..READS_MAX {
            let Some(connection) = self.connections.get(stream) else { return };
            connection.unread = connection.input.len() >= INPUT_MAX;
            if connection.unread {
                return;
            }
            let Ok(outcome) = cx.read(stream, &mut self.buf) else {
                return self.drop_connection(stream, Close::Reset, cx);
            };
            if outcome.bytes > 0 {
                self.take_in(stream, outcome.bytes, outcome.at, cx);
            }
            match outcome.then {
                Then::More => {}
                Then::Drained => return,
                Then::End => {
                    if let Some(connection) = self.connections.get(stream) {
                        connection.peer_ended = true;
                    }
                    return;
                }
            }
        }
        self.read_later(stream, cx);
    }

    fn read_later(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        if let Some(connection) = self.connections.get(stream)
            && !std::mem::replace(&mut connection.soon, true)
        {
            cx.call_soon(Task::ReadOn(stream).into());
        }
    }

    /// Deals with the first `len` bytes of the buffer, which were read at `at`.
    #[inline]
    fn take_in(&mut self, stream: StreamId, len: usize, at: Nanos, cx: &mut Cx<'_>) {
        let Some(connection) = self.connections.get(stream) else { return };
        if connection.stage != Stage::Open {
            return;
        }
        connection.input_at = at;
        if connection.is_busy() || !connection.input.is_empty() {
            connection.input.extend_from_slice(&self.buf[..len]);
            return;
        }
        let buf = std::mem::take(&mut self.buf);
        let used = self.serve(stream, &buf[..len], at, cx);
        if used < len
            && let Some(connection) = self.connections.get(stream)
        {
            connection.input.extend_from_slice(&buf[used..len]);
        }
        self.buf = buf;
    }

    /// Serves what was read earlier and had to wait.
    pub(crate) fn serve_input(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        let Some(connection) = self.connections.get(stream) else { return };
        if connection.is_busy() || connection.input.is_empty() {
            return;
        }
        let (mut input, at) = (std::mem::take(&mut connection.input), connection.input_at);
        let used = self.serve(stream, &input, at, cx);
        if let Some(connection) = self.connections.get(stream) {
            input.drain(..used);
            connection.input = input;
        }
    }

    /// Looks, at the end of a call, whether a connection waits for something that no event will bring.
    #[inline]
    pub(crate) fn rest(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        let Some(connection) = self.connections.get(stream) else { return };
        if connection.peer_ended && connection.hangs() {
            return self.drop_connection(stream, Close::Orderly, cx);
        }
        if connection.is_busy() {
            return;
        }
        if !connection.input.is_empty() || connection.unread {
            self.read_later(stream, cx);
        } else if connection.peer_ended {
            self.drop_connection(stream, Close::Orderly, cx);
        }
    }

    /// Answers requests, whole since `at`, until the bytes are used or one has to wait; gives the number of
    /// bytes used.
    fn serve(&mut self, stream: StreamId, bytes: &[u8], at: Nanos, cx: &mut Cx<'_>) -> usize {
        let Some(connection) = self.connections.get(stream) else { return bytes.len() };
        let Connection { parser, output, job, ledger, stage, .. } = connection;
        let mut page = Page {
            out: &mut self.out,
            data: &mut self.data,
            held: output.len(),
            ledger: ledger.as_deref_mut(),
            counts: &self.counts,
        };
        let mut used = 0;
        while used < bytes.len()
            && *stage == Stage::Open
            && job.is_none()
            && page.out.len() < OUT_MAX
        {
            match parser.next(&bytes[used..]) {
                Ok(Step::Request { used: more, request }) => {
                    used += more;
                    if let Some(ledger) = &mut page.ledger {
                        ledger.arrived(self.requests, &request, at);
                    }
                    self.requests += 1;
                    let large = request.body.len() > KEPT_BODY_MAX;
                    match self.site.answer(&request, &mut page) {
                        Reply::Written => {
                            if !request.keep_alive || self.config.close_after.is_some() {
                                *stage = Stage::Leaving;
                            }
                        }
                        Reply::Profile { start } => {
                            if let Some(scheduling) = &mut self.scheduling {
                                scheduling.profile(start, cx.now());
                            }
                            if !request.keep_alive || self.config.close_after.is_some() {
                                *stage = Stage::Leaving;
                            }
                        }
                        Reply::Generate(generation) => {
                            let service = Service::Waiting;
                            let (timer, ticket) = (None, None);
                            *job = Some(Box::new(Job { generation, service, timer, ticket }));
                        }
                    }
                    if large {
                        // The parser would keep that room for as long as the connection lives.
                        *parser = RequestParser::new(self.config.limits);
                    }
                }
                Ok(Step::Continue { used: more }) => {
                    used += more;
                    page.out.extend_from_slice(CONTINUE);
                }
                Ok(Step::More) => {
                    used = bytes.len();
                    break;
                }
                Err(error) => {
                    misread(error, &mut page);
                    *stage = Stage::Leaving;
                }
            }
        }
        if *stage != Stage::Open {
            used = bytes.len();
        }
        let generates = job.is_some();
        let small = (1..=HELD_MAX).contains(&page.out.len());
        if small && *stage == Stage::Open && self.site.is_instant() {
            self.write_soon(stream, cx);
        } else {
            self.flush(stream, cx);
        }
        if generates {
            // Never before this call, nor before the request was there.
            self.queue(stream, at.max(cx.now()), cx);
        }
        used
    }
}

/// Reads of one connection before others have a turn.
const READS_MAX: usize = 16;
/// Bytes kept unparsed of a connection; beyond it nothing is read, and TCP holds the client back.
const INPUT_MAX: usize = 64 << 10;
/// Larger answers do not wait for others to be read: a connection has no more room of its own than this while it is fast.
pub(crate) const HELD_MAX: usize = 1 << 10;
/// Bytes of answers gathered for one write.
const OUT_MAX: usize = 256 << 10;
/// A larger body than this leaves no room behind in the parser.
const KEPT_BODY_MAX: usize = 16 << 10;
