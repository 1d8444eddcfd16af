//! The step between a journal and its fold that puts counts into the ends of requests.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::thread;

use takt_net::affinity;
use takt_record::{Completed, Fold, Outcome, Record, RequestKey, TokenSource};
use takt_report::RunFold;

use super::counts;

/// Hands records on to a [`RunFold`] in their order, with the output of each success counted where the server
/// did not, and both counts told where it did.
pub(crate) struct Counting<'a, F> {
    fold: &'a mut RunFold,
    count: F,
    /// Texts of requests under way.
    open: BTreeMap<RequestKey, String>,
    window: Vec<Held>,
    /// Texts of requests that have ended within the window.
    texts: Vec<String>,
    text_bytes: usize,
}

/// A record that waits for a count before it.
enum Held {
    Record(Record<'static>),
    /// A success, and the place of its text.
    Success(Completed, usize),
}

impl<'a, F: Fn(&str) -> Option<u32> + Sync> Counting<'a, F> {
    /// Into `fold`, by `count`; to be finished.
    pub(crate) fn by(count: F, fold: &'a mut RunFold) -> Self {
        let (open, window, texts) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { fold, count, open, window, texts, text_bytes: 0 }
    }

    /// Hands on what is left.
    pub(crate) fn finish(mut self) {
        self.hand_on();
    }

    fn is_counted(&self, key: RequestKey) -> bool {
        let phase = self.fold.plan().phases.get(usize::from(key.phase.0));
        phase.is_some_and(|phase| counts(phase.kind))
    }

    fn end(&mut self, done: &Completed) {
        let text = self.open.remove(&done.key);
        if done.outcome != Outcome::Ok || !self.is_counted(done.key) {
            return self.hold(Held::Record(Record::Completed(*done)));
        }
        // An answer of no text has no records of it.
        let text = text.unwrap_or_default();
        self.text_bytes += text.len();
        let place = self.texts.len();
        self.texts.push(text);
        self.hold(Held::Success(*done, place));
    }

    /// Takes into the window what has to wait for a count before it, and counts when that is full.
    fn hold(&mut self, held: Held) {
        match held {
            Held::Record(record) if self.texts.is_empty() => return self.fold.fold(&record),
            held => self.window.push(held),
        }
        if self.text_bytes >= WINDOW_BYTES || self.window.len() >= WINDOW_RECORDS {
            self.hand_on();
        }
    }

    /// Counts the texts of the window and hands its records on.
    fn hand_on(&mut self) {
        let counts = counted(&self.texts, &self.count);
        for held in self.window.drain(..) {
            match held {
                Held::Record(record) => self.fold.fold(&record),
                Held::Success(mut done, place) => {
                    let counted = counts[place];
                    // Text was seen and none of it was recorded: what there is is no count.
                    let lost = self.texts[place].is_empty() && done.tokens.events > 0;
                    let counted = counted.filter(|_| !lost);
                    let stated = said(&done);
                    if stated.is_none() && counted.is_some() {
                        done.tokens.output = counted;
                        done.tokens.source = Some(TokenSource::Tokenizer);
                    }
                    self.fold.fold(&Record::Completed(done));
                    self.fold.tokenizer_counted(done.key.phase, stated, counted);
                }
            }
        }
        self.texts.clear();
        self.text_bytes = 0;
    }
}

impl<F: Fn(&str) -> Option<u32> + Sync> Fold for Counting<'_, F> {
    fn fold(&mut self, record: &Record<'_>) {
        let held = match *record {
            Record::Text(text) => {
                if self.is_counted(text.key) {
                    self.open.entry(text.key).or_default().push_str(text.text);
                }
                return;
            }
            Record::Completed(done) => return self.end(&done),
            Record::Error { .. } => {
                // Its message is the journal's.
                self.hand_on();
                return self.fold.fold(record);
            }
            Record::Session(record) => Record::Session(record),
            Record::Phase(record) => Record::Phase(record),
            Record::Issued(record) => Record::Issued(record),
            Record::Token(record) => Record::Token(record),
            Record::Conversation(record) => Record::Conversation(record),
            Record::Window(record) => Record::Window(record),
            Record::Clock(record) => Record::Clock(record),
            Record::Health(record) => Record::Health(record),
        };
        self.hold(Held::Record(held));
    }
}

/// The server's own count of an answer.
fn said(done: &Completed) -> Option<u32> {
    match done.tokens.source? {
        TokenSource::Usage | TokenSource::ContinuousUsage | TokenSource::TokenIds => {
            done.tokens.output
        }
        TokenSource::Tokenizer | TokenSource::Events => None,
    }
}

