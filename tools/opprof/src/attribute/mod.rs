//! Where the time of each step went.
//!
//! ```text
//! traces of all ranks --launch--> kernels of each step --families--> unions per rank
//! step records        --align---> submit … complete of the same steps
//!                                        └─ slowest rank's union + residual = span
//! ```
//!
//! The slowest rank is the critical path of a step. What its kernels do not cover of the span from
//! submit to complete is the *residual*: scheduling, launching, waiting for one another, output. It
//! cannot be negative by more than the clocks' error; if it is, something was put into the wrong step.

mod align;
mod cover;
mod json;
mod rank;
#[cfg(test)]
mod tests;
mod text;

pub use cover::{Cover, FamilyCover};
pub use rank::{Lost, RankWork, StepWork};

use crate::steps::StepFacts;
use crate::trace::StepMark;

/// How traces are attributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributeOptions {
    /// Tell two kinds of kernels by their place.
    pub by_place: bool,
    /// How far the clocks of GPU, trace and records may be apart.
    pub clock_error_ns: u64,
}

impl Default for AttributeOptions {
    fn default() -> Self {
        Self { by_place: false, clock_error_ns: 50_000 }
    }
}

/// One profiler window: a trace of each rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Ranks in order of their numbers.
    pub ranks: Vec<RankWork>,
    /// Its steps.
    pub steps: Vec<StepAttribution>,
    /// Steps of other ranks that differ from the first rank's of the same place.
    pub unlike: u64,
    /// Records within the window's time that no mark matches, by their indices.
    pub records_without_mark: Vec<u64>,
    /// Traces that were read up to a cut only.
    pub cut: u64,
}

/// One step over all ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct StepAttribution {
    /// Its mark on the first rank.
    pub mark: StepMark,
    /// Its record.
    pub record: Option<StepFacts>,
    /// The slowest rank's place among [`Window::ranks`].
    pub critical: usize,
    /// What the slowest rank's kernels cover.
    pub cover: Cover,
    /// Work of all ranks together.
    pub work_ns: u64,
    /// Span less cover; `None` without a record.
    pub residual_ns: Option<i64>,
}

/// What must hold and does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contradiction {
    /// More time covered than the step took.
    NegativeResidual {
        /// Which step, by its record.
        step: u64,
        /// How much more.
        by_ns: u64,
    },
    /// Families and their overlaps do not add up to what kernels cover.
    InclusionExclusion {
        /// Place of the step in its window.
        place: usize,
        /// By families.
        families_ns: i128,
        /// By kernels.
        union_ns: u64,
    },
}

/// Attributes one window, given the work of each rank. `records` are the steps of their scheduler in order.
#[must_use]
pub fn attribute(
    mut ranks: Vec<RankWork>,
    records: &[StepFacts],
    options: AttributeOptions,
) -> Window {
    ranks.sort_by_key(|rank| rank.rank);
    let marks: &[StepWork] = ranks.first().map_or(&[], |rank| &rank.steps);
    let sought: Option<Vec<align::Sought>> =
        marks.iter().map(|step| Some((step.wall_ns, step.mark.composition?))).collect();
    // Steps without counts cannot be told from each other.
    let found = match sought {
        Some(sought) => align::align(&sought, records, options.clock_error_ns),
        None => vec![None; marks.len()],
    };
    let steps = (0..marks.len()).map(|at| step(&ranks, at, found[at].map(|at| records[at])));
    Window {
        steps: steps.collect(),
        unlike: unlike(&ranks),
        records_without_mark: left_over(&found, records),
        cut: ranks.iter().filter(|rank| rank.cut).count() as u64,
        ranks,
    }
}

