//! What the server says happened to a request: the other side of a client's measurement.
//!
//! All instants are of the server's monotonic clock. On one machine that is the client's clock too
//! (`CLOCK_MONOTONIC`), so the two may be subtracted.
//!
//! A `written` stamp is read right before the call to `write` that took the last byte of what it stamps.
//! So it is never later than the arrival that a client sees, and early by the length of that call.

use takt_time::Nanos;

use crate::json;

/// Takes the truth, one request after the other, on the server's thread: hand it on, do not work on it.
pub trait TruthSink {
    /// A request has ended, well or not.
    fn truth(&mut self, line: &Truth<'_>);
}

/// The truth about one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truth<'a> {
    /// How many requests came before it.
    pub ordinal: u64,
    /// `X-Request-Id`, as sent.
    pub id: Option<&'a [u8]>,
    /// Method, as sent.
    pub method: &'a [u8],
    /// The target, as sent.
    pub target: &'a [u8],
    /// Status of the answer.
    pub status: u16,
    /// Whether the answer is a stream of events.
    pub streamed: bool,
    /// Whether all of the answer was written; if not, the client went away.
    pub complete: bool,
    /// When the read returned that made the request whole.
    pub arrived: Nanos,
    /// When service began: the arrival, or later if it waited for a slot. Absent in `instant`, for refused
    /// requests, and while waiting.
    pub started: Option<Nanos>,
    /// When the answer's head was written.
    pub opened: Option<Nanos>,
    /// When its last byte was written.
    pub ended: Option<Nanos>,
    /// The planned time of the first token, also of an answer that does not stream.
    pub first_planned: Option<Nanos>,
    /// The planned time of the last token.
    pub last_planned: Option<Nanos>,
    /// Tokens in the answer, as far as it was written (`timed`).
    pub tokens: u32,
    /// Tokens of the prompt, as `usage` states them (`timed`).
    pub prompt_tokens: u64,
    /// Written events that carry tokens, in order (`timed`). Empty for an answer that does not stream.
    pub events: &'a [Event],
}

/// A streamed event with tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it was to be written.
    pub planned: Nanos,
    /// When it was written.
    pub written: Nanos,
    /// Tokens it carries.
    pub tokens: u32,
}

impl Truth<'_> {
    /// When the first streamed token was written.
    #[must_use]
    pub fn first_written(&self) -> Option<Nanos> {
        self.events.first().map(|event| event.written)
    }

    /// When the last streamed token was written.
    #[must_use]
    pub fn last_written(&self) -> Option<Nanos> {
        self.events.last().map(|event| event.written)
    }

    /// Appends the request as one line of JSON, line end included. Instants are nanoseconds, absent ones
    /// `null`. `with_events` adds `event_stamps`: `[planned, written, tokens]` of each event.
    pub fn to_json_line(&self, out: &mut Vec<u8>, with_events: bool) {
        out.extend_from_slice(b"{\"id\":");
        match self.id {
            Some(id) => quoted(out, id),
            None => out.extend_from_slice(b"null"),
        }
        field(out, "ordinal", Some(self.ordinal));
        out.extend_from_slice(b",\"method\":");
        quoted(out, self.method);
        out.extend_from_slice(b",\"target\":");
        quoted(out, self.target);
        field(out, "status", Some(u64::from(self.status)));
        flag(out, "streamed", self.streamed);
        flag(out, "complete", self.complete);
        for (name, at) in [
            ("arrived_ns", Some(self.arrived)),
            ("started_ns", self.started),
            ("opened_ns", self.opened),
            ("first_planned_ns", self.first_planned),
            ("first_written_ns", self.first_written()),
            ("last_planned_ns", self.last_planned),
            ("last_written_ns", self.last_written()),
            ("ended_ns", self.ended),
        ] {
            field(out, name, at.map(Nanos::as_nanos));
        }
        field(out, "tokens", Some(u64::from(self.tokens)));
        field(out, "prompt_tokens", Some(self.prompt_tokens));
        field(out, "events", Some(self.events.len() as u64));
        if with_events {
            out.extend_from_slice(b",\"event_stamps\":[");
            for (index, event) in self.events.iter().enumerate() {
                out.extend_from_slice(if index == 0 { b"[" } else { b",[" });
                json::number(out, event.planned.as_nanos());
                out.push(b',');
                json::number(out, event.written.as_nanos());
                out.push(b',');
                json::number(out, u64::from(event.tokens));
                out.push(b']');
            }
            out.push(b']');
        }
        out.extend_from_slice(b"}\n");
    }
}

fn quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    json::text(out, text);
    out.push(b'"');
}

fn name(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

fn field(out: &mut Vec<u8>, called: &str, value: Option<u64>) {
    name(out, called);
    match value {
        Some(value) => json::number(out, value),
        None => out.extend_from_slice(b"null"),
    }
}

fn flag(out: &mut Vec<u8>, called: &str, value: bool) {
    name(out, called);
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_every_field_and_null_for_what_is_absent() {
        let at = Nanos::from_nanos;
        let events = [
            Event { planned: at(20), written: at(21), tokens: 1 },
            Event { planned: at(30), written: at(33), tokens: 2 },
        ];
        let truth = Truth {
            ordinal: 4,
            id: Some(b"a\"b"),
            method: b"POST",
            target: b"/v1/chat/completions",
            status: 200,
            streamed: true,
            complete: true,
            arrived: at(10),
            started: Some(at(11)),
            opened: None,
            ended: Some(at(40)),
            first_planned: Some(at(20)),
            last_planned: Some(at(30)),
            tokens: 3,
            prompt_tokens: 7,
            events: &events,
        };
        let mut out = Vec::new();
        truth.to_json_line(&mut out, true);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            concat!(
                r#"{"id":"a\"b","ordinal":4,"method":"POST","target":"/v1/chat/completions","#,
                r#""status":200,"streamed":true,"complete":true,"arrived_ns":10,"started_ns":11,"#,
                r#""opened_ns":null,"first_planned_ns":20,"first_written_ns":21,"#,
                r#""last_planned_ns":30,"last_written_ns":33,"ended_ns":40,"tokens":3,"#,
                r#""prompt_tokens":7,"events":2,"event_stamps":[[20,21,1],[30,33,2]]}"#,
                "\n"
            )
        );
    }
}
