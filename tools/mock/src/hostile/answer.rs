//! One answer in parts: what a fault changes.

use takt_time::{Nanos, Span};
use takt_wire::{ContentType, Framing, Part as WirePart, ResponseParser};

use super::edit;
use super::script::Rehearsed;
use crate::instant::EVENT_STREAM;

/// An answer before it becomes bytes.
#[derive(Debug)]
pub(crate) struct Answer {
    /// How many generating requests came before its own.
    pub(super) ordinal: u64,
    /// Bytes before the head.
    pub(super) prelude: Vec<u8>,
    /// When the head leaves.
    pub(super) head_at: Span,
    /// Whether there is a head at all.
    pub(super) has_head: bool,
    pub(super) status: u16,
    pub(super) content_type: String,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Body,
    /// In the order in which they leave; their times never go back.
    pub(super) parts: Vec<Part>,
    pub(super) trailers: Vec<(&'static str, &'static str)>,
    /// Bytes behind the end.
    pub(super) after: Vec<u8>,
    pub(super) style: Style,
    pub(super) tear: Option<Tear>,
    pub(super) end: End,
}

/// How the body's end is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// As chunks; each part is one.
    Chunked,
    /// Chunks whose last one never comes.
    ChunkedOpen,
    /// By its length.
    Length,
    /// By a length that is not its own.
    WrongLength(u64),
    /// By the connection's end.
    UntilClose,
}

/// One part of the body: what leaves together.
#[derive(Debug)]
pub(super) struct Part {
    /// From the start of service.
    pub(super) at: Span,
    pub(super) what: What,
    /// Tokens in it.
    pub(super) tokens: u32,
    pub(super) bytes: Bytes,
}

/// What a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// An event without text before the end: a role.
    Other,
    /// Text.
    Token,
    /// Why it ended.
    Finish,
    /// Counts without choices.
    Usage,
    /// `[DONE]`
    Done,
    /// A whole body.
    Whole,
}

#[derive(Clone, Debug)]
pub(super) enum Bytes {
    /// An event: its lines other than `data`, and its data.
    Event { fields: Vec<String>, data: String },
    /// A piece of the body.
    Raw(Vec<u8>),
    /// Bytes that get no framing.
    Unframed(Vec<u8>),
}

/// How events are spelled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    pub(super) line_end: &'static str,
    pub(super) colon: &'static str,
    /// Each comma of the data that stands between values begins a new `data` line.
    pub(super) many_data_lines: bool,
}

/// Where bytes that leave together are torn apart.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tear {
    /// Behind so many bytes.
    Every(usize),
    /// Within each character of several bytes.
    Characters,
}

/// What becomes of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum End {
    /// It is kept, if the client wants it.
    #[default]
    Keep,
    /// It is closed so long after the last byte, although the head promised to keep it.
    Close(Span),
    /// It is closed when nothing was asked for so long.
    CloseIdle(Span),
    /// It is reset, a moment after the last byte.
    Reset,
    /// It stays, and nothing follows.
    Hang,
    /// The server goes away: all connections are reset, and no further one is taken.
    ServerGone,
}

impl Answer {
    /// Reads what a good server would have sent from `began` on.
    pub(super) fn read(good: &[Rehearsed], began: Nanos, ordinal: u64) -> Self {
        let mut parser = ResponseParser::new(takt_wire::Limits::default());
        let (mut streamed, mut status, mut parts) = (false, 200, Vec::new());
        for piece in good {
            let (at, mut body) = (piece.at.saturating_since(began), Vec::new());
            // What we have written is read to its end.
            let _ = parser.feed(&piece.bytes, &mut |part| match part {
                WirePart::Head(head) => {
                    streamed = head.content_type == ContentType::EventStream;
                    status = head.status;
                }
                WirePart::Body(bytes) => body.extend_from_slice(bytes),
                WirePart::End => {}
            });
            if streamed {
                events(&body, at, piece.tokens, &mut parts);
            } else if !body.is_empty() {
                let (what, tokens) = (What::Whole, piece.tokens);
                parts.push(Part { at, what, tokens, bytes: Bytes::Raw(body) });
            }
        }
        Self {
            ordinal,
            prelude: Vec::new(),
            head_at: good.first().map_or(Span::ZERO, |piece| piece.at.saturating_since(began)),
            has_head: true,
            status,
            content_type: if streamed { EVENT_STREAM } else { "application/json" }.to_owned(),
            headers: Vec::new(),
            body: if streamed { Body::Chunked } else { Body::Length },
            parts,
            trailers: Vec::new(),
            after: Vec::new(),
            style: Style { line_end: "\n", colon: ": ", many_data_lines: false },
            tear: None,
            end: End::Keep,
        }
    }

    /// Whether it is a stream of events.
    pub(super) fn streamed(&self) -> bool {
        self.content_type == EVENT_STREAM
    }

    /// Becomes a whole answer of this status, type and text.
    pub(super) fn replace(&mut self, status: u16, content_type: &str, text: &str) {
        (self.status, self.content_type) = (status, content_type.to_owned());
        self.body = Body::Length;
        let bytes = Bytes::Raw(text.as_bytes().to_vec());
        self.parts = vec![Part { at: self.head_at, what: What::Whole, tokens: 0, bytes }];
    }

