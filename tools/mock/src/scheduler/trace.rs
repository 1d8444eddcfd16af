//! A profiler window, and the traces that its ranks write: Chrome's format, as PyTorch's profiler uses it.
//!
//! A window keeps what its steps were made of; kernels follow from that, so they are made when the trace
//! is written, which is somebody else's work.

use std::io::{self, Write};

use takt_time::{Anchor, Nanos};

use super::config::CostModel;
use super::step::Shape;
use super::timeline::{Api, Family, FamilyTime, Launch, Observer, Ran, run};

/// A window that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfiledWindow {
    pub(super) cost: CostModel,
    pub(super) seed: u64,
    /// The wall clock.
    pub(super) anchor: Anchor,
    pub(super) ended: Nanos,
    /// Steps and when they were submitted.
    pub(super) steps: Vec<(Shape, Nanos)>,
}

impl ProfiledWindow {
    /// Ranks; each writes a trace of its own.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.cost.ranks.get()
    }

    /// Its steps.
    pub fn shapes(&self) -> impl Iterator<Item = &Shape> {
        self.steps.iter().map(|(shape, _)| shape)
    }

    /// The name of a rank's file, without an ending for compression.
    #[must_use]
    pub fn file_name(&self, rank: u32) -> String {
        let at = self.anchor.wall_ns(self.ended);
        format!("dp0_pp0_tp{rank}_dcp0_ep{rank}_rank{rank}.{at}.pt.trace.json")
    }

    /// The truth: the time of each family in a step on a rank, and how long any kernel was at work.
    #[must_use]
    pub fn truth(&self, step: usize, rank: u32) -> (Vec<FamilyTime>, u64) {
        struct Sums([(u64, u64); Family::COUNT], u64, u64);
        impl Observer for Sums {
            fn launched(&mut self, _: Launch) {}
            fn ran(&mut self, ran: Ran) {
                let (count, ns) = &mut self.0[ran.kernel.family as usize];
                (*count, *ns) = (*count + 1, *ns + ran.dur_ns);
                let end = ran.start_ns + ran.dur_ns;
                self.1 += end.saturating_sub(ran.start_ns.max(self.2));
                self.2 = self.2.max(end);
            }
        }
        let mut sums = Sums([(0, 0); Family::COUNT], 0, 0);
        if let Some((shape, submit)) = self.steps.get(step) {
            run(&self.cost, self.seed, shape, rank, *submit, &mut sums);
        }
        let of = |(family, (count, ns))| (count > 0).then_some(FamilyTime { family, count, ns });
        (Family::ALL.into_iter().zip(sums.0).filter_map(of).collect(), sums.1)
    }

    /// Writes a rank's trace.
    ///
    /// # Errors
    /// The output's.
    pub fn write(&self, rank: u32, out: &mut impl Write) -> io::Result<()> {
        write!(
            out,
            "{{\n\"schemaVersion\": 1,\n\"deviceProperties\": [{{\"id\": {rank}, \"name\": \"takt mock\"}}],\n\
             \"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": {rank}, \"world_size\": {}}},\n\
             \"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": {},\n\"traceEvents\": [\n\
             {{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": {PID}, \"tid\": 0, \"ts\": 0.000, \
             \"args\": {{\"name\": \"VLLM::Worker_TP{rank}\"}}}}",
            self.ranks(),
            self.anchor.wall_ns(Nanos::ZERO),
        )?;
        let mut lines = Lines { out, correlation: 1, rank, fault: Ok(()) };
        for (shape, submit) in &self.steps {
            lines.step(self, shape, *submit);
        }
        lines.fault?;
        write!(
            out,
            ",\n{{\"name\": \"Record Window End\", \"ph\": \"i\", \"s\": \"g\", \"pid\": \"\", \"tid\": \"\", \
             \"ts\": {}}}\n],\n\"traceName\": \"{}\"\n}}\n",
            Micros(self.ended.as_nanos()),
            self.file_name(rank)
        )
    }
}

