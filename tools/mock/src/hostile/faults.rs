//! The table of faults: a name, the rows of the list of cases that it is for, what it does in words, and the
//! same as a change of an answer.

use serde_json::{Value, json};
use takt_time::Span;

use super::Setting;
use super::answer::{Answer, Body, Bytes, End, Part, Tear, What};
use super::edit;

/// One way to answer wrongly.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) cases: &'static str,
    pub(crate) says: &'static str,
    pub(crate) default: Setting,
    /// The good answer is of the form that was not asked for: a stream where none was, or the reverse.
    pub(crate) flips: bool,
    pub(crate) apply: fn(&mut Answer, Setting),
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// A row of the table.
const fn row(
    name: &'static str,
    cases: &'static str,
    default: Setting,
    says: &'static str,
    apply: fn(&mut Answer, Setting),
) -> Kind {
    Kind { name, cases, says, default, flips: false, apply }
}

use Setting::{Count, Nothing, Time};

/// No fault.
pub(super) const NOTHING: Kind = row("", "", Nothing, "", |_, _| {});

/// All faults, in the order of the list of cases.
#[rustfmt::skip]
pub(crate) const KINDS: &[Kind] = &[
    // Framing and parsing.
    row("big-event", "F1", Count(256 << 10), "the first token's event has so many bytes", big_event),
    row("split-reads", "F1", Count(13), "every write has at most so many bytes",
        |a, s| a.tear = Some(Tear::Every(s.bytes()))),
    row("split-utf8", "F1", Nothing, "text of characters of several bytes, each torn over two writes", split_utf8),
    row("crlf", "F2", Nothing, "lines of events end with CR LF", |a, _| a.style.line_end = "\r\n"),
    row("cr", "F2", Nothing, "lines of events end with CR", |a, _| a.style.line_end = "\r"),
    row("two-events-a-read", "F2 T6", Count(2), "so many events leave in one write", together),
    row("reframed", "F2", Count(100), "a gateway cuts the body anew, into chunks of so many bytes", reframed),
    row("no-space", "F3", Nothing, "`data:` without a space", |a, _| a.style.colon = ":"),
    row("comments", "F3", Nothing, "a comment `: ping` before each event", |a, _| each_event(a, ": ping")),
    row("sse-fields", "F3", Nothing, "lines `id`, `retry` and `event` with each event", |a, _| {
        each_event(a, "id: 7\nretry: 3000\nevent: message");
    }),
    row("data-lines", "F3", Nothing, "each event has several `data` lines", |a, _| a.style.many_data_lines = true),
    row("role-first", "F4", Time(Span::from_millis(1_300)), "a chunk with the role, the first text so much later", role_first),
    row("empty-content", "F5", Nothing, "events with empty content between those with text",
        |a, _| between(a, Some(&json!("")))),
    row("usage-between", "F5", Nothing, "counts without choices between events with text", |a, _| {
        spread(a, |value, n| {
            let usage = json!({"prompt_tokens": 1, "completion_tokens": n, "total_tokens": n + 1});
            no_choices(value) && value.as_object_mut().is_some_and(|of| {
                of.insert("usage".to_owned(), usage);
                true
            })
        });
    }),
    row("after-done", "F5", Nothing, "events with text behind `[DONE]`", after_done),
    row("reasoning-first", "F6", Count(3), "so many tokens of `reasoning_content` come first", |a, s| reasoning(a, s, "reasoning_content")),
    row("reasoning-key", "F6", Count(3), "so many tokens of `reasoning` come first", |a, s| reasoning(a, s, "reasoning")),
    row("mixed-delta", "F7", Nothing, "the first delta has content and reasoning", |a, _| {
        edit_token(a, 0, |v| set(v, "reasoning_content", json!("hm")));
    }),
    row("tool-call", "F7", Nothing, "the last delta has content and a tool call", tool_call),
    row("error-in-stream", "F8", Count(3), "an error in a 200 stream, after so many tokens, then `[DONE]`",
        |a, s| error_in_stream(a, s, &[])),
    row("error-event", "F8", Count(3), "the same as `event: error`", |a, s| error_in_stream(a, s, &["event: error"])),
    row("cut-after-tokens", "F9", Count(10), "a reset after so many tokens", |a, s| a.cut(s.count(), End::Reset)),
    row("close-after-tokens", "F9", Count(10), "the connection is closed after so many tokens",
        |a, s| a.cut(s.count(), End::Close(Span::ZERO))),
    row("no-end", "F9", Nothing, "a stream that ends well without a finish reason or `[DONE]`", |a, _| {
        a.parts.retain(|part| !matches!(part.what, What::Finish | What::Usage | What::Done));
        let repeating = a.parts.iter_mut().filter(|part| edit::is_cumulative(part));
        repeating.for_each(|part| part.edit(edit::unfinish));
    }),
    row("no-done", "F9", Nothing, "a stream with a finish reason and without `[DONE]`",
        |a, _| a.parts.retain(|part| part.what != What::Done)),
    row("html-200", "F10", Nothing, "a page of HTML with status 200", |a, _| a.replace(200, "text/html", PAGE)),
    row("html-502", "F10", Nothing, "a page of HTML with status 502", |a, _| a.replace(502, "text/html", PAGE)),
    row("json-429", "F10", Nothing, "an error in JSON with status 429", |a, _| {
        a.replace(429, "application/json", LIMITED);
        a.headers.push(("Retry-After", "1".to_owned()));
    }),
    row("json-500", "F10", Nothing, "an error in JSON with status 500", |a, _| a.replace(500, "application/json", ERROR)),
    Kind { flips: true, ..row("other-form", "F10", Nothing, "a whole answer where a stream was asked for, and the reverse", |_, _| {}) },
    row("null-content", "F11", Nothing, "events with `content: null` between those with text",
        |a, _| between(a, Some(&Value::Null))),
    row("no-content", "F11", Nothing, "events whose delta is empty between those with text", |a, _| between(a, None)),
    row("empty-choices", "F11", Nothing, "events with `choices: []` between those with text", |a, _| {
        spread(a, |value, _| no_choices(value));
    }),
    row("usage-with-choices", "F12", Nothing, "the counts stand in the last event with choices", usage_with_choices),
    row("usage-partial", "F12", Nothing, "counts without `completion_tokens`", |a, _| {
        edit_usage(a, |usage| {
            if let Some(usage) = usage.as_object_mut() {
                usage.retain(|key, _| !OUTPUT.contains(&key.as_str()));
            }
        });
    }),
    row("bad-json", "F13", Count(3), "no JSON in an event, after so many tokens", bad_json),
    row("close-delimited", "F14", Nothing, "no length: the answer ends with the connection", |a, _| a.body = Body::UntilClose),
    row("early-hints", "F15", Nothing, "103 before the answer", |a, _| {
        a.prelude = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n".to_vec();
    }),
    row("trailers", "F15", Nothing, "trailers behind a chunked body", |a, _| {
        a.body = Body::Chunked;
        a.trailers = vec![("X-Checksum", "0"), ("Server-Timing", "total;dur=1")];
    }),
    // HTTP itself.
    row("not-http", "F10", Nothing, "bytes that are no HTTP", |a, _| {
        a.without_head(b"SSH-2.0-nobody\r\n");
        a.end = End::Close(Span::ZERO);
    }),
    row("bad-chunk", "F10", Count(3), "a chunk without a size, after so many tokens", bad_chunk),
    row("huge-head", "F10", Count(1 << 20), "a head of so many bytes", |a, s| {
        a.headers.push(("X-Padding", "x".repeat(s.bytes())));
    }),
    row("wrong-content-length", "F9", Count(10), "a length that is greater than the body by so much, then a close", |a, s| {
        a.body = Body::WrongLength(a.length().saturating_add(s.count()));
        a.end = End::Close(Span::ZERO);
    }),
    row("garbage-after-answer", "C3", Nothing, "bytes behind the end of the answer", |a, _| a.after = b"HTTP/1.1 garbage".to_vec()),
    row("both-lengths", "F14", Nothing, "a length beside a chunked body", |a, _| {
        a.body = Body::Chunked;
        a.headers.push(("Content-Length", "5".to_owned()));
    }),
    // Tokens and intervals.
    row("four-tokens-a-chunk", "T1", Count(4), "so many tokens in one event", merged),
    row("one-token", "T2", Nothing, "an answer of one token", one_token),
    row("usage-short", "T4", Count(10), "the server counts so many percent fewer tokens than it sends", |a, s| {
        let percent = 100u64.saturating_sub(s.count());
        edit_usage(a, |usage| scale(usage, percent));
    }),
    row("late-usage", "T5", Time(Span::from_millis(20)), "what follows the last token comes so much later", |a, s| {
        let last = a.behind(u64::MAX);
        a.delay(last, s.time());
    }),
    // Time.
    row("stall", "R3", Time(Span::from_secs(2)), "nothing comes for so long in the middle of an answer", |a, s| {
        let half = a.behind(a.tokens().len() as u64 / 2);
        a.delay(half, s.time());
    }),
    row("slow-head", "R2", Time(Span::from_secs(2)), "everything comes so much later", |a, s| {
        a.head_at += s.time();
        a.delay(0, s.time());
    }),
    row("no-nodelay", "C7", Time(Span::from_millis(40)),
        "small writes wait for the acknowledgement of the one before, so much: a server without TCP_NODELAY", plateaus),
    // Connections.
    row("idle-close", "C3", Time(Span::from_secs(5)), "the connection is closed when idle for so long", |a, s| a.end = End::CloseIdle(s.time())),
    row("close-after-answer", "C4", Time(Span::from_micros(30)), "keep-alive is promised, and the connection closed so long after the answer",
        |a, s| {
            a.headers.push(("Keep-Alive", "timeout=5, max=100".to_owned()));
            a.end = End::Close(s.time());
        }),
    row("refuse-later", "C6", Count(100), "after so many requests the server is gone: all is reset, nothing more is taken", |a, s| {
        if a.ordinal + 1 >= s.count() {
            a.without_head(b"");
            a.end = End::ServerGone;
        }
    }),
    row("redirect", "C9", Setting::Status(307), "this status with a `Location`", |a, s| {
        a.replace(s.status(), "", "");
        a.headers.push(("Location", "http://127.0.0.1:9/elsewhere".to_owned()));
    }),
    row("reset-before-answer", "C4", Nothing, "a reset instead of an answer", |a, _| {
        a.without_head(b"");
        a.end = End::Reset;
    }),
    row("half-head", "F9", Nothing, "the connection is closed within the head", |a, _| {
        a.without_head(b"HTTP/1.1 200 OK\r\nContent-Ty");
        a.end = End::Close(Span::ZERO);
    }),
    row("never-answers", "E2", Nothing, "not a byte, and the connection stays", |a, _| {
        a.without_head(b"");
        a.end = End::Hang;
    }),
    row("hang-after-tokens", "E2", Count(3), "nothing comes after so many tokens, and the connection stays", |a, s| a.cut(s.count(), End::Hang)),
];

