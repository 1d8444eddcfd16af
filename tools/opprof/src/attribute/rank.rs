//! One rank's kernels to its steps.
//!
//! A kernel belongs to the step in which it was *launched*: its correlation names the launch, and the
//! launch lies between this step's mark and the next one's. GPU times would not do: the mark ends before
//! sampling is launched, and the GPU runs behind the CPU.

use super::cover::{Cover, Interval};
use crate::families::{Families, FamilyId};
use crate::trace::{Kernel, StepMark, Trace, TraceEnd, Work};

/// What one rank did in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepWork {
    /// The step's mark.
    pub mark: StepMark,
    /// Wall clock at the mark, if the trace has one.
    pub wall_ns: Option<u64>,
    /// What its kernels cover.
    pub cover: Cover,
}

/// What one rank did in one trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankWork {
    /// The rank.
    pub rank: u64,
    /// Its steps in order.
    pub steps: Vec<StepWork>,
    /// Kernels of no step.
    pub lost: Lost,
    /// Kernels without a family, the longest in sum first: name, how many, nanoseconds.
    pub unclassified: Vec<(String, u64, u64)>,
    /// Kernels, and the sum of their lengths.
    pub kernels: (u64, u64),
    /// Kernels whose family was told by their place.
    pub inferred: u64,
    /// The trace ends too early.
    pub cut: bool,
}

/// Kernels that belong to no step, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// They name no launch.
    pub without_correlation: u64,
    /// Their launch is not in the trace.
    pub without_launch: u64,
    /// Launched before the first step's mark.
    pub before_the_first: u64,
}

impl Lost {
    /// All of them.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.without_correlation + self.without_launch + self.before_the_first
    }
}

impl RankWork {
    /// Attributes the kernels of a trace; `by_place` also tells families by where kernels stand.
    #[must_use]
    pub fn of(trace: &Trace, rank: u64, families: &Families, by_place: bool) -> Self {
        let mut of_kernel: Vec<FamilyId> = family_of_each(trace, families);
        let inferred = if by_place { infer(trace, &mut of_kernel) } else { 0 };
        let mut lost = Lost::default();
        let mut intervals: Vec<Vec<Interval>> = vec![Vec::new(); trace.steps.len()];
        for (kernel, &family) in trace.kernels.iter().zip(&of_kernel) {
            if let Some(step) = step_of(trace, kernel, &mut lost) {
                let end_ns = kernel.start_ns.saturating_add(kernel.dur_ns);
                intervals[step].push(Interval { start_ns: kernel.start_ns, end_ns, family });
            }
        }
        let steps = trace.steps.iter().zip(&intervals);
        Self {
            rank,
            steps: steps
                .map(|(&mark, of)| {
                    let wall_ns = trace.wall_ns(mark.start_ns);
                    StepWork { mark, wall_ns, cover: Cover::of(of) }
                })
                .collect(),
            cut: trace.end != TraceEnd::Whole,
            lost,
            unclassified: unclassified(trace, &of_kernel),
            kernels: (trace.kernels.len() as u64, trace.kernels.iter().map(|k| k.dur_ns).sum()),
            inferred,
        }
    }

    /// When its first step began and its last one ended, by the wall clock if the trace has one.
    pub(super) fn time(&self) -> (u64, u64) {
        let at = |step: &StepWork| step.wall_ns.unwrap_or(step.mark.start_ns);
        let end = |step: &StepWork| at(step).saturating_add(step.mark.dur_ns);
        (self.steps.first().map_or(u64::MAX, at), self.steps.last().map_or(u64::MAX, end))
    }

    /// The share of GPU work in kernels without a family.
    #[must_use]
    pub fn unclassified_share(&self) -> f64 {
        let ns: u64 = self.unclassified.iter().map(|(_, _, ns)| ns).sum();
        if self.kernels.1 == 0 { 0.0 } else { ns as f64 / self.kernels.1 as f64 }
    }
}

fn family_of_each(trace: &Trace, families: &Families) -> Vec<FamilyId> {
    // A name is looked at once: a trace has a million kernels and some hundred names.
    let mut known: Vec<Option<FamilyId>> = vec![None; trace.names.len()];
    let of = |kernel: &Kernel| {
        let name = trace.name(kernel);
        match known.get_mut(kernel.name as usize) {
            Some(Some(family)) if kernel.work == Work::Kernel => *family,
            Some(place) if kernel.work == Work::Kernel => {
                *place.insert(families.of(kernel.work, name))
            }
            _ => families.of(kernel.work, name),
        }
    };
    trace.kernels.iter().map(of).collect()
}

fn step_of(trace: &Trace, kernel: &Kernel, lost: &mut Lost) -> Option<usize> {
    let Some(correlation) = kernel.correlation else {
        lost.without_correlation += 1;
        return None;
    };
    let Some(&launched) = trace.launches.get(&correlation) else {
        lost.without_launch += 1;
        return None;
    };
    let step = trace.steps.partition_point(|step| step.start_ns <= launched).checked_sub(1);
    lost.before_the_first += u64::from(step.is_none());
    step
}

/// The two kinds of kernels whose place tells what their name does not: dense GEMMs right before the
/// router's choice are the router's own, and a reduction right after an expert GEMM is the experts'.
fn infer(trace: &Trace, families: &mut [FamilyId]) -> u64 {
    let named = families.to_vec();
    let mut inferred = 0;
    for at in 1..named.len() {
        if named[at] == Families::ROUTER && named[at - 1] == Families::DENSE {
            // A split-K GEMM has its reduction between itself and the router.
            let reduction = trace.name(&trace.kernels[at - 1]).contains("splitKreduce");
            families[at - 1] = Families::ROUTER;
            inferred += 1;
            if reduction && at > 1 && named[at - 2] == Families::DENSE {
                families[at - 2] = Families::ROUTER;
                inferred += 1;
            }
        }
        let name = trace.name(&trace.kernels[at]);
        let reduces = name.contains("reduce_kernel") || name.contains("sum");
        if named[at - 1] == Families::EXPERTS && named[at] == Families::OTHER && reduces {
            families[at] = Families::EXPERTS;
            inferred += 1;
        }
    }
    inferred
}

fn unclassified(trace: &Trace, families: &[FamilyId]) -> Vec<(String, u64, u64)> {
    let mut by_name = vec![(0_u64, 0_u64); trace.names.len()];
    for (kernel, &family) in trace.kernels.iter().zip(families) {
        if family == Families::OTHER
            && let Some((count, ns)) = by_name.get_mut(kernel.name as usize)
        {
            *count += 1;
            *ns += kernel.dur_ns;
        }
    }
    let named = trace.names.iter().zip(by_name).filter(|(_, (count, _))| *count > 0);
    let mut named: Vec<(String, u64, u64)> =
        named.map(|(name, (count, ns))| (name.clone(), count, ns)).collect();
    named.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
    named
}
