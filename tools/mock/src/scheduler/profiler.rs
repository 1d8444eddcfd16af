//! The profiler behind `/start_profile` and `/stop_profile`, with the ways of vLLM 0.24.
//!
//! ```text
//! off --start--> on, delayed --delay steps--> tracing --steps_max + 1 steps--> written, still on --stop--> off
//!                                               └──────────────────stop──────────────────────────────────^
//! ```
//!
//! While it is on, a second start does nothing: a controller that does not stop gets one window and no
//! more. A step under way at the start is not in the trace, and a window over no step is a trace all the
//! same.

use takt_time::Nanos;

use super::config::ProfilerConfig;
use super::step::Shape;

/// Where it is.
#[derive(Debug, Default)]
pub(super) struct Profiler {
    config: ProfilerConfig,
    on: bool,
    /// Steps since the start.
    steps: u32,
    tracing: Option<Vec<(Shape, Nanos)>>,
    /// Steps passed to the trace so far, lost ones included.
    traced: u32,
    /// Windows that were opened.
    windows: u32,
}

/// The steps of a window that is over.
pub(super) type Steps = Vec<(Shape, Nanos)>;

impl Profiler {
    pub(super) fn new(config: ProfilerConfig) -> Self {
        Self { config, ..Self::default() }
    }

    pub(super) fn start(&mut self) {
        if self.on {
            return;
        }
        (self.on, self.steps) = (true, 0);
        if self.config.delay == 0 {
            self.open();
        }
    }

    /// A step of the model begins; gives what is to be written before it.
    pub(super) fn step(&mut self, shape: Shape, submit: Nanos) -> Option<Steps> {
        if !self.on {
            return None;
        }
        self.steps = self.steps.saturating_add(1);
        if self.tracing.is_none() && self.config.delay > 0 && self.steps == self.config.delay {
            self.open();
        }
        let tracing = self.tracing.as_mut()?;
        self.traced += 1;
        let lost = self.config.warmup.saturating_sub(1);
        if self.config.steps_max > 0 && self.traced > self.config.steps_max.saturating_add(lost) {
            return self.close();
        }
        if self.traced > lost {
            tracing.push((shape, submit));
        }
        None
    }

    /// Gives what is to be written.
    pub(super) fn stop(&mut self) -> Option<Steps> {
        self.on = false;
        self.close()
    }

    fn open(&mut self) {
        (self.tracing, self.traced) = (Some(Vec::new()), 0);
        self.windows += 1;
    }

    fn close(&mut self) -> Option<Steps> {
        let steps = self.tracing.take()?;
        // The profiler's own schedule runs once, and a warm-up makes it the one that decides.
        (self.config.warmup == 0 || self.windows == 1).then_some(steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs steps 1, 2, … until `steps`; gives the indices of each trace that is written.
    fn steps(profiler: &mut Profiler, from: u64, to: u64) -> Vec<Vec<u64>> {
        let step = |index| {
            let found = profiler.step(Shape { index, ..Shape::default() }, Nanos::ZERO)?;
            Some(indices(&found))
        };
        (from..=to).filter_map(step).collect()
    }

    fn indices(steps: &Steps) -> Vec<u64> {
        steps.iter().map(|(shape, _)| shape.index).collect()
    }

    #[test]
    fn a_window_is_written_at_the_step_after_its_last_and_a_stop_arms_the_next() {
        let mut p = Profiler::new(ProfilerConfig { steps_max: 2, ..ProfilerConfig::default() });
        assert_eq!(steps(&mut p, 1, 3), Vec::<Vec<u64>>::new());
        p.start();
        assert_eq!(steps(&mut p, 4, 6), [[4, 5]]);
        p.start();
        assert_eq!(steps(&mut p, 7, 9), Vec::<Vec<u64>>::new(), "it was not stopped");
        assert_eq!(p.stop(), None);
        p.start();
        assert_eq!(steps(&mut p, 10, 10), Vec::<Vec<u64>>::new());
        assert_eq!(p.stop().map(|steps| indices(&steps)), Some(vec![10]));
        p.start();
        assert_eq!(p.stop(), Some(vec![]), "a window over no step is written");
    }

    #[test]
    fn a_delay_passes_steps_over_and_a_warm_up_spoils_later_windows() {
        let delay = ProfilerConfig { delay: 2, steps_max: 1, warmup: 0 };
        let mut p = Profiler::new(delay);
        p.start();
        assert_eq!(steps(&mut p, 1, 3), [[2]]);
        p.stop();
        p.start();
        assert_eq!(p.stop(), None, "it never began");
        let mut p = Profiler::new(ProfilerConfig { delay: 0, steps_max: 3, warmup: 2 });
        p.start();
        assert_eq!(steps(&mut p, 1, 9), [[2, 3, 4]], "one step is lost");
        p.stop();
        p.start();
        assert_eq!(steps(&mut p, 10, 19), Vec::<Vec<u64>>::new());
        assert_eq!(p.stop(), None);
    }
}
