//! One answer that is generated over time: bytes by the instant.
//!
//! ```text
//! Waiting --begin--> Tokens(at) --last token--> Tail(at) --[DONE]--> Done
//!                       ^    |
//!                       `----' one event: tokens_per_event tokens
//! ```
//!
//! All instants follow from the start of service and the plan; how late a call to [`Generation::advance`]
//! comes changes none of them. What is due by then is written in one go. A generation that is fed has tokens
//! when somebody gives it some ([`Generation::feed`]), and is hungry in between.

use takt_time::{Nanos, Span};
use takt_wire::{Request, write_last_chunk};

use crate::asked::Asked;
use crate::config::TimedConfig;
use crate::counts::Counts;
use crate::hostile::{End, Fault, Rehearsed, Script};
use crate::instant::EVENT_STREAM;
use crate::openai::{Api, Finish, Usage, Voice, prompt_tokens};
use crate::page::Page;
use crate::plan::Plan;
use crate::responses::{DELTA, OPENING, Responding, embedding};
use crate::said::Said;
use crate::scheduler::Prompt;
use crate::sglang::Frame;

/// What a generation is to produce, and how far it is.
#[derive(Debug)]
pub(crate) struct Generation {
    api: Api,
    asked: Asked,
    pub(crate) keep_alive: bool,
    /// For the answer's own id.
    id: Vec<u8>,
    prompt_tokens: u64,
    plan: Plan,
    tokens: u32,
    said: Option<Box<Said>>,
    /// Present when tokens come from a scheduler.
    feed: Option<Box<Feed>>,
    finish: Finish,
    per_event: u32,
    role_first: bool,
    tail: Span,
    began: Nanos,
    created_s: u64,
    sent: u32,
    ordinal: u64,
    spoiled: Option<Box<Spoiled>>,
    /// Events with tokens so far.
    events: u64,
    stage: Stage,
}

/// A generation whose answer meets a fault.
#[derive(Debug)]
enum Spoiled {
    /// Which, before it has begun.
    By(Fault),
    /// What leaves instead, since it has.
    Into(Script),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Waiting,
    /// Until it is fed.
    Hungry,
    Tokens {
        at: Nanos,
    },
    Tail {
        at: Nanos,
    },
    /// Another answer leaves in its place.
    Spoiled,
    Done,
}

/// What a scheduler gave.
#[derive(Debug)]
struct Feed {
    /// Until the scheduler has it.
    prompt: Option<Prompt>,
    tokens: u32,
    first_at: Option<Nanos>,
}

/// What the objects of all answers of one server have in common.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    /// Escaped.
    pub(crate) model: Vec<u8>,
    pub(crate) anchor: takt_time::Anchor,
}

impl Names {
    pub(crate) fn created_s(&self, at: Nanos) -> u64 {
        self.anchor.wall_ns(at) / 1_000_000_000
    }
}

impl Generation {
    /// The generation that `request`, the `ordinal`-th one, gets by `plan`.
    pub(crate) fn new(
        config: &TimedConfig,
        api: Api,
        request: &Request<'_>,
        ordinal: u64,
        plan: Plan,
    ) -> Self {
        let mut asked = Asked::scan(request.body);
        asked.stream &= api != Api::Embeddings;
        let said = config.saying.to(request.body).map(Box::new);
        let length = said.as_ref().map_or_else(|| plan.tokens(), |said| said.tokens());
        // What is embedded is not answered in words.
        let length = if api == Api::Embeddings { 0 } else { length };
        let cap = asked.tokens_max.unwrap_or(u32::MAX).max(1);
        let id = match request.id {
            Some(id) => id[..id.len().min(ID_MAX)].to_vec(),
            None => ordinal.to_string().into_bytes(),
        };
        Self {
            api,
            asked,
            keep_alive: request.keep_alive,
            id,
            prompt_tokens: prompt_tokens(request.body),
            tokens: length.min(cap),
            finish: if length > cap { Finish::Length } else { Finish::Stop },
            said,
            feed: None,
            plan,
            per_event: config.tokens_per_event.get(),
            role_first: config.role_first && matches!(api, Api::Chat | Api::Responses),
            tail: config.tail,
            began: Nanos::ZERO,
            created_s: 0,
            sent: 0,
            ordinal,
            spoiled: None,
            events: 0,
            stage: Stage::Waiting,
        }
    }