struct Lines<'a, W> {
    out: &'a mut W,
    /// Of the step's first launch.
    correlation: u64,
    rank: u32,
    fault: io::Result<()>,
}

impl<W: Write> Lines<'_, W> {
    fn step(&mut self, window: &ProfiledWindow, shape: &Shape, submit: Nanos) {
        let mut events = Events { launches: 0, lines: self };
        let times = run(&window.cost, window.seed, shape, events.lines.rank, submit, &mut events);
        let launches = events.launches;
        self.correlation += launches;
        let Shape { prompts, prompt_tokens, decodes, decode_tokens, .. } = shape;
        let name = format!(
            "execute_context_{prompts}({prompt_tokens})_generation_{decodes}({decode_tokens})"
        );
        let (at, dur) = (Micros(times.mark_ns), Micros(times.mark_end_ns - times.mark_ns));
        self.line(format_args!(
            "\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"{name}\", \"pid\": {PID}, \
             \"tid\": {PID}, \"ts\": {at}, \"dur\": {dur}, \"args\": {{\"Ev Idx\": 0}}"
        ));
        // What the profiler makes of it on the GPU: it leaves sampling out.
        let gpu = Micros(times.gpu_end_ns.saturating_sub(times.mark_ns));
        let rank = self.rank;
        self.line(format_args!(
            "\"ph\": \"X\", \"cat\": \"gpu_user_annotation\", \"name\": \"{name}\", \"pid\": {rank}, \
             \"tid\": 7, \"ts\": {at}, \"dur\": {gpu}, \"args\": {{}}"
        ));
    }

    fn line(&mut self, what: std::fmt::Arguments<'_>) {
        if self.fault.is_ok() {
            self.fault = write!(self.out, ",\n{{{what}}}");
        }
    }
}

struct Events<'a, 'b, W> {
    launches: u64,
    lines: &'a mut Lines<'b, W>,
}

impl<W: Write> Observer for Events<'_, '_, W> {
    fn launched(&mut self, launch: Launch) {
        let correlation = self.lines.correlation + self.launches;
        self.launches += 1;
        let (category, name) = match launch.of.map(|kernel| kernel.api) {
            None => ("cuda_runtime", "cudaGraphLaunch"),
            Some(Api::Runtime) => ("cuda_runtime", "cudaLaunchKernel"),
            Some(Api::Driver) => ("cuda_driver", "cuLaunchKernelEx"),
            Some(Api::Copy) => ("cuda_runtime", "cudaMemcpyAsync"),
        };
        let (at, dur) = (Micros(launch.at_ns), Micros(launch.dur_ns));
        self.lines.line(format_args!(
            "\"ph\": \"X\", \"cat\": \"{category}\", \"name\": \"{name}\", \"pid\": {PID}, \"tid\": {PID}, \
             \"ts\": {at}, \"dur\": {dur}, \"args\": {{\"correlation\": {correlation}}}"
        ));
    }

    fn ran(&mut self, ran: Ran) {
        let rank = self.lines.rank;
        let correlation = self.lines.correlation + u64::from(ran.launch);
        let (category, name) =
            (if ran.kernel.api == Api::Copy { "gpu_memcpy" } else { "kernel" }, ran.kernel.name);
        let stream = if ran.kernel.family == Family::Collective { 20 } else { 7 };
        let (at, dur) = (Micros(ran.start_ns), Micros(ran.dur_ns));
        self.lines.line(format_args!(
            "\"ph\": \"X\", \"cat\": \"{category}\", \"name\": \"{name}\", \"pid\": {rank}, \
             \"tid\": {stream}, \"ts\": {at}, \"dur\": {dur}, \"args\": {{\"device\": {rank}, \
             \"stream\": {stream}, \"correlation\": {correlation}}}"
        ));
    }
}

/// Nanoseconds, written as microseconds with three decimals.
struct Micros(u64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// The process that traces say they are of.
const PID: u32 = 4242;