impl Setting {
    fn count(self) -> u64 {
        match self {
            Self::Count(count) => count,
            Self::Nothing | Self::Time(_) | Self::Status(_) => 0,
        }
    }

    fn status(self) -> u16 {
        match self {
            Self::Status(status) => status,
            Self::Nothing | Self::Time(_) | Self::Count(_) => 0,
        }
    }

    fn bytes(self) -> usize {
        usize::try_from(self.count()).unwrap_or(usize::MAX).min(BYTES_MAX)
    }

    fn time(self) -> Span {
        match self {
            Self::Time(span) => span,
            Self::Nothing | Self::Count(_) | Self::Status(_) => Span::ZERO,
        }
    }
}

fn big_event(answer: &mut Answer, setting: Setting) {
    let more = "x".repeat(setting.bytes());
    let first = answer.tokens().first().map_or(0, |&place| answer.parts[place].text().len());
    for (nth, place) in answer.tokens().into_iter().enumerate() {
        // What repeats the first event's text repeats this, too.
        if nth == 0 || edit::is_cumulative(&answer.parts[place]) {
            answer.parts[place].edit(|value| {
                edit::text(value).into_iter().for_each(|text| text.insert_str(first, &more));
            });
        }
    }
    if let [whole @ Part { what: What::Whole, .. }] = &mut answer.parts[..] {
        whole.edit(|value| edit::text(value).into_iter().for_each(|text| text.push_str(&more)));
    }
}