    /// Becomes bytes that are no HTTP, or none.
    pub(super) fn without_head(&mut self, bytes: &[u8]) {
        self.replace(self.status, "", "");
        self.parts.clear();
        (self.has_head, self.prelude) = (false, bytes.to_vec());
    }

    /// Places of the events with text.
    pub(super) fn tokens(&self) -> Vec<usize> {
        (0..self.parts.len()).filter(|&at| self.parts[at].what == What::Token).collect()
    }

    /// Behind how many parts the first `tokens` events with text have left.
    pub(super) fn behind(&self, tokens: u64) -> usize {
        let places = self.tokens();
        let last = places.len().min(usize::try_from(tokens).unwrap_or(usize::MAX));
        last.checked_sub(1).map_or(0, |nth| places[nth] + 1)
    }

    /// Ends behind so many events with text; a whole answer in its middle. What was promised stays so.
    pub(super) fn cut(&mut self, tokens: u64, end: End) {
        self.end = end;
        if self.streamed() {
            self.parts.truncate(self.behind(tokens));
            self.body = Body::ChunkedOpen;
        } else if let Some(Part { bytes: Bytes::Raw(body), .. }) = self.parts.last_mut() {
            self.body = Body::WrongLength(body.len() as u64);
            body.truncate(body.len() / 2);
        }
    }

    /// Puts an event before part `place`, at the time of the one before it.
    pub(super) fn insert(&mut self, place: usize, data: impl Into<String>) {
        let before = place.checked_sub(1).map(|before| self.parts[before].at);
        let at = before.unwrap_or(self.head_at);
        let bytes = Bytes::Event { fields: Vec::new(), data: data.into() };
        self.parts.insert(place, Part { at, what: What::Other, tokens: 0, bytes });
    }

    /// Bytes of the body.
    pub(super) fn length(&self) -> u64 {
        self.parts.iter().map(|part| part.spelled(&self.style).len() as u64).sum()
    }

    /// Moves everything from part `place` on by `later`.
    pub(super) fn delay(&mut self, place: usize, later: Span) {
        self.parts.iter_mut().skip(place).for_each(|part| part.at += later);
    }
}

impl Part {
    /// Its JSON, changed. What is not JSON, or is not changed, stays as it is.
    pub(super) fn edit(&mut self, change: impl FnOnce(&mut serde_json::Value)) {
        let Some(before) = self.value() else { return };
        let mut value = before.clone();
        change(&mut value);
        if value == before {
            return;
        }
        match &mut self.bytes {
            Bytes::Event { data, .. } => *data = value.to_string(),
            Bytes::Raw(body) => *body = value.to_string().into_bytes(),
            Bytes::Unframed(_) => {}
        }
    }

    /// Another one, without tokens of its own.
    pub(super) fn copied(&self) -> Self {
        Self { at: self.at, what: What::Other, tokens: 0, bytes: self.bytes.clone() }
    }

    /// Its JSON, if it is.
    pub(super) fn value(&self) -> Option<serde_json::Value> {
        match &self.bytes {
            Bytes::Event { data, .. } => serde_json::from_str(data).ok(),
            Bytes::Raw(body) => serde_json::from_slice(body).ok(),
            Bytes::Unframed(_) => None,
        }
    }

    /// Its text.
    pub(super) fn text(&self) -> String {
        self.value().and_then(|mut value| edit::text(&mut value).cloned()).unwrap_or_default()
    }

    /// Its bytes as a part of a body.
    pub(super) fn spelled(&self, style: &Style) -> Vec<u8> {
        let (fields, data) = match &self.bytes {
            Bytes::Event { fields, data } => (fields, data),
            Bytes::Raw(bytes) | Bytes::Unframed(bytes) => return bytes.clone(),
        };
        let (line_end, colon) = (style.line_end, style.colon);
        let mut out = String::new();
        for field in fields {
            out.extend([field.as_str(), line_end]);
        }
        let lines = if style.many_data_lines { edit::lines(data) } else { vec![data.clone()] };
        for line in lines {
            out.extend(["data", colon, &line, line_end]);
        }
        out.push_str(line_end);
        out.into_bytes()
    }
}

impl Body {
    pub(super) fn framing(self, length: u64) -> Framing {
        match self {
            Self::Chunked | Self::ChunkedOpen => Framing::Chunked,
            Self::Length => Framing::Length(length),
            Self::WrongLength(length) => Framing::Length(length),
            Self::UntilClose => Framing::UntilClose,
        }
    }

    pub(super) fn is_chunked(self) -> bool {
        matches!(self, Self::Chunked | Self::ChunkedOpen)
    }
}

/// Appends the events of `body`, which leave at `at` and have `tokens` tokens together.
fn events(body: &[u8], at: Span, tokens: u32, parts: &mut Vec<Part>) {
    let text = String::from_utf8_lossy(body);
    let mut left = tokens;
    for event in text.split("\n\n").filter(|event| !event.is_empty()) {
        let (data, fields): (Vec<_>, Vec<_>) =
            event.lines().partition(|line| line.starts_with("data:"));
        let data = data.concat().trim_start_matches("data:").trim_start().to_owned();
        let what = edit::what(&data);
        let tokens = if what == What::Token { std::mem::take(&mut left) } else { 0 };
        let fields = fields.into_iter().map(str::to_owned).collect();
        parts.push(Part { at, what, tokens, bytes: Bytes::Event { fields, data } });
    }
}
