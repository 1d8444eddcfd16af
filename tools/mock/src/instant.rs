//! The `instant` mode: every answer is made once, before the first request.
//!
//! | request | answer |
//! | --- | --- |
//! | `POST` to a generating route | a valid completion; a stream when `stream` is asked |
//! | `GET /v1/models`, `/metrics` | as in `timed` |
//! | anything else | 200 and [`PLAIN_LEN`] bytes in all |
//!
//! As nothing is looked up or counted, `usage` states one prompt token.

use memchr::memmem::Finder;
use takt_time::Span;
use takt_wire::{
    Framing, Request, write_event_chunk, write_head, write_last_chunk, write_named_event_chunk,
};

use crate::asked::Asked;
use crate::config::InstantConfig;
use crate::openai::{Api, Finish, Usage, Voice, models};
use crate::responses::{DELTA, OPENING, Responding, embedding};
use crate::sglang::Frame;

/// All answers, ready to be sent.
#[derive(Debug)]
pub(crate) struct Prepared {
    plain: Answer,
    models: Answer,
    chat: Generating,
    completions: Generating,
    responses: Generating,
    embeddings: Generating,
    sglang: Generating,
    stream_key: Finder<'static>,
}

/// The answers of a generating route.
#[derive(Debug)]
struct Generating {
    whole: Answer,
    stream: Answer,
    stream_with_usage: Answer,
}

/// One answer, for a connection that is kept and for one that is not.
#[derive(Debug)]
struct Answer {
    kept: Vec<u8>,
    last: Vec<u8>,
    /// Length of the head of each, for HEAD requests.
    kept_head: usize,
    last_head: usize,
}

/// Appends one JSON text.
type Writer<'a> = &'a dyn Fn(&mut Vec<u8>);

/// Bytes of the plain answer, head included, on a connection that is kept.
pub(crate) const PLAIN_LEN: usize = 200;

impl Prepared {
    /// Makes the answers; `model` is escaped.
    pub(crate) fn new(config: InstantConfig, model: &[u8], created_s: u64) -> Self {
        let mut body = Vec::new();
        models(&mut body, model, created_s);
        let generating = |api| Generating::new(config, api, created_s, model);
        Self {
            plain: Answer::json(&plain_body()),
            models: Answer::json(&body),
            chat: generating(Api::Chat),
            completions: generating(Api::Completions),
            responses: generating(Api::Responses),
            embeddings: generating(Api::Embeddings),
            sglang: generating(Api::Sglang),
            stream_key: Finder::new(b"\"stream\""),
        }
    }

    /// Appends the answer to `request` and says whether it is a stream.
    #[inline]
    pub(crate) fn answer(&self, request: &Request<'_>, out: &mut Vec<u8>) -> bool {
        let (answer, streamed) = self.pick(request);
        let (bytes, head) = if request.keep_alive {
            (&answer.kept, answer.kept_head)
        } else {
            (&answer.last, answer.last_head)
        };
        let len = if request.method == "HEAD" { head } else { bytes.len() };
        out.extend_from_slice(&bytes[..len]);
        streamed
    }

    fn pick(&self, request: &Request<'_>) -> (&Answer, bool) {
        match request.method {
            "POST" => {}
            "GET" | "HEAD" if request.path() == "/v1/models" => return (&self.models, false),
            _ => return (&self.plain, false),
        }
        let generating = match Api::of(request) {
            Some(Api::Chat) => &self.chat,
            Some(Api::Completions) => &self.completions,
            Some(Api::Responses) => &self.responses,
            Some(Api::Embeddings) => return (&self.embeddings.whole, false),
            Some(Api::Sglang) => &self.sglang,
            None => return (&self.plain, false),
        };
        // Most bodies that do not stream do not even have the word.
        if self.stream_key.find(request.body).is_none() {
            return (&generating.whole, false);
        }
        match Asked::scan(request.body) {
            Asked { stream: false, .. } => (&generating.whole, false),
            Asked { include_usage: false, .. } => (&generating.stream, true),
            _ => (&generating.stream_with_usage, true),
        }
    }
}