fn split_utf8(answer: &mut Answer, _: Setting) {
    for part in &mut answer.parts {
        part.edit(|value| {
            edit::each_text(value, |text| {
                *text = text.chars().map(|c| if c == ' ' { ' ' } else { '\u{1f680}' }).collect();
            });
        });
    }
    answer.tear = Some(Tear::Characters);
}

/// Groups of events with text leave with the last of each.
fn together(answer: &mut Answer, setting: Setting) {
    for group in answer.tokens().chunks(setting.bytes().max(1)) {
        let (first, last) = (group[0], group[group.len() - 1]);
        let at = answer.parts[last].at;
        answer.parts[first..=last].iter_mut().for_each(|part| part.at = at);
    }
}

fn reframed(answer: &mut Answer, setting: Setting) {
    let (most, style) = (setting.bytes().max(1), answer.style);
    let mut parts: Vec<Part> = Vec::new();
    let mut held: Vec<u8> = Vec::new();
    let mut push = |at, tokens, bytes: Vec<u8>| {
        parts.push(Part { at, what: What::Other, tokens, bytes: Bytes::Raw(bytes) });
    };
    let (mut last, mut tokens) = (answer.head_at, 0);
    for part in &answer.parts {
        held.extend_from_slice(&part.spelled(&style));
        last = part.at;
        tokens += part.tokens;
        while held.len() >= most {
            let rest = held.split_off(most);
            push(last, std::mem::take(&mut tokens), std::mem::replace(&mut held, rest));
        }
    }
    push(last, tokens, held);
    answer.parts = parts;
}

