//! The scheduler: who is in the batch, who waits, and what each step computes.

use std::collections::VecDeque;
use std::sync::Arc;

use takt_engine::StreamId;
use takt_opprof::{StepCounter, StepDraft};
use takt_record::{PrefixCounts, Queues, StepRecord};
use takt_time::{Anchor, Nanos, Span};

use super::config::SchedulerConfig;
use super::cost::unit;
use super::counts::StepCounts;
use super::pool::{BlockId, Pool};
use super::profiler::{Profiler, Steps};
use super::prompt::Prompt;
use super::schedule::Planner;
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
    pub(super) config: SchedulerConfig,
    anchor: Anchor,
    counter: StepCounter,
    counts: Arc<StepCounts>,
    pub(super) pool: Pool,
    pub(super) requests: Vec<Option<Request>>,
    spare: Vec<usize>,
    /// Requests so far.
    serial: u64,
    pub(super) running: Vec<usize>,
    pub(super) waiting: VecDeque<usize>,
    step: Option<UnderWay>,
    steps: u64,
    /// Somebody has ended since the last step: one more step hears of it.
    flush: bool,
    profiler: Option<Profiler>,
    /// The profiler is to stop when the step is complete.
    stopping: bool,
}

#[derive(Debug)]
pub(super) struct Request {
    pub(super) stream: StreamId,
    pub(super) serial: u64,
    pub(super) prompt: Prompt,
    /// Tokens of the answer: those that are made, and those that will be.
    pub(super) made: u32,
    pub(super) wanted: u32,
    /// Tokens whose keys and values are in the cache.
    pub(super) computed: u32,
    /// Blocks of the prompt that can be found.
    pub(super) known: usize,
    pub(super) held: Vec<BlockId>,
    /// A part of the prompt was computed since it was admitted.
    pub(super) begun: bool,
    pub(super) preempted: bool,
    pub(super) ready_at: Nanos,
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
pub(super) struct InBatch {
    pub(super) place: usize,
    pub(super) serial: u64,
    pub(super) guessed: u32,
}

impl Request {
    pub(super) fn total(&self) -> u32 {
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

/// A step without tokens: the CPU alone.
const IDLE_STEP: Span = Span::from_micros(50);
