//! The scheduler: who is in the batch, who waits, and what each step computes.

use std::collections::VecDeque;
use std::sync::Arc;

use takt_engine::StreamId;
use takt_opprof::{Part, Scheduled, StepCounter, StepDraft};
use takt_record::{PrefixCounts, Queues, StepRecord};
use takt_time::{Anchor, Nanos, Span};

use super::config::SchedulerConfig;
use super::cost::unit;
use super::counts::StepCounts;
use super::pool::{BlockId, Pool};
use super::profiler::{Profiler, Steps};
use super::prompt::Prompt;
use super::step::Shape;
use super::timeline::{Launch, Observer, Ran, run};
use super::trace::ProfiledWindow;

/// A request's place in the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(usize);

/// What is asked of the scheduler.
#[derive(Debug)]
pub(crate) struct Asking {
    /// Whom the tokens are for.
    pub(crate) stream: StreamId,
    pub(crate) prompt: Prompt,
    /// Tokens of the answer, at least 1.
    pub(crate) tokens: u32,
}

/// Tokens for somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Emitted {
    pub(crate) stream: StreamId,
    pub(crate) tokens: u32,
}

/// A step that is complete.
#[derive(Debug)]
pub(crate) struct Completed {
    pub(crate) record: StepRecord<'static>,
    /// When it was planned to be.
    pub(crate) planned: Nanos,
    pub(crate) emitted: Vec<Emitted>,
}

/// The scheduler.
#[derive(Debug)]
pub(crate) struct Core {
    config: SchedulerConfig,
    anchor: Anchor,
    counter: StepCounter,
    counts: Arc<StepCounts>,
    pool: Pool,
    requests: Vec<Option<Request>>,
    spare: Vec<usize>,
    /// Requests so far.
    serial: u64,
    running: Vec<usize>,
    waiting: VecDeque<usize>,
    step: Option<UnderWay>,
    steps: u64,
    /// Somebody has ended since the last step: one more step hears of it.
    flush: bool,
    profiler: Option<Profiler>,
    /// The profiler is to stop when the step is complete.
    stopping: bool,
}

#[derive(Debug)]
struct Request {
    stream: StreamId,
    serial: u64,
    prompt: Prompt,
    /// Tokens of the answer: those that are made, and those that will be.
    made: u32,
    wanted: u32,
    /// Tokens whose keys and values are in the cache.
    computed: u32,
    /// Blocks of the prompt that can be found.
    known: usize,
    held: Vec<BlockId>,
    /// A part of the prompt was computed since it was admitted.
    begun: bool,
    preempted: bool,
    ready_at: Nanos,
}

#[derive(Debug)]
struct UnderWay {
    draft: StepDraft,
    shape: Shape,
    ends: Nanos,
    /// Who is in it: ticket, serial, tokens, guessed ones.
    batch: Vec<InBatch>,
}

#[derive(Clone, Copy, Debug)]
struct InBatch {
    place: usize,
    serial: u64,
    guessed: u32,
}

impl Request {
    fn total(&self) -> u32 {
        self.prompt.tokens + self.made
    }
}

impl Core {
    pub(crate) fn new(config: &SchedulerConfig, anchor: Anchor, counts: Arc<StepCounts>) -> Self {
        Self {
            counter: StepCounter::new(config.engine_id.clone()),
            pool: Pool::new(config.cache.blocks.get()),
            profiler: config.profiler.map(Profiler::new),
            config: config.clone(),
            anchor,
            counts,
            requests: Vec::new(),
            spare: Vec::new(),
            serial: 0,
            running: Vec::new(),
            waiting: VecDeque::new(),
            step: None,
            steps: 0,
            flush: false,
            stopping: false,
        }
    }