impl Generating {
    fn new(config: InstantConfig, api: Api, created_s: u64, model: &[u8]) -> Self {
        let (tokens, id) = (config.tokens.get(), b"0");
        let usage = Usage { prompt: 1, completion: u64::from(tokens) };
        let mut whole = Vec::new();
        if api == Api::Sglang {
            let finish = Some(Finish::Stop);
            Frame { id, usage, finish, since: Span::ZERO, said: None }.write(&mut whole);
            // One frame: a frame for each token, each with all before it, would be quadratic.
            let stream = || Answer::stream(|event| event(&|out| out.extend_from_slice(&whole)));
            let (stream, stream_with_usage) = (stream(), stream());
            return Self { whole: Answer::json(&whole), stream, stream_with_usage };
        }
        if api == Api::Embeddings {
            embedding(&mut whole, model, 1);
            let nothing = || Answer::stream(|_| {});
            return Self {
                whole: Answer::json(&whole),
                stream: nothing(),
                stream_with_usage: nothing(),
            };
        }
        if api == Api::Responses {
            let responding = Responding { id, created_s, model, said: None };
            responding.whole(&mut whole, tokens, Finish::Stop, usage);
            let stream = || Answer::responding(&responding, tokens, usage);
            return Self {
                whole: Answer::json(&whole),
                stream: stream(),
                stream_with_usage: stream(),
            };
        }
        let chat = api == Api::Chat;
        let voice = Voice { chat, id, created_s, model, said: None, ids: false };
        voice.whole(&mut whole, tokens, Finish::Stop, usage);
        let stream = |with_usage: bool| {
            Answer::stream(|event| {
                if voice.chat {
                    event(&|out| voice.role(out));
                }
                (0..tokens).for_each(|n| event(&|out| voice.tokens(out, n..n + 1, false, None)));
                event(&|out| voice.finish(out, Finish::Stop));
                if with_usage {
                    event(&|out| voice.usage(out, usage));
                }
            })
        };
        Self { whole: Answer::json(&whole), stream: stream(false), stream_with_usage: stream(true) }
    }
}

impl Answer {
    fn json(body: &[u8]) -> Self {
        Self::new("application/json", Framing::Length(body.len() as u64), body)
    }

    /// A stream of what `events` hands over one by one, and of its end.
    fn stream(events: impl FnOnce(&mut dyn FnMut(Writer<'_>))) -> Self {
        let (mut body, mut data) = (Vec::new(), Vec::new());
        let mut event = |write: Writer<'_>| {
            data.clear();
            write(&mut data);
            write_event_chunk(&mut body, &data);
        };
        events(&mut event);
        event(&|data| data.extend_from_slice(b"[DONE]"));
        write_last_chunk(&mut body);
        Self::new(EVENT_STREAM, Framing::Chunked, &body)
    }

    /// A stream of the responses API, an event for each token.
    fn responding(responding: &Responding<'_>, tokens: u32, usage: Usage) -> Self {
        let (mut body, mut data) = (Vec::new(), Vec::new());
        let mut event = |name: &str, write: Writer<'_>| {
            data.clear();
            write(&mut data);
            write_named_event_chunk(&mut body, name, &data);
        };
        responding.opening(&mut event);
        for n in 0..tokens {
            event(DELTA, &|out| responding.tokens(out, OPENING + u64::from(n), n..n + 1));
        }
        let number = OPENING + u64::from(tokens);
        responding.closing(&mut event, number, tokens, Finish::Stop, usage);
        write_last_chunk(&mut body);
        Self::new(EVENT_STREAM, Framing::Chunked, &body)
    }

    fn new(content_type: &str, framing: Framing, body: &[u8]) -> Self {
        let with_head = |keep_alive| {
            let mut bytes = Vec::new();
            write_head(&mut bytes, 200, content_type, framing, keep_alive, &[]);
            let head = bytes.len();
            bytes.extend_from_slice(body);
            (bytes, head)
        };
        let ((kept, kept_head), (last, last_head)) = (with_head(true), with_head(false));
        Self { kept, last, kept_head, last_head }
    }
}

