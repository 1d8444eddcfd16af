//! The request of a turn, put together when it is sent.
//!
//! ```text
//! head of the endpoint, routing headers │ {"model":…,"messages":[ │ messages up to the turn │ ],…}
//!        per endpoint                         per parameters         one text per conversation
//! ```
//!
//! Recorded history is the beginning of the conversation's own text, so a request costs one copy of its bytes
//! and no memory beyond one buffer. With a live history the text is made as the conversation goes: what it has
//! said and what the model answered, kept while it is active.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::ops::Range;
use std::rc::Rc;

use takt_wire::{PreparedRequest, RequestBuilder, Text};

use super::salt::salt_of;
use crate::api::{Request, Samples};

/// The turns of a dataset as requests.
#[derive(Debug)]
pub struct TurnRequests {
    texts: Rc<TurnTexts>,
    routing: Vec<Box<str>>,
    salt: Option<PassSalt>,
    live: Option<BTreeMap<u64, Said>>,
    made: PreparedRequest,
    /// Room for the name of a repeat, or the number of a pass.
    name: String,
}

/// What the turns of a dataset say; phases share it.
#[derive(Clone, Debug)]
pub struct TurnTexts {
    /// Head and headers, by endpoint.
    pub builders: Vec<RequestBuilder>,
    /// The conversations.
    pub talks: Vec<TalkText>,
    /// Their turns, one conversation after the other.
    pub turns: Vec<TurnText>,
    /// What stands around messages.
    pub around: Vec<Around>,
}

/// A conversation's messages.
#[derive(Clone, Debug)]
pub struct TalkText {
    /// Its name, printable ASCII.
    pub id: Box<str>,
    /// JSON objects with commas between.
    pub messages: Box<str>,
    /// Where the system message ends; 0 without one.
    pub system_end: usize,
    /// Where in the messages the salt of a pass goes, if that is to be; see [`super::salted`].
    pub salt_at: usize,
}

/// A turn's part in it.
#[derive(Clone, Debug)]
pub struct TurnText {
    /// The place of its conversation.
    pub talk: u32,
    /// What it says itself. Its history is everything before.
    pub asked: Range<usize>,
    /// The place of what stands around its messages.
    pub around: u32,
}

/// A body but for its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Around {
    /// Up to the bracket that opens them.
    pub before: Box<[u8]>,
    /// From the bracket that closes them.
    pub after: Box<[u8]>,
}

/// The salt of the pass that was last sent.
#[derive(Debug)]
struct PassSalt {
    pass: u64,
    salt: [u8; 4],
}

/// A live conversation.
#[derive(Debug, Default)]
struct Said {
    messages: Vec<u8>,
    /// The turn that was last asked.
    asked: Option<u32>,
    /// The model's answer to it so far, as the inside of a JSON string.
    answer: Vec<u8>,
}

impl TurnRequests {
    /// Requests for all turns of `texts`, with the recorded history.
    #[must_use]
    pub fn new(texts: Rc<TurnTexts>) -> Self {
        Self {
            texts,
            routing: Vec::new(),
            salt: None,
            live: None,
            made: PreparedRequest::default(),
            name: String::new(),
        }
    }

    /// Sends the name of the conversation in these headers, with `__repeat_N` from the second pass on.
    #[must_use]
    pub fn routing_headers(mut self, names: Vec<Box<str>>) -> Self {
        self.routing = names;
        self
    }

    /// Puts the salt of the pass into the system messages, which [`super::salted`] has made.
    #[must_use]
    pub fn with_salt(mut self) -> Self {
        self.salt = Some(PassSalt { pass: 1, salt: salt_of("1") });
        self
    }

    /// What the model answers becomes the history, in place of what was recorded.
    #[must_use]
    pub fn with_live_history(mut self) -> Self {
        self.live = Some(BTreeMap::new());
        self
    }

    /// Live conversations whose histories are kept.
    #[cfg(test)]
    fn kept(&self) -> usize {
        self.live.as_ref().map_or(0, BTreeMap::len)
    }