    /// Takes a request that came at `now`. Its prompt must be shorter than the longest context.
    pub(crate) fn add(&mut self, asking: Asking, now: Nanos) -> Ticket {
        let room = self.config.context_max.get().saturating_sub(asking.prompt.tokens).max(1);
        let grammar = if asking.prompt.grammar { self.config.grammar } else { Span::ZERO };
        let request = Request {
            stream: asking.stream,
            serial: self.serial,
            made: 0,
            wanted: asking.tokens.clamp(1, room),
            computed: 0,
            known: 0,
            held: Vec::new(),
            begun: false,
            preempted: false,
            ready_at: now + grammar,
            prompt: asking.prompt,
        };
        self.serial += 1;
        let place = match self.spare.pop() {
            Some(place) => place,
            None => {
                self.requests.push(None);
                self.requests.len() - 1
            }
        };
        self.requests[place] = Some(request);
        self.waiting.push_back(place);
        Ticket(place)
    }

    /// Forgets a request whose client has gone.
    pub(crate) fn abort(&mut self, Ticket(place): Ticket) {
        self.running.retain(|&other| other != place);
        self.waiting.retain(|&other| other != place);
        self.forget(place);
    }

    fn forget(&mut self, place: usize) {
        if let Some(mut request) = self.requests[place].take() {
            self.pool.release(&mut request.held);
            self.spare.push(place);
            self.flush = true;
        }
    }

    /// When the next step may begin, if there is anything to do and none is under way.
    pub(crate) fn next_at(&self, now: Nanos) -> Option<Nanos> {
        if self.step.is_some() {
            return None;
        }
        if self.flush || !self.running.is_empty() {
            return Some(now);
        }
        let ready = self.waiting.iter().filter_map(|&place| self.requests[place].as_ref());
        ready.map(|request| request.ready_at.max(now)).min()
    }

    /// Steps under way.
    pub(crate) fn unfinalized(&self) -> u64 {
        u64::from(self.step.is_some())
    }

    /// Begins a step; says when it will be complete, and what the profiler has to write.
    pub(crate) fn begin(&mut self, now: Nanos) -> (Nanos, Option<ProfiledWindow>) {
        let mut draft = self.counter.begin(Anchor { mono: now, wall_ns: self.anchor.wall_ns(now) });
        let mut shape = Shape { index: self.steps, ..Shape::default() };
        self.steps += 1;
        self.flush = false;
        let mut planner = Planner {
            draft: &mut draft,
            shape: &mut shape,
            budget: self.config.batch.tokens.get(),
            batch: Vec::new(),
            uniform: true,
        };
        let preempted = self.schedule_running(&mut planner);
        let prefix = if preempted == 0 {
            self.schedule_waiting(&mut planner, now)
        } else {
            PrefixCounts::default()
        };
        let (batch, uniform) = (planner.batch, planner.uniform);
        shape.choose_graph(self.config.graphs, uniform);
        draft.preempted(preempted);
        draft.prefix(prefix);
        draft.blocks(self.pool.total(), self.pool.free());
        draft.queues(self.queues(now));
        let mut written = None;
        let ends = if shape.tokens() == 0 {
            now + IDLE_STEP
        } else {
            if let Some(profiler) = &mut self.profiler {
                written = profiler.step(shape, now);
            }
            self.ends(&shape, now)
        };
        self.step = Some(UnderWay { draft, shape, ends, batch });
        (ends, written.map(|steps| self.window(steps, now)))
    }

    /// Completes the step under way.
    pub(crate) fn complete(&mut self, now: Nanos) -> Option<Completed> {
        let UnderWay { draft, shape, ends, batch } = self.step.take()?;
        let emitted: Vec<Emitted> = batch.into_iter().filter_map(|one| self.emit(one)).collect();
        let record = draft.complete(now, shape.graph_run());
        self.counts.completed(&record, emitted.iter().map(|e| u64::from(e.tokens)).sum());
        Some(Completed { record, planned: ends, emitted })
    }

    /// Starts the profiler.
    pub(crate) fn start_profile(&mut self) {
        if let Some(profiler) = &mut self.profiler {
            self.stopping = false;
            profiler.start();
        }
    }

    /// Stops the profiler, once the step under way is complete; see [`Core::stopped`].
    pub(crate) fn stop_profile(&mut self) {
        self.stopping = self.profiler.is_some();
    }

    /// What a stop has to write, if there was one and no step is under way.
    pub(crate) fn stopped(&mut self, now: Nanos) -> Option<ProfiledWindow> {
        if self.step.is_some() || !std::mem::take(&mut self.stopping) {
            return None;
        }
        let steps = self.profiler.as_mut()?.stop()?;
        Some(self.window(steps, now))
    }

