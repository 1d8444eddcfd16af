//! How evenly tokens are spread over experts.
//!
//! ```text
//! answers with routes --base64, NumPy--> expert ids by token and layer
//!         --count--> tokens per expert of each layer --> entropy, max/mean, variation, imbalance
//! ```
//!
//! Each layer is judged by itself, and averages are taken over the layers afterwards: layers that are
//! uneven in opposite ways are uneven all the same. A dense layer is a column of zeros and is left out; a
//! server on a CPU returns zeros everywhere, which is no routing at all and is refused.

mod npy;
#[cfg(test)]
mod tests;
mod text;

pub use npy::{Routes, RoutesError};

use std::io::BufRead;

use serde_json::Value;

use crate::lines::{Line, Lines};

/// Loads of all layers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loads {
    /// Requests that had routes.
    pub requests: u64,
    /// Their tokens.
    pub tokens: u64,
    /// Experts a token and layer.
    pub top_k: usize,
    /// Tokens by layer and expert; a dense layer has none.
    pub layers: Vec<Vec<u64>>,
}

/// How even one layer is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evenness {
    /// Entropy of the shares over its greatest, which even loads have: 1 is even.
    pub entropy: f64,
    /// The busiest expert over the mean.
    pub max_over_mean: f64,
    /// Standard deviation over the mean.
    pub variation: f64,
    /// Load of the busiest `top_k` experts over what `top_k` would have if all were even.
    pub top_k_imbalance: f64,
}

/// Why routes cannot be counted.
#[derive(Debug, thiserror::Error)]
pub enum ExpertsError {
    /// The array itself.
    #[error(transparent)]
    Routes(#[from] RoutesError),
    /// A token that goes to the same expert twice.
    #[error("token {token} in layer {layer} goes to experts {ids:?}: they must be distinct{}", all_zero(.ids))]
    NotDistinct {
        /// Which token.
        token: usize,
        /// Which layer.
        layer: usize,
        /// Its experts.
        ids: Vec<u16>,
    },
    /// An expert that the model does not have.
    #[error("expert {id} in layer {layer}, the model has {experts}")]
    TooMany {
        /// Which.
        id: u16,
        /// Where.
        layer: usize,
        /// As many there are.
        experts: usize,
    },
    /// Requests with other layers or other `top_k` than those before.
    #[error("routes of {found:?} layers and experts a token, before it was {expected:?}")]
    Unlike {
        /// Of this request.
        found: (usize, usize),
        /// Of those before.
        expected: (usize, usize),
    },
    /// The file.
    #[error("line {line}: {why}")]
    Line {
        /// Counted from 1.
        line: u64,
        /// What is wrong.
        why: String,
    },
    /// The input's.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

fn all_zero(ids: &[u16]) -> &'static str {
    if ids.iter().all(|&id| id == 0) {
        " (all are 0: a server on a CPU does not record routes)"
    } else {
        ""
    }
}

impl Loads {
    /// Takes the routes of a request in. `experts` is how many the model has.
    ///
    /// # Errors
    /// They are not routes of such a model.
    pub fn add(&mut self, routes: &Routes, experts: usize) -> Result<(), ExpertsError> {
        if self.layers.is_empty() {
            self.layers = vec![vec![0; experts]; routes.layers];
            self.top_k = routes.top_k;
        }
        let (found, expected) = ((routes.layers, routes.top_k), (self.layers.len(), self.top_k));
        if found != expected {
            return Err(ExpertsError::Unlike { found, expected });
        }
        let dense = |layer: usize| {
            (0..routes.tokens).all(|token| routes.row(token, layer).iter().all(|&id| id == 0))
        };
        // A model of dense layers only has no routes: then the zeros are those of a CPU.
        let is_dense: Vec<bool> = (0..routes.layers).map(dense).collect();
        let nothing = routes.top_k > 1 && is_dense.iter().all(|dense| *dense);
        for layer in
            (0..routes.layers).filter(|&layer| nothing || !is_dense[layer] || routes.top_k == 1)
        {
            for token in 0..routes.tokens {
                self.count(routes.row(token, layer), token, layer)?;
            }
        }
        self.requests += 1;
        self.tokens += routes.tokens as u64;
        Ok(())
    }

    fn count(&mut self, ids: &[u16], token: usize, layer: usize) -> Result<(), ExpertsError> {
        if (1..ids.len()).any(|at| ids[..at].contains(&ids[at])) {
            return Err(ExpertsError::NotDistinct { token, layer, ids: ids.to_vec() });
        }
        let counts = &mut self.layers[layer];
        let experts = counts.len();
        for &id in ids {
            let place = counts.get_mut(usize::from(id));
            *place.ok_or(ExpertsError::TooMany { id, layer, experts })? += 1;
        }
        Ok(())
    }

