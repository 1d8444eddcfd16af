//! The same for programs: nanoseconds, every step, null for what is not known.

use serde_json::{Map, Value, json};

use super::{AttributeOptions, Contradiction, Cover, RankWork, StepAttribution, Window};
use crate::families::Families;

impl Window {
    /// The attribution as one JSON object.
    #[must_use]
    pub fn to_json(&self, families: &Families, options: AttributeOptions) -> Value {
        json!({
            "coverage": self.coverage(),
            "has_kernels": self.has_kernels(),
            "steps": self.steps.iter().map(|step| self.step(step, families)).collect::<Vec<_>>(),
            "ranks": self.ranks.iter().map(rank).collect::<Vec<_>>(),
            "steps_that_differ_between_ranks": self.unlike,
            "records_without_step": self.records_without_mark,
            "contradictions":
                self.contradictions(options).iter().map(Contradiction::says).collect::<Vec<_>>(),
        })
    }

    fn step(&self, step: &StepAttribution, families: &Families) -> Value {
        let record = step.record.as_ref();
        json!({
            "index": record.map(|record| record.index),
            "prompts": step.mark.composition.map(|c| c.context_requests),
            "prompt_tokens": step.mark.composition.map(|c| c.context_tokens),
            "decodes": step.mark.composition.map(|c| c.generation_requests),
            "decode_tokens": step.mark.composition.map(|c| c.generation_tokens),
            "graph": record.map(|record| record.mode.name()),
            "bucket_tokens": record.and_then(|record| record.bucket_tokens),
            "critical_rank": self.ranks.get(step.critical).map(|rank| rank.rank),
            "covered_ns": step.cover.union_ns,
            "idle_ns": step.cover.idle_ns(),
            "overlap_ns": step.cover.overlap_ns(),
            "work_all_ranks_ns": step.work_ns,
            "span_ns": record.map(crate::steps::StepFacts::span_ns),
            "residual_ns": step.residual_ns,
            "families": of_families(&step.cover, families),
        })
    }
}

fn of_families(cover: &Cover, families: &Families) -> Map<String, Value> {
    let of = |family: &super::FamilyCover| {
        let name = families.names()[usize::from(family.family.0)].clone();
        let value =
            json!({"kernels": family.count, "time_ns": family.union_ns, "work_ns": family.sum_ns});
        (name, value)
    };
    cover.families.iter().map(of).collect()
}

fn rank(rank: &RankWork) -> Value {
    let sum = |of: fn(&Cover) -> u64| rank.steps.iter().map(|step| of(&step.cover)).sum::<u64>();
    let unclassified = rank
        .unclassified
        .iter()
        .map(|(name, count, ns)| json!({"name": name, "kernels": count, "work_ns": ns}));
    json!({
        "rank": rank.rank,
        "kernels": rank.kernels.0,
        "covered_ns": sum(|cover| cover.union_ns),
        "idle_ns": sum(Cover::idle_ns),
        "work_ns": rank.kernels.1,
        "of_no_step": {
            "before_the_first": rank.lost.before_the_first,
            "without_launch": rank.lost.without_launch,
            "without_correlation": rank.lost.without_correlation,
        },
        "inferred": rank.inferred,
        "unclassified_share": rank.unclassified_share(),
        "unclassified": unclassified.collect::<Vec<_>>(),
        "cut": rank.cut,
    })
}

impl Contradiction {
    /// What does not hold, for people.
    #[must_use]
    pub fn says(&self) -> String {
        match self {
            Self::NegativeResidual { step, by_ns } => {
                let us = *by_ns as f64 / 1e3;
                format!("step {step} has {us:.1} us more kernel time than it took")
            }
            Self::InclusionExclusion { place, families_ns, union_ns } => {
                format!("step at place {place}: families give {families_ns} ns, kernels {union_ns}")
            }
        }
    }
}