/// The count of each text, made by as many threads as there are cores.
fn counted(texts: &[String], count: &(impl Fn(&str) -> Option<u32> + Sync)) -> Vec<Option<u32>> {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let each = texts.len().div_ceil(cores).max(1);
    if texts.len() < PARALLEL_FROM {
        return texts.iter().map(|text| count(text)).collect();
    }
    thread::scope(|scope| {
        let part = |texts: &'_ [String]| -> Vec<Option<u32>> {
            drop(affinity::unpinned());
            texts.iter().map(|text| count(text)).collect()
        };
        let parts: Vec<_> =
            texts.chunks(each).map(|texts| scope.spawn(move || part(texts))).collect();
        let joined = parts
            .into_iter()
            .map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.flatten().collect()
    })
}

/// Bytes of text that are counted together.
const WINDOW_BYTES: usize = 4 << 20;
/// Records that wait for them.
const WINDOW_RECORDS: usize = 1 << 17;
/// Fewer are counted sooner than a thread is made.
const PARALLEL_FROM: usize = 64;

#[cfg(test)]
mod tests {
    use takt_record::{
        Issued, PhaseEvent, PhaseId, PhaseKind, PhasePlan, PhaseRecord, SessionPlan, Text,
        TextKind, Times, Token, TokenCounts, Tokens, TokensCounted,
    };
    use takt_report::Limits;
    use takt_time::Nanos;

    use super::*;

    fn plan() -> SessionPlan {
        let phase = PhasePlan {
            name: "p".to_owned(),
            kind: PhaseKind::Performance,
            pattern: "concurrency".to_owned(),
            rate: None,
            ramp: None,
            target_concurrency: Some(1),
            requests: None,
            stream: true,
            conversations: None,
        };
        SessionPlan {
            session_id: "0".repeat(32),
            takt: "test".to_owned(),
            started_at: "1970-01-01T00:00:00Z".to_owned(),
            phases: vec![phase],
            config: serde_json::Value::Null,
            host: serde_json::Value::Null,
        }
    }

    /// A success of which the server says that it has `output` tokens.
    fn completed(key: RequestKey, times: Times, output: Option<u32>) -> Completed {
        let source = Some(output.map_or(TokenSource::Events, |_| TokenSource::Usage));
        let output = output.or(Some(1));
        Completed {
            key,
            sample: 0,
            outcome: Outcome::Ok,
            times,
            tokens: TokenCounts { output, source, ..TokenCounts::default() },
            finish: None,
            status: Some(200),
            attempts: 1,
            reused: false,
            body_bytes: 0,
            turn: None,
            endpoint: 0,
        }
    }

    /// A run of `answers`, each a text and what the server says of it, counted by words; a question cannot be
    /// counted. The tokens of its phase, and the names of its verdict's reasons.
    fn run(answers: &[(&str, Option<u32>)]) -> (Tokens, Vec<String>) {
        let at = |ms: u64| Nanos::from_nanos(ms * 1_000_000);
        let words =
            |text: &str| (!text.contains('?')).then(|| text.split_whitespace().count() as u32);
        let mut fold = RunFold::new(plan());
        let mut counting = Counting::by(words, &mut fold);
        let phase = PhaseId(0);
        for event in [PhaseEvent::Started { inherited: 0 }, PhaseEvent::TrackingStarted] {
            counting.fold(&Record::Phase(PhaseRecord { at: at(0), phase, event }));
        }
        for (ordinal, (text, output)) in (0u64..).zip(answers) {
            let key = RequestKey { phase, ordinal };
            let (began, end) = (at(ordinal * 10), at(ordinal * 10 + 9));
            let issued = Issued { key, sample: 0, at: began, scheduled: None, turn: None };
            counting.fold(&Record::Issued(issued));
            for text in text.split_inclusive(' ') {
                let kind = TextKind::Content;
                counting.fold(&Record::Text(Text { at: began, key, kind, text }));
            }
            let times = Times { issued: began, sent: Some(began), end, ..Times::default() };
            counting.fold(&Record::Completed(completed(key, times, *output)));
        }
        counting.finish();
        let mut result = fold.result(&Limits::default());
        let names = result.verdict.reasons.into_iter().map(|reason| reason.name).collect();
        (result.phases.remove(0).tokens.unwrap(), names)
    }

