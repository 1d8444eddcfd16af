//! What an answer amounts to so far: the rules behind [`super::Answer`].

use takt_time::{Nanos, Span};

use super::events::{Events, Ids, SAMPLE, shown};
use super::{AnswerEvent, Ask};
use crate::delta::{Delta, Text};
use crate::framing::{FramingError, Limits};
use crate::head::{ContentType, Framing, ResponseHead};
use crate::outcome::{FailKind, Failure, Form, Outcome, Stage};
use crate::reader::Reader;
use crate::response::ResponseParser;
use crate::sse::SseParser;

#[derive(Debug)]
pub(super) struct Run {
    ask: Ask,
    mode: Mode,
    sse: SseParser,
    /// A whole body, or the first bytes of one that may have to be shown.
    held: Vec<u8>,
    reader: Reader,
    events: Events,
    status: Option<u16>,
    content_type: ContentType,
    /// Length of the body, if the head says it.
    length: Option<u64>,
    form: Form,
    unasked_form: bool,
    failure: Option<Failure>,
    closed_early: bool,
    due: bool,
    pub(super) last_byte: Option<Nanos>,
    pub(super) idle_timeout: Option<Span>,
    pub(super) progress: bool,
    /// The body's own end has come.
    pub(super) whole: bool,
    /// The end was told.
    pub(super) ended: bool,
}

/// What is done with body bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Stream,
    Whole,
    Bytes,
    /// Of a failure: the first bytes are kept to be shown, the rest is read away.
    Sample,
    /// Nothing more is wanted.
    Discard,
}

impl Run {
    pub(super) fn new(ask: Ask, limits: Limits) -> Self {
        Self {
            ask,
            mode: Mode::Discard,
            sse: SseParser::new(limits.event),
            held: Vec::new(),
            reader: Reader::default(),
            events: Events::default(),
            status: None,
            content_type: ContentType::Absent,
            length: None,
            form: Form::None,
            unasked_form: false,
            failure: None,
            closed_early: false,
            due: false,
            last_byte: None,
            idle_timeout: None,
            progress: false,
            whole: false,
            ended: false,
        }
    }

    /// Forgets the last answer in its place: what is known of one is too much to be moved for each request.
    pub(super) fn begin(&mut self, ask: Ask) {
        let Self {
            ask: asked,
            mode,
            sse,
            held,
            reader,
            events,
            status,
            content_type,
            length,
            form,
            unasked_form,
            failure,
            closed_early,
            due,
            last_byte,
            idle_timeout,
            progress,
            whole,
            ended,
        } = self;
        *asked = ask;
        *mode = Mode::Discard;
        if *form == Form::Stream {
            sse.reset();
        }
        held.clear();
        held.shrink_to(KEPT);
        reader.reset();
        *events = Events::default();
        (*status, *content_type, *length) = (None, ContentType::Absent, None);
        (*form, *unasked_form, *failure) = (Form::None, false, None);
        (*closed_early, *due, *whole, *ended) = (false, false, false, false);
        (*last_byte, *idle_timeout, *progress) = (None, None, false);
    }