/// JSON of the length that makes the answer [`PLAIN_LEN`] long.
fn plain_body() -> Vec<u8> {
    let mut head = Vec::new();
    // Any length of three digits will do.
    write_head(&mut head, 200, "application/json", Framing::Length(100), true, &[]);
    let room = PLAIN_LEN - head.len();
    let frame = "{\"text\":\"\"}";
    let padding = " takt".chars().cycle().take(room - frame.len()).collect::<String>();
    format!("{{\"text\":\"{padding}\"}}").into_bytes()
}

/// What a stream of events calls itself.
pub(crate) const EVENT_STREAM: &str = "text/event-stream; charset=utf-8";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Read, read_answers};
    use std::num::NonZeroU32;
    use takt_wire::{Limits, RequestParser, Step};

    /// The answer to `method path` with `body`, read by our own client side.
    fn ask(method: &str, path: &str, body: &str) -> Read {
        let config = InstantConfig { tokens: NonZeroU32::new(3).unwrap() };
        let prepared = Prepared::new(config, b"m", 5);
        let length = body.len();
        let wire = format!("{method} {path} HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{body}");
        let mut parser = RequestParser::new(Limits::default());
        let Ok(Step::Request { request, .. }) = parser.next(wire.as_bytes()) else { panic!() };
        let mut out = Vec::new();
        let streamed = prepared.answer(&request, &mut out);
        let mut answers = read_answers(&out);
        assert_eq!(answers.len(), 1);
        assert_eq!(answers[0].streamed, streamed);
        answers.remove(0)
    }

    #[test]
    fn any_path_gets_two_hundred_bytes() {
        let prepared = Prepared::new(InstantConfig::default(), b"m", 0);
        assert_eq!(prepared.plain.kept.len(), PLAIN_LEN);
        for (method, path) in [("POST", "/infer"), ("GET", "/"), ("PUT", "/v1/chat/completions")] {
            assert_eq!(ask(method, path, "{}").body.as_bytes(), plain_body(), "{path}");
        }
    }

    #[test]
    fn a_head_request_gets_the_head_that_a_get_would() {
        let prepared = Prepared::new(InstantConfig::default(), b"m", 0);
        for path in ["/v1/models", "/x"] {
            let answer = |method: &str| {
                let wire = format!("{method} {path} HTTP/1.1\r\n\r\n");
                let mut parser = RequestParser::new(Limits::default());
                let Ok(Step::Request { request, .. }) = parser.next(wire.as_bytes()) else {
                    panic!()
                };
                let mut out = Vec::new();
                prepared.answer(&request, &mut out);
                String::from_utf8(out).unwrap()
            };
            let (head, get) = (answer("HEAD"), answer("GET"));
            assert!(head.ends_with("\r\n\r\n") && head.len() < get.len(), "{head}");
            assert!(get.starts_with(&head), "{path}: {head}{get}");
        }
    }

    #[test]
    fn generating_routes_get_a_completion_and_a_stream_when_they_ask_for_one() {
        for (path, object) in [
            ("/v1/chat/completions?x=1", "chat.completion"),
            ("/v1/completions", "text_completion"),
        ] {
            let whole = ask("POST", path, "{}");
            assert!(whole.body.contains(&format!("\"object\":\"{object}\"")), "{}", whole.body);
            assert!(whole.body.contains("\"completion_tokens\":3"), "{}", whole.body);
            let chat = usize::from(object == "chat.completion");
            let stream = ask("POST", path, r#"{"stream":true}"#);
            // Role (chat only), three tokens, finish, [DONE].
            assert_eq!(stream.events().len(), chat + 5);
            assert_eq!(stream.events().last().unwrap(), "[DONE]");
            let body = r#"{"stream":true,"stream_options":{"include_usage":true}}"#;
            let events = ask("POST", path, body).events();
            assert_eq!(events.len(), chat + 6);
            assert!(events[events.len() - 2].contains("\"choices\":[],\"usage\":{"));
        }
        let events = ask("POST", "/generate", r#"{"stream":true}"#).events();
        assert_eq!(events.len(), 2);
        assert!(events[0].contains(r#""text":" the time to","output_ids":[1000,1001,1002]"#));
        assert!(events[0].contains(r#""finish_reason":{"type":"stop""#), "{}", events[0]);
    }
}
