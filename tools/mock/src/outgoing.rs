//! From jobs to bytes: slots, timers, writing, closing.

use std::io::{self, IoSlice};

use takt_engine::{Close, StreamId};
use takt_time::{Nanos, Span};

use crate::connection::{Connection, Service, Stage};
use crate::hostile::End;
use crate::incoming::HELD_MAX;
use crate::page::Page;
use crate::server::{Cx, Server, Sink, Task};

impl Server {
    /// Gives the connection's job a slot, or a place in the queue.
    pub(crate) fn queue(&mut self, stream: StreamId, at: Nanos, cx: &mut Cx<'_>) {
        if self.connections.get(stream).is_none() {
            return;
        }
        if self.waiting.is_empty() && self.running < self.site.slots() {
            self.start(stream, at, cx);
        } else {
            self.waiting.push_back(stream);
            self.counts.in_service(self.running, self.waiting.len());
        }
    }

    /// Gives free slots to those who wait.
    pub(crate) fn admit(&mut self, cx: &mut Cx<'_>) {
        self.admitting = false;
        while self.running < self.site.slots() {
            let Some(stream) = self.waiting.pop_front() else { return };
            self.start(stream, cx.now(), cx);
            self.rest(stream, cx);
        }
    }

    /// Begins the service of the connection's job.
    fn start(&mut self, stream: StreamId, at: Nanos, cx: &mut Cx<'_>) {
        let Some(connection) = self.connections.get(stream) else { return };
        let Some(job) = &mut connection.job else { return };
        job.service = Service::Running;
        self.running += 1;
        self.counts.in_service(self.running, self.waiting.len());
        let mut page = Page {
            out: &mut self.out,
            data: &mut self.data,
            held: connection.output.len(),
            ledger: connection.ledger.as_deref_mut(),
            counts: &self.counts,
        };
        job.generation.begin(at, &self.site.names, &mut page);
        if let Some(scheduling) = &mut self.scheduling {
            scheduling.submit(stream, job, at, cx);
        }
        self.go_on(stream, at, cx);
    }

    /// Writes what is due of the connection's answer at `now` and arms the timer for what is not.
    pub(crate) fn go_on(&mut self, stream: StreamId, now: Nanos, cx: &mut Cx<'_>) {
        let Some(connection) = self.connections.get(stream) else { return };
        let Some(job) = &mut connection.job else { return };
        let mut page = Page {
            out: &mut self.out,
            data: &mut self.data,
            held: connection.output.len(),
            ledger: connection.ledger.as_deref_mut(),
            counts: &self.counts,
        };
        job.generation.advance(now, BACKLOG_MAX, &self.site.names, &mut page);
        job.timer = None;
        if job.generation.is_done() && job.service == Service::Running {
            job.service = Service::Served;
            if !job.generation.keep_alive || self.config.close_after.is_some() {
                connection.stage = Stage::Leaving;
            }
            let end = job.generation.end();
            self.free_slot(cx);
            if end != End::Keep && !self.ends_badly(stream, end, cx) {
                return;
            }
        }
        self.flush(stream, cx);
        let Some(connection) = self.connections.get(stream) else { return };
        let Some(job) = &mut connection.job else { return };
        // A client that reads too slowly is gone on with when it has taken all that is held.
        if connection.output.len() <= BACKLOG_MAX
            && let Some(at) = job.generation.next_at()
        {
            job.timer = Some(cx.call_at(at, Task::Due(stream).into()));
        }
    }

    /// Lets the connection end as a fault has it, behind what is written; false when it is gone already.
    fn ends_badly(&mut self, stream: StreamId, end: End, cx: &mut Cx<'_>) -> bool {
        if end == End::ServerGone {
            self.out.clear();
            self.go_away(cx);
            return false;
        }
        let Some(connection) = self.connections.get(stream) else { return false };
        match end {
            End::Close(after) => {
                (connection.stage, connection.farewell) = (Stage::Leaving, (Close::Orderly, after));
            }
            End::Reset => {
                connection.stage = Stage::Leaving;
                connection.farewell = (Close::Reset, Span::ZERO);
            }
            End::CloseIdle(after) => {
                connection.answered += 1;
                let task = Task::LeaveIdle(stream, connection.answered);
                cx.call_at(cx.now() + after, task.into());
            }
            End::Keep | End::Hang | End::ServerGone => {}
        }
        true
    }

    /// Resets all connections and takes no further one.
    fn go_away(&mut self, cx: &mut Cx<'_>) {
        if let Some(listener) = self.listener.take() {
            cx.close(listener, Close::Orderly);
        }
        for stream in self.connections.streams() {
            self.drop_connection(stream, Close::Reset, cx);
        }
    }

    fn free_slot(&mut self, cx: &mut Cx<'_>) {
        self.running -= 1;
        self.counts.in_service(self.running, self.waiting.len());
        if !self.waiting.is_empty() && !std::mem::replace(&mut self.admitting, true) {
            cx.call_soon(Task::Admit.into());
        }
    }