    fn make(&mut self, conversation: u64, sample: u32, endpoint: usize) {
        let texts = &*self.texts;
        let turn = &texts.turns[sample as usize];
        let talk = &texts.talks[turn.talk as usize];
        let around = &texts.around[turn.around as usize];
        let messages = match &mut self.live {
            None => &talk.messages.as_bytes()[..turn.asked.end],
            Some(live) => {
                let said = live.entry(conversation).or_default();
                said.ask(sample, talk, turn);
                &said.messages
            }
        };
        let pass = conversation / texts.talks.len() as u64 + 1;
        let mut id = &*talk.id;
        if pass > 1 && !self.routing.is_empty() {
            written(&mut self.name, format_args!("{id}__repeat_{pass}"));
            id = &self.name;
        }
        let routing = self.routing.iter().map(|name| (&**name, id));
        let body = [&around.before, messages, &around.after];
        let made = &mut self.made;
        texts.builders[endpoint].build_into(made, routing, &body);
        if let Some(salt) = &mut self.salt {
            if salt.pass != pass {
                written(&mut self.name, format_args!("{pass}"));
                *salt = PassSalt { pass, salt: salt_of(&self.name) };
            }
            made.patch_body(around.before.len() + talk.salt_at, &salt.salt);
        }
    }
}

impl Samples for TurnRequests {
    fn len(&self) -> u32 {
        u32::try_from(self.texts.turns.len()).expect("turns are numbered by 32 bits")
    }

    /// The turn of the first pass.
    fn request(&mut self, sample: u32, endpoint: usize) -> &mut PreparedRequest {
        self.make(self.texts.turns[sample as usize].talk.into(), sample, endpoint);
        &mut self.made
    }

    fn request_for(&mut self, asked: &Request, endpoint: usize) -> &mut PreparedRequest {
        let Some(turn) = asked.turn else { return self.request(asked.sample, endpoint) };
        self.make(turn.conversation, asked.sample, endpoint);
        &mut self.made
    }

    fn heard(&mut self, asked: &Request, text: &Text<'_>) {
        if let (Some(live), Some(turn), Text::Content(text)) = (&mut self.live, asked.turn, text)
            && let Some(said) = live.get_mut(&turn.conversation)
        {
            escape(text, &mut said.answer);
        }
    }

    fn forget(&mut self, conversation: u64) {
        if let Some(live) = &mut self.live {
            live.remove(&conversation);
        }
    }
}