    /// What the request should have had, in the words of its refusal.
    pub(crate) fn missing(&self) -> Option<&'static str> {
        self.api.missing(&self.asked)
    }

    /// Takes its tokens from a scheduler, `most` of them at most.
    pub(crate) fn fed(mut self, prompt: Prompt, most: u32) -> Self {
        self.prompt_tokens = u64::from(prompt.tokens);
        if self.tokens > most {
            (self.tokens, self.finish) = (most, Finish::Length);
        }
        self.feed = Some(Box::new(Feed { prompt: Some(prompt), tokens: 0, first_at: None }));
        self
    }

    /// Hands its prompt over, once, and says how many tokens it is to be fed.
    pub(crate) fn hand_over(&mut self) -> Option<(Prompt, u32)> {
        // A pass of the model gives one at least; an embedding is not answered with it.
        Some((self.feed.as_mut()?.prompt.take()?, self.tokens.max(1)))
    }

    /// Gives it tokens that were planned for `at`; true when they were the last.
    pub(crate) fn feed(&mut self, at: Nanos, tokens: u32) -> bool {
        let Some(feed) = &mut self.feed else { return false };
        feed.tokens += tokens;
        feed.first_at.get_or_insert(at);
        let full = feed.tokens >= self.tokens;
        if self.asked.stream || full {
            self.stage = Stage::Tokens { at };
        }
        full
    }

    /// Its answer meets `fault`.
    pub(crate) fn spoiled(mut self, fault: Fault) -> Self {
        self.spoiled = Some(Box::new(Spoiled::By(fault)));
        self
    }

    /// What becomes of the connection behind the answer.
    pub(crate) fn end(&self) -> End {
        self.under_way().map_or(End::Keep, |script| script.end)
    }

    /// Whether nothing will follow, and nothing will end it.
    pub(crate) fn hangs(&self) -> bool {
        self.under_way().is_some_and(Script::hangs)
    }

    /// What becomes of all of it by `fault`, begun at `at`.
    pub(crate) fn script(&mut self, fault: Fault, at: Nanos, names: &Names) -> Script {
        self.asked.stream ^= fault.flips();
        let good = self.rehearse(at, names);
        Script::new(fault, &good, at, self.ordinal, self.keep_alive)
    }

    fn under_way(&self) -> Option<&Script> {
        match self.spoiled.as_deref()? {
            Spoiled::Into(script) => Some(script),
            Spoiled::By(_) => None,
        }
    }

    /// Generates all of it into nowhere, to be spoiled.
    fn rehearse(&mut self, at: Nanos, names: &Names) -> Vec<Rehearsed> {
        let (counts, mut data, mut pieces) = (Counts::default(), Vec::new(), Vec::new());
        let mut piece = |at: Nanos, work: &mut dyn FnMut(&mut Page<'_>)| {
            let (mut bytes, before) = (Vec::new(), counts.tokens());
            let (out, data) = (&mut bytes, &mut data);
            work(&mut Page { out, data, held: 0, ledger: None, counts: &counts });
            // No more than a plan has.
            let tokens = (counts.tokens() - before) as u32;
            if !bytes.is_empty() {
                pieces.push(Rehearsed { at, bytes, tokens });
            }
        };
        piece(at, &mut |page| self.begin(at, names, page));
        while let Some(at) = self.next_at() {
            piece(at, &mut |page| self.advance(at, usize::MAX, names, page));
        }
        pieces
    }

    /// Whether the answer is a stream of events.
    pub(crate) fn streams(&self) -> bool {
        self.asked.stream
    }

    /// When to call [`Generation::advance`] next; `None` before it has begun and when all is written.
    pub(crate) fn next_at(&self) -> Option<Nanos> {
        match self.stage {
            Stage::Waiting | Stage::Hungry | Stage::Done => None,
            Stage::Tokens { at } | Stage::Tail { at } => Some(at),
            Stage::Spoiled => self.under_way()?.next_at(),
        }
    }

    /// Whether all of the answer is written.
    pub(crate) fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    /// Starts service at `at`. What has no time of its own is written here.
    pub(crate) fn begin(&mut self, at: Nanos, names: &Names, page: &mut Page<'_>) {
        if let Some(Spoiled::By(fault)) = self.spoiled.take().map(|spoiled| *spoiled) {
            return self.begin_spoiled(fault, at, names, page);
        }
        let first = at + self.plan.ttft();
        let mut last = first;
        self.began = at;
        self.created_s = names.created_s(at);
        if self.asked.stream {
            if self.role_first {
                page.open_stream(EVENT_STREAM, self.keep_alive);
                if self.api == Api::Responses {
                    self.responding(names).opening(&mut |name, data| page.named_event(name, data));
                } else {
                    let voice = self.voice(names);
                    page.event(|data| voice.role(data));
                }
            }
        } else if self.feed.is_none() {
            for _ in 1..self.tokens {
                last += self.plan.next_gap();
            }
        }
        let planned = self.feed.is_none();
        self.stage = if planned { Stage::Tokens { at: last } } else { Stage::Hungry };
        if let Some(ledger) = &mut page.ledger {
            ledger.started(at, self.prompt_tokens);
            if planned {
                ledger.planned(first, last);
            }
        }
    }

    fn begin_spoiled(&mut self, fault: Fault, at: Nanos, names: &Names, page: &mut Page<'_>) {
        let script = self.script(fault, at, names);
        self.spoiled = Some(Box::new(Spoiled::Into(script)));
        self.stage = Stage::Spoiled;
        if let Some(ledger) = &mut page.ledger {
            ledger.started(at, self.prompt_tokens);
        }
    }

    /// Writes what is due at `now`, at most `most` unwritten bytes and one event beyond.
    pub(crate) fn advance(&mut self, now: Nanos, most: usize, names: &Names, page: &mut Page<'_>) {
        if let Some(Spoiled::Into(script)) = self.spoiled.as_deref_mut() {
            script.advance(now, page);
            if script.is_done() {
                self.stage = Stage::Done;
            }
            return;
        }
        while page.queued() <= most {
            match self.stage {
                Stage::Tokens { at } if at <= now && self.asked.stream => {
                    self.write_event(at, names, page);
                }
                Stage::Tokens { at } if at <= now => self.write_whole(at, names, page),
                Stage::Tail { at } if at <= now => self.write_tail(names, page),
                _ => return,
            }
        }
    }

    fn write_event(&mut self, at: Nanos, names: &Names, page: &mut Page<'_>) {
        let first = self.sent == 0;
        if first && !self.role_first {
            page.open_stream(EVENT_STREAM, self.keep_alive);
            if self.api == Api::Responses {
                self.responding(names).opening(&mut |name, data| page.named_event(name, data));
            }
        }
        let upto = match &self.feed {
            Some(feed) => feed.tokens,
            None => self.sent.saturating_add(self.per_event),
        };
        let upto = upto.min(self.tokens);
        let (tokens, with_role) = (self.sent..upto, first && !self.role_first);
        if let Some(ledger) = &mut page.ledger {
            ledger.planned(at, at);
        }
        match self.api {
            Api::Sglang => page.event(|data| self.frame(at, upto).write(data)),
            Api::Responses => {
                let number = OPENING + self.events;
                let responding = self.responding(names);
                page.named_event(DELTA, |data| responding.tokens(data, number, tokens));
            }
            Api::Chat | Api::Completions | Api::Embeddings => {
                let so_far = self.asked.continuous_usage.then(|| self.usage(upto));
                page.event(|data| self.voice(names).tokens(data, tokens, with_role, so_far));
            }
        }
        page.had_tokens(at, upto - self.sent);
        self.sent = upto;
        self.events += 1;
        self.stage = if upto == self.tokens {
            Stage::Tail { at: at + self.tail }
        } else if self.feed.is_some() {
            Stage::Hungry
        } else {
            let coming = self.per_event.min(self.tokens - upto);
            Stage::Tokens { at: (0..coming).fold(at, |at, _| at + self.plan.next_gap()) }
        };
    }

    fn write_tail(&mut self, names: &Names, page: &mut Page<'_>) {
        if self.api == Api::Responses {
            let number = OPENING + self.events;
            let (finish, usage) = (self.finish, self.usage(self.tokens));
            let mut event = |name: &str, data: &dyn Fn(&mut Vec<u8>)| page.named_event(name, data);
            self.responding(names).closing(&mut event, number, self.tokens, finish, usage);
            write_last_chunk(page.out);
            return self.done(0, page);
        }
        // SGLang has said both in the frame of the last token.
        if self.api != Api::Sglang {
            let voice = self.voice(names);
            page.event(|data| voice.finish(data, self.finish));
            if self.asked.include_usage {
                page.event(|data| voice.usage(data, self.usage(self.tokens)));
            }
        }
        page.event(|data| data.extend_from_slice(b"[DONE]"));
        write_last_chunk(page.out);
        self.done(0, page);
    }

    fn write_whole(&mut self, at: Nanos, names: &Names, page: &mut Page<'_>) {
        if let (Some(feed), Some(ledger)) = (&self.feed, &mut page.ledger) {
            ledger.planned(feed.first_at.unwrap_or(at), at);
        }
        page.answer(200, "application/json", self.keep_alive, &[], |data| match self.api {
            Api::Sglang => self.frame(at, self.tokens).write(data),
            Api::Responses => {
                let usage = self.usage(self.tokens);
                self.responding(names).whole(data, self.tokens, self.finish, usage);
            }
            Api::Embeddings => embedding(data, &names.model, self.prompt_tokens),
            Api::Chat | Api::Completions => {
                let (voice, usage) = (self.voice(names), self.usage(self.tokens));
                voice.whole(data, self.tokens, self.finish, usage);
            }
        });
        page.counts.emitted(self.tokens);
        self.done(self.tokens, page);
    }

    fn done(&mut self, tokens: u32, page: &mut Page<'_>) {
        let queued = page.queued();
        if let Some(ledger) = &mut page.ledger {
            ledger.ends(queued, tokens);
        }
        page.counts.answered(200);
        self.stage = Stage::Done;
    }

    fn voice<'a>(&'a self, names: &'a Names) -> Voice<'a> {
        Voice {
            chat: self.api == Api::Chat,
            id: &self.id,
            created_s: self.created_s,
            model: &names.model,
            said: self.said.as_deref(),
            ids: self.asked.token_ids,
        }
    }

    fn responding<'a>(&'a self, names: &'a Names) -> Responding<'a> {
        let (created_s, said) = (self.created_s, self.said.as_deref());
        Responding { id: &self.id, created_s, model: &names.model, said }
    }

    /// What SGLang says at `at`, when there are `tokens`.
    fn frame(&self, at: Nanos, tokens: u32) -> Frame<'_> {
        let finish = (tokens == self.tokens).then_some(self.finish);
        let since = at.saturating_since(self.began);
        Frame { id: &self.id, usage: self.usage(tokens), finish, since, said: self.said.as_deref() }
    }

    fn usage(&self, tokens: u32) -> Usage {
        Usage { prompt: self.prompt_tokens, completion: u64::from(tokens) }
    }
}

/// Bytes of a request's id that the answer's id repeats.
const ID_MAX: usize = 64;