    fn window(&self, steps: Steps, ended: Nanos) -> ProfiledWindow {
        let (cost, seed) = (self.config.cost, self.config.answers.seed);
        ProfiledWindow { cost, seed, anchor: self.anchor, ended, steps }
    }

    /// When a step that begins `now` is complete: its slowest rank decides.
    fn ends(&self, shape: &Shape, now: Nanos) -> Nanos {
        struct Nobody;
        impl Observer for Nobody {
            fn launched(&mut self, _: Launch) {}
            fn ran(&mut self, _: Ran) {}
        }
        let (cost, seed) = (&self.config.cost, self.config.answers.seed);
        let end = |rank| run(cost, seed, shape, rank, now, &mut Nobody).gpu_end_ns;
        let last = (0..cost.ranks.get()).map(end).max().unwrap_or(0);
        Nanos::from_nanos(last) + cost.finish
    }

    fn queues(&self, now: Nanos) -> Queues {
        let waiting = self.waiting.iter().filter_map(|&place| self.requests[place].as_ref());
        let deferred = waiting.filter(|request| request.ready_at > now).count();
        Queues {
            running: self.running.len() as u64,
            waiting: (self.waiting.len() - deferred) as u64,
            deferred: deferred as u64,
        }
    }

    /// Requests of the batch, in their order; gives how many were thrown out for want of blocks.
    fn schedule_running(&mut self, planner: &mut Planner<'_>) -> u64 {
        let mut preempted = 0;
        let mut at = 0;
        while let Some(&place) = self.running.get(at).filter(|_| planner.budget > 0) {
            let Some(request) = self.requests[place].as_mut() else { break };
            // Only what continues guesses: neither a prompt nor what is computed again.
            let continues = request.made > 0 && request.computed + 1 == request.total();
            let room = self.config.context_max.get().saturating_sub(request.total());
            let guessed = if continues { self.config.speculative.tokens.min(room) } else { 0 };
            let tokens = (request.total() + guessed - request.computed).min(planner.budget);
            let upto = blocks(request.computed + tokens, self.config.cache.block_tokens.get());
            if !self.pool.grow(&mut request.held, upto) {
                // The newest goes: it has not been looked at in this step.
                let Some(victim) = self.running.pop() else { break };
                self.preempt(victim);
                preempted += 1;
                continue;
            }
            self.plan(place, tokens, guessed, planner);
            at += 1;
        }
        preempted
    }

    /// Requests that wait, first come first served, but for those that are deferred.
    fn schedule_waiting(&mut self, planner: &mut Planner<'_>, now: Nanos) -> PrefixCounts {
        let mut prefix = PrefixCounts::default();
        let block_tokens = self.config.cache.block_tokens.get();
        let mut at = 0;
        while planner.budget > 0 && self.running.len() < self.config.batch.requests.get() as usize {
            let Some(&place) = self.waiting.get(at) else { break };
            let Some(request) = self.requests[place].as_mut() else { break };
            if request.ready_at > now {
                at += 1;
                continue;
            }
            let total = request.total();
            // One token at least has to be computed, or there would be nothing to go on from.
            let most = ((total - 1) / block_tokens) as usize;
            let mut found = 0;
            if self.config.cache.prefixes {
                let hashes = &request.prompt.blocks[..request.prompt.blocks.len().min(most)];
                found = self.pool.known(hashes);
                let hits = found as u64 * u64::from(block_tokens);
                note(&mut prefix, request.preempted, u64::from(total), hits);
            }
            let computed = found as u32 * block_tokens;
            let tokens = (total - computed).min(planner.budget);
            let upto = blocks(computed + tokens, block_tokens);
            let Some(held) = self.pool.admit(&request.prompt.blocks[..found], upto) else { break };
            (request.held, request.computed, request.known) = (held, computed, found);
            self.waiting.remove(at);
            self.running.push(place);
            self.plan(place, tokens, 0, planner);
        }
        prefix
    }

