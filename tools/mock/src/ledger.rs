//! What is kept of a connection's requests until their answers are written, for the truth.
//!
//! Answers leave in order, so each is known by the bytes of the connection's output at which its head and
//! its events end. As writes go through, [`Ledger::written`] stamps what they covered. A server without a
//! sink has no ledger.

use std::collections::VecDeque;

use takt_time::Nanos;
use takt_wire::Request;

use crate::truth::{Event, Truth, TruthSink};

/// The unfinished requests of one connection, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    entries: VecDeque<Entry>,
    /// Finished entries, for their memory.
    spare: Vec<Entry>,
    /// Bytes of output that the socket has taken since the connection began.
    written: u64,
}

#[derive(Debug)]
struct Entry {
    ordinal: u64,
    id: Vec<u8>,
    has_id: bool,
    method: Vec<u8>,
    target: Vec<u8>,
    status: u16,
    streamed: bool,
    arrived: Nanos,
    started: Option<Nanos>,
    opened: Option<Nanos>,
    first_planned: Option<Nanos>,
    last_planned: Option<Nanos>,
    tokens: u32,
    prompt_tokens: u64,
    /// Where in the output the answer begins and ends, as far as that is known.
    begin: Option<u64>,
    end: Option<u64>,
    events: Vec<Event>,
    /// Where each event ends.
    ends: Vec<u64>,
    /// Events that are written.
    settled: usize,
}

impl Ledger {
    /// A request has come.
    pub(crate) fn arrived(&mut self, ordinal: u64, request: &Request<'_>, arrived: Nanos) {
        let mut entry = self.spare.pop().unwrap_or_else(Entry::new);
        entry.reset(ordinal, arrived);
        entry.has_id = request.id.is_some();
        entry.id.extend_from_slice(request.id.unwrap_or_default());
        entry.method.extend_from_slice(request.method.as_bytes());
        entry.target.extend_from_slice(request.target.as_bytes());
        self.entries.push_back(entry);
    }

    /// What is known of the latest request.
    pub(crate) fn status(&mut self, status: u16, streamed: bool) {
        if let Some(entry) = self.entries.back_mut() {
            (entry.status, entry.streamed) = (status, streamed);
        }
    }

    /// The latest request's service has begun.
    pub(crate) fn started(&mut self, at: Nanos, prompt_tokens: u64) {
        if let Some(entry) = self.entries.back_mut() {
            (entry.started, entry.prompt_tokens) = (Some(at), prompt_tokens);
        }
    }

    /// The latest request's tokens are planned for these times.
    pub(crate) fn planned(&mut self, first: Nanos, last: Nanos) {
        if let Some(entry) = self.entries.back_mut() {
            entry.first_planned.get_or_insert(first);
            entry.last_planned = Some(last);
        }
    }

    /// An event of the latest request ends `queued` bytes behind what is written.
    pub(crate) fn event(&mut self, planned: Nanos, tokens: u32, queued: usize) {
        let end = self.written + queued as u64;
        if let Some(entry) = self.entries.back_mut() {
            entry.tokens += tokens;
            entry.events.push(Event { planned, written: Nanos::ZERO, tokens });
            entry.ends.push(end);
        }
    }

    /// The latest request's answer begins `queued` bytes behind what is written.
    pub(crate) fn begins(&mut self, queued: usize) {
        let at = self.written + queued as u64;
        // What could not be read as a request has an answer and no entry.
        if let Some(entry) = self.entries.back_mut().filter(|entry| entry.end.is_none()) {
            entry.begin = Some(at);
        }
    }

    /// The latest request's answer ends `queued` bytes behind what is written; `tokens` of it were in no
    /// event.
    pub(crate) fn ends(&mut self, queued: usize, tokens: u32) {
        let at = self.written + queued as u64;
        if let Some(entry) = self.entries.back_mut() {
            entry.end = Some(at);
            entry.tokens += tokens;
        }
    }

    /// The socket has taken `bytes` more, in a write that began at `at`.
    pub(crate) fn written(&mut self, bytes: usize, at: Nanos, sink: &mut dyn TruthSink) {
        self.written += bytes as u64;
        while let Some(entry) = self.entries.front_mut() {
            entry.settle(self.written, at);
            if entry.end.is_none_or(|end| end > self.written) {
                return;
            }
            sink.truth(&entry.truth(Some(at)));
            self.spare.extend(self.entries.pop_front());
        }
    }

    /// The connection is gone: what was not written never will be.
    pub(crate) fn broken(&mut self, sink: &mut dyn TruthSink) {
        for mut entry in self.entries.drain(..) {
            entry.cut();
            sink.truth(&entry.truth(None));
        }
    }
}

impl Entry {
    fn new() -> Self {
        Self {
            ordinal: 0,
            id: Vec::new(),
            has_id: false,
            method: Vec::new(),
            target: Vec::new(),
            status: 0,
            streamed: false,
            arrived: Nanos::ZERO,
            started: None,
            opened: None,
            first_planned: None,
            last_planned: None,
            tokens: 0,
            prompt_tokens: 0,
            begin: None,
            end: None,
            events: Vec::new(),
            ends: Vec::new(),
            settled: 0,
        }
    }

    fn reset(&mut self, ordinal: u64, arrived: Nanos) {
        let old = std::mem::replace(self, Self::new());
        let emptied = |mut bytes: Vec<u8>| {
            bytes.clear();
            bytes
        };
        (self.ordinal, self.arrived) = (ordinal, arrived);
        self.id = emptied(old.id);
        self.method = emptied(old.method);
        self.target = emptied(old.target);
        (self.events, self.ends) = (old.events, old.ends);
        self.events.clear();
        self.ends.clear();
    }

    /// Stamps what lies before byte `written`.
    fn settle(&mut self, written: u64, at: Nanos) {
        if self.begin.is_some_and(|begin| begin < written) {
            self.opened.get_or_insert(at);
        }
        while self.ends.get(self.settled).is_some_and(|&end| end <= written) {
            self.events[self.settled].written = at;
            self.settled += 1;
        }
    }

    /// Takes back the events that were not written.
    fn cut(&mut self) {
        let lost: u32 = self.events[self.settled..].iter().map(|event| event.tokens).sum();
        self.events.truncate(self.settled);
        self.tokens = if self.streamed { self.tokens - lost } else { 0 };
    }

    fn truth(&self, ended: Option<Nanos>) -> Truth<'_> {
        Truth {
            ordinal: self.ordinal,
            id: self.has_id.then_some(self.id.as_slice()),
            method: &self.method,
            target: &self.target,
            status: self.status,
            streamed: self.streamed,
            complete: ended.is_some(),
            arrived: self.arrived,
            started: self.started,
            opened: self.opened,
            ended,
            first_planned: self.first_planned,
            last_planned: self.last_planned,
            tokens: self.tokens,
            prompt_tokens: self.prompt_tokens,
            events: &self.events,
        }
    }
}