    #[test]
    fn what_the_server_does_not_count_is_counted_by_the_tokenizer() {
        let (tokens, reasons) = run(&[("one two three", None), ("", None), ("a b", None)]);
        assert_eq!((tokens.output_total, tokens.source), (Some(5), Some(TokenSource::Tokenizer)));
        assert!(!reasons.contains(&"tokenizer".to_owned()), "{reasons:?}");
    }

    #[test]
    fn t4_counts_that_differ_from_the_servers_are_a_reason_and_the_servers_stay() {
        let eleven = "w ".repeat(22);
        let (tokens, reasons) = run(&[(&eleven, Some(20)), (&eleven, Some(20))]);
        assert_eq!((tokens.output_total, tokens.source), (Some(40), Some(TokenSource::Usage)));
        let expect = TokensCounted {
            requests: 2,
            uncounted: 0,
            output_total: 44,
            compared: 2,
            stated_total: 40,
            disagreeing: 2,
        };
        assert_eq!(tokens.tokenizer, Some(expect));
        assert!(reasons.contains(&"tokenizer".to_owned()), "{reasons:?}");
        // The token that ends an answer has no text.
        let (_, reasons) = run(&[("a b c", Some(4)), ("a b c", Some(3))]);
        assert!(!reasons.contains(&"tokenizer".to_owned()), "{reasons:?}");
    }

    #[test]
    fn what_cannot_be_counted_is_absent_and_said() {
        let (tokens, reasons) = run(&[("why?", Some(5)), ("a b", Some(2))]);
        let counted = tokens.tokenizer.unwrap();
        assert_eq!((counted.requests, counted.uncounted, counted.output_total), (1, 1, 2));
        assert!(reasons.contains(&"uncounted".to_owned()), "{reasons:?}");
    }

    /// A million answers are a matter of time, not of memory: what is held is a window of them.
    #[test]
    fn e8_what_is_held_is_a_window_however_many_answers_there_are() {
        let mut fold = RunFold::new(plan());
        let mut counting = Counting::by(|text: &str| Some(text.len() as u32), &mut fold);
        let text = "w ".repeat(500);
        let key = |ordinal| RequestKey { phase: PhaseId(0), ordinal };
        let (mut texts, mut records, mut bytes) = (0, 0, 0);
        for ordinal in 0..20_000 {
            // One of a hundred is still under way when the next begins.
            let ends = if ordinal % 100 == 0 { None } else { Some(ordinal) };
            let kind = TextKind::Content;
            counting.fold(&Record::Text(Text {
                at: Nanos::ZERO,
                key: key(ordinal),
                kind,
                text: &text,
            }));
            // Now and then a long stream goes on while nothing ends.
            let tokens = if ordinal % 5_000 == 2_500 { WINDOW_RECORDS * 3 } else { 1 };
            for _ in 0..tokens {
                counting.fold(&Record::Token(token(key(ordinal))));
                records = records.max(counting.window.len());
            }
            for ordinal in ends.into_iter().chain((ordinal % 100 == 1).then(|| ordinal - 1)) {
                counting.fold(&Record::Completed(completed(key(ordinal), Times::default(), None)));
            }
            texts = texts.max(counting.open.len());
            records = records.max(counting.window.len());
            bytes = bytes.max(counting.texts.iter().map(String::len).sum());
        }
        assert!(texts <= 2, "{texts} answers under way");
        assert!(
            records <= WINDOW_RECORDS && bytes <= WINDOW_BYTES + text.len(),
            "{records} {bytes}"
        );
        assert!(bytes > WINDOW_BYTES / 2, "the window was never full: {bytes}");
    }

    fn token(key: RequestKey) -> Token {
        Token {
            at: Nanos::ZERO,
            key,
            first: false,
            tokens: None,
            content: true,
            reasoning: false,
            tool_call: false,
            coalesced: false,
        }
    }

    #[test]
    fn many_texts_are_counted_each_in_its_place_whatever_the_window() {
        let texts: Vec<String> = (0..500).map(|n| "w ".repeat(n % 7)).collect();
        let answers: Vec<(&str, Option<u32>)> =
            (0..500).map(|n| (texts[n].as_str(), Some((n % 7) as u32))).collect();
        let (tokens, reasons) = run(&answers);
        assert_eq!(tokens.tokenizer.unwrap().disagreeing, 0);
        assert!(!reasons.contains(&"tokenizer".to_owned()), "{reasons:?}");
        let cores: Vec<Option<u32>> = counted(&texts, &|text: &str| Some(text.len() as u32));
        assert!(cores.iter().zip(&texts).all(|(n, text)| *n == Some(text.len() as u32)));
    }
}