    /// Puts so many tokens of a request into the step.
    fn plan(&mut self, place: usize, tokens: u32, guessed: u32, planner: &mut Planner<'_>) {
        let Some(request) = self.requests[place].as_mut() else { return };
        let (before, after) = (request.computed, request.computed + tokens);
        let part = if request.made > 0 {
            // More than the token that was made last was missing: a preemption threw it away.
            if before + 1 < request.total() { Part::Resumed } else { Part::Decode }
        } else {
            match (request.begun, after >= request.prompt.tokens) {
                (false, false) => Part::First,
                (true, false) => Part::Middle,
                (true, true) => Part::Last,
                (false, true) => Part::Unsplit,
            }
        };
        request.begun = true;
        request.computed = after;
        if self.config.cache.prefixes {
            let whole = (after / self.config.cache.block_tokens.get()) as usize;
            let whole = whole.min(request.prompt.blocks.len());
            for at in request.known..whole {
                self.pool.know(request.held[at], request.prompt.blocks[at]);
            }
            request.known = request.known.max(whole);
        }
        planner.take(tokens, after, part);
        planner.uniform &= part == Part::Decode && guessed == self.config.speculative.tokens;
        let guessed = if part == Part::Decode { guessed.min(tokens - 1) } else { 0 };
        planner.batch.push(InBatch { place, serial: request.serial, guessed });
    }

    fn preempt(&mut self, place: usize) {
        let Some(request) = self.requests[place].as_mut() else { return };
        self.pool.release(&mut request.held);
        (request.computed, request.known, request.begun) = (0, 0, false);
        request.preempted = true;
        self.waiting.push_front(place);
    }

    /// The tokens that a step made for one of its batch.
    fn emit(&mut self, one: InBatch) -> Option<Emitted> {
        let request = self.requests[one.place].as_mut().filter(|r| r.serial == one.serial)?;
        if request.computed < request.total() {
            return None;
        }
        let (seed, chance) = (self.config.answers.seed, self.config.speculative.accepted);
        let right = |n: &u32| unit(seed, request.serial, u64::from(request.made + n)) < chance;
        let accepted = (0..one.guessed).take_while(right).count() as u32;
        let tokens = (1 + accepted).min(request.wanted - request.made);
        request.made += tokens;
        // What was guessed wrong is computed again, and so is the token that was made last.
        request.computed = request.total() - 1;
        let emitted = Emitted { stream: request.stream, tokens };
        if request.made >= request.wanted {
            self.running.retain(|&place| place != one.place);
            self.forget(one.place);
        }
        Some(emitted)
    }
}

/// A step while it is filled.
struct Planner<'a> {
    draft: &'a mut StepDraft,
    shape: &'a mut Shape,
    /// Tokens that still fit.
    budget: u32,
    batch: Vec<InBatch>,
    /// Nothing but decodes of one length.
    uniform: bool,
}

impl Planner<'_> {
    fn take(&mut self, tokens: u32, context_after: u32, part: Part) {
        self.budget -= tokens;
        let (tokens, context_after) = (u64::from(tokens), u64::from(context_after));
        self.draft.schedule(Scheduled { tokens, context_after, part });
        let shape = &mut self.shape;
        shape.context_tokens += context_after;
        match part {
            Part::Decode | Part::Resumed => {
                shape.decodes += 1;
                shape.decode_tokens += tokens;
                shape.resumed_tokens += if part == Part::Resumed { tokens } else { 0 };
            }
            Part::First | Part::Middle | Part::Last | Part::Unsplit => {
                shape.prompts += 1;
                shape.prompt_tokens += tokens;
            }
        }
    }
}

fn note(prefix: &mut PrefixCounts, preempted: bool, queries: u64, hits: u64) {
    let (of_requests, of_queries, of_hits) = if preempted {
        (&mut prefix.preempted_requests, &mut prefix.preempted_queries, &mut prefix.preempted_hits)
    } else {
        (&mut prefix.requests, &mut prefix.queries, &mut prefix.hits)
    };
    *of_requests += 1;
    *of_queries += queries;
    *of_hits += hits;
}

/// Blocks that hold so many tokens.
fn blocks(tokens: u32, block_tokens: u32) -> usize {
    tokens.div_ceil(block_tokens) as usize
}

/// A step without tokens: the CPU alone.
const IDLE_STEP: Span = Span::from_micros(50);
