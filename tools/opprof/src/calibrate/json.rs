//! The same for programs.

use serde_json::{Map, Value, json};

use super::{Calibrated, FEATURE_COUNT, FEATURES, ModeFit, Score};
use crate::families::{Families, FamilyId};

impl Calibrated {
    /// The calibration as one JSON object; costs in nanoseconds of one of each feature.
    #[must_use]
    pub fn to_json(&self, families: &Families) -> Value {
        let name = |id: &FamilyId| families.names()[usize::from(id.0)].clone();
        let scores = self.families.iter().map(|(id, found)| (name(id), score(found)));
        json!({
            "schema": "takt-opprof-calibration-1",
            "windows": {"fitted": self.windows.0, "held_out": self.windows.1},
            "steps_left_out_resumed": self.resumed,
            "steps_refused": self.refused,
            "residual_ns": self.residual_ns,
            "held_out": {
                "union": self.union.as_ref().map(score),
                "families": scores.collect::<Map<_, _>>(),
            },
            "modes": self.calibration.modes.iter().map(|fit| mode(fit, &name)).collect::<Vec<_>>(),
        })
    }
}

fn mode(fit: &ModeFit, name: &dyn Fn(&FamilyId) -> String) -> Value {
    let costs = |costs: &[f64; FEATURE_COUNT]| -> Map<String, Value> {
        FEATURES
            .iter()
            .zip(costs)
            .map(|(feature, cost)| ((*feature).to_owned(), json!(cost)))
            .collect()
    };
    let range = FEATURES.iter().zip(fit.range);
    json!({
        "graph": fit.mode.name(),
        "steps": fit.steps,
        "union": costs(&fit.union),
        "families":
            fit.families.iter().map(|(id, of)| (name(id), Value::from(costs(of)))).collect::<Map<_, _>>(),
        "range":
            range.map(|(feature, range)| ((*feature).to_owned(), json!(range))).collect::<Map<_, _>>(),
    })
}

fn score(score: &Score) -> Value {
    json!({"steps": score.steps, "mean_ns": score.mean_ns, "mape": score.mape, "r2": score.r2})
}