impl Said {
    /// Adds a turn, and the answer before it. A turn that is sent once more is there already.
    fn ask(&mut self, sample: u32, talk: &TalkText, turn: &TurnText) {
        if self.asked == Some(sample) {
            // What a broken connection has brought of an answer is none.
            return self.answer.clear();
        }
        let out = &mut self.messages;
        if self.asked.is_none() {
            out.extend_from_slice(&talk.messages.as_bytes()[..talk.system_end]);
        } else {
            out.extend_from_slice(br#",{"role":"assistant","content":""#);
            out.append(&mut self.answer);
            out.extend_from_slice(br#""}"#);
        }
        if !out.is_empty() {
            out.push(b',');
        }
        out.extend_from_slice(&talk.messages.as_bytes()[turn.asked.clone()]);
        self.asked = Some(sample);
    }
}

/// Writes into a string that is there already: a request that repeats costs no memory.
fn written(out: &mut String, text: fmt::Arguments<'_>) {
    out.clear();
    // Writing to a string does not fail.
    let _ = out.write_fmt(text);
}

/// Text as the inside of a JSON string (RFC 8259, section 7).
fn escape(text: &str, out: &mut Vec<u8>) {
    for &byte in text.as_bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0..0x20 => {
                let digit = b"0123456789abcdef"[usize::from(byte & 15)];
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', b'0' + (byte >> 4), digit]);
            }
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use takt_record::{PhaseId, RequestId, RequestKey, TurnOf};
    use takt_time::Nanos;
    use takt_wire::{Endpoint, Method};

    use super::super::{SALT_AT, salted};
    use super::*;

    /// Two conversations of two turns, the first with a system message and a recorded answer.
    fn requests() -> TurnRequests {
        let endpoint = Endpoint::parse("http://h").unwrap();
        let builder = RequestBuilder::new(Method::Post, &endpoint, "/v1/chat/completions").unwrap();
        let message = |role: &str, text: &str| json!({"role": role, "content": text}).to_string();
        // A message that does not say `system` first has its salt at another place.
        let before = r#"{"name":"n","role":"developer","content":"#;
        let (system, salt_at) =
            (format!("{before}{}}}", salted("S", "c1")), before.len() + SALT_AT);
        let asked = [message("user", "one"), message("user", "two")];
        let answer = message("assistant", "recorded");
        let one = format!("{system},{},{answer},{}", asked[0], asked[1]);
        let two = format!("{},{}", asked[0], asked[1]);
        let end = one.len();
        let first = system.len() + 1..system.len() + 1 + asked[0].len();
        let turn = |talk, asked: Range<usize>| TurnText { talk, asked, around: 0 };
        let turns = vec![
            turn(0, first),
            turn(0, end - asked[1].len()..end),
            turn(1, 0..asked[0].len()),
            turn(1, asked[0].len() + 1..two.len()),
        ];
        let talk = |id: &str, messages: String, system_end| TalkText {
            id: id.into(),
            messages: messages.into(),
            system_end,
            salt_at,
        };
        let talks = vec![talk("c1", one, system.len()), talk("c2", two, 0)];
        let around = Around {
            before: br#"{"model":"m","messages":["#[..].into(),
            after: br#"],"stream":true}"#[..].into(),
        };
        let texts = TurnTexts { builders: vec![builder], talks, turns, around: vec![around] };
        TurnRequests::new(Rc::new(texts))
    }

    fn asked(conversation: u64, sample: u32) -> Request {
        let key = RequestKey { phase: PhaseId(0), ordinal: 0 };
        let turn = Some(TurnOf { conversation, turn: 1 });
        let (id, issued) = (RequestId::new(1, key), Nanos::ZERO);
        Request { key, id, sample, scheduled: None, issued, turn }
    }

    /// The contents of a turn's messages.
    fn said(requests: &mut TurnRequests, conversation: u64, sample: u32) -> Vec<String> {
        let body = requests.request_for(&asked(conversation, sample), 0).body().to_vec();
        let body: Value = serde_json::from_slice(&body).expect("a body is JSON");
        assert_eq!((&body["model"], &body["stream"]), (&json!("m"), &json!(true)));
        let messages = body["messages"].as_array().unwrap();
        messages.iter().map(|m| m["content"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_recorded_turn_has_the_recorded_history() {
        let mut requests = requests();
        let system = "[salt: 0000]\n\nS\n\n[salt: 6d82]";
        assert_eq!(said(&mut requests, 0, 0), [system, "one"]);
        assert_eq!(said(&mut requests, 0, 1), [system, "one", "recorded", "two"]);
        assert_eq!(said(&mut requests, 1, 2), ["one"]);
    }

    #[test]
    fn routing_headers_name_the_conversation_and_its_repeat() {
        let mut requests = requests().routing_headers(vec!["X-Session-ID".into(), "X-B".into()]);
        let mut head = |conversation, sample| {
            let request = requests.request_for(&asked(conversation, sample), 0);
            String::from_utf8(request.bytes().to_vec()).unwrap()
        };
        assert!(head(1, 3).contains("\r\nX-Session-ID: c2\r\nX-B: c2\r\n"));
        assert!(head(4, 0).contains("\r\nX-Session-ID: c1__repeat_3\r\n"));
    }

    #[test]
    fn the_salt_is_that_of_the_pass() {
        let mut requests = requests().with_salt();
        for (conversation, salt) in [(0, "4461"), (2, "ba75"), (0, "4461")] {
            let system = format!("[salt: {salt}]\n\nS\n\n[salt: 6d82]");
            assert_eq!(said(&mut requests, conversation, 0)[0], system);
        }
    }

    #[test]
    fn a_live_history_has_what_the_model_said_and_is_forgotten() {
        let mut requests = requests().with_live_history();
        let system = "[salt: 0000]\n\nS\n\n[salt: 6d82]";
        assert_eq!(said(&mut requests, 0, 0), [system, "one"]);
        // Another conversation, and another pass of the same, go their own way.
        assert_eq!(said(&mut requests, 1, 2), ["one"]);
        assert_eq!(said(&mut requests, 2, 0), [system, "one"]);
        requests.heard(&asked(0, 0), &Text::Content("lost"));
        assert_eq!(said(&mut requests, 0, 0), [system, "one"], "sent once more");
        requests.heard(&asked(0, 0), &Text::Content("it \"is\"\n"));
        requests.heard(&asked(0, 0), &Text::Reasoning("hidden"));
        requests.heard(&asked(0, 0), &Text::Content("so"));
        assert_eq!(said(&mut requests, 0, 1), [system, "one", "it \"is\"\nso", "two"]);
        assert_eq!(said(&mut requests, 0, 1).len(), 4, "sent once more");
        assert_eq!(said(&mut requests, 1, 3), ["one", "", "two"], "it said nothing");
        for conversation in [0, 1, 2] {
            requests.forget(conversation);
        }
        assert_eq!(requests.kept(), 0);
    }

    proptest! {
        #[test]
        fn any_text_in_pieces_is_the_same_json_string(pieces in prop::collection::vec(".*", 0..4)) {
            let mut out = vec![b'"'];
            pieces.iter().for_each(|piece| escape(piece, &mut out));
            out.push(b'"');
            let text: String = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(text, pieces.concat());
        }
    }
}