/// Adds lines to each event.
fn each_event(answer: &mut Answer, lines: &str) {
    for part in &mut answer.parts {
        if let Bytes::Event { fields, .. } = &mut part.bytes {
            // An API that names its events keeps its names.
            let named = fields.iter().any(|field| field.starts_with("event:"));
            let more = lines.lines().filter(|line| !(named && line.starts_with("event:")));
            fields.splice(0..0, more.map(str::to_owned));
        }
    }
}

fn role_first(answer: &mut Answer, setting: Setting) {
    let Some(&first) = answer.tokens().first() else { return };
    if !answer.parts[..first].iter().any(|part| part.what == What::Other) {
        let mut role = answer.parts[first].copied();
        role.edit(|value| {
            if let Some(message) = edit::message(value) {
                message.insert("role".to_owned(), json!("assistant"));
            }
            edit::text(value).into_iter().for_each(String::clear);
        });
        role.at = answer.head_at;
        answer.parts.insert(first, role);
    }
    let first = answer.tokens()[0];
    let later = (answer.parts[0].at + setting.time()).as_nanos();
    let later = later.saturating_sub(answer.parts[first].at.as_nanos());
    answer.delay(first, Span::from_nanos(later));
}

/// Puts an event without new text before each one with text: a copy of it, changed, or, where events repeat
/// what came before, a copy of the one before. `change` is told how many came before, and says whether it has
/// found anything to change.
fn spread(answer: &mut Answer, change: impl Fn(&mut Value, usize) -> bool) {
    let places = answer.tokens();
    for (n, &place) in places.iter().enumerate().rev() {
        let repeats = edit::is_cumulative(&answer.parts[place]);
        let like = if repeats && n > 0 { places[n - 1] } else { place };
        let mut copy = answer.parts[like].copied();
        copy.at = answer.parts[place].at;
        let mut changed = false;
        copy.edit(|value| {
            if repeats && n == 0 {
                edit::text(value).into_iter().for_each(String::clear);
                value["meta_info"]["completion_tokens"] = json!(0);
            }
            changed = change(value, n);
        });
        if changed {
            answer.parts.insert(place, copy);
        }
    }
}

