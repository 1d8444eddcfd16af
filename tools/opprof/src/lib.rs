//! What an inference server was doing while the clock ran.
//!
//! A load generator says *that* a request was slow. The server's own step records and its profiler's
//! traces say *why*, when they are read with care:
//!
//! ```text
//! step records --check----> sound, truncated or broken
//!   + traces ---attribute-> time of each step by kernel family ---calibrate--> cost by composition
//!   + a run -----join-----> client latency beside composition
//! off/on runs ---gate-----> does recording cost too much?
//! routes -------experts---> how even expert loads are
//! ```
//!
//! Nothing here opens a file, reads a clock or starts a thread: input is `BufRead` or bytes, and what
//! comes out is data and printed text. `docs/OPPROF.md` is the page for those who run servers.
#![forbid(unsafe_code)]

mod attribute;
mod builder;
mod calibrate;
mod check;
mod experts;
mod families;
mod gate;
mod join;
mod lines;
mod steps;
#[cfg(test)]
mod testing;
mod trace;
mod window;

pub use attribute::{
    AttributeOptions, Contradiction, Cover, FamilyCover, Lost, RankWork, StepAttribution, StepWork,
    Window, attribute, windows,
};
pub use builder::{GraphRun, Part, Scheduled, StepCounter, StepDraft};
pub use calibrate::{
    CalibrateError, Calibrated, Calibration, FEATURE_COUNT, FEATURES, ModeFit, OutOfRange,
    Prediction, Sample, Score, calibrate, features, samples,
};
pub use check::{
    Ending, FINDINGS_MAX, FileCheck, FileReport, Finding, Heading, StreamEnd, check_file,
    check_part, heading,
};
pub use experts::{Evenness, ExpertsError, Loads, Routes, RoutesError, read_answers};
pub use families::{FAMILIES_MAX, Families, FamiliesError, FamilyId};
pub use gate::{
    Arm, ArmMeans, Beside, Effect, ErrorRates, GateLimits, GateReport, GateRun, GateVerdict,
    MetricGate, RunsError, TRIAL_SHAPES, TrialShape, error_rates, gate, read_runs,
};
pub use join::{ClientFold, JoinError, join};
pub use lines::{Line, Lines};
pub use steps::{GraphMode, StepFacts, read_steps};
pub use trace::{Composition, Kernel, StepMark, Trace, TraceEnd, TraceError, Work};
pub use window::{Prompts, Regime, Watch};