    /// Each layer's evenness; `None` for a dense layer.
    #[must_use]
    pub fn evenness(&self) -> Vec<Option<Evenness>> {
        self.layers.iter().map(|counts| Evenness::of(counts, self.top_k)).collect()
    }

    /// The mean of each figure over the layers that have experts.
    #[must_use]
    pub fn mean(&self) -> Option<Evenness> {
        let layers: Vec<Evenness> = self.evenness().into_iter().flatten().collect();
        let mean =
            |of: fn(&Evenness) -> f64| layers.iter().map(of).sum::<f64>() / layers.len() as f64;
        (!layers.is_empty()).then(|| Evenness {
            entropy: mean(|e| e.entropy),
            max_over_mean: mean(|e| e.max_over_mean),
            variation: mean(|e| e.variation),
            top_k_imbalance: mean(|e| e.top_k_imbalance),
        })
    }

    /// Loads by the rank that owns each expert, when `owner[layer][expert]` tells; a placement with one
    /// row is that of all layers.
    ///
    /// # Errors
    /// The placement does not fit the model.
    pub fn by_rank(&self, owner: &[Vec<usize>]) -> Result<Vec<Vec<u64>>, String> {
        let ranks = owner.iter().flatten().max().map_or(0, |most| most + 1);
        if owner.len() != 1 && owner.len() != self.layers.len() {
            return Err(format!(
                "placement of {} layers, the model has {}",
                owner.len(),
                self.layers.len()
            ));
        }
        let of_layer = |(layer, counts): (usize, &Vec<u64>)| {
            let owner = &owner[if owner.len() == 1 { 0 } else { layer }];
            if owner.len() != counts.len() {
                return Err(format!(
                    "layer {layer}: placement of {} experts, the model has {}",
                    owner.len(),
                    counts.len()
                ));
            }
            let mut loads = vec![0; ranks];
            for (&rank, count) in owner.iter().zip(counts) {
                loads[rank] += count;
            }
            Ok(loads)
        };
        self.layers.iter().enumerate().map(of_layer).collect()
    }
}

impl Evenness {
    /// Of one layer's counts; `None` when nothing was routed.
    #[must_use]
    pub fn of(counts: &[u64], top_k: usize) -> Option<Self> {
        let total: u64 = counts.iter().sum();
        if total == 0 {
            return None;
        }
        let (n, total) = (counts.len() as f64, total as f64);
        let mean = total / n;
        let shares = counts.iter().filter(|&&count| count > 0).map(|&count| count as f64 / total);
        let entropy: f64 = shares.map(|share| -share * share.ln()).sum();
        let variance = counts.iter().map(|&count| (count as f64 - mean).powi(2)).sum::<f64>() / n;
        let mut sorted = counts.to_vec();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        let busiest: u64 = sorted.iter().take(top_k).sum();
        Some(Self {
            entropy: if counts.len() > 1 { entropy / n.ln() } else { 1.0 },
            max_over_mean: sorted.first().map_or(0.0, |&max| max as f64 / mean),
            variation: variance.sqrt() / mean,
            top_k_imbalance: busiest as f64 / (mean * top_k as f64),
        })
    }
}

/// Reads answers, one JSON object a line, and counts the routes of every choice that has some.
///
/// # Errors
/// A line that is no answer, or routes that cannot be counted.
pub fn read_answers(
    input: impl BufRead,
    experts: usize,
    loads: &mut Loads,
) -> Result<(), ExpertsError> {
    let mut lines = Lines::new(input);
    loop {
        let line = lines.number() + 1;
        let bytes = match lines.next_line()? {
            Line::Whole(bytes) | Line::Torn(bytes) => bytes,
            Line::End => return Ok(()),
        };
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        let bad = |why: String| ExpertsError::Line { line, why };
        let answer: Value =
            serde_json::from_slice(bytes).map_err(|error| bad(error.to_string()))?;
        let choices = answer.get("choices").and_then(Value::as_array).map(Vec::as_slice);
        for choice in choices.unwrap_or(std::slice::from_ref(&answer)) {
            if let Some(text) = choice.get("routed_experts").and_then(Value::as_str) {
                let routes = Routes::from_base64(text).map_err(|error| bad(error.to_string()))?;
                loads.add(&routes, experts).map_err(|error| bad(error.to_string()))?;
            }
        }
    }
}
