//! What reading one event of a stream costs, for each API: from bytes of HTTP to facts, no socket and no record.
//!
//! ```text
//! event_cost                                    # nanoseconds of CPU time an event, each shape, best of 7 rounds
//! event_cost --shape chat --events 20000 --rounds 1 [--per-read 1]
//! ```
//!
//! The second form is for counting instructions: run it under `valgrind --tool=callgrind` with two numbers of
//! events, and the difference in instructions over the difference in events is the cost of one.
#![forbid(unsafe_code)]

use std::error::Error;
use std::hint::black_box;
use std::time::Duration;

use takt_bench::{Args, BadArg, CpuTime};
use takt_time::Nanos;
use takt_wire::{
    Answer, AnswerEvent, Api, Ask, Framing, Limits, write_event_chunk, write_head, write_last_chunk,
};

/// A kind of stream: its name, its API and the data of event `n`.
type Shape = (&'static str, Api, fn(u64) -> String);

const SHAPES: [Shape; 9] = [
    ("chat", Api::OpenaiChat, |n| chat(n, "", "")),
    ("chat_usage", Api::OpenaiChat, |n| {
        let (prompt, total) = (900, 900 + n);
        let usage = format!(
            r#","usage":{{"prompt_tokens":{prompt},"total_tokens":{total},"completion_tokens":{n}}}"#
        );
        chat(n, "", &usage)
    }),
    ("chat_token_ids", Api::OpenaiChat, |n| {
        chat(n, &format!(r#","token_ids":[{}]"#, 1000 + n), "")
    }),
    ("chat_tool_call", Api::OpenaiChat, |n| {
        format!(
            r#"{{"id":"chatcmpl-7f","object":"chat.completion.chunk","created":1767225600,"model":"m","choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":0,"function":{{"arguments":"{}"}}}}]}},"logprobs":null,"finish_reason":null}}]}}"#,
            word(n)
        )
    }),
    ("completions", Api::OpenaiCompletions, |n| {
        format!(
            r#"{{"id":"cmpl-7f","object":"text_completion","created":1767225600,"model":"m","choices":[{{"index":0,"text":"{}","logprobs":null,"finish_reason":null,"stop_reason":null}}]}}"#,
            word(n)
        )
    }),
    ("responses", Api::OpenaiResponses, |n| {
        format!(
            r#"{{"type":"response.output_text.delta","sequence_number":{},"item_id":"msg_7f","output_index":0,"content_index":0,"delta":"{}","logprobs":[]}}"#,
            4 + n,
            word(n)
        )
    }),
    // What no shape can be learned of: a number that changes and is not expected to.
    ("chat_scan", Api::OpenaiChat, |n| chat(n, "", &format!(r#","timings":{{"ms":{n}.5}}"#))),
    // What only serde_json reads: a key with an escape.
    ("chat_serde", Api::OpenaiChat, |n| chat(n, "", r#","\u0078":1"#)),
    ("generate", Api::SglangGenerate, |n| {
        let text: String = (0..=n).map(word).collect();
        let ids: Vec<String> = (0..=n).map(|n| (1000 + n).to_string()).collect();
        format!(
            r#"{{"text":"{text}","output_ids":[{}],"meta_info":{{"id":"7f","finish_reason":null,"prompt_tokens":900,"weight_version":"default","total_retractions":0,"completion_tokens":{},"cached_tokens":0,"e2e_latency":0.25}}}}"#,
            ids.join(","),
            n + 1
        )
    }),
];

fn chat(n: u64, choice: &str, more: &str) -> String {
    format!(
        r#"{{"id":"chatcmpl-7f","object":"chat.completion.chunk","created":1767225600,"model":"m","choices":[{{"index":0,"delta":{{"content":"{}"}},"logprobs":null,"finish_reason":null{choice}}}]{more}}}"#,
        word(n)
    )
}

fn word(n: u64) -> &'static str {
    [" the", " question", " is", " a\\n", " known", ",", " \\\"it\\\"", " before"][n as usize % 8]
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = Args::read(std::env::args().skip(1))?;
    let only: Option<String> = args.take("shape")?;
    let events: u64 = args.take("events")?.unwrap_or(400_000);
    let rounds: u32 = args.take("rounds")?.unwrap_or(7);
    let per_read: Option<usize> = args.take("per-read")?;
    args.done()?;
    if only.as_ref().is_some_and(|only| SHAPES.iter().all(|(name, ..)| name != only)) {
        let names: Vec<_> = SHAPES.iter().map(|(name, ..)| *name).collect();
        return Err(BadArg(format!("--shape is one of {}", names.join(", "))).into());
    }
    println!("{:16} {:>16} {:>16}   bytes an event", "shape", "8 in a read, ns", "1 in a read, ns");
    for shape in SHAPES.iter().filter(|(name, ..)| only.as_ref().is_none_or(|only| only == name)) {
        // A stream of some hundred events, as an answer has; a text that is repeated grows with their square.
        let stream = Stream::new(shape, ANSWER);
        let cost = |per_read| stream.cost(per_read, events, rounds);
        let (many, one) = match per_read {
            Some(per_read) => (cost(per_read)?, 0.0),
            None => (cost(8)?, cost(1)?),
        };
        println!(
            "{:16} {many:>16.1} {one:>16.1}   {}",
            shape.0,
            stream.bytes() / stream.events.len()
        );
    }
    Ok(())
}

/// The bytes of one answer, event by event.
struct Stream {
    api: Api,
    head: Vec<u8>,
    events: Vec<Vec<u8>>,
    end: Vec<u8>,
}

impl Stream {
    fn new(&(_, api, data): &Shape, events: u64) -> Self {
        let (mut head, mut end) = (Vec::new(), Vec::new());
        write_head(&mut head, 200, "text/event-stream", Framing::Chunked, true, &[]);
        let event = |n| {
            let mut chunk = Vec::new();
            write_event_chunk(&mut chunk, data(n).as_bytes());
            chunk
        };
        write_event_chunk(&mut end, b"[DONE]");
        write_last_chunk(&mut end);
        Self { api, head, events: (0..events).map(event).collect(), end }
    }

    fn bytes(&self) -> usize {
        self.events.iter().map(Vec::len).sum()
    }

    /// Nanoseconds of CPU time an event, in the best of `rounds`, with `per_read` events in each read.
    fn cost(&self, per_read: usize, events: u64, rounds: u32) -> Result<f64, Box<dyn Error>> {
        let reads: Vec<Vec<u8>> =
            self.events.chunks(per_read.max(1)).map(<[Vec<u8>]>::concat).collect();
        let ask = Ask { api: self.api, stream: true, keep_text: false, no_body: false };
        let mut answer = Answer::new(ask, Limits::default());
        let answers = (events / self.events.len() as u64).max(1);
        let mut best = Duration::MAX;
        for _ in 0..rounds {
            let (before, mut tokens) = (CpuTime::of_this_process()?, 0);
            for _ in 0..answers {
                answer.begin(ask);
                let mut sink = |event: AnswerEvent<'_>| {
                    tokens += u64::from(matches!(black_box(event), AnswerEvent::Token(_)));
                };
                answer.feed(&self.head, Nanos::ZERO, &mut sink);
                for (at, read) in reads.iter().enumerate() {
                    answer.feed(read, Nanos::from_nanos(at as u64 + 1), &mut sink);
                }
                answer.feed(&self.end, Nanos::from_nanos(u64::MAX), &mut sink);
            }
            let now = CpuTime::of_this_process()?;
            let spent = (now.user + now.sys).saturating_sub(before.user + before.sys);
            assert_eq!(tokens, answers * self.events.len() as u64, "every event is a token");
            best = best.min(spent);
        }
        Ok(best.as_nanos() as f64 / (answers * self.events.len() as u64) as f64)
    }
}

/// Events of an answer.
const ANSWER: u64 = 200;
