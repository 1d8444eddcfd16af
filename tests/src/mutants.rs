//! Deliberate bugs, each a few bytes of one file: the list of them. The program `mutants` puts them into a copy of
//! the workspace and shows that each is found; `tests/mutants_fit.rs` says when one fits no more.

/// A deliberate bug: in `file`, `is` (which stands there once) becomes `becomes`.
pub struct Mutant {
    /// What is wrong with it, in words.
    pub name: &'static str,
    /// The file that it is put into.
    pub file: &'static str,
    is: &'static str,
    becomes: &'static str,
    /// The package and the filter of the tests that are to find it; `None` when seeds are.
    pub tests: Option<(&'static str, &'static str)>,
}

const fn mutant(
    name: &'static str,
    file: &'static str,
    is: &'static str,
    becomes: &'static str,
) -> Mutant {
    Mutant { name, file, is, becomes, tests: None }
}

impl Mutant {
    const fn by_tests(self, package: &'static str, filter: &'static str) -> Self {
        Self { tests: Some((package, filter)), ..self }
    }

    /// The text of its file with the bug in it.
    ///
    /// # Errors
    /// What it replaces does not stand there once, in words.
    pub fn put_into(&self, text: &str) -> Result<String, String> {
        match text.matches(self.is).count() {
            1 => Ok(text.replace(self.is, self.becomes)),
            times => {
                Err(format!("{}: {:?} stands {times} times in {}", self.name, self.is, self.file))
            }
        }
    }
}

