//! Where answers are written to: the buffer that goes out with the next write, and what is noted of it.

use takt_time::Nanos;
use takt_wire::{Framing, write_event_chunk, write_head, write_named_event_chunk};

use crate::counts::Counts;
use crate::ledger::Ledger;

/// The output of one connection while something is added to it.
pub(crate) struct Page<'a> {
    /// Goes out with the next write, behind what the connection still holds.
    pub(crate) out: &'a mut Vec<u8>,
    /// Room to make one JSON text in.
    pub(crate) data: &'a mut Vec<u8>,
    /// Bytes that the connection still holds.
    pub(crate) held: usize,
    pub(crate) ledger: Option<&'a mut Ledger>,
    pub(crate) counts: &'a Counts,
}

impl Page<'_> {
    /// Bytes that are not written yet.
    pub(crate) fn queued(&self) -> usize {
        self.held + self.out.len()
    }

    /// Notes that an answer begins here.
    pub(crate) fn begins(&mut self) {
        let queued = self.queued();
        if let Some(ledger) = &mut self.ledger {
            ledger.begins(queued);
        }
    }

    /// Notes that an answer with `status` ends here, and that is all of it.
    pub(crate) fn ends(&mut self, status: u16, streamed: bool) {
        self.counts.answered(status);
        let queued = self.queued();
        if let Some(ledger) = &mut self.ledger {
            ledger.status(status, streamed);
            ledger.ends(queued, 0);
        }
    }

    /// An answer with a body, all at once.
    pub(crate) fn answer(
        &mut self,
        status: u16,
        content_type: &str,
        keep_alive: bool,
        extra: &[(&str, &str)],
        body: impl FnOnce(&mut Vec<u8>),
    ) {
        self.begins();
        self.data.clear();
        body(self.data);
        let framing = Framing::Length(self.data.len() as u64);
        write_head(self.out, status, content_type, framing, keep_alive, extra);
        self.out.extend_from_slice(self.data);
    }

    /// The head of a stream of events.
    pub(crate) fn open_stream(&mut self, content_type: &str, keep_alive: bool) {
        self.begins();
        let extra = [("Cache-Control", "no-cache")];
        write_head(self.out, 200, content_type, Framing::Chunked, keep_alive, &extra);
    }

    /// An event without tokens.
    pub(crate) fn event(&mut self, data: impl FnOnce(&mut Vec<u8>)) {
        self.data.clear();
        data(self.data);
        write_event_chunk(self.out, self.data);
    }

    /// An event with a name and without tokens.
    pub(crate) fn named_event(&mut self, name: &str, data: impl FnOnce(&mut Vec<u8>)) {
        self.data.clear();
        data(self.data);
        write_named_event_chunk(self.out, name, self.data);
    }

    /// Notes that the last event has `tokens` and was planned for `planned`.
    pub(crate) fn had_tokens(&mut self, planned: Nanos, tokens: u32) {
        self.counts.emitted(tokens);
        let queued = self.queued();
        if let Some(ledger) = &mut self.ledger {
            ledger.event(planned, tokens, queued);
        }
    }
}
