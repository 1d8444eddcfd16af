//! When a profiler window is to begin: a kind of steps, and that they go on.

use crate::steps::StepFacts;
use crate::trace::Composition;

/// What the batch is to be like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Regime {
    /// Requests that generate, from and to.
    pub decode: Option<(u64, u64)>,
    /// Requests that read their prompt.
    pub prompts: Prompts,
}

/// Whether a step may have prompts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prompts {
    /// It may.
    #[default]
    Any,
    /// It must not.
    None,
    /// It must.
    Some,
}

impl Prompts {
    /// Its word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::None => "none",
            Self::Some => "some",
        }
    }
}

impl Regime {
    /// Whether a step that ran the model is of this kind.
    #[must_use]
    pub fn holds(&self, step: &StepFacts) -> bool {
        self.fits(&step.composition)
    }

    /// The same of a step by its mark.
    #[must_use]
    pub fn fits(&self, step: &Composition) -> bool {
        let prompts = match self.prompts {
            Prompts::Any => true,
            Prompts::None => step.context_requests == 0,
            Prompts::Some => step.context_requests > 0,
        };
        let decodes = step.generation_requests;
        prompts && self.decode.is_none_or(|(from, to)| (from..=to).contains(&decodes))
    }

    /// Whether any step is of this kind.
    #[must_use]
    pub fn is_any(&self) -> bool {
        *self == Self::default()
    }
}

/// Waits for a regime to hold for some steps in a row.
#[derive(Clone, Debug)]
pub struct Watch {
    regime: Regime,
    steady: u32,
    in_a_row: u32,
    /// The least and the most decodes of the steps that were seen, and how many had prompts.
    seen: Option<(u64, u64)>,
    steps: u64,
    with_prompts: u64,
}

impl Watch {
    /// For `regime`, in `steady` steps in a row.
    #[must_use]
    pub fn new(regime: Regime, steady: u32) -> Self {
        Self { regime, steady: steady.max(1), in_a_row: 0, seen: None, steps: 0, with_prompts: 0 }
    }

    /// Looks at a step; true when the regime holds. Steps that did not run the model do not count.
    pub fn step(&mut self, step: &StepFacts) -> bool {
        if !step.executed {
            return false;
        }
        let decodes = step.composition.generation_requests;
        let (low, high) = self.seen.unwrap_or((decodes, decodes));
        self.seen = Some((low.min(decodes), high.max(decodes)));
        self.steps += 1;
        self.with_prompts += u64::from(step.composition.context_requests > 0);
        self.in_a_row = if self.regime.holds(step) { self.in_a_row + 1 } else { 0 };
        self.in_a_row >= self.steady
    }

    /// What there was instead.
    #[must_use]
    pub fn seen(&self) -> String {
        match self.seen {
            None => "no step was recorded; does the server have load, and are these its records?"
                .to_owned(),
            Some((low, high)) => format!(
                "in {} steps there were {low} to {high} decodes, and {} steps had prompts",
                self.steps, self.with_prompts
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::facts;

    #[test]
    fn a_regime_must_hold_in_steps_one_after_another() {
        let regime = Regime { decode: Some((3, 5)), prompts: Prompts::None };
        let mut watch = Watch::new(regime, 2);
        assert!(watch.seen().starts_with("no step was recorded"));
        let mut idle = facts(9, 0, 1, 0, 0);
        idle.executed = false;
        let found: Vec<bool> = [
            facts(0, 0, 1, 0, 4),
            facts(1, 0, 1, 10, 4),
            facts(2, 0, 1, 0, 5),
            idle,
            facts(3, 0, 1, 0, 3),
            facts(4, 0, 1, 0, 6),
        ]
        .iter()
        .map(|step| watch.step(step))
        .collect();
        assert_eq!(found, [false, false, false, false, true, false]);
        assert_eq!(watch.seen(), "in 5 steps there were 3 to 6 decodes, and 1 steps had prompts");
        let some = Regime { decode: None, prompts: Prompts::Some };
        assert!(some.holds(&facts(1, 0, 1, 10, 4)) && !some.holds(&facts(1, 0, 1, 0, 4)));
        assert!(Regime::default().is_any() && !some.is_any());
    }
}
