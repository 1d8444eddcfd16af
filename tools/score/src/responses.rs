//! The fold from records to whole responses: texts joined, each handed on when its request has ended.

use std::collections::BTreeMap;

use takt_record::{Completed, Fold, Issued, Outcome, PhaseId, Record, RequestKey, Text, TextKind};

/// One response, or what there is of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Response {
    /// Which request.
    pub key: RequestKey,
    /// Index of its sample.
    pub sample: u32,
    /// How often the sample had been issued in its phase before: 0 for the first time.
    pub repeat: u32,
    /// Its last record; `None` for a request whose end was never written, since the run was killed.
    pub completed: Option<Completed>,
    /// What it says.
    pub content: String,
    /// How it came to say so.
    pub reasoning: String,
    /// Pieces of tool calls, JSON, one a line; see [`crate::joined_tool_calls`].
    pub tool_calls: String,
}

/// Whether a phase's responses are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// They are.
    Yes,
    /// Its records are passed over.
    No,
}

/// Takes what [`Responses`] finds.
pub trait Sink {
    /// A request of a wanted phase was issued. In issue order, phase after phase.
    fn issued(&mut self, key: RequestKey, sample: u32);

    /// A response is whole. In the order in which requests ended; those without an end come last, in issue
    /// order.
    fn response(&mut self, response: Response);
}

/// Joins the texts of wanted phases. Holds one entry for each request under way and a number for each sample.
#[derive(Debug)]
pub struct Responses<S> {
    phases: Vec<Phase>,
    open: BTreeMap<RequestKey, Response>,
    sink: S,
}

#[derive(Debug)]
struct Phase {
    keep: Keep,
    /// How often each sample was issued. By its number, not its place: a journal may hold any number.
    issued: BTreeMap<u32, u32>,
}

impl<S: Sink> Responses<S> {
    /// Of a session with these phases.
    pub fn new(phases: impl IntoIterator<Item = Keep>, sink: S) -> Self {
        let phases =
            phases.into_iter().map(|keep| Phase { keep, issued: BTreeMap::new() }).collect();
        Self { phases, open: BTreeMap::new(), sink }
    }

    /// Hands on what has no end, and gives the sink back.
    pub fn finish(mut self) -> S {
        for response in std::mem::take(&mut self.open).into_values() {
            self.sink.response(response);
        }
        self.sink
    }

    fn wants(&self, phase: PhaseId) -> bool {
        self.phases.get(usize::from(phase.0)).is_some_and(|phase| phase.keep == Keep::Yes)
    }

    fn issue(&mut self, issued: &Issued) {
        let Some(phase) = self.phases.get_mut(usize::from(issued.key.phase.0)) else { return };
        let times = phase.issued.entry(issued.sample).or_default();
        let repeat = *times;
        *times += 1;
        let (key, sample) = (issued.key, issued.sample);
        self.open.insert(key, Response { key, sample, repeat, ..Response::default() });
        self.sink.issued(key, sample);
    }

    fn text(&mut self, text: &Text<'_>) {
        let Some(response) = self.open.get_mut(&text.key) else { return };
        let part = match text.kind {
            TextKind::Content => &mut response.content,
            TextKind::Reasoning => &mut response.reasoning,
            TextKind::ToolCalls => &mut response.tool_calls,
        };
        part.push_str(text.text);
    }

    fn complete(&mut self, completed: &Completed) {
        // Nothing is known of one whose issue was lost; the caller counts what is missing.
        let Some(mut response) = self.open.remove(&completed.key) else { return };
        response.completed = Some(*completed);
        self.sink.response(response);
    }
}

impl<S: Sink> Fold for Responses<S> {
    fn fold(&mut self, record: &Record<'_>) {
        match record {
            Record::Issued(issued) if self.wants(issued.key.phase) => self.issue(issued),
            Record::Text(text) if self.wants(text.key.phase) => self.text(text),
            Record::Completed(completed) if self.wants(completed.key.phase) => {
                self.complete(completed);
            }
            _ => {}
        }
    }
}

impl Response {
    /// Whether it was answered in full.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.completed.is_some_and(|completed| completed.outcome == Outcome::Ok)
    }

    /// Whether it says nothing at all, in no part.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        [&self.content, &self.reasoning, &self.tool_calls].iter().all(|part| part.trim().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use takt_record::{Times, TokenCounts};
    use takt_time::Nanos;

    use super::*;

    #[derive(Default)]
    struct Seen {
        issued: Vec<(u64, u32)>,
        responses: Vec<Response>,
    }

    impl Sink for Seen {
        fn issued(&mut self, key: RequestKey, sample: u32) {
            self.issued.push((key.ordinal, sample));
        }
        fn response(&mut self, response: Response) {
            self.responses.push(response);
        }
    }

    fn key(phase: u16, ordinal: u64) -> RequestKey {
        RequestKey { phase: PhaseId(phase), ordinal }
    }

    fn issued(key: RequestKey, sample: u32) -> Record<'static> {
        Record::Issued(Issued { key, sample, at: Nanos::ZERO, scheduled: None, turn: None })
    }

    fn text(key: RequestKey, kind: TextKind, text: &str) -> Record<'_> {
        Record::Text(Text { at: Nanos::ZERO, key, kind, text })
    }

    fn completed(key: RequestKey, sample: u32, outcome: Outcome) -> Record<'static> {
        Record::Completed(Completed {
            key,
            sample,
            outcome,
            times: Times::default(),
            tokens: TokenCounts::default(),
            finish: None,
            status: None,
            attempts: 1,
            reused: false,
            body_bytes: 0,
            endpoint: 0,
            turn: None,
        })
    }

    #[test]
    fn texts_of_interleaved_requests_are_joined_and_other_phases_passed_over() {
        let (a, b, c, other) = (key(1, 0), key(1, 1), key(1, 2), key(0, 0));
        let mut fold = Responses::new([Keep::No, Keep::Yes], Seen::default());
        for record in [
            issued(other, 5),
            issued(a, 5),
            issued(b, 6),
            text(b, TextKind::Content, "B"),
            text(a, TextKind::Reasoning, "why "),
            text(a, TextKind::Content, "A"),
            text(other, TextKind::Content, "no"),
            text(b, TextKind::Content, "B"),
            completed(b, 6, Outcome::Ok),
            completed(other, 5, Outcome::Ok),
            issued(c, 5),
            text(a, TextKind::Reasoning, "not"),
            completed(a, 5, Outcome::Unanswered),
            text(c, TextKind::Content, "C"),
            // Of a request whose issue is not there.
            completed(key(1, 9), 5, Outcome::Ok),
            issued(key(7, 0), 0),
        ] {
            fold.fold(&record);
        }
        let seen = fold.finish();
        assert_eq!(seen.issued, [(0, 5), (1, 6), (2, 5)]);
        let said: Vec<_> = seen
            .responses
            .iter()
            .map(|r| (r.key.ordinal, r.sample, r.repeat, r.is_ok(), &*r.content, &*r.reasoning))
            .collect();
        let expected = [
            (1, 6, 0, true, "BB", ""),
            (0, 5, 0, false, "A", "why not"),
            (2, 5, 1, false, "C", ""),
        ];
        assert_eq!(said, expected);
        assert_eq!(seen.responses[2].completed, None, "its end was never written");
    }
}