/// Only the APIs with choices can have none.
fn no_choices(value: &mut Value) -> bool {
    let has = value.get("choices").is_some();
    if has {
        value["choices"] = json!([]);
    }
    has
}

/// Events with this in place of text between those with text; without any, for nothing.
fn between(answer: &mut Answer, put: Option<&Value>) {
    spread(answer, |event, _| {
        let repeats = event.get("meta_info").is_some();
        let Some((holder, key)) = edit::holder(event) else { return false };
        if key == "content" {
            holder.clear();
        }
        match put {
            None => drop(holder.remove(key)),
            // Where each event says all so far, that is the empty one.
            Some(Value::String(_)) if repeats => {}
            Some(put) => drop(holder.insert(key.to_owned(), put.clone())),
        }
        true
    });
}

fn after_done(answer: &mut Answer, _: Setting) {
    let Some(&last) = answer.tokens().last() else { return };
    if !answer.parts.iter().any(|part| part.what == What::Done) {
        return;
    }
    let (mut copy, at) = (answer.parts[last].copied(), answer.parts[answer.parts.len() - 1].at);
    copy.at = at;
    answer.parts.push(copy);
}

fn reasoning(answer: &mut Answer, setting: Setting, key: &str) {
    for nth in 0..setting.bytes().min(answer.tokens().len()) {
        edit_token(answer, nth, |value| {
            let Some(message) = edit::message(value) else { return };
            if let Some(text) = message.remove("content") {
                message.insert(key.to_owned(), text);
            }
        });
    }
    if let [Part { what: What::Whole, .. }] = answer.parts[..] {
        answer.parts[0].edit(|value| set(value, key, json!("so it is")));
    }
}

fn tool_call(answer: &mut Answer, _: Setting) {
    let call = json!([{"index": 0, "id": "call_0", "type": "function",
        "function": {"name": "look_up", "arguments": "{\"q\": 1}"}}]);
    let last = answer.tokens().len().saturating_sub(1);
    let mut called = false;
    edit_token(answer, last, |value| {
        called = edit::message(value).is_some();
        set(value, "tool_calls", call);
    });
    if !called {
        return;
    }
    for part in &mut answer.parts {
        if matches!(part.what, What::Finish | What::Whole) {
            part.edit(|value| edit::finish(value, "tool_calls"));
        }
    }
}

fn error_in_stream(answer: &mut Answer, setting: Setting, names: &[&str]) {
    if !answer.streamed() {
        return answer.replace(200, "application/json", ERROR);
    }
    let place = answer.behind(setting.count());
    answer.parts.drain(place..);
    answer.insert(place, ERROR);
    if let Bytes::Event { fields, .. } = &mut answer.parts[place].bytes {
        fields.extend(names.iter().map(|&name| name.to_owned()));
    }
    answer.insert(place + 1, "[DONE]");
}

fn usage_with_choices(answer: &mut Answer, _: Setting) {
    let mut counted = None;
    answer.parts.retain_mut(|part| {
        let is_usage = part.what == What::Usage;
        if is_usage {
            part.edit(|value| counted = value.get("usage").cloned());
        }
        !is_usage
    });
    let last = answer.parts.iter_mut().find(|part| part.what == What::Finish);
    if let (Some(part), Some(usage)) = (last, counted) {
        part.edit(|value| value["usage"] = usage);
    }
}

fn bad_json(answer: &mut Answer, setting: Setting) {
    if answer.streamed() {
        answer.insert(answer.behind(setting.count()), NOT_JSON);
    } else {
        answer.replace(200, "application/json", NOT_JSON);
    }
}

fn bad_chunk(answer: &mut Answer, setting: Setting) {
    answer.body = Body::Chunked;
    let place = answer.behind(setting.count()).min(answer.parts.len());
    answer.insert(place, "");
    answer.parts[place].bytes = Bytes::Unframed(b"zz\r\nno size\r\n".to_vec());
    answer.end = End::Close(Span::ZERO);
}