/// All of them.
pub const MUTANTS: &[Mutant] = &[
    mutant(
        "a permit is given back twice",
        "engine/src/semaphore.rs",
        "self.available += 1;",
        "self.available += 2;",
    ),
    mutant(
        "a timer is one nanosecond late",
        "engine/src/wheel.rs",
        "let deadline = at.as_nanos();",
        "let deadline = at.as_nanos() + 1;",
    ),
    mutant(
        "a late completion is counted",
        "tools/report/src/phase.rs",
        "if self.ended.is_some() {\n            self.late += 1;",
        "if false {\n            self.late += 1;",
    ),
    mutant(
        "a chunk boundary is lost between two reads",
        "io/wire/src/chunked.rs",
        "self.state = if left == 0 { State::DataEnd }",
        "self.state = if left == 0 && at == input.len() { State::Size { size: 0, digits: false } } \
         else if left == 0 { State::DataEnd }",
    ),
    mutant(
        "an answer without an end counts as whole",
        "io/wire/src/answer/events.rs",
        "self.done || self.finish.is_some()",
        "self.done || self.count > 0",
    ),
    mutant(
        "a second attempt is not recorded",
        "actors/src/client/flight.rs",
        "attempts: self.attempts,",
        "attempts: 1,",
    ),
    mutant(
        "a drain forgets",
        "actors/src/session/mod.rs",
        "None if running.drain_after => self.link.in_flight[usize::from(running.issuer.id.0)],",
        "None if running.drain_after => 0,",
    ),
    mutant(
        "an undrained phase is taken for none",
        "actors/src/strategy/concurrency.rs",
        "for _ in 0..pace.inherited() {",
        "for _ in 0..pace.inherited().min(1) {",
    ),
    mutant(
        "a burst does not count what it inherits",
        "actors/src/strategy/burst.rs",
        "pace.in_flight() + u64::from(pace.inherited())",
        "pace.in_flight()",
    ),
    mutant(
        "time to first token is that of the role",
        "actors/src/client/flight.rs",
        "self.times.first_token = seen.first_token;",
        "self.times.first_token = seen.first_event;",
    ),
    mutant(
        "the send is stamped with the wrong instant",
        "actors/src/client/sending.rs",
        "times.sent.get_or_insert(sent);",
        "times.sent.get_or_insert(request.issued);",
    ),
    mutant(
        "a lost record is not told",
        "io/record/src/publisher.rs",
        "Err(_) => self.counters.lost += 1,",
        "Err(_) => {}",
    ),
    mutant(
        "blocks that waited go out of line",
        "io/record/src/publisher.rs",
        "self.overflow.push_back(block);",
        "self.overflow.push_front(block);",
    ),
    mutant(
        "an order repeats after each shuffle",
        "actors/src/order.rs",
        "self.left = self.indices.len();",
        "self.left = self.indices.len();\n            self.indices.sort_unstable();\n            \
         self.rng = rand::SeedableRng::seed_from_u64(1);",
    ),
    mutant(
        "a turn leaves before the answer to the one before it",
        "actors/src/strategy/agentic.rs",
        "talk.in_flight = pace.issue_turn(sample, scheduled, turn).is_some();",
        "talk.in_flight = pace.issue_turn(sample, scheduled, turn).is_some();\n        \
         if talk.turn == 0 && talk.end.turns > 1 {\n            talk.turn = 1;\n            \
         self.send(number, None, pace);\n        }",
    ),
    mutant(
        "a recorded delay is cut short",
        "actors/src/strategy/agentic.rs",
        "let due = since + delay;",
        "let due = since + Span::from_nanos(delay.as_nanos() / 2);",
    ),
    mutant(
        "a cancel forgets who waits for a connection",
        "actors/src/client/ending.rs",
        "Cancel::All => true,",
        "Cancel::All => flight.place != Place::Waiting,",
    ),
    mutant(
        "the pulse goes on behind the end",
        "actors/src/session/mod.rs",
        "fn pulse(&mut self, cx: &mut Context<'_, Self>) {\n        if self.over {",
        "fn pulse(&mut self, cx: &mut Context<'_, Self>) {\n        if false {",
    ),
    mutant(
        "a grace time is not granted an end",
        "actors/src/session/stopping.rs",
        "if stopping {\n                    self.give_up(cx);",
        "if stopping {",
    ),
    mutant(
        "the watchdog does not look at what came",
        "actors/src/session/watchdog.rs",
        "heard.map_or(self.since, |heard| heard.max(self.since)) + timeout",
        "heard.map_or(self.since, |_| self.since) + timeout",
    ),
    mutant(
        "the watchdog is not armed for the rest",
        "actors/src/session/watchdog.rs",
        "self.watchdog.timer = Some(cx.call_at(again, SessionMsg::IdlePerhaps));",
        "let _ = again;",
    ),
    mutant(
        "a phase inherits the silence of the one before",
        "actors/src/session/mod.rs",
        "self.watchdog.restart(start);",
        "",
    )
    .by_tests("takt-actors", "session"),
    mutant(
        "a session goes on behind its time",
        "actors/src/session/stopping.rs",
        "self.stop(Stop::Failed(FailedBy::RunTimeout, why), cx);",
        "let _ = (why, cx);",
    ),
    mutant(
        "a failure waits as a stop does",
        "actors/src/session/stopping.rs",
        "if failed {",
        "if failed && self.stop_grace.as_nanos() == 0 {",
    ),
    mutant(
        "a reader stops when its buffer was full",
        "actors/src/client/receiving.rs",
        "Then::More => {}",
        "Then::More => return,",
    ),
    mutant(
        "a write that fell short is not gone on with",
        "actors/src/client/sending.rs",
        "if connection.rest().is_empty() {\n            return;",
        "if !connection.rest().is_empty() {\n            return;",
    ),
    mutant(
        "what was let go is found under its old key",
        "actors/src/client/flight.rs",
        "self.slab.get_mut(key.slot as usize).filter(|flight| flight.serial == key.serial)",
        "self.slab.get_mut(key.slot as usize)",
    )
    .by_tests("takt-actors", "client"),
    mutant(
        "a slot of the wheel opens one instant late",
        "engine/src/wheel.rs",
        "if start > now || ",
        "if start >= now || ",
    )
    .by_tests("takt-engine", "wheel"),
    mutant(
        "an old key cancels another timer",
        "engine/src/wheel.rs",
        "entry.generation != key.generation || entry.payload.is_none()",
        "entry.payload.is_none()",
    )
    .by_tests("takt-engine", "wheel"),
    mutant(
        "a line end cut in two is two",
        "io/wire/src/sse.rs",
        "self.skip_lf = after.is_empty();",
        "self.skip_lf = false;",
    )
    .by_tests("takt-wire", "sse"),
    mutant(
        "of a repeated key the first counts",
        "io/wire/src/reader/cursor.rs",
        "new.then_some(())",
        "Some(()).filter(|()| new || key > 0)",
    )
    .by_tests("takt-wire", "reader"),
    mutant(
        "what lies between is taken for the inside of a string",
        "io/wire/src/reader/learned.rs",
        "let len = string_end(rest, 0)?;\n                    raw =",
        "let len = rest.len().checked_sub(self.fixed.len() - upto)?;\n                    raw =",
    )
    .by_tests("takt-wire", "reader"),
    mutant(
        "a connection is used behind a length and chunks at once",
        "io/wire/src/head.rs",
        "&& !ambiguous",
        "&& (!ambiguous || common.http11)",
    )
    .by_tests("takt-wire", "head"),
    mutant(
        "an address prints its key",
        "io/wire/src/url.rs",
        "Some((name, _)) if is_secret_name(name) =>",
        "Some((name, _)) if name == \"key\" =>",
    )
    .by_tests("takt-wire", "url"),
    mutant(
        "a damaged block passes its checksum",
        "io/record/src/journal/read.rs",
        "if checksum(&[&head[..FRAME_BYTES - 4], &self.bytes])",
        "if self.bytes.is_empty() && checksum(&[&head[..FRAME_BYTES - 4], &self.bytes])",
    )
    .by_tests("takt-record", "journal"),
    mutant(
        "a missing block is not missed",
        "io/record/src/journal/read.rs",
        "if frame.number != self.read.blocks {",
        "if frame.number < self.read.blocks {",
    )
    .by_tests("takt-record", "journal"),
    mutant(
        "a time is packed as a step from the wrong one",
        "io/record/src/decode.rs",
        "last = nanos(self.take, last)?;",
        "last = nanos(self.take, issued)?;",
    )
    .by_tests("takt-record", "block"),
    mutant(
        "a quote left open takes in the rest of the file",
        "io/dataset/src/csv.rs",
        "State::Quoted { opened } => Err(At::line(opened, Fault::QuoteLeftOpen)),",
        "State::Quoted { .. } => { self.ends.push(self.text.len()); Ok(first) }",
    )
    .by_tests("takt-dataset", ""),
    mutant(
        "a schedule is a sum of rounded gaps",
        "actors/src/arrivals.rs",
        "(self.count as f64 * 1e9 / self.rate).round() as u64",
        "self.count * (1e9 / self.rate) as u64",
    )
    .by_tests("takt-actors", "arrivals"),
    mutant(
        "the tokens of the first event count into the time of one",
        "tools/report/src/streams.rs",
        "counts.first_event.unwrap_or(self.first)",
        "counts.first_event.unwrap_or(self.first).min(1)",
    )
    .by_tests("takt-report", ""),
];
