//! The scheduler between connections and the clock.
//!
//! A step begins as soon as there is anything to do and ends by a timer; the next one begins before the
//! tokens of the last are written, as in a server whose front end is another process.

use std::fmt;

use takt_engine::{StreamId, TimerKey};
use takt_time::Nanos;

use super::core::{Asking, Core, Ticket};
use super::{ProfiledWindow, SchedulerSink};
use crate::config::{Mode, ServerConfig};
use crate::connection::Job;
use crate::server::{Cx, Server, Task};
use crate::site::Site;

/// The scheduler of a server, and who is told of it.
pub(crate) struct Scheduling {
    core: Core,
    sink: Option<Box<dyn SchedulerSink + Send>>,
    /// A message to begin a step is under way.
    soon: bool,
    /// The timer for those who are deferred.
    later: Option<TimerKey>,
}

impl Scheduling {
    /// The scheduler that `config` wants.
    pub(crate) fn of(config: &ServerConfig, site: &Site) -> Option<Self> {
        let Mode::Scheduler(scheduler) = &config.mode else { return None };
        let counts = site.step_counts()?.clone();
        let core = Core::new(scheduler, config.anchor, counts);
        Some(Self { core, sink: None, soon: false, later: None })
    }

    /// Takes over the prompt of a job that has begun.
    pub(crate) fn submit(&mut self, stream: StreamId, job: &mut Job, at: Nanos, cx: &mut Cx<'_>) {
        let Some((prompt, tokens)) = job.generation.hand_over() else { return };
        job.ticket = Some(self.core.add(Asking { stream, prompt, tokens }, at));
        self.wake(cx);
    }

    /// Forgets a job whose client has gone.
    pub(crate) fn abort(&mut self, ticket: Ticket, cx: &mut Cx<'_>) {
        self.core.abort(ticket);
        self.wake(cx);
    }

    /// Starts or stops the profiler.
    pub(crate) fn profile(&mut self, start: bool, now: Nanos) {
        if start {
            self.core.start_profile();
        } else {
            self.core.stop_profile();
            let window = self.core.stopped(now);
            self.window(window);
        }
    }

    /// The server stops.
    pub(crate) fn end(&mut self) {
        if let Some(sink) = &mut self.sink {
            sink.end(self.core.unfinalized());
        }
    }

    /// Sees to it that a step begins when it can.
    fn wake(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        let Some(at) = self.core.next_at(now) else { return };
        if let Some(timer) = self.later.take() {
            cx.cancel(timer);
        }
        if at > now {
            self.later = Some(cx.call_at(at, Task::Step.into()));
        } else if !std::mem::replace(&mut self.soon, true) {
            cx.call_soon(Task::Step.into());
        }
    }

    fn begin(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        if self.core.next_at(now).is_none_or(|at| at > now) {
            return self.wake(cx);
        }
        let (ends, window) = self.core.begin(now);
        cx.call_at(ends, Task::StepEnds.into());
        self.window(window);
    }

    fn window(&mut self, window: Option<ProfiledWindow>) {
        if let (Some(window), Some(sink)) = (window, &mut self.sink) {
            sink.window(window);
        }
    }
}

impl Server {
    /// Hands each step's record and each profiler window to `sink` (`scheduler`). Without a sink none is
    /// kept.
    #[must_use]
    pub fn with_scheduler_sink(mut self, sink: impl SchedulerSink + Send + 'static) -> Self {
        if let Some(scheduling) = &mut self.scheduling {
            scheduling.sink = Some(Box::new(sink));
        }
        self
    }

    /// Begins a step, if there is anything to do.
    pub(crate) fn step(&mut self, cx: &mut Cx<'_>) {
        let Some(scheduling) = &mut self.scheduling else { return };
        (scheduling.soon, scheduling.later) = (false, None);
        scheduling.begin(cx);
    }

    /// Completes the step under way, begins the next and writes what was made.
    pub(crate) fn step_ends(&mut self, cx: &mut Cx<'_>) {
        let Some(scheduling) = &mut self.scheduling else { return };
        let now = cx.now();
        let Some(completed) = scheduling.core.complete(now) else { return };
        if let Some(sink) = &mut scheduling.sink {
            sink.step(completed.record);
        }
        let window = scheduling.core.stopped(now);
        scheduling.window(window);
        scheduling.begin(cx);
        for emitted in completed.emitted {
            let connection = self.connections.get(emitted.stream);
            let Some(job) = connection.and_then(|c| c.job.as_mut()) else { continue };
            if job.generation.feed(completed.planned, emitted.tokens) {
                job.ticket = None;
            }
            self.go_on(emitted.stream, now, cx);
            self.rest(emitted.stream, cx);
        }
    }
}

impl fmt::Debug for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduling").field("core", &self.core).finish_non_exhaustive()
    }
}