    /// Leaves what is on the page to be written when its batch is read; nothing may be held before it.
    pub(crate) fn write_soon(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        let Some(connection) = self.connections.get(stream) else { return self.out.clear() };
        debug_assert!(connection.output.is_empty(), "one that holds something is busy");
        connection.output.append(&mut self.out);
        if self.answered.is_empty() {
            cx.addr().send(Task::Write.into());
        }
        self.answered.push(stream);
    }

    /// Writes what is held of a batch.
    pub(crate) fn write_answers(&mut self, cx: &mut Cx<'_>) {
        let mut answered = std::mem::take(&mut self.answered);
        for stream in answered.drain(..) {
            self.write_on(stream, cx);
            self.rest(stream, cx);
        }
        debug_assert!(self.answered.is_empty(), "writing answers makes no answer");
        self.answered = answered;
    }

    /// Writes what is on the page, behind what is held.
    pub(crate) fn flush(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        let Some(connection) = self.connections.get(stream) else { return self.out.clear() };
        if !connection.output.is_empty() {
            connection.output.append(&mut self.out);
            return;
        }
        if !self.out.is_empty() {
            let written = write(connection, &self.out, &mut self.sink, cx);
            let Ok(written) = written else {
                self.out.clear();
                return self.drop_connection(stream, Close::Reset, cx);
            };
            connection.output.extend_from_slice(&self.out[written..]);
            self.out.clear();
        }
        self.settle(stream, cx);
    }

    /// Writes what is held, now that the socket has room.
    pub(crate) fn write_on(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        let Some(connection) = self.connections.get(stream) else { return };
        if connection.output.is_empty() {
            return;
        }
        let mut output = std::mem::take(&mut connection.output);
        let Ok(written) = write(connection, &output, &mut self.sink, cx) else {
            return self.drop_connection(stream, Close::Reset, cx);
        };
        if written < output.len() {
            output.drain(..written);
            connection.output = output;
            return;
        }
        if output.capacity() <= HELD_MAX {
            output.clear();
            connection.output = output;
        }
        if connection.job.as_ref().is_some_and(|job| job.timer.is_none()) {
            self.go_on(stream, cx.now(), cx);
        } else {
            self.settle(stream, cx);
        }
    }

    /// Ends what has ended, for a connection of which all that was ready may have been written.
    #[inline]
    fn settle(&mut self, stream: StreamId, cx: &mut Cx<'_>) {
        let Some(connection) = self.connections.get(stream) else { return };
        if !connection.output.is_empty() {
            return;
        }
        if connection.job.as_ref().is_some_and(|job| job.generation.is_done()) {
            connection.job = None;
        }
        if connection.stage == Stage::Leaving && connection.job.is_none() {
            let (how, after) = connection.farewell;
            let delay = self.config.close_after.unwrap_or(Span::ZERO).max(after);
            if delay > Span::ZERO {
                connection.stage = Stage::Lingering;
                cx.call_at(cx.now() + delay, Task::Leave(stream).into());
            } else {
                self.drop_connection(stream, how, cx);
            }
        }
    }

    pub(crate) fn drop_connection(&mut self, stream: StreamId, how: Close, cx: &mut Cx<'_>) {
        let Some(mut connection) = self.connections.remove(stream) else { return };
        cx.close(stream, how);
        self.counts.closed();
        if let (Some(ledger), Some(sink)) = (&mut connection.ledger, &mut self.sink) {
            ledger.broken(sink.as_mut());
        }
        let Some(job) = connection.job else { return };
        self.counts.went_away();
        if let (Some(ticket), Some(scheduling)) = (job.ticket, &mut self.scheduling) {
            scheduling.abort(ticket, cx);
        }
        if let Some(timer) = job.timer {
            cx.cancel(timer);
        }
        match job.service {
            Service::Waiting => {
                self.waiting.retain(|&waiting| waiting != stream);
                self.counts.in_service(self.running, self.waiting.len());
            }
            Service::Running => self.free_slot(cx),
            Service::Served => {}
        }
    }
}

/// One write, its bytes noted in the ledger with the moment right before it.
#[inline]
fn write(
    connection: &mut Connection,
    bytes: &[u8],
    sink: &mut Option<Sink>,
    cx: &mut Cx<'_>,
) -> io::Result<usize> {
    let (Some(ledger), Some(sink)) = (&mut connection.ledger, sink) else {
        return cx.write(connection.stream, &[IoSlice::new(bytes)]);
    };
    let at = cx.stamp();
    let written = cx.write(connection.stream, &[IoSlice::new(bytes)])?;
    ledger.written(written, at, sink.as_mut());
    Ok(written)
}

/// Bytes of a generation held for a client that does not read; beyond it nothing is generated.
const BACKLOG_MAX: usize = 1 << 20;