/// Traces of several windows to one list a window. Ranks of one window overlap in time, and windows of
/// one rank do not.
#[must_use]
pub fn windows(mut traces: Vec<RankWork>) -> Vec<Vec<RankWork>> {
    traces.sort_by_key(|trace| trace.time().0);
    let mut windows: Vec<(u64, Vec<RankWork>)> = Vec::new();
    for trace in traces {
        let (begins, ends) = trace.time();
        match windows.last_mut() {
            Some((until, window))
                if begins <= *until && window.iter().all(|other| other.rank != trace.rank) =>
            {
                *until = ends.max(*until);
                window.push(trace);
            }
            _ => windows.push((ends, vec![trace])),
        }
    }
    windows.into_iter().map(|(_, window)| window).collect()
}

fn step(ranks: &[RankWork], at: usize, record: Option<StepFacts>) -> StepAttribution {
    let of = |rank: &RankWork| rank.steps.get(at).map_or(0, |step| step.cover.union_ns);
    // The first of equals, so that one rank alone is its own critical path.
    let critical =
        (0..ranks.len()).fold(0, |best, r| if of(&ranks[r]) > of(&ranks[best]) { r } else { best });
    let cover = ranks[critical].steps.get(at).map(|step| step.cover.clone()).unwrap_or_default();
    let residual_ns = record.map(|record| {
        i64::try_from(record.span_ns()).unwrap_or(i64::MAX)
            - i64::try_from(cover.union_ns).unwrap_or(i64::MAX)
    });
    StepAttribution {
        mark: ranks[0].steps[at].mark,
        record,
        critical,
        work_ns: ranks.iter().filter_map(|rank| rank.steps.get(at)).map(|s| s.cover.sum_ns).sum(),
        cover,
        residual_ns,
    }
}

/// Steps in which ranks do not agree on what they computed; missing ones count.
fn unlike(ranks: &[RankWork]) -> u64 {
    let Some((first, others)) = ranks.split_first() else { return 0 };
    let of = |rank: &RankWork, at: usize| rank.steps.get(at).map(|step| step.mark.composition);
    let differ = |other: &RankWork| {
        let longest = first.steps.len().max(other.steps.len());
        (0..longest).filter(|&at| of(first, at) != of(other, at)).count() as u64
    };
    others.iter().map(differ).sum()
}

/// Records between the first and the last that was found, and were not.
fn left_over(found: &[Option<usize>], records: &[StepFacts]) -> Vec<u64> {
    let places = || found.iter().flatten().copied();
    let (Some(first), Some(last)) = (places().min(), places().max()) else { return Vec::new() };
    (first..=last)
        .filter(|at| records[*at].executed && !places().any(|place| place == *at))
        .map(|at| records[at].index)
        .collect()
}

impl Window {
    /// The share of steps that have a record.
    #[must_use]
    pub fn coverage(&self) -> f64 {
        let matched = self.steps.iter().filter(|step| step.record.is_some()).count();
        if self.steps.is_empty() { 0.0 } else { matched as f64 / self.steps.len() as f64 }
    }

    /// Whether anything ran on a GPU.
    #[must_use]
    pub fn has_kernels(&self) -> bool {
        self.ranks.iter().any(|rank| rank.kernels.0 > 0)
    }

    /// What does not hold of the reconstruction; empty when all does.
    #[must_use]
    pub fn contradictions(&self, options: AttributeOptions) -> Vec<Contradiction> {
        let mut found = Vec::new();
        for (place, step) in self.steps.iter().enumerate() {
            let families_ns = step.cover.inclusion_exclusion_ns();
            if families_ns != i128::from(step.cover.union_ns) {
                let union_ns = step.cover.union_ns;
                found.push(Contradiction::InclusionExclusion { place, families_ns, union_ns });
            }
            if let (Some(record), Some(residual)) = (step.record, step.residual_ns)
                && residual < 0
                && residual.unsigned_abs() > options.clock_error_ns
            {
                let by_ns = residual.unsigned_abs();
                found.push(Contradiction::NegativeResidual { step: record.index, by_ns });
            }
        }
        found
    }
}