fn merged(answer: &mut Answer, setting: Setting) {
    let places = answer.tokens();
    for group in places.chunks(setting.bytes().max(1)).rev() {
        let more: String = group[1..].iter().map(|&place| answer.parts[place].text()).collect();
        let (first, last) = (group[0], group[group.len() - 1]);
        let tokens = answer.parts[first..=last].iter().map(|part| part.tokens).sum();
        let at = answer.parts[last].at;
        if edit::is_cumulative(&answer.parts[first]) {
            answer.parts.drain(first..last);
        } else {
            answer.parts.drain(first + 1..=last);
            answer.parts[first].edit(|value| {
                edit::text(value).into_iter().for_each(|text| text.push_str(&more));
            });
        }
        (answer.parts[first].at, answer.parts[first].tokens) = (at, tokens);
    }
}

fn one_token(answer: &mut Answer, _: Setting) {
    let places = answer.tokens();
    if let Some((&first, rest)) = places.split_first() {
        let (text, at) = (answer.parts[first].text(), answer.parts[first].at);
        // Where events repeat what came before, the last one has the end, too.
        let kept =
            if edit::is_cumulative(&answer.parts[first]) { places[rest.len()] } else { first };
        for &place in places.iter().rev().filter(|&&place| place != kept) {
            answer.parts.remove(place);
        }
        for part in &mut answer.parts {
            part.edit(|value| {
                edit::each_text(value, |all| {
                    if !all.is_empty() {
                        all.clone_from(&text);
                    }
                });
            });
        }
        if let Some(&one) = answer.tokens().first() {
            (answer.parts[one].at, answer.parts[one].tokens) = (at, 1);
            answer.parts[one].edit(|value| {
                if let Some(ids) = value.get_mut("output_ids").and_then(Value::as_array_mut) {
                    ids.truncate(1);
                }
            });
        }
    }
    for part in answer.parts.iter_mut().filter(|part| part.what == What::Whole) {
        part.tokens = part.tokens.min(1);
        part.edit(|value| {
            if let Some(text) = edit::text(value)
                && let Some(second) = text.trim_start().find(' ')
            {
                text.truncate(second + 1);
            }
        });
    }
    edit_usage(answer, |usage| {
        for key in OUTPUT {
            if usage.get(key).is_some() {
                usage[key] = json!(1);
            }
        }
    });
}

/// What follows the first write waits until a multiple of the span.
fn plateaus(answer: &mut Answer, setting: Setting) {
    let (step, from) = (setting.time().as_nanos().max(1), answer.head_at.as_nanos());
    for part in &mut answer.parts {
        let since = part.at.as_nanos().saturating_sub(from);
        part.at = Span::from_nanos(from + since.div_ceil(step) * step);
    }
}

/// Changes the `nth` event with text, or a whole answer.
fn edit_token(answer: &mut Answer, nth: usize, change: impl FnOnce(&mut Value)) {
    let place = match answer.tokens().get(nth) {
        Some(&place) => place,
        None if !answer.streamed() && !answer.parts.is_empty() => 0,
        None => return,
    };
    answer.parts[place].edit(change);
}

/// Sets a key of the delta or message.
fn set(value: &mut Value, key: &str, to: Value) {
    if let Some(message) = edit::message(value) {
        message.insert(key.to_owned(), to);
    }
}

fn edit_usage(answer: &mut Answer, mut change: impl FnMut(&mut Value)) {
    for part in &mut answer.parts {
        part.edit(|value| edit::usage(value).into_iter().for_each(&mut change));
    }
}

fn scale(usage: &mut Value, percent: u64) {
    for key in OUTPUT {
        if let Some(count) = usage.get(key).and_then(Value::as_u64) {
            usage[key] = json!(count * percent / 100);
        }
    }
}

/// How the APIs call the tokens that came out.
const OUTPUT: [&str; 2] = ["completion_tokens", "output_tokens"];
const PAGE: &str = "<html><head><title>Bad Gateway</title></head><body>nginx</body></html>";
const ERROR: &str = r#"{"error":{"message":"out of memory","type":"server_error","code":500}}"#;
const LIMITED: &str =
    r#"{"error":{"message":"too many requests","type":"rate_limit_error","code":429}}"#;
const NOT_JSON: &str = "<not json>";
/// The largest event or head.
const BYTES_MAX: usize = 64 << 20;