    /// The final head: decides what is done with the body.
    pub(super) fn head(
        &mut self,
        head: &ResponseHead<'_>,
        at: Nanos,
        sink: &mut impl FnMut(AnswerEvent<'_>),
    ) {
        self.progress = true;
        self.status = Some(head.status);
        self.idle_timeout = head.idle_timeout;
        self.content_type = head.content_type;
        self.length = match head.framing {
            Framing::Length(length) => Some(length),
            Framing::None | Framing::Chunked | Framing::UntilClose => None,
        };
        sink(AnswerEvent::Head { status: head.status, at });
        self.mode = self.mode_for(head);
        self.form = match self.mode {
            Mode::Stream => Form::Stream,
            Mode::Whole => Form::Whole,
            Mode::Bytes => Form::Bytes,
            Mode::Sample | Mode::Discard => Form::None,
        };
    }

    fn mode_for(&mut self, head: &ResponseHead<'_>) -> Mode {
        if !self.ask.api.accepts(head.status) {
            self.fail(FailKind::HttpStatus, status_message(head));
            return if head.encoded { Mode::Discard } else { Mode::Sample };
        }
        if !self.ask.api.reads_answers() {
            return Mode::Bytes;
        }
        if head.encoded {
            let message = "the body is compressed, which nobody asked for".to_owned();
            self.fail(FailKind::ContentType, message);
            return Mode::Discard;
        }
        match (head.content_type, self.ask.stream) {
            (ContentType::Html, _) => {
                self.fail(FailKind::ContentType, "the body is HTML".to_owned());
                Mode::Sample
            }
            (ContentType::EventStream, _) if !self.ask.api.streams() => {
                let message = "an event stream came, which the API does not have".to_owned();
                self.fail(FailKind::ContentType, message);
                Mode::Sample
            }
            (ContentType::EventStream, false) => {
                self.unasked_form = true;
                Mode::Stream
            }
            // Whole JSON where a stream was asked for may still tell of an error.
            (ContentType::Json, _) | (_, false) => Mode::Whole,
            (_, true) => Mode::Stream,
        }
    }

    /// Some bytes of the body.
    pub(super) fn body(&mut self, body: &[u8], at: Nanos, sink: &mut impl FnMut(AnswerEvent<'_>)) {
        match self.mode {
            Mode::Stream => self.stream(body, at, sink),
            Mode::Whole => {
                self.progress = true;
                let limit = self.sse.limit();
                if self.held.len() + body.len() > limit {
                    let message = format!("the answer is larger than the limit of {limit} bytes");
                    self.fail(FailKind::TooLarge, message);
                    self.mode = Mode::Discard;
                } else if self.held.is_empty() && self.length == Some(body.len() as u64) {
                    self.read_whole(body, at, sink);
                } else {
                    self.held.extend_from_slice(body);
                }
            }
            Mode::Bytes => {
                self.progress = true;
                if self.events.first_event.is_none() {
                    self.events.first_event = Some(at);
                    sink(AnswerEvent::FirstEvent { at });
                }
                if self.ask.keep_text {
                    sink(AnswerEvent::Text(Text::Body(body)));
                }
            }
            Mode::Sample => {
                self.progress = true;
                self.sample(body);
            }
            Mode::Discard => self.progress = true,
        }
    }

    fn stream(&mut self, body: &[u8], at: Nanos, sink: &mut impl FnMut(AnswerEvent<'_>)) {
        let Self { ask, sse, reader, events, progress, .. } = self;
        if events.done {
            return;
        }
        let mut failed = None;
        let fed = sse.feed(body, &mut |event| {
            *progress = true;
            if failed.is_none() {
                failed = events.event(ask, reader, event, at, sink).err();
            }
        });
        if let Some((kind, message)) = failed {
            self.fail(kind, message);
            self.mode = Mode::Discard;
        } else if let (Err(error), false) = (fed, events.done) {
            self.fail(FailKind::TooLarge, error.to_string());
            self.mode = Mode::Discard;
        } else if events.count == 0 {
            // No event yet: these bytes may be all there is to show.
            self.sample(body);
        }
    }

    /// The body's own end has come.
    pub(super) fn complete(&mut self, sink: &mut impl FnMut(AnswerEvent<'_>)) {
        self.due = true;
        match self.mode {
            Mode::Stream => {
                self.finish_stream(sink);
                if self.failure.is_none() && !self.events.is_complete() {
                    let (kind, message) = self.incomplete_stream("the body ended");
                    self.fail(kind, message);
                }
            }
            Mode::Whole => {
                let held = std::mem::take(&mut self.held);
                self.read_whole(&held, self.last_byte.unwrap_or_default(), sink);
                self.held = held;
            }
            Mode::Sample => self.show_sample(),
            Mode::Bytes | Mode::Discard => {}
        }
    }

    /// The answer cannot be read on.
    pub(super) fn broken(
        &mut self,
        error: FramingError,
        cause: &str,
        sink: &mut impl FnMut(AnswerEvent<'_>),
    ) {
        self.due = true;
        if self.mode == Mode::Sample {
            self.show_sample();
        }
        if self.failure.is_some() {
            return;
        }
        if self.mode == Mode::Stream {
            if error.is_truncation() {
                self.finish_stream(sink);
                if self.failure.is_some() {
                    return;
                }
            }
            // What comes behind `[DONE]` is nobody's concern; a finish reason makes up for an end that
            // did not come, but not for a body that is wrong.
            if self.events.done || (error.is_truncation() && self.events.is_complete()) {
                self.closed_early = true;
                return;
            }
        }
        // How the connection ended says nothing of bytes that were wrong before.
        let broke_off = error.is_truncation() && !cause.is_empty();
        let said = if broke_off { cause.to_owned() } else { error.to_string() };
        let (kind, message) = if error.is_too_large() {
            (FailKind::TooLarge, said)
        } else if !error.is_truncation() {
            (FailKind::BadFraming, said)
        } else if self.mode == Mode::Stream {
            (FailKind::Truncated, self.incomplete_stream(&said).1)
        } else {
            (FailKind::Truncated, said)
        };
        self.fail(kind, message);
    }

    /// Tells the end, once, when it is due.
    pub(super) fn end_if_due(
        &mut self,
        http: &ResponseParser,
        sink: &mut impl FnMut(AnswerEvent<'_>),
    ) {
        if !self.due || self.ended {
            return;
        }
        self.ended = true;
        let events = &self.events;
        if let Some(usage) = events.usage {
            sink(AnswerEvent::Usage(usage));
        }
        sink(AnswerEvent::End(&Outcome {
            failure: self.failure.take(),
            status: self.status,
            form: self.form,
            unasked_form: self.unasked_form,
            kinds: events.kinds,
            finish: events.finish,
            usage: events.usage,
            output: events.output(),
            first_event: events.first_event,
            first_token: events.first_token,
            first_content: events.first_content,
            last_token: events.last_token,
            last_byte: self.last_byte,
            token_events: events.token_events,
            coalesced: events.coalesced,
            body_bytes: http.body_bytes(),
            done: events.done,
            closed_early: self.closed_early,
        }));
    }

    /// Takes an event whose last blank line was left out. A part of one is not an event: when it cannot be read, the
    /// stream has just ended too early.
    fn finish_stream(&mut self, sink: &mut impl FnMut(AnswerEvent<'_>)) {
        let Self { ask, sse, reader, events, last_byte, .. } = self;
        if events.done || self.failure.is_some() || !sse.pending() {
            return;
        }
        let at = last_byte.unwrap_or_default();
        let mut failed = None;
        let finished =
            sse.finish(&mut |event| failed = events.event(ask, reader, event, at, sink).err());
        if let (Some((FailKind::ApiError, message)), Ok(())) = (failed, finished) {
            self.fail(FailKind::ApiError, message);
        }
    }

    fn incomplete_stream(&self, how: &str) -> (FailKind, String) {
        if self.events.count == 0 && self.content_type != ContentType::EventStream {
            let sample = shown(&self.held);
            return (FailKind::ContentType, format!("no event stream came: {sample}"));
        }
        let Events { count, token_events, .. } = self.events;
        let mut message = format!(
            "{how} after {count} events ({token_events} with text), with neither [DONE] nor a finish reason"
        );
        if count == 0 && !self.held.is_empty() {
            message = format!("{message}: {}", shown(&self.held));
        }
        (FailKind::Truncated, message)
    }

    fn read_whole(&mut self, data: &[u8], at: Nanos, sink: &mut impl FnMut(AnswerEvent<'_>)) {
        self.mode = Mode::Discard;
        let unexpected = self.ask.stream;
        let mut text = |text: Text<'_>| sink(AnswerEvent::Text(text));
        let keep = self.ask.keep_text && !unexpected;
        let read = self.ask.api.read_whole(data, if keep { Some(&mut text) } else { None });
        match read {
            Ok(Delta { error: Some(message), .. }) => {
                self.fail(FailKind::ApiError, message.into());
            }
            _ if unexpected => {
                let message =
                    format!("whole JSON came where a stream was asked for: {}", shown(data));
                self.fail(FailKind::ContentType, message);
            }
            Ok(delta) if !delta.choice => {
                let holds = self.ask.api.answer_holds();
                let message = format!("the answer has no {holds}: {}", shown(data));
                self.fail(FailKind::ApiError, message);
            }
            Ok(delta) => {
                self.events.kinds = delta.kinds;
                self.events.usage = delta.usage;
                self.events.ids = Ids::whole(delta.ids);
                self.events.finished(delta.finish, at, sink);
            }
            Err(error) => {
                let message = format!("the answer is not JSON ({error}): {}", shown(data));
                self.fail(FailKind::BadJson, message);
            }
        }
    }

    /// Keeps the first failure.
    fn fail(&mut self, kind: FailKind, message: String) {
        if self.failure.is_some() {
            return;
        }
        let stage = match self.status {
            None => Stage::Head,
            Some(_) if self.events.kinds.any() => Stage::Tokens,
            Some(_) => Stage::Body,
        };
        self.failure = Some(Failure { kind, stage, message });
    }

    fn sample(&mut self, body: &[u8]) {
        let room = SAMPLE.saturating_sub(self.held.len());
        self.held.extend_from_slice(&body[..room.min(body.len())]);
    }

    fn show_sample(&mut self) {
        self.mode = Mode::Discard;
        if let Some(failure) = self.failure.as_mut().filter(|_| !self.held.is_empty()) {
            failure.message = format!("{}: {}", failure.message, shown(&self.held));
        }
    }
}

fn status_message(head: &ResponseHead<'_>) -> String {
    let mut message = format!("HTTP {}", head.status);
    if let (300..400, Some(location)) = (head.status, head.location) {
        message = format!("{message} to {}, which is not followed", shown(location));
    }
    if let Some(after) = head.retry_after {
        message = format!("{message} (retry after {})", shown(after));
    }
    message
}

/// Bytes of the body buffer that stay with an idle connection.
const KEPT: usize = 64 << 10;
